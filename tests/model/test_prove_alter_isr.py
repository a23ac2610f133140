"""The proofs of kip-320-brokers and kip-497 with no bound: they hold, for every seed and order; what they need."""

from __future__ import annotations

import copy
from random import Random

import pytest
import z3
from fencepost.model.core.errors import ProtocolError
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.model.interpret.staged import stage
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.proof import kip_320
from fencepost.model.protocols.fencing.proof_alter_isr import kip_497
from fencepost.model.protocols.fencing.proof_brokers import kip_320_brokers
from fencepost.model.prove.finite import Concrete
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove
from fencepost.model.prove.solve import RLIMIT, ask

from .test_prove_fencing import rank, reachable

SEED = 1
KIP_497 = fencing.traced("kip-497")
LEAST = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 0}

NEEDED_FOR = {
    "log_matching": "become_follower.log_is_a_prefix",
    "epochs_in_order": "controller_elect_leader.later_members_have_it",
    "request_names_a_member": "become_leader.later_histories_hold_the_committed",
    "controller_has_the_final_isr": "controller_elect_leader.later_members_have_it",
    "record_in_its_history": "leader_write.log_matching",
    "leader_has_the_whole_history": "become_follower.weak_isr",
    "committed_in_a_started_epoch": "controller_elect_leader.later_isrs_hold_the_committed",
    "later_histories_hold_the_committed": "become_follower.weak_isr",
    "hw_knows_no_later_commit": "become_leader.weak_isr",
    "leader_counts_its_own_commits": "leader_propose_expand.later_isrs_hold_the_committed",
    "request_has_the_isr": "become_leader.weak_isr",
    "leader_as_requested": "become_leader.answer_tells_the_final_isr",
    "started_by_the_leader": "controller_elect_leader.blocked_by_a_member",
    "log_is_a_prefix": "controller_elect_leader.blocked_by_a_member",
    "histories_rise": "leader_inc_high_watermark.committed_in_a_started_epoch",
    "final_isr_is_counted": "controller_elect_leader.later_members_have_it",
    "acknowledged_is_held": "become_leader.blocked_without_acknowledgement",
    "blocked_by_a_member": "follower_fetch.blocked_without_acknowledgement",
    "blocked_without_acknowledgement": "leader_inc_high_watermark.weak_isr",
    "had_or_blocked": "become_follower.acknowledged_is_held",
    "later_members_have_it": "become_leader.blocked_by_a_member",
    "later_isrs_hold_the_committed": "become_leader.weak_isr",
    "controller_has_its_leader": "controller_alter_isr.leader_in_isr",
    "nothing_altered_before_the_start": "become_leader.answer_tells_the_partition_epoch",
    "asked_by_a_leader": "controller_alter_isr.leader_in_isr",
    "leader_counts_proposals": "become_follower.weak_isr",
    "asked_is_counted": "controller_alter_isr.strong_isr",
    "answer_tells_the_final_isr": "leader_take_isr.weak_isr",
    "answer_tells_the_partition_epoch": "leader_take_isr.asked_is_counted",
    "nothing_asked_before_the_answer": "leader_take_isr.asked_is_counted",
}
"""For each lemma an obligation that is not proved without it. Promises that nothing rests on are not listed."""

FOR_CVC5 = {"hw_within_log"}
"""As in the proof of kip-320: z3 does without, as it follows from the range of an index."""

WITHOUT_HINT = {
    "when_committed": "controller_alter_isr.strong_isr",
    "_not_blocked": "leader_inc_high_watermark.consumers_agree",
    "_acknowledged": "leader_inc_high_watermark.strong_isr",
    "below_the_epoch": "leader_propose_expand.later_members_have_it",
}
"""For each hint an obligation that z3 leaves open without it."""

BOTH = pytest.mark.parametrize("proof", [kip_320_brokers, kip_497], ids=lambda proof: proof.variant)


def test_it_is_registered() -> None:
    registered = REGISTRY["fencing"]
    assert registered.find_proofs() == (kip_320, kip_320_brokers, kip_497)
    assert registered.find_proof() is registered.find_proof("kip-320-restarts") is kip_320
    for proof in registered.find_proofs():
        assert all(registered.find_proof(variant) is proof for variant in (proof.variant, *proof.twins))
        assert proof.twins < set(fencing.variants)


