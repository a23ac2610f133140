"""The outcome of a replay in the terminal."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

from fencepost.traces.format import Trace, TraceEvent
from fencepost.traces.record import record
from fencepost.traces.replay import Budget, replay
from fencepost.traces.report.replay_text import print_replay, render_replay
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

Model = Any
Walk = Any
Counterexample = Any


def test_a_refused_event_is_told_with_its_guard_and_operands(model: Model, counterexample: Counterexample) -> None:
    old, new = model("truncate-to-hw"), model()
    run = counterexample("truncate-to-hw")
    answer = replay(record(old.system, run, variables=["leo"]), new)
    text = render_replay(answer, "broken.jsonl")
    lines = text.splitlines()
    assert lines[0] == "violated  broken.jsonl"
    assert f"event {answer.step}: {run[answer.explained].call}" in lines
    assert "state 1 of 1 before the event" in lines
    refusal = answer.frontier[0].denials[0].refusal
    assert refusal is not None
    told = " ".join(text.split())
    assert f"guard {refusal.guard} wants {refusal.condition}; " in told
    for name, value in refusal.operands:
        assert f"{name} is {value}" in told
    for step in run[: answer.explained]:
        assert step.call in text
    assert "can happen: controller_elect_leader(" in text
    ends = " ".join(str(answer.frontier[0].cells[f"leo[{replica}]"]) for replica in range(3))
    assert f"leo {ends}" in text


def test_a_differing_observation_is_told_with_both_values(model: Model, walk: Walk) -> None:
    stepper = model()
    trace = record(stepper.system, walk(stepper, range(5)), variables=["quorum_isr", "leader"])
    wrong = replace(trace.events[3], observed={"quorum_isr": (), "leader[1]": None}, line=5)
    answer = replay(Trace(trace.header, (*trace.events[:3], wrong)), stepper)
    text = render_replay(answer, "t.jsonl")
    assert text.startswith("violated  t.jsonl, line 5\n")
    assert "can happen, but then" in text
    isr = next(d for d in answer.frontier[0].denials[0].differences if d.cell == "quorum_isr")
    assert str(isr) in " ".join(text.split())
    assert "{} in the trace" in text


def test_a_broken_invariant_is_told_with_its_step(model: Model, counterexample: Counterexample) -> None:
    old = model("kip-101")
    run = counterexample("kip-101")
    text = render_replay(replay(record(old.system, run)), "t.jsonl")
    assert text.startswith("violated: ")
    assert f"broken after step {len(run)} of the run, {run[-1].call}:" in " ".join(text.split())
    assert ("... " in text) is (len(run) > 8)


def test_no_verdict_names_the_budget_and_the_states_left_out(model: Model) -> None:
    stepper = model()
    header = record(stepper.system, []).header
    trace = Trace(replace(header, complete=False), (TraceEvent(4, observed={"leo[1]": 2}),))
    answer = replay(trace, stepper, budget=Budget(max_skipped=3))
    text = render_replay(answer, "t.jsonl")
    assert text.startswith("unknown  t.jsonl\n")
    assert "max_skipped" in text
    assert f"and {answer.frontier_size - 5:,} states more that do not explain it either" in text


def test_a_trace_that_holds_takes_two_lines(model: Model, walk: Walk) -> None:
    stepper = model()
    text = render_replay(replay(record(stepper.system, walk(stepper, range(7)))), "t.jsonl")
    assert text.split("\n", 1)[0] == "holds  t.jsonl"
    assert "explains all 7 events" in text


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 1000), min_size=3, max_size=20), st.booleans())
def test_every_line_fits_and_colour_adds_nothing(model: Model, walk: Walk, choices: list[int], whole: bool) -> None:
    old, new = model("kip-279"), model()
    run = walk(old, choices)
    trace = record(old.system, run, variables=None if whole else ["hw"])
    cut = Trace(replace(trace.header, complete=whole), trace.events[1:])
    answer = replay(cut, new, budget=Budget(max_skipped=1))
    text = render_replay(answer, "t\x1b[31m.jsonl")
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "\x1b" not in text
    coloured = io.StringIO()
    print_replay(answer, "t.jsonl", Console(file=coloured, width=80, force_terminal=True, color_system="standard"))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured.getvalue())
    assert [line.rstrip() for line in plain.splitlines()] == render_replay(answer, "t.jsonl").splitlines()
