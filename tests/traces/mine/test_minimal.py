"""Minimal traces of all kinds of bugs: refused for the same reason, and nothing can be left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.fencing import fencing
from fencepost.traces.corpus.convert import events_of
from fencepost.traces.corpus.layout import CorpusHeader, CorpusLayout
from fencepost.traces.corpus.spread import SERIAL
from fencepost.traces.format import Trace, TraceEvent
from fencepost.traces.mine.answer import Group
from fencepost.traces.mine.job import groups_of
from fencepost.traces.mine.work_unit import Miner, Question
from fencepost.traces.mine.workers import Workers
from fencepost.traces.record import record
from fencepost.traces.replay import Budget, replay
from fencepost.traces.stepper import DirectStepper

CONSTANTS = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}


@pytest.fixture
def run(model: Any) -> Any:
    """A run of the safe variant at 2/2/2/2: a leader, a follower, one record written and fetched, and detours."""
    stepper = model("kip-320", 2, 2, 2, 2)

    def go(*calls: tuple[Any, ...]) -> Trace:
        state, steps = stepper.system.initial, []
        for action, *values in calls:
            names = stepper.system.traced.action(action).params
            params = tuple(zip(names, values, strict=True))
            (step,) = stepper.some(state, action, [params])
            steps.append(step)
            state = step.state
        return record(stepper.system, steps)

    return go


LONG = (
    ("controller_elect_leader", 1),
    ("become_leader", 1, 0),
    ("become_follower", 1, 0, 0),
    ("leader_write", 1),
    ("follower_fetch", 1, 0),
    ("leader_inc_high_watermark", 1),
)


def mined(trace: Trace, variant: str | None = None, complete: bool = True, skipped: int = 0) -> list[Group]:
    header = trace.header
    layout = CorpusLayout.of(CorpusHeader("fencing", header.variant, header.constants, complete))
    budget = Budget(max_skipped=skipped)
    miner = Miner(layout, Question(variant, budget), "test")
    miner.mine(events_of(layout, [(7, trace)]))
    with Workers(SERIAL) as workers:
        return groups_of(miner.part, budget, 10, workers)[0]


def refused(group: Group) -> Any:
    """The replay of a group's minimal trace against what it was held against."""
    assert group.minimal is not None
    stepper = DirectStepper(fencing.traced(group.variant), group.minimal.header.constants)
    answer = replay(group.minimal, stepper)
    assert answer.verdict is Verdict.VIOLATED and answer.event is group.minimal.events[-1]
    return answer


def test_a_step_that_several_guards_refuse_stays_refused_by_the_first(run: Any) -> None:
    """Fetching from a replica that leads nothing: that it does not follow it either is no matter."""
    trace = run(*LONG)
    bad = TraceEvent(7, "follower_fetch", {"leader": 0, "follower": 1})
    (group,) = mined(replace(trace, events=(*trace.events, bad)))
    assert (group.bug.guard, group.mutants, group.minimised) == ("presumes_leadership", (), True)
    assert len(group.minimal or ()) == 1
    assert refused(group).frontier[0].denials[0].refusal.guard == "presumes_leadership"


def test_an_outcome_that_no_mutant_has_keeps_its_values(run: Any) -> None:
    """A write after which another replica's ISR is empty: no bound of the model does that."""
    trace = run(*LONG[:4])
    last = trace.events[-1]
    bad = replace(last, observed={**last.observed, "isr[0]": ()})
    (group,) = mined(replace(trace, events=(*trace.events[:-1], bad)))
    assert (group.bug.kind, group.bug.variables, group.mutants) == ("effect", ("isr",), ())
    assert group.minimised and [event.action for event in group.minimal.events] == [  # type: ignore[union-attr]
        "controller_elect_leader",
        "become_leader",
        "become_follower",
        "leader_write",
    ]
    (difference,) = refused(group).frontier[0].denials[0].differences
    assert (difference.cell, difference.observed) == ("isr[0]", ())


