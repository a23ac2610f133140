"""What freely running brokers keep on their disks, held against what they go by.

A checkpoint that is behind brings back, with the next crash, what is over; and what a broker says it has must be there
after a loss of power, whenever that comes (``adapters/found.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ....impl.files.simulated import SimulatedFiles
from ....impl.log.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets
from ....impl.replica.partition import Partition, PartitionState
from ...adapters.damaged import check_on_damaged, is_damaged
from ...adapters.found import (
    Nowhere,
    check_after,
    check_amid,
    check_reads,
    check_replica,
    check_stored,
    copy_of,
    opened,
    rows_of,
)
from .free_answers import Row, WrongAnswer
from .free_clients import ClientNodes
from .free_controller import PARTITION


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
        """Whether a loss of power, now or while the log was cut, would leave what the replica says it has."""
        state, files = self._state(node), self.store.files(node)
        if state is None or not isinstance(files, SimulatedFiles):
            return
        decode = self._reader.decode
        for copy in self._amid(node):
            found = opened(partial(self._opened, node), copy)
            there = rows_of(copy, str(PARTITION), decode)
            check_amid(before, state, rows, self._records[node], found, there)
        looked = files.changes, state.high_watermark, state.synced
        if self._looked.get(node) != looked and self._is_drawn():
            self._looked[node] = looked
            check_stored(files, PARTITION, state.epochs, state.log_start, state.synced)
            log = self.nodes[node].partitions[PARTITION].log  # type: ignore[attr-defined]
            if log.offline is None:
                check_reads(log, {row[0]: row for row in self._records[node]}, decode)
            copy = copy_of(files, self._copy_seed)
            if is_damaged(self._copy_seed):
                rows, on = self._records[node], partial(self._on, node)
                seed, begin = self._copy_seed, state.log_start
                check_on_damaged(copy, PARTITION, seed, state, rows, on, decode, check_replica, begin=begin)
                return
            found = opened(partial(self._opened, node), copy)
            check_after(state, self._records[node], found, rows_of(copy, str(PARTITION), decode))

    def _opened(self, node: int, files: SimulatedFiles) -> PartitionState | None:
        """What a broker has on a copy of its disk."""
        partition = self._on(node, files)
        return None if partition is None else partition.state()

    def _on(self, node: int, files: SimulatedFiles) -> Partition | None:
        return self._parts.broker(node, files, Nowhere(), self.clock.at(node), self._config).partitions.get(PARTITION)
