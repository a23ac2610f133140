"""What a node makes of a file that was lost, cut or damaged: bit rot, a tear that no crash explains, a slip.

The copy of a disk that is looked at after an event (``found.py``) is damaged in one place, and a node is opened on it.
What can be made anew, an index or the epochs of a log, must be, and nobody may notice. What cannot is refused with one
of the log's own errors, or was not synced, and is cut off. Nothing is served that was never written.

Bytes that no CRC covers are left alone: a base offset, a leader epoch, a digit of a checkpoint may be believed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import count
from typing import Final, TypeVar

from ...impl.files.interface import read_file
from ...impl.files.simulated import SimulatedFiles
from ...impl.log.checkpoints import EPOCH_CHECKPOINT, HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets
from ...impl.log.log import Log
from ...impl.log.segment import INDEX_SUFFIX, LOG_SUFFIX
from ...impl.replica.partition import Partition, PartitionState
from ...impl.wire.messages import TopicPartition
from ..checks.crash_image import NotFound, check_kept, check_reads, rows_of

_BASE: Final = 8
"""Bytes of a batch's base offset; its length follows."""
_COVERED: Final = 21
"""From this byte of a batch on its CRC covers it (magic 2)."""
_EVERY: Final = 4
"""One of so many copies is damaged."""
_REFUSALS: Final = frozenset({"LogError"})
"""The bases of the errors by which a node may refuse what it finds; by their names, as a defect has classes of its
own."""

Opened_ = TypeVar("Opened_")
Row_ = TypeVar("Row_", bound=tuple[int, int, object])


class How(Enum):
    """What befalls a file."""

    LOST = "lost"
    CUT = "cut short"
    GARBLED = "garbled"


@dataclass(frozen=True)
class Damage:
    """``loses``: the offset from which on records are gone, None where nothing is that cannot be made anew.

    ``refused``: whether a node may refuse to start on it. ``noticed``: whether it must, or cut the log there;
    ``synced``: whether what is lost was, so that cutting is not enough.
    """

    path: str
    how: How
    loses: int | None = None
    refused: bool = False
    noticed: bool = False
    synced: bool = False

    def __str__(self) -> str:
        return f"with {self.path} {self.how.value}"


def is_damaged(seed: int) -> bool:
    """Whether a copy is damaged that has this seed."""
    return seed // 2 % _EVERY == 0


def damaged(
    files: SimulatedFiles,
    partition: TopicPartition,
    seed: int,
    log_start: int,
    besides: Sequence[str] = (),
    *,
    holes: bool = False,
    remade: bool = True,
) -> Damage | None:
    """Damage a copy in one place, drawn by the seed; None where there is nothing. What was lost, and may come of it.

    ``besides``: further files that are refused where they are cut short. ``holes``: a cleaner may have left some, so
    that nobody can miss a segment. ``remade``: whether the leader epochs can be made anew of the records that are here.
    """
    chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
    synced = read_offsets(files, RECOVERY_POINTS, "").get(partition, 0)
    names = [EPOCH_CHECKPOINT, *besides]
    ways = list(_ways(files, str(partition), synced, log_start, names, chance, holes=holes, remade=remade))
    if not ways:
        return None
    # As often to each kind of file: a log of many segments has as many indexes.
    kind = chance.choice(sorted({(each.path.rpartition(".")[2], each.how.value) for each, _ in ways}))
    found, do = chance.choice([each for each in ways if (each[0].path.rpartition(".")[2], each[0].how.value) == kind])
    do()
    return found


