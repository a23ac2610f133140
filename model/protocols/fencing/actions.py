"""Kafka's ISR replication with leader epochs, and the fencing that KIP-320 adds to it: the steps.

State and steps are those of the TLA+ model that the KIP names (``Kip320.tla``); ``specs/Fencing.tla`` is our
own text of the same graph, and ``specs/DEVIATIONS.md`` lists where the KIP's model slips. One partition; every
replica is leader or follower at any time; the controller acts on the quorum state at once and its LeaderAndIsr
requests reach replicas late, in any order, or never. A leader changes its ISR and the controller's in one step;
the variants of KIP-497 have a request and an answer for it (``alter_isr.py``). In the variants with restarts
replicas crash and come back too, and in some a leader knows of its followers' logs what their fetches told it.
``state.py`` has the variants and the variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.algebra import EVERY, Algebra, Step, Update, Value, View
from ...core.domains import REPLICA
from ..logs import END_OFFSET, EPOCH, OFFSET, append_record
from .state import (
    AlterIsr,
    RemoteLeo,
    Restart,
    Rules,
    Truncation,
    fencing,
    is_true_leader,
    presumes_leadership,
    same_record,
    sent,
)


def _in_one_step(rules: Rules) -> bool:
    """Whether a leader changes its ISR and the controller's at once."""
    return rules.alter_isr is None and not rules.running


def send_leader_and_isr(k: Algebra, s: View, leader: Value, isr: Value) -> Update:
    """The controller bumps the leader epoch, updates the quorum state and sends the request of that epoch."""
    epoch = s.next_leader_epoch
    # In each leader epoch the partition epochs are counted anew: a request for another leader epoch is refused anyway.
    versions = {"quorum_partition_epoch": 0} if k.rules.alter_isr is not None else {}
    return s.update(
        next_leader_epoch=epoch + 1,
        quorum_leader_epoch=epoch,
        quorum_leader=leader,
        quorum_isr=isr,
        request_leader={epoch: leader},
        request_isr={epoch: isr},
        **versions,
    )


@fencing.action(new_leader=REPLICA)
def controller_elect_leader(k: Algebra, s: View, new_leader: Value) -> Step:
    """The controller makes a member of the ISR the leader (a clean election)."""
    yield "in_quorum_isr", k.member(new_leader, s.quorum_isr)
    yield "not_leader_yet", s.quorum_leader != new_leader
    yield "epoch_available", s.next_leader_epoch <= k.c.max_leader_epoch
    yield send_leader_and_isr(k, s, new_leader, s.quorum_isr)


@fencing.action(replica=REPLICA)
def controller_shrink_isr(k: Algebra, s: View, replica: Value) -> Step:
    """The controller removes a failed replica from the ISR, or its leadership if it is the last member and leads.

    A last member that does not lead any more is removed too: the ISR is then empty, and no replica is electable.
    """
    leads = s.quorum_leader == replica
    yield "leads_or_in_isr", k.any(leads, k.member(replica, s.quorum_isr))
    yield "epoch_available", s.next_leader_epoch <= k.c.max_leader_epoch
    last_leader = k.all(leads, s.quorum_isr == k.only(replica))
    yield send_leader_and_isr(
        k,
        s,
        k.ite(leads, k.NONE, s.quorum_leader),
        k.ite(last_leader, s.quorum_isr, k.without_member(s.quorum_isr, replica)),
    )


@fencing.action(leader=REPLICA, epoch=EPOCH)
def become_leader(k: Algebra, s: View, leader: Value, epoch: Value) -> Step:
    """A replica takes up the request that names it leader; its high watermark stays, typically behind the true one."""
    yield "request_sent", sent(k, s, epoch)
    yield "names_leader", s.request_leader[epoch] == leader
    yield "epoch_newer", s.leader_epoch[leader] < epoch
    # Where it led already, it must not count what it was told in another epoch: the follower may have truncated since.
    forgets: dict[str, Any] = {}
    if k.rules.remote_leo is RemoteLeo.OF_EPOCH:
        forgets["remote_leo"] = {(leader, EVERY): -1}
    elif k.rules.remote_leo is RemoteLeo.OF_OFFICE:
        another = k.exists(
            EPOCH,
            lambda e: k.all(
                s.leader_epoch[leader] < e,
                e < epoch,
                s.request_leader[e] != k.NONE,
                s.request_leader[e] != leader,
            ),
        )
        forgets["remote_leo"] = {(leader, EVERY): lambda r: k.ite(another, -1, s.remote_leo[leader, r])}
    if k.rules.alter_isr is not None:
        forgets |= {"proposed": {leader: k.EMPTY}, "partition_epoch": {leader: 0}}
        forgets |= {"altered_isr": {epoch: s.request_isr[epoch]}, "altered_partition_epoch": {epoch: 0}}
    if k.rules.running:
        forgets |= {name: {leader: s.request_isr[epoch]} for name in ("maximal_isr", "asked_isr")}
    if k.rules.forgets:
        forgets["ahead"] = {leader: 0}
    yield s.update(
        leader_epoch={leader: epoch},
        leader={leader: leader},
        isr={leader: s.request_isr[epoch]},
        **forgets,
    )