def test_a_look_that_shows_another_state_is_a_bug_too(run: Any) -> None:
    trace = run(*LONG)
    seen = {**trace.events[-1].observed, "hw[1]": 0}
    look = TraceEvent(7, None, {}, seen)
    (group,) = mined(replace(trace, events=(*trace.events, look)))
    assert (group.bug.kind, group.bug.action, group.bug.variables) == ("effect", None, ("hw-",))
    assert group.minimised and len(group.minimal or ()) == 7
    assert refused(group).cause == "observation"


def test_an_action_that_the_variant_lacks_is_named(model: Any) -> None:
    """A crash, of a variant with restarts, held against the safe one."""
    stepper = model("kip-320-restarts", 2, 2, 2, 2)
    theirs = [action.name for action in stepper.system.traced.actions]
    ours = [action.name for action in fencing.traced().actions]
    (absent,) = set(theirs) - set(ours)
    state, steps = stepper.system.initial, []
    for wanted in ("controller_elect_leader", "become_leader", "leader_write", absent):
        steps.append(next(step for step in stepper.every(state) if step.action == wanted))
        state = steps[-1].state
    (group,) = mined(record(stepper.system, steps), "kip-320")
    assert (group.bug.kind, group.bug.action, group.bug.guard) == ("guard", absent, None)
    assert group.minimal is not None and len(group.minimal) == 1
    assert "does not have" in str(group.bug)
    assert refused(group).cause == "guard"


def test_a_trace_with_holes_is_told_whole(run: Any) -> None:
    """Half of it not observed, a parameter not known: the story has every step and every cell."""
    trace = run(*LONG)
    events = [
        replace(event, observed={name: value for name, value in event.observed.items() if name.startswith("leo")})
        for event in trace.events
    ]
    events[1] = replace(events[1], params={"leader": None, "epoch": 0})
    bad = TraceEvent(7, "leader_inc_high_watermark", {"leader": 1})
    (group,) = mined(replace(trace, events=(*events, bad)))
    assert (group.bug.guard, group.minimised, group.prefix) == ("record_above_hw", True, 7)
    assert group.minimal is not None and len(group.minimal) <= 7
    assert all(None not in event.params.values() for event in group.minimal.events)
    refused(group)


def test_a_trace_that_lacks_events_is_told_with_the_steps_between(run: Any) -> None:
    trace = run(*LONG)
    events = [event for event in trace.events if event.step not in (2, 4)]
    bad = TraceEvent(7, "become_leader", {"leader": 1, "epoch": 0})
    # Ever more unobserved steps might explain it, so nothing is certain.
    assert mined(replace(trace, events=(*events, bad)), complete=False, skipped=1) == []


def test_a_promise_that_a_look_breaks_is_told_as_it_was_recorded(run: Any) -> None:
    """In a trace that lacks events no run of the safe variant leads there, and yet the promise is broken."""
    trace = run(*LONG)
    seen = {**trace.events[-1].observed, "quorum_isr": (1,), "quorum_leader": 0}
    (group,) = mined(replace(trace, events=(*trace.events, TraceEvent(9, None, {}, seen))), complete=False)
    assert (group.bug.kind, group.bug.invariant) == ("promise", "leader_in_isr")
    assert not group.minimised and group.note is not None and group.minimal is not None
    assert len(group.minimal) == 7


def test_replicas_and_epochs_become_small(run: Any) -> None:
    """The second leader's second epoch: told with replica 0 and the first epoch in which it can be."""
    trace = run(
        ("controller_elect_leader", 1), ("controller_elect_leader", 0), ("become_leader", 0, 1), ("leader_write", 0)
    )
    bad = TraceEvent(5, "leader_inc_high_watermark", {"leader": 0})
    (group,) = mined(replace(trace, events=(*trace.events, bad)))
    assert [event.call for event in group.minimal.events] == [  # type: ignore[union-attr]
        "controller_elect_leader(new_leader=0)",
        "become_leader(leader=0, epoch=0)",
        "leader_write(leader=0)",
        "leader_inc_high_watermark(leader=0)",
    ]
    assert group.bug.guard == "isr_acknowledges"
