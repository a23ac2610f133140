"""Judging one mutant: it is driven as the system as it is would be, until it and the model part.

Each drive has its share of the time of the processor that there is for a mutant, and what one leaves over goes to the
next. How much it tries is given too, so that within that time the answer depends on the seed alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import count
from typing import Any, Final, cast

from ....traces.run_report import Json
from ...lockstep.adapter import Adapter
from ...lockstep.coverage import Coverage
from ...lockstep.divergence import Sort
from ...lockstep.faults import Kind
from ...lockstep.generate import Chooser, SeededSource
from ...lockstep.play import play, repeat
from ...lockstep.runner import ROUND
from ...lockstep.space import Space
from ...simulation.candidate import Spent
from ...simulation.coverage import SimulationCoverage
from ...simulation.coverage_feedback import CoverageFeedback
from ...simulation.divergence import Sort as FreeSort
from ...simulation.events import event_of
from ...simulation.runner import SimulationPlan, run_seed
from ...simulation.runner import play as play_freely
from ...simulation.runner import repeat as repeat_freely
from ...simulation.system import SimulatedSystem
from ..defect_rows import EXAMPLES, STEPS
from .calls import LimitedAdapter, LimitedSystem
from .drawing import Mutant
from .driving import Drive, Grounds, made
from .source import Source, loaded
from .taking import try_of

RUNS: Final = {"free": SimulationPlan.runs, "lockstep": EXAMPLES}
"""Runs after which a mutant has survived a drive."""
LENGTH: Final = {"free": SimulationPlan.events, "lockstep": STEPS}
"""Events, or tries, of one run."""


class Killer(Enum):
    """What gives a mutant away."""

    CONFORM = "conform"
    """It does, shows or answers what the model does not."""
    PROMISE = "promise"
    """It does what the model does, and a promise of the protocol is broken by that."""
    RAISED = "raised"
    """It falls over, and takes the process with it or not."""
    HUNG = "hung"
    """It does not come back."""


_KILLERS: Final[Mapping[object, Killer]] = {
    Sort.PROMISE: Killer.PROMISE,
    Sort.RAISED: Killer.RAISED,
    Sort.HUNG: Killer.HUNG,
    FreeSort.PROMISE: Killer.PROMISE,
    FreeSort.RAISED: Killer.RAISED,
    FreeSort.HUNG: Killer.HUNG,
}


@dataclass(frozen=True)
class Run:
    """A run, to be repeated: at the drive's constants with this number, reset with this seed, with these steps."""

    constants: int
    seed: int
    steps: tuple[Json, ...]

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {"constants": self.constants, "seed": self.seed, "steps": list(self.steps)}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Run:
        """From its JSON object, which ``to_json`` made."""
        return cls(told["constants"], told["seed"], tuple(told["steps"]))


@dataclass(frozen=True)
class Judgement:
    """What came of judging. ``by``: None where nobody noticed anything. ``events``: tried until then, over all drives.

    ``cut``: the drives for whose runs the time did not suffice. ``run``: the one in which it and the model part.
    """

    by: Killer | None
    drive: str = ""
    detail: str = ""
    events: int = 0
    seconds: float = 0.0
    cut: tuple[str, ...] = ()
    run: Run | None = None

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {
            "by": None if self.by is None else self.by.value,
            "drive": self.drive,
            "detail": self.detail,
            "events": self.events,
            "seconds": round(self.seconds, 2),
            "cut": list(self.cut),
            "run": None if self.run is None else self.run.to_json(),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Json]) -> Judgement:
        """From its JSON object, which ``to_json`` made."""
        by = told["by"]
        return cls(
            None if by is None else Killer(by),
            cast("str", told["drive"]),
            cast("str", told["detail"]),
            cast("int", told["events"]),
            cast("float", told["seconds"]),
            tuple(cast("list[str]", told["cut"])),
            None if told["run"] is None else Run.from_json(cast("dict[str, Any]", told["run"])),
        )


@dataclass(frozen=True)
class _Driven:
    """One drive that is over: how the two parted, if they did."""

    by: Killer | None
    detail: str
    events: int
    whole: bool
    run: Run | None = None


