"""One free run: what is drawn in it, when it comes to peace, and when it ends."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..deadline import NEVER, Deadline
from .corpus import Corpus
from .coverage import SimulationCoverage
from .coverage_feedback import CoverageFeedback
from .divergence import Divergence
from .events import Event, EventKind
from .machine import Machine
from .prefix_corpus import course_of
from .quiesce import ASKS, MENDED, settle, unwell
from .scheduler import Scheduler
from .shrink import RunRecord
from .system import EnabledEvent, SimulatedSystem
from .transitions import Transitions

IDLE = 80
"""A run ends after so many events in which the model took no step: what its constants allow is used up."""

PEACEFUL = 3
"""One of so many runs ends in peace."""
PAUSES = (0.0, 0.002, 0.008)
"""How likely a run comes to peace after an event, before it goes on; each run draws one of these."""
WIDE = 32
"""Where more states than this explain what is seen no node is taken down, as what its disk has kept multiplies them."""
LAST = 12
"""So many times as likely it does after something has gone wrong: what is never made good shows best alone."""
AROUND = 0.5
"""So often somebody is not well in peace."""
ASKING = 0.7
"""So often clients ask once more in peace."""
RECENT = 40
"""By so many events it is told whom the others talk to."""
_TROUBLES = (EventKind.CRASH, EventKind.CUT, EventKind.DISK)
_FAULTS = frozenset({*_TROUBLES, EventKind.LOSE, EventKind.GARBLE})


@dataclass(frozen=True)
class SimulationPlan:
    """How much to run: ``runs`` of up to ``events``. ``seconds``: go on for so long, instead of for so many runs.

    The clock says when to stop and nothing else: the runs are those of a plan with more runs and no clock.
    ``max_seconds``: give up after so many; the verdict is unknown then.

    Many short runs find more than few long ones of as many events: each draws a world of its own, and what the model's
    constants allow is used up in a long one.
    """

    runs: int = 500
    events: int = 200
    seed: int = 0
    faults: bool = True
    seconds: float | None = None
    max_seconds: float | None = None
    draw_until: Deadline = NEVER
    """The end of all runs, in the midst of one too."""
    shrink_until: Deadline | None = None
    """The end of shrinking; None: the end of ``seconds`` or ``max_seconds``."""


def run_seed(seed: int, number: int) -> int:
    """The seed of one run."""
    return (seed * 1_000_003 + number * 7_919) & 0x7FFF_FFFF


def play(
    system: SimulatedSystem,
    ways: Transitions,
    seed: int,
    plan: SimulationPlan,
    memory: CoverageFeedback,
    met: SimulationCoverage,
    corpus: Corpus | None = None,
) -> RunRecord:
    """One drawn run; it may begin as one before it did, or with a schedule that a corpus has kept.

    Raises Spent, and OutOfTime after ``plan.draw_until``.
    """
    beginning = (None if corpus is None else corpus.begin(ways, seed)) or memory.beginnings.draw(ways, seed)
    machine = Machine(ways, system, seed if beginning is None else beginning.seed, met, plan.draw_until)
    found = machine.start()
    scheduler = Scheduler(seed ^ 0x5DEECE66, memory, faults=plan.faults)
    sorts: dict[int, str] = {}

    def step(event: Event) -> Divergence | None:
        if event.what is EventKind.PEACE:
            return settle(machine, event)
        pending = machine.found(event)
        if pending is not None and pending.sort and event.what is EventKind.DELIVER:
            sorts[len(machine.history)] = pending.sort
        divergence = machine.perform(event)
        done = machine.history[-1]
        sent = [message.name for message in done.happened.sent]
        scheduler.after(event, sent, new=memory.is_new(machine.follower.state), changed=bool(done.path))
        if corpus is not None:
            corpus.look(machine)
        return divergence

    for event in () if beginning is None else beginning.events:
        if found is None and (event.what is EventKind.PEACE or machine.can(event)):
            found = step(event)
    idle = 0
    chance = random.Random(seed ^ 0x9E3779B9)  # noqa: S311 - repeatable on purpose
    pauses = chance.choice(PAUSES) if ways.binding.settles else 0.0
    while found is None and len(machine.history) <= plan.events and idle < IDLE:
        drawn = _drawn(machine, scheduler)
        if drawn is None:
            break
        found = step(drawn)
        idle = 0 if machine.history[-1].path else idle + 1
        if found is None and chance.random() < pauses * (LAST if _went_wrong(drawn) else 1):
            found = _peace(machine, chance, faults=plan.faults)
    if found is None and ways.binding.settles and seed % PEACEFUL == 0:
        found = _peace(machine, chance, faults=plan.faults)
    ran = RunRecord(ways, machine.seed, tuple(machine.history), found or machine.fallen)
    if ran.divergence is None:
        memory.ran(course_of(ran, sorts, memory.beginnings))
    if corpus is not None:
        corpus.end(ran)
    return ran


def _drawn(machine: Machine, scheduler: Scheduler) -> Event | None:
    """What happens next. Where many states explain what is seen nobody else loses what no one can see."""
    pending = machine.pending()
    if len(machine.follower.threads) <= WIDE:
        return scheduler.next(pending)
    drawn = scheduler.next(harmless(pending) or pending)
    return None if drawn is None else replace(drawn, crash=None)


def harmless(pending: Sequence[EnabledEvent]) -> list[EnabledEvent]:
    """The events that hide nothing: no trouble, and nothing at whose disk fails. Who cannot write is seen no more."""
    failing = {each.event.node for each in pending if each.event.what is EventKind.DISK and each.event.name == MENDED}
    return [each for each in pending if each.event.what not in _TROUBLES and each.event.node not in failing]


def _went_wrong(event: Event) -> bool:
    return event.crash is not None or (event.what in _FAULTS and event.name != MENDED)


def _peace(machine: Machine, chance: random.Random, *, faults: bool) -> Divergence | None:
    """Let a run come to peace, of everybody or of all but one: who is not well already, or is taken down now."""
    around = None
    if faults and chance.random() < AROUND:
        troubled = unwell(machine)
        if not troubled:
            ways = [
                each.event for each in machine.pending() if each.event.what in _TROUBLES and each.event.name != MENDED
            ]
            found = machine.perform(_trouble(machine, ways, chance)) if ways else None
            if found is not None:
                return found
            troubled = unwell(machine)
        around = chance.choice(troubled) if troubled else None
    asks = (ASKS,) if machine.ways.binding.asks and chance.random() < ASKING else ()
    return settle(machine, Event(EventKind.PEACE, node=around, args=asks))


def _trouble(machine: Machine, ways: Sequence[Event], chance: random.Random) -> Event:
    """What befalls somebody for good: of each kind as often, and rather whom the others talk to."""
    kind = chance.choice(list(dict.fromkeys((event.what, event.name) for event in ways)))
    alike = [event for event in ways if (event.what, event.name) == kind]
    late = [done.event for done in machine.history[-RECENT:] if done.event is not None]
    heard = Counter(event.node for event in late if event.what is EventKind.DELIVER)
    return chance.choices(alike, [1 + heard[event.node] for event in alike])[0]
