"""The proof of kip-320 with no bound: it holds, for every seed and order; every lemma and hint of it is needed.

``HYPOTHESIS_PROFILE=long`` asks ten seeds and orders instead of two, and walks longer.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from random import Random

import pytest
import z3
from fencepost.model.core.ground import Params, State, ground
from fencepost.model.explore import Verdict
from fencepost.model.interpret.staged import stage
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.proof import kip_320
from fencepost.model.prove.finite import Concrete
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove
from fencepost.model.prove.solve import RLIMIT, ask

pytestmark = pytest.mark.draws

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
SEED = 320

NEEDED_FOR = {
    "log_matching": "become_follower.log_is_a_prefix",
    "epochs_in_order": "controller_elect_leader.final_isrs_shrink",
    "request_names_a_member": "become_leader.older_epochs_are_sealed",
    "controller_has_the_final_isr": "controller_elect_leader.final_isrs_shrink",
    "request_has_the_final_isr": "become_leader.leader_knows_the_final_isr",
    "leader_knows_the_final_isr": "become_follower.weak_isr",
    "leader_as_requested": "leader_write.leader_has_the_whole_history",
    "newest_started_was_given_out": "controller_elect_leader.older_epochs_are_sealed",
    "started_by_the_leader": "controller_elect_leader.later_isrs_hold_the_committed",
    "record_in_its_history": "leader_write.log_matching",
    "log_is_a_prefix": "become_follower.strong_isr",
    "leader_has_the_whole_history": "become_follower.weak_isr",
    "final_isrs_shrink": "become_leader.older_epochs_are_sealed",
    "older_epochs_are_sealed": "leader_inc_high_watermark.committed_never_lost",
    "committed_in_a_started_epoch": "controller_elect_leader.later_isrs_hold_the_committed",
    "later_histories_hold_the_committed": "become_follower.strong_isr",
    "later_isrs_hold_the_committed": "become_leader.weak_isr",
    "hw_knows_no_later_commit": "become_leader.weak_isr",
    "leader_counts_its_own_commits": "leader_expand_isr.committed_never_lost",
}
"""For each lemma an obligation that is not proved without it. Promises that nothing rests on are not listed."""

FOR_CVC5 = {"hw_within_log"}
"""Lemmas that z3 does without, as they follow from the range of an index, and cvc5 does not (test_prove_cvc5.py)."""

WITHOUT_HINT = {
    "when_committed": "become_leader.weak_isr",
    "_sealed_or_newest": "leader_inc_high_watermark.committed_never_lost",
}
"""For each hint an obligation that z3 leaves open without it, asked with all hypotheses in their order."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", ["kip-320", "kip-320-restarts"])
def test_every_promise_is_proved(variant: str) -> None:
    attached = attach(kip_320, fencing.traced(variant))
    run = prove(attached)
    assert [result.obligation.name for result in run.failed] == []
    assert run.verdict is Verdict.HOLDS
    actions = [action.name for action in attached.traced.actions]
    asked = {(result.obligation.action, result.obligation.conjunct) for result in run.results}
    assert asked == {(action, name) for action in ("initial", *actions) for name in attached.conjuncts}
    assert len(run.results) == len(asked)
    # Each is far from the bound at which z3 would give up, and no action is out of reach.
    assert max(result.answer.resources for result in run.results) < RLIMIT / 4
    assert [witness.action for witness in run.witnesses] == actions
    assert all(witness.found is not None for witness in run.witnesses)


def test_what_is_promised() -> None:
    attached = attach(kip_320, fencing.traced())
    promises = [name for name, conjunct in attached.conjuncts.items() if conjunct.promise]
    present = [name for name in fencing.invariant_names if name in fencing.traced().invariants or name == "type_ok"]
    assert promises == [*present, "log_matching", "committed_never_lost", "consumers_agree"]
    assert all(lemma.doc.endswith(".") and lemma.doc.count(". ") == 0 for lemma in kip_320.lemmas.values())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(1, 11 if LONG else 3))
def test_neither_seed_nor_order_changes_a_verdict(seed: int) -> None:
    run = prove(attach(kip_320, fencing.traced()), seed=seed, shuffle=seed, witnesses=False)
    print(f"seed {seed}: {max(result.answer.resources for result in run.results):,} resource units at most")
    assert [result.obligation.name for result in run.failed] == []


def without_lemma(name: str) -> Proof:
    proof = copy.copy(kip_320)
    proof.lemmas = {key: lemma for key, lemma in kip_320.lemmas.items() if key != name}
    return proof


def test_every_lemma_is_accounted_for() -> None:
    used_by_none = {"committed_never_lost", "consumers_agree"}
    assert set(NEEDED_FOR) == set(kip_320.lemmas) - used_by_none - FOR_CVC5
    assert all(kip_320.lemmas[name].promise for name in used_by_none)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lemma", NEEDED_FOR)
def test_every_lemma_is_needed(lemma: str) -> None:
    action, _, conjunct = NEEDED_FOR[lemma].partition(".")
    traced = fencing.traced()
    assert ask(Obligations(attach(kip_320, traced)).obligation(action, conjunct).smt).proved
    assert not ask(Obligations(attach(without_lemma(lemma), traced)).obligation(action, conjunct).smt).proved