def _ways(
    files: SimulatedFiles,
    folder: str,
    synced: int,
    log_start: int,
    besides: Sequence[str],
    chance: random.Random,
    *,
    holes: bool,
    remade: bool,
) -> Iterator[tuple[Damage, Callable[[], None]]]:
    names = files.list(folder) if files.exists(folder) else []
    for name in names:
        path = f"{folder}/{name}"
        if name.endswith(INDEX_SUFFIX):
            yield Damage(path, How.LOST), partial(files.remove, path)
            size = len(read_file(files, path))
            if size:
                at = chance.randrange(size)
                yield Damage(path, How.CUT), partial(_cut, files, path, at)
                yield Damage(path, How.GARBLED), partial(_garble, files, path, at)
        elif name.endswith(LOG_SUFFIX):
            last = name == max(each for each in names if each.endswith(LOG_SUFFIX))
            for lost, do in _ways_of_segment(files, path, synced, log_start, chance, last=last):
                # What follows a part in remote storage must be there, synced or not.
                found = replace(lost, refused=lost.refused or not remade, noticed=lost.noticed and not holes)
                yield (found if lost.how is How.LOST else lost), do
    if EPOCH_CHECKPOINT in names:
        path = f"{folder}/{EPOCH_CHECKPOINT}"
        yield Damage(path, How.LOST, refused=not remade), partial(files.remove, path)
    for path in (HIGH_WATERMARKS, RECOVERY_POINTS):
        if files.exists(path):
            yield Damage(path, How.LOST), partial(files.remove, path)
    for name in (HIGH_WATERMARKS, RECOVERY_POINTS, *besides):
        path = f"{folder}/{name}" if name in names else name
        if files.exists(path):
            at = chance.randrange(max(1, len(read_file(files, path))))
            yield Damage(path, How.CUT, refused=True), partial(_cut, files, path, at)


def _ways_of_segment(
    files: SimulatedFiles, path: str, synced: int, log_start: int, chance: random.Random, *, last: bool
) -> Iterator[tuple[Damage, Callable[[], None]]]:
    base = int(path.rpartition("/")[2].removesuffix(LOG_SUFFIX))
    batches = [each for each in _batches(read_file(files, path), base) if each[0] >= log_start]
    if not batches:
        return
    first = batches[0][0]
    if first == base:
        gone = first < synced
        # A segment is synced before the next is begun, whatever the recovery point says that is stored.
        lost = Damage(path, How.LOST, first, refused=gone or not last, noticed=True, synced=gone)
        yield lost, partial(files.remove, path)
    offset, begin, end = chance.choice(batches)
    at = chance.randrange(begin + _COVERED, end)
    gone = offset < synced
    # Below the recovery point nobody looks before somebody reads.
    yield Damage(path, How.GARBLED, offset, refused=gone, noticed=not gone), partial(_garble, files, path, at)


def _batches(data: bytes, least: int) -> Iterator[tuple[int, int, int]]:
    """Base offset, first byte and end of each whole batch; none has a lower base offset than ``least``.

    What a loss of power has left of a batch may be zeros where its base offset was, which no CRC covers.
    """
    begin = 0
    while begin + _COVERED < len(data):
        offset = int.from_bytes(data[begin : begin + _BASE], "big")
        end = begin + _BASE + 4 + int.from_bytes(data[begin + _BASE : begin + _BASE + 4], "big")
        if offset < least or not begin + _COVERED < end <= len(data):
            return
        yield offset, begin, end
        begin, least = end, offset + 1


def _cut(files: SimulatedFiles, path: str, size: int) -> None:
    file = files.open(path)
    file.truncate(size)
    file.close()


def _garble(files: SimulatedFiles, path: str, at: int) -> None:
    data = read_file(files, path)
    file = files.open(path)
    file.truncate(at)
    file.append(bytes((data[at] ^ 0x55,)) + data[at + 1 :])
    file.close()


def opened_damaged(
    open_on: Callable[[SimulatedFiles], Opened_], files: SimulatedFiles, damage: Damage
) -> tuple[Opened_ | None, bool]:
    """A node on a damaged copy, or that it refuses what may be refused. Raises NotFound for any other error."""
    try:
        return open_on(files), False
    except Exception as error:
        # Whatever a system under test raises is what we are looking for.
        told = f"{damage} it could not be opened: {type(error).__name__}: {error}"
        if not any(each.__name__ in _REFUSALS for each in type(error).__mro__):
            raise NotFound(f"{told}, which is no word for what is wrong with a file") from error
        if not damage.refused:
            raise NotFound(f"{told}, though nothing is gone that was synced") from error
        return None, True


