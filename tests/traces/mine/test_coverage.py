"""Coverage against a count by hand: the reference interpreter in every visited state."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.fencing import fencing
from fencepost.traces.corpus.convert import events_of
from fencepost.traces.corpus.layout import CorpusHeader, CorpusLayout, Events
from fencepost.traces.mine import coverage
from fencepost.traces.mine.abstract import Abstraction
from fencepost.traces.mine.coverage import Seen
from fencepost.traces.mine.reachable_gap import coverage_of, known_graph, smaller
from fencepost.traces.mine.work_unit import Miner, Question, model_of
from fencepost.traces.record import record

CONSTANTS = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}


@pytest.fixture(scope="module")
def events(model: Any, walk: Any) -> Events:
    stepper = model("kip-320", 2, 2, 2, 2)
    draw = np.random.default_rng(2)
    traces = [record(stepper.system, walk(stepper, draw.integers(0, 1000, size=15).tolist())) for _ in range(25)]
    return events_of(CorpusLayout.of(CorpusHeader("fencing", "kip-320", CONSTANTS)), enumerate(traces))


def seen_of(*runs: Events) -> tuple[Seen, Any]:
    against = Miner(runs[0].layout, Question(), "test").against
    miner = Miner(runs[0].layout, Question(whole=frozenset({model_of(against)})), "test")
    for run in runs:
        miner.mine(run)
    return miner.part.seen[model_of(against)], against


def test_all_that_is_visited_is_counted(events: Events) -> None:
    seen, against = seen_of(events)
    system = against.system
    reference, abstraction = Reference(system), Abstraction(system)
    states: dict[Any, int] = {}
    steps, actions = set(), dict.fromkeys(system.actions, 0)
    moves: dict[Any, list[int]] = {}
    deciding: dict[str, int] = {}
    lacking = {
        f"{action.name}.{guard}": Reference(type(system)(system.traced.drop(f"{action.name}.{guard}"), *_rest(system)))
        for action in system.traced.actions
        for guard, _ in action.guards
    }

    def mark(state: Any) -> int:
        can = {action for action, _, _ in reference.successors(state)}
        return sum(1 << bit for bit, name in enumerate(abstraction.actions) if name in can)

    for start, end in zip(events.starts, events.ends, strict=True):
        state, trace = system.initial, int(events.trace[start])
        states.setdefault(state, trace)
        for row in range(start, end):
            step = against.steps[int(against.codes(events)[row])]
            steps.add((state, step))
            actions[step[0]] += 1
            moves.setdefault((mark(state), step[0]), []).append(trace)
            state = tuple(events.cells[:, row].tolist())
            states.setdefault(state, trace)
    for state, trace in states.items():
        for name, without in lacking.items():
            action = name.partition(".")[0]
            mine = {(p, after) for a, p, after in reference.successors(state) if a == action}
            if any((p, after) not in mine for a, p, after in without.successors(state) if a == action):
                deciding[name] = min(trace, deciding.get(name, trace))
    low = (1 << len(abstraction.actions)) - 1
    assert (seen.states.size, seen.steps.size) == (len(states), len(steps))
    assert seen.actions == actions and seen.events == len(events)
    assert seen.guards == deciding
    assert {each & low for each in seen.marks} == {mark(state) for state in states}
    told: dict[Any, list[int]] = {}
    for (each, action), (count, first) in seen.moves.items():
        known = told.setdefault((each & low, action), [0, first])
        told[each & low, action] = [known[0] + count, min(known[1], first)]
    assert told == {key: [len(traces), min(traces)] for key, traces in moves.items()}


def _rest(system: Any) -> tuple[Any, ...]:
    return system.constants, system.layout, [], {}, {}


def test_how_the_events_are_cut_is_no_matter(events: Events) -> None:
    whole, _ = seen_of(events)
    cuts = [0, *(int(start) for start in events.starts[[3, 12, 20]]), len(events)]
    parts = [events.rows(low, high) for low, high in pairwise(cuts)]
    one_by_one, _ = seen_of(*parts)
    apart = Seen()
    for part in parts[::-1]:
        apart.merge(seen_of(part)[0])
    for other in (one_by_one, apart):
        assert (other.events, other.actions, other.guards, other.marks) == (
            whole.events,
            whole.actions,
            whole.guards,
            whole.marks,
        )
        assert other.moves == whole.moves
        assert (other.states == whole.states).all() and (other.steps == whole.steps).all()


def test_a_sample_is_the_same_however_it_is_cut_and_is_told(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "KEPT", 50)
    monkeypatch.setattr("fencepost.traces.mine.reachable_gap.KEPT", 50)
    whole, against = seen_of(events)
    half = int(events.starts[12])
    apart = Seen()
    for part in (events.rows(half, len(events)), events.rows(0, half)):
        apart.merge(seen_of(part)[0])
    assert whole.capped and apart.capped and whole.states.size == 50
    assert (apart.states == whole.states).all() and (apart.steps == whole.steps).all()
    told = coverage_of(model_of(against), whole, known_graph(model_of(against)))
    assert told.states.estimated and told.notes
    monkeypatch.undo()
    exact = coverage_of(model_of(against), seen_of(events)[0], known_graph(model_of(against)))
    assert not exact.states.estimated and not exact.notes
    assert told.states.fraction == pytest.approx(exact.states.fraction, abs=0.1)


def test_the_gap_is_to_the_whole_graph(events: Events) -> None:
    seen, against = seen_of(events)
    known = known_graph(model_of(against))
    told = coverage_of(model_of(against), seen, known)
    assert told.states.visited == seen.states.size and told.steps.visited == seen.steps.size
    assert 0 < told.abstract.visited < told.abstract.of  # type: ignore[operator]
    assert len(told.unvisited) + told.unvisited_left_out == told.abstract.of - told.abstract.visited  # type: ignore[operator]
    assert [each.steps for each in told.unvisited] == sorted(each.steps for each in told.unvisited)
    assert [each.count for each in told.rarest] == sorted(each.count for each in told.rarest)
    # At these constants the log is never full before the records are used up.
    assert "leader_write.log_not_full" in told.idle and "leader_write.log_not_full" not in told.guards_unseen
    assert set(told.guards_unseen).isdisjoint(seen.guards)


def test_the_whole_graph_is_visited_by_all_its_steps(model: Any) -> None:
    """Nothing is missing where every step of the model is a trace's."""
    constants = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
    stepper = model("kip-320", *constants.values())
    paths: dict[Any, list[Any]] = {stepper.system.initial: []}
    queue, traces = [stepper.system.initial], []
    while queue:
        state = queue.pop(0)
        for step in stepper.every(state):
            traces.append([*paths[state], step])
            if step.state not in paths:
                paths[step.state] = traces[-1]
                queue.append(step.state)
    layout = CorpusLayout.of(CorpusHeader("fencing", "kip-320", constants))
    whole = events_of(layout, enumerate(record(stepper.system, trace) for trace in traces))
    seen, against = seen_of(whole)
    told = coverage_of(model_of(against), seen, known_graph(model_of(against)))
    for share in (told.states, told.steps, told.abstract, told.moves):
        assert share.visited == share.of and share.of
    assert (told.unvisited, told.guards_unseen) == ((), ())


