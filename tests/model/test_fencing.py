"""Fencing, exhaustively: what each historic variant breaks and how soon, and that KIP-320 breaks nothing.

Distinct states, depths and shortest lengths are those that TLC finds in ``specs/`` (the numbers of states there
are one above the numbers of steps here). Constants: replicas/log size/records/leader epoch.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fencepost.model.core.ground import System
from fencepost.model.explore import Exploration, Query, Verdict, explore
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.fencing import fencing

At = Callable[..., System]

LARGE = "3/2/2/2"


def answer_to(system: System, *invariants: str) -> Exploration:
    """The batch engine's answer; a counterexample is walked again by the reference, whose opinion counts."""
    answer = explore(Query.of(system, invariants))
    if answer.path is not None:
        reference = Reference(system)
        state = system.initial
        asked = answer.query.invariants
        for step in answer.path:
            assert not set(asked) & set(reference.broken(state)), "a shorter path breaks it too"
            state = reference.step(state, step.instance.action, step.instance.params)
            assert state == step.state
        assert answer.violated == next(name for name in asked if name in reference.broken(state))
    return answer


def lengths(system: System) -> dict[str, int | None]:
    """The length of the shortest violation of all four promises at once, and of each that a run can break alone."""
    found: dict[str, int | None] = {}
    for name in ("all", "weak_isr", "strong_isr"):
        answer = answer_to(system, *(() if name == "all" else (name,)))
        assert answer.verdict is (Verdict.HOLDS if answer.path is None else Verdict.VIOLATED)
        assert answer.path is None or answer.violated == ("weak_isr" if name == "all" else name)
        found[name] = None if answer.path is None else len(answer.path)
    return found


def whole_graph(system: System) -> tuple[Verdict, int, int]:
    """Verdict, distinct states and depth where only ``leader_in_isr`` and ``type_ok`` are asked for."""
    answer = answer_to(system, "leader_in_isr")
    assert answer.query.invariants == ("type_ok", "leader_in_isr")
    return answer.verdict, answer.distinct, answer.depth


def test_truncate_to_hw_must_fail(at: At) -> None:
    system = at(LARGE, "truncate-to-hw")
    assert lengths(system) == {"all": 8, "weak_isr": 8, "strong_isr": 8}
    assert whole_graph(system) == (Verdict.HOLDS, 1988158, 28)


def test_kip_101_must_fail(at: At) -> None:
    system = at(LARGE, "kip-101")
    assert lengths(system) == {"all": 10, "weak_isr": 10, "strong_isr": 10}
    assert whole_graph(system) == (Verdict.HOLDS, 1613089, 26)


def test_kip_279_must_fail(at: At) -> None:
    system = at(LARGE, "kip-279")
    assert lengths(system) == {"all": 10, "weak_isr": 10, "strong_isr": 10}
    assert whole_graph(system) == (Verdict.HOLDS, 1616461, 26)


def test_kip_320_first_try_must_fail(at: At) -> None:
    system = at(LARGE, "kip-320-first-try")
    assert lengths(system) == {"all": 11, "weak_isr": 11, "strong_isr": 12}
    assert whole_graph(system) == (Verdict.HOLDS, 1437076, 28)


def test_kip_320_holds(at: At) -> None:
    answer = answer_to(at(LARGE, "kip-320"))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, 737794, 26)
    assert answer.query.invariants == ("type_ok", "weak_isr", "strong_isr", "leader_in_isr")
    assert (answer.path, answer.violated, answer.reason) == (None, None, None)
    assert set(answer.witnesses) == set(fencing.witnesses) and all(answer.witnesses.values())
    assert all(seen.transitions and seen.discoveries for seen in answer.coverage.values())
    assert 1 + sum(seen.discoveries for seen in answer.coverage.values()) == answer.distinct


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("variant", "constants", "expected"),
    [
        ("truncate-to-hw", "2/2/2/2", {"all": 8, "weak_isr": 8, "strong_isr": 9}),
        ("kip-101", "2/2/2/2", {"all": 11, "weak_isr": 11, "strong_isr": 11}),
        ("kip-279", "2/2/2/2", {"all": None, "weak_isr": None, "strong_isr": None}),
        ("kip-320-first-try", "2/2/2/2", {"all": None, "weak_isr": None, "strong_isr": None}),
        ("kip-320", "2/2/2/2", {"all": None, "weak_isr": None, "strong_isr": None}),
    ],
)
def test_two_replicas_show_only_the_older_flaws(
    at: At, variant: str, constants: str, expected: dict[str, int | None]
) -> None:
    """KIP-279 and the first try need a third replica to fail."""
    assert lengths(at(constants, variant)) == expected


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("variant", "counts"),
    [
        (
            "truncate-to-hw",
            {"2/1/1/1": (353, 12), "2/2/2/2": (10131, 20), "3/1/1/1": (10681, 17), "2/3/3/2": (37667, 25)},
        ),
        ("kip-101", {"2/1/1/1": (341, 12), "2/2/2/2": (9045, 18), "3/1/1/1": (9841, 18), "2/3/3/2": (32933, 21)}),
        ("kip-279", {"2/1/1/1": (341, 12), "2/2/2/2": (9027, 18), "3/1/1/1": (9841, 18), "2/3/3/2": (32713, 21)}),
        (
            "kip-320-first-try",
            {"2/1/1/1": (337, 12), "2/2/2/2": (8429, 18), "3/1/1/1": (9661, 18), "2/3/3/2": (30737, 22)},
        ),
        ("kip-320", {"2/1/1/1": (277, 12), "2/2/2/2": (5973, 18), "3/1/1/1": (6787, 18), "2/3/3/2": (21493, 22)}),
    ],
)
def test_distinct_states_and_depth_are_those_that_tlc_finds(
    at: At, variant: str, counts: dict[str, tuple[int, int]]
) -> None:
    for constants, expected in counts.items():
        answer = explore(Query.of(at(constants, variant), ("type_ok",)))
        assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected), constants
