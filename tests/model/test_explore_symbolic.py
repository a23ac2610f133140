"""Bounded search: the explorer's lengths, runs that the reference walks, honest ends, and faults that are noticed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import z3
from fencepost.model.core.errors import BadInput, ProtocolError
from fencepost.model.core.ground import System, ground
from fencepost.model.core.protocol import Protocol
from fencepost.model.explore import Exploration, Limits, Query, Verdict, explore, symbolic
from fencepost.model.interpret import symbolic_bits
from fencepost.model.interpret.reference import Reference
from fencepost.model.interpret.symbolic_bits import BitRelation, Ranges, width
from fencepost.model.interpret.symmetry import interchangeable
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.truncation import truncation

PROTOCOLS: dict[str, Protocol] = {each.name: each for each in (fencing, truncation, snapshots)}
CASES = [
    line.split()
    for line in (Path(__file__).parent / "bounded_cases.txt").read_text().splitlines()
    if not line.startswith("#")
]
nightly = pytest.mark.nightly


@cache
def at(name: str, variant: str, constants: str, *dropped: str) -> System:
    protocol = PROTOCOLS[name]
    values = dict(zip(protocol.constants, map(int, constants.split("/")), strict=True))
    return ground(protocol.traced(variant).drop(*dropped), values)


def bounded(system: System, **limits: int) -> Exploration:
    return explore(Query.of(system, limits=Limits(**limits)), "symbolic")


LOSES = ("snapshots", "lbo-past-snapshot", "2/1/2/0/1/0/0/1")
"""Breaks after four steps."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=nightly if case[0] == "nightly" else (), id="-".join(case[1:])) for case in CASES],
)
def test_the_explorers_shortest_length(case: list[str]) -> None:
    _, name, variant, constants, broken, length, *dropped = case
    system = at(name, variant, constants, *dropped)
    batch = explore(Query.of(system, symmetry=True))
    assert batch.path is not None and (batch.violated, len(batch.path)) == (broken, int(length))
    found = bounded(system, max_depth=int(length), max_effort=4_000_000_000)
    assert (found.verdict, found.depth) == (Verdict.VIOLATED, int(length) + 1)
    assert found.path is not None and len(found.path) == int(length)
    # Not the search's word for it: the run is walked here again.
    reference = Reference(system)
    state = system.initial
    for step in found.path:
        assert not set(found.query.invariants) & set(reference.broken(state))
        after = reference.step(state, step.instance.action, step.instance.params)
        assert after == step.state
        state = after
    # Of two promises that break in as many steps z3 finds either.
    assert found.violated in reference.broken(state)


def test_one_step_less_is_not_known() -> None:
    found = bounded(at(*LOSES), max_depth=3)
    assert (found.verdict, found.path, found.violated, found.depth) == (Verdict.UNKNOWN, None, None, 4)
    assert found.reason == "no run of up to 3 steps breaks a promise; longer ones were not looked at (--max-depth)"
    assert bounded(at(*LOSES), max_depth=0).verdict is Verdict.UNKNOWN


def test_a_safe_variant_is_never_said_to_hold() -> None:
    found = bounded(at("fencing", "kip-320", "2/1/1/1"), max_depth=5)
    assert (found.verdict, found.depth, found.distinct) == (Verdict.UNKNOWN, 6, 0)


def test_a_budget_that_runs_out_ends_in_the_same_place_each_time() -> None:
    system = at("fencing", "kip-101", "3/1/1/1")
    one, two = (bounded(system, max_effort=300_000) for _ in range(2))
    assert one.verdict is two.verdict is Verdict.UNKNOWN
    assert one.reason == two.reason and one.depth == two.depth
    assert one.reason is not None and "within 300,000 of its resource units (--max-effort)" in one.reason
    with pytest.raises(BadInput, match="more than z3 counts"):
        bounded(system, max_effort=1 << 32)


def test_the_same_run_each_time() -> None:
    runs = [bounded(at(*LOSES)).path for _ in range(2)]
    assert runs[0] == runs[1]


def test_a_promise_that_the_initial_state_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    system = at("fencing", "kip-320", "2/1/1/1")
    monkeypatch.setattr(Reference, "broken", lambda _self, state: ["weak_isr"] if state == system.initial else [])
    found = bounded(system)
    assert (found.verdict, found.violated, found.path, found.depth) == (Verdict.VIOLATED, "weak_isr", [], 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["batch", "reference"])
def test_a_bound_on_the_depth_of_the_explorers(engine: str) -> None:
    system = at(*LOSES)
    found = explore(Query.of(system, limits=Limits(max_depth=3)), engine)
    assert (found.verdict, found.path, found.depth) == (Verdict.UNKNOWN, None, 4)
    assert found.reason == "runs of more than 3 steps (--max-depth)"
    assert explore(Query.of(system, limits=Limits(max_depth=4)), engine).violated == "snapshot_in_between"
    safe = at("fencing", "kip-320", "2/1/1/1")
    whole = explore(Query.of(safe), engine)
    assert whole.verdict is Verdict.HOLDS
    enough = Query.of(safe, limits=Limits(max_depth=whole.depth - 1))
    assert explore(enough, engine).distinct == whole.distinct, "nothing lies deeper"
    assert explore(enough, engine).verdict is Verdict.HOLDS
    short = explore(Query.of(safe, limits=Limits(max_depth=whole.depth - 2)), engine)
    assert (short.verdict, short.depth) == (Verdict.UNKNOWN, whole.depth - 1)
    assert short.distinct < whole.distinct