def judge(
    source: Source, mutant: Mutant | None, drives: Sequence[Drive], seed: int, seconds: float, grounds: Grounds
) -> Judgement:
    """Drive a mutant, or the source as it is, for so many seconds of the processor. In a process of its own.

    Whatever is raised of a mutant is a finding; of the source as it is, it is raised.
    """
    start = time.process_time()
    events, cut = 0, []
    try:
        with loaded(source, mutant) as parts:
            for number, drive in enumerate(drives):
                drive.take_in()
                left = sum(each.weight for each in drives[number:])
                now = time.process_time()
                until = now + (start + seconds - now) * drive.weight / left
                with made(drive, parts) as system:
                    driven = _drive(system, drive, seed, until, grounds)
                events += driven.events
                if driven.by is not None:
                    took = time.process_time() - start
                    return Judgement(driven.by, drive.name, driven.detail, events, took, run=driven.run)
                if not driven.whole:
                    cut.append(drive.name)
    except Exception as error:
        # Whatever a mutant raises while it is imported or made, BadInput too; the engines take what it raises later.
        if mutant is None:
            raise
        detail = f"{type(error).__name__}: {error}".removesuffix(": ")
        return Judgement(Killer.RAISED, "", detail, events, time.process_time() - start)
    return Judgement(None, events=events, seconds=time.process_time() - start, cut=tuple(cut))


def _drive(system: Adapter | SimulatedSystem, drive: Drive, seed: int, until: float, grounds: Grounds) -> _Driven:
    if drive.engine == "free":
        return _freely(cast("SimulatedSystem", system), drive, seed, until, grounds)
    return _in_lockstep(cast("Adapter", system), drive, seed, until, grounds)


def _freely(system: SimulatedSystem, drive: Drive, seed: int, until: float, grounds: Grounds) -> _Driven:
    limited = LimitedSystem(system)
    portfolio = grounds.ways(drive, system.variant)
    memory, met = CoverageFeedback(), SimulationCoverage()
    plan = SimulationPlan(RUNS["free"], LENGTH["free"], seed)
    for number in range(plan.runs):
        if time.process_time() > until:
            return _Driven(None, "", met.events, whole=False)
        try:
            ran = play_freely(limited, portfolio[number % len(portfolio)], run_seed(seed, number), plan, memory, met)
        except Spent:
            continue
        if ran.divergence is not None:
            by = _KILLERS.get(ran.divergence.sort, Killer.CONFORM)
            run = Run(number % len(portfolio), ran.seed, tuple(event.to_json() for event in ran.events))
            return _Driven(by, f"{ran.divergence.headline} (event {len(ran.events)})", met.events, whole=True, run=run)
    return _Driven(None, "", met.events, whole=True)


def _in_lockstep(adapter: Adapter, drive: Drive, seed: int, until: float, grounds: Grounds) -> _Driven:
    limited = LimitedAdapter(adapter)
    goals = grounds.goals(drive, adapter.variant)
    coverage = Coverage(goals.space)
    faults = faults_of(adapter, goals.space)
    for number in count():
        if number % ROUND == 0:
            if number:
                coverage.end_round()
            chooser = Chooser(goals.space, coverage, faults, goals)
        if number == RUNS["lockstep"] or time.process_time() > until:
            return _Driven(None, "", coverage.steps, whole=number == RUNS["lockstep"])
        of = run_seed(seed, number)
        played = play(goals.space, limited, of, chooser, SeededSource(of), LENGTH["lockstep"], coverage)
        found = played.divergence
        if found is not None:
            by = _KILLERS.get(found.sort, Killer.CONFORM)
            run = Run(0, of, tuple(each.to_json() for each in played.tries))
            return _Driven(by, f"{found.headline} (try {len(played.tries)})", coverage.steps, whole=True, run=run)
    raise AssertionError("unreachable")


def parts_too(source: Source, drive: Drive, run: Run, grounds: Grounds) -> str | None:
    """How the source as it is and the model part in a run that killed a mutant; None where they do not.

    Where they do, the run says nothing of the mutant.
    """
    with loaded(source, None) as parts:
        drive.take_in()
        with made(drive, parts) as system:
            if drive.engine == "free":
                ways = grounds.ways(drive, system.variant)[run.constants]
                events = [event_of(cast("dict[str, Any]", step), "the run") for step in run.steps]
                try:
                    ran = repeat_freely(LimitedSystem(cast("SimulatedSystem", system)), ways, run.seed, events)
                except Spent as spent:
                    return str(spent)
                return None if ran.divergence is None else ran.divergence.headline
            space = grounds.goals(drive, system.variant).space
            told = [try_of(cast("dict[str, Any]", step)) for step in run.steps]
            # Values of an enumeration are told by their names.
            tries = [
                each if each.call is None else replace(each, call=space.call(each.call[0], dict(each.call[1])))
                for each in told
            ]
            played = repeat(space, LimitedAdapter(cast("Adapter", system)), run.seed, tries)
            return None if played.divergence is None else played.divergence.headline


def faults_of(adapter: Adapter, space: Space) -> tuple[Kind, ...]:
    """The faults that can be drawn."""
    return tuple(kind for kind in Kind if kind in adapter.faults and (kind is not Kind.CRASH or space.crashes))
