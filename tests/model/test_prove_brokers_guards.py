"""What the proof of kip-320-brokers needs of the text: each guard is dropped alone.

``NEEDED``: the conjunct that a first counterexample to induction breaks. ``IMPLIED`` and ``STUTTERS``: the invariant
and the guards beside it say as much, but for steps that change nothing. ``REDUNDANT``: every promise is still proved
without it, for any number of replicas, offsets and epochs; and why that is so. What a run shows of each guard at small
constants is in ``test_fencing_brokers.py``.
"""

from __future__ import annotations

import pytest
from fencepost.model.protocols.fencing.proof_brokers import kip_320_brokers
from fencepost.model.prove.implied import Implications, Relation

from . import test_fencing_brokers as explored
from .guards import counterexample_without, guards_of, proved_without

BROKERS = kip_320_brokers.protocol.traced(kip_320_brokers.variant)

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
    "leader_shrink_isr.not_leader_itself": "leader_in_isr",
    "leader_shrink_isr.true_leader": "strong_isr",
    "leader_expand_isr.epoch_not_fenced": "weak_isr",
    "leader_expand_isr.reached_high_watermark": "weak_isr",
    "leader_expand_isr.hw_reached_epoch": "strong_isr",
    "leader_expand_isr.true_leader": "strong_isr",
    "restart.stored_high_watermark": "consumers_agree",
    "follower_acknowledge.epoch_not_fenced": "acknowledged_is_held",
}

IMPLIED = (
    "become_leader.request_sent",
    "become_follower.not_leader_itself",
    "become_follower.request_sent",
    "become_follower.names_leader",
    "become_follower.truncates_backward",
)

STUTTERS = (
    "follower_acknowledge.not_leader_itself",
    "follower_acknowledge.presumes_leadership",
    "follower_acknowledge.something_new",
)

REDUNDANT = {
    "controller_elect_leader.not_leader_yet": "the leader is elected again, in a new epoch",
    "controller_shrink_isr.leads_or_in_isr": "a new epoch that changes nothing else",
    "follower_fetch.presumes_leadership": "whom a replica follows has its epoch's records, a leader still or not",
    "follower_fetch.follows_leader": "two logs of one epoch are prefixes of one history",
    "leader_shrink_isr.in_isr": "a replica that is not in the ISR is taken out of it",
    "leader_shrink_isr.not_caught_up": "the leader takes out a follower that has everything",
    "leader_expand_isr.outside_isr": "a replica that is in the ISR is taken into it",
    "leader_expand_isr.follows_leader": "whoever is in the epoch and reaches the high watermark may join",
    "restart.something_lost": "nothing changes",
    "follower_acknowledge.follows_leader": "whoever is in the epoch has a prefix of its history",
}

NO_RUN = {
    "become_leader.names_leader": "an epoch has one leader, and the lemmas say so; of two no run breaks a promise",
    "become_follower.presumes_leadership": "no run has a replica in an epoch without a role in it; no lemma says so",
    "leader_inc_high_watermark.record_above_hw": "who has told what is of the leader's log; no lemma says so",
}
"""What the proof needs, and no run does that was explored; and why."""


@pytest.fixture(scope="module")
def implications() -> Implications:
    return Implications(kip_320_brokers, BROKERS)


def test_every_guard_is_accounted_for_once() -> None:
    assert sorted([*NEEDED, *IMPLIED, *STUTTERS, *REDUNDANT]) == guards_of(BROKERS)


def test_what_is_explored_agrees_with_what_is_proved() -> None:
    """A run that breaks a promise breaks the induction; what is proved of steps is so of those explored."""
    assert sorted([*explored.BREAKS, *NO_RUN]) == sorted(NEEDED)
    assert set(IMPLIED) <= set(explored.IMPLIED)
    assert set(STUTTERS) <= set(explored.STUTTERS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", NEEDED)
def test_without_it_an_obligation_fails(guard: str) -> None:
    assert counterexample_without(kip_320_brokers, guard) == NEEDED[guard]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", [*IMPLIED, *STUTTERS])
def test_without_it_there_are_no_steps_but_such_as_change_nothing(guard: str, implications: Implications) -> None:
    found = implications.judge(BROKERS.drop(guard), guard.partition(".")[0])
    assert found.relation is (Relation.SAME if guard in IMPLIED else Relation.STILL)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", REDUNDANT)
def test_without_it_every_promise_is_still_proved(guard: str) -> None:
    proved_without(kip_320_brokers, guard)
