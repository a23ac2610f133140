"""What the proof of kip-320 needs of the text: each guard is dropped alone, and other variants are tried.

``NEEDED``: the conjunct that a first counterexample to induction breaks. ``REDUNDANT``: every promise is still proved
without the guard, for any number of replicas, offsets and epochs; and why that is so.
"""

from __future__ import annotations

import pytest
from fencepost.model.core.mutants import mutant_named
from fencepost.model.explore import Verdict
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.proof import kip_320
from fencepost.model.prove.counterexample import breaking_run, shown
from fencepost.model.prove.finite import Concrete, Counterexample
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import judge

from .guards import counterexample_without, first_counterexample, guards_of, proved_without

NEEDED = {
    "controller_elect_leader.in_quorum_isr": "leader_in_isr",
    # The bounds are the model's: what holds for all constants must stay within them.
    "controller_elect_leader.epoch_available": "type_ok",
    "controller_shrink_isr.epoch_available": "type_ok",
    "leader_write.record_available": "type_ok",
    "leader_write.log_not_full": "type_ok",
    # Explored, it breaks no promise; but an epoch would have two leaders, and the proof rests on there being one.
    "become_leader.names_leader": "weak_isr",
    "become_leader.epoch_newer": "weak_isr",
    "become_follower.epoch_newer": "weak_isr",
    "become_follower.leader_epoch_matches": "leader_as_requested",
    "leader_write.presumes_leadership": "type_ok",
    "follower_fetch.epoch_not_fenced": "log_matching",
    "follower_fetch.record_available": "type_ok",
    "leader_inc_high_watermark.isr_acknowledges": "weak_isr",
    "leader_shrink_isr.true_leader": "strong_isr",
    "leader_expand_isr.epoch_not_fenced": "weak_isr",
    "leader_expand_isr.reached_high_watermark": "weak_isr",
    "leader_expand_isr.hw_reached_epoch": "strong_isr",
    "leader_expand_isr.true_leader": "strong_isr",
    # No run has a replica in an epoch without a role in it; the lemmas do not say so, as none of them needs it.
    "become_follower.presumes_leadership": "weak_isr",
    "follower_fetch.presumes_leadership": "log_matching",
    "follower_fetch.follows_leader": "log_matching",
    "leader_inc_high_watermark.presumes_leadership": "committed_never_lost",
    "leader_inc_high_watermark.record_above_hw": "type_ok",
    "leader_expand_isr.follows_leader": "weak_isr",
}

REDUNDANT = {
    "controller_elect_leader.not_leader_yet": "the leader is elected again, in a new epoch",
    "controller_shrink_isr.leads_or_in_isr": "a new epoch that changes nothing else",
    "become_leader.request_sent": "a request that was not sent names no leader",
    "become_follower.not_leader_itself": "a leader that is in the request's epoch has nothing newer to take up",
    "become_follower.request_sent": "a request that was not sent names no leader",
    "become_follower.names_leader": "whoever presumes leadership in an epoch is the one that its request names",
    "become_follower.truncates_backward": "no offset at which two logs agree is above either's end",
    "leader_shrink_isr.not_leader_itself": "a leader is caught up with itself",
    "leader_shrink_isr.in_isr": "a replica that is not in the ISR is taken out of it",
    "leader_shrink_isr.not_caught_up": "the leader takes out a follower that has everything",
    "leader_expand_isr.outside_isr": "a replica that is in the ISR is taken into it",
}


def test_every_guard_is_accounted_for_once() -> None:
    assert sorted([*NEEDED, *REDUNDANT]) == guards_of(fencing.traced())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", NEEDED)
def test_without_it_an_obligation_fails(guard: str) -> None:
    assert counterexample_without(kip_320, guard) == NEEDED[guard]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", REDUNDANT)
def test_without_it_every_promise_is_still_proved(guard: str) -> None:
    proved_without(kip_320, guard)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", [v for v in fencing.variants if v not in ("kip-320", "kip-320-restarts")])
def test_no_other_variant_is_proved(variant: str) -> None:
    """Those that are unsafe must not be; of others that are safe these lemmas do not say enough."""
    run = judge(kip_320, fencing.traced(variant))
    found = first_counterexample(run)
    assert found.conjunct in Concrete(run.attached, found.constants).broken(found.after or found.state)


def test_a_shifted_bound_is_noticed() -> None:
    mutant = mutant_named(fencing.traced(), "leader_inc_high_watermark.hw' bound +1")
    assert first_counterexample(judge(kip_320, mutant.traced)).action == "leader_inc_high_watermark"


def test_the_text_itself_is_no_mutant() -> None:
    run = judge(kip_320, fencing.traced())
    assert run.verdict is Verdict.HOLDS and run.results == []


# A counterexample as it is told.


def test_a_counterexample_is_told_with_its_state_step_and_conjunct() -> None:
    run = judge(kip_320, fencing.traced().drop("follower_fetch.epoch_not_fenced"))
    told = shown(run.attached, first_counterexample(run))
    assert told.step.startswith("follower_fetch(leader=")
    assert told.broken.startswith("log_matching for left=")
    assert told.path is None and told.complete and told.searched == 6345
    assert told.reached == "not reached at 2/2/2/2 (6,345 states)"
    assert not set(told.ghosts), "log_matching reads no ghost"
    run_to_it = breaking_run(run.attached)
    assert run_to_it is not None and run_to_it.path is not None
    assert (run_to_it.violated, len(run_to_it.path)) == ("weak_isr", 12)


def test_a_state_that_a_run_reaches_is_told_with_the_run() -> None:
    attached = attach(kip_320, fencing.traced().drop("leader_write.presumes_leadership"))
    concrete = Concrete(attached, kip_320.sizes[0])
    initial = concrete.system.initial
    params = (("leader", 0),)
    after = concrete.step(initial, "leader_write", params)
    assert after is not None
    at_once = Counterexample(concrete.base.constants, initial, "leader_write", params, after, "type_ok", ())
    assert shown(attached, at_once).path == []
    # One step further: the same step after an election.
    elected = concrete.step(initial, "controller_elect_leader", (("new_leader", 1),))
    assert elected is not None
    later = Counterexample(concrete.base.constants, elected, "leader_write", params, after, "type_ok", ())
    told = shown(attached, later)
    assert told.reached == "reached by 1 step at 2/1/1/1"
    assert told.to_json()["path"] == [{"action": "controller_elect_leader", "params": {"new_leader": 1}}]
