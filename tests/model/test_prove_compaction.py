"""The proof of kip-280-safe with no bound, whatever the strategies: every promise; each lemma and hint is needed."""

from __future__ import annotations

import copy

import pytest
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.model.protocols.compaction import compaction
from fencepost.model.protocols.compaction.proof import kip_280
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove
from fencepost.model.prove.solve import ask
from fencepost.model.prove.specialize import FixedProof

NEEDED_FOR = {
    "brokers_clean_alike": "elect_leader.best_is_beaten_by_none",
    "leader_is_in_its_epoch": "elect_leader.no_epoch_from_the_future",
    "no_epoch_from_the_future": "elect_leader.cut_is_a_missed_start",
    "cut_is_a_missed_start": "become_follower.record_is_the_line_s",
    "cut_is_the_first": "become_follower.member_has_the_committed",
    "follower_is_behind": "leader_write.record_is_the_line_s",
    "member_has_the_committed": "leader_write.committed_is_the_line_s",
    "record_is_of_a_joined_epoch": "leader_inc_high_watermark.committed_is_the_line_s",
    "record_has_a_key": "leader_inc_high_watermark.committed_is_the_line_s",
    "record_is_the_line_s": "remove_record.best_is_kept",
    "committed_is_the_line_s": "remove_record.best_is_kept",
    "clean_part_is_in_log": "follower_fetch.survivor_is_alone",
    "best_is_committed": "remove_record.best_is_kept",
    "best_is_beaten_by_none": "remove_record.best_is_kept",
    "best_is_not_beaten_since": "follows.winner_is_kept",
    "table_has_nothing_better": "consumer_fetch.table_has_the_best",
    "best_is_kept": "follows.winner_is_kept",
    "all_have_passed": "follower_fetch.dropped_beats_nothing_here",
    "dropped_version_is_known": "leader_write.dropped_beats_nothing_here",
    "dropped_beats_nothing_here": "follows.deleted_stays_deleted",
    "dropped_beats_nothing_to_come": "follower_fetch.dropped_beats_nothing_here",
    "reads_the_committed": "leader_inc_high_watermark.table_has_the_best",
    "table_is_of_the_committed": "leader_inc_high_watermark.table_has_nothing_better",
    "table_has_the_best": "follows.consumer_agrees",
    "best_is_still_to_be_read": "follows.consumer_agrees",
}
"""For each lemma an obligation that is not proved without it."""

WITHOUT_HINT = {
    "_skipped": "follower_fetch.uncommitted_is_whole",
    "_best_skipped": "follower_fetch.best_is_kept",
}
"""For each hint an obligation that z3 leaves open without it."""

TWINS = {
    "slow-readers": "remove_tombstone.all_have_passed",
    "uncleaned-tail": "remove_tombstone.dropped_beats_nothing_here",
    "late-producers": "leader_write.dropped_beats_nothing_here",
    "reads-by-offset": "consumer_fetch.table_has_the_best",
    "forgets-deletes": "consumer_fetch.table_has_the_best",
    "ties-to-lower": "remove_record.best_is_kept",
    "first-occurrence": "remove_record.best_is_kept",
    "anomalous-stays": "remove_record.best_is_kept",
    "trusts-header": "leader_write.header_is_long",
    "cleans-uncommitted": "finish_cleaning.active_segment_is_uncleaned",
    "cleans-active": "finish_cleaning.active_segment_is_uncleaned",
    "maps-dirty-part": "finish_cleaning.survivor_is_alone",
    "changes-uncleaned": "set_topic_strategy.best_is_committed",
    "rolling-change": "set_topic_strategy.brokers_clean_alike",
}
"""Variants that are not safe, each with an obligation through which the proof does not go."""


def under(strategy: int) -> FixedProof:
    """The same proof where the brokers have this strategy at first."""
    proof = FixedProof(compaction, kip_280.variant, {"default_strategy": strategy}, sizes=(), follows=kip_280.follows)
    proof.takes(kip_280, *kip_280.ghosts, *kip_280.update_texts)
    proof.takes(kip_280, *kip_280.lemmas)
    proof.takes_hints(kip_280)
    return proof


def proved(proof: Proof, name: str, variant: str = kip_280.variant) -> bool:
    """Whether z3 refutes the denial of ``action.conjunct``."""
    action, _, conjunct = name.partition(".")
    obligation = Obligations(attach(proof, proof.protocol.traced(variant))).obligation(action, conjunct)
    return ask(obligation.smt).proved


