"""``fencepost explore --refines``: whether a variant's steps are another's, and the answer as text or JSON."""

from __future__ import annotations

from pathlib import Path

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...model.core.ground import System
from ...model.core.registration import Registration
from ...model.explore import Limits, Verdict
from ...model.explore.refine import Apart, Refinement, cells, refine
from ...traces.build_run_report import story_of_run
from ...traces.record import record
from ...traces.report.text import render_text
from ...traces.stepper import DirectStepper
from ...traces.text import counted
from ...traces.write import write_trace
from .output import exploring, note, print_json, print_verdict, stdout, written


def answer_refinement(
    registration: Registration,
    system: System,
    refines: str,
    but: tuple[str, ...],
    limits: Limits,
    trace_out: Path | None,
    json: bool,
) -> ExitCode:
    """Hold a variant against another one, and say what came of it; the exit code."""
    variant, variants = system.traced.variant.name, registration.protocol.variants
    if refines not in variants:
        raise BadInput(f"{system.name} has no variant {refines!r}", "--refines", f"choose one of {', '.join(variants)}")
    other = registration.protocol.traced(refines)
    try:
        other.drop(*but)
    except BadInput as wrong:
        raise BadInput(wrong.what, "--but", wrong.mend) from wrong
    with exploring(f"{system.name} {variant} as {refines}") as told:
        mapping, unread = registration.mapping(variant, refines), registration.unread_by(variant, refines)
        found = refine(system, other, mapping, but, limits, told, unread)
    if trace_out is not None and found.path is None:
        note(f"{trace_out} is not written: there is no counterexample")
    if trace_out is not None and found.path is not None:
        write_trace(trace_out, record(system, found.path, source={"engine": "reference", "refines": refines}))
        written(trace_out)
    if json:
        print_json(found.to_json())
    else:
        _print(found)
    return found.verdict.exit_code


def _print(found: Refinement) -> None:
    out = stdout()
    system, refines = found.system, found.other.traced.variant.name
    if found.path is not None:
        headline = f"{found.broken} breaks in a mapped state" if not found.apart else _headline(found.apart[0], refines)
        story = story_of_run(
            DirectStepper(system.traced, system.constants),
            found.path,
            verdict=Verdict.VIOLATED,
            violated=found.broken if not found.apart else f"refines {refines}",
            headline=headline,
            source={"engine": "reference", "refines": refines},
        )
        out.print(render_text(story, width=out.story_width), end="", markup=False)
        out.print()
    for each in found.apart[:1]:
        before, after = cells(found.other, each.before), cells(found.other, each.after)
        moved = ", ".join(f"{name} {was} -> {after[name]}" for name, was in before.items() if was != after[name])
        out.print(f"mapped, the last step is: {moved}", markup=False)
    constants = ", ".join(f"{name} {value}" for name, value in system.constants.items())
    less = f" without {', '.join(found.but)}" if found.but else ""
    what = f"{system.name} {system.traced.variant.name} as {refines}{less} ({constants})"
    print_verdict(out, what, found.verdict.value)
    if found.reason:
        out.print(found.reason, markup=False)
    out.print(
        f"{found.distinct:,} distinct states map to {found.mapped:,}, {found.steps:,} steps, {found.seconds:.2f} s",
        markup=False,
    )
    for each in found.apart:
        out.print(f"apart after {counted(len(each.path), 'step')}, {counted(each.count, 'time')}: {each}", markup=False)
    if found.broken is not None:
        out.print(f"{found.broken} of {refines} breaks in a mapped state", markup=False)
    elif found.reason is None:
        out.print(f"every promise of {refines} holds in every mapped state", markup=False)
    if found.unreached is not None:
        told = "reaches every one of them" if not found.unreached else f"does not reach {found.unreached:,} of them"
        out.print(f"{refines} {told}", markup=False)


def _headline(apart: Apart, refines: str) -> str:
    return f"The last step is no run of {refines}: {apart}."
