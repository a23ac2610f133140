"""What a loss of power would leave to brokers whose logs have holes, or begin in remote storage.

``found.py`` has how it is looked at. Their leader epoch caches cannot be held to the records on a disk: records are
cleaned away, or are not there. They are held to what the running broker goes by.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from ...impl.files.simulated import SimulatedFiles
from ...impl.log.batch import read_batches
from ...impl.replica.partition import PartitionState
from ..free.system import Happened
from .accounted import AccountedNodes
from .cluster import PARTITION
from .found import CopiedNodes, NotFound, check_kept, check_stored, copy_of, opened, rows_of

_SELDOM: Final = 4
"""After one of so many events it is looked at what a loss of power would leave."""


class LastingBrokers(CopiedNodes, AccountedNodes):
    """Brokers with a replica of one partition. How one is opened on a copy of its disk, a protocol adds."""

    def reset(self, constants: Mapping[str, int], seed: int) -> Happened:
        """New disks, new brokers."""
        self._lasting: dict[int, tuple[int, int, int]] = {}
        """By broker: how often its disk had changed, high watermark and what is synced, when it was looked at last."""
        return super().reset(constants, seed)

    def _is_drawn(self) -> bool:
        return self._copy_seed % _SELDOM == 0

    def _opened_on(self, node: int, files: SimulatedFiles) -> Any:
        """A broker on a copy of a disk."""
        raise NotImplementedError

    def _look_for_losses(self, node: int) -> None:
        """After an event of a broker that is up. Raises NotFound."""
        files, replica = self.store.files(node), self.nodes[node].partitions.get(PARTITION)  # type: ignore[attr-defined]
        if not isinstance(files, SimulatedFiles) or node in self._failed or not self._is_drawn():
            return
        if replica is None or replica.log.offline is not None:
            return
        state = replica.state()
        looked = files.changes, state.high_watermark, state.synced
        if self._lasting.get(node) == looked:
            return
        self._lasting[node] = looked
        check_stored(files, PARTITION, state.epochs, state.log_start, state.synced)
        copy = copy_of(files, self._copy_seed)
        found = opened(partial(self._opened_on, node), copy).partitions.get(PARTITION)
        rows, there = (rows_of(each, str(PARTITION), decoded) for each in (files, copy))
        starts = replica.log.local_start, None if found is None else found.log.local_start
        check_lasting(state, rows, None if found is None else found.state(), there, starts)


def decoded(data: bytes) -> list[tuple[int, int, object]]:
    """The records of a segment: offset, leader epoch, and what they are."""
    records = (record for batch in read_batches(data) for record in batch.records())
    return [(each.offset, each.leader_epoch, (each.key, each.value, each.timestamp, each.headers)) for each in records]


def check_lasting(
    state: PartitionState,
    rows: tuple[tuple[int, int, object], ...],
    found: PartitionState | None,
    there: tuple[tuple[int, int, object], ...],
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
