"""What one node of a running cluster does at once: the steps that ``kip-320-cluster`` has besides.

In the other variants an exchange is one step, and changes both sides. Here whatever a message changes at its receiver
is a step of its own, so that a late answer, or one that never comes, is a run of the model. So a leader asks the
controller for an ISR, the controller alters it, and the leader learns of it, in three steps; until then it counts on
whoever may be in the ISR (KIP-497). A replica that hears of a new leader gives up its role before it knows where to cut
its log. What is not synced may be lost with power. And what clients were told is remembered, to be held to.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA
from ..logs import END_OFFSET, EPOCH, OFFSET
from .actions import send_leader_and_isr
from .state import RECORD, Rules, fencing, is_true_leader, presumes_leadership, same_record, sent


def _running(rules: Rules) -> bool:
    return rules.running


def _loses_power(rules: Rules) -> bool:
    return rules.loses_power


# The controller.


@fencing.action(failed=REPLICA, new_leader=REPLICA, present=_running)
def controller_fail_over(k: Algebra, s: View, failed: Value, new_leader: Value) -> Step:
    """The controller takes a failed leader out of the ISR and makes another member the leader, in one epoch."""
    yield "leads", s.quorum_leader == failed
    yield "another", new_leader != failed
    yield "in_quorum_isr", k.member(new_leader, s.quorum_isr)
    yield "epoch_available", s.next_leader_epoch <= k.c.max_leader_epoch
    yield send_leader_and_isr(k, s, new_leader, k.without_member(s.quorum_isr, failed))


@fencing.action(leader=REPLICA, present=_running)
def controller_grant_isr(k: Algebra, s: View, leader: Value) -> Step:
    """The controller takes up the ISR that the true leader has asked for, going by the ISR that holds (KIP-497).

    Whoever is told of this leader epoch from now on is told of this ISR.
    """
    isr = s.asked_isr[leader]
    yield "true_leader", is_true_leader(k, s, leader)
    current = s.isr[leader] == s.quorum_isr
    if k.rules.fences:
        # The same ISR may hold again, in another partition epoch, of which the leader has not heard.
        current = k.all(current, s.request_isr[s.quorum_leader_epoch] == s.quorum_isr)
    yield "isr_is_current", current
    yield "something_asked", isr != s.quorum_isr
    yield s.update(quorum_isr=isr, request_isr={s.quorum_leader_epoch: isr})


# Roles.


@fencing.action(replica=REPLICA, epoch=EPOCH, present=_running)
def hear_of_leader(k: Algebra, s: View, replica: Value, epoch: Value) -> Step:
    """A replica takes up the request that names another leader: it gives up its role, and has none until it follows.

    Apache Kafka's follows at once, and its first fetch tells where the logs part; where nobody leads it follows nobody.
    """
    leader = s.request_leader[epoch]
    yield "request_sent", sent(k, s, epoch)
    if k.rules.shipped:
        yield "names_another", leader != replica
        back = k.all(s.leader_epoch[replica] == epoch, s.leader[replica] == k.NONE)
        yield "epoch_newer", k.any(s.leader_epoch[replica] < epoch, back)
    else:
        yield "names_another", k.all(leader != k.NONE, leader != replica)
        yield "epoch_newer", s.leader_epoch[replica] < epoch
    follows = leader if k.rules.shipped else k.NONE
    yield s.update(leader_epoch={replica: epoch}, leader={replica: follows}, isr={replica: k.EMPTY})


@fencing.action(leader=REPLICA, follower=REPLICA, end=END_OFFSET, present=_running)
def truncate_partly(k: Algebra, s: View, leader: Value, follower: Value, end: Value) -> Step:
    """A round of the truncation, or what was done of it when power was lost: some of what differs is cut off."""
    yield "not_leader_itself", leader != follower
    yield "presumes_leadership", presumes_leadership(s, leader)
    if k.rules.shipped:
        yield "follows_leader", s.leader[follower] == leader
    else:
        yield "lost_role", s.leader[follower] == k.NONE
    yield "leader_epoch_matches", s.leader_epoch[follower] == s.leader_epoch[leader]
    yield "truncates_backward", end < s.leo[follower]
    yield "keeps_what_matches", k.last(OFFSET, lambda o: same_record(k, s, leader, follower, o), -1) < end
    synced = {"synced": {follower: k.min(end, s.synced[follower])}} if k.rules.loses_power else {}
    yield s.update(leo={follower: end}, hw={follower: k.min(end, s.hw[follower])}, **synced)


@fencing.action(replica=REPLICA, stored=END_OFFSET, end=END_OFFSET, present=_loses_power)
def restart_after_loss(k: Algebra, s: View, replica: Value, stored: Value, end: Value) -> Step:
    """A replica loses power, and comes back with its log up to some end that is not below what was synced.

    Otherwise as ``restart``: with its leader epoch, a high watermark that it stored, and no role.
    """
    yield "synced_survives", s.synced[replica] <= end
    yield "within_log", end <= s.leo[replica]
    yield "stored_high_watermark", stored <= k.min(s.hw[replica], end)
    yield (
        "something_lost",
        k.any(
            s.leader[replica] != k.NONE,
            stored < s.hw[replica],
            end < s.leo[replica],
            s.synced[replica] < end,
        ),
    )
    yield s.update(
        leo={replica: end},
        synced={replica: end},
        hw={replica: stored},
        leader={replica: k.NONE},
        isr={replica: k.EMPTY},
    )


# Records and the high watermark.


@fencing.action(leader=REPLICA, record=RECORD, present=_loses_power)
def leader_write_again(k: Algebra, s: View, leader: Value, record: Value) -> Step:
    """A producer sends a record once more, and a presumed leader whose log does not hold it appends it (KIP-98)."""
    end = s.leo[leader]
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "was_sent", record < s.next_record_id
    yield "not_in_log", k.forall(OFFSET, lambda o: k.negate(k.all(o < end, s.record_id[leader, o] == record)))
    yield "log_not_full", end < k.c.log_size
    yield s.update(
        leo={leader: end + 1},
        record_id={(leader, end): record},
        record_epoch={(leader, end): s.leader_epoch[leader]},
    )


@fencing.action(replica=REPLICA, end=END_OFFSET, present=_loses_power)
def flush(_k: Algebra, s: View, replica: Value, end: Value) -> Step:
    """A replica syncs its log, all of it or, where a segment ends, up to there."""
    yield "not_synced", s.synced[replica] < end
    yield "within_log", end <= s.leo[replica]
    yield s.update(synced={replica: end})


@fencing.action(leader=REPLICA, follower=REPLICA, present=_running)
def follower_hear_high_watermark(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A response that brings no record brings the leader's high watermark; a new leader's may be lower."""
    hw = k.min(s.hw[leader], s.leo[follower])
    yield "not_leader_itself", leader != follower
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "follows_leader", s.leader[follower] == leader
    yield "epoch_not_fenced", s.leader_epoch[follower] == s.leader_epoch[leader]
    yield "something_new", s.hw[follower] != hw
    yield s.update(hw={follower: hw})


