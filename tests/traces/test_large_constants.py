"""Traces at the largest constants are replayed and mined within seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.model.core.algebra import Algebra, Value, View
from fencepost.model.core.domains import REPLICA
from fencepost.model.core.ground import Layout, System, ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.core.traced_variant import Text
from fencepost.model.explore.result import Verdict
from fencepost.model.interpret.conditions import Conditions, WorkSpentError
from fencepost.model.interpret.reference import IntState, Reference
from fencepost.traces.corpus.ingest import ingest_files
from fencepost.traces.format import Trace, TraceEvent, TraceHeader, json_line
from fencepost.traces.mine.job import Asked, mine
from fencepost.traces.read import read_trace
from fencepost.traces.replay import replay

FIRST = [
    ("fencing", "kip-320", "controller_elect_leader", {"new_leader": 0}),
    ("fencing", "kip-320-cluster", "controller_shrink_isr", {"replica": 62}),
    ("truncation", "kip-320-mended", "elect_cleanly", {"new_leader": 1}),
]


def constants_of(name: str) -> dict[str, int]:
    return {each.name: 63 for each in PROTOCOLS[name].constants.values()}


@pytest.mark.parametrize(("name", "variant", "action", "params"), FIRST)
def test_one_event_at_the_largest_constants(
    name: str, variant: str, action: str, params: dict[str, int], tmp_path: Path
) -> None:
    header = TraceHeader(name, variant, constants_of(name), complete=True)
    path = tmp_path / "one.jsonl"
    path.write_text(json_line(header) + json_line(TraceEvent(1, action, params)))
    assert replay(read_trace(path)).verdict is Verdict.HOLDS
    assert ingest_files(tmp_path, [path], tmp_path / "corpus").files
    answer = mine(Asked(tmp_path / "corpus", variant))
    assert answer.verdict is Verdict.UNKNOWN and "grounding" in answer.unknown[0].reason


def test_refused_event_at_the_largest_constants_is_explained() -> None:
    header = TraceHeader("fencing", "kip-320", constants_of("fencing"), complete=True)
    answer = replay(Trace(header, (TraceEvent(1, "follower_fetch", {"leader": 0, "follower": 1}),)))
    assert (answer.verdict, answer.cause) == (Verdict.VIOLATED, "guard")
    untried = {report.action: report.untried for report in answer.frontier[0].actions}
    assert untried["follower_fetch"] == 63 * 63 - 2000 and untried["leader_write"] == 0


@pytest.mark.parametrize("name", ["compaction", "controller", "fencing", "snapshots", "tiering", "truncation"])
def test_conditions_agree_with_the_text(name: str) -> None:
    traced = PROTOCOLS[name].traced()
    small = {each.name: min(each.default, 2) for each in PROTOCOLS[name].constants.values()}
    system = ground(traced, small)
    reference = Reference(system)
    conditions = Conditions(system, {**traced.invariants, **traced.witnesses})
    texts = {**PROTOCOLS[name].invariants, **PROTOCOLS[name].witnesses}
    state, states = system.initial, [system.initial]
    for step in range(40):
        successors = reference.successors(state)
        if not successors:
            break
        state = successors[step * 7 % len(successors)][2]
        states.append(state)
    # States that no run reaches break invariants.
    states += [
        tuple(min(cell.high, value + 1) for cell, value in zip(system.layout.cells, s, strict=True))
        for s in states[::4]
    ]
    false = 0
    for each in states:
        view = IntState(system, each)
        expected = [n for n in (*traced.invariants, *traced.witnesses) if not texts[n].text(reference.k, view)]
        assert conditions.broken(each) == expected
        false += len(expected)
    assert false


def test_condition_binds_afresh_where_a_term_occurs_twice() -> None:
    traced = PROTOCOLS["fencing"].traced()

    def condition(k: Algebra, s: View) -> Value:
        def alike(one: Value, other: Value) -> Value:
            return k.all(one != other, s.leo[one] == s.leo[other])

        several = k.exists(REPLICA, lambda one: k.exists(REPLICA, lambda other: alike(one, other)))
        return k.all(several, k.any(k.exists(REPLICA, lambda each: each == k.NONE), several))

    term = Text(traced.protocol, traced.variant).promise("condition", "invariant", condition)
    values = traced.protocol.check_constants({})
    system = System(traced, values, Layout(traced.variables, values), [], {}, {})
    assert Conditions(system, {"condition": term}).broken(system.initial) == []


def test_conditions_stop_at_the_limit() -> None:
    traced = PROTOCOLS["truncation"].traced()
    values = traced.protocol.check_constants(constants_of("truncation"))
    system = System(traced, values, Layout(traced.variables, values), [], {}, {})
    with pytest.raises(WorkSpentError, match="more than 1,000 evaluations"):
        Conditions(system, traced.invariants, 1000).broken(system.initial)
