"""Many free runs of a system, up to the first divergence, which is then made small.

All that is random comes from one seed: run ``n`` is reset with, and draws from, numbers made of the seed and ``n``.
Runs go through the constants of a portfolio by turns, so that small ones reach depth and large ones breadth.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...model.explore.result import Verdict
from ..deadline import Deadline, OutOfTime
from ..executed import Executed
from .candidate import Spent
from .corpus import Corpus
from .coverage import SimulationCoverage
from .coverage_feedback import CoverageFeedback
from .events import EventKind
from .play import SimulationPlan, harmless, play, run_seed
from .pool import Hand, played
from .shrink import RunRecord, repeat, smallest
from .system import SimulatedSystem
from .transitions import Transitions

__all__ = ["RunRecord", "SimulationPlan", "SimulationResult", "harmless", "play", "repeat", "run_seed", "simulate"]

OnProgress = Callable[[int, int], None]
"""Told how many runs and how many events are over."""


@dataclass(frozen=True)
class SimulationResult:
    """The answer. ``failure``: the smallest run that ends in a divergence; ``found``: how many events the first had.

    ``repeatable``: whether that run ends so whenever it is repeated; None: there was no time to repeat it.
    ``minimal``: whether no event of it can be left out; not where the time for making it small ran out. ``kinds``: how
    often each kind of event happened.
    """

    verdict: Verdict
    reason: str | None
    met: SimulationCoverage
    kinds: Mapping[tuple[EventKind, str], int]
    runs: int
    seconds: float
    failure: RunRecord | None = None
    found: int = 0
    repeatable: bool | None = True
    minimal: bool = True
    unfinished: int = 0
    """Runs that were given up, as the model's paths were too many."""
    constants: tuple[Mapping[str, int], ...] = field(default=())


def simulate(
    system: SimulatedSystem,
    portfolio: Sequence[Transitions],
    plan: SimulationPlan,
    on_progress: OnProgress | None = None,
    corpus: Corpus | None = None,
    hands: Sequence[Hand] = (),
    executed: Executed | None = None,
    on_found: Callable[[RunRecord], None] | None = None,
) -> SimulationResult:
    """Run a system freely at the constants of a portfolio. Raises BadInput where the system does.

    ``corpus``: schedules to go on from, and where those that meet something new are kept. ``hands``: who plays the
    runs, in processes of their own (``pool.py``); without any each run is played here, and knows of all before it.
    ``executed``: what is to be told of the lines that hands have executed. ``system`` shrinks a divergence;
    ``on_found`` receives the failing run before that.
    """
    start = time.perf_counter()
    drawing = Deadline.after(plan.max_seconds)
    shrinking = plan.shrink_until
    if shrinking is None:
        shrinking = drawing if plan.seconds is None else Deadline.after(plan.seconds)
    cut = replace(plan, draw_until=drawing)
    memory, met = CoverageFeedback(), SimulationCoverage()
    number, spent = 0, list[str]()
    failed: RunRecord | None = None

    def goes_on(upcoming: int) -> bool:
        if upcoming and drawing.has_passed:
            return False
        if plan.seconds is None:
            return upcoming < plan.runs
        return upcoming == 0 or time.perf_counter() - start < plan.seconds

    def here() -> Iterator[RunRecord | Spent]:
        while goes_on(number):
            ways = portfolio[number % len(portfolio)]
            try:
                yield play(system, ways, run_seed(plan.seed, number), cut, memory, met, corpus)
            except OutOfTime:
                return
            except Spent as given_up:
                yield given_up

    def elsewhere() -> Iterator[RunRecord | Spent]:
        for each in played(hands, goes_on, drawing):
            memory.take(each.learned)
            met.add(each.met)
            if executed is not None:
                executed.take(each.lines)
            if each.spent is not None:
                yield Spent(each.spent)
            else:
                yield each.ran(portfolio[each.number % len(portfolio)])

    for found in elsewhere() if hands else here():
        number += 1
        if isinstance(found, Spent):
            spent.append(str(found))
        elif found.divergence is not None:
            failed = found
        if on_progress is not None:
            on_progress(number, met.events)
        if failed is not None:
            break
    if failed is not None and on_found is not None:
        on_found(failed)
    kinds: dict[tuple[EventKind, str], int] = {}
    for (kind, _), count in memory.counts.items():
        kinds[kind] = kinds.get(kind, 0) + count
    verdict, reason = Verdict.HOLDS, None if not spent else spent[-1]
    if failed is not None:
        verdict, reason = Verdict.VIOLATED, None
    elif drawing.has_passed and number < plan.runs:
        verdict, reason = Verdict.UNKNOWN, f"{plan.max_seconds:g} s ran out after {number} of {plan.runs} runs"
    elif spent:
        verdict, reason = Verdict.UNKNOWN, f"{len(spent)} of {number} runs were given up: {spent[-1]}"
    elif not met.cells:
        verdict, reason = Verdict.UNKNOWN, "the system showed no cell at all, so nothing was compared"
    elif met.events <= number:
        verdict, reason = Verdict.UNKNOWN, "nothing ever happened, so that only the start was compared"
    failure, repeatable, minimal = (None, True, True) if failed is None else smallest(system, failed, shrinking)
    return SimulationResult(
        verdict,
        reason,
        met,
        kinds,
        number,
        time.perf_counter() - start,
        failure,
        0 if failed is None else len(failed.events),
        repeatable,
        minimal,
        len(spent),
        tuple(ways.system.constants for ways in portfolio),
    )
