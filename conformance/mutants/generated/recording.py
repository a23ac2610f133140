"""Runs of the source as it is, written down step by step, to be gone through again with a mutant.

Nothing judges here: the same tries, or events, are put to both, and everything that can be seen is compared. Where
nothing differs a mutant is *unobservable* so far; where something differs and nobody complained, it was *missed*.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from ....model.core.errors import BadInput
from ....traces.run_report import Json
from ...executed import Executed
from ...lockstep.adapter import Adapter
from ...lockstep.coverage import Coverage
from ...lockstep.generate import Chooser, SeededSource
from ...lockstep.play import play
from ...lockstep.watch import Hung
from ...simulation.candidate import Spent
from ...simulation.coverage import SimulationCoverage
from ...simulation.coverage_feedback import CoverageFeedback
from ...simulation.runner import SimulationPlan, run_seed
from ...simulation.runner import play as play_freely
from ...simulation.system import SimulatedSystem
from .calls import within
from .drawing import Mutant
from .driving import Drive, Grounds, made
from .judging import LENGTH, faults_of
from .source import Source, loaded, modules_from
from .taking import FreeTaker, Taken, Taker
from .witness import ASPECTS, watched_world

RECORDED: Final = {"free": 25, "lockstep": 120}
"""So many runs of a drive are compared."""


@dataclass(frozen=True)
class Recording:
    """By drive, its runs; and the lines that ran in them, by drive and file."""

    runs: Mapping[str, tuple[Taken, ...]]
    lines: Mapping[str, Mapping[str, frozenset[int]]]

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {
            "runs": {name: [each.to_json() for each in runs] for name, runs in self.runs.items()},
            "lines": self.lines_to_json(),
        }

    def lines_to_json(self) -> dict[str, Json]:
        """The lines as a JSON object."""
        return {drive: {file: [*sorted(ran)] for file, ran in files.items()} for drive, files in self.lines.items()}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Recording:
        """From its JSON object, which ``to_json`` made."""
        return cls(
            {name: tuple(Taken.from_json(each) for each in runs) for name, runs in told["runs"].items()},
            {drive: {file: frozenset(ran) for file, ran in files.items()} for drive, files in told["lines"].items()},
        )

    @property
    def steps(self) -> int:
        """How many there are in all runs."""
        return sum(len(each.steps) for runs in self.runs.values() for each in runs)


@dataclass(frozen=True)
class Difference:
    """Where a mutant is first seen to differ: in what, after which step of which drive."""

    aspect: str
    drive: str
    step: str

    def __str__(self) -> str:
        return f"{self.aspect} differ after {self.step} ({self.drive})"


def record(source: Source, drives: Sequence[Drive], seed: int, seconds: float, grounds: Grounds) -> Recording:
    """Draw runs of the source as it is, for so many seconds of the processor at most.

    Raises BadInput where it parts from the model: nothing can be said of its mutants then.
    """
    start = time.process_time()
    runs: dict[str, tuple[Taken, ...]] = {}
    lines: dict[str, Mapping[str, frozenset[int]]] = {}
    with loaded(source, None) as parts, watched_world() as world:
        for number, drive in enumerate(drives):
            executed = Executed(source.folder / file for file in source.files)
            drive.take_in()
            now = time.process_time()
            until = now + (start + seconds - now) / (len(drives) - number)
            with executed.watching(), made(drive, parts) as system:
                if not source.is_ours and not modules_from(source):
                    raise BadInput("the system imports no module of it", str(source.folder), "name its folder")
                if drive.engine == "free":
                    freely = FreeTaker(cast("SimulatedSystem", system), world)
                    _draw_freely(freely, drive, seed, until, grounds)
                    runs[drive.name] = freely.taken()
                else:
                    bound = Taker(cast("Adapter", system), world)
                    _draw_in_lockstep(bound, drive, seed, until, grounds)
                    runs[drive.name] = bound.taken()
            lines[drive.name] = {file: lines_run(executed, source.folder / file) for file in source.files}
    return Recording(runs, lines)


def lines_run(executed: Executed, path: Path) -> frozenset[int]:
    """The lines of a file that ran. One that no function has as its own (within a comprehension) is as the last one."""
    real = path.resolve()
    known = {line for each in executed.functions if each.file == real for line in each.lines}
    never = {line for each in executed.never() if each.function.file == real for line in each.lines}
    found, runs = set[int](), False
    for line in range(1, max(known, default=0) + 1):
        if line in known:
            runs = line not in never
        if runs:
            found.add(line)
    return frozenset(found)


def _draw_freely(taker: FreeTaker, drive: Drive, seed: int, until: float, grounds: Grounds) -> None:
    portfolio, memory, met = grounds.ways(drive, taker.variant), CoverageFeedback(), SimulationCoverage()
    plan = SimulationPlan(RECORDED["free"], LENGTH["free"], seed)
    for number in range(plan.runs):
        if number and time.process_time() > until:
            return
        try:
            ran = play_freely(taker, portfolio[number % len(portfolio)], run_seed(seed, number), plan, memory, met)
        except Spent:
            continue
        if ran.divergence is not None:
            raise _parts(drive, ran.divergence.headline)


def _draw_in_lockstep(taker: Taker, drive: Drive, seed: int, until: float, grounds: Grounds) -> None:
    goals = grounds.goals(drive, taker.variant)
    coverage = Coverage(goals.space)
    faults = faults_of(taker, goals.space)
    for number in range(RECORDED["lockstep"]):
        if number and time.process_time() > until:
            return
        of = run_seed(seed, number)
        chooser = Chooser(goals.space, coverage, faults, goals)
        played = play(goals.space, taker, of, chooser, SeededSource(of), LENGTH["lockstep"], coverage)
        coverage.end_round()
        if played.divergence is not None:
            raise _parts(drive, played.divergence.headline)


def _parts(drive: Drive, headline: str) -> BadInput:
    return BadInput(
        f"without any mutant the system and the model part: {headline}",
        drive.name,
        "mend that first: fencepost conform",
    )


def compare(
    source: Source, mutant: Mutant, drives: Sequence[Drive], recording: Recording, seconds: float
) -> tuple[Difference | None, int]:
    """Go through the recorded runs with a mutant, for so many seconds of the processor at most.

    The first difference, and after how many steps it was seen, or how many there were.
    """
    until, steps = time.process_time() + seconds, 0
    with loaded(source, mutant) as parts, watched_world() as world:
        for drive in drives:
            drive.take_in()
            with made(drive, parts) as system:
                for taken in recording.runs[drive.name]:
                    if time.process_time() > until:
                        break
                    if drive.engine == "free":
                        taker: Taker | FreeTaker = FreeTaker(cast("SimulatedSystem", system), world)
                    else:
                        taker = Taker(cast("Adapter", system), world)
                    found, gone = _gone_through(taker, taken, drive)
                    steps += gone
                    if found is not None:
                        return found, steps
    return None, steps


def _gone_through(taker: Taker | FreeTaker, taken: Taken, drive: Drive) -> tuple[Difference | None, int]:
    """One run again, up to the first difference."""
    for number, expected in enumerate(taken.seen):
        step = "the start" if number == 0 else taker.words(taken.steps[number - 1])
        try:
            with within("a step"):
                if number == 0:
                    taker.reset(taken.constants, taken.seed)
                else:
                    taker.again(taken.steps[number - 1])
        except BaseException as error:
            if not isinstance(error, Exception | SystemExit | Hung):
                raise
            return Difference(f"answers (it raised {type(error).__name__})", drive.name, step), number
        seen = taker.last
        for aspect, one, other in zip(ASPECTS, expected, seen, strict=True):
            if one != other:
                return Difference(aspect, drive.name, step), number
    return None, len(taken.steps)
