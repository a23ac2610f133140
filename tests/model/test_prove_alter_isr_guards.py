"""What the proof of kip-497 needs of the text: each guard is dropped alone, and its twins are tried.

``NEEDED``: the conjunct that a first counterexample to induction breaks. ``REDUNDANT``: every promise is still proved
without the guard, for any number of replicas, offsets and epochs; and why that is so.
"""

from __future__ import annotations

import pytest
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.proof_alter_isr import kip_497
from fencepost.model.prove.counterexample import breaking_run
from fencepost.model.prove.run import judge

from .guards import confirmed, counterexample_without, guards_of, proved_without

KIP_497 = fencing.traced("kip-497")

NEEDED = {
    "controller_elect_leader.in_quorum_isr": "leader_in_isr",
    "controller_elect_leader.epoch_available": "type_ok",
    "controller_shrink_isr.epoch_available": "type_ok",
    "become_leader.names_leader": "weak_isr",
    "become_leader.epoch_newer": "weak_isr",
    "become_follower.epoch_newer": "weak_isr",
    "become_follower.presumes_leadership": "weak_isr",
    "become_follower.leader_epoch_matches": "log_is_a_prefix",
    "leader_write.presumes_leadership": "type_ok",
    "leader_write.record_available": "type_ok",
    "leader_write.log_not_full": "type_ok",
    "follower_fetch.epoch_not_fenced": "log_matching",
    "follower_fetch.record_available": "type_ok",
    "leader_inc_high_watermark.presumes_leadership": "committed_never_lost",
    "leader_inc_high_watermark.record_above_hw": "type_ok",
    "leader_inc_high_watermark.isr_acknowledges": "weak_isr",
    "restart.stored_high_watermark": "consumers_agree",
    "follower_acknowledge.epoch_not_fenced": "acknowledged_is_held",
    "leader_propose_shrink.not_leader_itself": "asked_by_a_leader",
    "leader_propose_shrink.in_isr": "leader_counts_proposals",
    "leader_propose_expand.presumes_leadership": "later_members_have_it",
    "leader_propose_expand.epoch_not_fenced": "later_members_have_it",
    "leader_propose_expand.reached_high_watermark": "later_members_have_it",
    "leader_propose_expand.hw_reached_epoch": "later_members_have_it",
    "controller_alter_isr.request_sent": "nothing_altered_before_the_start",
    "controller_alter_isr.leader_epoch_matches": "strong_isr",
    "controller_alter_isr.partition_epoch_matches": "strong_isr",
    "leader_take_isr.presumes_leadership": "leader_counts_proposals",
    "leader_take_isr.partition_epoch_newer": "asked_is_counted",
}

REDUNDANT = {
    "controller_elect_leader.not_leader_yet": "the leader is elected again, in a new epoch",
    "controller_shrink_isr.leads_or_in_isr": "a new epoch that changes nothing else",
    "become_leader.request_sent": "a request that was not sent names no leader",
    "become_follower.not_leader_itself": "a leader that is in the request's epoch has nothing newer to take up",
    "become_follower.request_sent": "a request that was not sent names no leader",
    "become_follower.names_leader": "whoever presumes leadership in an epoch is the one that its request names",
    "become_follower.truncates_backward": "no offset at which two logs agree is above either's end",
    "follower_fetch.presumes_leadership": "whom a replica follows has its epoch's records, a leader still or not",
    "follower_fetch.follows_leader": "two logs of one epoch are prefixes of one history",
    "restart.something_lost": "nothing changes",
    "follower_acknowledge.not_leader_itself": "what a leader has told itself is not remembered",
    "follower_acknowledge.presumes_leadership": "what a replica is told that does not lead is not remembered",
    "follower_acknowledge.follows_leader": "whoever is in the epoch has a prefix of its history",
    "follower_acknowledge.something_new": "the leader is told what it knows",
    "leader_propose_shrink.presumes_leadership": "a replica that does not lead knows no partition epoch to ask in",
    "leader_propose_shrink.not_caught_up": "the leader proposes to take out a follower that has everything",
    "leader_propose_shrink.not_proposed": "what is proposed already counts as it did",
    "leader_propose_expand.outside_isr": "a replica that is in the ISR counts already",
    "leader_propose_expand.follows_leader": "whoever is in the epoch and reaches the high watermark may join",
    "leader_propose_expand.not_proposed": "what is proposed already counts as it did",
    "controller_alter_isr.changes_asked": "where a request asks nothing of a replica, its place does not change",
}

TWINS = {
    "kip-497-eager": ("weak_isr", "strong_isr", 8),
    "kip-497-forgets": ("leader_counts_proposals", "strong_isr", 9),
    "kip-497-fenced": ("leader_counts_proposals", "strong_isr", 12),
}
"""The variants that are not safe: the conjunct that a first counterexample to induction breaks; and the promise that a
run from the initial state breaks, with the number of its steps.
"""


def test_every_guard_is_accounted_for_once() -> None:
    assert sorted([*NEEDED, *REDUNDANT]) == guards_of(KIP_497)


def test_every_twin_is_accounted_for_once() -> None:
    assert set(TWINS) == kip_497.twins


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", NEEDED)
def test_without_it_an_obligation_fails(guard: str) -> None:
    assert counterexample_without(kip_497, guard) == NEEDED[guard]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", REDUNDANT)
def test_without_it_every_promise_is_still_proved(guard: str) -> None:
    proved_without(kip_497, guard)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", TWINS)
def test_no_twin_is_proved(variant: str) -> None:
    run = judge(kip_497, fencing.traced(variant))
    conjunct, promise, steps = TWINS[variant]
    assert confirmed(run).conjunct == conjunct
    broken = breaking_run(run.attached)
    assert broken is not None and broken.path is not None
    assert (broken.violated, len(broken.path)) == (promise, steps)