def test_z3_proves_it_all_without_the_lemmas_for_cvc5() -> None:
    proof = copy.copy(kip_320)
    proof.lemmas = {key: lemma for key, lemma in kip_320.lemmas.items() if key not in FOR_CVC5}
    run = prove(attach(proof, fencing.traced()), witnesses=False)
    assert [result.obligation.name for result in run.failed] == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("hint", WITHOUT_HINT)
def test_every_hint_is_needed(hint: str) -> None:
    action, _, conjunct = WITHOUT_HINT[hint].partition(".")
    proof = copy.copy(kip_320)
    proof.hint_texts = {
        name: [spec for spec in specs if spec.text.__name__ != hint] for name, specs in kip_320.hint_texts.items()
    }
    with_it, without = (
        ask(Obligations(attach(each, fencing.traced())).obligation(action, conjunct).smt) for each in (kip_320, proof)
    )
    assert with_it.proved and not without.proved
    # The few hypotheses that its core names may do without. What is left open is not taken for a counterexample.
    run = prove(attach(proof, fencing.traced()), actions=[action], conjuncts=[conjunct], witnesses=False)
    assert run.verdict is not Verdict.VIOLATED


def test_every_hint_is_accounted_for() -> None:
    given = {spec.text.__name__ for specs in kip_320.hint_texts.values() for spec in specs}
    assert given == set(WITHOUT_HINT)


# The ghosts say what they are said to say.


def test_what_was_committed_never_changes() -> None:
    """Promises about committed records mean something only if these are never rewritten, nor taken back."""
    obligations = Obligations(attach(kip_320, fencing.traced()))
    offset = z3.Int("offset")
    rows = ("committed_id", "committed_epoch", "committed_in")
    for action in obligations.attached.traced.actions:
        step = obligations.step(action.name)
        before, after = (s.read("committed_end", ()) for s in (step.before, step.after))
        same = [step.before.read(row, (offset,), [True]) == step.after.read(row, (offset,), [True]) for row in rows]
        solver = z3.Solver()
        solver.add(0 <= offset, offset < before, z3.Not(z3.And(before <= after, *same)))
        assert solver.check() == z3.unsat, action.name


def reachable(concrete: Concrete) -> Iterator[tuple[State, State, str]]:
    """Every state with its ghosts, and one step that leads to it: breadth first."""
    first = concrete.system.initial
    seen = {first}
    yield first, first, "initial"
    for state in (todo := [first]):
        for action, params in concrete.base.by_step:
            after = concrete.step(state, action, params)
            if after is not None and after not in seen:
                seen.add(after)
                todo.append(after)
                yield state, after, action


def test_all_conjuncts_hold_in_every_reachable_state() -> None:
    attached = attach(kip_320, fencing.traced())
    concrete = Concrete(attached, kip_320.sizes[1])
    # Compiled, as there are many states; the texts themselves are asked of some.
    compiled = stage(ground(attached.traced.protocol.traced("kip-320"), concrete.base.constants)).invariants
    assert set(compiled) == set(attached.conjuncts)
    own, commits = set(), 0
    for number, (_, state, action) in enumerate(reachable(concrete)):
        for name, holds in compiled.items():
            assert holds(state), (name, action, concrete.shown(state))
        if number % 50 == 0:
            assert concrete.broken(state) == []
        own.add(concrete.own(state))
        commits += concrete.shown(state).get("committed_end") == "2"
    # Ghosts add nothing to a run and take nothing away: the states without them are those of the model.
    assert len(own) == 5973
    assert commits


def rank(actions: list[str]) -> Callable[[tuple[str, Params]], int]:
    return lambda step: actions.index(step[0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", ["kip-320", "kip-320-restarts"])
@pytest.mark.parametrize("size", [1, 2])
def test_all_conjuncts_hold_along_walks(variant: str, size: int) -> None:
    concrete = Concrete(attach(kip_320, fencing.traced(variant)), kip_320.sizes[size])
    random = Random(SEED)
    taken = set()
    for _ in range(200 if LONG else 30):
        state = concrete.system.initial
        for _ in range(60):
            # An action first, so that one with few parameters is not rare.
            actions = random.sample(concrete.base.actions, len(concrete.base.actions))
            steps = sorted(random.sample(list(concrete.base.by_step), len(concrete.base.by_step)), key=rank(actions))
            for action, params in steps:
                after = concrete.step(state, action, params)
                if after is not None:
                    break
            else:
                break
            assert concrete.broken(after) == [], (action, params, concrete.shown(state))
            state = after
            taken.add(action)
    print(f"seed {SEED}: {sorted(taken)}")
    assert taken == set(concrete.base.actions)


def test_a_wrong_lemma_is_seen_in_a_reachable_state() -> None:
    """The search above can fail: without the update of the histories their lemmas do not hold."""
    proof = copy.copy(kip_320)
    proof.update_texts = {name: text for name, text in kip_320.update_texts.items() if name != "leader_write"}
    concrete = Concrete(attach(proof, fencing.traced()), kip_320.sizes[0])
    broken = {name for _, state, _ in reachable(concrete) for name in concrete.broken(state)}
    assert {"record_in_its_history", "log_is_a_prefix"} <= broken
