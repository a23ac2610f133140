"""What is known of a whole quorum that runs freely, and what each node must hold by it: records, machines, snapshots.

Logs and snapshots are read past the nodes, from their files. What a node has applied must be what it knows to be
committed, and what its state machine and its snapshots hold must be what the records come to that clients have
appended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from ....impl.log.records import StoredRecord
from ....impl.quorum.node import QuorumNode
from ....impl.wire.errors import ErrorCode
from ....impl.wire.quorum import BeginQuorumEpochRequest, QuorumFetchResponse
from ...adapters.stores import OncePerChange, SegmentReader
from ...lockstep.adapter import Contradiction
from ...simulation.system import StepResult
from .appended import Appended, Content, State, content_of
from .durability import LastingNodes
from .machines import BothMachines, kept_in
from .quorum import PARTITION, checkpoints_in

_UNKNOWN: Final = -2
"""The epoch that is seen of a record that no client has appended."""


class WrongState(Contradiction):
    """What a node has applied is not what is committed in its log, or does not come to what its machine holds."""


class KnownQuorum(LastingNodes):
    """A quorum of which it is known who was elected, what is committed, and what clients were told."""

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes, and nothing is known."""
        self._machines: dict[int, BothMachines] = {}
        self._reader = SegmentReader(PARTITION, row_of)
        self._checkpoints = OncePerChange(checkpoints_in)
        self._kept = OncePerChange(lambda files: kept_in(files, str(PARTITION)))
        self._remains = SegmentReader(PARTITION, row_of, torn=True)
        self._appended = Appended(seed)
        self._holds: dict[int, tuple[int, State]] = {}
        """By node that is up, the end of what it has applied, and what that comes to."""
        self._batches: dict[tuple[int, int], int] = {}
        """How many records each batch has, by epoch and first offset."""
        self._awaited: list[tuple[int, int, int]] = []
        """Leader, epoch and offset of records that their clients do not know to be committed."""
        self._elected: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._told: dict[int, int] = {}
        self._logs: dict[int, dict[int, int]] = {node: {} for node in range(constants["replicas"])}
        """By node and offset, the epoch of each record, when the node was last up."""
        self._ends = dict.fromkeys(self._logs, 0)
        """The ends of these."""
        self._touched = set(range(constants["replicas"]))
        """The nodes that may have changed since they were looked at."""
        return super().reset(constants, seed)

    def node(self, number: int) -> QuorumNode:
        """One that is up."""
        return cast(QuorumNode, self.nodes[number])

    def _up(self) -> list[tuple[int, QuorumNode]]:
        nodes, down = cast(Mapping[int, QuorumNode], self.nodes), self.down
        return [(number, nodes[number]) for number in self.replicas if number not in down]

    # -- what is known of the whole ---------------------------------------------------------------------------------

    def _overhear(self, source: int, body: object) -> None:
        """What a node has told others has happened, though it may have lost power since."""
        if isinstance(body, BeginQuorumEpochRequest):
            self._elected[body.epoch] = source
        elif isinstance(body, QuorumFetchResponse) and body.error is ErrorCode.NONE:
            self._commit(source, body.high_watermark)

    def _commit(self, leader: int, high_watermark: int) -> None:
        for offset, epoch in self._logs[leader].items():
            if offset < high_watermark:
                self._committed.setdefault(offset, epoch)

    def _note(self) -> None:
        """Who leads, what is committed, and what clients are told."""
        for number, node in self._up():
            if number not in self._touched:
                continue
            replica = node.replica
            self._logs[number] = {
                offset: epoch if self._appended.is_appended(epoch, offset, content) else _UNKNOWN
                for offset, epoch, content in self._reader.read(self.store.files(number))
                if replica.begin <= offset < replica.end
            }
            self._ends[number] = max(self._logs[number], default=-1) + 1
            if node.is_leader:
                self._elected[node.epoch] = number
                self._commit(number, replica.high_watermark)
            self._read(number, node)
        waiting = self._awaited
        self._awaited = []
        for number, epoch, offset in waiting:
            if number not in self.down and self.node(number).is_leader and self.node(number).epoch == epoch:
                if offset < self.node(number).replica.high_watermark:
                    self._told.setdefault(offset, epoch)
                else:
                    self._awaited.append((number, epoch, offset))

    def _read(self, number: int, node: QuorumNode) -> None:
        """Whoever reads a node's state machine finds all that is committed, in whole batches, and each record once.

        While a snapshot is being fetched it has what was committed when that began.
        """
        replica, machine = node.replica, self._machines[number]
        applied, end, high_watermark = machine.counting.applied, replica.applied, replica.high_watermark
        more = self._batches.get((self._logs[number].get(end, -1), end), 1)
        wrong = replica.fetching is None and not end <= high_watermark < end + more
        if wrong or applied != list(range(end)):
            raise WrongState(f"{number} has applied the records {applied}, and its high watermark is {high_watermark}")
        self._compare(number, end, machine.real.values)
        known = replica.snapshots.ids
        for snapshot, kept in self._kept(self.store.files(number)):
            if snapshot in known and kept != self._appended.holds(snapshot.epoch, snapshot.end_offset):
                raise WrongState(f"{number} has a snapshot up to {snapshot.end_offset} that holds {kept}")

    def _compare(self, number: int, end: int, values: State) -> None:
        """What a state machine holds must be what the records below ``end`` come to."""
        holds = self._appended.holds(self._epoch_before(number, end), end)
        if holds is None and self._holds.get(number, (0, holds))[0] == end:
            # A full reset has taken the records, and their snapshot is not there yet.
            holds = self._holds[number][1]
        if holds is None or holds != values:
            raise WrongState(f"{number} has applied the records below {end} and holds {values}, not {holds}")
        self._holds[number] = end, holds

    def _epoch_before(self, number: int, end: int) -> int:
        """The epoch of the record below ``end`` at a node, by its log or a snapshot that ends there; -1: of none."""
        epoch = self._logs[number].get(end - 1)
        if epoch is None:
            files = self.store.files(number)
            epoch = next((seen.epoch for last, seen in self._checkpoints(files) if last == end - 1), -1)
        return epoch


def row_of(record: StoredRecord) -> tuple[int, int, Content]:
    """Offset, epoch and content of a record."""
    return record.offset, record.leader_epoch, content_of(record)
