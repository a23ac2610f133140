"""The proof of kip-631-safe with no bound: every promise, and every lemma and hint of it is needed.

By day it is asked of each lemma that it is needed, which asks an obligation too; by night all obligations are asked,
for ten seeds and orders.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random

import pytest
from fencepost.model.core.errors import ProtocolError
from fencepost.model.core.ground import State, ground
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.controller import controller
from fencepost.model.protocols.controller.proof import kip_631
from fencepost.model.prove.finite import Concrete
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove
from fencepost.model.prove.solve import RLIMIT, ask
from fencepost.model.prove.specialize import fixed

SEED = 631
MOST = RLIMIT // 8
"""Of z3's resource units, for one obligation: about a second."""
SAFE = kip_631.protocol.traced()
FOLLOWS = "acknowledged_is_kept"

HEAVY = (
    "replay_record.state_is_of_stable_prefix",
    "replay_metadata.view_is_of_stable_prefix",
    "load_snapshot.view_is_of_stable_prefix",
    "elect_controller.state_is_of_stable_prefix",
    "alter_partition.fenced_broker_leads_nothing",
    "replay_metadata.isr_is_counted_on",
    "load_snapshot.isr_is_counted_on",
    "acknowledge.member_keeps",
    "alter_partition.member_keeps",
)
"""Obligations that take z3 longest, and the one for which most of the lemmas are there."""

NEEDED_FOR = {
    "once_is_zero": "fence_broker.isr_is_never_empty",
    "stable_is_in_log": "alter_partition.snapshot_is_sufficient",
    "record_names_a_broker": "replay_record.state_is_of_stable_prefix",
    "brokers_are_replayed": "replay_record.state_is_of_stable_prefix",
    "first_brokers_are_replayed": "replay_record.state_is_of_stable_prefix",
    "partition_is_as_recorded": "replay_record.known_isr_is_never_empty",
    "partition_is_replayed": "replay_record.state_is_of_stable_prefix",
    "first_partition_is_replayed": "replay_record.state_is_of_stable_prefix",
    "versions_are_counted": "elect_leader.type_ok",
    "epoch_is_known": "elect_controller.one_leader_per_controller_epoch",
    "active_epoch_is_known": "fence_broker.active_state_is_at_end",
    "order_is_of_known_epoch": "hear_of_epoch.one_is_busy",
    "leader_has_no_order_of_its_own": "order_snapshot.one_is_busy",
    "idle_is_idle": "order_snapshot.one_is_busy",
    "one_is_busy": "begin_snapshot.one_snapshot_in_the_making",
    "known_isr_is_never_empty": "fence_broker.isr_is_never_empty",
    "snapshot_isr_is_never_empty": "hear_of_epoch.known_isr_is_never_empty",
    "isr_before_is_of_prefix": "replay_record.node_isr_is_that_before",
    "isr_before_the_first": "hear_of_epoch.node_isr_is_that_before",
    "fenced_broker_leaves_another": "replay_record.state_is_of_stable_prefix",
    "node_isr_is_that_before": "replay_record.state_is_of_stable_prefix",
    "view_isr_is_that_before": "replay_metadata.view_is_of_stable_prefix",
    "absent_is_nothing": "fence_broker.known_isr_is_never_empty",
    "versions_only_grow": "alter_partition.fenced_broker_leads_nothing",
    "topic_is_created_once": "create_topic.versions_only_grow",
    "broker_epoch_is_stable": "activate.broker_epoch_is_its_own",
    "awaited_is_its_own": "hear_registration.broker_epoch_is_its_own",
    "nobody_proposes_itself": "alter_partition.isr_is_never_empty",
    "partition_is_created_first": "follows.acknowledged_is_kept",
    "partition_is_created_there": "replay_metadata.proposed_member_keeps",
    "partition_is_there_between": "follows.acknowledged_is_kept",
    "doubted_is_not_led": "follows.acknowledged_is_kept",
    "who_registers_leads_nothing": "load_snapshot.isr_is_counted_on",
    "awaiting_is_not_up": "crash_broker.lost_is_doubted",
    "awaiting_is_fenced": "create_topic.lost_is_doubted",
    "lost_is_doubted": "hear_registration.member_keeps",
    "proposed_epoch_was_told": "hear_registration.proposed_member_keeps",
    "isr_is_counted_on": "acknowledge.member_keeps",
    "acknowledged_in_its_epoch": "follows.acknowledged_is_kept",
    "proposed_member_keeps": "alter_partition.member_keeps",
    "member_keeps": "follows.acknowledged_is_kept",
}
"""For each lemma an obligation that is not proved without it."""