@BOTH
def test_what_is_promised(proof: Proof) -> None:
    """All that the variant's text promises, and what the proof of kip-320 promises beside it."""
    traced = fencing.traced(proof.variant)
    promises = [name for name, conjunct in attach(proof, traced).conjuncts.items() if conjunct.promise]
    present = [name for name in fencing.invariant_names if name in traced.invariants or name == "type_ok"]
    assert promises == [*present, "log_matching", "committed_never_lost", "consumers_agree"]
    assert all(lemma.doc.endswith(".") and lemma.doc.count(". ") == 0 for lemma in proof.lemmas.values())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("proof", [kip_320_brokers, kip_497], ids=lambda proof: proof.variant)
def test_every_promise_is_proved(proof: Proof) -> None:
    attached = attach(proof, fencing.traced(proof.variant))
    run = prove(attached)
    assert [result.obligation.name for result in run.failed] == []
    assert run.verdict is Verdict.HOLDS
    actions = [action.name for action in attached.traced.actions]
    names = {(result.obligation.action, result.obligation.conjunct) for result in run.results}
    assert names == {(action, name) for action in ("initial", *actions) for name in attached.conjuncts}
    assert len(run.results) == len(names)
    # Each is far from the bound at which z3 would give up, and no action is out of reach.
    assert max(result.answer.resources for result in run.results) < RLIMIT / 4
    assert [witness.action for witness in run.witnesses] == actions
    assert all(witness.found is not None for witness in run.witnesses)


@pytest.mark.nightly(seconds=20)
@BOTH
@pytest.mark.parametrize("seed", range(1, 5))
def test_neither_seed_nor_order_changes_a_verdict(proof: Proof, seed: int) -> None:
    run = prove(attach(proof, fencing.traced(proof.variant)), seed=seed, shuffle=seed, witnesses=False)
    print(f"seed {seed}: {max(result.answer.resources for result in run.results):,} resource units at most")
    assert [result.obligation.name for result in run.failed] == []


def without_lemma(proof: Proof, *names: str) -> Proof:
    changed = copy.copy(proof)
    changed.lemmas = {key: lemma for key, lemma in proof.lemmas.items() if key not in names}
    return changed