def _truncation_offset(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
    """The end of the follower's log after the variant's truncation against the leader's present log."""
    end, leader_end = s.leo[follower], s.leo[leader]
    match k.rules.truncation:
        case Truncation.HIGH_WATERMARK:
            return s.hw[follower]
        case Truncation.EPOCH_END:
            last = s.record_epoch[follower, end - 1]
            larger = k.first(
                OFFSET,
                lambda o: k.all(o < leader_end, s.record_epoch[leader, o] > last),
                s.hw[follower],
            )
            known = k.ite(s.record_epoch[leader, leader_end - 1] == last, leader_end, larger)
            return k.ite(end == 0, 0, k.ite(leader_end == 0, s.hw[follower], known))
        case Truncation.FIRST_MISMATCH:
            return k.last(OFFSET, lambda o: same_record(k, s, leader, follower, o), -1) + 1
        case Truncation.ON_FETCH:
            return end


@fencing.action(leader=REPLICA, follower=REPLICA, epoch=EPOCH, present=lambda rules: not rules.shipped)
def become_follower(k: Algebra, s: View, leader: Value, follower: Value, epoch: Value) -> Step:
    """A replica takes up a request that names another leader, and truncates its log by the variant's rule.

    KIP-320, "Replica Handling": the truncation asks a leader that is in the request's own epoch.
    """
    yield "not_leader_itself", leader != follower
    yield "request_sent", sent(k, s, epoch)
    yield "names_leader", s.request_leader[epoch] == leader
    newer = s.leader_epoch[follower] < epoch
    if k.rules.restart is not None:
        # A replica without a role is back from a crash: in the epoch that it knows, it takes up its request again.
        newer = k.any(newer, k.all(s.leader_epoch[follower] == epoch, s.leader[follower] == k.NONE))
    yield "epoch_newer", newer
    if k.rules.fenced:
        yield "presumes_leadership", presumes_leadership(s, leader)
        yield "leader_epoch_matches", s.leader_epoch[leader] == epoch
    end = _truncation_offset(k, s, leader, follower)
    joins = {
        "leader_epoch": {follower: epoch},
        "leader": {follower: leader},
        "isr": {follower: k.EMPTY if k.rules.running else s.request_isr[epoch]},
    }
    if k.rules.running:
        joins["synced"] = {follower: k.min(end, s.synced[follower])}
    if k.rules.truncation is Truncation.ON_FETCH:
        yield s.update(**joins)
        return
    yield "truncates_backward", end <= s.leo[follower]
    yield s.update(leo={follower: end}, hw={follower: k.min(end, s.hw[follower])}, **joins)


@fencing.action(leader=REPLICA)
def leader_write(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader appends a producer's record in its own epoch."""
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield from append_record(k, s, leader)


def previous_epoch_matches(k: Algebra, s: View, leader: Value, follower: Value, end: Value) -> Value:
    """Leader and follower hold a record of the same epoch just below ``end`` (KIP-320, first try)."""
    return k.any(
        end == 0,
        k.all(
            end <= s.leo[leader],
            end <= s.leo[follower],
            s.record_epoch[leader, end - 1] == s.record_epoch[follower, end - 1],
        ),
    )


@fencing.action(leader=REPLICA, follower=REPLICA)
def follower_fetch(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A follower copies the next record and the high watermark from a presumed leader (KIP-320, "Replica Handling")."""
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "follows_leader", s.leader[follower] == leader
    if k.rules.fenced:
        yield "epoch_not_fenced", s.leader_epoch[follower] == s.leader_epoch[leader]
    end = s.leo[follower]
    if k.rules.validated:
        yield "previous_epoch_matches", previous_epoch_matches(k, s, leader, follower, end)
    yield "record_available", end < s.leo[leader]
    tells = {"remote_leo": {(leader, follower): end}} if k.rules.told and not k.rules.running else {}
    yield s.update(
        leo={follower: end + 1},
        record_id={(follower, end): s.record_id[leader, end]},
        record_epoch={(follower, end): s.record_epoch[leader, end]},
        hw={follower: k.min(s.hw[leader], end + 1)},
        **tells,
    )


@fencing.action(leader=REPLICA)
def leader_inc_high_watermark(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader counts one more record as committed: every member of the ISR that it knows has it."""
    rules: Rules = k.rules
    hw = s.hw[leader]
    yield "presumes_leadership", presumes_leadership(s, leader)
    # Without fencing, the leader's own log counts only where the leader is in its own ISR, as in the KIP's model.
    yield "record_above_hw", hw < (s.leo[leader] if rules.fenced or rules.validated else k.c.log_size)

    def acknowledges(member: Value) -> Value:
        if rules.loses_power:
            return hw < k.ite(member == leader, s.synced[leader], s.remote_leo[leader, member])
        if rules.told:
            return hw < k.ite(member == leader, s.leo[leader], s.remote_leo[leader, member])
        conditions = [s.leader[member] == leader, hw < s.leo[member]]
        if rules.fenced:
            conditions.append(s.leader_epoch[member] == s.leader_epoch[leader])
        if rules.validated:
            conditions.append(s.record_epoch[member, hw] == s.record_epoch[leader, hw])
        return k.all(*conditions)

    def counted(member: Value) -> Value:
        if rules.running:
            return k.member(member, s.maximal_isr[leader])
        known = k.member(member, s.isr[leader])
        if rules.alter_isr in (None, AlterIsr.MEMBERS):
            return known
        return k.any(known, k.member(member, s.proposed[leader]))

    yield "isr_acknowledges", k.forall(REPLICA, lambda r: k.implies(counted(r), acknowledges(r)))
    yield s.update(hw={leader: hw + 1})


def _follows_up_to(k: Algebra, s: View, leader: Value, follower: Value, end: Value) -> Value:
    """The follower follows this leader, by the variant's fencing, and has its log up to ``end``."""
    rules: Rules = k.rules
    follows = [s.leader[follower] == leader]
    if rules.fenced:
        follows += [presumes_leadership(s, leader), s.leader_epoch[follower] == s.leader_epoch[leader]]
    if rules.validated:
        follows += [
            presumes_leadership(s, leader),
            previous_epoch_matches(k, s, leader, follower, end),
        ]
    return k.all(*follows, end <= s.leo[follower])


def may_leave_isr(k: Algebra, s: View, leader: Value, follower: Value) -> Iterator[tuple[str, Value]]:
    """What a leader looks at before it has a follower taken out of the ISR."""
    rules: Rules = k.rules
    end = s.leo[leader]
    yield "not_leader_itself", leader != follower
    yield "in_isr", k.member(follower, s.isr[leader])
    if rules.told:
        yield "not_caught_up", s.remote_leo[leader, follower] < end
    else:
        yield "not_caught_up", k.negate(_follows_up_to(k, s, leader, follower, end))


def may_join_isr(k: Algebra, s: View, leader: Value, follower: Value) -> Iterator[tuple[str, Value]]:
    """What a leader looks at before it has a follower taken into the ISR.

    KIP-320's model adds that the high watermark has reached the leader's own epoch: before that, the leader does
    not know the high watermark of its predecessor (KAFKA-7128).
    """
    rules: Rules = k.rules
    hw = s.hw[leader]
    yield "outside_isr", k.negate(k.member(follower, s.isr[leader]))
    yield "follows_leader", s.leader[follower] == leader
    if rules.fenced:
        yield "epoch_not_fenced", s.leader_epoch[follower] == s.leader_epoch[leader]
        yield "reached_high_watermark", hw <= s.leo[follower]
    elif rules.validated:
        yield "reached_high_watermark", previous_epoch_matches(k, s, leader, follower, hw)
    else:
        yield "reached_high_watermark", k.any(hw == 0, k.all(hw <= s.leo[leader], hw <= s.leo[follower]))
    if rules.fenced or rules.validated:
        yield (
            "hw_reached_epoch",
            k.any(
                hw == s.leo[leader],
                k.all(hw < s.leo[leader], s.record_epoch[leader, hw] == s.leader_epoch[leader]),
            ),
        )


@fencing.action(leader=REPLICA, follower=REPLICA, present=_in_one_step)
def leader_shrink_isr(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The true leader takes a follower that lags, or follows another epoch, out of the ISR."""
    yield from may_leave_isr(k, s, leader, follower)
    yield "true_leader", is_true_leader(k, s, leader)
    isr = k.without_member(s.isr[leader], follower)
    yield s.update(quorum_isr=isr, isr={leader: isr})


@fencing.action(leader=REPLICA, follower=REPLICA, present=_in_one_step)
def leader_expand_isr(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The true leader takes a follower that has reached its high watermark into the ISR."""
    yield from may_join_isr(k, s, leader, follower)
    yield "true_leader", is_true_leader(k, s, leader)
    isr = k.with_member(s.isr[leader], follower)
    yield s.update(quorum_isr=isr, isr={leader: isr})


@fencing.action(
    leader=REPLICA,
    follower=REPLICA,
    present=lambda rules: rules.truncation is Truncation.ON_FETCH and not rules.running,
)
def follower_truncate(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A fetch finds that the logs diverge, and the follower cuts its own back (KIP-320, first try)."""
    end, leader_end = s.leo[follower], s.leo[leader]
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "follows_leader", s.leader[follower] == leader
    yield (
        "diverges",
        k.any(
            leader_end < end,
            k.all(
                0 < end,
                end <= leader_end,
                s.record_epoch[leader, end - 1] != s.record_epoch[follower, end - 1],
            ),
        ),
    )
    cut = k.last(OFFSET, lambda o: same_record(k, s, leader, follower, o), -1) + 1
    yield s.update(leo={follower: cut}, hw={follower: k.min(cut, s.hw[follower])})


@fencing.action(
    replica=REPLICA, stored=END_OFFSET, present=lambda rules: rules.restart is not None and not rules.loses_power
)
def restart(k: Algebra, s: View, replica: Value, stored: Value) -> Step:
    """A replica crashes and comes back with its log, its leader epoch and the high watermark that it last stored.

    It acknowledges nothing that is not in its log for good, and acts in no epoch that it has not stored; the high
    watermark is stored now and then. It has lost its role: what it leads or follows, and the ISR.
    """
    yield "stored_high_watermark", stored <= s.hw[replica]
    yield "something_lost", k.any(s.leader[replica] != k.NONE, stored < s.hw[replica])
    lost: dict[str, dict[Value, Value]] = {"leader": {replica: k.NONE}, "isr": {replica: k.EMPTY}}
    if k.rules.restart is Restart.FORGETS:
        lost["leader_epoch"] = {replica: -1}
    yield s.update(hw={replica: stored}, **lost)


@fencing.action(leader=REPLICA, follower=REPLICA, present=lambda rules: rules.told)
def follower_acknowledge(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A follower's fetch reaches a presumed leader and tells it the follower's LEO; no response arrives.

    The fetch is asked for at the follower's LEO, so that it acknowledges all below. The response is lost, or brings no
    record; one without records would bring a high watermark in Kafka, which is not modelled but in ``impl_spec.py``.
    """
    end = s.leo[follower]
    if k.rules.loses_power:
        yield "acknowledges_synced", s.synced[follower] == end
    yield "not_leader_itself", leader != follower
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "follows_leader", s.leader[follower] == leader
    yield "epoch_not_fenced", s.leader_epoch[follower] == s.leader_epoch[leader]
    if k.rules.validated:
        # A fetch that finds that the logs differ tells nothing else.
        yield "previous_epoch_matches", previous_epoch_matches(k, s, leader, follower, end)
    yield "something_new", s.remote_leo[leader, follower] != end
    yield s.update(remote_leo={(leader, follower): end})


@fencing.action(leader=REPLICA, present=lambda rules: rules.restart is Restart.RESUMES)
def resume_leadership(k: Algebra, s: View, leader: Value) -> Step:
    """A restarted replica leads again in the epoch in which the controller still has it lead, with the ISR of now.

    Nobody else leads in that epoch, and yet it is not safe: its high watermark may have fallen below what it committed
    in this very epoch, and then "the high watermark has reached the epoch" says nothing any more.
    """
    yield "lost_role", s.leader[leader] == k.NONE
    yield "quorum_has_it_lead", s.quorum_leader == leader
    yield "epoch_is_quorums", s.leader_epoch[leader] == s.quorum_leader_epoch
    yield s.update(leader={leader: leader}, isr={leader: s.quorum_isr})
