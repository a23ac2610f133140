"""The answer of free runs: as a JSON object, as a table of what happened, and as lines on what never did."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from ...model.core.ground import System
from ...traces.run_report import Json
from ...traces.text import counted
from ..executed import EVERY, Executed, told
from ..plan import guards_by_action, named_constants
from .corpus import Corpus
from .events import EventKind
from .runner import SimulationPlan, SimulationResult
from .transitions import Transitions


@dataclass(frozen=True)
class SimulationRun:
    """What was run, for the report: what ``--impl`` named, the system's name, the plan, the commands that repeat it.

    ``portfolio``: the steps of the model at each of the constants that runs went through by turns. ``redraw``: the
    command that draws the same runs without the clock, where a clock decided how many there are. ``executed``: what was
    executed of the system's source, where it is known. ``corpus``: where schedules are kept, if anywhere.
    """

    impl: str
    name: str
    plan: SimulationPlan
    portfolio: tuple[Transitions, ...]
    command: str | None = None
    redraw: str | None = None
    executed: Executed | None = None
    corpus: Corpus | None = None

    @property
    def system(self) -> System:
        """The variant, at the first of the constants."""
        return self.portfolio[0].system

    @property
    def of(self) -> str:
        """``memory in simulation against fencing kip-320-brokers``."""
        return f"{self.name} in simulation against {self.system.name} {self.system.traced.variant.name}"

    @property
    def at(self) -> tuple[str, ...]:
        """The constants of each member of the portfolio: ``replicas 3, log_size 4``."""
        return tuple(named_constants(ways.system.traced.protocol, ways.system.constants) for ways in self.portfolio)


def never_taken(run: SimulationRun, found: SimulationResult) -> tuple[str, ...]:
    """The actions of the variant that never happened."""
    return tuple(each.name for each in run.system.traced.actions if each.name not in found.met.steps)


def never_met(run: SimulationRun, found: SimulationResult) -> tuple[str, ...]:
    """The guards, as ``action.guard``, that a system can be asked about and that never refused anything."""
    guards = dict.fromkeys(
        pair
        for ways in run.portfolio
        for each in ways.space.pairs
        for pair in each
        if pair in ways.space.askable and pair not in found.met.refused
    )
    return tuple(f"{action}.{guard}" for action, guard in guards)


def never_seen(run: SimulationRun, found: SimulationResult) -> tuple[str, ...]:
    """The cells that were never observed. A variable of which no cell was stands for all of them."""
    seen = {name.split("[")[0] for name in found.met.cells}
    cells = dict.fromkeys(
        cell.name if cell.variable.name in seen else cell.variable.name
        for ways in run.portfolio
        for cell in ways.system.layout.cells
        if cell.name not in found.met.cells
    )
    return tuple(cells)


def share_wide(found: SimulationResult) -> float:
    """The share of the events that more than one state of the model explained."""
    return found.met.wide / found.met.events if found.met.events else 0.0


def to_json(run: SimulationRun, found: SimulationResult) -> dict[str, Json]:
    """Everything that the text says, and the failing run."""
    failure = found.failure
    divergence = None if failure is None or failure.divergence is None else failure.divergence.to_json()
    return {
        "impl": run.impl,
        "system": run.name,
        "protocol": run.system.name,
        "variant": run.system.traced.variant.name,
        "constants": [dict(ways.system.constants) for ways in run.portfolio],
        "verdict": found.verdict.value,
        "reason": found.reason,
        "seed": run.plan.seed,
        "runs": found.runs,
        "events": found.met.events,
        "seconds": round(found.seconds, 3),
        "events_per_second": round(found.met.events / found.seconds) if found.seconds else 0,
        "wide": found.met.wide,
        "widest": found.met.widest,
        "given_up": found.unfinished,
        "kinds": {f"{what.value} {name}".rstrip(): count for what, name, count in _kinds(found)},
        "steps": {each.name: found.met.steps.get(each.name, 0) for each in run.system.traced.actions},
        "actions_never_taken": list(never_taken(run, found)),
        "guards_never_met": list(never_met(run, found)),
        "cells_never_observed": list(never_seen(run, found)),
        "disagreement": divergence,
        "found_after": found.found if failure is not None else None,
        "schedule": None if failure is None else [event.to_json() for event in failure.events],
        "schedule_constants": None if failure is None else dict(failure.ways.system.constants),
        "repeatable": found.repeatable if failure is not None else None,
        "minimal": found.minimal if failure is not None else None,
        "replay": run.command,
        "redraw": run.redraw,
        "corpus": None if run.corpus is None else {"began": run.corpus.began, "kept": run.corpus.kept},
        "source": None if run.executed is None else _source(run.executed),
    }


def _source(executed: Executed) -> dict[str, Json]:
    return {
        "watched_runs": f"1 of {EVERY}",
        "lines": executed.total,
        "executed": executed.done,
        "never": [each.to_json() for each in executed.never()],
    }


def _kinds(found: SimulationResult) -> list[tuple[EventKind, str, int]]:
    """How often each kind of event happened, in the order of ``EventKind``, and the frequent ones first."""
    order = list(EventKind)
    kinds = [(what, name, count) for (what, name), count in found.kinds.items()]
    return sorted(kinds, key=lambda each: (order.index(each[0]), -each[2], each[1]))


def events_table(found: SimulationResult) -> Table:
    """Count of each kind of event, with its names."""
    table = Table("event", "count", "by name", box=None, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    table.columns[1].justify = "right"
    for what in EventKind:
        alike = [(name, count) for each, name, count in _kinds(found) if each is what]
        if alike:
            names = ", ".join(f"{name} {count:,}" for name, count in alike if name)
            table.add_row(what.value, f"{sum(count for _, count in alike):,}", Text(names))
    return table


def summary(run: SimulationRun, found: SimulationResult) -> list[str]:
    """Lines after the verdict: counts, constants, and coverage gaps."""
    met = found.met
    # Shrinking takes time too, so there is no speed to report then.
    speed = f" ({met.events / found.seconds:,.0f} events a second)" if found.seconds and found.failure is None else ""
    lines = [
        (f"seed {run.plan.seed}: {met.events:,} events in {counted(found.runs, 'run')}, {found.seconds:.1f} s{speed}"),
        "constants, in turn (the others have their defaults):",
        *(f"  {each}" for each in run.at),
        (
            f"model states that explain the observations: more than one after {share_wide(found):.1%} of the events, "
            f"at most {met.widest}"
        ),
    ]
    if run.corpus is not None:
        lines.append(
            f"{run.corpus.folder}: {counted(run.corpus.began, 'schedule')} to resume from, {run.corpus.kept} new"
        )
    # A run that ended in a divergence covers little.
    if found.failure is None:
        never = {
            "actions that never occurred": never_taken(run, found),
            "cells never observed, and so never compared": never_seen(run, found),
        }
        lines += [f"{what}: {', '.join(names)}" for what, names in never.items() if names]
        guards = never_met(run, found)
        if guards:
            lines += [f"guards that never refused a step ({len(guards)}):"]
            lines += [f"  {each}" for each in guards_by_action(guards)]
        lines += [] if run.executed is None else told(run.executed, EVERY)
    return lines