WITHOUT_HINT = {
    "_remembered": "fence_broker.partition_is_replayed",
    "_is_member": "register_broker.first_partition_is_replayed",
    "_replayed": "replay_record.node_isr_is_that_before",
    "_viewed": "replay_metadata.view_isr_is_that_before",
    "_of_whom": "replay_record.state_is_of_stable_prefix",
    "_viewed_of_whom": "replay_metadata.view_is_of_stable_prefix",
    "_led_by_whom": "replay_record.state_is_of_stable_prefix",
    "_viewed_here": "replay_metadata.view_is_of_stable_prefix",
    "_known_to_both": "alter_partition.fenced_broker_leads_nothing",
    "_leader_known_to_both": "alter_partition.known_isr_is_never_empty",
    "_loaded": "load_snapshot.isr_is_counted_on",
}
"""For each hint an obligation that z3 leaves open without it."""
WITH_SEED = {"_led_by_whom": 1, "_viewed_here": 1}
"""The seed and order in which it does so, where that is not the first."""

TWINS = {
    "two-snapshots": "order_snapshot.one_is_busy",
    "late-order": "begin_snapshot.one_is_busy",
    "elects-fenced": "elect_leader.fenced_broker_leads_nothing",
    "applies-pending": "replay_record.state_is_of_stable_prefix",
    "removes-last": "fence_broker.isr_is_never_empty",
    "keeps-pending": "hear_of_epoch.state_is_of_stable_prefix",
    "answers-pending": "hear_registration.broker_epoch_is_stable",
    "snapshot-pending": "finish_snapshot.snapshot_is_sufficient",
    "snapshot-lacks-fenced": "finish_snapshot.snapshot_is_sufficient",
    "kip-631": "finish_snapshot.snapshot_is_sufficient",
}
"""Variants that are not safe, each with an obligation that a counterexample to induction breaks.

``stale-broker-epoch`` and ``last-member-returns`` are asked of partitions' data (``test_prove_controller_data.py``); at
the proof's sizes there is no counterexample for ``deposed-leader``.
"""


