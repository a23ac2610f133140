"""Samples of steps for a cross-check, drawn from all that a search has reached, or from all that z3 can think of.

A random walk of ``snapshots`` seldom sees a snapshot. In ``spread`` the batch engine says where each action can happen,
and as many steps of one action are drawn as of another; in ``lone_refusals`` z3 makes up, for each guard, a state in
which it alone refuses. What a step leads to, or who refuses it, is the reference's word alone.
"""

from __future__ import annotations

from random import Random

import z3

from ..core.ground import State, System
from ..core.protocol import TracedAction
from ..explore.batch import BLOCK, search_batch
from ..explore.result import Limits, Query
from ..interpret.reference import Reference
from ..interpret.symbolic import Symbolic
from .crosscheck import RefusedStep, Sample, Transition
from .finite import find_model


def spread(system: System, count: int, seed: int, *, max_states: int = 1_000_000, refused_each: int = 2) -> Sample:
    """``count`` different transitions from reachable states, spread evenly over the actions (fewer if there are fewer).

    The search is for ``type_ok`` alone, goes level by level and ends at ``max_states``. From each state of the sample
    up to ``refused_each`` steps that the reference refuses are kept too. The same for the same seed.
    """
    random = Random(seed)  # noqa: S311 - a seeded choice, no secret
    reference, sample = Reference(system), Sample()
    chosen = _even(_places(system, count, max_states, random), count, random)
    steps = list(system.by_step)
    seen: set[State] = set()
    for state, number in chosen:
        instance = system.instances[number]
        after = reference.step(state, instance.action, instance.params)
        if after is None:
            raise AssertionError(f"the reference refuses {instance} where the batch engine allows it: {state}")
        sample.transitions.append(Transition(state, instance.action, instance.params, after))
        if state in seen:
            continue
        seen.add(state)
        sample.states.append(state)
        refused = [step for step in random.sample(steps, len(steps)) if reference.step(state, *step) is None]
        sample.refused += [RefusedStep(state, *step) for step in refused[:refused_each]]
    return sample


def _places(system: System, count: int, max_states: int, random: Random) -> dict[str, list[tuple[State, int]]]:
    """For each action, states in which an instance of it can happen: some of each instance and block of states."""
    most = max(8, 8 * count // len(system.instances))
    limits = Limits(max_states=max_states)
    search = search_batch(Query.of(system, ("type_ok",), limits=limits))
    found: dict[str, list[tuple[State, int]]] = {name: [] for name in system.actions}
    for start in range(0, search.table.count, BLOCK):
        keys = search.table.keys[:, start : start + BLOCK].copy()
        for number, rows in search.batch.enabled(search.batch.block(keys), keys.shape[1]):
            some = random.sample(range(rows.size), min(most, rows.size))
            states = [search.batch.packing.state(keys[:, rows[i]]) for i in some]
            found[system.instances[number].action] += [(state, number) for state in states]
    return found


def _even(places: dict[str, list[tuple[State, int]]], count: int, random: Random) -> list[tuple[State, int]]:
    """As many of each as there are, or as the others leave room for."""
    shuffled = [random.sample(each, len(each)) for each in places.values()]
    even: list[tuple[State, int]] = []
    depth = 0
    while len(even) < min(count, sum(map(len, shuffled))):
        even += [each[depth] for each in shuffled if depth < len(each)]
        depth += 1
    return even[:count]


def lone_refusals(system: System) -> tuple[Sample, list[str]]:
    """For each guard a refused step in which all others hold, from a state that ``type_ok`` allows; reachable or not.

    And the guards, as ``action.guard``, for which there is none at these constants: the others imply them. Raises
    ``UndecidedError``.
    """
    symbolic = Symbolic(system.traced, system.constants)
    reference = Reference(system)
    sample, implied = Sample(), []
    for action in system.traced.actions:
        for guard, _ in action.guards:
            refused = _refused_alone(symbolic, action, guard)
            if refused is None:
                implied.append(f"{action.name}.{guard}")
                continue
            by = reference.refused_by(*refused)
            if by != guard:
                raise AssertionError(f"the reference has {by} refuse what {guard} alone should: {refused}")
            sample.states.append(refused.state)
            sample.refused.append(refused)
    return sample, implied


def _refused_alone(symbolic: Symbolic, action: TracedAction, guard: str) -> RefusedStep | None:
    typed = symbolic.invariant("type_ok")
    for name, params in symbolic.steps():
        if name == action.name:
            others = [symbolic.guard(name, other, params) for other, _ in action.guards if other != guard]
            model = find_model([typed, *others, z3.Not(symbolic.guard(name, guard, params))])
            if model is not None:
                return RefusedStep(symbolic.decode(model), name, params)
    return None
