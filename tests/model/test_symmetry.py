"""Symmetry over replicas: one representative an orbit, orbits counted as by brute force, by both engines alike."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from fencepost.model.core.ground import State, System
from fencepost.model.explore import Exploration, Query, explore
from fencepost.model.interpret.packing import Packing
from fencepost.model.interpret.reference import Reference
from fencepost.model.interpret.staged import stage
from fencepost.model.interpret.symmetry import Symmetry
from fencepost.model.protocols.fencing import fencing

from .conftest import small_enough

At = Callable[..., System]


def reachable(system: System) -> list[State]:
    staged = stage(system)
    seen = {system.initial: None}
    for state in (todo := [system.initial]):
        for _, after in staged.successors(state):
            if after not in seen:
                seen[after] = None
                todo.append(after)
    return list(seen)


def renamed(system: System, state: State, new_name: tuple[int, ...]) -> State:
    """Fencing's state with its replicas renamed, written out by name."""
    values = {}
    for name, value in zip((c.name for c in system.layout.cells), state, strict=True):
        variable, *index = name.replace("]", "").split("[")
        if variable in ("leo", "record_id", "record_epoch", "hw", "leader_epoch", "leader", "isr"):
            index[0] = str(new_name[int(index[0])])
        if variable == "remote_leo":
            index = [str(new_name[int(i)]) for i in index]
        if variable in ("leader", "quorum_leader", "request_leader"):
            value = new_name[value] if value >= 0 else -1
        elif variable in ("isr", "quorum_isr", "request_isr"):
            value = sum(1 << new_name[r] for r in range(len(new_name)) if value >> r & 1)
        values[variable + "".join(f"[{i}]" for i in index)] = value
    return tuple(values[c.name] for c in system.layout.cells)


def orbit(system: System, state: State) -> frozenset[State]:
    return frozenset(renamed(system, state, p) for p in permutations(range(system.constants["replicas"])))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", ["2/2/2/2", "3/1/1/1"])
def test_a_representative_is_of_the_orbit_and_the_same_for_all_of_it(at: At, constants: str) -> None:
    system = at(constants)
    symmetry, packing = Symmetry(system), Packing(system.layout)
    states = reachable(system)[::23]
    least = symmetry.representatives(packing)
    for state in states:
        orbit_of = orbit(system, state)
        assert set(symmetry.renamed(state)) == orbit_of
        assert {symmetry.representative(other) for other in orbit_of} == {min(orbit_of)}
        keys = np.stack([packing.key(other) for other in sorted(orbit_of)], axis=1)
        found = {packing.state(key) for key in least(keys).T}
        assert found == {min(orbit_of, key=lambda other: packing.key(other).tolist())}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("constants", "variant"),
    [("2/1/1/1", "kip-101"), ("2/1/1/1", "kip-320-brokers"), ("2/1/1/1", "kip-320"), ("3/1/1/1", "kip-320")],
)
def test_orbits_are_counted_as_by_brute_force(at: At, constants: str, variant: str) -> None:
    system = at(constants, variant)
    states = reachable(system)
    seen: set[State] = set()
    orbits = 0
    for state in states:
        if state not in seen:
            seen |= orbit(system, state)
            orbits += 1
    assert seen == set(states), "renaming leads out of the reachable states"
    for engine in ("batch", "reference"):
        answer = explore(Query.of(system, ("type_ok",), symmetry=True), engine)
        assert answer.distinct == orbits < len(states)
        assert answer.depth == explore(Query.of(system, ("type_ok",)), engine).depth


def test_renaming_commutes_with_steps(at: At) -> None:
    system = at("3/1/1/1")
    reference = Reference(system)
    name = (2, 0, 1)
    for state in reachable(system)[::97]:
        images = {renamed(system, after, name) for *_, after in reference.successors(state)}
        assert images == {after for *_, after in reference.successors(renamed(system, state, name))}


def answers(system: System) -> list[Exploration]:
    return [explore(Query.of(system, symmetry=s), e) for e in ("reference", "batch") for s in (False, True)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "constants"), [(v, c) for v in fencing.variants for c in small_enough(v, "2/2/2/2", "3/1/1/1")]
)
def test_symmetry_changes_counts_and_never_a_verdict(at: At, variant: str, constants: str) -> None:
    plain, orbits, batch_plain, batch_orbits = answers(at(constants, variant))
    for answer in (orbits, batch_plain, batch_orbits):
        assert (answer.verdict, answer.depth) == (plain.verdict, plain.depth)
        assert len(answer.path or []) == len(plain.path or [])
    assert batch_plain.distinct == plain.distinct > orbits.distinct == batch_orbits.distinct
    if plain.path:
        # With symmetry the first broken state may be another one, with another promise broken too: each is shortest.
        for answer in (orbits, batch_orbits):
            assert answer.path is not None
            assert answer.violated in Reference(answer.query.system).broken(answer.path[-1].state)


def test_a_text_that_prefers_a_replica_is_not_symmetric(at: At) -> None:
    """The planted fault: a renaming that forgets the sets of replicas."""
    system = at("2/1/1/1")
    states = reachable(system)
    isrs = [c.number for c in system.layout.cells if c.name.startswith(("isr", "quorum_isr", "request_isr"))]

    def forgetful(state: State) -> State:
        moved = renamed(system, state, (1, 0))
        return tuple(
            state[n] if n in isrs and "[" not in c.name else v
            for n, (c, v) in enumerate(zip(system.layout.cells, moved, strict=True))
        )

    assert not {forgetful(s) for s in states} <= set(states)
    assert {renamed(system, s, (1, 0)) for s in states} == set(states)
