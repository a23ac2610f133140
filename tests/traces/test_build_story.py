"""Stories built from runs and from replays."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.model.core.errors import ProtocolError
from fencepost.model.explore.result import Verdict
from fencepost.traces.build_run_report import Breaches, replay_headline, story_of_replay, story_of_run
from fencepost.traces.format import Trace, value_json
from fencepost.traces.observe import observe
from fencepost.traces.record import record
from fencepost.traces.replay import EXPLAINED, Budget, replay
from fencepost.traces.run_report import from_json, to_json
from fencepost.traces.stepper import DirectStepper
from hypothesis import given, settings
from hypothesis import strategies as st

Model = Any
Walk = Any
Counterexample = Any
Shortest = Any


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(["truncate-to-hw", "kip-320"]), st.lists(st.integers(0, 1000), max_size=15))
def test_a_story_tells_the_run_as_it_was(model: Model, walk: Walk, variant: str, choices: list[int]) -> None:
    stepper = model(variant)
    run = walk(stepper, choices)
    story = story_of_run(stepper, run, verdict=Verdict.HOLDS)
    states = [stepper.system.initial, *(step.state for step in run)]
    assert len(story.moments) == len(states)
    for number, (moment, state) in enumerate(zip(story.moments, states, strict=True)):
        assert moment.step == number
        assert moment.state == {cell: value_json(value) for cell, value in observe(stepper.layout, state).items()}
        enabled = [(name, dict(params)) for name, params, _ in stepper.reference.successors(state)]
        assert [(call.action, call.params) for call in moment.enabled] == enabled
        assert [breach.invariant for breach in moment.broken] == stepper.reference.broken(state)
    assert [(m.action, m.params) for m in story.moments[1:]] == [(step.action, dict(step.params)) for step in run]
    assert from_json(to_json(story)) == story


@pytest.mark.parametrize("direct", [False, True])
def test_a_counterexample_says_which_cells_break_the_promise(
    model: Model, counterexample: Counterexample, direct: bool
) -> None:
    old = model("truncate-to-hw")
    run = counterexample("truncate-to-hw")
    runner = DirectStepper(old.system.traced, old.system.constants) if direct else old
    story = story_of_run(runner, run, verdict=Verdict.VIOLATED, violated="weak_isr", source={"engine": "reference"})
    assert story.headline == f"weak_isr breaks after {len(run)} steps."
    assert story.promises["weak_isr"].startswith("A presumed leader's records")
    assert story.first_breach() == len(run)
    breach = next(each for each in story.moments[-1].broken if each.invariant == "weak_isr")
    state = story.moments[-1].state
    leader = next(r for r in story.replicas if f"leader[{r}]" in breach.cells)
    assert state[f"leader[{leader}]"] == leader
    mark = state[f"hw[{leader}]"]
    assert f"hw[{leader}]" in breach.cells
    member = next(r for r in story.replicas if f"leo[{r}]" in breach.cells and r != leader)
    isr = state[f"isr[{leader}]"]
    assert isinstance(isr, list)
    assert member in isr
    short = state[f"leo[{member}]"]
    assert isinstance(short, int)
    assert isinstance(mark, int)
    assert short < mark
    assert f"leo[{member}] is {short}" in breach.detail


def test_a_breach_of_every_kind_has_a_detail(model: Model, walk: Walk) -> None:
    """A state is written by hand for each invariant, so that each is seen broken."""
    stepper = model()
    layout = stepper.layout
    run = walk(stepper, [0])
    story = story_of_run(stepper, run, verdict=Verdict.HOLDS)
    assert all(not moment.broken for moment in story.moments)
    old = model("kip-101")
    state = list(old.system.initial)
    state[layout.by_name["quorum_leader"]] = 1
    state[layout.by_name["quorum_isr"]] = 0b101
    breach = Breaches(old.system).of("leader_in_isr", tuple(state))
    assert breach.cells == ("quorum_leader", "quorum_isr")
    assert breach.detail == "quorum_leader is 1, quorum_isr is {0, 2}"
    state[layout.by_name["leo[2]"]] = 7
    assert Breaches(old.system).of("type_ok", tuple(state)).cells == ("leo[2]",)


def test_a_lasso_closes_and_a_false_one_is_refused(model: Model, shortest: Shortest) -> None:
    stepper = model()
    run = shortest(
        stepper,
        lambda state: any(
            step.action == "leader_expand_isr" and back(stepper, state, step.state) for step in stepper.every(state)
        ),
    )
    expand = next(
        s
        for s in stepper.every(run[-1].state)
        if s.action == "leader_expand_isr" and back(stepper, run[-1].state, s.state)
    )
    shrink = next(s for s in stepper.every(expand.state) if s.state == run[-1].state)
    story = story_of_run(stepper, [*run, expand, shrink], verdict=Verdict.UNKNOWN, loop_start=len(run))
    assert story.loop_start == len(run)
    with pytest.raises(ValueError, match="lasso"):
        story_of_run(stepper, [*run, expand], verdict=Verdict.UNKNOWN, loop_start=len(run))


def back(stepper: Any, before: Any, after: Any) -> bool:
    return any(step.state == before for step in stepper.every(after))


def test_no_story_is_told_of_what_is_no_run(model: Model, walk: Walk) -> None:
    with pytest.raises(ProtocolError, match="step 1 of the run"):
        story_of_run(model(), walk(model(), range(6))[3:], verdict=Verdict.HOLDS)


def test_the_story_of_a_refused_trace_ends_where_the_model_stops(model: Model, counterexample: Counterexample) -> None:
    old, new = model("truncate-to-hw"), model()
    trace = record(old.system, counterexample("truncate-to-hw"), source={"seed": 4})
    answer = replay(trace, new)
    story = story_of_replay(trace, answer, new)
    assert (story.verdict, story.violated, story.variant) == ("violated", EXPLAINED, "kip-320")
    assert story.source == {"seed": 4}
    assert EXPLAINED in story.promises
    assert len(story.moments) == len(answer.explanation) + 1
    notes = "\n".join(story.moments[-1].notes)
    assert f"event {answer.step}" in notes
    refusal = answer.frontier[0].denials[0].refusal
    assert refusal is not None
    assert f"guard {refusal.guard} wants" in notes
    assert str(answer.step) in story.headline
    own = story_of_replay(trace, replay(trace))
    assert (own.violated, own.first_breach()) == ("weak_isr", len(trace))


def test_the_story_of_a_gap_says_which_steps_nobody_saw(model: Model, walk: Walk) -> None:
    stepper = model()
    full = record(stepper.system, walk(stepper, range(8)))
    header = full.header.__class__(**{**full.header.__dict__, "complete": False})
    trace = Trace(header, full.events[2:3] + full.events[4:])
    answer = replay(trace, stepper, budget=Budget(max_skipped=2))
    assert answer.verdict is Verdict.HOLDS
    story = story_of_replay(trace, answer, stepper)
    unseen = [m.step for m in story.moments if any("nobody observed" in note for note in m.notes)]
    assert len(unseen) == answer.skipped == 3
    assert "3 steps that it did not observe" in story.headline
    gave_up = replay(trace, stepper, budget=Budget(max_skipped=2, max_frontier=2))
    assert "max_frontier" in replay_headline(gave_up)
