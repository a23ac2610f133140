"""The column of trace replay: a run that only one of mutant and model has, recorded and replayed against the other.

Where the explorer has a counterexample, that is the run: it is written as a trace of the model itself, and the model
must refuse it, at a step of the mutated action. Of a mutant that breaks no promise it is a shortest run that tells the
two apart. Where the mutant only lacks steps, the run is the model's, and the mutant must refuse it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ...model.core.ground import System
from ...model.core.mutants import DROPPED, Mutant
from ...model.explore import Verdict
from ...model.explore.compare import run_to
from ...model.explore.result import Step
from ...traces.format import Trace
from ...traces.record import record
from ...traces.replay import Replay, replay
from ...traces.stepper import DirectStepper
from .explorer import Finding
from .matrix import Cell, Outcome


def judge(mutant: Mutant, finding: Finding) -> tuple[Cell, tuple[str, ...]]:
    """The cell, and what is wrong with the refusal: another place than the mutated one refuses the run."""
    start = time.perf_counter()
    if finding.model is None or finding.system is None:
        return Cell(Outcome.EQUIVALENT, "no run tells the two apart"), ()
    model, of_mutant = finding.model, True
    if finding.path is not None:
        run: Sequence[Step] = finding.path
    else:
        assert finding.base is not None and finding.difference is not None
        apart = finding.difference.added or finding.difference.removed
        assert apart is not None
        of_mutant = finding.difference.added is not None
        run = run_to(finding.base.search, finding.system, apart)
    has, lacks = (finding.system, model) if of_mutant else (model, finding.system)
    whose = "the model" if of_mutant else "the mutant"
    trace, unsaid = sayable(record(has, run, source={"mutant": mutant.name}), has, run)
    answer = replay(trace, DirectStepper(lacks.traced, lacks.constants))
    seconds = time.perf_counter() - start
    if answer.verdict is Verdict.HOLDS:
        if unsaid is not None:
            return Cell(Outcome.KILLED, f"{whose} has no words for step {len(run)}: {unsaid}", len(run), seconds), ()
        if trace.events and trace.events[-1].step in answer.repeated:
            told = f"step {len(run)} changes nothing, and {whose} takes it for an observation"
            return Cell(Outcome.EQUIVALENT, told, len(run), seconds), ()
        return Cell(Outcome.SURVIVED, f"{whose} explains the run", len(run), seconds), ()
    by = refused_by(answer)
    cell = Cell(Outcome.KILLED, f"{whose} refuses step {answer.step}: {by}", len(run), seconds)
    return cell, _faults(mutant, answer, by, of_mutant)


def sayable(trace: Trace, system: System, run: Sequence[Step]) -> tuple[Trace, str | None]:
    """The trace less those values in its last state that lie outside their domains, and the first of them.

    No trace can say such a value, and only the last state of a counterexample has one: it is what breaks ``type_ok``.
    """
    state = run[-1].state
    outside = [cell for cell in system.layout.cells if not cell.low <= state[cell.number] <= cell.high]
    if not outside:
        return trace, None
    names = {cell.name for cell in outside}
    last = trace.events[-1]
    seen = {name: value for name, value in last.observed.items() if name not in names}
    first = outside[0]
    told = f"{first.name} is {state[first.number]}, outside {first.low} to {first.high}"
    return replace(trace, events=(*trace.events[:-1], replace(last, observed=seen))), told


def refused_by(answer: Replay) -> str:
    """What refuses the event at which a replay ended: ``guard epoch_not_fenced``, or the first cell that differs."""
    if not answer.frontier or not answer.frontier[0].denials:
        return f"{answer.violated}"
    denial = answer.frontier[0].denials[0]
    if denial.refusal is not None:
        return f"guard {denial.refusal.guard}"
    return str(denial.differences[0])


def _faults(mutant: Mutant, answer: Replay, by: str, of_mutant: bool) -> tuple[str, ...]:
    """The event that is refused is one of the mutated action, and a dropped guard refuses it by itself."""
    assert answer.event is not None
    if answer.event.action != mutant.action:
        return (f"the replay ends at {answer.event.action}, which is not mutated",)
    if of_mutant and mutant.change == DROPPED and by != f"guard {mutant.place}":
        return (f"the replay ends by {by}, and not by the guard that was dropped",)
    return ()
