"""A failing run made small: events left out, then shorter runs drawn from what was needed.

Of many events none was chosen for its own sake: somebody is elected, everybody catches up. A calm (``quiesce.py``)
takes their place where the run ends alike: one event, in which all takes its course. And where who is elected is
another one when some events are gone, what is left is tried with the two in each other's places.

What is waited for need not be: a timer that was due may fire early instead, and then no time has to pass before; and
time may pass at once that passed bit by bit.

A run from which no event can be left out may still be a roundabout way. So short runs are drawn anew, from nothing but
the kinds of events that were needed, each at whom it was needed; one that ends alike takes the long one's place.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Final, TypeAlias

from ...traces.shrink import minimize
from ..deadline import NEVER, Deadline, OutOfTime
from .candidate import Spent
from .divergence import Divergence, Sort
from .events import Argument, Event, EventKind
from .machine import Machine, PerformedEvent
from .quiesce import ROUNDS_OF_CALM, calm, settle
from .system import EnabledEvent, SimulatedSystem
from .transitions import Transitions

SECONDS: Final = 45.0
"""After so long a divergence is told as small as it is by then: of the processor, as a machine may be busy."""
PATIENCE: Final = 4
"""So many times as long by the clock, for systems that work in other processes."""

CALMS: Final = (2, 5)
"""The rounds of a calm that takes the place of other events, at first."""

DRAWS: Final = 1_500
"""So many short runs are drawn."""

LONG: Final = 6
"""A run of so few events is not made shorter by drawing."""


@dataclass(frozen=True)
class RunRecord:
    """A run that is over. ``ways`` are those of its constants."""

    ways: Transitions
    seed: int
    history: tuple[PerformedEvent, ...]
    divergence: Divergence | None

    @property
    def events(self) -> tuple[Event, ...]:
        """What was drawn, without the start; a peace is one event."""
        return tuple(done.event for done in self.history if done.event is not None and not done.in_peace)


def repeat(
    system: SimulatedSystem, ways: Transitions, seed: int, events: Iterable[Event], deadline: Deadline = NEVER
) -> RunRecord:
    """Let exactly these events happen, but for those that cannot when it is their turn. Raises Spent and OutOfTime."""
    machine = Machine(ways, system, seed, deadline=deadline)
    found = machine.start()
    for event in events:
        if found is not None:
            break
        found = _happens(machine, event)
    if found is None:
        machine.pending()
    return RunRecord(ways, seed, tuple(machine.history), found or machine.fallen)


def _happens(machine: Machine, event: Event) -> Divergence | None:
    """Let an event happen, if it can. Raises Spent."""
    if event.what is EventKind.PEACE:
        return settle(machine, event)
    if event.what is EventKind.CALM:
        return calm(machine, event)
    return machine.perform(event) if machine.can(event) else None


def smallest(
    system: SimulatedSystem, failed: RunRecord, until: Deadline = NEVER
) -> tuple[RunRecord, bool | None, bool]:
    """The failing run made 1-minimal, whether it fails whenever it is repeated, and whether the time sufficed.

    After ``until`` nothing is run. If the run was not repeated by then, the second answer is None.
    """
    assert failed.divergence is not None
    if failed.divergence.sort is Sort.HUNG:
        # Each time that it is repeated takes the whole time limit again.
        return failed, True, False
    search = _Search(system, failed, failed.divergence, until)
    try:
        return _shrunk(search, failed)
    except OutOfTime:
        # The smallest run so far has ended alike once, unless there was no time at all.
        return search.latest, None if search.latest is failed else True, False


def _shrunk(search: _Search, failed: RunRecord) -> tuple[RunRecord, bool, bool]:
    """The same answers. Raises OutOfTime."""
    search.begin()
    try:
        best = search.least(search.thinned(failed.events))
    except ValueError:
        if not search.late:
            return failed, False, False
        # It is no other run for that: the time was over before it had ended alike once more.
        best = list(search.latest.events)
    while len(best) > LONG:
        shorter = search.drawn(best)
        if shorter is None:
            break
        try:
            best = search.least(shorter)
        except ValueError:
            # The time is over, or it does not end alike once more, which is told apart below.
            best = list(shorter)
            break
    minimal = not search.late
    again = search.repeat(best)
    same = again.events == tuple(best) and search.is_alike(again)
    return (again, True, minimal) if same else (search.latest, False, minimal)


class _Search:
    """Runs that end as one did."""

    def __init__(self, system: SimulatedSystem, failed: RunRecord, divergence: Divergence, until: Deadline) -> None:
        self.latest = failed
        self._system = system
        self._failed = failed
        self._parted = divergence
        self._until = until
        self._deadline = time.process_time() + SECONDS
        self._latest = time.perf_counter() + SECONDS * PATIENCE
        self._draws = 0
        self._early: dict[int | None, list[str]] = {}
        """By node, the timers that may fire before they are due."""

    def begin(self) -> None:
        """Start the system once, to learn which timers it has. Raises OutOfTime."""
        self._until.check()
        machine = Machine(self._failed.ways, self._system, self._failed.seed)
        if machine.start() is None:
            for each in machine.pending():
                if each.event.what is EventKind.TIMER and not each.due:
                    names = self._early.setdefault(each.event.node, [])
                    names += [each.event.name] if each.event.name not in names else []

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.process_time() > self._deadline or time.perf_counter() > self._latest

    def repeat(self, events: Sequence[Event]) -> RunRecord:
        """Repeat the failing run with these events. Raises Spent and OutOfTime."""
        return repeat(self._system, self._failed.ways, self._failed.seed, events, self._until)

    def is_alike(self, ran: RunRecord) -> bool:
        """Whether a run ends as the failing one did."""
        return ran.divergence is not None and self._parted.alike(ran.divergence)

    def least(self, events: Sequence[Event]) -> list[Event]:
        """Without what can be left out, or be plainer. Raises ValueError where the run does not fail again."""
        return minimize(events, self._failing, simpler=self._plainer, rewritten=rewritten)

    def _plainer(self, event: Event) -> Iterator[Event]:
        """The same with less going wrong; of a timer that is waited for, one that fires at once."""
        yield from plainer(event)
        early = self._early.get(event.node, [])
        if event.what is EventKind.TIMER and event.name not in early:
            yield from (replace(event, name=name, number=0) for name in early)

    def thinned(self, events: Sequence[Event]) -> Sequence[Event]:
        """Without long stretches that can be left out: each is tried once, as a long run takes long to repeat."""
        best, size = events, len(events) // 2
        while size > 0:
            start = len(best) - size
            while start > -size:
                shorter = self._failing([*best[: max(0, start)], *best[start + size :]])
                if shorter is not None and len(shorter) < len(best):
                    best = shorter
                start = min(start, len(best)) - size
            size = min(size, len(best)) // 2
        return best

    def _failing(self, events: Sequence[Event]) -> Sequence[Event] | None:
        if self.late:
            return None
        try:
            ran = self.repeat(events)
        except Spent:
            return None
        return self._alike(ran)

    def _alike(self, ran: RunRecord) -> Sequence[Event] | None:
        if not self.is_alike(ran):
            return None
        self.latest = ran
        return ran.events

    def drawn(self, best: Sequence[Event]) -> Sequence[Event] | None:
        """A shorter run that ends alike, drawn from the kinds of events of this one."""
        peace = best[-1] if best[-1].what is EventKind.PEACE else None
        wanted = {_kind(event) for event in best}
        always = [event for event in best if event.what in (EventKind.CALM, EventKind.TIME)]
        varied = {_kind(event): event for event in best if event != event.plain()}
        while self._draws < DRAWS and not self.late:
            self._draws += 1
            chance = random.Random(self._failed.seed * 31 + self._draws)  # noqa: S311 - repeatable on purpose
            machine = Machine(self._failed.ways, self._system, self._failed.seed, deadline=self._until)
            try:
                divergence = machine.start()
                while divergence is None and _drawn(machine) < len(best) - 1 - (peace is not None):
                    event = _one(machine.pending(), always, wanted, varied, chance)
                    if event is None:
                        break
                    divergence = _happens(machine, event)
                if divergence is None and peace is not None:
                    divergence = settle(machine, peace)
            except Spent:
                continue
            ran = RunRecord(self._failed.ways, self._failed.seed, tuple(machine.history), divergence)
            found = self._alike(ran)
            if found is not None and len(found) < len(best):
                return found
        return None


_Kind: TypeAlias = tuple[EventKind, str, int | None, int | None, tuple[tuple[str, Argument], ...]]


def _kind(event: Event) -> _Kind:
    """What an event is and at whom, whatever else is pending."""
    plain = event.plain()
    return plain.what, plain.name, plain.node, plain.source, plain.args


def _drawn(machine: Machine) -> int:
    """How many events a run has so far, a calm being one."""
    return sum(done.event is not None and not done.in_peace for done in machine.history)


def _one(
    pending: Sequence[EnabledEvent],
    always: Sequence[Event],
    wanted: set[_Kind],
    varied: dict[_Kind, Event],
    chance: random.Random,
) -> Event | None:
    """``always``: what may happen at any time, and is not named by the system."""
    there = [each.event for each in pending if _kind(each.event) in wanted]
    events = [*there, *(event for event in always if event not in there)]
    if not events:
        return None
    event = chance.choice(events)
    other = varied.get(_kind(event))
    if other is not None and chance.random() < 0.5:
        return replace(event, what=other.what, args=other.args, crash=other.crash)
    return event


def plainer(event: Event) -> Iterator[Event]:
    """The same event with less going wrong."""
    if event.crash is not None:
        # A loss of power between two events, as the system offers it: see What.CRASH.
        for args in ((), (("seed", 0),)):
            yield Event(EventKind.CRASH, node=event.node, args=args)
        yield replace(event, crash=None)
        for effects in range(event.crash):
            yield replace(event, crash=effects)
    if event.what is EventKind.REPEAT:
        yield replace(event, what=EventKind.DELIVER)
    if event.what is EventKind.GARBLE:
        yield event.plain()
        yield replace(event.plain(), what=EventKind.LOSE)
    if event.what is EventKind.PEACE:
        if event.args:
            yield replace(event, args=())
        if event.node is not None:
            yield replace(event, node=None)
    if event.what is EventKind.CALM:
        for rounds in range(1, int(event.arg(ROUNDS_OF_CALM))):
            yield _calm(rounds)
    for number in range(event.number):
        yield replace(event, number=number)


def _calm(rounds: int) -> Event:
    return Event(EventKind.CALM, args=((ROUNDS_OF_CALM, rounds),))


def rewritten(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """Shorter runs: time that passes at once; some events gone for a calm; then also with two nodes in each other's
    places from there on."""
    times = [index for index, event in enumerate(events) if event.what is EventKind.TIME]
    for first, second in pairwise(times):
        at_once = _passing(int(events[first].arg("ms")) + int(events[second].arg("ms")))
        yield [*events[:first], at_once, *events[first + 1 : second], *events[second + 1 :]]
        yield [*events[:first], *events[first + 1 : second], at_once, *events[second + 1 :]]
    for start, end in _stretches(len(events)):
        if end > start + 1:
            yield from ([*events[:start], _calm(rounds), *events[end:]] for rounds in CALMS)
    nodes = sorted({event.node for event in events if event.node is not None and event.node >= 0})
    swaps = [dict(zip(pair, reversed(pair), strict=True)) for pair in combinations(nodes, 2)]
    for start, end in _stretches(len(events)):
        before, after = events[:start], events[end:]
        for swap in swaps:
            swapped = [_swapped(event, swap) for event in after]
            if swapped != list(after):
                yield [*before, *swapped]
                if end > start + 1:
                    yield [*before, _calm(CALMS[0]), *swapped]


def _passing(milliseconds: int) -> Event:
    return Event(EventKind.TIME, args=(("ms", milliseconds),))


def _stretches(length: int) -> Iterator[tuple[int, int]]:
    """Where stretches of a run begin and end: short ones first, which are more often an election than all of it."""
    size = 1
    while size < length:
        yield from ((start, start + size) for start in range(length - size, -1, -max(1, size // 2)))
        size = size + max(1, size // 2)


def _swapped(event: Event, swap: dict[int, int]) -> Event:
    if event.node not in swap and event.source not in swap:
        return event
    node, source = (number if number is None else swap.get(number, number) for number in (event.node, event.source))
    return replace(event, node=node, source=source)
