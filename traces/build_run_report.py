"""From a run of a model, or from a replay, to a story that the presenters can tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..model.core import terms
from ..model.core.ground import Grounder, State, System
from ..model.core.protocol import Protocol
from ..model.core.registry import REGISTRY
from ..model.core.terms import Term
from ..model.core.view import LogView, derived_view
from ..model.explore.result import Step, Verdict
from ..model.interpret.staged import expression
from .diagnose import value_words
from .format import Trace, value_json
from .observe import decode, observe
from .record import check_run, run_of
from .replay import EXPLAINED, Replay, traced_of
from .run_report import Breach, Call, Json, Moment, Story
from .run_report import Verdict as StoryVerdict
from .stepper import DirectStepper, Stepper, TakenStep
from .text import counted

MAX_ENABLED: Final = 64
"""Where more steps can happen in a state, the story does not list them (large constants)."""

_VERDICTS: Final[dict[Verdict, StoryVerdict]] = {
    Verdict.HOLDS: "holds",
    Verdict.VIOLATED: "violated",
    Verdict.UNKNOWN: "unknown",
}


def story_of_run(
    stepper: Stepper,
    path: Iterable[Step | TakenStep],
    *,
    verdict: Verdict,
    violated: str | None = None,
    headline: str | None = None,
    source: Mapping[str, Json] | None = None,
    loop_start: int | None = None,
) -> Story:
    """The story of a run from the initial state: an explorer's path, a counterexample, a lasso.

    ``violated`` names the property that the run breaks, if any; without a ``headline`` one is written. ``loop_start``
    is the index of the state that the last step leads back to (0: the initial state). Raises ProtocolError for a path
    that is no run, ValueError for a loop that is none.
    """
    run = run_of(path)
    check_run(stepper.reference, run)
    moments = _moments(stepper, run)
    words = headline if headline is not None else _headline(moments, verdict, violated)
    return _story(stepper, moments, verdict, violated, words, source or {}, loop_start)


def story_of_replay(trace: Trace, answer: Replay, stepper: Stepper | None = None) -> Story:
    """The story of a replay: the run that explains the trace, as far as one does, and why it goes no further.

    ``stepper`` is what the trace was replayed against; None: the trace's own variant.
    """
    runner = stepper or DirectStepper(traced_of(trace), trace.header.constants)
    moments = _moments(runner, answer.run, tuple(_told(answer)))
    if answer.event is not None and answer.breach is None:
        moments[-1] = _with_notes(moments[-1], _end_notes(answer))
    return _story(
        runner, moments, answer.verdict, answer.violated, replay_headline(answer), dict(trace.header.source), None
    )


def replay_headline(answer: Replay) -> str:
    """The outcome of a replay in one or two sentences."""
    if answer.verdict is Verdict.HOLDS:
        skipped = f", with {counted(answer.skipped, 'step')} that it did not observe" if answer.skipped else ""
        told = f"The model explains all {answer.events} events of the trace{skipped}. Every invariant holds on the way."
        count = len(answer.repeated)
        return f"{told} {count} of them {'changes' if count == 1 else 'change'} nothing." if count else told
    if answer.conflict is not None:
        return f"{answer.conflict}."
    if answer.cause is None and answer.event is None and answer.explained == answer.events:
        return f"The model explains {counted(answer.events, 'event')} of the trace. No verdict: {answer.reason}."
    where = "the trace" if answer.event is None else f"event {answer.event.step}, {answer.event.call}"
    if answer.cause is None:
        return f"The replay ended at {where}: {answer.reason}."
    if answer.breach is not None:
        what = f"Every explanation of the trace up to {where} that was found breaks {answer.breach.invariants[0]}."
    elif answer.cause == "observation":
        what = f"No run of the model explains {where}: it can happen, but not with what was observed after it."
    else:
        what = f"No run of the model explains {where}: it cannot happen there."
    return what if answer.reason is None else f"{what} No verdict: {answer.reason}."


def _story(
    stepper: Stepper,
    moments: Sequence[Moment],
    verdict: Verdict,
    violated: str | None,
    headline: str,
    source: Mapping[str, Json],
    loop_start: int | None,
) -> Story:
    system = stepper.system
    protocol = system.traced.protocol
    promises = {name: prop.doc for name, prop in protocol.invariants.items()}
    promises |= {name: prop.doc for name, prop in protocol.liveness.items()}
    promises["type_ok"] = "Every cell holds a value of its domain."
    promises[EXPLAINED] = "Some run of the model explains every event of the trace."
    return Story(
        protocol=system.name,
        variant=system.traced.variant.name,
        constants=dict(system.constants),
        verdict=_VERDICTS[verdict],
        violated=violated,
        headline=headline,
        source=source,
        replicas=tuple(range(system.constants.get("replicas", 0))),
        view=_view(protocol, system.traced.variant.name),
        moments=tuple(moments),
        promises=promises,
        loop_start=loop_start,
    )


def _view(protocol: Protocol, variant: str) -> LogView:
    """The layout that the protocol is registered with; one that its declarations give for a protocol that is not."""
    registration = REGISTRY.get(protocol.name)
    if registration is None or registration.protocol is not protocol:
        return derived_view(protocol, variant)
    return registration.view_of(variant)


def _moments(stepper: Stepper, run: Sequence[TakenStep], notes: Sequence[str] = ()) -> list[Moment]:
    breaches = Breaches(stepper.system)
    found = [_moment(stepper, breaches, 0, None, stepper.system.initial, "")]
    for number, step in enumerate(run, 1):
        note = notes[number - 1] if number <= len(notes) else ""
        found.append(_moment(stepper, breaches, number, step, step.state, note))
    return found


def _moment(
    stepper: Stepper, breaches: Breaches, number: int, step: TakenStep | None, state: State, note: str
) -> Moment:
    enabled = stepper.every(state)
    return Moment(
        step=number,
        action=None if step is None else step.action,
        params={} if step is None else dict(step.params),
        state={cell: value_json(value) for cell, value in observe(stepper.layout, state).items()},
        enabled=tuple(Call(each.action, dict(each.params)) for each in enabled) if len(enabled) <= MAX_ENABLED else (),
        broken=tuple(breaches.of(name, state) for name in stepper.reference.broken(state)),
        notes=(note,) if note else (),
    )


def _with_notes(moment: Moment, notes: Sequence[str]) -> Moment:
    return Moment(
        moment.step,
        moment.action,
        moment.params,
        moment.state,
        moment.enabled,
        moment.broken,
        (*moment.notes, *notes),
    )


def _told(answer: Replay) -> Iterable[str]:
    """For each step of an explanation, where it stands in the trace."""
    for number, each in enumerate(answer.explanation, 1):
        if each.event is None:
            yield "not in the trace: a step that nobody observed"
        elif each.event.step != number or answer.skipped:
            yield f"event {each.event.step} of the trace"
        else:
            yield ""


def _end_notes(answer: Replay) -> list[str]:
    assert answer.event is not None
    notes = [f"the trace goes on with event {answer.event.step}, {answer.event.call}"]
    if answer.frontier:
        notes += [str(denial) for denial in answer.frontier[0].denials]
    return notes


def _headline(moments: Sequence[Moment], verdict: Verdict, violated: str | None) -> str:
    steps = counted(len(moments) - 1, "step")
    if violated is None:
        return f"A run of {steps}."
    if any(breach.invariant == violated for breach in moments[-1].broken):
        return f"{violated} breaks after {steps}."
    return f"{violated}: {verdict.value} after {steps}."


class Breaches:
    """Says of a broken invariant which cells break it, and what they hold."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._layout = system.layout
        self._grounded: dict[str, Term] = dict(system.invariants)

    def of(self, invariant: str, state: State) -> Breach:
        """How the invariant fails in this state. The cells are those of its first failing part."""
        if invariant == "type_ok":
            cells = self._out_of_domain(state)
        else:
            names = {f"c{number}": value for number, value in enumerate(state)}
            cells = list(dict.fromkeys(_failing(self._term(invariant), names)))
        told = ", ".join(
            f"{self._layout.cells[n].name} is {value_words(decode(self._layout.cells[n], state[n]))}" for n in cells
        )
        return Breach(invariant, told, tuple(self._layout.cells[n].name for n in cells))

    def _term(self, invariant: str) -> Term:
        if invariant not in self._grounded:
            traced = self._system.traced
            grounder = Grounder(traced, self._system.constants, self._layout)
            self._grounded[invariant] = grounder.ground(traced.invariants[invariant], {})
        return self._grounded[invariant]

    def _out_of_domain(self, state: State) -> list[int]:
        cells = self._layout.cells
        return [cell.number for cell in cells if not cell.low <= state[cell.number] <= cell.high]


def _failing(term: Term, names: Mapping[str, int]) -> list[int]:
    """The cells that make a condition false: of a conjunction, its first false part; of a disjunction, all parts."""
    if term.op == "and":
        part = next(part for part in term.args if not _value(part, names))
        return _failing(part, names)
    if term.op == "or":
        return [number for part in term.args for number in _failing(part, names)]
    if term.op == "ite":
        test, then, otherwise = term.args
        chosen = then if _value(test, names) else otherwise
        rest = _failing(chosen, names) if chosen.sort is terms.Sort.BOOL else _read(chosen, names)
        return [*_read(test, names), *rest]
    return _read(term, names)


def _read(term: Term, names: Mapping[str, int]) -> list[int]:
    """The cells that a value depends on; of a choice, those of the branch taken."""
    if term.op == "cell":
        assert isinstance(term.value, int)
        return [term.value]
    if term.op == "ite":
        test, then, otherwise = term.args
        return [*_read(test, names), *_read(then if _value(test, names) else otherwise, names)]
    return [number for part in term.args for number in _read(part, names)]


def _value(term: Term, names: Mapping[str, int]) -> int:
    return int(eval(expression(term), {"__builtins__": {}}, dict(names)))  # noqa: S307 - our own text
