"""What a loss of power would leave to brokers whose logs have holes, or begin in remote storage.

``crash_image.py`` has how it is looked at. Their leader epoch caches cannot be held to the records on a disk: records
are cleaned away, or are not there. They are held to what the running broker goes by.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, cast

from ...impl.files.simulated import SimulatedFiles
from ...impl.log.checkpoints import LOCAL_LOG_STARTS
from ...impl.log.log import Log
from ...impl.log.records import StoredRecord
from ...impl.replica.partition import Partition, PartitionState
from ...impl.replica.producer_snapshot import ProducerEntry, decode_producers
from ..adapters.cluster import PARTITION
from ..adapters.stores import SegmentReader
from ..faults.corrupt_file import check_on_damaged, is_damaged
from ..simulation.events import Event
from ..simulation.system import StepResult
from .crash_image import (
    CopiedNodes,
    NotFound,
    check_kept,
    check_reads,
    check_stored,
    check_times,
    copy_of,
    joined,
    rows_of,
)
from .file_inventory import AccountedNodes, folders_of
from .recovery import plan_of, started

Row: TypeAlias = tuple[int, int, object]
"""Offset, leader epoch, and what the record is."""

_SELDOM: Final = 4
"""After one of so many events it is looked at what a loss of power would leave."""


class Before(NamedTuple):
    """A log before it is cut, or comes to begin later, and after that.

    ``begin``: where it begins on this disk; ``synced``: up to where it is; ``rows``: what is there.
    """

    log_start: int
    begin: int
    end: int
    synced: int
    rows: Sequence[Row]

    @classmethod
    def of(cls, log: Log, rows: Sequence[Row]) -> Before:
        """What a log has now."""
        return cls(log.log_start, log.local_start, log.end, log.recovery_point, rows)


class LastingBrokers(CopiedNodes, AccountedNodes):
    """Brokers with a replica of one partition. How one is opened on a copy of its disk, a protocol adds."""

    _amid_begin = LOCAL_LOG_STARTS

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new brokers."""
        self._lasting: dict[int, tuple[int, int, int]] = {}
        """By broker: how often its disk had changed, high watermark and what is synced, when it was looked at last."""
        self._remains: SegmentReader[Row] = SegmentReader(PARTITION, _row, torn=True)
        self._before: dict[int, Before] = {}
        """By broker, its log as copies began to be taken in the midst of this event."""
        return super().reset(constants, seed)

    def _is_drawn(self) -> bool:
        return self._copy_seed % _SELDOM == 0

    @abstractmethod
    def _opened_on(self, node: int, files: SimulatedFiles) -> Any:
        """A broker on a copy of a disk."""

    def step(self, event: Event) -> StepResult:
        """One event."""
        self._before.clear()
        return super().step(event)

    def _begins_amid(self, node: int) -> None:
        replica = self.nodes[node].partitions.get(PARTITION) if node in self.nodes else None  # type: ignore[attr-defined]
        if replica is not None:
            rows = rows_of(self.store.files(node), str(PARTITION), self._remains.decode)
            self._before[node] = Before.of(replica.log, rows)

    def _look_for_losses(self, node: int) -> None:
        """After an event of a broker that is up. Raises NotFound."""
        files, replica = self.store.files(node), self.nodes[node].partitions.get(PARTITION)  # type: ignore[attr-defined]
        if not isinstance(files, SimulatedFiles) or node in self._failed:
            return
        if replica is None or replica.log.offline is not None:
            return
        if node in self._before:
            self._look_amid_event(node, replica, files)
        if not self._is_drawn():
            return
        state = replica.state()
        looked = files.changes, state.high_watermark, state.synced
        if self._lasting.get(node) == looked:
            return
        self._lasting[node] = looked
        check_stored(files, PARTITION, state.epochs, state.log_start, state.synced)
        copy, rows = copy_of(files, self._copy_seed), rows_of(files, str(PARTITION), self._remains.decode)
        check_reads(replica.log, {row[0]: row for row in rows}, self._remains.decode)
        stamps = [(offset, cast(Any, content)[2]) for offset, _, content in rows]
        check_times(self._parts.offset_of, replica.log, stamps, state.high_watermark)
        begin = replica.log.local_start

        def check(has: PartitionState, rows: Sequence[Row], found: Partition | None, there: Sequence[Row]) -> None:
            starts = begin, None if found is None else found.log.local_start
            check_lasting(has, rows, None if found is None else found.state(), there, starts)

        if is_damaged(self._copy_seed):
            on = partial(self._replica_on, node)
            holes, decode = replica.log.config.compacted, self._remains.decode
            check_on_damaged(copy, PARTITION, self._copy_seed, state, rows, on, decode, check, begin=begin, holes=holes)
            return
        found, copy = self._started_on(node, copy, self._copy_seed)
        check(state, rows, found, rows_of(copy, str(PARTITION), self._remains.decode))
        assert found is not None
        check_producers(replica, found)

    def _look_amid_event(self, node: int, replica: Partition, files: SimulatedFiles) -> None:
        """A loss of power in the midst would have left what was before, or what is after."""
        before, decode = self._before[node], self._remains.decode
        rows = rows_of(files, str(PARTITION), decode)
        after = Before.of(replica.log, rows)
        for number, left in enumerate(self._amid(node)):
            found, copy = self._started_on(node, left, self._copy_seed + number)
            if found is None:
                raise NotFound("after a loss of power in the midst there would be no replica")
            there = Before.of(found.log, rows_of(copy, str(PARTITION), decode))
            check_amid(before, after, there)
            if len({(each.log_start, each.end) for each in (before, after, there)}) == 1:
                check_producers(replica, found)

    def _started_on(self, node: int, files: SimulatedFiles, seed: int) -> tuple[Partition | None, SimulatedFiles]:
        """A replica on a copy of a disk, and the disk."""
        broker, files = started(partial(self._opened_on, node), files, plan_of(seed), folders_of)
        return cast("Partition | None", broker.partitions.get(PARTITION)), files

    def _replica_on(self, node: int, files: SimulatedFiles) -> Partition | None:
        return cast("Partition | None", self._opened_on(node, files).partitions.get(PARTITION))