def test_large_constants_are_compared_at_smaller_ones() -> None:
    traced = fencing.traced()
    large = {"replicas": 3, "log_size": 6, "max_records": 6, "max_leader_epoch": 5}
    tried = list(smaller(traced, large))
    assert tried[0] == large and {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2} in tried
    assert all(value <= large[name] for each in tried for name, value in each.items())
    known = known_graph(("fencing", "kip-320", tuple(large.items())), max_states=10_000)
    assert known.whole is None and known.small is not None
    told = coverage_of(("fencing", "kip-320", tuple(large.items())), Seen(), known, 10_000)
    assert told.states.of is None and told.notes and told.abstract.of


def test_values_are_told_apart_as_by_numpy() -> None:
    draw = np.random.default_rng(1)
    for size in (1, 2, 3, 1000, 5000):
        values = draw.integers(0, 1 << 63, size, dtype=np.uint64)[draw.integers(0, max(1, size // 2), size)]
        distinct, first, inverse = coverage.told_apart(values)
        wanted, at, back = np.unique(values, return_index=True, return_inverse=True)
        assert (distinct == wanted).all() and (first == at).all() and (inverse == back).all()
    # Values that differ below the positions' bits alone: perhaps told twice, never taken for one another.
    close = np.array([5, 6, 5, 6, 1 << 40], dtype=np.uint64)
    distinct, first, inverse = coverage.told_apart(close)
    assert (distinct[inverse] == close).all() and set(distinct.tolist()) == {5, 6, 1 << 40}
