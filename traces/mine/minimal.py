"""From the shortest trace of a bug to the shortest story of it, with the model as oracle.

First delta debugging over the trace's events: a step that cannot happen any more once others are left out goes too, and
the bad step must still be bad for the same reason. Then replicas are renamed in the order in which they appear, and
numbers made smaller. Last, the model is asked for its own shortest path to a state in which the bug shows, at the
trace's constants, or at smaller ones where that would take too long; the shorter of the two is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ...model.core import terms
from ...model.core.domains import Constants
from ...model.core.ground import State, System, ground
from ...model.core.protocol import Protocol, TracedProtocol
from ...model.core.registry import PROTOCOLS
from ...model.core.terms import Sort, Term
from ...model.explore.batch import explore_batch
from ...model.explore.result import Limits, Query, Verdict
from ...model.interpret.reference import Reference
from ..corpus.faults import fault_named
from ..format import Trace, TraceEvent
from ..observe import decode, encode
from ..record import record
from ..replay import Budget, replay
from ..shrink import minimize
from ..stepper import DirectStepper, Stepper, TakenStep
from .answer import Bug
from .bad_step import BadStep, Call, Oracle, reference_of, step_of
from .part import Model
from .reachable_gap import smaller
from .signature import shape_of
from .slow_replay import bug_of

ASKED: Final = 5_000
"""How often the model may be asked while one trace is minimised."""

SEARCHED: Final = 400_000
"""How many states are looked at for the model's own shortest path, at each constants that are tried."""


@dataclass(frozen=True)
class Task:
    """A bug to be told: its shortest trace up to the bad step, what that was held against, the likeliest change."""

    bug: Bug
    model: Model
    trace: Trace
    change: str | None


@dataclass(frozen=True)
class Told:
    """The story: a trace whose last step is the bad one; None with the reason where it could not be made."""

    trace: Trace
    minimised: bool
    shape: tuple[str, ...]
    note: str | None = None


def bad_step_of(bug: Bug, model: Model, trace: Trace, budget: Budget) -> tuple[list[Call], BadStep] | None:
    """The steps before the bad one, and that one; None where a replay of the trace does not come to it.

    The trace ends with the bad step. Of one that lacks events the steps that nobody observed are among the others.
    """
    traced, constants = PROTOCOLS[model[0]].traced(model[1]), trace.header.constants
    stepper = DirectStepper(traced, constants)
    answer = replay(trace, stepper, budget=budget, confirm=False)
    if answer.verdict is not Verdict.VIOLATED or answer.event is None or answer.event is not trace.events[-1]:
        return None
    if answer.breach is not None or not answer.frontier:
        return None
    event, nearest = answer.event, answer.frontier[0]
    params = nearest.denials[0].params if nearest.denials else _given(event)
    layout = stepper.layout
    observed = {
        layout.by_name[name]: encode(layout.cells[layout.by_name[name]], value)
        for name, value in event.observed.items()
    }
    run: list[Call] = [(step.action, step.params) for step in answer.run]
    return run, BadStep(bug, nearest.state, (event.action, params), observed)


def _given(event: TraceEvent) -> tuple[tuple[str, int], ...]:
    return tuple((name, value) for name, value in event.params.items() if value is not None)


def tell(task: Task, budget: Budget) -> Told:
    """The shortest story of a bug that is found within the budgets above."""
    traced = PROTOCOLS[task.model[0]].traced(task.model[1])
    constants = dict(task.trace.header.constants)
    if task.bug.kind == "promise":
        found = _promise(task, traced, constants, budget)
    else:
        found = _refusal(task, traced, constants, budget)
    return found or _as_it_is(task, "no single run of the model leads to it, so the trace is told as it was recorded")


def _as_it_is(task: Task, note: str) -> Told:
    calls = [(event.action, event.params) for event in task.trace.events]
    return Told(task.trace, False, shape_of(PROTOCOLS[task.bug.protocol], calls), note)


Judge: TypeAlias = "Callable[[Sequence[Call]], list[Call] | None]"
"""What is left of some calls where they show the bug: those that can happen, up to the bad one."""


