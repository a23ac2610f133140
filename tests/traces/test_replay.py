"""Replay: what it explains, what it refuses and why, and when it cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from fencepost.model.core.algebra import View
from fencepost.model.core.domains import integers
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import Params, State, ground
from fencepost.model.core.protocol import Protocol
from fencepost.model.explore.result import Verdict
from fencepost.model.interpret.reference import Reference
from fencepost.traces.format import Trace, TraceEvent, TraceHeader
from fencepost.traces.frontier import Frontier, Node
from fencepost.traces.observe import decode, encode, observe
from fencepost.traces.record import record
from fencepost.traces.replay import EXPLAINED, Budget, Replay, replay
from fencepost.traces.stepper import CompiledStepper, Stepper
from hypothesis import assume, given, settings
from hypothesis import strategies as st

Model = Any
Walk = Any
Counterexample = Any
Shortest = Any
CHOICES = st.lists(st.integers(0, 1000), max_size=25)
OLD = ["truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try"]


def incomplete(trace: Trace, events: Sequence[TraceEvent] | None = None) -> Trace:
    return Trace(replace(trace.header, complete=False), tuple(trace.events if events is None else events))


# --- what was recorded is explained


def test_replay_answers_unknown_for_a_partial_trace(model: Model, walk: Walk) -> None:
    stepper = model()
    whole = record(stepper.system, walk(stepper, list(range(9))))
    partial = Trace(replace(whole.header, partial="the log of node 2 ends early"), whole.events)
    answer = replay(partial, stepper)
    assert replay(whole, stepper).verdict is Verdict.HOLDS
    assert (answer.verdict, answer.reason) == (
        Verdict.UNKNOWN,
        "the trace is partial: the log of node 2 ends early",
    )
    assert answer.explained == answer.events == len(whole) > 0


def test_replay_still_refuses_a_partial_trace(model: Model, walk: Walk) -> None:
    stepper = model()
    header = record(stepper.system, walk(stepper, [0])).header
    bad = (TraceEvent(1, "become_leader", {"leader": 0, "epoch": 2}),)
    for partial in (None, "the log of node 2 ends early"):
        answer = replay(Trace(replace(header, partial=partial), bad), stepper)
        assert (answer.verdict, answer.cause) == (Verdict.VIOLATED, "guard")


@settings(deadline=None)
@given(CHOICES, st.data())
def test_a_recorded_walk_holds(model: Model, walk: Walk, choices: list[int], data: st.DataObject) -> None:
    stepper = model()
    run = walk(stepper, choices)
    seen = data.draw(st.sets(st.sampled_from(list(stepper.layout.by_variable))))
    answer = replay(record(stepper.system, run, variables=seen), stepper)
    assert (answer.verdict, answer.violated, answer.reason) == (Verdict.HOLDS, None, None)
    assert list(answer.run) == run, "with every step known there is one explanation"
    assert answer.explained == answer.events == len(run)
    assert answer.skipped == 0


@settings(deadline=None, max_examples=60)
@given(CHOICES, st.data())
def test_a_walk_with_events_dropped_holds_within_the_budget(
    model: Model, walk: Walk, choices: list[int], data: st.DataObject
) -> None:
    stepper = model()
    run = walk(stepper, choices[:12])
    full = record(stepper.system, run)
    kept: list[TraceEvent] = []
    gap = 0
    for event in full.events:
        # At most two in a row are lost; of the others, some cells and some parameters.
        if gap < 2 and data.draw(st.booleans()):
            gap += 1
            continue
        gap = 0
        cells = data.draw(st.sets(st.sampled_from(list(event.observed)), min_size=5))
        params = {name: value if data.draw(st.booleans()) else None for name, value in event.params.items()}
        action = data.draw(st.sampled_from([event.action, None])) if gap == 0 and not kept else event.action
        if action is None:
            params = {}
        observed = {name: value for name, value in event.observed.items() if name in cells}
        kept.append(TraceEvent(event.step, action, params, observed))
    trace = incomplete(full, kept)
    answer = replay(trace, stepper, budget=Budget(max_skipped=3))
    assert answer.verdict is Verdict.HOLDS, answer.reason
    assert_explains(stepper, trace, answer)


def assert_explains(stepper: Stepper, trace: Trace, answer: Replay) -> None:
    """The explanation is a run of the reference, has the trace's events in order, and agrees with what was seen."""
    state = stepper.system.initial
    left = list(trace.events)

    def look(upcoming: TraceEvent | None) -> None:
        while left and left[0] != upcoming and agrees(stepper, state, left[0]):
            event = left[0]
            if event.action is not None and not any(
                stepper.reference.repeats(state, event.action, params)
                for params in stepper.choices(event.action)
                if all(value in (None, dict(params)[name]) for name, value in event.params.items())
            ):
                return
            left.pop(0)

    for each in answer.explanation:
        look(each.event)
        after = stepper.reference.step(state, each.happened.action, each.happened.params)
        assert after == each.happened.state
        state = after
        assert stepper.reference.broken(state) == []
        if each.event is not None:
            event = left.pop(0)
            assert event == each.event
            assert event.action == each.happened.action
            params = dict(each.happened.params)
            assert all(value in (None, params[name]) for name, value in event.params.items())
            assert agrees(stepper, state, event)
    look(None)
    assert left == []


