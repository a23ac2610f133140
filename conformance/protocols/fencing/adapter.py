"""``fencing`` as brokers do it: each step of the model is a schedule of real messages between real brokers.

What the schedules take care of, so that one step is one step:

- Every step has a millisecond of its own, and a follower may lag by none: who has fetched in this step counts for the
  ISR, nobody else.
- A follower that was answered sends its next fetch at once, and that one is lost. It gives the former request up, so
  that a late answer must be ignored; and it has to sync what it appended, as a fetch acknowledges it.
- Answers that bring no records are lost: in the model a high watermark travels with a record.
- A follower hears of a new leader only once that leader has heard of it, and truncates then and there; whoever asks too
  early is asked in its name alone. (A broker gives up its old role when it hears; in the model, when it has truncated.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from ....impl.replica.partition import PartitionState
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONTROLLER,
    NO_LEADER,
    AlterIsrRequest,
    AlterIsrResponse,
    FetchRequest,
    FetchResponse,
    OfflineReplicasRequest,
    OffsetsForLeaderEpochRequest,
    Response,
)
from ....traces.format import Value
from ...adapters.carrier import CLIENT, LOSES, error_name
from ...adapters.cluster import (
    FETCH_TIMER,
    HIGH_WATERMARK_TIMER,
    ISR_TIMER,
    PARTITION,
    Cluster,
    leads,
    produce,
    remote_leo,
    shown_leader,
    shown_set,
)
from ...adapters.stored import StoredAdapter
from ...lockstep.adapter import ModelStep, Outcome
from ...lockstep.faults import STORAGE, STORAGE_ERROR, TIMED_OUT, Fault, Kind

_NO_EPOCH: Final = -1


class FencingAdapter(StoredAdapter):
    """Brokers of ``impl`` on a simulated network."""

    protocol = "fencing"
    implemented = "kip-320-brokers"
    drawn = frozenset(Kind) - {Kind.CLOCK_JUMP}

    @cached_property
    def _actions(self) -> dict[str, Callable[[Mapping[str, int], Kind | None], Outcome]]:
        return {
            "controller_elect_leader": self._elect,
            "controller_shrink_isr": self._controller_shrink,
            "become_leader": self._become_leader,
            "become_follower": self._become_follower,
            "leader_write": self._write,
            "follower_fetch": self._fetch,
            "follower_acknowledge": self._acknowledge,
            "leader_inc_high_watermark": self._inc_high_watermark,
            "leader_shrink_isr": self._shrink,
            "leader_expand_isr": self._expand,
        }

    # -- the adapter ------------------------------------------------------------------------------------------------

    def reset(self, constants: Mapping[str, int], seed: int) -> None:
        """New disks, new brokers."""
        self._cluster = Cluster(self._parts, self._new_store(seed), constants["replicas"], seed)
        self._cluster.create_partition()
        self._written = 0
        self._failed: set[int] = set()
        """Whom the controller is to mark offline."""

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """One action."""
        self._cluster.clock.advance(1)
        kind = None if fault is None else fault.kind
        if self._failed or self._cluster.controller.partition(PARTITION).offline:
            self._mark()
        return self._with_bad_disk(action, params, kind) if kind in STORAGE else self._actions[action](params, kind)

    def inject(self, fault: Fault) -> Outcome:
        """One event."""
        cluster = self._cluster
        cluster.clock.advance(1)
        match fault.kind, fault.replica:
            case Kind.DELIVER_LATE, _:
                cluster.deliver_late()
            case Kind.ISOLATE, int(replica):
                cluster.network.isolate(replica)
            case Kind.HEAL, int(replica):
                cluster.network.heal(replica)
                self._tell_of_marks()
            case Kind.CRASH, int(replica):
                return self._crash(replica, fault.seed)
            case Kind.MARK_OFFLINE, int(replica):
                self._failed.add(replica)
                self._mark()
            case Kind.MARK_ONLINE, int(replica):
                self._failed.discard(replica)
                self._mark()
        return Outcome()

    # -- looking ----------------------------------------------------------------------------------------------------

    def observe(self) -> Mapping[str, Value]:
        """Everything that the model has."""
        cluster = self._cluster
        quorum = cluster.controller.partition(PARTITION)
        cells: dict[str, Value] = {
            "next_record_id": self._written,
            "next_leader_epoch": quorum.leader_epoch + 1,
            "quorum_leader_epoch": quorum.leader_epoch,
            "quorum_leader": shown_leader(quorum.leader),
            "quorum_isr": shown_set(quorum.isr),
        }
        for epoch, request in cluster.requests.items():
            cells[f"request_leader[{epoch}]"] = shown_leader(request.leader)
            cells[f"request_isr[{epoch}]"] = shown_set(request.isr)
        for node in cluster.replicas:
            state = cluster.state(node)
            if state is None:
                cells |= {f"leo[{node}]": 0, f"hw[{node}]": 0, f"leader_epoch[{node}]": _NO_EPOCH}
                cells |= {f"leader[{node}]": None, f"isr[{node}]": ()}
                continue
            cells[f"leo[{node}]"] = state.end
            cells[f"hw[{node}]"] = state.high_watermark
            cells[f"leader_epoch[{node}]"] = state.leader_epoch
            cells[f"leader[{node}]"] = shown_leader(state.leader)
            cells[f"isr[{node}]"] = shown_set(state.isr)
            for follower, end in state.progress:
                cells[f"remote_leo[{node}][{follower}]"] = end
            for offset, epoch, number in cluster.records(node):
                cells[f"record_id[{node}][{offset}]"] = number
                cells[f"record_epoch[{node}][{offset}]"] = epoch
        return cells

    # -- what happens by itself -------------------------------------------------------------------------------------

    def _leaders(self) -> dict[int, tuple[int, int]]:
        """Leader epoch and high watermark of every presumed leader."""
        found = {}
        for node in self._cluster.replicas:
            state = self._cluster.state(node)
            if state is not None and state.leader == node:
                found[node] = state.leader_epoch, state.high_watermark
        return found

    def _raised(self, before: Mapping[int, tuple[int, int]]) -> list[ModelStep]:
        """The high watermarks that leaders have raised, one offset a step."""
        steps: list[ModelStep] = []
        for node, (epoch, offset) in self._leaders().items():
            known = before.get(node)
            start = offset if known is None or known[0] != epoch else known[1]
            steps += [("leader_inc_high_watermark", {"leader": node})] * (offset - start)
        return steps

    # -- the controller ---------------------------------------------------------------------------------------------

    def _elect(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        return self._operate(
            "controller_elect_leader",
            params,
            lambda: self._cluster.controller.elect_leader(PARTITION, params["new_leader"]),
        )

    def _controller_shrink(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        return self._operate(
            "controller_shrink_isr", params, lambda: self._cluster.controller.shrink_isr(PARTITION, params["replica"])
        )

    def _operate(self, action: str, params: Mapping[str, int], operation: Callable[[], object]) -> Outcome:
        """An operator's call of the controller, which refuses by its own errors."""
        try:
            operation()
        except self._parts.controller_error as refused:
            codes = {"NotEligible": "ELIGIBLE_LEADERS_NOT_AVAILABLE", "ElectionNotNeeded": None, "NotInIsr": None}
            return Outcome(error=codes[type(refused).__name__])
        self._cluster.collect()
        return Outcome(((action, params),))

    def _mark(self) -> None:
        """Let the controller mark whoever has failed, once that is all that it does.

        It takes a member out of the ISR with the mark, and elects a leader when one is taken away: those are steps of
        the model of their own. So it hears of a failure when the replica is out of the ISR, and of the end of it when
        there is a leader.
        """
        cluster = self._cluster
        quorum = cluster.controller.partition(PARTITION)
        marked = set(quorum.offline)
        for replica in sorted(self._failed - marked):
            if replica not in quorum.isr and replica != quorum.leader:
                cluster.controller.mark_offline(replica)
        if quorum.leader != NO_LEADER:
            for replica in sorted(marked - self._failed):
                cluster.controller.mark_online(replica)
        cluster.collect()
        self._tell_of_marks()

    def _tell_of_marks(self) -> None:
        """What the controller repeats until the leader has heard it: whom it has marked."""
        cluster = self._cluster
        quorum = cluster.controller.partition(PARTITION)
        if quorum.leader != NO_LEADER:
            body = OfflineReplicasRequest(
                cluster.controller.controller_epoch,
                PARTITION,
                quorum.offline,
                quorum.leader_epoch,
                quorum.partition_epoch,
            )
            cluster.carry(cluster.ask(CONTROLLER, quorum.leader, body, BROKER_PRINCIPAL))

    # -- roles ------------------------------------------------------------------------------------------------------

    def _leader_and_isr(self, node: int, epoch: int, fault: Kind | None = None) -> str | None:
        """Deliver the controller's request of an epoch to one replica; the error that the controller gets."""
        cluster = self._cluster
        flight = cluster.ask(CONTROLLER, node, cluster.requests[epoch], BROKER_PRINCIPAL)
        return error_name(cluster.carry(flight, fault))

    def _become_leader(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        node, epoch = params["leader"], params["epoch"]
        was = self._cluster.state(node)
        error = self._leader_and_isr(node, epoch, fault)
        now = self._cluster.state(node)
        run: list[ModelStep] = []
        if now is not None and leads(now, node) and now.leader_epoch == epoch and _epoch_of(was) != epoch:
            run.append(("become_leader", params))
            start = 0 if was is None else was.high_watermark
            run += [("leader_inc_high_watermark", {"leader": node})] * (now.high_watermark - start)
            self._tell_of_marks()
        return Outcome(tuple(run), error)

    def _become_follower(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        leader, follower, epoch = params["leader"], params["follower"], params["epoch"]
        cluster = self._cluster
        was = cluster.state(follower)
        last = was.epochs[-1][0] if was is not None and was.epochs else _NO_EPOCH
        early = OffsetsForLeaderEpochRequest(follower, PARTITION, epoch, last)
        # A message that is lost is one of those that come before the follower hears of it.
        lost = fault if fault in LOSES else None
        error = error_name(cluster.carry(cluster.ask(follower, leader, early, BROKER_PRINCIPAL), lost))
        if error is None or (error != TIMED_OUT and cluster.requests[epoch].leader != leader):
            error = self._leader_and_isr(follower, epoch)
        if error is not None:
            return Outcome(error=error)
        cluster.truncate(follower, leader, None if lost else fault)
        now = cluster.state(follower)
        happened = now is not None and (now.leader, now.leader_epoch, now.role.value) == (leader, epoch, "follower")
        there = was is not None and (was.leader, was.leader_epoch) == (leader, epoch)
        return Outcome((("become_follower", params),) if happened and not there else ())

    # -- records ----------------------------------------------------------------------------------------------------

    def _write(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        node = params["leader"]
        cluster, before = self._cluster, self._leaders()
        was = cluster.state(node)
        answer = cluster.carry(cluster.ask(CLIENT, node, produce(self._written), "User:client"), fault)
        now = cluster.state(node)
        run: list[ModelStep] = []
        if now is not None and now.end > (0 if was is None else was.end):
            self._written += 1
            run = [("leader_write", params), *self._raised(before)]
        return Outcome(tuple(run), error_name(answer))

    def _fetch(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        leader, follower = params["leader"], params["follower"]
        before = self._cluster.state(follower)
        run, error = self._ask_to_fetch(leader, follower, fault, _brings_records)
        after = self._cluster.state(follower)
        if before is not None and after is not None and after.end > before.end:
            run.append(("follower_fetch", params))
        return Outcome(tuple(run), error)

    def _acknowledge(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        """A fetch that is answered, and no answer but an error arrives."""
        run, error = self._ask_to_fetch(params["leader"], params["follower"], fault, _is_error)
        return Outcome(tuple(run), error)

    def _ask_to_fetch(
        self, leader: int, follower: int, fault: Kind | None, wanted: Callable[[Response], bool]
    ) -> tuple[list[ModelStep], str | None]:
        """Let a follower send its fetch to this leader, or, where it does not follow it, somebody in its name.

        The steps that it brings with it at the leader, and the error.
        """
        cluster, before = self._cluster, self._leaders()
        was, state = cluster.state(leader), cluster.state(follower)
        if state is not None and state.role.value == "follower" and state.leader == leader:
            cluster.brokers[follower].fire(FETCH_TIMER)
            flight = cluster.sent(follower, leader)
        elif was is not None and _epoch_of(state) == was.leader_epoch:
            return [], None  # it has lost its role in this epoch, or leads in it: nobody fetches
        else:
            end, epoch = (0, _NO_EPOCH) if state is None else (state.end, state.leader_epoch)
            flight = cluster.ask(follower, leader, FetchRequest(follower, PARTITION, end, 1, epoch), BROKER_PRINCIPAL)
        answer = cluster.carry(flight, fault, wanted)
        now = cluster.state(leader)
        run: list[ModelStep] = []
        if leads(now, leader) and remote_leo(was, follower) != remote_leo(now, follower):
            run = [("follower_acknowledge", {"leader": leader, "follower": follower})]
        run += self._raised(before)
        cluster.give_up(follower)
        return run, error_name(answer)

    # -- the leader's affairs ---------------------------------------------------------------------------------------

    def _inc_high_watermark(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        """A leader does it by itself as soon as it can; an ISR that it has asked for may keep it from that."""
        node = params["leader"]
        state = self._cluster.state(node)
        if not leads(state, node) or state is None or state.maximal_isr == state.isr:
            return Outcome()
        run, _ = self._look_at_isr(node, None)
        return Outcome(tuple(run))

    def _shrink(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        run, error = self._look_at_isr(params["leader"], fault)
        return Outcome(tuple(run), error)

    def _expand(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        leader, follower = params["leader"], params["follower"]
        run: list[ModelStep] = []
        state, other = self._cluster.state(leader), self._cluster.state(follower)
        if leads(state, leader) and other is not None and (other.leader, other.role.value) == (leader, "follower"):
            run, _ = self._ask_to_fetch(leader, follower, None, _is_error)
        more, error = self._look_at_isr(leader, fault)
        return Outcome((*run, *more), error)

    def _look_at_isr(self, node: int, fault: Kind | None) -> tuple[list[ModelStep], str | None]:
        """Let a leader look at its ISR, and carry its AlterIsr; what changed, and the controller's error."""
        cluster, before = self._cluster, self._leaders()
        old = cluster.controller.partition(PARTITION).isr
        if PARTITION not in cluster.brokers[node].partitions:
            return [], None
        cluster.brokers[node].fire(ISR_TIMER)
        flight, state = cluster.sent(node, CONTROLLER), cluster.state(node)
        if flight is None and state is not None and leads(state, node):
            if cluster.network.is_cut(node, CONTROLLER):
                return [], TIMED_OUT
            quorum = cluster.controller.partition(PARTITION)
            if (quorum.leader, quorum.leader_epoch) != (node, state.leader_epoch):
                # A leader that was fenced once asks no more; it is asked in its name.
                stale = AlterIsrRequest(node, PARTITION, state.leader_epoch, state.isr, state.partition_epoch)
                flight = cluster.ask(node, CONTROLLER, stale, BROKER_PRINCIPAL)
        if flight is None:
            return [], None
        answer = cluster.carry(flight, fault)
        if answer is not None and answer.error is ErrorCode.INVALID_UPDATE_VERSION:
            # A mark has raised the partition epoch; the leader knows it now, and asks again.
            cluster.brokers[node].fire(ISR_TIMER)
            again = cluster.sent(node, CONTROLLER)
            answer = AlterIsrResponse(ErrorCode.NONE, PARTITION) if again is None else cluster.carry(again)
        cluster.collect()
        new = cluster.controller.partition(PARTITION).isr
        run: list[ModelStep] = [("leader_shrink_isr", {"leader": node, "follower": each}) for each in sorted(old - new)]
        run += [("leader_expand_isr", {"leader": node, "follower": each}) for each in sorted(new - old)]
        return run + self._raised(before), error_name(answer)

    # -- broken machines --------------------------------------------------------------------------------------------

    def _crash(self, node: int, seed: int) -> Outcome:
        cluster = self._cluster
        was = cluster.state(node)
        if seed & 1:
            cluster.brokers[node].fire(HIGH_WATERMARK_TIMER)
        cluster.crash(node, seed)
        return Outcome(self._restarted(node, was))

    def _restarted(self, node: int, was: PartitionState | None) -> tuple[ModelStep, ...]:
        now = self._cluster.state(node)
        if was is None or now is None or (was.role is now.role and was.high_watermark == now.high_watermark):
            return ()
        return (("restart", {"replica": node, "stored": now.high_watermark}),)

    def _with_bad_disk(self, action: str, params: Mapping[str, int], kind: Kind | None) -> Outcome:
        """The action while the disk of whoever writes is full or fails; then the log is brought back."""
        cluster = self._cluster
        node = params["follower" if "follower" in params else "leader"]
        was = cluster.state(node)
        with self._bad_disk(node, kind):
            outcome = self._actions[action](params, None)
        state = cluster.state(node)
        if state is None or state.role.value != "offline":
            return outcome
        cluster.brokers[node].reopen(PARTITION)
        return Outcome((*outcome.run, *self._restarted(node, was)), STORAGE_ERROR)


def _is_error(answer: Response) -> bool:
    return answer.error is not ErrorCode.NONE


def _brings_records(answer: Response) -> bool:
    return _is_error(answer) or (isinstance(answer, FetchResponse) and bool(answer.records))


def _epoch_of(state: PartitionState | None) -> int:
    return _NO_EPOCH if state is None else state.leader_epoch