def _bad_at_the_end(oracle: Oracle) -> Judge:
    """That the last call is the bad step in the state to which those before it lead, and no promise breaks before."""

    def judge(calls: Sequence[Call]) -> list[Call] | None:
        if not calls:
            return None
        states, kept = _lead(oracle.reference, calls[:-1])
        if not oracle.shows(states[-1], calls[-1])[0] or any(map(oracle.reference.broken, states)):
            return None
        return [*kept, calls[-1]]

    return judge


def _broken_on_the_way(reference: Reference, invariant: str) -> Judge:
    """That the first promise which breaks on the way is this one; of several at once the first as written."""

    def judge(calls: Sequence[Call]) -> list[Call] | None:
        state, kept = reference.system.initial, []
        for call in calls:
            after = step_of(reference, state, call)
            if after is not None and call[0] is not None:
                state = after
                kept.append(call)
                broken = reference.broken(state)
                if broken:
                    return kept if broken[0] == invariant else None
        return None

    return judge


def _lead(reference: Reference, calls: Iterable[Call]) -> tuple[list[State], list[Call]]:
    """The states through which calls lead, the initial one first; those calls left out that cannot happen."""
    states, kept = [reference.system.initial], []
    for call in calls:
        after = step_of(reference, states[-1], call)
        if after is not None and call[0] is not None:
            states.append(after)
            kept.append(call)
    return states, kept


def _shortest(protocol: Protocol, calls: Sequence[Call], judge: Judge) -> tuple[list[Call], bool]:
    """The fewest calls, and whether the budget sufficed."""
    asked = 0

    def failing(items: Sequence[Call]) -> list[Call] | None:
        nonlocal asked
        asked += 1
        return judge(items)

    found = minimize(
        calls,
        failing,
        simpler=lambda call: _moved(protocol, call),
        rewritten=lambda items: (
            [*items[:n], *(next(iter(_moved(protocol, call)), call) for call in items[n + 1 :])]
            for n in range(len(items) - 1)
        ),
        budget=ASKED,
    )
    renamed = judge(_renamed(protocol, found))
    return (renamed if renamed is not None and len(renamed) == len(found) else found), asked < ASKED


def _moved(protocol: Protocol, call: Call) -> Iterator[Call]:
    """The same call with all its numbers one less, then with each alone: an earlier leader epoch, a smaller offset."""
    action, params = call
    if action is None:
        return
    indices = protocol.actions[action].params
    numbers = [name for name, value in params if indices[name].sort is Sort.INT and not indices[name].names and value]
    for chosen in ([numbers] if len(numbers) > 1 else []) + [[name] for name in numbers]:
        yield action, tuple((name, value - 1 if name in chosen else value) for name, value in params)


def _renamed(protocol: Protocol, calls: Sequence[Call]) -> list[Call]:
    """The calls with replicas numbered in the order in which they appear."""
    order: dict[int, int] = {}
    for action, params in calls:
        for name, value in params:
            if action is not None and protocol.actions[action].params[name].sort is Sort.REPLICA:
                order.setdefault(value, len(order))
    return [
        (
            action,
            tuple(
                (n, order[v] if action is not None and protocol.actions[action].params[n].sort is Sort.REPLICA else v)
                for n, v in params
            ),
        )
        for action, params in calls
    ]


def _promise(task: Task, traced: TracedProtocol, constants: dict[str, int], budget: Budget) -> Told | None:
    """A promise that allowed steps break: the variant itself does not keep it."""
    invariant = task.bug.invariant
    assert invariant is not None
    answer = replay(task.trace, DirectStepper(traced, constants), budget=budget, confirm=False)
    reference = reference_of(traced, constants)
    judge = _broken_on_the_way(reference, invariant)
    run: list[Call] = [(step.action, step.params) for step in answer.run]
    if judge(run) is None:
        return None
    calls, whole = _shortest(traced.protocol, run, judge)
    for tried in smaller(traced, constants):
        system = ground(traced, tried)
        before = list(system.invariants)[: list(system.invariants).index(invariant)]
        others = (system.invariants[name] for name in before)
        path = _path_to(system, terms.conjunction(*others, terms.negate(system.invariants[invariant])))
        if path is not None:
            if len(path) < len(calls):
                calls, constants, whole = [call for call, _ in path], tried, True
            break
    trace = _recorded(task, traced, constants, calls)
    if bug_in(trace, DirectStepper(traced, constants)) != task.bug:
        return None
    return Told(trace, whole, _shape(traced.protocol, calls), None if whole else _SPENT)


