"""The quorum node: an ``Endpoint`` that holds one replica of a quorum's log, as a voter or an observer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..files.interface import Files
from ..log.directory import DataDirectory
from ..log.records import Record
from ..net.interface import Clock, Transport
from ..replica.runtime import STORAGE_FAILURES, Requests
from ..replica.timers import Key, Timers
from ..wire.errors import ErrorCode
from ..wire.messages import NO_LEADER, Envelope
from ..wire.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    QuorumResponse,
    VoteRequest,
    VoteResponse,
)
from .answers import (
    answer_begin,
    answer_delete_records,
    answer_end,
    answer_fetch,
    answer_fetch_snapshot,
    answer_vote,
    is_free_to_vote,
)
from .candidate import Candidate, Unattached
from .config import QuorumConfig
from .follower import Follower
from .leader import Leader
from .machine import StateMachine
from .metrics import QuorumMetrics
from .replica import Replica
from .snapshots import SnapshotId, SnapshotStore
from .state_file import Ballot, QuorumStateFile
from .timers import ADVANCE_BEGIN, BEGIN_EPOCH, CLEAN, ELECTION, FETCH, FETCH_SNAPSHOT, GENERATE
from .validate import RESPONSES, is_well_formed

Role = Unattached | Candidate | Follower | Leader


class NotLeader(Exception):
    """Only the leader appends. ``leader`` is who leads as far as this node knows, -1 for nobody."""

    def __init__(self, node: int, leader: int) -> None:
        super().__init__(f"node {node}: it does not lead; append at node {leader}, or wait for an election")
        self.leader = leader


class NodeState(NamedTuple):
    """What a node goes by. Offsets are exclusive ends; ``fetching`` and ``position`` are of an incomplete snapshot."""

    role: str
    epoch: int
    leader: int
    voted: int
    begin: int
    high_watermark: int
    end: int
    epochs: tuple[tuple[int, int], ...]
    snapshots: tuple[SnapshotId, ...]
    fetching: SnapshotId | None
    position: int
    applied: int


class QuorumNode:
    """One process. To crash it, throw it away (and what its disk had not synced); to restart, make another.

    ``seed`` decides how long it waits before it stands for election. ``first_correlation`` must rise from one process
    of a node to the next by more than the requests that it sends.
    Opening recovers log and snapshots. Raises ``LogError`` that names file and byte, and ``OSError``; no file is left
    open then, nor where a node goes offline.
    """

    def __init__(
        self,
        node_id: int,
        files: Files,
        transport: Transport,
        clock: Clock,
        machine: StateMachine,
        config: QuorumConfig,
        *,
        seed: int = 0,
        first_correlation: int = 0,
    ) -> None:
        self.config = config
        self.timers = Timers()
        self.requests = Requests(node_id, transport, first_correlation)
        self.metrics = QuorumMetrics()
        self.failure: str | None = None
        """Why the node is offline: its disk failed, or it was closed."""
        self._clock = clock
        self._chance = random.Random(f"{seed} {node_id}")  # noqa: S311 - repeatable on purpose
        self.directory = DataDirectory(files, node_id=node_id, cluster_id=config.cluster_id, config=config.log)
        try:
            self._open(files, machine)
        except BaseException:
            self.directory.abandon()
            raise
        self.role: Role = Unattached(self)
        self.set_timer(CLEAN, 0)

    def _open(self, files: Files, machine: StateMachine) -> None:
        log = self.directory.log(*self.config.partition)
        self._state = QuorumStateFile(files, log.folder, self.config.voters)
        self.replica = Replica(log, SnapshotStore(files, log.folder), machine, self._clock, self.metrics)
        known = max(self.replica.last_epoch, log.latest_epoch)
        if self.ballot.epoch < known:  # the state file was lost: no vote may be given in an epoch of the log
            self._state.store(Ballot(known + 1))

    # -- the endpoint -----------------------------------------------------------------------------------------------

    @property
    def address(self) -> int:
        """The node id."""
        return self.requests.node_id

    def deadline(self) -> int | None:
        """When the first timer runs off."""
        return self.timers.deadline()

    def wake(self) -> None:
        """Fire the timers that are due, each once."""
        for key in self.timers.due(self.now()):
            self.fire(key)

    def fire(self, key: Key) -> None:
        """Do now what a timer is for, whether it is due or not; nothing where the role has no use for it.

        Raises ``KeyError`` for what is no timer of a quorum node.
        """
        fired = _FIRES[key]
        if self.failure is None:
            with self._storage():
                fired(self)

    def receive(self, envelope: Envelope) -> None:
        """A message has arrived. A malformed request gets an error, anything else that is malformed no answer."""
        body: Any = envelope.body
        serve = _SERVES.get(type(body))
        if serve is not None:
            answer, refused = serve
            self.requests.respond(envelope, self._serve(body, answer, refused))
        elif isinstance(body, RESPONSES) and is_well_formed(body) and self.failure is None:
            with self._storage():
                self.requests.answered(envelope)

    def _serve(self, body: Any, answer: _Answer, refused: Callable[..., QuorumResponse]) -> QuorumResponse:
        if self.failure is None:
            if not is_well_formed(body):
                return refused(ErrorCode.INVALID_REQUEST, self.epoch, self.leader_id)
            if body.partition != self.config.partition:
                return refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, self.epoch, self.leader_id)
            with self._storage():
                return answer(self, body)
        # It names no epoch: its disk may already hold a later one than it knows of.
        return refused(ErrorCode.KAFKA_STORAGE_ERROR)

    @contextmanager
    def _storage(self) -> Iterator[None]:
        """A disk that fails, or holds what nobody wrote, takes the node offline."""
        try:
            yield
        except STORAGE_FAILURES as error:
            self.go_offline(str(error))

    def go_offline(self, why: str) -> None:
        """Do nothing more: nobody knows what is on the disk. A new node on the same disk recovers it."""
        self._stop(why)
        self.directory.abandon()
        self.replica.abandon()

    def _stop(self, why: str) -> None:
        self.failure = why
        for key in self.timers.keys():  # noqa: SIM118 - it is no dict
            self.timers.cancel(key)

    def close(self) -> None:
        """A clean shutdown: a leader resigns, and everything is synced. Raises ``OSError`` and ``LogOffline``.

        The files are closed then too.
        """
        if isinstance(self.role, Leader):
            self.role.resign()
        self._stop("the node is closed")
        self.replica.abandon()
        self.directory.close()

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The epoch that it is in; -1 before the first."""
        return self._state.ballot.epoch

    @property
    def ballot(self) -> Ballot:
        """Epoch, vote and leader, as they are on disk."""
        return self._state.ballot

    @property
    def is_voter(self) -> bool:
        """Whether it is one of the quorum's voters; else it is an observer."""
        return self.address in self.config.voters

    @property
    def is_leader(self) -> bool:
        """Whether it was elected for its epoch, and has not heard of a newer one."""
        return isinstance(self.role, Leader)

    @property
    def leader_id(self) -> int:
        """Who leads the epoch, -1 where that is not known."""
        if isinstance(self.role, Leader):
            return self.address
        return self.role.leader if isinstance(self.role, Follower) else NO_LEADER

    def state(self) -> NodeState:
        """Everything; looking changes nothing."""
        replica, partial = self.replica, self.replica.fetching
        return NodeState(
            role=type(self.role).__name__.lower() if self.failure is None else "offline",
            epoch=self.epoch,
            leader=self.leader_id,
            voted=self.ballot.voted,
            begin=replica.begin,
            high_watermark=replica.high_watermark,
            end=replica.end,
            epochs=tuple((entry.epoch, entry.start_offset) for entry in replica.log.epochs.entries),
            snapshots=replica.snapshots.ids,
            fetching=None if partial is None else partial.id,
            position=-1 if partial is None else partial.size,
            applied=replica.applied,
        )

    def fetch_request(self) -> QuorumFetchRequest:
        """A Fetch from the end of the log on. It acknowledges everything below, which has to be synced before."""
        replica = self.replica
        return QuorumFetchRequest(
            self.config.partition,
            self.address,
            self.epoch,
            replica.end,
            replica.last_epoch,
            self.config.fetch_max_bytes,
            replica.fetching is not None,
        )

    def now(self) -> int:
        """The clock's milliseconds."""
        return self._clock.now()

    def wall(self) -> int:
        """Time of day, for record timestamps."""
        return self._clock.wall()

    def set_timer(self, key: Key, milliseconds: int) -> None:
        """Let a timer run off so long from now."""
        self.timers.set(key, self.now() + milliseconds)

    def election_timeout(self) -> int:
        """One to two times the election timeout, by chance, so that candidates do not always meet."""
        timeout = self.config.election_timeout_ms
        return timeout + self._chance.randrange(timeout)

    # -- appending --------------------------------------------------------------------------------------------------

    def append(self, records: Sequence[Record]) -> int:
        """Append as the leader; gives the first record's offset. They are committed once the high watermark is past.

        Raises ``NotLeader``, ``InvalidAppend``, and ``LogOffline`` or ``OSError``, after which the node is offline.
        """
        if self.failure is not None or not isinstance(self.role, Leader):
            raise NotLeader(self.address, self.leader_id)
        try:
            offset = self.replica.append(records, self.epoch)
            self.role.advance()
        except STORAGE_FAILURES as error:
            self.go_offline(str(error))
            raise
        return offset

    # -- epochs and roles -------------------------------------------------------------------------------------------

    def learn(self, epoch: int, leader: int) -> bool:
        """Someone names an epoch and its leader (-1: not known); gives whether that was news.

        A newer epoch is on disk before anything is done in it.
        """
        leader = leader if leader in self.config.voters and leader != self.address else NO_LEADER
        if epoch > self.epoch:
            self._enter(Ballot(epoch, leader=leader))
        elif epoch < self.epoch or leader == NO_LEADER or isinstance(self.role, Leader | Follower):
            return False
        else:
            self._state.store(self.ballot._replace(leader=leader))
        self.role.close()
        self.role = Unattached(self) if leader == NO_LEADER else Follower(self, leader)
        return True

    def _enter(self, ballot: Ballot) -> None:
        self._state.store(ballot)
        self.replica.entered_epoch()

    def grant(self, candidate: int, position: tuple[int, int]) -> bool:
        """Whether the candidate of this epoch has the vote: the first that is as far in the log, and no other."""
        if self.ballot.voted == candidate:
            return True
        if not is_free_to_vote(self) or position < self.replica.vote_position:
            return False
        self._state.store(Ballot(self.epoch, candidate))
        if isinstance(self.role, Unattached):
            self.role.wait()
        return True

    def _stand(self) -> None:
        """No leader was heard of: a voter stands for the next epoch, an observer looks for another leader."""
        if isinstance(self.role, Leader):
            return
        self.role.close()
        if not self.is_voter:
            self.role = Unattached(self)
            return
        self._enter(Ballot(self.epoch + 1, self.address))
        candidate = self.role = Candidate(self)
        candidate.ask()

    def become_leader(self, granted: frozenset[int]) -> None:
        """A majority has granted its votes."""
        self._state.store(self.ballot._replace(leader=self.address))
        self.role.close()
        leader = self.role = Leader(self, granted)
        leader.begin()

    def resign(self) -> None:
        """A leader gives its epoch up; nothing for anyone else."""
        if isinstance(self.role, Leader):
            self.role.resign()
            self.role.close()
            self.role = Unattached(self)

    def succeed(self, successors: tuple[int, ...]) -> None:
        """The leader of this epoch has given it up, and would like these to stand, the first first."""
        self.role.close()
        self.role = Unattached(self)
        if self.address in successors:
            place = successors.index(self.address)
            self.set_timer(ELECTION, place * self.config.election_timeout_ms)

    # -- what follows from the log ----------------------------------------------------------------------------------

    def committed(self) -> None:
        """The high watermark has risen: there may be enough for a snapshot ("When to Snapshot")."""
        if self.replica.wants_snapshot(self.config.snapshot_minimum_records):
            self.set_timer(GENERATE, 0)

    def begin_advanced(self) -> None:
        """The LBO has risen: there may be snapshots to delete."""
        self.set_timer(CLEAN, 0)

    def _generate(self) -> None:
        if self.replica.wants_snapshot(self.config.snapshot_minimum_records):
            self.replica.generate_snapshot()
            if isinstance(self.role, Leader):
                self.set_timer(ADVANCE_BEGIN, 0)

    def _clean(self) -> None:
        self.replica.delete_old_snapshots()

    def _fetch(self) -> None:
        if isinstance(self.role, Follower):
            self.role.fetch()
        elif isinstance(self.role, Unattached) and not self.is_voter:
            self.role.ask()

    def _fetch_snapshot(self) -> None:
        if isinstance(self.role, Follower):
            self.role.fetch_snapshot()

    def _tell_voters(self) -> None:
        if isinstance(self.role, Leader):
            self.role.tell_voters()

    def _advance_begin(self) -> None:
        if isinstance(self.role, Leader):
            self.role.look_at_begin()


_FIRES: dict[Key, Callable[[QuorumNode], None]] = {
    ELECTION: QuorumNode._stand,
    FETCH: QuorumNode._fetch,
    FETCH_SNAPSHOT: QuorumNode._fetch_snapshot,
    BEGIN_EPOCH: QuorumNode._tell_voters,
    ADVANCE_BEGIN: QuorumNode._advance_begin,
    GENERATE: QuorumNode._generate,
    CLEAN: QuorumNode._clean,
}

_Answer = Callable[[QuorumNode, Any], QuorumResponse]
_SERVES: dict[type[Any], tuple[_Answer, Callable[..., QuorumResponse]]] = {
    VoteRequest: (answer_vote, VoteResponse),
    BeginQuorumEpochRequest: (answer_begin, BeginQuorumEpochResponse),
    EndQuorumEpochRequest: (answer_end, EndQuorumEpochResponse),
    QuorumFetchRequest: (answer_fetch, QuorumFetchResponse),
    FetchSnapshotRequest: (answer_fetch_snapshot, FetchSnapshotResponse),
    DeleteRecordsRequest: (answer_delete_records, DeleteRecordsResponse),
}
"""For each request: how it is served, and what an error is answered in."""
