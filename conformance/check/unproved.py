"""What a proof that does not go through shows: counterexamples to induction, and the run that leads there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rich.console import Console

from ...model.prove.counterexample import Shown, breaking_run, shown
from ...model.prove.run import ProofRun, Result
from ...traces.text import counted


def print_failed(run: ProofRun, out: Console) -> None:
    """Of each action the first counterexample, and the other conjuncts that it breaks; what is unknown, with why."""
    by_action: dict[str, list[Result]] = {}
    for result in run.failed:
        if result.counterexample is None:
            out.print(f"{result.obligation.name} is not proved: {result.reason}", markup=False, soft_wrap=True)
        else:
            by_action.setdefault(result.obligation.action, []).append(result)
    for first, *others in by_action.values():
        assert first.counterexample is not None
        print_case(shown(run.attached, first.counterexample), out)
        if others:
            also = ", ".join(result.obligation.conjunct for result in others)
            out.print(f"  {first.obligation.action} also breaks {also}", markup=False, soft_wrap=True)
    if by_action:
        found = breaking_run(run.attached)
        sizes = ", ".join("/".join(map(str, constants.values())) for constants in run.attached.proof.runs)
        if found is None or found.path is None:
            out.print(f"no run breaks a promise of the text at {sizes}", markup=False, soft_wrap=True)
            return
        at = "/".join(map(str, found.query.system.constants.values()))
        out.print(
            f"a run of {counted(len(found.path), 'step')} at {at} breaks {found.violated}:",
            markup=False,
            soft_wrap=True,
        )
        for number, step in enumerate(found.path, 1):
            out.print(f"  {number:3}  {step.instance}", markup=False, soft_wrap=True)


def print_case(case: Shown, out: Console) -> None:
    """``state, action, broken conjunct``, and the path to the state."""

    def line(text: str) -> None:
        out.print(text, markup=False, soft_wrap=True)

    line(f"{case.step} breaks {case.broken}: {case.doc}")
    line(f"  state   {_cells(case.state)}")
    if case.ghosts:
        line(f"  ghosts  {_cells(case.ghosts)}")
    line(f"  after   {', '.join(f'{name} {old} -> {new}' for name, (old, new) in case.changes.items())}")
    line(f"  {case.reached}")
    for number, step in enumerate(case.path or (), 1):
        line(f"  {number:3}  {step.instance}")


def _cells(cells: Mapping[str, str]) -> str:
    """The cells of a variable together: ``leo[0] 2, leo[1] 1; hw[0] 1``."""
    groups: dict[str, list[str]] = {}
    for name, value in cells.items():
        groups.setdefault(re.sub(r"\[.*", "", name), []).append(f"{name} {value}")
    return "; ".join(", ".join(group) for group in groups.values()) or "the initial one"