def _row(record: StoredRecord) -> Row:
    return record.offset, record.leader_epoch, (record.key, record.value, record.timestamp, record.headers)


def check_lasting(
    state: PartitionState,
    rows: Sequence[Row],
    found: PartitionState | None,
    there: Sequence[Row],
    starts: tuple[int, int | None],
) -> None:
    """Hold what would be found of a replica against what it goes by. Raises NotFound.

    ``starts``: where the log begins on this disk, now and then.
    """
    found = check_kept(state, rows, found, there)
    if starts[0] != starts[1]:
        raise NotFound(f"after a loss of power the local log start would be {starts[1]}, it is {starts[0]}")
    epochs, would = ([each for each in of.epochs if each[1] < found.end] for of in (state, found))
    if epochs != would:
        raise NotFound(f"after a loss of power the leader epochs would be {would}, they are {epochs}")


def check_amid(before: Before, after: Before, found: Before) -> None:
    """Hold what would be found in the midst of an event against the log before it and after it. Raises NotFound.

    A log that is begun anew behind what is in remote storage may be empty then, and begin at 0.
    """
    if found[:3] == (0, 0, 0) and after.begin == after.end:
        return
    least = min(before.synced, after.synced)
    if found.end < least and max(before.begin, after.begin) < least:
        raise NotFound(f"after a loss of power in the midst the log would end at {found.end}, below {least}")
    starts = before.log_start, after.log_start
    if not min(starts) <= found.log_start <= max(starts):
        what = f"begin at {found.log_start}: it began at {before.log_start}, and begins at {after.log_start}"
        raise NotFound(f"after a loss of power in the midst the log would {what}")
    told = f"after a loss of power in the midst the log would be {list(found.rows)} from {found.begin} to {found.end}"
    if found.begin not in (before.begin, after.begin):
        raise NotFound(f"{told}: on this disk it began at {before.begin}, and begins at {after.begin}")
    there = [row for row in found.rows if found.begin <= row[0] < found.end]
    could_be = before.rows, after.rows, joined(before.rows, after.rows)
    if not any(there == [row for row in rows if found.begin <= row[0] < found.end] for rows in could_be):
        raise NotFound(f"{told}, which it never was")


def check_producers(replica: Partition, found: Partition) -> None:
    """What would be known of producers is what is, as far as the log would go. Raises NotFound."""
    end = min(replica.log.end, found.log.end)
    known, would = (_known_of_producers(of, end) for of in (replica, found))
    for producer in sorted({*known, *would}):
        if known.get(producer) != would.get(producer):
            wrong, right = (_told(of.get(producer)) for of in (would, known))
            told = f"{wrong} would be known of producer {producer} below offset {end}, and not {right}"
            raise NotFound(f"after a loss of power {told}")


def _known_of_producers(of: Partition, end: int) -> dict[int, ProducerEntry]:
    producers = type(of.producers)()
    producers.catch_up(of.log, end)
    return {each.producer_id: each for each in decode_producers(producers.snapshot())}


def _told(entry: ProducerEntry | None) -> str:
    if entry is None:
        return "nothing"
    return f"sequence {entry.last_sequence} of epoch {entry.epoch} at offset {entry.last_offset}"
