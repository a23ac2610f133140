"""The interpreters agree: the text read directly, the staged functions and the batch columns are one relation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from fencepost.model.core.ground import Params, State, System
from fencepost.model.interpret import batch as batch_module
from fencepost.model.interpret.batch import Batch
from fencepost.model.interpret.reference import Reference
from fencepost.model.interpret.staged import Staged, stage
from fencepost.model.protocols.fencing import fencing
from hypothesis import settings

from .conftest import small_enough

At = Callable[..., System]
Steps = set[tuple[str, Params, State]]

SEED = 320


def reachable(staged: Staged) -> list[State]:
    seen = {staged.system.initial: None}
    for state in (todo := [staged.system.initial]):
        for _, after in staged.successors(state):
            if after not in seen:
                seen[after] = None
                todo.append(after)
    return list(seen)


def batch_steps(batch: Batch, states: list[State]) -> list[Steps]:
    """The steps from each state, by the batch interpreter."""
    keys = np.stack([batch.packing.key(s) for s in states], axis=1)
    found: list[Steps] = [set() for _ in states]
    for candidates in batch.successors(batch.block(keys), keys):
        instance = batch.system.instances[candidates.instance]
        assert not candidates.escaped.size
        for row, key in zip(candidates.rows.tolist(), candidates.keys.T, strict=True):
            found[row].add((instance.action, instance.params, batch.packing.state(key)))
    return found


def staged_steps(staged: Staged, state: State) -> Steps:
    instances = staged.system.instances
    return {(instances[n].action, instances[n].params, after) for n, after in staged.successors(state)}


def divergence(states: list[State], reference: Reference, staged: Staged, batch: Batch, every: int = 1) -> State | None:
    """The first state about whose steps, invariants or witnesses the interpreters differ.

    The two compiled ones are compared on all states, the direct reading with them on ``every`` so-manieth.
    """
    system = batch.system
    keys = np.stack([batch.packing.key(s) for s in states], axis=1)
    block = batch.block(keys)
    verdicts = {name: batch.holds(block, term, len(states)) for name, term in system.invariants.items()}
    happenings = {name: batch.holds(block, term, len(states)) for name, term in system.witnesses.items()}
    for number, (state, columns) in enumerate(zip(states, batch_steps(batch, states), strict=True)):
        broken = [name for name, holds in staged.invariants.items() if not holds(state)]
        if broken != [name for name, holds in verdicts.items() if not holds[number]]:
            return state
        if any(happens(state) != happenings[name][number] for name, happens in staged.witnesses.items()):
            return state
        if staged_steps(staged, state) != columns:
            return state
        if number % every:
            continue
        direct = reference.successors(state)
        if set(direct) != columns or len(set(direct)) != len(direct):
            return state
        if broken != reference.broken(state):
            return state
    return None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", fencing.variants)
def test_they_agree_about_every_state_and_step(at: At, variant: str) -> None:
    (constants,) = small_enough(variant, "2/2/2/2")
    system = at(constants, variant)
    staged = stage(system)
    states = reachable(staged)
    assert len(states) > (5000 if constants == "2/2/2/2" else 1500)
    # The direct reading of the text takes a millisecond a state.
    every = 1 if settings.get_current_profile_name() == "long" else max(8, len(states) // 1000)
    assert divergence(states, Reference(system), staged, Batch(system), every) is None


def walked(system: System, walks: int, length: int) -> Iterable[State]:
    """States along random walks by the reference."""
    draw = random.Random(SEED)
    reference = Reference(system)
    for _ in range(walks):
        state = system.initial
        for _ in range(length):
            steps = reference.successors(state)
            if not steps:
                break
            state = draw.choice(steps)[2]
            yield state


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", fencing.variants)
def test_they_agree_along_random_walks_with_three_replicas(at: At, variant: str) -> None:
    print(f"seed {SEED}")
    system = at("3/2/2/2", variant)
    states = list(dict.fromkeys(walked(system, 12, 24)))
    # A walk that crashes comes back to where it was.
    assert len(states) > (50 if fencing.variants[variant].restarts else 100)
    assert divergence(states, Reference(system), stage(system), Batch(system)) is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", ["1/1/1/0", "1/3/2/1", "2/1/1/0", "4/1/1/0", "2/4/3/1"])
def test_they_agree_at_odd_constants(at: At, constants: str) -> None:
    system = at(constants)
    staged = stage(system)
    states = reachable(staged)[:400]
    assert divergence(states, Reference(system), staged, Batch(system)) is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "guard", ["follower_fetch.epoch_not_fenced", "leader_expand_isr.hw_reached_epoch", "leader_shrink_isr.in_isr"]
)
def test_a_guard_that_one_of_them_lacks_is_found(at: At, guard: str) -> None:
    system, mutant = at("2/2/2/2"), at("2/2/2/2", "kip-320", guard)
    staged, batch, reference = stage(system), Batch(system), Reference(system)
    lacking = stage(mutant)
    states = reachable(lacking)
    steps = [staged_steps(staged, s) for s in states]
    where = [n for n, (s, found) in enumerate(zip(states, steps, strict=True)) if staged_steps(lacking, s) != found]
    assert where
    sample = states[max(0, where[0] - 50) : where[0] + 1]
    assert divergence(sample, reference, staged, batch) is None
    assert divergence(sample, Reference(mutant), staged, batch) == states[where[0]]
    assert divergence(sample, reference, lacking, batch) == states[where[0]]
    assert divergence(sample, reference, staged, Batch(mutant)) == states[where[0]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("op", "wrong"),
    [("min", np.maximum), ("le", np.less), ("without", lambda replicas, _: replicas), ("ite", lambda _, yes, no: no)],
    ids=["min is max", "le is lt", "without does nothing", "ite takes the second"],
)
def test_a_wrong_operation_of_the_batch_interpreter_is_found(
    at: At, monkeypatch: pytest.MonkeyPatch, op: str, wrong: Callable[..., object]
) -> None:
    system = at("2/2/2/2")
    staged = stage(system)
    states = reachable(staged)[:400]
    monkeypatch.setitem(batch_module._OPERATIONS, op, wrong)
    assert divergence_or_assertion(states, Reference(system), staged, Batch(system))


def divergence_or_assertion(states: list[State], reference: Reference, staged: Staged, batch: Batch) -> bool:
    try:
        return divergence(states, reference, staged, batch) is not None
    except AssertionError:
        return True  # a value left its domain


def test_a_wrong_effect_of_one_instance_is_found(at: At) -> None:
    """The high watermark of a follower after a fetch, one too high: seen only where it differs."""
    system = at("2/2/2/2")
    params = (("leader", 0), ("follower", 1))
    instance = system.by_step["follower_fetch", params]
    hw = system.layout.by_name["hw[1]"]
    wrong = replace(instance, effect={**instance.effect, hw: instance.effect[system.layout.by_name["leo[1]"]]})
    planted = replace(system, instances=[wrong if i is instance else i for i in system.instances])
    states = reachable(stage(system))[:400]
    reference = Reference(system)
    found = divergence(states, reference, stage(planted), Batch(planted))
    assert found is not None
    after = reference.step(found, "follower_fetch", params)
    assert after is not None and after[hw] < after[system.layout.by_name["leo[1]"]]


def test_a_step_leaves_the_state_before_it_alone(at: At) -> None:
    system = at("2/2/2/2")
    reference = Reference(system)
    before = tuple(system.initial)
    steps = reference.successors(system.initial)
    assert system.initial == before and len({after for *_, after in steps}) == len(steps)
    assert all(hash(after) is not None and type(after) is tuple for *_, after in steps)
    assert all(type(value) is int for after in chain.from_iterable([s[2:] for s in steps]) for value in after)


def test_refusals_of_the_reference_are_the_first_failing_guard_as_written(at: At) -> None:
    """On every state of 2/1/1/1, against the guards as ground terms."""
    system = at("2/1/1/1")
    reference, batch = Reference(system), Batch(system)
    states = reachable(stage(system))
    block = batch.block(np.stack([batch.packing.key(s) for s in states], axis=1))
    for (action, params), instance in system.by_step.items():
        columns = [(name, batch.holds(block, guard, len(states))) for name, guard in instance.guards]
        for number, state in enumerate(states):
            first = next((name for name, holds in columns if not holds[number]), None)
            assert reference.refused_by(state, action, params) == first


def test_an_action_that_the_variant_lacks_is_a_key_error(at: At) -> None:
    reference = Reference(at("2/1/1/1"))
    with pytest.raises(KeyError):
        reference.step(reference.system.initial, "follower_truncate", (("leader", 0), ("follower", 1)))
