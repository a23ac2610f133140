"""The proof of kip-630-safe with no bound, late responses and all.

``fencepost prove`` asks every obligation (``tests/conformance/test_cli_prove.py``). Here: that it depends on neither
seed nor order, that it is not vacuous, and that its ghosts and lemmas are what they are said to be.
By night the walks are longer, and ten seeds are asked of every obligation.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from fencepost.model.core.ground import State, ground
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.model.interpret.staged import stage
from fencepost.model.interpret.symbolic_unbounded import Unbounded
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.snapshots.proof import kip_630
from fencepost.model.prove.finite import Concrete
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove
from fencepost.model.prove.solve import RLIMIT, ask

SEED = 630

HEAVY = (
    "follower_truncate.last_epoch_is_told",
    "follower_truncate.choosers_keep_the_chosen",
    "follower_truncate.log_is_of_its_last_epoch",
    "follower_truncate.acknowledged_is_held",
    "follower_fetch.logs_match",
    "follower_fetch.log_is_of_its_last_epoch",
    "follower_fetch.acknowledged_is_held",
    "late_divergence.log_is_of_its_last_epoch",
    "grant_vote.blocked_without_acknowledgement",
)
"""Obligations that take z3 longest."""

SMALL = kip_630.sizes[0]


def test_it_is_registered() -> None:
    assert REGISTRY["snapshots"].find_proof() is kip_630
    promises = [name for name, conjunct in attach(kip_630, snapshots.traced()).conjuncts.items() if conjunct.promise]
    assert promises == list(snapshots.invariant_names)
    assert all(lemma.doc.endswith(".") and lemma.doc.count(". ") == 0 for lemma in kip_630.lemmas.values())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "variant", [pytest.param("kip-630-safe", marks=pytest.mark.nightly(seconds=45)), "kip-630-nodes"]
)
def test_every_promise_is_proved(variant: str) -> None:
    attached = attach(kip_630, snapshots.traced(variant))
    run = prove(attached)
    assert [result.obligation.name for result in run.failed] == []
    assert run.verdict is Verdict.HOLDS
    actions = [action.name for action in attached.traced.actions]
    names = {(result.obligation.action, result.obligation.conjunct) for result in run.results}
    assert names == {(action, name) for action in ("initial", *actions) for name in attached.conjuncts}
    assert [witness.action for witness in run.witnesses] == actions
    assert all(witness.found is not None for witness in run.witnesses)


@pytest.mark.nightly(seconds=30)
@pytest.mark.parametrize("seed", range(1, 3))
def test_neither_seed_nor_order_changes_a_verdict(seed: int) -> None:
    obligations = Obligations(attach(kip_630, snapshots.traced()))
    for name in HEAVY:
        action, _, conjunct = name.partition(".")
        # Another order of what is asserted may cost more; how much more depends on the hash seed, too.
        answer = ask(obligations.obligation(action, conjunct).smt, seed=seed, shuffle=seed, rlimit=3 * RLIMIT)
        assert answer.proved, (name, answer)


@pytest.mark.nightly(seconds=45)
@pytest.mark.parametrize("seed", range(1, 11))
def test_no_verdict_of_all_depends_on_seed_or_order(seed: int) -> None:
    # An order may cost thirty times as much as another one.
    run = prove(attach(kip_630, snapshots.traced()), seed=seed, shuffle=seed, rlimit=3 * RLIMIT, witnesses=False)
    print(f"seed {seed}: {max(result.answer.resources for result in run.results):,} resource units at most")
    assert [result.obligation.name for result in run.failed] == []


def test_every_action_can_happen_where_all_conjuncts_hold() -> None:
    """Against vacuity: one obligation of each action, and a witness for it."""
    run = prove(attach(kip_630, snapshots.traced()), conjuncts=["no_epoch_from_the_future"])
    assert [w.action for w in run.witnesses] == [action.name for action in snapshots.traced().actions]
    assert all(witness.found is not None for witness in run.witnesses)


# The ghosts say what they are said to say.


def reachable(concrete: Concrete, most: int) -> Iterator[tuple[State, str]]:
    """States with their ghosts, breadth first."""
    first = concrete.system.initial
    seen = {first}
    yield first, "initial"
    for state in (todo := [first]):
        for action, params in concrete.base.by_step:
            after = concrete.step(state, action, params)
            if after is not None and after not in seen and len(seen) < most:
                seen.add(after)
                todo.append(after)
                yield after, action


def test_all_conjuncts_hold_in_every_reachable_state() -> None:
    attached = attach(kip_630, snapshots.traced())
    concrete = Concrete(attached, SMALL)
    compiled = stage(ground(attached.traced.protocol.traced("kip-630-safe"), concrete.base.constants)).invariants
    assert set(compiled) == set(attached.conjuncts)
    own, taken = set(), set()
    for number, (state, action) in enumerate(reachable(concrete, 10_000)):
        for name, holds in compiled.items():
            assert holds(state), (name, action, concrete.shown(state))
        if number % 200 == 0:
            assert concrete.broken(state) == []
        own.add(concrete.own(state))
        taken.add(action)
    # Ghosts add nothing to a run and take nothing away: the states without them are those of the model.
    assert len(own) == 2986
    # The two voters of two need each other, so that nobody starts over, nor has anything to truncate.
    assert taken >= {"hold_records", "generate_snapshot", "leader_advance_lbo", "restart"}


STORY = [
    ("become_candidate", 0),
    ("grant_vote", 1),
    ("leader_write", 0),
    ("follower_fetch", 0, 1),
    ("follower_fetch", 0, 1),
    ("leader_inc_high_watermark", 0, 0),
    ("generate_snapshot", 0, 0, 1),
    ("leader_advance_lbo", 0, 1),
    ("become_follower", 2, 0),
    ("hold_snapshot", 0, 2, 0),
    ("late_snapshot", 2, 0),
    ("leader_write", 0),
    ("follower_fetch", 0, 2),
    ("hold_chunk", 0, 2, 0),
    ("late_chunk", 2, 0),
    ("become_candidate", 1),
]
"""Replica 2 has half a snapshot and the log behind it, by responses that came late."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("walks", "length"), [(2, 6), pytest.param(60, 15, marks=pytest.mark.nightly(seconds=60))])
@pytest.mark.parametrize("begun", [0, 6, 10, 14, 16])
def test_all_conjuncts_hold_along_walks(begun: int, walks: int, length: int) -> None:
    """On runs that begin with a part of the story."""
    concrete = Concrete(attach(kip_630, snapshots.traced()), kip_630.sizes[2])
    random, taken = Random(SEED), set()
    for _ in range(walks):
        state = concrete.system.initial
        for action, *values in STORY[:begun]:
            params = tuple(zip(snapshots.actions[str(action)].params, map(int, values), strict=True))
            after = concrete.step(state, str(action), params)
            assert after is not None, action
            assert concrete.broken(after) == [], (action, params, concrete.shown(after))
            state = after
            taken.add(action)
        for _ in range(length):
            steps = random.sample(list(concrete.base.by_step), len(concrete.base.by_step))
            order = random.sample(concrete.base.actions, len(concrete.base.actions))
            steps.sort(key=lambda step: order.index(step[0]))
            found = (after for action, params in steps if (after := concrete.step(state, action, params)) is not None)
            state = next(found)
            assert concrete.broken(state) == [], concrete.shown(state)
    print(f"seed {SEED}: {sorted(map(str, taken))}")


def test_a_wrong_lemma_is_seen_on_a_run() -> None:
    """The walks above can fail: a leader that wrote has more than a history that was not told of it."""
    concrete = Concrete(attach(kip_630, snapshots.traced()), SMALL)
    state = concrete.system.initial
    for action, replica in (("become_candidate", 0), ("grant_vote", 1), ("leader_write", 0)):
        param = next(iter(snapshots.actions[action].params))
        after = concrete.step(state, action, ((param, replica),))
        assert after is not None
        before, state = state, after
    ghosts = len(concrete.own(state))
    assert concrete.broken(state) == []
    assert {"leader_is_whole", "last_epoch_is_told"} <= set(concrete.broken(state[:ghosts] + before[ghosts:]))


def test_two_quorums_have_a_member_in_common() -> None:
    """Of one set: the axiom is there where the text has majorities, and only there."""
    assert len(Unbounded(snapshots.traced()).constant_axioms) == len(snapshots.constants) + 1
    assert len(Unbounded(fencing.traced()).constant_axioms) == len(fencing.constants)
