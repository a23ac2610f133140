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
from fencepost.model.protocols.fencing.expected import COUNTEREXAMPLES, LARGE_STATE_COUNTS, STATE_COUNTS

from .pinned import breaches_by_place, graphs_by_variant

At = Callable[..., System]

LARGE = "3/2/2/2"
GRAPHS = graphs_by_variant(fencing, STATE_COUNTS)
LARGE_GRAPHS = graphs_by_variant(fencing, LARGE_STATE_COUNTS)
BREACHES = breaches_by_place(fencing, COUNTEREXAMPLES)
HISTORIC = ("truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try", "kip-320")
"""Without crashes and requests in flight."""


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


def expected_lengths(variant: str, constants: str) -> dict[str, int | None]:
    """Counterexamples match ``expected.py``. If all invariants are checked at once, ``weak_isr`` breaks first."""
    alone = BREACHES.get((variant, constants), {})
    return {"all": alone.get("weak_isr"), "weak_isr": alone.get("weak_isr"), "strong_isr": alone.get("strong_isr")}


def whole_graph(system: System) -> tuple[Verdict, int, int]:
    """Verdict, distinct states and depth where only ``leader_in_isr`` and ``type_ok`` are asked for."""
    answer = answer_to(system, "leader_in_isr")
    assert answer.query.invariants == ("type_ok", "leader_in_isr")
    return answer.verdict, answer.distinct, answer.depth


def test_truncate_to_hw_must_fail(at: At) -> None:
    system = at(LARGE, "truncate-to-hw")
    assert lengths(system) == expected_lengths("truncate-to-hw", LARGE)
    assert whole_graph(system) == (Verdict.HOLDS, *LARGE_GRAPHS["truncate-to-hw"][LARGE])


def test_kip_101_must_fail(at: At) -> None:
    system = at(LARGE, "kip-101")
    assert lengths(system) == expected_lengths("kip-101", LARGE)
    assert whole_graph(system) == (Verdict.HOLDS, *LARGE_GRAPHS["kip-101"][LARGE])


def test_kip_279_must_fail(at: At) -> None:
    system = at(LARGE, "kip-279")
    assert lengths(system) == expected_lengths("kip-279", LARGE)
    assert whole_graph(system) == (Verdict.HOLDS, *LARGE_GRAPHS["kip-279"][LARGE])


def test_kip_320_first_try_must_fail(at: At) -> None:
    system = at(LARGE, "kip-320-first-try")
    assert lengths(system) == expected_lengths("kip-320-first-try", LARGE)
    assert whole_graph(system) == (Verdict.HOLDS, *LARGE_GRAPHS["kip-320-first-try"][LARGE])


def test_kip_320_holds(at: At) -> None:
    answer = answer_to(at(LARGE, "kip-320"))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *LARGE_GRAPHS["kip-320"][LARGE])
    assert answer.query.invariants == ("type_ok", "weak_isr", "strong_isr", "leader_in_isr")
    assert (answer.path, answer.violated, answer.reason) == (None, None, None)
    assert set(answer.witnesses) == set(fencing.witnesses) and all(answer.witnesses.values())
    assert all(seen.transitions and seen.discoveries for seen in answer.coverage.values())
    assert 1 + sum(seen.discoveries for seen in answer.coverage.values()) == answer.distinct


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", HISTORIC)
def test_two_replicas_show_only_the_older_flaws(at: At, variant: str) -> None:
    """KIP-279 and the first try need a third replica to fail."""
    expected = expected_lengths(variant, "2/2/2/2")
    assert (expected["all"] is not None) == (variant in ("truncate-to-hw", "kip-101"))
    assert lengths(at("2/2/2/2", variant)) == expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", HISTORIC)
def test_distinct_states_and_depth_are_those_that_tlc_finds(at: At, variant: str) -> None:
    for constants, expected in GRAPHS[variant].items():
        answer = explore(Query.of(at(constants, variant), ("type_ok",)))
        assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected), constants
