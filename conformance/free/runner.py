"""Many free runs of a system, up to the first disagreement, which is then made small.

All that is random comes from one seed: run ``n`` is reset with, and draws from, numbers made of the seed and ``n``.
Runs go through the constants of a portfolio by turns, so that small ones reach depth and large ones breadth.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ...model.explore.result import Verdict
from ...traces.shrink import minimize
from .events import Event, What
from .follow import Met, Spent
from .machine import Done, Machine
from .parted import Parted, Sort
from .scheduler import Memory, Scheduler
from .system import FreeSystem
from .ways import Ways

SHRINKING: Final = 60.0
"""Seconds after which a disagreement is told as small as it is by then."""

OnProgress = Callable[[int, int], None]
"""Told how many runs and how many events are over."""


@dataclass(frozen=True)
class FreePlan:
    """How much to run: ``runs`` of up to ``events``. ``seconds``: go on for so long, instead of for so many runs.

    The clock says when to stop and nothing else: the runs are those of a plan with more runs and no clock.
    """

    runs: int = 300
    events: int = 400
    seed: int = 0
    faults: bool = True
    seconds: float | None = None


@dataclass(frozen=True)
class Ran:
    """A run that is over. ``ways`` are those of its constants."""

    ways: Ways
    seed: int
    history: tuple[Done, ...]
    parted: Parted | None

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened, without the start."""
        return tuple(done.event for done in self.history if done.event is not None)

    @property
    def constants(self) -> Mapping[str, int]:
        """The constants that it ran at."""
        return self.ways.system.constants


@dataclass(frozen=True)
class Free:
    """The answer. ``failure``: the smallest run that ends in a disagreement; ``found``: how many events the first had.

    ``repeatable``: whether that run ends so whenever it is repeated. ``minimal``: whether no event of it can be left
    out; not where the time for making it small ran out. ``kinds``: how often each kind of event happened.
    """

    verdict: Verdict
    reason: str | None
    met: Met
    kinds: Mapping[tuple[What, str], int]
    runs: int
    seconds: float
    failure: Ran | None = None
    found: int = 0
    repeatable: bool = True
    minimal: bool = True
    unfinished: int = 0
    """Runs that were given up, as the model's paths were too many."""
    constants: tuple[Mapping[str, int], ...] = field(default=())


def run_seed(seed: int, number: int) -> int:
    """The seed of one run."""
    return (seed * 1_000_003 + number * 7_919) & 0x7FFF_FFFF


def play(system: FreeSystem, ways: Ways, seed: int, plan: FreePlan, memory: Memory, met: Met) -> Ran:
    """One drawn run. Raises Spent."""
    machine = Machine(ways, system, seed, met)
    found = machine.start()
    scheduler = Scheduler(seed ^ 0x5DEECE66, memory, faults=plan.faults)
    while found is None and len(machine.history) <= plan.events:
        event = scheduler.next(machine.pending())
        if event is None:
            break
        found = machine.perform(event)
        scheduler.after(event, sent=bool(machine.history[-1].happened.sent))
    return Ran(ways, seed, tuple(machine.history), found)


def repeat(system: FreeSystem, ways: Ways, seed: int, events: Iterable[Event]) -> Ran:
    """Let exactly these events happen, but for those that cannot when it is their turn. Raises Spent."""
    machine = Machine(ways, system, seed)
    found = machine.start()
    for event in events:
        if found is not None:
            break
        if machine.can(event):
            found = machine.perform(event)
    return Ran(ways, seed, tuple(machine.history), found)


def run_freely(
    system: FreeSystem, portfolio: Sequence[Ways], plan: FreePlan, on_progress: OnProgress | None = None
) -> Free:
    """Run a system freely at the constants of a portfolio. Raises BadInput where the system does."""
    start = time.perf_counter()
    memory, met = Memory(), Met()
    unfinished, number, reason = 0, 0, None
    failed: Ran | None = None
    while failed is None and _goes_on(plan, number, start):
        ways = portfolio[number % len(portfolio)]
        try:
            ran = play(system, ways, run_seed(plan.seed, number), plan, memory, met)
        except Spent as spent:
            unfinished, reason = unfinished + 1, str(spent)
        else:
            failed = ran if ran.parted is not None else None
        number += 1
        if on_progress is not None:
            on_progress(number, met.events)
    kinds: dict[tuple[What, str], int] = {}
    for (kind, _), count in memory.counts.items():
        kinds[kind] = kinds.get(kind, 0) + count
    verdict = Verdict.HOLDS
    if failed is not None:
        verdict, reason = Verdict.VIOLATED, None
    elif unfinished:
        verdict, reason = Verdict.UNKNOWN, f"{unfinished} of {number} runs were given up: {reason}"
    elif not met.cells:
        verdict, reason = Verdict.UNKNOWN, "the system showed no cell at all, so nothing was compared"
    elif met.events <= number:
        verdict, reason = Verdict.UNKNOWN, "nothing ever happened, so that only the start was compared"
    smallest, repeatable, minimal = (None, True, True) if failed is None else _smallest(system, failed)
    return Free(
        verdict,
        reason,
        met,
        kinds,
        number,
        time.perf_counter() - start,
        smallest,
        0 if failed is None else len(failed.events),
        repeatable,
        minimal,
        unfinished,
        tuple(ways.system.constants for ways in portfolio),
    )


def _goes_on(plan: FreePlan, number: int, start: float) -> bool:
    if plan.seconds is None:
        return number < plan.runs
    return number == 0 or time.perf_counter() - start < plan.seconds


def _plainer(event: Event) -> Iterator[Event]:
    """The same event with less going wrong."""
    if event.crash is not None:
        yield replace(event, crash=None)
        for effects in range(event.crash):
            yield replace(event, crash=effects)
    if event.what is What.REPEAT:
        yield replace(event, what=What.DELIVER)
    for number in range(event.number):
        yield replace(event, number=number)


def _smallest(system: FreeSystem, failed: Ran) -> tuple[Ran, bool, bool]:
    """The failing run made 1-minimal, whether it fails whenever it is repeated, and whether the time sufficed."""
    parted = failed.parted
    assert parted is not None
    latest = [failed]
    deadline = time.perf_counter() + SHRINKING
    hung = parted.sort is Sort.HUNG

    def failing(events: Sequence[Event]) -> Sequence[Event] | None:
        if time.perf_counter() > deadline:
            return None
        try:
            ran = repeat(system, failed.ways, failed.seed, events)
        except Spent:
            return None
        if ran.parted is None or not parted.alike(ran.parted):
            return None
        latest[:] = [ran]
        return ran.events

    if hung:
        # Each time that it is repeated takes the whole time limit again.
        return failed, True, False
    try:
        least = minimize(failed.events, failing, simpler=_plainer)
    except ValueError:
        return failed, False, False
    minimal = time.perf_counter() <= deadline
    again = repeat(system, failed.ways, failed.seed, least)
    same = again.parted is not None and again.events == tuple(least) and parted.alike(again.parted)
    return (again, True, minimal) if same else (latest[0], False, minimal)
