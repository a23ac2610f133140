"""The nodes of a quorum on a network whose messages go only when they are told to, and what can be seen of them.

Snapshots and records are read past the nodes, from their files; what a node itself says of them must fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, cast

from ....impl.files.interface import Files, read_file
from ....impl.net.faults import Flight
from ....impl.quorum.config import CLUSTER_METADATA
from ....impl.quorum.node import NodeState, QuorumNode
from ....impl.quorum.state_file import NO_VOTE, QUORUM_STATE
from ....impl.quorum.timers import ELECTION, FETCH
from ....impl.replica.timers import Key
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import NO_EPOCH, NO_LEADER, Envelope
from ....impl.wire.quorum import (
    BeginQuorumEpochRequest,
    QuorumFetchResponse,
    QuorumRequest,
    QuorumResponse,
    VoteRequest,
)
from ....traces.format import Value
from ...adapters.carrier import LIFE, Carrier
from ...adapters.parts import Parts
from ...adapters.stores import SegmentReader, Store
from .counting import CHUNK, CountingMachine, records_in, size_of

PARTITION: Final = CLUSTER_METADATA
_FOLDER: Final = str(PARTITION)
_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotSeen(NamedTuple):
    """A snapshot: its size in chunks, the epoch of its id, and how many records a reader finds."""

    size: int
    epoch: int
    records: int


_NO_SNAPSHOT: Final = SnapshotSeen(0, -1, -1)
_REMEMBERED: Final = 4_096
"""So many names of cells are kept."""

Checkpoints: TypeAlias = tuple[tuple[int, SnapshotSeen], ...]


def checkpoints_in(files: Files) -> Checkpoints:
    """The snapshots whose files are on a disk, each behind its last offset."""
    found = []
    for name in files.list(_FOLDER):
        match = _NAME.fullmatch(name)
        if match:
            data = read_file(files, f"{_FOLDER}/{name}")
            found.append((int(match[1]) - 1, SnapshotSeen(size_of(data), int(match[2]), records_in(data))))
    return tuple(found)


def snapshots_in(
    files: Files, node: QuorumNode, checkpoints: Callable[[Files], Checkpoints] = checkpoints_in
) -> dict[int, SnapshotSeen]:
    """By last offset, what there is of a node's snapshots: the files, and the one that is being fetched.

    One that the node does not know, or knows and has not got, has size -1. ``checkpoints`` reads the files.
    """
    replica = node.replica
    known = {(each.end_offset, each.epoch) for each in replica.snapshots.ids}
    found: dict[int, SnapshotSeen] = {}
    for last, seen in checkpoints(files):
        found[last] = seen if (last + 1, seen.epoch) in known else seen._replace(size=-1)
        known.discard((last + 1, seen.epoch))
    found |= {end - 1: SnapshotSeen(-1, epoch, 0) for end, epoch in known}
    partial = replica.fetching
    if partial is not None and partial.size:
        data = partial.file.pread(0, partial.size)
        found[partial.id.end_offset - 1] = SnapshotSeen(size_of(data), partial.id.epoch, records_in(data, partial=True))
    return found


def ballot_of(files: Files, node: int) -> dict[str, Value]:
    """The cells that a node's state file tells of while its process is down: the epoch, and the vote in it.

    Nothing where it cannot be read: whoever starts says so.
    """
    path = f"{_FOLDER}/{QUORUM_STATE}"
    epoch, voted = NO_EPOCH, NO_VOTE
    if files.exists(path):
        try:
            told = json.loads(read_file(files, path))
            epoch, voted = int(told["leaderEpoch"]), int(told["votedId"])
        except (ValueError, TypeError, KeyError):
            return {}
    return {f"leader_epoch[{node}]": epoch, f"voted[{node}]": None if voted == NO_VOTE else voted}


def cells_of(
    node: QuorumNode,
    replicas: Sequence[int],
    offsets: Sequence[int],
    log: Mapping[int, int],
    found: Mapping[int, SnapshotSeen],
) -> dict[str, Value]:
    """The cells of a node that is up; ``log``: the epoch of each record, ``found``: its snapshots."""
    number = node.address
    cells: dict[str, Value] = {}
    state, replica, role = node.state(), node.replica, cast(Any, node.role)
    standing, leads = state.role == "candidate", state.role == "leader"
    cells[f"leader_epoch[{number}]"] = state.epoch
    cells[f"leader[{number}]"] = None if state.leader < 0 else state.leader
    cells[f"voted[{number}]"] = None if state.voted < 0 else state.voted
    cells[f"supporters[{number}]"] = tuple(sorted(role.granted)) if standing else ()
    cells[f"lbo[{number}]"] = state.begin
    cells[f"leo[{number}]"] = state.end
    cells[f"hw[{number}]"] = state.high_watermark
    cells[f"synced[{number}]"] = min(replica.log.recovery_point, state.end)
    for other in replicas:
        cells[f"counted[{number}][{other}]"] = role._counted.get(other, -1) if leads else -1
    wanted = state.fetching
    chunks, rest = divmod(state.position, CHUNK)
    cells[f"fetching[{number}]"] = -1 if wanted is None else wanted.end_offset - 1
    cells[f"fetching_epoch[{number}]"] = -1 if wanted is None else wanted.epoch
    cells[f"position[{number}]"] = -1 if wanted is None else state.position if rest else chunks
    for offset in sorted({*offsets, *found}):
        names = _snapshot_cells(number, offset)
        cells.update(zip(names, found.get(offset, _NO_SNAPSHOT), strict=True))
    for offset in sorted({*offsets, *log}):
        cells[_record_cell(number, offset)] = log.get(offset, -1)
    return cells


@lru_cache(_REMEMBERED)
def _snapshot_cells(node: int, offset: int) -> tuple[str, ...]:
    return tuple(f"snapshot_{name}[{node}][{offset}]" for name in SnapshotSeen._fields)


@lru_cache(_REMEMBERED)
def _record_cell(node: int, offset: int) -> str:
    return f"record_epoch[{node}][{offset}]"


class Quorum(Carrier[QuorumRequest, QuorumResponse]):
    """Nodes ``0`` to ``replicas - 1``, the last ``observers`` of which are no voters.

    Segments are small enough in every other run that each batch has its own.
    """

    def __init__(
        self, parts: Parts, store: Store, replicas: int, observers: int, minimum_records: int, seed: int
    ) -> None:
        super().__init__(seed)
        self._parts = parts
        self._store = store
        self.replicas = range(replicas)
        self.voters = tuple(range(replicas - observers))
        self._config = parts.quorum_config(
            self.voters,
            log=parts.log_config(segment_bytes=1 << 20 if seed % 2 else 100),
            snapshot_minimum_records=minimum_records,
            max_replication_lag_ms=0,
            fetch_max_bytes=1,
            snapshot_max_bytes=CHUNK,
            leader_change_record=False,
        )
        self.nodes: dict[int, QuorumNode] = {}
        self.machines: dict[int, CountingMachine] = {}
        self.own: set[int] = set()
        """Who may have records of its own that it has not synced, and need not have."""
        self._lives = 0
        self._asked: dict[tuple[int, int, int], Envelope] = {}
        """The Vote request of a candidate in an epoch to a voter: it may arrive any time later."""
        self._reader = SegmentReader(PARTITION, lambda record: (record.offset, record.leader_epoch))
        for node in self.replicas:
            self.start(node)

    # -- processes --------------------------------------------------------------------------------------------------

    def start(self, node: int) -> QuorumNode:
        """Start a node on the files that are there."""
        self._lives += 1
        machine = self.machines[node] = CountingMachine()
        made = self._parts.quorum_node(
            node,
            self._store.files(node),
            self.network,
            self.clock.at(node),
            machine,
            self._config,
            first_correlation=self._lives * LIFE,
        )
        self.nodes[node] = made
        self.network.attach(made)
        return made

    def crash(self, node: int, seed: int) -> QuorumNode:
        """Kill a node, crash its disk, and start it again."""
        self.write_back(node)
        self.network.detach(node)
        self._store.crash(node, seed)
        return self.start(node)

    def write_back(self, node: int) -> None:
        """Let the operating system write what a node has appended as a leader, and told nobody of.

        In the model no record is lost in a crash. What a node has told others of, or counted as committed, it has
        to sync itself.
        """
        log = self.nodes[node].replica.log
        if node in self.own and log.recovery_point >= self.state(node).high_watermark:
            log.flush()

    # -- looking ----------------------------------------------------------------------------------------------------

    def state(self, node: int) -> NodeState:
        """What a node goes by."""
        return self.nodes[node].state()

    @property
    def newest_epoch(self) -> int:
        """The largest epoch that any node is in."""
        return max(node.epoch for node in self.nodes.values())

    @property
    def candidate(self) -> int | None:
        """Who stands in the newest epoch."""
        newest = self.newest_epoch
        standing = (n for n in self.replicas if self.nodes[n].epoch == newest and self.state(n).role == "candidate")
        return next(standing, None)

    def votes(self, candidate: int) -> frozenset[int]:
        """Who has voted for a candidate, as it knows."""
        return frozenset(cast(Any, self.nodes[candidate].role).granted)

    def leads(self, node: int) -> bool:
        """Whether it presumes leadership."""
        return self.nodes[node].is_leader and self.nodes[node].failure is None

    def follows(self, node: int, leader: int) -> bool:
        """Whether it fetches from this leader."""
        state = self.state(node)
        return state.role == "follower" and state.leader == leader

    def record_epochs(self, node: int) -> tuple[tuple[int, int], ...]:
        """Offset and epoch of every record in a node's segment files."""
        return self._reader.read(self._store.files(node))

    def snapshots(self, node: int) -> dict[int, SnapshotSeen]:
        """By last offset, what there is of a node's snapshots."""
        return snapshots_in(self._store.files(node), self.nodes[node])

    # -- messages ---------------------------------------------------------------------------------------------------

    def _notice(self, envelope: Envelope) -> None:
        body = envelope.body
        if isinstance(body, VoteRequest):
            self._asked[envelope.source, body.epoch, envelope.destination] = envelope

    def vote_request(self, candidate: int, voter: int) -> Flight | None:
        """The candidate's request for this vote, on its way since it stood; None where the way is cut."""
        envelope = self._asked.get((candidate, self.nodes[candidate].epoch, voter))
        if envelope is None:
            return None
        self.network.send(envelope)
        return self.sent(candidate, voter)

    def fire(self, node: int, timer: Key) -> None:
        """Let a timer run off."""
        self.nodes[node].fire(timer)

    def collect(self) -> None:
        """Take off the network what nobody has asked to go."""
        for flight in self.network.in_flight():
            if flight not in self.late:
                self.network.drop(flight)

    def begin_request(self, leader: int, node: int, epoch: int) -> Flight | None:
        """BeginQuorumEpoch, or what an observer hears of an epoch by: the answer of a voter that it has asked."""
        if node in self.voters:
            return self.ask(leader, node, BeginQuorumEpochRequest(PARTITION, epoch, leader))
        if self.network.is_cut(leader, node):
            return None
        for _ in self.replicas:  # it asks the voters one after the other
            self.fire(node, FETCH)
            for flight in self.network.in_flight(source=node):
                if flight not in self.late:
                    asked = flight.envelope
                    self.network.drop(flight)
                    told = QuorumFetchResponse(ErrorCode.FENCED_REPLICA, epoch, leader)
                    self.network.send(Envelope(asked.destination, node, asked.correlation, told))
                    return self.sent(asked.destination, node)
            if self.state(node).role == "follower":
                self.fire(node, ELECTION)  # whom it follows cannot be reached: it looks for another leader
        return None

    def introduce(self, leader: int, node: int) -> None:
        """Let a node that is in a leader's epoch, and has not heard who leads it, hear of it."""
        theirs, mine = self.state(leader), self.state(node)
        if theirs.role == "leader" and mine.epoch == theirs.epoch and mine.leader == NO_LEADER and leader != node:
            self.carry(self.begin_request(leader, node, theirs.epoch))
