"""The proof of kip-630-votes with no bound: that of kip-630-safe, and what it says of votes on their way.

By day what the votes change is asked, by night all of it. What the proof says of logs and snapshots is that of
kip-630-safe, and ``test_prove_snapshots.py`` asks that it is needed.
"""

from __future__ import annotations

import copy

import pytest
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.model.interpret.staged import stage
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.snapshots.proof import kip_630
from fencepost.model.protocols.snapshots.proof_votes import kip_630_votes
from fencepost.model.prove.counterexample import breaking_run
from fencepost.model.prove.finite import Concrete
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import judge, prove
from fencepost.model.prove.solve import ask

from .guards import confirmed, counterexample_without, guards_of, proved_without
from .test_prove_snapshots import reachable

VOTES = snapshots.traced("kip-630-votes")
ELECTIONS = ("initial", "become_candidate", "grant_vote", "refuse_vote", "become_follower", "hear_vote")

NEEDED_FOR = {
    "granters_moved_on": "become_candidate.votes_are_for_newest",
    "votes_are_for_newest": "hear_vote.electors_moved_on",
    "votes_are_for_better_logs": "hear_vote.blocked_without_acknowledgement",
}
"""For each lemma that is not of the other proof an obligation that is not proved without it."""

NEEDED = {
    "grant_vote.up_to_date": "votes_are_for_better_logs",
    "hear_vote.vote_granted": "no_committed_record_lost",
    "hear_vote.candidate_stands": "held_for_a_follower",
    "hear_vote.of_this_candidacy": "no_committed_record_lost",
}
"""Of guards about votes: the conjunct that a first counterexample to induction breaks without one."""

REDUNDANT = {
    "grant_vote.candidate_stands": "a vote for nobody is heard by nobody",
    "grant_vote.is_voter": "a majority is one of voters",
    "grant_vote.epoch_newer": "a vote that is granted twice is one vote",
    "refuse_vote.candidate_stands": "whoever enters an epoch in which there is nobody to fetch from waits in it",
    "refuse_vote.is_voter": "an observer may enter it, too",
    "refuse_vote.epoch_newer": "whoever is in the epoch stays in it, and fetches a snapshot anew",
    "refuse_vote.out_of_date": "a vote may always be refused",
    "hear_vote.asked_by_candidate": "votes of the newest epoch were granted to whoever stands in it",
    "hear_vote.not_counted": "a vote that is counted twice is one vote",
}
"""Without such a guard every promise is still proved; and why that is so."""


def test_it_is_registered() -> None:
    registered = REGISTRY["snapshots"]
    assert registered.find_proofs() == (kip_630, kip_630_votes)
    assert registered.find_proof("kip-630-votes") is registered.find_proof("late-votes") is kip_630_votes
    assert registered.find_proof() is registered.find_proof("kip-630-nodes") is kip_630
    promises = [name for name, conjunct in attach(kip_630_votes, VOTES).conjuncts.items() if conjunct.promise]
    assert promises == list(snapshots.invariant_names)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("actions", [ELECTIONS, pytest.param((), marks=pytest.mark.nightly(seconds=50))])
def test_every_promise_is_proved(actions: tuple[str, ...]) -> None:
    attached = attach(kip_630_votes, VOTES)
    run = prove(attached, actions=actions)
    assert [result.obligation.name for result in run.failed] == []
    assert run.verdict is Verdict.HOLDS
    wanted = actions or ("initial", *(action.name for action in VOTES.actions))
    names = {(result.obligation.action, result.obligation.conjunct) for result in run.results}
    assert names == {(action, name) for action in wanted for name in attached.conjuncts}
    assert [witness.action for witness in run.witnesses] == [name for name in wanted if name != "initial"]
    assert all(witness.found is not None for witness in run.witnesses)


@pytest.mark.nightly(seconds=50)
@pytest.mark.parametrize("seed", range(1, 4))
def test_neither_seed_nor_order_changes_a_verdict(seed: int) -> None:
    run = prove(attach(kip_630_votes, VOTES), seed=seed, shuffle=seed, witnesses=False)
    print(f"seed {seed}: {max(result.answer.resources for result in run.results):,} resource units at most")
    assert [result.obligation.name for result in run.failed] == []