def proved(proof: Proof, name: str) -> bool:
    action, _, conjunct = name.partition(".")
    obligations = Obligations(attach(proof, fencing.traced(proof.variant)))
    # Without a lemma z3 may look for long; with it, none of those asked here takes a tenth of this.
    return ask(obligations.obligation(action, conjunct).smt, rlimit=RLIMIT // 10).proved


def test_every_lemma_is_accounted_for() -> None:
    used_by_none = {"committed_never_lost", "consumers_agree"}
    assert set(NEEDED_FOR) == set(kip_497.lemmas) - used_by_none - FOR_CVC5
    assert set(kip_320_brokers.lemmas) - set(kip_497.lemmas) == {"leader_counts_its_isr"}
    assert all(kip_497.lemmas[name].promise for name in used_by_none)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lemma", NEEDED_FOR)
def test_every_lemma_is_needed(lemma: str) -> None:
    assert proved(kip_497, NEEDED_FOR[lemma])
    assert not proved(without_lemma(kip_497, lemma), NEEDED_FOR[lemma])


def test_a_leader_counts_its_isr() -> None:
    """The one lemma of the proof of kip-320-brokers that the other does not take."""
    assert proved(kip_320_brokers, "become_follower.weak_isr")
    assert not proved(without_lemma(kip_320_brokers, "leader_counts_its_isr"), "become_follower.weak_isr")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("hint", WITHOUT_HINT)
def test_every_hint_is_needed(hint: str) -> None:
    proof = copy.copy(kip_497)
    proof.hint_texts = {
        name: [spec for spec in specs if spec.text.__name__ != hint] for name, specs in kip_497.hint_texts.items()
    }
    assert proved(kip_497, WITHOUT_HINT[hint])
    action, _, conjunct = WITHOUT_HINT[hint].partition(".")
    run = prove(attach(proof, KIP_497), actions=[action], conjuncts=[conjunct], witnesses=False)
    # A hint that is missing is not taken for a counterexample: there is none.
    assert run.verdict is Verdict.UNKNOWN
    assert "no counterexample at 2/1/1/1, 2/2/2/2, 3/2/2/2" in run.results[0].reason


def test_every_hint_is_accounted_for() -> None:
    given = {spec.text.__name__ for specs in kip_497.hint_texts.values() for spec in specs}
    assert given == set(WITHOUT_HINT)


# The ghosts say what they are said to say.


@BOTH
def test_what_was_committed_never_changes(proof: Proof) -> None:
    """Neither the record nor that it is committed; the epoch that committed it is at most found to be an older one."""
    obligations = Obligations(attach(proof, fencing.traced(proof.variant)))
    offset = z3.Int("offset")
    for action in obligations.attached.traced.actions:
        step = obligations.step(action.name)
        states = step.before, step.after
        end, later_end = (s.read("committed_end", ()) for s in states)
        epoch, later_epoch = (s.read("committed_in", (offset,), [True]) for s in states)
        same = [
            step.before.read(row, (offset,), [True]) == step.after.read(row, (offset,), [True])
            for row in ("committed_id", "committed_epoch")
        ]
        solver = z3.Solver()
        solver.add(0 <= offset, offset < end, z3.Not(z3.And(end <= later_end, later_epoch <= epoch, *same)))
        assert solver.check() == z3.unsat, action.name


def test_all_conjuncts_hold_in_every_reachable_state() -> None:
    attached = attach(kip_497, KIP_497)
    concrete = Concrete(attached, LEAST)
    compiled = stage(ground(attached.traced.protocol.traced("kip-497"), concrete.base.constants)).invariants
    assert set(compiled) == set(attached.conjuncts)
    own, taken = set(), set()
    for _, state, action in reachable(concrete):
        for name, holds in compiled.items():
            assert holds(state), (name, action, concrete.shown(state))
        own.add(concrete.own(state))
        taken.add(action)
    # Ghosts add nothing to a run and take nothing away: the states without them are those of the model.
    assert len(own) == 1573
    assert taken >= {"leader_propose_shrink", "leader_propose_expand", "controller_alter_isr", "leader_take_isr"}


@pytest.mark.sampled(2)
@BOTH
@pytest.mark.parametrize("size", [1, 2])
def test_all_conjuncts_hold_along_walks(proof: Proof, size: int) -> None:
    concrete = Concrete(attach(proof, fencing.traced(proof.variant)), proof.sizes[size])
    random = Random(SEED)
    taken = set()
    for _ in range(20):
        state = concrete.system.initial
        for _ in range(40):
            # An action first, so that one with few parameters is not rare.
            actions = random.sample(concrete.base.actions, len(concrete.base.actions))
            steps = sorted(random.sample(list(concrete.base.by_step), len(concrete.base.by_step)), key=rank(actions))
            found = ((a, after) for a, params in steps if (after := concrete.step(state, a, params)) is not None)
            if (step := next(found, None)) is None:
                break
            action, state = step
            assert concrete.broken(state) == [], (action, concrete.shown(state))
            taken.add(action)
    print(f"seed {SEED}: {sorted(taken)}")
    assert taken == set(concrete.base.actions)


def test_a_wrong_lemma_is_seen_in_a_reachable_state() -> None:
    """The search above can fail: who takes an answer, and goes on counting on whom it did, is found out."""
    proof = copy.copy(kip_497)
    proof.update_texts = {name: text for name, text in kip_497.update_texts.items() if name != "leader_take_isr"}
    concrete = Concrete(attach(proof, KIP_497), LEAST)
    assert any("leader_counts_proposals" in concrete.broken(state) for _, state, _ in reachable(concrete))


# A proof that takes from another.


def test_what_is_taken_is_the_other_s_own() -> None:
    assert kip_497.lemmas["log_matching"].text is kip_320.lemmas["log_matching"].text
    assert kip_497.ghosts["final_isr"].doc == kip_320.ghosts["final_isr"].doc
    assert kip_497.update_texts["leader_write"] is kip_320.update_texts["leader_write"]


def test_what_is_not_there_cannot_be_taken() -> None:
    proof = Proof(fencing, "kip-497", sizes=())
    with pytest.raises(ProtocolError, match="the proof of kip-320 has no ghost, lemma or update 'sealed' to take"):
        proof.takes(kip_320, "final_isr", "sealed")
    with pytest.raises(ProtocolError, match="fencing has a variable final_isr already"):
        proof.takes(kip_320, "final_isr")
