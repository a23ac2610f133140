"""Both passes against the replay of single traces: the same first fault, of the same kind, at the same step."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.fencing import fencing
from fencepost.traces.corpus.convert import events_of
from fencepost.traces.corpus.layout import CorpusHeader, CorpusLayout
from fencepost.traces.format import Trace, TraceEvent
from fencepost.traces.mine.against import Against
from fencepost.traces.mine.findings import Judge
from fencepost.traces.record import record
from fencepost.traces.replay import Budget, replay
from hypothesis import given, settings
from hypothesis import strategies as st

CONSTANTS = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
VARIANTS = ["truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try", "kip-320"]
_JUDGES: dict[tuple[str, str, bool, int], tuple[CorpusLayout, Judge]] = {}


def judge_of(made_by: str, variant: str, complete: bool, skipped: int = 0) -> tuple[CorpusLayout, Judge]:
    key = (made_by, variant, complete, skipped)
    if key not in _JUDGES:
        layout = CorpusLayout.of(CorpusHeader("fencing", made_by, CONSTANTS, complete))
        _JUDGES[key] = layout, Judge(Against(layout, fencing.traced(variant)), Budget(max_skipped=skipped))
    return _JUDGES[key]


def damaged(trace: Trace, layout: CorpusLayout, chance: random.Random, holes: bool, vague: bool) -> Trace:
    """The trace with a cell observed otherwise now and then, some not at all, some parameters not known, some looks."""
    events: list[TraceEvent] = []
    for event in trace.events:
        seen = dict(event.observed)
        if chance.random() < 0.1:
            name = chance.choice(list(seen))
            seen[name] = dict(trace.events[chance.randrange(len(trace))].observed)[name]
        if holes:
            seen = {name: value for name, value in seen.items() if chance.random() < 0.7}
        params = dict(event.params)
        if vague and chance.random() < 0.2:
            params = dict.fromkeys(params)
        look = chance.random() < 0.05
        events.append(
            replace(event, observed=seen, action=None if look else event.action, params={} if look else params)
        )
    return replace(trace, events=tuple(events))


def told(trace: Trace, judge: Judge) -> tuple[str, Any, Any, Any]:
    """The replay of one trace: verdict, step, and which guard, variables or invariant."""
    answer = replay(trace, judge.fallback.stepper, budget=judge.fallback.budget)
    if answer.verdict is not Verdict.VIOLATED:
        return answer.verdict.value, None, None, None
    if answer.breach is not None:
        return "promise", answer.step, None, answer.breach.invariants[0]
    denial = answer.frontier[0].denials[0] if answer.frontier[0].denials else None
    assert answer.event is not None
    if denial is None or denial.refusal is not None:
        return "guard", answer.step, answer.event.action, None if denial is None else denial.refusal.guard
    names = {each.cell.partition("[")[0] for each in denial.differences}
    return "effect", answer.step, answer.event.action, names


@settings(deadline=None, max_examples=60)
@given(
    made_by=st.sampled_from(VARIANTS),
    variant=st.sampled_from(VARIANTS),
    seed=st.integers(0, 10**6),
    holes=st.booleans(),
    vague=st.booleans(),
)
def test_a_complete_trace_is_judged_as_by_its_replay(
    model: Any, walk: Any, made_by: str, variant: str, seed: int, holes: bool, vague: bool
) -> None:
    layout, judge = judge_of(made_by, variant, complete=True)
    chance = random.Random(seed)
    other = model(made_by, 2, 2, 2, 2)
    walks = [walk(other, [chance.randrange(1000) for _ in range(chance.randrange(1, 20))]) for _ in range(8)]
    traces = [damaged(record(other.system, each), layout, chance, holes, vague) for each in walks]
    events = events_of(layout, enumerate(traces))
    judged = judge(events, judge.against.codes(events))
    assert not judged.unknown
    found = {each.place: each for each in judged.findings}
    for place, trace in enumerate(traces):
        kind, step, action, what = told(trace, judge)
        if kind == "holds":
            assert place not in found
            continue
        bug = found[place].bug
        assert (bug.kind, int(events.step[found[place].row])) == (kind, step), (bug, kind, what)
        if kind == "promise":
            assert bug.invariant == what
        elif kind == "guard":
            assert (bug.action, bug.guard) == (action, what)
        else:
            assert (bug.action, {name.rstrip("+-") for name in bug.variables}) == (action, what)


@settings(deadline=None, max_examples=30)
@given(made_by=st.sampled_from(VARIANTS), seed=st.integers(0, 10**6), holes=st.booleans(), skipped=st.integers(0, 1))
def test_a_trace_that_lacks_events_is_judged_as_by_its_replay(
    model: Any, walk: Any, made_by: str, seed: int, holes: bool, skipped: int
) -> None:
    """But for a promise that an observed state breaks: that is certain, whatever is not known of the steps."""
    layout, judge = judge_of(made_by, "kip-320", complete=False, skipped=skipped)
    chance = random.Random(seed)
    other = model(made_by, 2, 2, 2, 2)
    traces = []
    for _ in range(6):
        trace = record(other.system, walk(other, [chance.randrange(1000) for _ in range(chance.randrange(1, 12))]))
        trace = replace(trace, header=replace(trace.header, complete=False))
        whole = damaged(trace, layout, chance, holes, vague=False)
        kept = [event for event in whole.events if chance.random() < 0.9]
        traces.append(replace(whole, events=tuple(kept) or whole.events[:1]))
    events = events_of(layout, enumerate(traces))
    judged = judge(events, judge.against.codes(events))
    found = {each.place: each for each in judged.findings}
    unknown = dict(judged.unknown)
    for place, trace in enumerate(traces):
        kind, _step, _action, what = told(trace, judge)
        if place in found and found[place].bug.kind == "promise" and kind != "promise":
            assert kind == "unknown" and found[place].bug.invariant is not None
        elif kind == "holds":
            assert place not in found and place not in unknown
        elif kind == "unknown":
            assert place not in found and unknown[place] == "max_skipped"
        else:
            assert (found[place].bug.kind, found[place].bug.invariant) == (kind, what if kind == "promise" else None)