def test_what_is_not_of_the_other_proof() -> None:
    taken = {name for name, lemma in kip_630.lemmas.items() if kip_630_votes.lemmas[name].text is lemma.text}
    assert set(kip_630_votes.lemmas) - taken == set(NEEDED_FOR)
    assert set(kip_630.lemmas) < set(kip_630_votes.lemmas)
    assert set(kip_630_votes.update_texts) == {*kip_630.update_texts, "hear_vote"} - {"grant_vote"}
    assert dict(kip_630_votes.ghosts).keys() == dict(kip_630.ghosts).keys()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lemma", NEEDED_FOR)
def test_every_lemma_about_votes_is_needed(lemma: str) -> None:
    action, _, conjunct = NEEDED_FOR[lemma].partition(".")
    proof = copy.copy(kip_630_votes)
    proof.lemmas = {key: each for key, each in kip_630_votes.lemmas.items() if key != lemma}
    assert ask(Obligations(attach(kip_630_votes, VOTES)).obligation(action, conjunct).smt).proved
    assert not ask(Obligations(attach(proof, VOTES)).obligation(action, conjunct).smt).proved


def test_the_hint_about_votes_is_needed() -> None:
    proof = copy.copy(kip_630_votes)
    proof.hint_texts = {**kip_630_votes.hint_texts, "hear_vote": []}
    assert not ask(Obligations(attach(proof, VOTES)).obligation("hear_vote", "histories_match").smt).proved


def test_all_conjuncts_hold_in_states_that_are_reached() -> None:
    attached = attach(kip_630_votes, VOTES)
    concrete = Concrete(attached, kip_630_votes.sizes[0])
    compiled = stage(ground(attached.traced.protocol.traced("kip-630-votes"), concrete.base.constants)).invariants
    assert set(compiled) == set(attached.conjuncts)
    taken = set()
    for number, (state, action) in enumerate(reachable(concrete, 4_000)):
        for name, holds in compiled.items():
            assert holds(state), (name, action, concrete.shown(state))
        if number % 400 == 0:
            assert concrete.broken(state) == []
        taken.add(action)
    assert taken >= {"become_candidate", "grant_vote", "hear_vote", "leader_write", "leader_inc_high_watermark"}


def test_a_wrong_lemma_is_seen_in_a_state_that_is_reached() -> None:
    """The search above can fail: whoever is elected has a history, and nothing is told of it here."""
    proof = copy.copy(kip_630_votes)
    proof.update_texts = {name: text for name, text in kip_630_votes.update_texts.items() if name != "hear_vote"}
    concrete = Concrete(attach(proof, VOTES), kip_630_votes.sizes[0])
    assert any("leader_was_elected" in concrete.broken(state) for state, _ in reachable(concrete, 500))


# What it needs of the text.


def test_every_guard_about_votes_is_accounted_for_once() -> None:
    about = [guard for guard in guards_of(VOTES) if guard.partition(".")[0].endswith("_vote")]
    assert sorted([*NEEDED, *REDUNDANT]) == about


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", NEEDED)
def test_without_it_an_obligation_fails(guard: str) -> None:
    assert counterexample_without(kip_630_votes, guard) == NEEDED[guard]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", REDUNDANT)
def test_without_it_every_promise_is_still_proved(guard: str) -> None:
    proved_without(kip_630_votes, guard)


def test_its_twin_is_not_proved() -> None:
    """A vote of a former candidacy: to induction it breaks a promise, and a run does in eleven steps."""
    run = judge(kip_630_votes, snapshots.traced("late-votes"))
    found = confirmed(run)
    assert (found.action, found.conjunct) == ("hear_vote", "no_committed_record_lost")
    broken = breaking_run(run.attached)
    assert broken is not None and broken.path is not None
    assert (broken.violated, len(broken.path)) == ("no_committed_record_lost", 11)