def agrees(stepper: Stepper, state: State, event: TraceEvent) -> bool:
    seen = observe(stepper.layout, state)
    return all(seen[name] == value for name, value in event.observed.items())


# --- old protocols, held against kip-320


@pytest.mark.sampled(3)
@pytest.mark.parametrize("variant", OLD)
@settings(deadline=None, max_examples=50)
@given(choices=CHOICES)
def test_a_walk_of_an_old_protocol_is_refused_where_kip_320_leaves_it(
    model: Model, walk: Walk, variant: str, choices: list[int]
) -> None:
    """The oracle: the first step that the reference of kip-320 refuses, or takes to another state."""
    old, new = model(variant), model()
    run = walk(old, choices)
    answer = replay(record(old.system, run), new)
    state = new.system.initial
    for number, step in enumerate(run, 1):
        known = step.action in new.system.actions
        after = new.reference.step(state, step.action, step.params) if known else None
        if after != step.state:
            assert (answer.verdict, answer.violated, answer.step) == (Verdict.VIOLATED, EXPLAINED, number)
            assert answer.cause == ("guard" if after is None else "observation")
            assert answer.explained == number - 1
            assert [each.happened for each in answer.explanation] == run[: number - 1]
            if known and after is None:
                refusal = answer.frontier[0].denials[0].refusal
                assert refusal is not None
                assert refusal.guard == new.reference.refused_by(state, step.action, step.params)
            return
        state = step.state
    assert answer.verdict is Verdict.HOLDS


@pytest.mark.sampled(3)
@pytest.mark.parametrize("variant", OLD)
def test_the_counterexample_of_an_old_protocol(model: Model, counterexample: Counterexample, variant: str) -> None:
    """On its own variant it is explained and breaks an invariant at its end; kip-320 does not explain it at all."""
    old = model(variant)
    run = counterexample(variant)
    trace = record(old.system, run)
    own = replay(trace)
    assert own.verdict is Verdict.VIOLATED
    assert own.cause == "invariant"
    assert own.violated in ("weak_isr", "strong_isr")
    assert own.step == len(run)
    assert own.breach is not None
    assert own.breach.after == len(run)
    assert own.run == tuple(run)
    other = replay(trace, model())
    assert (other.verdict, other.violated) == (Verdict.VIOLATED, EXPLAINED)
    spared = replay(trace, old, invariants=["leader_in_isr"])
    assert spared.verdict is Verdict.HOLDS, "only what is asked for is held against the run"


def test_first_of_two_broken_invariants_is_named(model: Model, counterexample: Counterexample) -> None:
    old, run = model("kip-101"), counterexample("kip-101")
    broken = list(Reference(old.system).broken(run[-1].state))
    assert broken == ["weak_isr", "strong_isr"]
    answer = replay(record(old.system, run))
    assert (answer.verdict, answer.violated) == (Verdict.VIOLATED, broken[0])


