"""Who leads, what is written and fetched, the high watermark and the ISR; what ``fencing`` has in full.

A leader that the controller elects takes office in that step; everyone else hears of it late, or never, and goes on as
a deposed leader, or as the follower of one. With unclean elections a replica outside the ISR may lead, and what it
lacks is gone from the log, but not from the remote log.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Update, Value, View
from ...core.domains import REPLICA
from ..logs import OFFSET
from .state import NOT_LOOKED, follows, leads, leads_newest, tiering


def _take_office(k: Algebra, s: View, replica: Value, isr: Value) -> Update:
    """The update of an election: the new leader knows of the remote log when its manager has run.

    Without tiering nothing below its local log start is served.
    """
    epoch = s.newest_epoch + 1
    start = k.ite(s.tiered == 1, s.log_start[replica], s.local_start[replica])
    forgets = {"highest_remote": {replica: NOT_LOOKED}} if k.rules.looks_anew else {}
    return s.update(
        newest_epoch=epoch,
        epoch_leader={epoch: replica},
        isr=isr,
        leader_epoch={replica: epoch},
        log_start={replica: start},
        jumped_from={replica: -1},
        **forgets,
    )


@tiering.action(replica=REPLICA)
def elect_leader(k: Algebra, s: View, replica: Value) -> Step:
    """The controller elects a member of the ISR, which takes office: the leader itself when it has restarted."""
    yield "epoch_available", s.newest_epoch < k.c.max_leader_epoch
    yield "in_isr", k.member(replica, s.isr)
    yield _take_office(k, s, replica, s.isr)


@tiering.action(replica=REPLICA)
def elect_unclean_leader(k: Algebra, s: View, replica: Value) -> Step:
    """All of the ISR are gone, and the controller elects a replica that is not in it."""
    yield "unclean_allowed", k.c.unclean == 1
    yield "epoch_available", s.newest_epoch < k.c.max_leader_epoch
    yield "outside_isr", k.negate(k.member(replica, s.isr))
    yield _take_office(k, s, replica, k.only(replica))


@tiering.action(leader=REPLICA, follower=REPLICA)
def become_follower(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A replica hears of a newer leader, and cuts off what differs from that leader's log (``fencing``).

    What lies below the leader's log start it cannot compare, so that its own log begins there, too. Where it is to cut
    below its local log start, nothing is left of its log, as in ``UnifiedLog.truncateTo``, or what is remote below.
    """
    begin = k.max(s.log_start[leader], s.log_start[follower])
    end = k.min(s.leo[leader], s.leo[follower])

    def differs(offset: Value) -> Value:
        other = s.record_epoch[leader, offset] != s.record_epoch[follower, offset]
        return k.all(begin <= offset, offset < end, other)

    cut = k.first(OFFSET, differs, end)
    emptied = cut < s.local_start[follower]
    start, local = s.log_start[follower], s.local_start[follower]
    if k.rules.drops_uncompared:
        start = k.ite(begin <= cut, begin, start)
        local = k.max(local, start)
    left = cut if k.rules.forgets_remote else k.min(start, cut)
    start, local = k.ite(emptied, left, start), k.ite(emptied, cut, local)
    yield "not_leader_itself", leader != follower
    yield "presumes_leadership", leads(k, s, leader)
    yield "epoch_newer", s.leader_epoch[follower] < s.leader_epoch[leader]
    yield s.update(
        leader_epoch={follower: s.leader_epoch[leader]},
        leo={follower: cut},
        hw={follower: k.max(local, k.min(s.hw[follower], cut))},
        local_start={follower: local},
        log_start={follower: start},
        jumped_from={follower: -1},
    )


