"""``snapshots`` as nodes do it: each step of the model is a schedule of real messages between real nodes.

What the schedules take care of, so that one step is one step:

- A follower that was answered sends its next requests at once, and those are lost. It gives the former ones up, so that
  a late answer must be ignored; and it has to sync what it appended, as a fetch acknowledges it.
- An answer that is none to what the step asks for is lost: records that come with an acknowledgement, errors (but those
  that make a follower rediscover its snapshot), news of another epoch.
- Whoever is in an epoch with its leader hears of that before it asks. In the model it knows.
- A node that stands for election does so until its epoch is new. Its requests for votes may arrive any time later.
- Who voted is asked for another vote in the same epoch by a rival, which the model does not have: it must not get it,
  after a crash least of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from ....impl.log.records import Record
from ....impl.quorum.node import NodeState
from ....impl.quorum.timers import ADVANCE_BEGIN, CLEAN, ELECTION, FETCH, FETCH_SNAPSHOT, GENERATE
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import NO_EPOCH
from ....impl.wire.quorum import (
    DeleteRecordsRequest,
    FetchSnapshotRequest,
    QuorumFetchRequest,
    QuorumFetchResponse,
    QuorumResponse,
    VoteRequest,
    VoteResponse,
)
from ....model.core.errors import BadInput
from ....traces.format import Value
from ...adapters.carrier import CLIENT, error_name
from ...adapters.stored import StoredAdapter
from ...lockstep.adapter import ModelStep, Outcome
from ...lockstep.faults import STORAGE, STORAGE_ERROR, Fault, Kind
from .counting import CHUNK
from .quorum import PARTITION, Quorum, SnapshotSeen

_REDISCOVER: Final = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)
_NO_SNAPSHOT: Final = SnapshotSeen(0, -1, -1)
_FURTHEST: Final = 1 << 20
"""A rival's last offset in the epoch before: no candidate's log is further."""


class SnapshotsAdapter(StoredAdapter):
    """Nodes of ``impl`` on a simulated network."""

    protocol = "snapshots"
    implemented = "kip-630-nodes"
    drawn = frozenset(Kind) - {Kind.CLOCK_JUMP, Kind.MARK_OFFLINE, Kind.MARK_ONLINE}

    @cached_property
    def _actions(self) -> dict[str, Callable[[Mapping[str, int], Kind | None], Outcome]]:
        return {
            "become_candidate": self._stand,
            "grant_vote": self._vote,
            "refuse_vote": self._vote,
            "become_follower": self._hear,
            "leader_write": self._write,
            "leader_inc_high_watermark": lambda _params, _fault: Outcome(),
            "follower_fetch": self._fetch,
            "follower_acknowledge": self._acknowledge,
            "follower_truncate": self._truncate,
            "follower_start_over": self._start_over,
            "fetch_snapshot": self._fetch_snapshot,
            "rediscover_snapshot": self._rediscover,
            "generate_snapshot": self._generate,
            "leader_advance_lbo": self._advance,
            "delete_records": self._delete_records,
            "delete_snapshot": self._clean,
        }

    # -- the adapter ------------------------------------------------------------------------------------------------

    def reset(self, constants: Mapping[str, int], seed: int) -> None:
        """New disks, new nodes. Raises BadInput for constants with which no nodes can be driven."""
        for name, value, why in (
            ("lag_expires", 1, "a model's leader knows more of its followers than they told it"),
            ("late_responses", 0, "late responses are drawn as the faults delay-response and deliver-late"),
        ):
            if constants[name] != value:
                option = f"--{name.replace('_', '-')}"
                raise BadInput(f"nodes cannot be driven with {constants[name]}: {why}", option, f"give {value}")
        if constants["observers"] >= constants["replicas"]:
            raise BadInput("a quorum without voters does nothing", "--observers", "give fewer than --replicas")
        self._quorum = Quorum(
            self._parts,
            self._new_store(seed),
            constants["replicas"],
            constants["observers"],
            constants["minimum_records"],
            seed,
        )
        self._epochs = range(constants["max_leader_epoch"] + 1)
        self._offsets = range(constants["log_size"])
        self._elected: dict[int, int] = {}
        """Who was elected for an epoch, and has not crashed in it."""
        self._voted: dict[int, tuple[int, int]] = {}
        """The last epoch in which a node gave its vote, and to whom, as others have seen it."""

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """One action."""
        self._quorum.clock.advance(1)
        kind = None if fault is None else fault.kind
        if action not in self._actions:
            raise BadInput(f"nodes have no step {action}", "--variant", f"leave it out, or give {self.variant}")
        try:
            return self._with_bad_disk(action, params, kind) if kind in STORAGE else self._actions[action](params, kind)
        finally:
            self._quorum.collect()

    def inject(self, fault: Fault) -> Outcome:
        """One event."""
        quorum = self._quorum
        quorum.clock.advance(1)
        match fault.kind, fault.replica:
            case Kind.DELIVER_LATE, _:
                quorum.deliver_late()
            case Kind.ISOLATE, int(replica):
                quorum.network.isolate(replica)
            case Kind.HEAL, int(replica):
                quorum.network.heal(replica)
            case Kind.CRASH, int(replica):
                return Outcome(self._crash(replica, fault.seed))
        quorum.collect()
        return Outcome()

    # -- looking ----------------------------------------------------------------------------------------------------

    def observe(self) -> Mapping[str, Value]:
        """Everything but what the model remembers for its promises, and a leader's notes of who has acknowledged."""
        quorum = self._quorum
        candidate = quorum.candidate
        cells: dict[str, Value] = {
            "newest_epoch": quorum.newest_epoch,
            "candidate": candidate,
            "votes": () if candidate is None else tuple(sorted(quorum.votes(candidate))),
            "voters": quorum.voters,
        }
        for epoch in self._epochs:
            leader = self._elected.get(epoch)
            gone = leader is not None and quorum.nodes[leader].epoch == epoch and not quorum.leads(leader)
            cells[f"epoch_leader[{epoch}]"] = None if gone else leader
        for node in quorum.replicas:
            state = quorum.state(node)
            cells[f"leader_epoch[{node}]"] = state.epoch
            cells[f"lbo[{node}]"] = state.begin
            cells[f"leo[{node}]"] = state.end
            cells[f"hw[{node}]"] = state.high_watermark
            cells |= self._fetching(node, state)
            for offset, epoch in quorum.record_epochs(node):
                if state.begin <= offset < state.end:
                    cells[f"record_epoch[{node}][{offset}]"] = epoch
            found = quorum.snapshots(node)
            for offset in sorted({*self._offsets, *found}):
                seen = found.get(offset, _NO_SNAPSHOT)
                for name, value in seen._asdict().items():
                    cells[f"snapshot_{name}[{node}][{offset}]"] = value
        return cells

    def _fetching(self, node: int, state: NodeState) -> dict[str, Value]:
        wanted = state.fetching
        if wanted is None:
            return {f"{name}[{node}]": -1 for name in ("fetching", "fetching_epoch", "position")}
        chunks, rest = divmod(state.position, CHUNK)
        return {
            f"fetching[{node}]": wanted.end_offset - 1,
            f"fetching_epoch[{node}]": wanted.epoch,
            f"position[{node}]": state.position if rest else chunks,
        }

    # -- elections --------------------------------------------------------------------------------------------------

    def _is_fetching(self, node: int) -> bool:
        return self._quorum.nodes[node].replica.fetching is not None

    def _won(self, candidate: int, was_fetching: bool) -> list[ModelStep]:
        """Note who leads. One that had half a snapshot begins with an empty log at once."""
        self._elected[self._quorum.nodes[candidate].epoch] = candidate
        began_anew = was_fetching and not self._is_fetching(candidate)
        return [("rediscover_snapshot", {"follower": candidate})] if began_anew else []

    def _stand(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        node, quorum = params["candidate"], self._quorum
        was_fetching, newest = self._is_fetching(node), quorum.newest_epoch
        while quorum.nodes[node].epoch <= newest:
            before = quorum.nodes[node].epoch
            quorum.fire(node, ELECTION)
            if quorum.nodes[node].epoch == before:
                return Outcome()
        self._voted[node] = (quorum.nodes[node].epoch, node)
        won = self._won(node, was_fetching) if quorum.leads(node) else []
        return Outcome((("become_candidate", params), *won))

    def _vote(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        voter, quorum = params["voter"], self._quorum
        candidate = quorum.candidate
        if candidate is None or voter in quorum.votes(candidate):
            return self._asked_again(voter)
        was_fetching, before = self._is_fetching(candidate), quorum.nodes[voter].epoch
        answer = quorum.carry(quorum.vote_request(candidate, voter), fault)
        run: list[ModelStep] = []
        if quorum.leads(candidate) or voter in quorum.votes(candidate):
            self._voted[voter] = (quorum.nodes[candidate].epoch, candidate)
            run.append(("grant_vote", params))
        elif before < quorum.nodes[voter].epoch:
            run.append(("refuse_vote", params))
        if quorum.leads(candidate):
            run += self._won(candidate, was_fetching)
        return Outcome(tuple(run), error_name(answer))

    def _asked_again(self, voter: int) -> Outcome:
        """A rival of the candidate asks a voter that has given its vote in this epoch."""
        quorum = self._quorum
        epoch, candidate = self._voted.get(voter, (-1, -1))
        reached = (each for each in quorum.voters if not quorum.network.is_cut(each, voter))
        rival = next((each for each in reached if each not in (voter, candidate)), None)
        if rival is None or not 0 <= epoch == quorum.newest_epoch:
            return Outcome()
        position = (epoch - 1, _FURTHEST) if epoch else (NO_EPOCH, -1)
        body = VoteRequest(PARTITION, epoch, rival, *position)
        answer = quorum.carry(quorum.ask(rival, voter, body))
        granted = answer is not None and _is_granted(answer)
        return Outcome((("grant_vote", {"voter": voter}),) if granted else (), error_name(answer))

    def _hear(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        node, epoch, quorum = params["follower"], params["epoch"], self._quorum
        leader = self._elected.get(epoch)
        if leader is None:
            return Outcome()
        before = quorum.nodes[node].epoch
        flight = quorum.begin_request(leader, node, epoch)
        error = error_name(quorum.carry(flight, fault, _is_no_error))
        if node not in quorum.voters and flight is not None and fault is not Kind.LOSE_REQUEST:
            error = None  # what it hears is an answer, to which there is none
        return Outcome((("become_follower", params),) if before < epoch == quorum.nodes[node].epoch else (), error)

    # -- records ----------------------------------------------------------------------------------------------------

    def _raised(self, leader: int, before: int) -> list[ModelStep]:
        """The steps by which a leader's high watermark has risen."""
        state = self._quorum.state(leader)
        raised = ("leader_inc_high_watermark", {"leader": leader, "offset": state.high_watermark - 1})
        return [raised] * (state.high_watermark - before if state.role == "leader" else 0)

    def _write(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        leader, quorum = params["leader"], self._quorum
        before = quorum.state(leader)
        quorum.own.add(leader)
        try:
            quorum.nodes[leader].append([Record(b"%d" % before.end)])
        except self._parts.not_leader:
            return Outcome(error=ErrorCode.NOT_LEADER_OR_FOLLOWER.name)
        except Exception:
            if quorum.nodes[leader].failure is None:
                raise
            return Outcome()
        return Outcome((("leader_write", params), *self._raised(leader, before.high_watermark)))

    def _ask_to_fetch(
        self, leader: int, follower: int, fault: Kind | None, wanted: Callable[[QuorumResponse], bool]
    ) -> tuple[list[ModelStep], QuorumResponse | None]:
        """Let a follower send its fetch to this leader, or, where it does not follow it, somebody in its name.

        The steps that it brings with it at the leader, and the answer.
        """
        quorum = self._quorum
        quorum.introduce(leader, follower)
        before, state = quorum.state(leader), quorum.state(follower)
        if quorum.follows(follower, leader):
            quorum.fire(follower, FETCH)
            flight = quorum.sent(follower, leader)
        else:
            epoch, half = quorum.nodes[follower].replica.last_epoch, state.fetching is not None
            body = QuorumFetchRequest(PARTITION, follower, state.epoch, state.end, epoch, 1, half)
            flight = quorum.ask(follower, leader, body)
        answer = quorum.carry(flight, fault, wanted)
        run: list[ModelStep] = []
        if quorum.answered is not None and _has_records(quorum.answered):
            run.append(("follower_acknowledge", {"leader": leader, "follower": follower}))
            run += self._raised(leader, before.high_watermark)
        self._give_up(follower)
        return run, answer

    def _give_up(self, follower: int) -> None:
        """Let a follower send its next requests, and lose them: it waits for no earlier answer any more."""
        quorum = self._quorum
        state = quorum.state(follower)
        if state.role == "follower":
            quorum.own.discard(follower)
            for timer in (FETCH, FETCH_SNAPSHOT):
                quorum.fire(follower, timer)
                quorum.lose(follower, state.leader)

    def _fetch(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        return self._fetched("follower_fetch", params, fault, _has_records)

    def _acknowledge(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        """A fetch that is answered, and the answer does not arrive."""
        run, answer = self._ask_to_fetch(params["leader"], params["follower"], fault, _is_unwanted)
        return Outcome(tuple(run), error_name(answer))

    def _truncate(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        return self._fetched("follower_truncate", params, fault, _has_divergence)

    def _start_over(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        return self._fetched("follower_start_over", params, fault, _has_snapshot)

    def _fetched(
        self, action: str, params: Mapping[str, int], fault: Kind | None, wanted: Callable[[QuorumResponse], bool]
    ) -> Outcome:
        run, answer = self._ask_to_fetch(params["leader"], params["follower"], fault, wanted)
        if answer is not None and wanted(answer) and self._quorum.nodes[params["follower"]].failure is None:
            run.append((action, params))
        return Outcome(tuple(run), error_name(answer))

    # -- snapshots --------------------------------------------------------------------------------------------------

    def _ask_for_chunk(
        self, leader: int, follower: int, fault: Kind | None, wanted: Callable[[QuorumResponse], bool]
    ) -> QuorumResponse | None:
        quorum = self._quorum
        quorum.introduce(leader, follower)
        if quorum.follows(follower, leader):
            quorum.fire(follower, FETCH_SNAPSHOT)
            flight = quorum.sent(follower, leader)
        else:
            state = quorum.state(follower)
            assert state.fetching is not None
            body = FetchSnapshotRequest(
                PARTITION, follower, state.epoch, state.fetching.in_messages, state.position, CHUNK
            )
            flight = quorum.ask(follower, leader, body)
        answer = quorum.carry(flight, fault, wanted)
        self._give_up(follower)
        return answer

    def _fetch_snapshot(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        leader, follower = params["leader"], params["follower"]
        if not self._is_fetching(follower):
            return Outcome()
        answer = self._ask_for_chunk(leader, follower, fault, _is_no_error)
        happened = answer is not None and _is_no_error(answer) and self._quorum.nodes[follower].failure is None
        return Outcome((("fetch_snapshot", params),) if happened else (), error_name(answer))

    def _rediscover(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        follower = params["follower"]
        leader = self._elected.get(self._quorum.nodes[follower].epoch)
        if leader is None or leader == follower or not self._is_fetching(follower):
            return Outcome()
        answer = self._ask_for_chunk(leader, follower, fault, _makes_rediscover)
        if answer is None or not _makes_rediscover(answer):
            return Outcome(error=error_name(answer))
        return Outcome((("rediscover_snapshot", params),))

    def _generate(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        node, more, quorum = params["replica"], params["more"], self._quorum
        before = set(quorum.state(node).snapshots)
        quorum.machines[node].chunks = more + 1
        quorum.fire(node, GENERATE)
        new = sorted(set(quorum.state(node).snapshots) - before)
        steps = ({"replica": node, "offset": each.end_offset - 1, "more": more} for each in new)
        return Outcome(tuple(("generate_snapshot", step) for step in steps))

    def _advance(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        """A leader goes as far as it can, to the end of a snapshot."""
        leader, quorum = params["leader"], self._quorum
        before = quorum.state(leader).begin
        quorum.fire(leader, ADVANCE_BEGIN)
        begin = quorum.state(leader).begin
        return Outcome((("leader_advance_lbo", {"leader": leader, "lbo": begin}),) if begin != before else ())

    def _delete_records(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        leader, quorum = params["leader"], self._quorum
        before = quorum.state(leader).begin
        body = DeleteRecordsRequest(PARTITION, params["lbo"])
        error = error_name(quorum.carry(quorum.ask(CLIENT, leader, body), fault))
        begin = quorum.state(leader).begin
        return Outcome((("delete_records", {"leader": leader, "lbo": begin}),) if begin != before else (), error)

    def _clean(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        node, quorum = params["replica"], self._quorum
        before = quorum.state(node).snapshots
        quorum.fire(node, CLEAN)
        gone = sorted(set(before) - set(quorum.state(node).snapshots))
        return Outcome(tuple(("delete_snapshot", {"replica": node, "offset": each.end_offset - 1}) for each in gone))

    # -- broken machines --------------------------------------------------------------------------------------------

    def _crash(self, node: int, seed: int) -> tuple[ModelStep, ...]:
        self._leave_office(node)
        restarted = self._restarted(node, self._quorum.crash(node, seed).replica.counted_empty)
        return (*restarted, *self._asked_again(node).run)

    def _leave_office(self, node: int) -> None:
        epoch = self._quorum.nodes[node].epoch
        if self._elected.get(epoch) == node:
            del self._elected[epoch]

    def _restarted(self, node: int, counted_empty: bool) -> tuple[ModelStep, ...]:
        return (("restart_empty" if counted_empty else "restart", {"replica": node, "checkpoint": 0}),)

    def _with_bad_disk(self, action: str, params: Mapping[str, int], kind: Kind | None) -> Outcome:
        """The action while the disk of whoever writes is full or fails; then the node is started again."""
        quorum = self._quorum
        node = next(params[name] for name in ("follower", "leader", "replica") if name in params)
        quorum.write_back(node)
        with self._bad_disk(node, kind):
            outcome = self._actions[action](params, None)
        if quorum.nodes[node].failure is None:
            return outcome
        self._leave_office(node)
        quorum.network.detach(node)
        again = quorum.start(node)
        return Outcome((*outcome.run, *self._restarted(node, again.replica.counted_empty)), STORAGE_ERROR)


def _is_no_error(answer: QuorumResponse) -> bool:
    return answer.error is ErrorCode.NONE


def _is_unwanted(_answer: QuorumResponse) -> bool:
    return False


def _is_granted(answer: QuorumResponse) -> bool:
    return isinstance(answer, VoteResponse) and answer.granted


def _has_divergence(answer: QuorumResponse) -> bool:
    return _is_no_error(answer) and isinstance(answer, QuorumFetchResponse) and answer.diverging is not None


def _has_snapshot(answer: QuorumResponse) -> bool:
    return _is_no_error(answer) and isinstance(answer, QuorumFetchResponse) and answer.snapshot is not None


def _has_records(answer: QuorumResponse) -> bool:
    return _is_no_error(answer) and not _has_divergence(answer) and not _has_snapshot(answer)


def _makes_rediscover(answer: QuorumResponse) -> bool:
    return answer.error in _REDISCOVER