def test_a_missing_guard_is_named(model: Model, shortest: Shortest) -> None:
    """The planted fault: a broker that fetches without comparing epochs."""
    good, mutant = model(), model(drop="follower_fetch.epoch_not_fenced")

    def fenced(state: State) -> bool:
        return any(
            good.reference.refused_by(state, step.action, step.params) == "epoch_not_fenced"
            for step in mutant.every(state)
            if step.action == "follower_fetch"
        )

    run = shortest(mutant, fenced)
    state = run[-1].state
    fetch = next(step for step in mutant.every(state) if good.reference.step(state, step.action, step.params) is None)
    trace = record(mutant.system, [*run, fetch])
    assert replay(trace, mutant).verdict is Verdict.HOLDS
    answer = replay(trace)
    assert (answer.verdict, answer.cause, answer.step) == (Verdict.VIOLATED, "guard", len(run) + 1)
    (only,) = answer.frontier
    (denial,) = only.denials
    assert denial.refusal is not None
    assert denial.refusal.guard == "epoch_not_fenced"
    epochs = dict(denial.refusal.operands)
    leader, follower = (dict(fetch.params)[name] for name in ("leader", "follower"))
    cells = {f"leader_epoch[{leader}]", f"leader_epoch[{follower}]"}
    assert set(epochs) == cells
    assert {name: int(value) for name, value in epochs.items()} == {name: only.cells[name] for name in cells}
    assert [report.action for report in only.actions] == good.system.actions
    for report in only.actions:
        enabled = [step.params for step in good.every(state) if step.action == report.action]
        assert list(report.enabled) == enabled
        if not enabled:
            assert report.refusal is not None
            refused = good.reference.refused_by(state, report.action, report.refusal.params)
            assert refused == report.refusal.guard


@settings(deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.data())
def test_a_changed_observation_is_caught_where_it_stands(
    model: Model, walk: Walk, choices: list[int], data: st.DataObject
) -> None:
    stepper = model()
    run = walk(stepper, choices)
    trace = record(stepper.system, run)
    at = data.draw(st.integers(0, len(run) - 1))
    cell = data.draw(st.sampled_from(stepper.layout.cells))
    value = data.draw(st.integers(cell.low, cell.high).filter(lambda v: v != run[at].state[cell.number]))
    event = trace.events[at]
    wrong = replace(event, observed={**event.observed, cell.name: decode(cell, value)})
    answer = replay(Trace(trace.header, (*trace.events[:at], wrong, *trace.events[at + 1 :])), stepper)
    assert (answer.verdict, answer.violated, answer.cause) == (Verdict.VIOLATED, EXPLAINED, "observation")
    assert answer.step == at + 1
    (difference,) = answer.frontier[0].denials[0].differences
    assert difference.cell == cell.name
    assert difference.observed == decode(cell, value)
    assert difference.expected == decode(cell, run[at].state[cell.number])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20), st.data())
def test_a_lost_event_of_a_complete_trace_is_missed(
    model: Model, walk: Walk, choices: list[int], data: st.DataObject
) -> None:
    stepper = model()
    run = walk(stepper, choices)
    at = data.draw(st.integers(0, len(run) - 2))
    before = run[at - 1].state if at else stepper.system.initial
    assume(stepper.reference.step(before, run[at + 1].action, run[at + 1].params) != run[at + 1].state)
    trace = record(stepper.system, run)
    cut = Trace(trace.header, trace.events[:at] + trace.events[at + 1 :])
    answer = replay(cut, stepper, budget=Budget(max_skipped=5))
    assert (answer.verdict, answer.step) == (Verdict.VIOLATED, at + 2), "complete: no step may be skipped"
    told = replay(incomplete(cut), stepper, budget=Budget(max_skipped=1))
    assert told.verdict is Verdict.HOLDS
    assert told.skipped == 1


# --- budgets


def test_too_few_unobserved_steps_give_no_verdict(model: Model, walk: Walk) -> None:
    stepper = model()
    run = walk(stepper, [0, 1, 2, 3, 4, 5, 6])
    trace = incomplete(record(stepper.system, run), record(stepper.system, run).events[4:])
    for skips in range(4):
        answer = replay(trace, stepper, budget=Budget(max_skipped=skips))
        assert (answer.verdict, answer.violated) == (Verdict.UNKNOWN, None)
        assert answer.reason is not None
        assert answer.reason.startswith("max_skipped:")
        assert answer.step == 5
        assert answer.frontier, "the refusals are told all the same"
    assert replay(trace, stepper, budget=Budget(max_skipped=4)).verdict is Verdict.HOLDS


def test_the_other_budgets_say_which(model: Model, walk: Walk) -> None:
    stepper = model()
    run = walk(stepper, range(6))
    trace = incomplete(record(stepper.system, run), record(stepper.system, run).events[3:])
    small = replay(trace, stepper, budget=Budget(max_skipped=4, max_frontier=10))
    assert small.verdict is Verdict.UNKNOWN
    assert small.reason is not None
    assert small.reason.startswith("max_frontier: more than 10 states")
    hasty = replay(trace, stepper, budget=Budget(max_skipped=4, max_seconds=0.0))
    assert hasty.verdict is Verdict.UNKNOWN
    assert hasty.reason is not None
    assert hasty.reason.startswith("max_seconds:")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("budget", [{"max_skipped": -1}, {"max_frontier": 0}, {"max_seconds": float("nan")}])
