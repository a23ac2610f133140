"""Replay: is a trace a run of the model, and did that run keep the invariants?

An *explanation* of a trace is a run of the model from its initial state that contains the trace's events in order,
agrees with everything observed after each of them, and takes at most ``max_skipped`` unobserved steps between two
events (and before the first). An event that changes nothing, such as a second commit of the same offset, is an
observation (``model/core/change_guards.py``). In a complete trace no unobserved step is allowed. What the verdicts say:

``holds``
    There is an explanation that breaks no invariant (of those asked for) in any state, and the reference interpreter
    has confirmed it step by step. What really happened may be another explanation.
``violated``
    There is no such explanation, whatever the number of unobserved steps. ``violated`` is ``explained`` where no run at
    all explains the events up to and including ``step``; ``cause`` then says whether a guard refuses the event or an
    observation differs. Otherwise it is an invariant: the events up to ``step`` have explanations, and each that was
    found breaks some invariant by then; the one shown breaks this one, and as late as any.
    Observations that contradict each other in every run that keeps the invariants are found without a search
    (``contradictions.py``); ``conflict`` names them.
``unknown``
    A budget ran out before either was certain; ``reason`` names it. For a trace that may lack events, that more than
    ``max_skipped`` unobserved steps could have explained it counts as a budget that ran out. So does a header that
    calls the trace partial, if the model explains all of it.

Events are tried with no unobserved step first, then one in each gap, and so on, so an explanation of the smallest
gaps is found first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ..model.core.enum_value import plain_params
from ..model.core.errors import BadInput, ProtocolError
from ..model.core.protocol import TracedProtocol
from ..model.core.registry import PROTOCOLS
from ..model.explore.result import Verdict
from .contradictions import Conflict, find_conflict
from .diagnose import FrontierState, can_happen, diagnose
from .format import Trace, TraceEvent
from .frontier import BudgetSpent, Explorer, Frontier, Node
from .record import check_run
from .run_report import Json
from .stepper import CompiledStepper, Stepper, TakenStep, stepper_for

EXPLAINED: Final = "explained"
"""The name of the property that every trace must have: some run of the model explains it."""

Cause = Literal["guard", "observation", "invariant"]

OnProgress = Callable[[int, int], None]
"""Told how many events are explained, and of how many."""

_OFTEN: Final = 300
"""From so many events on, compiling the model at 3/2/2/2 is paid back."""


@dataclass(frozen=True)
class Budget:
    """How far a replay may go.

    ``max_skipped``: unobserved steps in each gap between two events, and before the first (complete traces: none).
    ``max_frontier``: states that explain the trace at once. ``max_seconds``: None for no limit; the clock is looked at
    between two states. Raises BadInput for a negative number, or for no state at all.
    """

    max_skipped: int = 0
    max_frontier: int = 100_000
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("max_skipped", 0), ("max_frontier", 1), ("max_seconds", 0)):
            value = getattr(self, name)
            # Written so that NaN, which is not less than anything, is refused too.
            if value is not None and not value >= least:
                raise BadInput(f"{name} is {value}", "--" + name.replace("_", "-"), f"give at least {least}")


@dataclass(frozen=True)
class Explained:
    """One step of an explanation, and the event that it explains (None: an unobserved step)."""

    happened: TakenStep
    event: TraceEvent | None

    def to_json(self) -> dict[str, Json]:
        """As a JSON object; ``step`` is the event's number."""
        step = None if self.event is None else self.event.step
        return {"action": self.happened.action, "params": plain_params(self.happened.params), "step": step}


@dataclass(frozen=True)
class Breach:
    """Where an explanation first breaks invariants: in the state after so many of its steps (0: the initial one)."""

    after: int
    invariants: tuple[str, ...]


@dataclass
class Replay:
    """The answer; the head of this file says what the verdicts mean.

    ``event``: the one at which the verdict fell (None: the trace was replayed to its end). ``frontier``: the states
    before it that come nearest to explaining it; ``frontier_size`` counts all. ``explanation``: of the whole trace, or
    of the events before ``event`` (with it, where an invariant broke). ``states_visited`` counts states as often as
    they were reached.
    """

    verdict: Verdict
    event: TraceEvent | None
    reason: str | None
    events: int
    explained: int
    states_visited: int
    seconds: float
    violated: str | None = None
    cause: Cause | None = None
    frontier: tuple[FrontierState, ...] = ()
    frontier_size: int = 0
    explanation: tuple[Explained, ...] = ()
    breach: Breach | None = None
    conflict: Conflict | None = None
    """Observations that contradict each other, whatever happened between them."""
    repeated: tuple[int, ...] = ()
    """Step numbers of explained events that change nothing, and so are observations."""

    @property
    def step(self) -> int | None:
        """The step number of ``event``."""
        return None if self.event is None else self.event.step

    @property
    def line(self) -> int | None:
        """The line of ``event`` in its file."""
        return None if self.event is None else self.event.line

    @property
    def skipped(self) -> int:
        """The explanation's unobserved steps."""
        return sum(each.event is None for each in self.explanation)

    @property
    def run(self) -> tuple[TakenStep, ...]:
        """The steps of the explanation."""
        return tuple(each.happened for each in self.explanation)

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {
            "verdict": self.verdict.value,
            "violated": self.violated,
            "cause": self.cause,
            "step": self.step,
            "line": self.line,
            "event": None if self.event is None else self.event.to_json(),
            "reason": self.reason,
            "events": self.events,
            "explained": self.explained,
            "skipped": self.skipped,
            "frontier": [state.to_json() for state in self.frontier],
            "frontier_size": self.frontier_size,
            "explanation": [each.to_json() for each in self.explanation],
            "repeated": list(self.repeated),
            "conflict": None if self.conflict is None else self.conflict.to_json(),
            "breach": None
            if self.breach is None
            else {"after": self.breach.after, "invariants": list(self.breach.invariants)},
            "states_visited": self.states_visited,
            "seconds": round(self.seconds, 6),
        }