# The ISR, at its leader.


@fencing.action(leader=REPLICA, follower=REPLICA, present=_running)
def leader_ask_shrink(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A presumed leader asks for an ISR without a follower that lags, as far as its fetches have told."""
    yield "not_leader_itself", leader != follower
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "in_isr", k.member(follower, s.isr[leader])
    yield "not_asked_yet", k.member(follower, s.asked_isr[leader])
    yield "not_caught_up", s.remote_leo[leader, follower] < s.leo[leader]
    yield s.update(asked_isr={leader: k.without_member(s.asked_isr[leader], follower)})


@fencing.action(leader=REPLICA, follower=REPLICA, present=_running)
def leader_ask_expand(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A presumed leader asks for an ISR with a follower that has fetched up to its high watermark in this epoch.

    From now on its high watermark waits for the follower, as the controller may take it in at any time (KIP-497). The
    high watermark has reached the leader's own epoch, as in ``leader_expand_isr`` (KAFKA-7128).
    """
    hw = s.hw[leader]
    yield "not_leader_itself", leader != follower
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "outside_isr", k.negate(k.member(follower, s.isr[leader]))
    yield "not_asked_yet", k.negate(k.member(follower, s.asked_isr[leader]))
    yield "reached_high_watermark", hw <= s.remote_leo[leader, follower]
    if k.rules.shipped:
        # K5: the follower has reached the offset at which the leader's epoch began; the high watermark may be behind.
        end = s.leo[leader]
        began = k.first(OFFSET, lambda o: k.all(o < end, s.record_epoch[leader, o] == s.leader_epoch[leader]), end)
        yield "reached_epoch_start", began <= s.remote_leo[leader, follower]
    else:
        yield (
            "hw_reached_epoch",
            k.any(
                hw == s.leo[leader],
                k.all(hw < s.leo[leader], s.record_epoch[leader, hw] == s.leader_epoch[leader]),
            ),
        )
    yield s.update(
        asked_isr={leader: k.with_member(s.asked_isr[leader], follower)},
        maximal_isr={leader: k.with_member(s.maximal_isr[leader], follower)},
    )


@fencing.action(leader=REPLICA, present=_running)
def leader_ask_again(_k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader asks for something else, beginning with the ISR that it knows. What it asked for stays open."""
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "asked_another", s.asked_isr[leader] != s.isr[leader]
    yield s.update(asked_isr={leader: s.isr[leader]})


@fencing.action(leader=REPLICA, present=_running)
def leader_learn_isr(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader learns which ISR the controller has in its leader epoch; nothing is open any more.

    The controller's answer says so, and each request of this leader epoch that was sent since. An answer to what was
    asked before says nothing of it: it names the ISR's version.
    """
    isr = s.request_isr[s.leader_epoch[leader]]
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "something_new", k.any(s.isr[leader] != isr, s.maximal_isr[leader] != isr, s.asked_isr[leader] != isr)
    ahead = {"ahead": {leader: k.ite(s.isr[leader] != isr, 1, s.ahead[leader])}} if k.rules.forgets else {}
    yield s.update(isr={leader: isr}, maximal_isr={leader: isr}, asked_isr={leader: isr}, **ahead)


@fencing.action(leader=REPLICA, present=lambda rules: rules.forgets)
def leader_replay_isr(_k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader replays the record of the ISR that it knows, and forgets what it has asked for since (K12).

    The controller's answer told it of that ISR first. It is not safe: the controller may have taken up the other one.
    """
    isr = s.isr[leader]
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "not_replayed", s.ahead[leader] == 1
    yield s.update(maximal_isr={leader: isr}, asked_isr={leader: isr}, ahead={leader: 0})


# What clients are told.


@fencing.action(leader=REPLICA, offset=OFFSET, present=_running)
def producer_hears(_k: Algebra, s: View, leader: Value, offset: Value) -> Step:
    """A producer with ``acks=all`` hears that a record is written: it is below the leader's high watermark."""
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "below_high_watermark", offset < s.hw[leader]
    yield "something_new", s.acknowledged[s.record_id[leader, offset]] != offset
    yield s.update(acknowledged={s.record_id[leader, offset]: offset})


@fencing.action(leader=REPLICA, offset=OFFSET, present=_running)
def consumer_reads(_k: Algebra, s: View, leader: Value, offset: Value) -> Step:
    """A consumer is given a record, from below the high watermark of a presumed leader."""
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "below_high_watermark", offset < s.hw[leader]
    yield "something_new", s.read[offset] != s.record_id[leader, offset]
    yield s.update(read={offset: s.record_id[leader, offset]})