def test_a_budget_below_nothing(budget: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=f"--{next(iter(budget)).replace('_', '-')}: "):
        Budget(**budget)


def test_an_impossible_look_is_refused_once_all_states_are_known(model: Model) -> None:
    """With the whole graph inside the budget, more unobserved steps change nothing: the verdict is certain."""
    stepper = model("kip-320", 2, 1, 1, 1)
    header = TraceHeader("fencing", "kip-320", stepper.system.constants)
    never = Trace(header, (TraceEvent(1, observed={"hw[0]": 1, "leo[0]": 0}),))
    short = replay(never, stepper, budget=Budget(max_skipped=3))
    assert short.verdict is Verdict.UNKNOWN
    sure = replay(never, stepper, budget=Budget(max_skipped=40))
    assert (sure.verdict, sure.violated, sure.cause) == (Verdict.VIOLATED, EXPLAINED, "observation")
    assert sure.frontier_size > len(sure.frontier) == 5


# --- clean and dirty explanations


def test_one_clean_explanation_is_enough(model: Model, counterexample: Counterexample) -> None:
    """The last step of the counterexample, seen through a keyhole, may also have kept every promise."""
    old = model("truncate-to-hw")
    run = counterexample("truncate-to-hw")
    trace = record(old.system, run, variables=[])
    last = trace.events[-1]
    vague = replace(last, params=dict.fromkeys(last.params))
    answer = replay(Trace(trace.header, (*trace.events[:-1], vague)), old)
    assert answer.verdict is Verdict.HOLDS
    assert_explains(old, Trace(trace.header, (*trace.events[:-1], vague)), answer)
    assert answer.run[-1] != run[-1]


def oracle(stepper: Stepper, trace: Trace, skips: int) -> tuple[str, int]:
    """The definition, as plainly as it can be put: all explanations as a set of (state, whether a promise broke)."""
    cells, by_name = stepper.layout.cells, stepper.layout.by_name
    successors, broken = cache(stepper.reference.successors), cache(stepper.reference.broken)

    def seen(state: State, event: TraceEvent) -> bool:
        wanted = {by_name[name]: encode(cells[by_name[name]], value) for name, value in event.observed.items()}
        return all(state[number] == value for number, value in wanted.items())

    def happened(event: TraceEvent, action: str, params: Params) -> bool:
        return action == event.action and all(v in (None, dict(params)[n]) for n, v in event.params.items())

    found = {(stepper.system.initial, bool(broken(stepper.system.initial)))}
    for event in trace.events:
        for _ in range(skips):
            more = {(after, dirty or bool(broken(after))) for s, dirty in found for *_, after in successors(s)}
            if more <= found:
                break
            found |= more
        if event.action is not None:
            repeated = {
                (s, dirty)
                for s, dirty in found
                for params in stepper.choices(event.action)
                if happened(event, event.action, params) and stepper.reference.repeats(s, event.action, params)
            }
            found = repeated | {
                (after, dirty or bool(broken(after)))
                for s, dirty in found
                for action, params, after in successors(s)
                if happened(event, action, params)
            }
        found = {(s, dirty) for s, dirty in found if seen(s, event)}
        if all(dirty for _, dirty in found):
            return ("invariant" if found else EXPLAINED), event.step
    return "holds", 0


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(["", "leader_inc_high_watermark.isr_acknowledges", "leader_shrink_isr.true_leader"]),
    st.lists(st.integers(0, 1000), max_size=9),
    st.sampled_from([0, 0, 1, 2, 3, 30]),
    st.data(),
)
def test_replay_agrees_with_the_definition(
    model: Model, walk: Walk, drop: str, choices: list[int], skips: int, data: st.DataObject
) -> None:
    """On vague and corrupted traces, with and without gaps, over a model small enough to be taken literally.

    Without a guard, the model breaks its promises in some states, so that explanations are clean or dirty.
    """
    stepper = model("kip-320", 2, 1, 1, 1, drop=drop)
    events = []
    for event in record(stepper.system, walk(stepper, choices)).events:
        keep = data.draw(st.sets(st.sampled_from(list(event.observed)), max_size=3))
        observed = {name: event.observed[name] for name in keep}
        if data.draw(st.integers(0, 5)) == 0:
            cell = data.draw(st.sampled_from(stepper.layout.cells))
            observed[cell.name] = decode(cell, data.draw(st.integers(cell.low, cell.high)))
        params = {name: data.draw(st.sampled_from([value, None])) for name, value in event.params.items()}
        if data.draw(st.integers(0, 3)):
            events.append(replace(event, observed=observed, params=params))
    header = TraceHeader("fencing", "kip-320", stepper.system.constants, complete=not skips)
    trace = Trace(header, tuple(events))
    answer = replay(trace, stepper, budget=Budget(max_skipped=skips))
    expected, step = oracle(stepper, trace, skips)
    if expected == "holds":
        assert answer.verdict is Verdict.HOLDS
        return
    assert answer.verdict is not Verdict.HOLDS
    assert answer.step == step
    assert (answer.cause == "invariant") is (expected == "invariant")
    if answer.verdict is Verdict.VIOLATED:
        assert oracle(stepper, trace, 1000 if skips else 0)[0] != "holds", "no number of unobserved steps explains it"
    else:
        assert 0 < skips < 30, "the whole graph is within thirty steps, so nothing is left unknown"