# The relation in bits, state by state.


def successors(relation: BitRelation, state: tuple[int, ...]) -> set[tuple[str, tuple[tuple[str, int], ...], str]]:
    """Every instance that the relation allows in a state, with the state after it."""
    solver = z3.SolverFor("QF_FD", ctx=relation.context)
    solver.add(relation.step, *(c == x for c, x in zip(relation.pre, relation.literals(state), strict=True)))
    found = set()
    while solver.check() == z3.sat:
        model = solver.model()
        number = model.eval(relation.pick, model_completion=True)
        after = [model.eval(constant, model_completion=True) for constant in relation.post]
        found.add((*relation.instances[number.as_long()], str(after)))
        solver.add(z3.Or(relation.pick != number, *(c != x for c, x in zip(relation.post, after, strict=True))))
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "variant", "constants"),
    [
        ("fencing", "kip-320", "2/1/1/1"),
        ("fencing", "kip-101", "2/2/2/2"),
        ("truncation", "kip-320", "2/1/1/1"),  # 32 instances: the number of the last one has all bits set
        ("snapshots", "kip-630", "2/1/1/1/1/0/0/1"),
        ("snapshots", "kip-630-safe", "2/1/1/0/1/0/1/1"),
    ],
)
def test_every_step_of_the_reference_and_no_other(name: str, variant: str, constants: str) -> None:
    system = at(name, variant, constants)
    relation = BitRelation(system.traced, system.constants, ("type_ok",))
    reference = Reference(system)
    states = [system.initial]
    for state in states:
        states += [after for _, _, after in reference.successors(state) if len(states) < 500 and after not in states]
    for state in states[:: max(1, len(states) // 20)]:
        expected = {
            (action, params, str(relation.literals(after))) for action, params, after in reference.successors(state)
        }
        assert successors(relation, state) == expected


def test_widths_hold_their_values() -> None:
    assert [width(each) for each in ((0, 0), (-1, 0), (0, 1), (-2, 1), (-1, 3), (-5, 4))] == [1, 1, 2, 2, 3, 4]
    for low in range(-9, 1):
        for high in range(10):
            bits = width((low, high))
            assert -(1 << bits - 1) <= low and high < 1 << bits - 1
            narrower = bits - 1
            assert narrower == 0 or not (-(1 << narrower - 1) <= low and high < 1 << narrower - 1)


def test_ranges_of_formulas() -> None:
    x, y = z3.Ints("x y")
    ranges = Ranges({"x": (-1, 2), "y": (0, 3)})
    assert ranges(x + 1 - y) == (-3, 3)
    assert ranges(z3.If(x < y, x, z3.IntVal(7))) == (-1, 7)
    assert ranges.widest == (-3, 7)
    with pytest.raises(ProtocolError, match="no range"):
        ranges(x * y)


def test_who_can_change_names() -> None:
    assert interchangeable(at("fencing", "kip-320", "3/1/1/1")) == [0, 1]
    assert interchangeable(at("snapshots", "kip-630-safe", "3/1/1/0/1/0/0/1")) == [0], "2 is an observer"
    assert interchangeable(at(*LOSES)) == []


# Faults that a bounded search must notice, or that its answer must show.


def test_a_relation_that_allows_what_the_reference_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(BitRelation):
        def __init__(self, traced: object, constants: object, invariants: tuple[str, ...]) -> None:
            weak = snapshots.traced("kip-630-safe").drop("leader_advance_lbo.snapshot_includes")
            super().__init__(weak, constants, invariants)  # type: ignore[arg-type]

    monkeypatch.setattr(symbolic, "BitRelation", Wrong)
    with pytest.raises(AssertionError, match="the reference refuses leader_advance_lbo"):
        bounded(at("snapshots", "kip-630-safe", "2/1/2/0/1/0/0/1"), max_depth=4)


def test_a_promise_that_the_formulas_read_differently(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(BitRelation):
        def __init__(self, traced: object, constants: object, invariants: tuple[str, ...]) -> None:
            super().__init__(traced, constants, ("type_ok",))  # type: ignore[arg-type]
            self.broken = z3.Not(self.broken)

    monkeypatch.setattr(symbolic, "BitRelation", Wrong)
    with pytest.raises(AssertionError, match="the reference finds nothing broken after 1 of 1 steps"):
        bounded(at(*LOSES))


def test_too_few_bits_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bits hold neither a LEO of 2 nor an epoch of 2."""
    system = at("fencing", "truncate-to-hw", "2/2/2/2")
    monkeypatch.setattr(symbolic_bits, "width", lambda _: 2)
    relation = BitRelation(system.traced, system.constants, ("type_ok",))
    reference = Reference(system)
    expected = {(a, p, str(relation.literals(after))) for a, p, after in reference.successors(system.initial)}
    assert successors(relation, system.initial) != expected


def test_a_state_constraint_is_refused() -> None:
    system = at(*LOSES)
    constrained = replace(system, constraint=system.invariants["logs_match"])
    with pytest.raises(AssertionError):
        bounded(constrained)