def _refusal(task: Task, traced: TracedProtocol, constants: dict[str, int], budget: Budget) -> Told | None:
    """A step that the model refuses, or takes otherwise."""
    found = bad_step_of(task.bug, task.model, task.trace, budget)
    if found is None:
        return None
    run, bad = found
    oracle = Oracle(traced, constants, bad, None if task.change is None else fault_named(traced, task.change))
    calls, whole = _shortest(traced.protocol, [*run, bad.call], _bad_at_the_end(oracle))
    for tried in smaller(traced, constants):
        system = ground(traced, tried)
        there = oracle.at(tried)
        condition = there.condition(system)
        path = None if condition is None else _path_to(system, condition)
        if path is None:
            continue
        state = path[-1][1] if path else system.initial
        last = next((step for step in system.by_step if there.shows(state, step)[0]), None)
        if last is not None and len(path) + 1 < len(calls):
            calls, constants, oracle, whole = [*(call for call, _ in path), last], tried, there, True
        break
    states, _ = _lead(oracle.reference, calls[:-1])
    trace = _recorded(task, traced, constants, calls[:-1])
    layout = oracle.reference.system.layout
    seen = {layout.cells[n].name: decode(layout.cells[n], v) for n, v in oracle.shows(states[-1], calls[-1])[1].items()}
    last_event = TraceEvent(len(calls), calls[-1][0], dict(calls[-1][1]), seen)
    # An action that the variant does not have can be told in the words of the variant that has it.
    variant = traced.variant.name if last_event.action in oracle.reference.system.actions else task.trace.header.variant
    trace = Trace(replace(trace.header, variant=variant), (*trace.events, last_event))
    if _reason(bug_in(trace, DirectStepper(traced, constants))) != _reason(task.bug):
        return None
    return Told(trace, whole, _shape(traced.protocol, calls), None if whole else _SPENT)


_SPENT: Final = f"the model was asked {ASKED:,} times, and something may still be left out"


def _reason(bug: Bug | None) -> tuple[str, str | None, str | None] | None:
    """What must stay the same of a refusal. Which variables differ may not: a shorter story shows fewer of them."""
    return None if bug is None else (bug.kind, bug.action, bug.guard)


def bug_in(trace: Trace, stepper: Stepper) -> Bug | None:
    """What is wrong with the last event of a trace; None where nothing is, or something is wrong before."""
    answer = replay(trace, stepper)
    if answer.verdict is not Verdict.VIOLATED or answer.event is not trace.events[-1]:
        return None
    return bug_of(answer, stepper.system)


def _recorded(task: Task, traced: TracedProtocol, constants: Constants, calls: Sequence[Call]) -> Trace:
    """A run as a trace, every cell observed."""
    stepper = DirectStepper(traced, constants)
    state, run = stepper.system.initial, []
    for action, params in calls:
        assert action is not None
        after = stepper.reference.step(state, action, params)
        assert after is not None, f"{action} was possible a moment ago"
        state = after
        run.append(TakenStep(action, params, state))
    return record(stepper.system, run, source={"bug": str(task.bug), "trace": task.trace.header.source.get("trace")})


def _shape(protocol: Protocol, calls: Sequence[Call]) -> tuple[str, ...]:
    return shape_of(protocol, [(action, dict(params)) for action, params in calls])


def _path_to(system: System, condition: Term) -> list[tuple[Call, State]] | None:
    """The model's shortest run to a state in which a condition holds, through states that keep all promises.

    None where the search is too long, or in vain.
    """
    kept = terms.conjunction(*system.invariants.values())
    invariants = {"type_ok": system.invariants["type_ok"], "wanted": terms.negate(condition)}
    wanted = replace(system, invariants=invariants, constraint=kept)
    answer = explore_batch(Query.of(wanted, ("wanted",), limits=Limits(SEARCHED)))
    if answer.violated != "wanted" or answer.path is None:
        return None
    return [((step.instance.action, step.instance.params), step.state) for step in answer.path]
