"""What a free run answers: as text, as obligations for CI servers, as annotations."""

from __future__ import annotations

from typing import Final

from ...model.core.protocol import Protocol
from ...model.explore.result import Verdict
from ...traces.report.obligation import Obligation
from ...traces.text import counted
from ..check.task import word
from ..simulation.answer import SimulationRun, events_table, summary
from ..simulation.divergence import Sort
from ..simulation.render import script
from ..simulation.runner import RunRecord, SimulationResult
from .annotations import Place, annotate, place_of
from .conform_ways import print_shrinking
from .output import print_verdict, stdout

FOLLOWS: Final = "the model can follow"
"""The name of the promise that a divergence breaks."""


def print_answer(run: SimulationRun, found: SimulationResult) -> None:
    """Print the failing run, the command that repeats it, the verdict, and the coverage."""
    out = stdout()
    if found.failure is not None:
        print_parted(found.failure)
        divergence = found.failure.divergence
        print_shrinking(found.minimal, found.repeatable, divergence is not None and divergence.sort is Sort.HUNG)
        now = len(found.failure.events)
        out.print(f"{counted(found.found, 'event')} when it was found, {now} now. Again:", markup=False)
        out.print(f"  {run.command}", markup=False, soft_wrap=True)
        if run.redraw is not None:
            out.print("Found again without the clock by:", markup=False)
            out.print(f"  {run.redraw}", markup=False, soft_wrap=True)
        out.print()
    verdict = found.verdict.value
    if found.verdict is Verdict.HOLDS:
        verdict += f", no divergence in {counted(found.met.events, 'event')} of {counted(found.runs, 'run')}"
    print_verdict(out, run.of, verdict)
    if found.reason:
        out.print(found.reason, markup=False)
    out.print(events_table(found))
    for line in summary(run, found):
        out.print(line, markup=False)


def print_parted(ran: RunRecord) -> None:
    """The run as numbered lines, and where the two part."""
    out = stdout()
    for line in told_of(ran):
        out.print(line, markup=False, soft_wrap=True)


def told_of(ran: RunRecord) -> list[str]:
    """A run that fails, as lines."""
    found = ran.divergence
    assert found is not None
    constants = ", ".join(f"{name} {value}" for name, value in ran.ways.system.constants.items())
    what = f"{found.sort.value[0].upper()}{found.sort.value[1:]}."
    told = script(ran)
    outside = "; ? is the controller or a client" if any("? ->" in line or "-> ?" in line for line in told) else ""
    # The headline tells of the first cell already.
    why = [found.headline, *(line for line in found.lines if line not in found.headline)]
    return [f"At {constants}{outside}:", *told, "", what, *(f"  {line}" for line in why)]


def obligations(run: SimulationRun, found: SimulationResult) -> list[Obligation]:
    """One for being followed, and one for each promise: what was not come to is undecided."""
    divergence = None if found.failure is None else found.failure.divergence
    broken = divergence is not None and divergence.sort is Sort.PROMISE
    text = "" if found.failure is None else "\n".join(told_of(found.failure))

    def one(name: str, verdict: Verdict, detail: str, *, told: bool = False) -> Obligation:
        count, seconds = found.met.events, found.seconds
        return Obligation(
            name, run.of, word(verdict), "holds", detail, count, "events", seconds, text=text if told else ""
        )

    detail = found.reason or ("" if divergence is None else divergence.headline)
    results = [one(FOLLOWS, Verdict.UNKNOWN if broken else found.verdict, detail, told=not broken)]
    for name in run.portfolio[0].space.invariants:
        if divergence is not None and divergence.broken == name:
            results.append(one(name, Verdict.VIOLATED, detail, told=True))
        elif found.verdict is Verdict.HOLDS:
            results.append(one(name, Verdict.HOLDS, ""))
        else:
            results.append(one(name, Verdict.UNKNOWN, found.reason or "the runs ended at a divergence"))
    return results


def annotate_parted(protocol: Protocol, name: str, ran: RunRecord | None) -> None:
    """An annotation for CI: at the line that raised or hung, else where the model's text says what should come."""
    found = None if ran is None else ran.divergence
    if ran is None or found is None:
        return
    actions = [each.action for each in found.refusals] + [step.split("(")[0] for step in found.steps]
    place = place_of(protocol, found.broken, *actions)
    if found.at is not None:
        place = Place(found.at.file, found.at.line)
    annotate(f"{name} does not conform to {protocol.name}", "\n".join((found.headline, "", *told_of(ran))), place)