@contextmanager
def told_with(damage: Damage) -> Iterator[None]:
    """A finding is told with the damage that led to it."""
    try:
        yield
    except NotFound as wrong:
        raise NotFound(f"{damage} {wrong}") from wrong


def check_damaged(damage: Damage, end: int, has: Sequence[object], there: Sequence[object]) -> None:
    """Hold what a node serves of a damaged disk against what it had. Raises NotFound.

    ``end``: of the log that was opened. ``has`` and ``there``: records from the log start on, in their order: those of
    the running log, and those that can be read now, up to the first that cannot.
    """
    if list(there) != list(has[: len(there)]):
        raise NotFound(f"{damage} there would be {list(there)}, and it has {list(has)}")
    if damage.loses is not None and damage.noticed and (damage.synced or end > damage.loses):
        raise NotFound(f"{damage} the log would end at {end}, and what was at {damage.loses} cannot be read")


def readable(rows: Sequence[Row_], start: int, has: Sequence[tuple[int, int, object]] | None = None) -> list[Row_]:
    """The records from an offset on that follow one another: up to the first that cannot be read.

    ``has``: those of the running log, where a cleaner may have left holes in it; without it there are none.
    """
    offsets = count(start) if has is None else (row[0] for row in has if row[0] >= start)
    found: list[Row_] = []
    for row, offset in zip((row for row in rows if row[0] >= start), offsets, strict=False):
        if row[0] > offset:
            break
        found.append(row)
    return found


def check_on_damaged(
    copy: SimulatedFiles,
    partition: TopicPartition,
    seed: int,
    has: PartitionState,
    rows: Sequence[Row_],
    open_on: Callable[[SimulatedFiles], Partition | None],
    decode: Callable[[bytes], Sequence[Row_]],
    check: Callable[[PartitionState, Sequence[Row_], Partition | None, Sequence[Row_]], None],
    *,
    begin: int,
    holes: bool = False,
) -> None:
    """Damage a broker's disk in one place, and hold a broker on it against what the running replica has. NotFound.

    ``check``: what holds them against each other where nothing may be gone. ``begin``: where the log begins on this
    disk. ``holes``: whether a cleaner may have left some.
    """
    remade = not holes and begin == has.log_start
    damage = damaged(copy, partition, seed, begin, holes=holes, remade=remade)
    if damage is None:
        return
    found, refuses = opened_damaged(open_on, copy, damage)
    if refuses:
        return
    there = rows_of(copy, str(partition), decode)
    if damage.loses is None:
        with told_with(damage):
            if damage.path.endswith(EPOCH_CHECKPOINT) and not remade:
                state = check_kept(has, rows, None if found is None else found.state(), there)
                check_made_anew(state, there, begin)
            else:
                check(has, rows, found, there)
    elif found is not None:
        start = found.log.local_start
        check_damaged(damage, found.state().end, readable(rows, begin, rows), readable(there, start, rows))
    if found is not None:
        check_served(damage, found.log, {row[0]: row for row in rows}, decode)


def check_made_anew(found: PartitionState, there: Sequence[tuple[int, int, object]], begin: int) -> None:
    """Hold leader epochs that were made anew of the records that are there against these. Raises NotFound.

    ``begin``: where the log begins on this disk; of what lies below, in remote storage, some epoch has to be known.
    """
    if begin > found.log_start and not any(first <= found.log_start for _, first in found.epochs):
        raise NotFound(f"the log begins at {found.log_start}, and its leader epochs would be {list(found.epochs)}")
    for offset, epoch, _ in there:
        would = max((each for each, first in found.epochs if first <= offset), default=-1)
        if would != epoch and found.log_start <= offset < found.end:
            raise NotFound(f"the record at {offset} is of leader epoch {epoch}, and would be of {would}")


def check_served(damage: Damage, log: Log, has: Mapping[int, Row_], decode: Callable[[bytes], Sequence[Row_]]) -> None:
    """Whoever reads gets what was written, from where it asks on, or an error of the log. Raises NotFound."""
    missed = None if damage.noticed or damage.loses is None else damage.loses
    with told_with(damage):
        check_reads(log, has, decode, errors=_REFUSALS, up_to=missed)