@dataclass(frozen=True)
class _Stop:
    """Where a pass over the trace ended: before event ``index``, with the frontier that does not explain it.

    ``reached`` is the frontier after the event before, ``before`` the same with the unobserved steps since. ``after``
    holds the dirty states after the event, if any; ``final`` says that more unobserved steps change nothing.
    """

    index: int
    reached: Frontier
    before: Frontier
    after: Frontier
    final: bool


def replay(
    trace: Trace,
    stepper: Stepper | None = None,
    *,
    budget: Budget | None = None,
    invariants: Sequence[str] | None = None,
    complete: bool | None = None,
    confirm: bool = True,
    on_progress: OnProgress | None = None,
) -> Replay:
    """Replay a trace against its own variant, or against any model that ``stepper`` runs.

    Whoever replays many traces of one model makes its ``CompiledStepper`` once. ``invariants``: those that an
    explanation must keep (None: all). ``complete``: take the trace for complete, or not, whatever its header says.
    ``confirm``: have the reference interpreter run the explanation again; without, only the compiled model vouches
    for it.

    Raises BadInput for an event that the model has no words for (an action which the variant lacks is no such thing:
    nothing explains it) or an unknown invariant, and ProtocolError where the reference interpreter does not confirm
    an explanation.
    """
    limits = budget or Budget()
    whole = trace.header.complete if complete is None else complete
    skips = 0 if whole else limits.max_skipped
    if stepper is None:
        stepper = stepper_for(traced_of(trace), trace.header.constants, often=bool(skips) or len(trace) > _OFTEN)
    chosen = _chosen(stepper, invariants)
    answer = _Run(trace, stepper, limits, chosen, whole, skips, confirm, on_progress).answer()
    if answer.verdict is Verdict.HOLDS and trace.header.partial is not None:
        answer.verdict, answer.reason = Verdict.UNKNOWN, partial_reason(trace.header.partial)
    return answer


def partial_reason(why: str) -> str:
    """Why a partial trace that the model explains is ``unknown``."""
    return f"the trace is partial: {why}"


def traced_of(trace: Trace) -> TracedProtocol:
    """The variant that a trace is a trace of. Raises BadInput for one that is not there."""
    protocol = PROTOCOLS.get(trace.header.protocol)
    if protocol is None:
        raise BadInput(
            f"unknown protocol {trace.header.protocol!r}", "trace header", f"use one of {', '.join(PROTOCOLS)}"
        )
    return protocol.traced(trace.header.variant)


def _chosen(stepper: Stepper, invariants: Sequence[str] | None) -> tuple[str, ...]:
    known = stepper.system.traced.protocol.invariant_names
    for name in invariants or ():
        if name not in known:
            raise BadInput(
                f"{stepper.system.name} has no invariant {name!r}", "--invariant", f"choose of {', '.join(known)}"
            )
    return known if invariants is None else tuple(name for name in known if name in invariants)


