"""An answer of mining to report on: real minimal traces, the rest made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fencepost.model.protocols.fencing import fencing
from fencepost.traces.format import Trace, TraceHeader
from fencepost.traces.mine.answer import (
    Answer,
    Bug,
    Coverage,
    Group,
    Problem,
    Rare,
    Share,
    Unknown,
    Unvisited,
)
from fencepost.traces.record import record
from fencepost.traces.stepper import DirectStepper, TakenStep

CONSTANTS = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
SOURCE = {"corpus": "CORPUS"}

ZOMBIE = (
    ("controller_elect_leader", {"new_leader": 0}),
    ("become_leader", {"leader": 0, "epoch": 0}),
    ("become_follower", {"leader": 0, "follower": 1, "epoch": 0}),
    ("controller_shrink_isr", {"replica": 1}),
    ("become_leader", {"leader": 0, "epoch": 1}),
    ("leader_write", {"leader": 0}),
    ("follower_fetch", {"leader": 0, "follower": 1}),
)
"""Seven steps to a fetch by a follower that was fenced."""


def trace_of(calls: Sequence[tuple[str, dict[str, int]]], *dropped: str) -> Trace:
    """A run of the safe variant without some guards, as the trace of another system."""
    stepper = DirectStepper(fencing.traced("kip-320").drop(*dropped), CONSTANTS)
    state, run = stepper.system.initial, list[TakenStep]()
    for action, params in calls:
        run.append(next(each for each in stepper.every(state) if each.action == action and dict(each.params) == params))
        state = run[-1].state
    events = record(stepper.system, run).events
    return Trace(TraceHeader("fencing", "kip-320", CONSTANTS, True, SOURCE), events)


def refused() -> Group:
    """A bug that is a step which a guard refuses."""
    return Group(
        Bug("fencing", "guard", "follower_fetch", "epoch_not_fenced"),
        count=1204,
        first=12,
        shortest=656,
        prefix=9,
        constants=CONSTANTS,
        variant="kip-320",
        shape=("become_leader", "leader_write", "follower_fetch"),
        then={"weak_isr": (41, 2)},
        mutants=("follower_fetch.epoch_not_fenced dropped",),
        minimal=trace_of(ZOMBIE, "follower_fetch.epoch_not_fenced"),
        minimised=True,
    )


def other_outcome() -> Group:
    """A bug that is a step with another outcome: a write that leaves the LEO where it was."""
    trace = trace_of(ZOMBIE[:-1])
    last = replace(trace.events[-1], observed={**trace.events[-1].observed, "leo[0]": 0})
    return Group(
        Bug("fencing", "effect", "leader_write", variables=("leo-",)),
        count=3,
        first=1,
        shortest=1,
        prefix=6,
        constants=CONSTANTS,
        variant="kip-320",
        minimal=replace(trace, events=(*trace.events[:-1], last)),
    )


def untold() -> Group:
    """A bug whose trace could not be made small."""
    return Group(
        Bug("fencing", "promise", invariant="strong_isr"),
        count=1,
        first=77,
        shortest=77,
        prefix=20,
        constants=CONSTANTS,
        variant="truncate-to-hw",
        note="no single run of the model leads to it",
    )


def coverage() -> Coverage:
    """What was seen, with something of each kind that was not."""
    traced = fencing.traced("kip-320")
    guards = [f"{action.name}.{guard}" for action in traced.actions for guard, _ in action.guards]
    return Coverage(
        "fencing",
        "kip-320",
        CONSTANTS,
        20_000_000,
        {action.name: 1000 * place for place, action in enumerate(traced.actions)},
        {name: None if place == 3 else place for place, name in enumerate(guards)},
        Share(5_972, 5_973),
        Share(2_529, 11_732, estimated=True),
        CONSTANTS,
        Share(1, 1_000_000),
        Share(None, None),
        (Unvisited("can happen: become_leader", 5), Unvisited("can happen: become_follower", 1)),
        23,
        (Rare("become_leader", "can happen: become_leader", 1, 17),),
        ("leader_write.presumes_leadership",),
        ("the model has more states than that",),
    )


def answer() -> Answer:
    """An answer with something of everything."""
    return Answer(
        variants=("kip-320",),
        traces=200_000,
        events=20_000_000,
        violating_traces=1_208,
        groups=(refused(), other_outcome(), untold()),
        groups_left_off=2,
        unknown=(Unknown("a budget ran out", 3, 99),),
        coverage=(coverage(),),
        problems=(Problem("it is no Parquet", "CORPUS/part-00003.parquet", "write it anew"),),
        seconds=12.5,
    )


def clean() -> Answer:
    """An answer with nothing to complain of."""
    return replace(answer(), violating_traces=0, groups=(), groups_left_off=0, unknown=(), problems=())