def proved(proof: Proof, name: str, seed: int = 0) -> bool:
    """Whether z3 refutes the denial of ``action.conjunct``."""
    action, _, conjunct = name.partition(".")
    obligation = Obligations(attach(proof, SAFE)).obligation(action, conjunct)
    return ask(obligation.smt, seed=seed, shuffle=seed or None, rlimit=RLIMIT // 2).proved


def test_it_is_registered() -> None:
    assert REGISTRY["controller"].find_proof() is kip_631
    attached = attach(kip_631, SAFE)
    assert {name for name, conjunct in attached.conjuncts.items() if conjunct.promise} == {*controller.invariant_names}
    assert kip_631.follows == {FOLLOWS}
    assert all(lemma.doc.endswith(".") for lemma in kip_631.lemmas.values())
    assert kip_631.told == "at bootstrapped 0"


@pytest.mark.nightly(seconds=20)
@pytest.mark.parametrize("name", HEAVY)
def test_neither_seed_nor_order_changes_a_verdict(name: str) -> None:
    assert [proved(kip_631, name, seed) for seed in range(3)] == [True] * 3


@pytest.mark.nightly(seconds=120)
@pytest.mark.parametrize("seed", range(10))
def test_every_promise_is_proved(seed: int) -> None:
    attached = attach(kip_631, SAFE)
    run = prove(attached, seed=seed, shuffle=seed or None, witnesses=False)
    most = max(result.answer.resources for result in run.results)
    print(f"seed {seed}: {most:,} resource units at most")
    assert most <= MOST
    assert [result.obligation.name for result in run.failed] == []
    actions = ("initial", *(action.name for action in SAFE.actions))
    names = {(result.obligation.action, result.obligation.conjunct) for result in run.results}
    inductive = [name for name in attached.conjuncts if name != FOLLOWS]
    assert names == {("follows", FOLLOWS), *((action, name) for action in actions for name in inductive)}


@pytest.mark.nightly(seconds=60)
def test_every_action_can_happen_where_all_conjuncts_hold() -> None:
    """Against vacuity: one obligation of each action, and a witness for it."""
    run = prove(attach(kip_631, SAFE), conjuncts=["stable_is_in_log"])
    assert [w.action for w in run.witnesses] == [action.name for action in SAFE.actions]
    assert [w.action for w in run.witnesses if w.found is None] == []


def test_the_promise_that_follows_is_proved_of_every_state() -> None:
    assert proved(kip_631, f"follows.{FOLLOWS}")


# Lemmas and hints.


def test_every_lemma_and_hint_is_accounted_for() -> None:
    assert set(NEEDED_FOR) == set(kip_631.lemmas)
    assert set(WITHOUT_HINT) == {spec.text.__name__ for specs in kip_631.hint_texts.values() for spec in specs}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lemma", NEEDED_FOR)
def test_every_lemma_is_needed(lemma: str) -> None:
    less = copy.copy(kip_631)
    less.lemmas = {name: each for name, each in kip_631.lemmas.items() if name != lemma}
    assert proved(kip_631, NEEDED_FOR[lemma])
    assert not proved(less, NEEDED_FOR[lemma])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("hint", WITHOUT_HINT)
def test_every_hint_is_needed(hint: str) -> None:
    less = copy.copy(kip_631)
    less.hint_texts = {
        name: [spec for spec in specs if spec.text.__name__ != hint] for name, specs in kip_631.hint_texts.items()
    }
    seed = WITH_SEED.get(hint, 0)
    assert proved(kip_631, WITHOUT_HINT[hint], seed)
    assert not proved(less, WITHOUT_HINT[hint], seed)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", TWINS)
def test_no_variant_with_a_hole_is_proved(variant: str) -> None:
    action, _, conjunct = TWINS[variant].partition(".")
    run = prove(
        attach(kip_631, kip_631.protocol.traced(variant)), actions=[action], conjuncts=[conjunct], witnesses=False
    )
    assert run.verdict is Verdict.VIOLATED
    found = run.results[0].counterexample
    assert found is not None and found.after is not None
    concrete = Concrete(run.attached, found.constants)
    assert concrete.broken(found.state) == []
    assert conjunct in concrete.broken(found.after)


# The copy in which constants are fixed.


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
    concrete = Concrete(attach(kip_631, SAFE), kip_631.sizes[2])
    actions = set()
    for state, action in walks(concrete, 14, 6):
        assert concrete.broken(state) == [], (action, concrete.shown(state))
        actions.add(action)
    print(f"seed {SEED}: {sorted(actions)}")
    assert len(actions) > 12


STORY: list[tuple[str, dict[str, int]]] = [
    ("elect_controller", {"node": 0, "kept": 0}),
    ("activate", {"node": 0}),
    ("register_broker", {"node": 0, "broker": 0}),
    ("commit", {"node": 0}),
    ("hear_registration", {"broker": 0}),
    ("replay_metadata", {"broker": 0}),
    ("unfence_broker", {"node": 0, "broker": 0}),
    ("create_topic", {"node": 0, "partition": 1, "leader": 0}),
    ("fence_broker", {"node": 0, "broker": 0, "successor": 0}),
]
"""A broker registers, leads the first topic, and is fenced as the last member of its ISR."""


def broken_by_the_story(proof: Proof) -> list[str]:
    concrete = Concrete(attach(proof, SAFE), {**kip_631.sizes[0], "log_size": 4})
    state = concrete.system.initial
    for action, params in STORY:
        after = concrete.step(state, action, tuple(params.items()))
        assert after is not None, action
        state = after
        if broken := concrete.broken(state):
            return broken
    return []


def test_a_wrong_lemma_is_seen() -> None:
    """In the story all conjuncts hold; without the updates of the ghost its lemmas do not."""
    assert broken_by_the_story(kip_631) == []
    less = copy.copy(kip_631)
    less.update_texts = {"create_topic": kip_631.update_texts["create_topic"]}
    assert "isr_before_is_of_prefix" in broken_by_the_story(less)


def test_the_copy_takes_the_steps_of_the_protocol() -> None:
    """At the same constants: the same steps lead to the same cells, and the same guards refuse the others."""
    others = kip_631.sizes[0]
    whole = ground(controller.traced(), {**others, **kip_631.constants})
    own = ground(SAFE, others)
    names = {cell.name: number for number, cell in enumerate(own.layout.cells)}
    assert set(names) - {cell.name for cell in whole.layout.cells} == {"once[0]"}
    place = [names[cell.name] for cell in whole.layout.cells]
    one, other = Reference(own), Reference(whole)
    random, state = Random(SEED), own.initial
    assert tuple(state[i] for i in place) == whole.initial
    assert set(own.by_step) == set(whole.by_step)
    taken = 0
    for _ in range(60):
        short = tuple(state[i] for i in place)
        possible = []
        for step in own.by_step:
            after, expected = one.step(state, *step), other.step(short, *step)
            assert (None if after is None else tuple(after[i] for i in place)) == expected, step
            possible += [after] if after is not None else []
        state = random.choice(possible) if possible else own.initial
        taken += bool(possible)
    assert taken > 30


def test_what_cannot_be_fixed_is_refused() -> None:
    with pytest.raises(ProtocolError, match="controller has no constant brokers that may be 3"):
        fixed(controller, {"brokers": 3})
    with pytest.raises(ProtocolError, match="controller has no constant partitions that may be 0"):
        fixed(controller, {"partitions": 0})
    with pytest.raises(ProtocolError, match="controller has no promise nothing_is_lost"):
        fixed(controller, {}, without=("nothing_is_lost",))
