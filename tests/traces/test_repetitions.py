"""Events that change nothing are observations, in replay and in mining; events that claim a change are not."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fencepost.model.core.change_guards import change_guards
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore.result import Verdict
from fencepost.model.interpret.batch import Block
from fencepost.traces.corpus.convert import events_of
from fencepost.traces.corpus.layout import CorpusHeader, CorpusLayout
from fencepost.traces.format import Trace, TraceEvent, TraceHeader
from fencepost.traces.mine.against import Against
from fencepost.traces.mine.findings import Judge
from fencepost.traces.observe import observe
from fencepost.traces.read import read_trace
from fencepost.traces.record import record
from fencepost.traces.replay import Budget, replay
from fencepost.traces.stepper import CompiledStepper, DirectStepper

SMALL = {
    "compaction": {"replicas": 2, "log_size": 2, "keys": 1},
    "controller": {"replicas": 2, "nodes": 2, "log_size": 3},
    "fencing": {"replicas": 2},
    "snapshots": {"replicas": 2, "log_size": 2},
    "tiering": {"replicas": 2, "log_size": 2},
    "truncation": {"replicas": 2, "log_size": 2},
}
VARIANTS = [
    *((name, PROTOCOLS[name].default_variant) for name in SMALL),
    ("fencing", "kip-320-cluster"),
    ("truncation", "kip-320-kafka"),
]
VARIANTS = [(name, variant) for name, variant in VARIANTS if variant in PROTOCOLS[name].variants]


@cache
def model(name: str, variant: str) -> CompiledStepper:
    return CompiledStepper(ground(PROTOCOLS[name].traced(variant), SMALL[name]))


@cache
def repeatable(name: str, variant: str) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
    """The steps of actions with a guard that only demands a change."""
    system = model(name, variant).system
    actions = {action.name for action in system.traced.actions if action.change_guards}
    return [step for step in system.by_step if step[0] in actions]


@cache
def judge(name: str, variant: str) -> tuple[CorpusLayout, Judge]:
    stepper = model(name, variant)
    layout = CorpusLayout.of(CorpusHeader(name, variant, stepper.system.constants, complete=True))
    return layout, Judge(Against(layout, stepper.system.traced), Budget())


def mined(trace: Trace, name: str, variant: str) -> int | None:
    """The number of the first wrong event by mining, or None."""
    layout, ask = judge(name, variant)
    events = events_of(layout, [(0, trace)])
    found = ask(events, ask.against.codes(events))
    assert not found.unknown
    return found.findings[0].row + 1 if found.findings else None


def repeated_walk(name: str, variant: str, seed: int, steps: int = 25) -> tuple[Trace, list[int]]:
    """A random walk with every cell observed, into which repetitions are put; and their numbers."""
    stepper, chance = model(name, variant), random.Random(seed)
    state, run = stepper.system.initial, []
    events: list[TraceEvent] = []
    put: list[int] = []
    for _ in range(steps):
        every = stepper.every(state)
        if not every:
            break
        step = chance.choice(every)
        run.append(step)
        state = step.state
        seen = observe(stepper.layout, state)
        events.append(TraceEvent(len(events) + 1, step.action, dict(step.params), seen))
        again = [each for each in repeatable(name, variant) if stepper.repeats(state, each[0], [each[1]])]
        for action, params in chance.sample(again, min(2, len(again))):
            events.append(TraceEvent(len(events) + 1, action, dict(params), seen))
            put.append(len(events))
    header = record(stepper.system, run).header
    return Trace(replace(header, complete=True), tuple(events)), put


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_repetitions_hold_in_replay_and_mining(name: str, variant: str) -> None:
    total = 0
    for seed in range(4):
        trace, put = repeated_walk(name, variant, seed)
        answer = replay(trace, model(name, variant))
        assert answer.verdict is Verdict.HOLDS
        assert list(answer.repeated) == put
        assert mined(trace, name, variant) is None
        bare = tuple(replace(each, observed={}) for each in trace.events)
        assert mined(replace(trace, events=bare), name, variant) is None
        total += len(put)
    assert total, "no walk met a repetition"


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_repetition_with_a_wrong_value_is_violated(name: str, variant: str) -> None:
    stepper, planted = model(name, variant), 0
    for seed in range(4):
        trace, put = repeated_walk(name, variant, seed)
        chance = random.Random(seed)
        for number in put[:3]:
            event = trace.events[number - 1]
            cell = chance.choice(stepper.layout.cells)
            if cell.low == cell.high:
                continue
            values = list({observe(stepper.layout, s)[cell.name] for s in _with_other_values(stepper, cell.number)})
            other = next(value for value in values if value != event.observed[cell.name])
            wrong = replace(event, observed={**event.observed, cell.name: other})
            events = (*trace.events[: number - 1], wrong, *trace.events[number:])
            answer = replay(replace(trace, events=events), stepper)
            if answer.event != wrong:
                # The step is also an ordinary one, which writes that value.
                continue
            assert answer.verdict is Verdict.VIOLATED
            assert mined(replace(trace, events=events), name, variant) == number
            planted += 1
    assert planted


def _with_other_values(stepper: CompiledStepper, number: int) -> list[tuple[int, ...]]:
    cell = stepper.layout.cells[number]
    low = max(cell.low, 0) if cell.variable.values.sort.value != "int" else cell.low
    return [(*stepper.system.initial[:number], v, *stepper.system.initial[number + 1 :]) for v in (low, cell.high)]


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_reference_and_terms_agree_on_repetitions(name: str, variant: str) -> None:
    stepper = model(name, variant)
    trace, _ = repeated_walk(name, variant, 99, 20)
    states = {stepper.system.initial}
    states |= {each.state for each in replay(trace, stepper).run}
    columns = np.array(sorted(states), dtype=np.int64).T
    block = Block(columns)
    for (action, params), instance in stepper.system.by_step.items():
        condition = instance.repetition(stepper.system.traced.action(action))
        found = np.broadcast_to(block(condition), (columns.shape[1],))
        for place, state in enumerate(sorted(states)):
            expected = stepper.reference.repeats(state, action, params)
            assert bool(found[place]) is expected, (action, params)
            assert stepper.repeats(state, action, [params]) is expected


def test_other_guards_still_refuse_a_repetition() -> None:
    """A replica that does not lead commits nothing, and a leader of another epoch is no news."""
    stepper = model("fencing", "kip-320-cluster")
    state = stepper.system.initial
    for action in ("producer_hears", "consumer_reads", "leader_learn_isr", "follower_acknowledge"):
        for params in stepper.choices(action):
            assert stepper.reference.refused_by(state, action, params) is not None
            assert not stepper.reference.repeats(state, action, params)


def test_guard_that_compares_with_a_literal_is_no_change_guard() -> None:
    """``awaited != nothing`` with ``awaited := nothing`` demands that there is an answer to await."""
    traced = PROTOCOLS["controller"].traced()
    assert traced.action("drop_order").change_guards == frozenset()
    refresh = PROTOCOLS["truncation"].traced("kip-320-mended").action("refresh_metadata")
    assert refresh.change_guards == {"another_leader"}
    assert change_guards(refresh.guards, refresh.writes[1:]) == frozenset()


HEADER = TraceHeader(
    "truncation",
    "kip-320-mended",
    {"replicas": 2, "log_size": 2, "max_records": 3, "max_leader_epoch": 1},
    complete=True,
)
READ_ALL = [
    ("elect_cleanly", {"new_leader": 0}, {}),
    ("become_follower", {"follower": 1}, {}),
    ("refresh_metadata", {"epoch": 0}, {}),
    ("leader_write", {"leader": 0}, {}),
    ("leader_write", {"leader": 0}, {}),
    ("follower_fetch", {"follower": 1}, {}),
    ("leader_inc_high_watermark", {"leader": 0}, {}),
    ("consumer_fetch", {"leader": 0}, {}),
    ("commit_offset", {}, {"committed": 1}),
]
LATER = [
    ("commit_offset", {}, {"committed": 1}),
    ("refresh_metadata", {"epoch": 0}, {"metadata_leader": 0}),
    ("restart", {}, {"position": 1}),
    ("become_follower", {"follower": 1}, {"leader_epoch[1]": 0}),
]


def trace_of(*calls: tuple[str, dict[str, int], dict[str, int]]) -> Trace:
    return Trace(HEADER, tuple(TraceEvent(n, a, p, dict(o)) for n, (a, p, o) in enumerate(calls, 1)))


@pytest.mark.parametrize("call", LATER)
def test_event_that_changes_nothing_is_an_observation(call: tuple[str, dict[str, int], dict[str, int]]) -> None:
    answer = replay(trace_of(*READ_ALL, call, call))
    assert (answer.verdict, answer.repeated) == (Verdict.HOLDS, (10, 11))
    action, params, seen = call
    ((cell, value),) = seen.items()
    answer = replay(trace_of(*READ_ALL, call, (action, params, {cell: value + 1})))
    assert (answer.verdict, answer.step, answer.cause) == (Verdict.VIOLATED, 11, "observation")
    assert answer.frontier[0].denials[0].differences[0].cell == cell


@pytest.mark.parametrize(
    "call",
    [
        ("refresh_metadata", {"epoch": 1}, {}),
        ("consumer_fetch", {"leader": 0}, {}),
        ("consumer_fetch", {"leader": 1}, {}),
        ("leader_write", {"leader": 1}, {}),
    ],
)
def test_event_that_claims_a_change_is_refused(call: tuple[str, dict[str, int], dict[str, int]]) -> None:
    answer = replay(trace_of(*READ_ALL, call))
    assert (answer.verdict, answer.step, answer.cause) == (Verdict.VIOLATED, 10, "guard")


def test_reported_trace_holds(tmp_path: Path) -> None:
    """A second commit of the committed offset, with a step number far above the last."""
    lines = [json.dumps(HEADER.to_json())]
    calls = [*READ_ALL, LATER[0]]
    for number, (action, params, seen) in enumerate(calls, 1):
        lines.append(json.dumps({"step": number * 7, "action": action, "params": params, "observed": seen}))
    path = tmp_path / "again.jsonl"
    path.write_text("\n".join(lines) + "\n")
    answer = replay(read_trace(path))
    assert (answer.verdict, answer.repeated) == (Verdict.HOLDS, (70,))


def test_mutant_without_the_guard_takes_an_ordinary_step() -> None:
    traced = PROTOCOLS["truncation"].traced("kip-320-mended").drop("commit_offset.not_committed")
    answer = replay(trace_of(*READ_ALL, LATER[0]), DirectStepper(traced, HEADER.constants))
    assert (answer.verdict, answer.repeated) == (Verdict.HOLDS, ())
