"""The answer of ``fencepost conform`` as a JSON object, and the table of what was tried."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table

from ...model.core.ground import System
from ...model.explore import Limits, Query, Verdict
from ...model.explore import explore as search
from ...model.explore.result import OnProgress
from ...traces.run_report import Json
from ..plan import guards_by_action
from .runner import Conformance, Plan

REACHABLE_LIMIT = 1_000_000
"""Reachable states are counted up to so many: at 3/2/2/2 (737,794 states) half a second."""


@dataclass(frozen=True)
class Run:
    """What was run, for the report: the adapter's ``--impl``, its name, the plan and the command that replays it.

    ``redraw``: the command that draws the same runs again without the clock, where a clock decided how many there are.
    """

    impl: str
    name: str
    plan: Plan
    command: str | None = None
    redraw: str | None = None


def reachable(system: System, told: OnProgress | None = None) -> int | None:
    """How many states the model has; None where they are too many to count, or a promise breaks on the way."""
    found = search(Query.of(system, ("type_ok",), limits=Limits(max_states=REACHABLE_LIMIT)), "batch", told)
    return found.distinct if found.verdict is Verdict.HOLDS else None


def to_json(run: Run, found: Conformance, states: int | None) -> dict[str, Json]:
    """Everything that the text says, and the failing run."""
    coverage, space = found.coverage, found.space
    failure = found.failure
    divergence = None if failure is None or failure.divergence is None else failure.divergence.to_json()
    return {
        "impl": run.impl,
        "adapter": run.name,
        "protocol": space.system.name,
        "variant": space.system.traced.variant.name,
        "constants": dict(space.system.constants),
        "verdict": found.verdict.value,
        "reason": found.reason,
        "seed": run.plan.seed,
        "draw": run.plan.draw,
        "examples": found.examples,
        "steps": coverage.steps,
        "seconds": round(found.seconds, 3),
        "steps_per_second": round(coverage.steps / found.seconds) if found.seconds else 0,
        "states": len(coverage.visits),
        "reachable": states,
        "actions": {name: count.to_json() for name, count in coverage.actions.items()},
        "faults": {kind.value: coverage.faults.get(kind, 0) for kind in found.faults},
        "guards_never_met": list(coverage.never_met(space)),
        "cells_never_observed": list(coverage.unseen(space)),
        "disagreement": divergence,
        "found_after": found.found if failure is not None else None,
        "tries": None if failure is None else [each.to_json() for each in failure.tries],
        "repeatable": found.repeatable if failure is not None else None,
        "minimal": found.minimal if failure is not None else None,
        "replay": run.command,
        "redraw": run.redraw,
    }


def actions_table(found: Conformance) -> Table:
    """How often each action was tried, and how."""
    table = Table("action", "enabled", "refused", "with a fault", "unasked", box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    for column in table.columns[1:]:
        column.justify = "right"
    for name, count in found.coverage.actions.items():
        table.add_row(name, f"{count.enabled:,}", f"{count.refused:,}", f"{count.fault:,}", f"{count.beside:,}")
    return table


def summary(run: Run, found: Conformance, states: int | None) -> list[str]:
    """The lines after the verdict: how much was tried, and what was not."""
    coverage = found.coverage
    speed = coverage.steps / found.seconds if found.seconds else 0.0
    of = "" if states is None else f" of {states:,}"
    lines = [
        (
            f"seed {run.plan.seed}: {coverage.steps:,} steps in {found.examples:,} examples, {found.seconds:.1f} s "
            f"({speed:,.0f} a second); {len(coverage.visits):,}{of} states of the model"
        )
    ]
    faults = [f"{kind.value} {coverage.faults.get(kind, 0):,}" for kind in found.faults]
    lines.append(f"faults: {', '.join(faults) or 'none'}")
    # A run that ended in a divergence covers little.
    never = coverage.never_met(found.space) if found.failure is None else ()
    if never:
        lines.append(f"guards that never refused a step ({len(never)}):")
        lines += [f"  {each}" for each in guards_by_action(never)]
    unseen = coverage.unseen(found.space)
    if unseen:
        lines.append(f"cells never observed, and so never compared: {', '.join(unseen)}")
    return lines
