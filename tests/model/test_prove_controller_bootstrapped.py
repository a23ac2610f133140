"""The proof of kip-631-safe where the log begins with an image: every promise, and every lemma of its own is needed."""

from __future__ import annotations

import copy
from random import Random

import pytest
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.model.interpret.symbolic_unbounded import Unbounded
from fencepost.model.protocols.controller.proof import kip_631
from fencepost.model.protocols.controller.proof_bootstrapped import kip_631_bootstrapped
from fencepost.model.prove.finite import Concrete
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove
from fencepost.model.prove.solve import RLIMIT, ask

SEED = 631
MOST = RLIMIT // 8
"""Of z3's resource units, for one obligation: about a second."""
SAFE = kip_631_bootstrapped.protocol.traced()
OWN = {
    "somebody_is_a_broker": "hear_of_epoch.known_isr_is_never_empty",
    "topics_are_there": "elect_leader.partition_is_created_first",
    "first_version_is_not_led": "load_snapshot.isr_is_counted_on",
    "known_isr_is_never_empty": "fence_broker.isr_is_never_empty",
}
"""For each lemma that the other proof lacks, or has in other words, an obligation that is not proved without it."""

TWINS = {
    "elects-fenced": "elect_leader.fenced_broker_leads_nothing",
    "removes-last": "fence_broker.isr_is_never_empty",
    "keeps-pending": "hear_of_epoch.state_is_of_stable_prefix",
    "answers-pending": "hear_registration.broker_epoch_is_stable",
    "two-snapshots": "order_snapshot.one_is_busy",
}
"""Variants that are not safe, each with an obligation that a counterexample to induction breaks."""


def proved(proof: Proof, name: str) -> bool:
    """Whether z3 refutes the denial of ``action.conjunct``."""
    action, _, conjunct = name.partition(".")
    obligation = Obligations(attach(proof, SAFE)).obligation(action, conjunct)
    return ask(obligation.smt, rlimit=RLIMIT // 2).proved


def test_it_is_the_other_half_of_one_proof() -> None:
    registered = REGISTRY["controller"]
    assert registered.require_proofs() == (kip_631, kip_631_bootstrapped)
    assert registered.require_proofs("two-snapshots") == (kip_631, kip_631_bootstrapped)
    assert [proof.told for proof in registered.require_proofs()] == ["at bootstrapped 0", "at bootstrapped 1"]
    assert kip_631_bootstrapped.follows == kip_631.follows
    assert set(kip_631_bootstrapped.lemmas) == {*kip_631.lemmas, *OWN}
    assert kip_631_bootstrapped.hint_texts.keys() == kip_631.hint_texts.keys()


@pytest.mark.nightly(seconds=120)
@pytest.mark.parametrize("seed", range(10))
def test_every_promise_is_proved(seed: int) -> None:
    attached = attach(kip_631_bootstrapped, SAFE)
    run = prove(attached, seed=seed, shuffle=seed or None, witnesses=False)
    most = max(result.answer.resources for result in run.results)
    print(f"seed {seed}: {most:,} resource units at most")
    assert most <= MOST
    assert [result.obligation.name for result in run.failed] == []
    assert {result.obligation.conjunct for result in run.results} == set(attached.conjuncts)


@pytest.mark.nightly(seconds=60)
def test_every_action_can_happen_but_for_one_that_is_proved_not_to() -> None:
    run = prove(attach(kip_631_bootstrapped, SAFE), conjuncts=["stable_is_in_log"])
    assert [w.action for w in run.witnesses] == [action.name for action in SAFE.actions]
    assert [w.action for w in run.witnesses if not w.right] == []
    assert [w.action for w in run.witnesses if w.never] == ["create_topic"]


def test_what_may_happen_is_not_shown_never_to() -> None:
    """The planted fault: another action is said never to happen, and stays without a witness."""
    assert ask(Obligations(attach(kip_631_bootstrapped, SAFE)).impossible("create_topic")).proved
    wrong = copy.copy(kip_631_bootstrapped)
    wrong.never = frozenset({"resign"})
    run = prove(attach(wrong, SAFE), actions=["resign"], conjuncts=["stable_is_in_log"])
    assert [(w.action, w.never, w.right) for w in run.witnesses] == [("resign", False, False)]
    assert run.verdict is Verdict.UNKNOWN


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lemma", OWN)
def test_every_lemma_of_its_own_is_needed(lemma: str) -> None:
    less = copy.copy(kip_631_bootstrapped)
    less.lemmas = {name: each for name, each in kip_631_bootstrapped.lemmas.items() if name != lemma}
    assert proved(kip_631_bootstrapped, OWN[lemma])
    assert not proved(less, OWN[lemma])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", TWINS)
def test_no_variant_with_a_hole_is_proved(variant: str) -> None:
    action, _, conjunct = TWINS[variant].partition(".")
    attached = attach(kip_631_bootstrapped, kip_631_bootstrapped.protocol.traced(variant))
    run = prove(attached, actions=[action], conjuncts=[conjunct], witnesses=False)
    assert run.verdict is Verdict.VIOLATED


def test_whoever_is_named_at_first_is_any_replica() -> None:
    """With no bound no replica has a number: that somebody is named is all that is known, and that there is one."""
    unbounded = Unbounded(attach(kip_631_bootstrapped, SAFE).traced)
    told = " ".join(unbounded.initial().sexpr().split())
    assert "(not (= somebody none))" in told


def test_all_conjuncts_hold_along_walks() -> None:
    concrete = Concrete(attach(kip_631_bootstrapped, SAFE), kip_631_bootstrapped.sizes[2])
    random, actions = Random(SEED), set()
    for _ in range(6):
        state = concrete.system.initial
        assert concrete.broken(state) == []
        for _ in range(14):
            possible = [(step[0], after) for step in concrete.base.by_step if (after := concrete.step(state, *step))]
            if not possible:
                break
            # An action first, so that one with few parameters is not rare.
            action = random.choice(sorted({name for name, _ in possible}))
            state = random.choice([after for name, after in possible if name == action])
            assert concrete.broken(state) == [], (action, concrete.shown(state))
            actions.add(action)
    print(f"seed {SEED}: {sorted(actions)}")
    assert len(actions) > 12