def test_it_is_registered() -> None:
    assert REGISTRY["compaction"].find_proof() is kip_280
    conjuncts = attach(kip_280, kip_280.protocol.traced()).conjuncts
    assert {name for name, conjunct in conjuncts.items() if conjunct.promise} == set(compaction.invariant_names)
    assert not isinstance(kip_280, FixedProof) and kip_280.at == {}
    assert all(lemma.doc.endswith(".") for lemma in kip_280.lemmas.values())


def test_every_promise_is_proved() -> None:
    run = prove(attach(kip_280, kip_280.protocol.traced()), witnesses=False)
    assert (run.verdict, [result.obligation.name for result in run.failed]) == (Verdict.HOLDS, [])
    actions = ["initial", *(action.name for action in kip_280.protocol.traced().actions)]
    inductive = [name for name in attach(kip_280, kip_280.protocol.traced()).conjuncts if name not in kip_280.follows]
    names = [(action, name) for action in actions for name in inductive]
    asked_for = [(result.obligation.action, result.obligation.conjunct) for result in run.results]
    assert sorted(asked_for) == sorted([*names, *(("follows", name) for name in kip_280.follows)])


@pytest.mark.parametrize("strategy", range(4))
def test_whatever_the_brokers_strategy_is_at_first(strategy: int) -> None:
    """The proof is of each, as the text begins with the constant itself; of more than there are it would not hold."""
    assert proved(under(strategy), "initial.type_ok")
    assert proved(kip_280, "initial.type_ok")
    obligation = Obligations(attach(kip_280, kip_280.protocol.traced())).obligation("initial", "type_ok")
    bound = "(<= default_strategy 3)"
    assert obligation.smt.count(bound) == 1
    assert not ask(obligation.smt.replace(bound, "(<= default_strategy 4)")).proved


@pytest.mark.nightly(seconds=40)
@pytest.mark.parametrize("seed", range(1, 10))
def test_neither_seed_nor_order_changes_a_verdict(seed: int) -> None:
    run = prove(attach(kip_280, kip_280.protocol.traced()), seed=seed, shuffle=seed, witnesses=False)
    print(f"seed {seed}: {max(result.answer.resources for result in run.results):,} resource units at most")
    assert [result.obligation.name for result in run.failed] == []


def test_a_proof_at_other_constants_takes_hints_with_their_indices() -> None:
    """A hint over the other proof's index would be of no conjunct's values here, and say nothing."""
    taken, bare = under(2), under(2)
    bare.hint_texts = {}
    for name in WITHOUT_HINT.values():
        assert proved(taken, name)
        assert not proved(bare, name)
    action, _, _ = name.partition(".")
    indices = {index for spec in taken.hint_texts[action] for index in spec.goal.values()}
    assert indices == {taken.protocol.indices[index.name] for index in indices}


def test_every_action_can_happen_where_all_conjuncts_hold() -> None:
    """Against vacuity: one obligation of each action, and a witness for it."""
    run = prove(attach(kip_280, kip_280.protocol.traced()), conjuncts=["follower_is_behind"])
    assert [w.action for w in run.witnesses] == [action.name for action in kip_280.protocol.traced().actions]
    assert [w.action for w in run.witnesses if w.found is None] == []


def test_every_lemma_and_hint_is_accounted_for() -> None:
    assert set(NEEDED_FOR) == set(kip_280.lemmas)
    assert set(WITHOUT_HINT) == {spec.text.__name__ for specs in kip_280.hint_texts.values() for spec in specs}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lemma", NEEDED_FOR)
def test_every_lemma_is_needed(lemma: str) -> None:
    less = copy.copy(kip_280)
    less.lemmas = {name: each for name, each in kip_280.lemmas.items() if name != lemma}
    assert proved(kip_280, NEEDED_FOR[lemma])
    assert not proved(less, NEEDED_FOR[lemma])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("hint", WITHOUT_HINT)
def test_every_hint_is_needed(hint: str) -> None:
    less = copy.copy(kip_280)
    less.hint_texts = {
        name: [spec for spec in specs if spec.text.__name__ != hint] for name, specs in kip_280.hint_texts.items()
    }
    assert proved(kip_280, WITHOUT_HINT[hint])
    assert not proved(less, WITHOUT_HINT[hint])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", TWINS)
def test_no_variant_with_a_hole_is_proved(variant: str) -> None:
    assert proved(kip_280, TWINS[variant])
    assert not proved(kip_280, TWINS[variant], variant)