def test_a_gap_that_was_cut_short_leaves_later_gaps_in_doubt(model: Model) -> None:
    """The second gap is searched to its end, but only from where the first one led to within its allowance."""
    stepper = model("kip-320", 1, 1, 1, 0)
    header = TraceHeader("fencing", "kip-320", stepper.system.constants)
    events = (TraceEvent(1, "controller_shrink_isr", {"replica": 0}), TraceEvent(2, observed={"leo[0]": 1}))
    one = replay(Trace(header, events), stepper, budget=Budget(max_skipped=1))
    assert (one.verdict, one.step) == (Verdict.UNKNOWN, 2)
    many = replay(Trace(header, events), stepper, budget=Budget(max_skipped=9))
    assert (many.verdict, many.step) == (Verdict.VIOLATED, 2)


def road() -> Protocol:
    """Places 0 to 10. Before the bell one walks up to 5; after it 10 is one hop from 5, and five rides from 0."""
    protocol = Protocol("road", "this test", constants=())
    protocol.variable("place", "where one is", integers(0, lambda _: 10))
    protocol.variable("rung", "whether the bell has rung", integers(0, lambda _: 1))
    protocol.variant("only", None, "the only one")

    @protocol.action()
    def walk(_k: Any, s: View) -> Any:
        yield "early", s.rung == 0
        yield "near", s.place < 5
        yield s.update(place=s.place + 1)

    @protocol.action()
    def ring(_k: Any, s: View) -> Any:
        yield "early", s.rung == 0
        yield s.update(rung=1)

    @protocol.action()
    def hop(_k: Any, s: View) -> Any:
        yield "late", s.rung == 1
        yield "at_five", s.place == 5
        yield s.update(place=10)

    @protocol.action()
    def ride(k: Any, s: View) -> Any:
        yield "late", s.rung == 1
        yield "on_the_way", k.any(s.place == 0, k.all(6 <= s.place, s.place < 10))
        yield s.update(place=k.ite(s.place == 0, 6, s.place + 1))

    return protocol


def test_of_the_runs_to_one_state_that_with_the_fewest_unobserved_steps_is_told() -> None:
    """After the bell 10 is found first from 5, to which five unobserved steps led; riding takes five in all."""
    stepper = CompiledStepper(ground(road().traced(), {}))
    events = (TraceEvent(1, "ring", {}), TraceEvent(2, observed={"place": 10}))
    answer = replay(Trace(TraceHeader("road", "only", {}), events), stepper, budget=Budget(max_skipped=6))
    assert (answer.verdict, answer.skipped) == (Verdict.HOLDS, 5)
    assert [step.action for step in answer.run] == ["ring", *["ride"] * 5]


def test_a_frontier_keeps_the_run_with_fewer_unobserved_steps_of_two_that_are_equally_clean() -> None:
    state = (0,)
    many, few = Node(state, skipped=3), Node(state, skipped=1)
    for breach in (None, (1, ("promise",))):
        frontier = Frontier()
        assert frontier.add(replace(many, breach=breach)) is True
        assert frontier.add(replace(few, breach=breach)) is False
        assert [node.skipped for node in frontier] == [1]
        frontier.add(replace(many, breach=breach))
        assert [node.skipped for node in frontier] == [1]
    # Clean wins, however many steps it takes.
    frontier = Frontier()
    frontier.add(replace(few, breach=(1, ("promise",))))
    assert frontier.add(many) is True
    frontier.add(replace(few, breach=(1, ("promise",))))
    assert [(node.skipped, node.breach) for node in frontier] == [(3, None)]