@tiering.action(leader=REPLICA)
def leader_write(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader appends a producer's record in its own epoch."""
    end = s.leo[leader]
    yield "presumes_leadership", leads(k, s, leader)
    yield "log_not_full", end < k.c.log_size
    yield s.update(leo={leader: end + 1}, record_epoch={(leader, end): s.leader_epoch[leader]})


@tiering.action(leader=REPLICA, follower=REPLICA)
def follower_fetch(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """Case 1: the fetch offset is on the leader, and the response has the record, the high watermark, the log start."""
    end = s.leo[follower]
    local = k.max(s.local_start[follower], s.log_start[leader])
    yield "follows_leader", follows(k, s, leader, follower)
    yield "offset_is_local", s.local_start[leader] <= end
    yield "record_available", end < s.leo[leader]
    yield s.update(
        leo={follower: end + 1},
        record_epoch={(follower, end): s.record_epoch[leader, end]},
        # A new leader's high watermark may be behind; no log has one below its local log start.
        hw={follower: k.max(local, k.min(s.hw[leader], end + 1))},
        log_start={follower: k.max(s.log_start[follower], s.log_start[leader])},
        local_start={follower: local},
    )


@tiering.action(leader=REPLICA)
def leader_inc_high_watermark(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader counts one more record as committed: all of the ISR have it. A deposed one's ISR moved on."""
    hw = s.hw[leader]

    def has_it(member: Value) -> Value:
        return k.any(member == leader, k.all(follows(k, s, leader, member), hw < s.leo[member]))

    yield "presumes_leadership", leads(k, s, leader)
    yield "record_above_hw", hw < s.leo[leader]
    yield "in_isr", k.member(leader, s.isr)
    yield "isr_has_it", k.forall(REPLICA, lambda r: k.implies(k.member(r, s.isr), has_it(r)))
    yield s.update(hw={leader: hw + 1})


@tiering.action()
def end_transaction(k: Algebra, s: View) -> Step:
    """The transaction that begins at the end of what is stable is over, or there was none."""
    yield "transaction_open", s.stable < k.c.log_size
    yield s.update(stable=s.stable + 1)


@tiering.action(leader=REPLICA, follower=REPLICA)
def leader_shrink_isr(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The controller's leader takes out a follower that lags."""
    yield "true_leader", leads_newest(k, s, leader)
    yield "not_leader_itself", leader != follower
    yield "in_isr", k.member(follower, s.isr)
    yield s.update(isr=k.without_member(s.isr, follower))


@tiering.action(leader=REPLICA, follower=REPLICA)
def leader_expand_isr(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The controller's leader takes in a follower that has reached its high watermark (KAFKA-7128)."""
    hw = s.hw[leader]
    own = k.all(hw < s.leo[leader], s.record_epoch[leader, hw] == s.leader_epoch[leader])
    yield "true_leader", leads_newest(k, s, leader)
    yield "follows_leader", follows(k, s, leader, follower)
    yield "outside_isr", k.negate(k.member(follower, s.isr))
    yield "reached_high_watermark", hw <= s.leo[follower]
    yield "hw_reached_epoch", k.any(hw == s.leo[leader], own)
    if k.rules.whole_isr:
        whole = s.local_start[follower] <= s.log_start[leader]
        yield "has_all_there_is", k.any(s.tiered == 1, whole)
    if not k.rules.isr_hears_start:
        yield s.update(isr=k.with_member(s.isr, follower))
        return
    # The response that told it of the high watermark has told it of the log start, too.
    start = k.ite(s.tiered == 1, s.log_start[follower], k.max(s.log_start[follower], s.log_start[leader]))
    local = k.max(s.local_start[follower], start)
    yield s.update(
        isr=k.with_member(s.isr, follower),
        log_start={follower: start},
        local_start={follower: local},
        hw={follower: k.max(s.hw[follower], local)},
    )


@tiering.action(replica=REPLICA)
def replace_replica(k: Algebra, s: View, replica: Value) -> Step:
    """A replica outside the ISR loses its disk, or another broker is given its place: it is empty."""
    yield "outside_isr", k.negate(k.member(replica, s.isr))
    yield "not_empty", s.leo[replica] != 0
    yield s.update(
        leader_epoch={replica: -1},
        log_start={replica: 0},
        local_start={replica: 0},
        leo={replica: 0},
        hw={replica: 0},
        highest_remote={replica: NOT_LOOKED},
        jumped_from={replica: -1},
    )
