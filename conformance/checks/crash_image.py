"""What a node would find if its power went now, though it goes on: a process is begun on a copy of its disk.

A crash shows what was not durable only if it comes just then, and most often it comes when all is well. So after an
event the disk is copied as a loss of power would leave it, a node is opened on the copy, and what that has is held
against what the running one says it has. While a log is cut a copy is taken before each effect of the event, too, and
of any other event before one that is drawn. The running node notices nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

from ...impl.files.interface import Files, read_file
from ...impl.files.simulated import SimulatedFiles
from ...impl.log.checkpoints import EPOCH_CHECKPOINT, LOG_STARTS, RECOVERY_POINTS, read_epochs, read_offsets
from ...impl.log.log import Log
from ...impl.log.segment import LOG_SUFFIX
from ...impl.replica.partition import Partition, PartitionState
from ...impl.wire.messages import Envelope, TopicPartition
from ..adapters.nodes import EFFECTS, RunningNodes
from ..lockstep.adapter import Contradiction
from ..simulation.events import Event
from ..simulation.system import StepResult

Row: TypeAlias = tuple[int, int, bytes]
"""Offset, leader epoch, content."""
Opened_ = TypeVar("Opened_")
Row_ = TypeVar("Row_")
_Row = TypeVar("_Row", bound=tuple[Any, ...])

_SELDOM: Final = 2
"""After one of so many events it is looked at what a loss of power would leave."""
MOST: Final = 6
"""So many copies are taken in one event, while a log is cut."""
_STRIDES: Final = (1, 1, 2, 3, 5)
"""While a log is cut, a copy is taken before each effect, or before every second, third, or fifth: which, is drawn. A
log that is begun anew has some thirty of them."""
_AMID: Final = (None, None, None, 0, 1, 2, 3, 5, 8)
"""After so many effects of an event a copy is taken, one of these; or there is none."""


class NotFound(Contradiction):
    """What a running node says that it has would not be there after a loss of power, or nobody could open it."""


class Nowhere:
    """A transport that loses everything: of a node that is only looked at."""

    def send(self, envelope: Envelope) -> None:
        """Lose it."""


class CopiedNodes(RunningNodes):
    """Nodes whose disks are copied. What is opened on the copies, and must be there, a protocol adds."""

    _amid_begin: ClassVar[str | None] = None
    """The file that is written anew where a log comes to begin later on its disk, if that is looked at."""

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes."""
        self._copies: list[tuple[int, SimulatedFiles]] = []
        """By node, what a loss of power in the midst of this event would have left."""
        self._cutting: int | None = None
        self._until_copy: int | None = None
        """So many effects are left until a copy is taken."""
        self._stride = 1
        """While a log is cut a copy is taken before every so many effects."""
        self._drawn_of: int | None = None
        """Whose disk that is."""
        self._copy_seed = seed
        return super().reset(constants, seed)

    def step(self, event: Event) -> StepResult:
        """One event."""
        self._copies.clear()
        self._cutting = self._drawn_of = None
        self._copy_seed = self._crash_seed(event)
        self._until_copy = _AMID[self._copy_seed // 64 % len(_AMID)]
        self._stride = _STRIDES[self._copy_seed // 640 % len(_STRIDES)]
        return super().step(event)

    def _hook(self, node: int) -> Callable[[str, str], None]:
        files, takes_effect = self.store.files(node), super()._hook(node)

        def hook(operation: str, path: str) -> None:
            if operation in EFFECTS:
                room = len(self._copies) < MOST
                if isinstance(files, SimulatedFiles) and room and self._is_copied(operation, path, node):
                    self._copies.append((node, copy_of(files, self._copy_seed + len(self._copies))))
                takes_effect(operation, path)

        return hook

    def _is_copied(self, operation: str, path: str, node: int) -> bool:
        """Whether a disk is copied before an effect."""
        begins = self._amid_begin is not None and path.startswith(self._amid_begin)
        if self._cutting != node and (begins or (operation == "truncate" and path.endswith(LOG_SUFFIX))):
            # What was there when an event began is no longer what is there when it cuts.
            self._copies.clear()
            self._until_copy = self._copy_seed // 3_200 % self._stride
            self._cutting = node
            self._begins_amid(node)
        if self._cutting == node:
            self._until_copy = (self._until_copy or self._stride) - 1
            return self._until_copy == 0
        if self._until_copy is None or not self._is_copied_amid(node):
            return False
        if self._drawn_of is None:
            self._drawn_of = node
            self._begins_amid(node)
        self._until_copy -= int(node == self._drawn_of)
        return self._until_copy == -1 and node == self._drawn_of

    def _is_copied_amid(self, node: int) -> bool:  # noqa: ARG002 - for those who look at some events by themselves
        """Whether a node's disk may be copied in the midst of this event, if it cuts nothing."""
        return True

    def _begins_amid(self, node: int) -> None:
        """From here on copies are taken, in this event: nothing is cut yet, or nothing has come of it at all."""

    def _amid(self, node: int) -> list[SimulatedFiles]:
        """What a loss of power in the midst of this event would have left to a node."""
        return [files for of, files in self._copies if of == node]

    def _is_drawn(self) -> bool:
        """Whether it is looked at after this event: to open a node takes as long as the event itself."""
        return self._copy_seed % _SELDOM == 0


def copy_of(files: SimulatedFiles, seed: int) -> SimulatedFiles:
    """A disk as a loss of power would leave it; whoever starts on it has room."""
    copy = files.crashed_copy(seed)
    copy.capacity = None
    return copy


def opened(open_on: Callable[[SimulatedFiles], Opened_], files: SimulatedFiles) -> Opened_:
    """A node on a copy. Raises NotFound where it cannot be opened."""
    try:
        return open_on(files)
    except Exception as error:
        # Whatever a system under test raises is what we are looking for.
        told = f"{type(error).__name__}: {error}"
        raise NotFound(f"after a loss of power its disk could not be opened: {told}") from error


def rows_of(files: Files, folder: str, decode: Callable[[bytes], Sequence[Row_]]) -> tuple[Row_, ...]:
    """The records in the segments of a partition."""
    found: tuple[Row_, ...] = ()
    if files.exists(folder):
        for name in files.list(folder):
            if name.endswith(LOG_SUFFIX):
                found += tuple(decode(read_file(files, f"{folder}/{name}")))
    return found


def check_reads(
    log: Log,
    has: Mapping[int, _Row],
    decode: Callable[[bytes], Sequence[_Row]],
    *,
    errors: Collection[str] = (),
    up_to: int | None = None,
) -> None:
    """Whoever reads a log gets what is on its disk, from wherever it asks on. Raises NotFound.

    ``has``: the records by their offsets. ``errors``: the bases, by their names, of errors that may be answered in the
    place of records. ``up_to``: from here on a record may be missing, None: from nowhere on.
    """
    for offset in range(log.local_start, log.end):
        try:
            batches = log.read(offset, 1)
        except Exception as error:
            # Whatever a system under test raises is what we are looking for.
            if any(each.__name__ in errors for each in type(error).__mro__):
                continue
            raise NotFound(f"a read at {offset} raised {type(error).__name__}: {error}") from error
        read = [row for batch in batches for row in decode(batch.data)]
        wanted = has.get(offset) if up_to is None or offset < up_to else None
        if (wanted is not None and wanted not in read) or any(has.get(row[0]) != row for row in read):
            raise NotFound(f"a read at {offset} would get {read}, and there is {has.get(offset)}")


def check_times(
    offset_of: Callable[[Log, int, int], tuple[int, int]], log: Log, stamps: Sequence[tuple[int, int]], up_to: int
) -> None:
    """Whoever asks a log for a timestamp gets the first record that is as late, from the log start on. Raises NotFound.

    ``offset_of``: how a broker finds it below ``up_to``. ``stamps``: offset and timestamp of each record on the disk.
    """
    live = [each for each in stamps if log.log_start <= each[0] < up_to]
    asked = sorted({stamp for _, stamp in stamps})
    for timestamp in [*asked, *(stamp + 1 for stamp in asked[-1:])]:
        wanted = next((each for each in live if each[1] >= timestamp), (-1, -1))
        found = offset_of(log, timestamp, up_to)
        if found != wanted:
            raise NotFound(f"of the timestamp {timestamp} there would be offset and timestamp {found}, it is {wanted}")


def check_stored(
    files: Files, partition: TopicPartition, epochs: Sequence[tuple[int, int]], log_start: int, synced: int
) -> None:
    """Hold what a log keeps beside its segments against what it goes by. Raises NotFound.

    Its leader epochs and its log start are stored before it goes on; it may not be said to be synced any further than
    it is. Where they are not so, some later loss of power brings back what is over.
    """
    path = f"{partition}/{EPOCH_CHECKPOINT}"
    stored = [(each.epoch, each.start_offset) for each in read_epochs(files, path)] if files.exists(path) else []
    if stored != list(epochs):
        raise NotFound(f"the leader epochs {stored} are stored, and they are {list(epochs)}")
    start = read_offsets(files, LOG_STARTS, "").get(partition, 0)
    if start != log_start:
        raise NotFound(f"the log start {start} is stored, and it is {log_start}")
    point = read_offsets(files, RECOVERY_POINTS, "").get(partition, 0)
    if point > synced:
        raise NotFound(f"the recovery point {point} is stored, and the log is synced up to {synced}")


def missing_timers(state: PartitionState, names: Collection[str]) -> list[str]:
    """The timers without which a broker that has this replica would never do again what it does from time to time.

    ``names``: of those that are set for it, or for all of the broker.
    """
    wanted = {"high-watermarks", "recovery-points"}
    wanted |= {"isr"} if state.role.value == "leader" else set()
    wanted |= {"fetch"} if state.role.value in ("follower", "truncating") else set()
    wanted |= {"produce"} if state.waiting else set()
    return sorted(wanted - set(names))


def check_awake(node: int, broker: Any, partition: TopicPartition) -> None:
    """Whether a broker that is up goes on by itself with its replica. Raises NotFound."""
    replica = broker.partitions.get(partition)
    if replica is None or replica.failure is not None:
        return
    names = {key[0] for key in broker.timers() if key[1:] in ((), (partition,))}
    if replica.remote is not None and replica.remote.building():
        names.add("fetch")  # when what is in remote storage is there
    missing = missing_timers(replica.state(), names)
    if missing:
        raise NotFound(f"broker {node} will never wake for {', '.join(missing)} again")


def check_after(state: PartitionState, rows: Sequence[Row], found: PartitionState | None, there: Sequence[Row]) -> None:
    """Hold what would be found of a replica against what it goes by. Raises NotFound.

    What is synced is there, and nothing that is not in the log; the leader epoch and the log start are the same, the
    high watermark is no higher, and the leader epoch cache says of each record what the record says.
    """
    _check_epochs(state, rows)
    _check_epochs(check_kept(state, rows, found, there), there)


def check_replica(state: PartitionState, rows: Sequence[Row], found: Partition | None, there: Sequence[Row]) -> None:
    """The same of a replica that was opened. Raises NotFound."""
    check_after(state, rows, None if found is None else found.state(), there)


def check_kept(
    state: PartitionState, rows: Sequence[Any], found: PartitionState | None, there: Sequence[Any]
) -> PartitionState:
    """The same, but for the leader epoch cache. Gives what would be found.

    Of a record there is its offset first.
    """
    if found is None:
        raise NotFound("after a loss of power there would be no replica")
    for name, has, would in (
        ("leader epoch", state.leader_epoch, found.leader_epoch),
        ("log start", state.log_start, found.log_start),
    ):
        if has != would:
            raise NotFound(f"after a loss of power the {name} would be {would}, it is {has}")
    if not state.synced <= found.end <= state.end:
        raise NotFound(f"after a loss of power the log would end at {found.end}, and it is synced up to {state.synced}")
    if found.high_watermark > state.high_watermark:
        told = f"the high watermark would be {found.high_watermark}, and it has fallen to {state.high_watermark}"
        raise NotFound(f"after a loss of power {told}")
    _check_rows(_live(rows, state.log_start, found.end), _live(there, found.log_start, found.end))
    return found


def check_amid(
    before: PartitionState,
    after: PartitionState,
    old: Sequence[Row],
    new: Sequence[Row],
    found: PartitionState | None,
    there: Sequence[Row],
) -> None:
    """Hold what would be found in the midst of an event against what the replica had before and after. NotFound."""
    if found is None:
        raise NotFound("after a loss of power there would be no replica")
    if found.leader_epoch not in (before.leader_epoch, after.leader_epoch):
        told = f"{found.leader_epoch}, it was {before.leader_epoch} and is {after.leader_epoch}"
        raise NotFound(f"after a loss of power in the midst the leader epoch would be {told}")
    have = _live(there, found.log_start, found.end)
    # Below its start there may be what the log never had: whatever its leader did before it was deleted.
    could_be = old, new, joined(old, _live(new, after.log_start, after.end))
    if not any(have == _live(each, found.log_start, found.end) for each in could_be):
        raise NotFound(f"after a loss of power in the midst the log would be {have}, which it never was")
    least = min(before.synced, after.synced)
    if found.end < least and max(before.log_start, after.log_start) < least:
        raise NotFound(f"after a loss of power in the midst the log would end at {found.end}, below {least}")
    highest = max(before.high_watermark, after.high_watermark)
    if found.high_watermark > highest:
        told = f"{found.high_watermark}, above {highest}"
        raise NotFound(f"after a loss of power in the midst the high watermark would be {told}")
    _check_epochs(found, there)


def joined(old: Sequence[_Row], new: Sequence[_Row]) -> list[_Row]:
    """What a log has in the midst of an event that appends to it and deletes from its start, in this order."""
    return [*(row for row in old if not new or row[0] < new[0][0]), *new]


def _live(rows: Sequence[_Row], start: int, end: int) -> list[_Row]:
    return [row for row in rows if start <= row[0] < end]


def _check_rows(wanted: Sequence[_Row], there: Sequence[_Row]) -> None:
    if wanted != there:
        first = next((a for a, b in zip(wanted, there, strict=False) if a != b), None)
        told = f"{len(there)} records, not {len(wanted)}" if first is None else f"another record at offset {first[0]}"
        raise NotFound(f"after a loss of power there would be {told}")


def check_epochs(
    epochs: Sequence[tuple[int, int]], rows: Sequence[tuple[int, int]], start: int, end: int, *, opened: bool = False
) -> None:
    """The cache has where each leader epoch begins; besides, at the end, the one in which nothing was written yet.

    ``rows``: offset and epoch of each record. ``opened``: by a process that has led nothing yet, so there is no such
    epoch, but that of the last record where all are deleted. Raises NotFound.
    """
    starts: list[tuple[int, int]] = []
    for offset, epoch in rows:
        if start <= offset < end and (not starts or starts[-1][0] != epoch):
            starts.append((epoch, offset))
    beyond = [each for each in epochs if each[1] > end or (opened and start < end == each[1])]
    if beyond:
        raise NotFound(f"the leader epoch cache has {beyond}, and the log ends at {end}")
    cached = [(epoch, first) for epoch, first in epochs if first < end]
    if cached != starts:
        raise NotFound(f"the leader epoch cache has {cached}, and the log {starts}")


def _check_epochs(state: PartitionState, rows: Sequence[Row]) -> None:
    opened = state.role.value == "none"
    check_epochs(state.epochs, [row[:2] for row in rows], state.log_start, state.end, opened=opened)
