"""What the model is shown of freely running brokers: a cell for each thing that it has a variable for.

Whose process has ended shows nothing, and whose replica is of a topic that is deleted what a broker shows that has none
(``topic_deletion.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from ....impl.log.topic_id import read_topic_id
from ....impl.replica.partition import PartitionState
from ....impl.wire.messages import NO_LEADER, NO_TOPIC_ID
from ....traces.format import Value
from ...adapters.cluster import shown_leader, shown_set
from .delete_records_responses import Deletions
from .response_rules import Row, WrongAnswer
from .responses import Held
from .stored_state import StoredNodes
from .system_controller import PARTITION

_NO_RECORD: Final = -1


class ShownNodes(StoredNodes):
    """Brokers that are looked at."""

    _anew: bool
    """Whether the topic has gone in this event."""
    _before: PartitionState | None
    """What the replica at which an event happens was like before it."""
    _cells: dict[int, dict[str, Value]]
    _asked_isr: dict[int, tuple[int, int, frozenset[int]]]
    """By leader: the leader epoch and the partition epoch that it asked by last, and the ISR that it asked for."""
    _requests: dict[int, tuple[int, frozenset[int]]]
    """Leader and ISR of each leader epoch, as whoever is told of it now is told."""
    _kept: dict[int, tuple[int, int]]
    """By node: the high watermark and the end of what was synced when a timer stored them last."""
    _closed: dict[int, tuple[int, int, int]]
    """By node that was shut down in order: the leader epoch, the end and the high watermark that it had."""
    _held: Held
    _deletions: Deletions

    def _look(self, node: int) -> None:
        """Read a node's log past the node, and take its cells anew."""
        files, state = self.store.files(node), None if node in self.down else self._state(node)
        seen = self.arrived, self._before, state
        records: tuple[Row, ...] = ()
        if not self._topics.is_stray(self._topic_at(node)):
            records = self._deleted.rows(node, files, self._reader.read(files), self._records.get(node, ()), *seen)
            self._deleted.took(node, *seen, records)
        self._records[node] = records
        for _, _, payload in records:
            if payload not in self._ids:
                self._ids[payload] = len(self._ids)
        if node in self.down:
            self._cells.pop(node, None)
        else:
            self._cells[node] = self._deleted.shown(node, self._cells_of(node))

    def _topic_at(self, node: int) -> UUID:
        """Of which topic a broker's replica is, as its disk has it."""
        if not self._topics.deletes:
            return NO_TOPIC_ID
        stored = read_topic_id(self.store.files(node), str(PARTITION)) or NO_TOPIC_ID
        replica = None if node in self.down else self._replica(node)
        if replica is not None and replica.topic_id != stored:
            raise WrongAnswer(f"broker {node} has a replica of topic {replica.topic_id}, and its disk has {stored}")
        return stored

    def _begin_topic(self) -> None:
        """The topic is gone. Of the next one of its name nothing is there yet, and nobody was told of it."""
        self._anew = True
        self._topics.gone([flight.envelope for flight in self.network.in_flight()])
        self._first_batch = len(self.producers.batches)
        self.producers.begin_anew()
        self._deleted.begin_anew()
        self._deletions = self._deletions.anew()
        self._stored = -1
        self._kept = dict.fromkeys(self.replicas, (0, 0))
        for known in (self._ids, self._acknowledged, self._read, self._asked_isr, self._requests, self._closed):
            known.clear()
        self._looked.clear()
        for node in self.replicas:
            self._held.ended(node, process=False)
            self._look(node)

    def _cells_of(self, node: int) -> dict[str, Value]:
        constants, state = self.constants, self._state(node)
        cells: dict[str, Value] = {}
        leads = state is not None and state.role.value == "leader"
        follows = state is not None and state.role.value == "follower"
        members = state.isr if leads and state is not None else frozenset[int]()
        maximal = state.maximal_isr if leads and state is not None else frozenset[int]()
        cells[f"leo[{node}]"] = 0 if state is None else state.end
        cells[f"hw[{node}]"] = 0 if state is None else state.high_watermark
        cells[f"synced[{node}]"] = 0 if state is None else state.synced
        cells[f"leader_epoch[{node}]"] = -1 if state is None else state.leader_epoch
        cells[f"leader[{node}]"] = shown_leader(state.leader) if state is not None and (leads or follows) else None
        cells[f"isr[{node}]"] = shown_set(members)
        cells[f"maximal_isr[{node}]"] = shown_set(maximal)
        cells[f"asked_isr[{node}]"] = shown_set(self._asked(node, state) if state is not None and leads else members)
        told = self._deleted.told(node, self.arrived, state) if state is not None and leads else {}
        for follower in self.replicas:
            cells[f"remote_leo[{node}][{follower}]"] = told.get(follower, -1)
        records = {offset: (epoch, payload) for offset, epoch, payload in self._records[node]}
        for offset in range(constants["log_size"]):
            epoch, payload = records.get(offset, (-1, None))
            cells[f"record_id[{node}][{offset}]"] = _NO_RECORD if payload is None else self._ids[payload]
            cells[f"record_epoch[{node}][{offset}]"] = epoch
        return cells

    def _asked(self, node: int, state: PartitionState) -> frozenset[int]:
        """The ISR that a leader has asked for since it last learned of one; that one where it has asked for none."""
        epoch, version, isr = self._asked_isr.get(node, (-1, -1, state.isr))
        return isr if (epoch, version) == (state.leader_epoch, state.partition_epoch) else state.isr

    def observe(self) -> Mapping[str, Value]:
        """Everything that the model has, but of nodes that are down."""
        quorum = self.quorum
        cells: dict[str, Value] = {
            "next_record_id": len(self._ids),
            "next_leader_epoch": quorum.leader_epoch + 1,
            "quorum_leader_epoch": quorum.leader_epoch,
            "quorum_leader": shown_leader(quorum.leader),
            "quorum_isr": shown_set(quorum.isr),
        }
        for epoch in range(self.constants["max_leader_epoch"] + 1):
            # An epoch that began and ended in one decision was told to nobody.
            if epoch in self._requests or epoch > quorum.leader_epoch:
                leader, isr = self._requests.get(epoch, (NO_LEADER, frozenset()))
                cells[f"request_leader[{epoch}]"] = shown_leader(leader)
                cells[f"request_isr[{epoch}]"] = shown_set(isr)
        for record in range(self.constants["max_records"]):
            cells[f"acknowledged[{record}]"] = self._acknowledged.get(record, -1)
        for offset in range(self.constants["log_size"]):
            cells[f"read[{offset}]"] = self._read.get(offset, _NO_RECORD)
        for node in self.replicas:
            cells |= self._cells.get(node, {})
        return cells
