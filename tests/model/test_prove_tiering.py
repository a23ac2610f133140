"""The proof of kip-1023-safe with no bound: every promise, and no variant with a hole."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random

import pytest
from fencepost.model.core.ground import State
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.model.protocols.tiering import tiering
from fencepost.model.protocols.tiering.proof import kip_1023
from fencepost.model.prove.finite import Concrete
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove
from fencepost.model.prove.solve import RLIMIT, ask

SEED = 1023
SAFE = kip_1023.protocol.traced()

HEAVY = (
    "find_highest_remote_offset.tiered_up_to_highest",
    "build_to_local_start.lineage_is_leaders",
    "build_to_epuo.jump_ends_on_remote",
    "become_follower.logs_match",
    "build_to_local_start.follower_has_its_history",
    "follower_fetch.below_high_watermark_is_committed",
)
TWINS = {
    "kip-1023": "become_follower.follower_has_its_history",
    "jump-unknown": "start_at_local_start.lineage_is_leaders",
    "below-log-start": "start_at_log_start.offsets_in_order",
    "epochs-to-local-start": "build_to_epuo.lineage_is_leaders",
    "flag-ignored": "build_to_epuo.only_empty_follower_jumps",
    "jump-with-data": "build_to_epuo.only_empty_follower_jumps",
    "short-checkpoint": "build_to_epuo.epochs_are_known",
    "upload-past-stable": "start_copy.uploaded_is_stable",
    "upload-past-hw": "start_copy.uploaded_is_stable",
    "deposed-segment": "find_highest_remote_offset.tiered_up_to_highest",
    "deletes-uncommitted": "delete_local.leader_can_serve",
    "highest-alone": "find_highest_remote_offset.tiered_up_to_highest",
    "deposed-deletes": "delete_segment.tiered_up_to_highest",
    "keeps-uncompared": "become_follower.follower_has_its_history",
    "offsets-first": "crash_while_building.lineage_is_leaders",
    "keeps-highest": "elect_leader.leader_can_serve",
    "first-on-remote": "find_highest_remote_offset.leader_can_serve",
    "disabled-under-isr": "disable_tiering.isr_begins_locally",
    "disabled-at-leader": "disable_tiering.isr_begins_locally",
    "up-to-gap": "find_highest_remote_offset.leader_can_serve",
}
"""Variants that are not safe, each with an obligation that a counterexample to induction breaks."""


def proved(proof: Proof, name: str, seed: int = 0) -> bool:
    """Whether z3 refutes the denial of ``action.conjunct``."""
    action, _, conjunct = name.partition(".")
    obligation = Obligations(attach(proof, SAFE)).obligation(action, conjunct)
    return ask(obligation.smt, seed=seed, shuffle=seed or None, rlimit=RLIMIT // 2).proved


def test_it_is_registered() -> None:
    assert REGISTRY["tiering"].find_proof() is kip_1023
    attached = attach(kip_1023, SAFE)
    promises = {name for name, conjunct in attached.conjuncts.items() if conjunct.promise}
    assert promises == {*tiering.invariant_names}
    assert all(lemma.doc.endswith(".") for lemma in kip_1023.lemmas.values())
    assert set(TWINS) == set(tiering.variants) - {SAFE.variant.name}
    assert kip_1023.told == "at transactions 1"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", HEAVY)
def test_neither_seed_nor_order_changes_a_verdict(name: str) -> None:
    assert [proved(kip_1023, name, seed) for seed in range(3)] == [True] * 3


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("seed", range(10))
def test_every_promise_is_proved(seed: int) -> None:
    attached = attach(kip_1023, SAFE)
    run = prove(attached, seed=seed, shuffle=seed or None, witnesses=False)
    print(f"seed {seed}: {max(result.answer.resources for result in run.results):,} resource units at most")
    assert [result.obligation.name for result in run.failed] == []
    actions = ("initial", *(action.name for action in SAFE.actions))
    names = {(result.obligation.action, result.obligation.conjunct) for result in run.results}
    inductive = [name for name in attached.conjuncts if name not in kip_1023.follows]
    assert names == {(action, name) for action in actions for name in inductive} | {
        ("follows", name) for name in kip_1023.follows
    }


@pytest.mark.nightly(seconds=60)
def test_every_action_can_happen_where_all_conjuncts_hold() -> None:
    """Against vacuity: one obligation of each action, and a witness for it."""
    run = prove(attach(kip_1023, SAFE), conjuncts=["no_epoch_from_the_future"])
    assert [w.action for w in run.witnesses] == [action.name for action in SAFE.actions]
    assert [w.action for w in run.witnesses if w.found is None] == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", TWINS)
def test_no_variant_with_a_hole_is_proved(variant: str) -> None:
    action, _, conjunct = TWINS[variant].partition(".")
    run = prove(
        attach(kip_1023, kip_1023.protocol.traced(variant)), actions=[action], conjuncts=[conjunct], witnesses=False
    )
    assert run.verdict is Verdict.VIOLATED
    found = run.results[0].counterexample
    assert found is not None and found.after is not None
    concrete = Concrete(run.attached, found.constants)
    assert concrete.broken(found.state) == []
    assert conjunct in concrete.broken(found.after)


def walks(concrete: Concrete, steps: int, count: int) -> Iterator[tuple[State, str]]:
    """States along random walks from the initial state, with ghosts, and the action that led to each."""
    random = Random(SEED)
    for _ in range(count):
        state = concrete.system.initial
        for _ in range(steps):
            possible = [(step[0], after) for step in concrete.base.by_step if (after := concrete.step(state, *step))]
            if not possible:
                break
            # An action first, so that one with few parameters is not rare.
            action = random.choice(sorted({name for name, _ in possible}))
            state = random.choice([after for name, after in possible if name == action])
            yield state, action


def test_all_conjuncts_hold_along_walks() -> None:
    concrete = Concrete(attach(kip_1023, SAFE), kip_1023.sizes[1])
    actions = set()
    for state, action in walks(concrete, 30, 8):
        assert concrete.broken(state) == [], (action, concrete.shown(state))
        actions.add(action)
    print(f"seed {SEED}: {sorted(actions)}")
    assert len(actions) > 12


def test_a_wrong_lemma_is_seen() -> None:
    """Without the updates of the ghosts a lemma does not hold along the same walks."""
    less = copy.copy(kip_1023)
    less.update_texts = {}
    concrete = Concrete(attach(less, SAFE), kip_1023.sizes[1])
    broken = {name for state, _ in walks(concrete, 10, 2) for name in concrete.broken(state)}
    assert "leader_is_at_end" in broken
