"""What brokers and the coordinator would find after a loss of power, held against what they have (``found.py``)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import cast

from ....impl.files.simulated import SimulatedFiles
from ....impl.offsets import OFFSETS_TOPIC, GroupCoordinator
from ....impl.replica.broker import Broker
from ....impl.replica.config import BrokerConfig
from ....impl.replica.partition import Partition, PartitionState
from ....impl.wire.messages import TopicPartition
from ...adapters.cluster import PARTITION
from ...adapters.stores import SegmentReader
from ...checks.crash_image import (
    CopiedNodes,
    NotFound,
    Nowhere,
    Row,
    check_after,
    check_amid,
    check_awake,
    check_reads,
    check_replica,
    check_stored,
    copy_of,
    opened,
    rows_of,
)
from ...checks.file_inventory import AccountedNodes, folders_of
from ...checks.recovery import plan_of, started
from ...checks.timers import Timed, TimedNodes, waits_of_broker
from ...faults.corrupt_file import check_on_damaged, damaged, is_damaged, opened_damaged
from ...simulation.system import StepResult


class LastingPartition(CopiedNodes, AccountedNodes, TimedNodes):
    """Brokers of one partition, and at the node ``coordinator`` who keeps the commits of ``partitions``."""

    coordinator: int
    partitions: Collection[TopicPartition]
    _config: BrokerConfig
    _coordinators: BrokerConfig
    _reader: SegmentReader[Row]

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes."""
        self._lasting: dict[int, tuple[tuple[int, int, int], PartitionState, tuple[Row, ...]]] = {}
        """By node that is up: how often its disk had changed, high watermark and what is synced, and all that it had,
        when it was looked at last."""
        self._kept: dict[int, int] = {}
        """The same of the coordinator: how often its disk had changed."""
        return super().reset(constants, seed)

    def _timed(self, node: int) -> Iterator[Timed]:
        config = self._coordinators if node == self.coordinator else self._config
        yield Timed(cast(Broker, self.nodes[node])._runtime.timers, waits_of_broker(config))

    @abstractmethod
    def _state(self, node: int) -> PartitionState | None:
        """What a replica goes by."""

    def _stop(self, node: int, seed: int) -> None:
        super()._stop(node, seed)
        self._lasting.pop(node, None)

    def _look_for_losses(self, node: int) -> None:
        """After an event of a node that is up. Raises NotFound."""
        files = self.store.files(node)
        if not isinstance(files, SimulatedFiles):
            return
        if node == self.coordinator:
            if self._is_drawn() and self._kept.get(node) != files.changes:
                self._kept[node] = files.changes
                self._look_for_commits(node, files)
            return
        self._account_broker(node)
        state = self._state(node)
        if state is None:
            return
        check_awake(node, self.nodes[node], PARTITION)
        last = self._lasting.get(node)
        looked = files.changes, state.high_watermark, state.synced
        if last is not None and last[0] == looked:
            return
        rows = rows_of(files, str(PARTITION), self._reader.decode)
        self._lasting[node] = looked, state, rows
        if last is not None:
            for number, copy in enumerate(self._amid(node)):
                found, there = self._found_on(node, copy, self._copy_seed + number)
                check_amid(last[1], state, last[2], rows, found, there)
        if self._is_drawn():
            check_stored(files, PARTITION, state.epochs, state.log_start, state.synced)
            log = cast(Broker, self.nodes[node]).partitions[PARTITION].log
            if log.offline is None:
                check_reads(log, {row[0]: row for row in rows}, self._reader.decode)
            if is_damaged(self._copy_seed):
                copy, on = copy_of(files, self._copy_seed), partial(self._replica_on, node)
                seed, begin, decode = self._copy_seed, state.log_start, self._reader.decode
                check_on_damaged(copy, PARTITION, seed, state, rows, on, decode, check_replica, begin=begin)
                return
            found, there = self._found_on(node, copy_of(files, self._copy_seed), self._copy_seed)
            check_after(state, rows, found, there)

    def _found_on(self, node: int, copy: SimulatedFiles, seed: int) -> tuple[PartitionState | None, tuple[Row, ...]]:
        broker, copy = started(partial(self._open_on, node), copy, plan_of(seed), folders_of)
        partition = broker.partitions.get(PARTITION)
        return None if partition is None else partition.state(), rows_of(copy, str(PARTITION), self._reader.decode)

    def _replica_on(self, node: int, files: SimulatedFiles) -> Partition | None:
        return self._open_on(node, files).partitions.get(PARTITION)

    def _open_on(self, node: int, files: SimulatedFiles) -> Broker:
        config = self._coordinators if node == self.coordinator else self._config
        return self._parts.broker(node, files, Nowhere(), self.clock.at(node), config)

    def _look_for_commits(self, node: int, files: SimulatedFiles) -> None:
        has = cast(GroupCoordinator, cast(Broker, self.nodes[node]).coordinator).committed

        def coordinator_on(files: SimulatedFiles) -> GroupCoordinator:
            log = self._open_on(node, files).directory.log(OFFSETS_TOPIC, 0)
            return self._parts.coordinator(log, self.clock.at(node), known=self.partitions.__contains__)

        copy = copy_of(files, self._copy_seed)
        if is_damaged(self._copy_seed):
            damage = damaged(copy, TopicPartition(OFFSETS_TOPIC, 0), self._copy_seed, 0)
            if damage is None:
                return
            coordinator, _ = opened_damaged(coordinator_on, copy, damage)
            if damage.loses is None and coordinator is not None and coordinator.committed != has:
                raise NotFound(f"{damage} {coordinator.committed} would be committed, it is {has}")
            return
        found = opened(coordinator_on, copy).committed
        if found != has:
            raise NotFound(f"after a loss of power {found} would be committed, it is {has}")


def in_order(rows: Iterable[Row]) -> list[Row]:
    """The records of a log up to the first whose offset does not follow.

    A batch that a loss of power has torn may have lost its base offset, which no CRC covers: nobody wrote what is
    read there.
    """
    found: list[Row] = []
    for row in rows:
        if found and row[0] <= found[-1][0]:
            break
        found.append(row)
    return found
