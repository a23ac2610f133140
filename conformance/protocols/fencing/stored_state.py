"""What freely running brokers keep on their disks, held against what they go by.

A checkpoint that is behind brings back, with the next crash, what is over; and what a broker says it has must be there
after a loss of power, whenever that comes (``checks/crash_image.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ....impl.files.simulated import SimulatedFiles
from ....impl.log.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets
from ....impl.replica.broker import Broker
from ....impl.replica.partition import Partition, PartitionState
from ...checks.crash_image import (
    Nowhere,
    check_after,
    check_amid,
    check_reads,
    check_replica,
    check_stored,
    check_times,
    copy_of,
    rows_of,
)
from ...checks.file_inventory import folders_of
from ...checks.recovery import plan_of, started
from ...faults.corrupt_file import check_on_damaged, is_damaged
from .client_ops import ClientNodes
from .producers import timestamp_of
from .response_rules import Row, WrongAnswer
from .system_controller import PARTITION


class StoredNodes(ClientNodes):
    """Brokers whose disks are looked at."""

    def _begin_stored(self) -> None:
        self._looked: dict[int, tuple[int, int, int]] = {}
        """By node, how often its disk had changed, and what it had, when it was last looked at for losses."""

    def _look_at_checkpoints(self, node: int, before: PartitionState) -> None:
        """Where a high watermark or an end has fallen, what is stored has too: a crash would bring it back."""
        state, files = self._state(node), self.store.files(node)
        if state is None:
            return
        for name, was, now in (
            (HIGH_WATERMARKS, before.high_watermark, state.high_watermark),
            (RECOVERY_POINTS, before.end, state.end),
        ):
            stored = read_offsets(files, name, "").get(PARTITION, 0) if now < was else now
            if stored > now:
                raise WrongAnswer(f"{name} has {stored} still, and it has fallen to {now}")

    def _look_for_losses(self, node: int, before: PartitionState, rows: Sequence[Row]) -> None:
        """Whether a loss of power, now or amid the event, would leave what the replica says it has, or had."""
        state, files = self._state(node), self.store.files(node)
        if not isinstance(files, SimulatedFiles):
            return
        decode = self._reader.decode
        for number, left in enumerate(self._amid(node)):
            found, copy = self._opened(node, left, self._copy_seed + number)
            if state is None or state.topic_id != before.topic_id:
                continue  # deleted, and that again may or may not be so
            there = rows_of(copy, str(PARTITION), decode)
            check_amid(before, state, rows, self._records[node], found, there)
        if state is None:
            return
        looked = files.changes, state.high_watermark, state.synced
        if self._looked.get(node) != looked and self._is_drawn():
            self._looked[node] = looked
            check_stored(files, PARTITION, state.epochs, state.log_start, state.synced)
            log = self.nodes[node].partitions[PARTITION].log  # type: ignore[attr-defined]
            if log.offline is None:
                check_reads(log, {row[0]: row for row in self._records[node]}, decode)
                stamps = [(offset, timestamp_of(payload)) for offset, _, payload in self._records[node]]
                check_times(self._parts.offset_of, log, stamps, state.high_watermark)
            copy = copy_of(files, self._copy_seed)
            if is_damaged(self._copy_seed):
                rows, on = self._records[node], partial(self._on, node)
                seed, begin = self._copy_seed, state.log_start
                check_on_damaged(copy, PARTITION, seed, state, rows, on, decode, check_replica, begin=begin)
                return
            found, copy = self._opened(node, copy, self._copy_seed)
            check_after(state, self._records[node], found, rows_of(copy, str(PARTITION), decode))

    def _opened(self, node: int, files: SimulatedFiles, seed: int) -> tuple[PartitionState | None, SimulatedFiles]:
        """What a broker has on a copy of its disk, and the disk."""
        broker, files = started(partial(self._broker_on, node), files, plan_of(seed), folders_of)
        partition = broker.partitions.get(PARTITION)
        return None if partition is None else partition.state(), files

    def _on(self, node: int, files: SimulatedFiles) -> Partition | None:
        return self._broker_on(node, files).partitions.get(PARTITION)

    def _broker_on(self, node: int, files: SimulatedFiles) -> Broker:
        return self._parts.broker(node, files, Nowhere(), self.clock.at(node), self._config)
