"""Exploration: two engines with one answer, budgets that say so, and runs that mean what they show."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from fencepost.model.core import terms
from fencepost.model.core.algebra import View
from fencepost.model.core.domains import integers
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import Grounder, System, ground
from fencepost.model.core.protocol import ConstantSpec, Protocol
from fencepost.model.core.terms import Sort
from fencepost.model.explore import Exploration, Limits, Query, Verdict, explore
from fencepost.model.explore import path as path_module
from fencepost.model.explore.result import Progress
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.fencing import fencing

from .conftest import needs_compiler, small_enough

At = Callable[..., System]

EXHAUSTIVE = ("batch", "reference")
"""The engines that see every state; the bounded search is held against them in test_explore_symbolic.py."""

engines = pytest.mark.parametrize("engine", [*EXHAUSTIVE, pytest.param("compiled", marks=needs_compiler)])


def essence(answer: Exploration) -> tuple[object, ...]:
    """All that both engines must agree on. Which of several shortest paths is found is not."""
    path = None if answer.path is None else len(answer.path)
    return answer.verdict, answer.distinct, answer.depth, answer.violated, path, answer.transitions, answer.witnesses


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "constants"),
    [(v, c) for v in fencing.variants for c in small_enough(v, "2/2/2/2", "3/1/1/1", "2/3/3/2")],
)
def test_both_engines_give_one_answer(at: At, variant: str, constants: str) -> None:
    system = at(constants, variant)
    batch = explore(Query.of(system, ("type_ok",)), "batch")
    assert essence(explore(Query.of(system, ("type_ok",)), "reference")) == essence(batch)
    assert batch.verdict is Verdict.HOLDS
    promised = [explore(Query.of(system), engine) for engine in EXHAUSTIVE]
    # Which of the broken states of a level comes first is a race; on which level they are is not.
    summaries = {(a.verdict, a.distinct, a.depth, len(a.path or []), a.path is None) for a in promised}
    assert len(summaries) == 1
    for answer in promised:
        assert answer.path is None or answer.violated in Reference(system).broken(answer.path[-1].state)


def test_the_comparison_of_engines_can_fail(at: At) -> None:
    query, mutant = (Query.of(at("2/2/2/2", "kip-320", *d)) for d in ((), ("leader_shrink_isr.not_caught_up",)))
    one, other = explore(query, "batch"), explore(mutant, "reference")
    # Same states and same depth: only the transitions tell.
    assert (one.distinct, one.depth) == (other.distinct, other.depth) and essence(one) != essence(other)


@engines
def test_too_many_states_is_unknown_and_says_so(at: At, engine: str) -> None:
    enough = explore(Query.of(at("2/1/1/1"), limits=Limits(max_states=277)), engine)
    assert (enough.verdict, enough.reason, enough.distinct) == (Verdict.HOLDS, None, 277)
    short = explore(Query.of(at("2/1/1/1"), limits=Limits(max_states=276)), engine)
    assert (short.verdict, short.reason) == (Verdict.UNKNOWN, "more than 276 states (--max-states)")
    assert (short.violated, short.path, short.verdict.exit_code) == (None, None, 3)


@engines
def test_too_little_memory_is_unknown_and_says_so(at: At, engine: str) -> None:
    answer = explore(Query.of(at("2/1/1/1"), limits=Limits(max_memory=1 << 20)), engine)
    assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, "more than 1 MiB of memory (--max-memory)")
    assert answer.memory > 1 << 20


def counter(bound: int, *, witness_at: int = 0) -> System:
    """Counts to ``limit`` in steps of one or two; breaks ``below_bound`` at ``bound``."""
    protocol = Protocol("counter", "this test", constants=(ConstantSpec("limit", 5, 1, "the end"),))
    protocol.variable("count", "how far", integers(0, lambda c: c["limit"]))
    protocol.variant("only", None, "the only one")

    @protocol.action()
    def one(k: Any, s: View) -> Any:
        yield "room", s.count < k.c.limit
        yield s.update(count=s.count + 1)

    @protocol.action()
    def two(k: Any, s: View) -> Any:
        yield "even", k.any(s.count == 0, s.count == 2)
        yield "room", s.count + 1 < k.c.limit
        yield s.update(count=s.count + 2)

    @protocol.always
    def below_bound(k: Any, s: View) -> Any:
        return s.count < bound

    @protocol.sometimes()
    def reached(k: Any, s: View) -> Any:
        return s.count == witness_at

    return ground(protocol.traced(), {})


@engines
def test_the_counterexample_is_a_shortest_one(engine: str) -> None:
    answer = explore(Query.of(counter(5)), engine)
    assert (answer.verdict, answer.violated, answer.depth, answer.distinct) == (Verdict.VIOLATED, "below_bound", 4, 6)
    assert answer.path is not None
    assert [(s.instance.action, s.state) for s in answer.path] == [("two", (2,)), ("two", (4,)), ("one", (5,))]


@engines
def test_a_broken_initial_state_is_a_path_without_steps(engine: str) -> None:
    answer = explore(Query.of(counter(0)), engine)
    assert (answer.verdict, answer.violated, answer.path, answer.depth) == (Verdict.VIOLATED, "below_bound", [], 1)


@engines
def test_a_witness_that_never_happens_is_a_violation(engine: str) -> None:
    met = explore(Query.of(counter(6, witness_at=5)), engine)
    assert (met.verdict, met.witnesses, met.distinct) == (Verdict.HOLDS, {"reached": 1}, 6)
    never = explore(Query.of(counter(6, witness_at=7)), engine)
    assert (never.verdict, never.violated, never.path) == (Verdict.VIOLATED, "reached", None)
    assert never.reason == "the witness reached never happened: the model may be vacuous"


@engines
def test_an_unfinished_search_says_nothing_about_witnesses(engine: str) -> None:
    answer = explore(Query.of(counter(6, witness_at=7), limits=Limits(max_states=2)), engine)
    assert (answer.verdict, answer.violated) == (Verdict.UNKNOWN, None)


@engines
def test_a_value_outside_its_domain_breaks_type_ok(at: At, engine: str) -> None:
    answer = explore(Query.of(at("2/1/2/2", "kip-320", "leader_write.log_not_full")), engine)
    assert (answer.verdict, answer.violated, answer.depth) == (Verdict.VIOLATED, "type_ok", 5)
    assert answer.path is not None and len(answer.path) == 4
    assert answer.path[-1].instance.action == "leader_write"
    assert Reference(answer.query.system).broken(answer.path[-1].state) == ["type_ok"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", EXHAUSTIVE)
def test_an_escape_is_found_with_symmetry_too(at: At, engine: str) -> None:
    answer = explore(Query.of(at("3/1/2/1", "kip-320", "leader_write.log_not_full"), symmetry=True), engine)
    assert (answer.violated, len(answer.path or [])) == ("type_ok", 4)


@engines
def test_a_constraint_confines_what_is_expanded(engine: str) -> None:
    system = counter(6)
    cell = Grounder(system.traced, system.constants, system.layout).cell(0)
    confined = replace(system, constraint=cell < 3)
    # As TLC does: 3 and 4 lie outside and are reached, but nothing beyond them.
    answer = explore(Query.of(confined), engine)
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, 5, 3)
    assert explore(Query.of(replace(counter(3), constraint=cell < 3)), engine).violated == "below_bound"
    nothing = explore(Query.of(replace(system, constraint=terms.FALSE)), engine)
    assert (nothing.verdict, nothing.distinct) == (Verdict.HOLDS, 1)
    assert cell.sort is Sort.INT


@engines
def test_every_path_is_run_again_by_the_reference(at: At, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Contrary(Reference):
        def step(self, *step: Any) -> Any:
            return None

    monkeypatch.setattr(path_module, "Reference", Contrary)
    with pytest.raises(AssertionError, match="the reference disagrees about"):
        explore(Query.of(at("2/1/1/1", "truncate-to-hw")), engine)


def test_only_the_invariants_asked_for_are_checked_and_type_ok_always(at: At) -> None:
    system = at("2/2/2/2", "kip-101")
    assert Query.of(system, ("strong_isr",)).invariants == ("type_ok", "strong_isr")
    assert explore(Query.of(system, ("leader_in_isr",))).verdict is Verdict.HOLDS
    with pytest.raises(BadInput) as refused:
        Query.of(system, ("strong",))
    assert str(refused.value) == (
        "--invariant: fencing has no invariant 'strong'; choose of type_ok, weak_isr, strong_isr, leader_in_isr"
    )


def test_an_unknown_engine_is_bad_input(at: At) -> None:
    with pytest.raises(BadInput) as refused:
        explore(Query.of(at("2/1/1/1")), "spark")
    assert (
        str(refused.value) == "--engine: there is no engine 'spark'; choose one of batch, compiled, reference, symbolic"
    )


@engines
def test_progress_is_told_and_never_goes_back(at: At, engine: str) -> None:
    told: list[Progress] = []
    answer = explore(Query.of(at("2/1/1/1")), engine, told.append)
    assert told and told[-1].depth == answer.depth
    assert all(a.depth <= b.depth and a.distinct <= b.distinct for a, b in pairwise(told))


@engines
def test_the_json_object_of_a_run_that_holds(at: At, engine: str) -> None:
    printed = json.loads(json.dumps(explore(Query.of(at("2/2/2/2")), engine).to_json()))
    assert ("engine_note" in printed) == (engine == "compiled")
    printed.pop("engine_note", None)
    assert printed | {"memory_bytes": 0, "seconds": 0, "states_per_second": 0, "coverage": {}, "witnesses": {}} == {
        "protocol": "fencing",
        "variant": "kip-320",
        "constants": {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2},
        "engine": engine,
        "symmetry": False,
        "invariants": ["type_ok", "weak_isr", "strong_isr", "leader_in_isr"],
        "verdict": "holds",
        "distinct": 5973,
        "depth": 18,
        "violated": None,
        "trace": None,
        "reason": None,
        "witnesses": {},
        "coverage": {},
        "memory_bytes": 0,
        "seconds": 0,
        "states_per_second": 0,
    }
    contract = ["protocol", "variant", "engine", "verdict", "distinct", "depth", "violated", "trace", "seconds"]
    assert list(printed)[: len(contract)] == contract
    assert set(printed["coverage"]) == {a.name for a in fencing.traced().actions}
    assert all(seen["transitions"] >= seen["discoveries"] > 0 for seen in printed["coverage"].values())
    assert printed["memory_bytes"] > 0 and printed["states_per_second"] > 0


def test_the_json_object_of_a_run_that_fails_holds_a_trace_that_replays(at: At) -> None:
    system = at("2/2/2/2", "truncate-to-hw")
    printed = json.loads(json.dumps(explore(Query.of(system)).to_json()))
    assert (printed["verdict"], printed["violated"], len(printed["trace"])) == ("violated", "weak_isr", 8)
    reference, state = Reference(system), system.initial
    for step in printed["trace"]:
        assert set(step) == {"action", "params"}
        state = reference.step(state, step["action"], tuple(step["params"].items()))
        assert state is not None
    assert "weak_isr" in reference.broken(state)


def test_exit_codes() -> None:
    assert {v.value: v.exit_code for v in Verdict} == {"holds": 0, "violated": 1, "unknown": 3}