class _Run:
    """One replay."""

    def __init__(
        self,
        trace: Trace,
        stepper: Stepper,
        budget: Budget,
        invariants: tuple[str, ...],
        whole: bool,
        skips: int,
        confirm: bool,
        on_progress: OnProgress | None,
    ) -> None:
        self.start = time.perf_counter()
        self.events = trace.events
        self.stepper = stepper
        self.budget = budget
        self.invariants = invariants
        self.whole = whole
        self.skips = skips
        # The direct stepper is the reference interpreter itself.
        self.confirm = confirm and isinstance(stepper, CompiledStepper)
        self.on_progress = on_progress
        self.explorer = Explorer(stepper, invariants, budget.max_frontier, budget.max_seconds)
        self.reached = 0
        self.wanted = [stepper.translate(index, event) for index, event in enumerate(trace.events)]

    def answer(self) -> Replay:
        """Pass over the trace with ever more unobserved steps in a gap, until the verdict is certain."""
        conflict = None if self.whole else self._conflict()
        if conflict is not None:
            return conflict
        stop: _Stop | None = None
        try:
            for steps in range(self.skips + 1):
                found = self._pass(steps)
                if isinstance(found, Node):
                    return self._holds(found)
                stop = found
                if stop.final:
                    break
        except BudgetSpent as spent:
            return self._failed(stop, f"{spent.budget}: {spent.told}")
        assert stop is not None
        if stop.final:
            return self._failed(stop, None)
        if self.skips:
            told = f"events may be missing, and more than {self.skips} unobserved steps in a gap were not tried"
        else:
            told = "the trace does not claim to be complete, and no unobserved step was allowed"
        return self._failed(stop, f"max_skipped: {told}")

    def _conflict(self) -> Replay | None:
        """The answer if observations contradict each other; in a complete trace the search finds the first fault."""
        if set(self.invariants) != set(self.stepper.system.traced.protocol.invariant_names):
            return None
        found = find_conflict(self.stepper.system, self.wanted, self.events)
        if found is None:
            return None
        answer = self._answer(Verdict.VIOLATED, found.claims[-1].event, None, 0)
        answer.violated, answer.cause, answer.conflict = EXPLAINED, "observation", found
        return answer

    def _pass(self, steps: int) -> Node | _Stop:
        explorer = self.explorer
        frontier = explorer.start()
        final = True
        for wanted in self.wanted:
            self.reached = wanted.index
            if self.on_progress is not None:
                self.on_progress(wanted.index, len(self.wanted))
            before = frontier
            if not self.whole:
                before, closed = explorer.widen(frontier, steps)
                final = final and closed
            after = explorer.advance(before, wanted)
            if not after.clean:
                return _Stop(wanted.index, frontier, before, after, final)
            frontier = after
        if not frontier.clean:  # a trace without events, and an initial state that breaks an invariant
            return _Stop(0, frontier, frontier, frontier, final)
        return _fewest_skipped(frontier.clean.values())

    def _holds(self, node: Node) -> Replay:
        answer = self._answer(Verdict.HOLDS, None, None, len(self.events))
        self._explain(answer, node)
        answer.seconds = time.perf_counter() - self.start
        return answer

    def _failed(self, stop: _Stop | None, reason: str | None) -> Replay:
        """The answer where no clean explanation was found. ``reason``: the budget that ran out, if one did."""
        verdict = Verdict.VIOLATED if reason is None else Verdict.UNKNOWN
        index = self.reached if stop is None else stop.index
        event = self.events[index] if self.events else None
        answer = self._answer(verdict, event, reason, index)
        if stop is None:
            pass
        elif stop.after.dirty:
            node = _latest_breach(stop.after.dirty.values())
            assert node.breach is not None
            answer.cause = "invariant"
            answer.breach = Breach(*node.breach)
            answer.explained = index + bool(self.events)
            self._explain(answer, node)
        else:
            assert event is not None
            wanted = self.wanted[index]
            answer.cause = "observation" if can_happen(self.stepper, stop.before, wanted) else "guard"
            answer.frontier = diagnose(self.stepper, stop.before, event, wanted)
            answer.frontier_size = len(stop.before)
            self._explain(answer, _fewest_skipped(stop.reached.clean.values()))
        if stop is not None and verdict is Verdict.VIOLATED:
            answer.violated = EXPLAINED if answer.breach is None else answer.breach.invariants[0]
        answer.seconds = time.perf_counter() - self.start
        return answer

    def _answer(self, verdict: Verdict, event: TraceEvent | None, reason: str | None, explained: int) -> Replay:
        visited, seconds = self.explorer.states_visited, time.perf_counter() - self.start
        return Replay(verdict, event, reason, len(self.events), explained, visited, seconds)

    def _explain(self, answer: Replay, node: Node) -> None:
        """Set the explanation, and the events that are in no step of it."""
        answer.explanation = self._confirmed(node)
        taken = {each.event.step for each in answer.explanation if each.event is not None}
        events = (each for each in self.events[: answer.explained] if each.action is not None)
        answer.repeated = tuple(each.step for each in events if each.step not in taken)

    def _confirmed(self, node: Node) -> tuple[Explained, ...]:
        """The run to a node, once the reference interpreter has confirmed it."""
        run = node.run()
        if self.confirm:
            self._confirm([step for step, _ in run], node)
        return tuple(Explained(step, None if index is None else self.events[index]) for step, index in run)

    def _confirm(self, run: list[TakenStep], node: Node) -> None:
        reference = self.stepper.reference
        check_run(reference, run)
        states = [reference.system.initial, *(step.state for step in run)]
        for depth, state in enumerate(states[: None if node.breach is None else node.breach[0] + 1]):
            broken = tuple(name for name in reference.broken(state) if name in self.invariants)
            expected = node.breach[1] if node.breach is not None and node.breach[0] == depth else ()
            if broken != expected:
                raise ProtocolError(
                    f"after step {depth} of the run the reference finds broken: {', '.join(broken) or 'nothing'}; "
                    f"the compiled model: {', '.join(expected) or 'nothing'}"
                )


def _fewest_skipped(nodes: Iterable[Node]) -> Node:
    return min(nodes, key=lambda node: node.skipped)


def _latest_breach(nodes: Iterable[Node]) -> Node:
    def order(node: Node) -> tuple[int, int]:
        assert node.breach is not None
        return -node.breach[0], node.skipped

    return min(nodes, key=order)
