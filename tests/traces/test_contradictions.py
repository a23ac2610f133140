"""Observations that contradict each other are found without a search, and only where that is certain."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from fencepost.model.core.ground import ground
from fencepost.model.explore.result import Verdict
from fencepost.model.interpret.reference import IntState
from fencepost.model.protocols.fencing import fencing
from fencepost.traces.corpus.ingest import ingest_files
from fencepost.traces.format import Trace, TraceEvent, TraceHeader, json_line
from fencepost.traces.mine.job import Asked, mine
from fencepost.traces.read import read_trace
from fencepost.traces.replay import Budget, replay
from fencepost.traces.stepper import CompiledStepper

CONSTANTS = {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
SAFE = ["kip-320-cluster", "kip-320-kafka"]
SHIPPED = "kip-320-kafka-shipped"
Looks = Sequence[dict[str, int]]


def trace_of(looks: Looks, variant: str = "kip-320-cluster", *, complete: bool = False) -> Trace:
    header = TraceHeader("fencing", variant, CONSTANTS, complete=complete)
    return Trace(header, tuple(TraceEvent(step, observed=seen, line=step + 1) for step, seen in enumerate(looks, 1)))


def cell(name: str, index: int, value: int) -> dict[str, int]:
    return {f"{name}[{index}]": value}


CONFLICTS: dict[str, tuple[Looks, set[int]]] = {
    "two values read at one offset": ([cell("read", 0, 0), cell("read", 0, 1)], {2, 3}),
    "read is not what was acknowledged": ([cell("acknowledged", 0, 0), cell("read", 0, 1)], {2, 3}),
    "acknowledged where another was read": ([cell("read", 1, 0), cell("acknowledged", 1, 1)], {2, 3}),
    "acknowledged elsewhere than read": ([cell("read", 1, 0), cell("acknowledged", 0, 0)], {2, 3}),
    "acknowledged at two offsets": ([cell("acknowledged", 0, 0), {}, cell("acknowledged", 0, 1)], {2, 4}),
    "two records acknowledged at one offset": ([cell("acknowledged", 0, 1), cell("acknowledged", 1, 1)], {2, 3}),
    "one record read at two offsets": ([cell("read", 0, 1), cell("read", 1, 1)], {2, 3}),
    "read and then not read": ([cell("read", 0, 1), cell("read", 0, -1)], {2, 3}),
    "all that contradict are named": (
        [cell("acknowledged", 0, 0), cell("acknowledged", 1, 1), cell("read", 0, 0), cell("read", 0, 1)],
        {2, 3, 4, 5},
    ),
}


@pytest.mark.parametrize("variant", SAFE)
@pytest.mark.parametrize("case", CONFLICTS)
def test_conflict_is_violated_without_a_search(case: str, variant: str) -> None:
    looks, lines = CONFLICTS[case]
    answer = replay(trace_of(looks, variant), budget=Budget(max_skipped=50))
    assert (answer.verdict, answer.cause, answer.states_visited) == (Verdict.VIOLATED, "observation", 0)
    assert answer.conflict is not None
    assert {each.event.line for each in answer.conflict.claims} == lines
    assert answer.line == max(lines)


CLEAN: dict[str, Looks] = {
    "the same again": [cell("read", 0, 0), cell("read", 0, 0)],
    "acknowledged and read": [cell("acknowledged", 1, 0), cell("read", 0, 1), cell("acknowledged", 0, 1)],
    "not yet": [cell("read", 0, -1), cell("read", 0, 1)],
    "another offset": [cell("read", 0, 1), cell("read", 1, 0)],
    "no client": [{"leo[0]": 1}, {"leo[0]": 0}],
}


@pytest.mark.parametrize("case", CLEAN)
def test_looks_that_agree_are_no_conflict(case: str) -> None:
    answer = replay(trace_of(CLEAN[case]))
    assert (answer.verdict, answer.conflict) == (Verdict.UNKNOWN, None)


def test_conflict_counts_only_with_all_invariants() -> None:
    looks, _ = CONFLICTS["two values read at one offset"]
    assert replay(trace_of(looks), invariants=["type_ok"]).conflict is None
    assert replay(trace_of(looks, SHIPPED)).conflict is None
    complete = replay(trace_of(looks, complete=True))
    assert (complete.verdict, complete.conflict, complete.line) == (Verdict.VIOLATED, None, 2)


@pytest.mark.parametrize("case", CONFLICTS)
def test_mining_gives_the_same_verdict(case: str, tmp_path: Path) -> None:
    trace = trace_of(CONFLICTS[case][0])
    path = tmp_path / "looks.jsonl"
    path.write_text(json_line(trace.header) + "".join(json_line(each) for each in trace.events))
    assert replay(read_trace(path)).verdict is Verdict.VIOLATED
    ingest_files(tmp_path, [path], tmp_path / "corpus")
    answer = mine(Asked(tmp_path / "corpus", "kip-320-cluster", max_states=1000))
    assert (answer.verdict, answer.violating_traces) == (Verdict.VIOLATED, 1)


def test_conflict_in_json_names_the_lines() -> None:
    answer = replay(trace_of(CONFLICTS["read is not what was acknowledged"][0]))
    body = json.loads(json.dumps(answer.to_json()))
    assert body["conflict"]["condition"] == "clients_agree"
    assert [(each["line"], each["cell"]) for each in body["conflict"]["claims"]] == [
        (2, "acknowledged[0]"),
        (3, "read[0]"),
    ]


@pytest.mark.parametrize("variant", SAFE)
def test_lasting_values_last_in_runs_that_keep_the_invariants(variant: str) -> None:
    """Every state at the smallest constants with two records, and walks at larger ones."""
    small = {"replicas": 2, "log_size": 1, "max_records": 2, "max_leader_epoch": 1}
    stepper = CompiledStepper(ground(fencing.traced(variant), small))
    states, new = {stepper.system.initial}, [stepper.system.initial]
    changes = 0
    while new and len(states) < 12_000:
        state = new.pop()
        for step in stepper.every(state):
            if step.state in states or stepper.broken(step.state):
                continue
            states.add(step.state)
            new.append(step.state)
            changes += assert_lasts(stepper, state, step.state)
    assert changes > 100
    stepper = CompiledStepper(ground(fencing.traced(variant), CONSTANTS))
    chance = random.Random(4)
    for _ in range(60):
        state = stepper.system.initial
        for _ in range(60):
            steps = [step for step in stepper.every(state) if not stepper.broken(step.state)]
            if not steps:
                break
            after = chance.choice(steps).state
            assert_lasts(stepper, state, after)
            state = after


def assert_lasts(stepper: CompiledStepper, before: tuple[int, ...], after: tuple[int, ...]) -> int:
    """Check one step; return how many lasting cells are set in the state before it."""
    rules = stepper.system.traced.variant.rules
    cells = [each for each in stepper.layout.cells if each.variable.lasting(rules)]
    held = [each.number for each in cells if before[each.number] != each.initial]
    assert cells and all(after[number] == before[number] for number in held)
    view = IntState(stepper.system, after)
    assert all(each.text(stepper.reference.k, view) for each in fencing.implied.values())
    return len(held)
