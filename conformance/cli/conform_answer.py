"""What ``fencepost conform`` answers: as text, as obligations for CI servers, as annotations."""

from __future__ import annotations

from ...model.core.ground import System
from ...model.explore.result import Verdict
from ...traces.report.obligation import Obligation
from ...traces.report.text import render_text
from ...traces.text import counted
from ..check.task import word
from ..lockstep.answer import Run, actions_table, summary
from ..lockstep.divergence import Sort
from ..lockstep.play import Played
from ..lockstep.render import CONFORMS, script, story_of_failure
from ..lockstep.runner import Conformance
from .annotations import Place, annotate, place_of
from .conform_ways import print_shrinking
from .output import print_verdict, stdout


def print_answer(run: Run, found: Conformance, states: int | None) -> None:
    """Print the failing run, the command that repeats it, the verdict, and the coverage."""
    out = stdout()
    system = found.space.system
    if found.failure is not None:
        print_failure(found.failure)
        divergence = found.failure.divergence
        hung = divergence is not None and divergence.sort is Sort.HUNG
        print_shrinking(found.minimal, found.repeatable, hung)
        out.print(
            f"{counted(found.found, 'step')} when it was found, {len(found.failure.tries)} now. Again:", markup=False
        )
        out.print(f"  {run.command}", markup=False, soft_wrap=True)
        if run.redraw is not None:
            out.print("Found again without the clock by:", markup=False)
            out.print(f"  {run.redraw}", markup=False, soft_wrap=True)
        out.print()
    constants = ", ".join(f"{name} {value}" for name, value in system.constants.items())
    verdict = found.verdict.value
    if found.verdict is Verdict.HOLDS:
        verdict += f", no divergence in {counted(found.coverage.steps, 'step')}"
    print_verdict(
        out, f"{run.name} in lockstep against {system.name} {system.traced.variant.name} ({constants})", verdict
    )
    if found.reason:
        out.print(found.reason, markup=False)
    out.print(actions_table(found))
    for line in summary(run, found, states):
        out.print(line, markup=False)


def print_failure(failure: Played) -> None:
    """The run as numbered lines, and what the two differ in."""
    out = stdout()
    for line in failure_lines(failure):
        out.print(line, markup=False, soft_wrap=True)


def failure_lines(failure: Played) -> list[str]:
    """The run as numbered lines, and what the two differ in."""
    found = failure.divergence
    assert found is not None
    sort = f"{found.sort.value[0].upper()}{found.sort.value[1:]}."
    return [*script(failure), "", sort, *(f"  {line}" for line in (found.headline, *found.lines))]


def obligations(adapter: str, found: Conformance) -> list[Obligation]:
    """One for doing what the model does, and one for each promise: what was not come to is undecided."""
    system = found.space.system
    group = f"{adapter} against {system.name} {system.traced.variant.name}"
    failure = found.failure
    divergence = None if failure is None else failure.divergence
    story = None if failure is None else story_of_failure(system, failure, adapter)
    broken = divergence is not None and divergence.sort is Sort.PROMISE

    def one(name: str, verdict: Verdict, detail: str, *, told: bool = False) -> Obligation:
        steps, seconds = found.coverage.steps, found.seconds
        return Obligation(name, group, word(verdict), "holds", detail, steps, "steps", seconds, story if told else None)

    detail = found.reason or ("" if divergence is None else divergence.headline)
    results = [one(CONFORMS, Verdict.HOLDS if broken else found.verdict, detail, told=not broken)]
    for name in found.space.invariants:
        if broken and divergence is not None and divergence.broken == name:
            results.append(one(name, Verdict.VIOLATED, detail, told=True))
        elif found.verdict is Verdict.HOLDS:
            results.append(one(name, Verdict.HOLDS, ""))
        else:
            results.append(one(name, Verdict.UNKNOWN, found.reason or "the runs ended at a divergence"))
    return results


def replayed(system: System, adapter: str, file: str, played: Played) -> Obligation:
    """The obligation of a file's tries."""
    found = played.divergence
    group = f"{adapter} against {system.name} {system.traced.variant.name}"
    verdict = Verdict.HOLDS if found is None else Verdict.VIOLATED
    story = None if found is None else story_of_failure(system, played, adapter)
    detail = "" if found is None else found.headline
    return Obligation(file, group, word(verdict), "holds", detail, len(played.tries), "steps", 0.0, story)


def annotate_divergence(system: System, adapter: str, failure: Played | None) -> None:
    """An annotation for CI: at the line that raised or hung, else where the model's text says what should come."""
    found = None if failure is None else failure.divergence
    if failure is None or found is None:
        return
    action = None if found.asked.call is None else found.asked.call[0]
    refused = None if found.refusal is None else found.refusal.action
    place = place_of(system.traced.protocol, found.broken, refused, action)
    if found.at is not None:
        place = Place(found.at.file, found.at.line)
    story = render_text(story_of_failure(system, failure, adapter))
    annotate(f"{adapter} does not conform to {system.name}", f"{found.headline}\n\n{story}", place)
