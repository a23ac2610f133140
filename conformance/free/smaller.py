"""A failing run made small: events left out, then shorter runs drawn from what was needed.

A run from which no event can be left out may still be a roundabout way. So short runs are drawn anew, from nothing but
the kinds of events that were needed, each at whom it was needed; one that ends alike takes the long one's place.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ...traces.shrink import minimize
from .events import Argument, Event, What
from .machine import Done, Machine
from .parted import Parted, Sort
from .settle import settle
from .system import FreeSystem, Pending
from .threads import Spent
from .ways import Ways

SECONDS: Final = 45.0
"""After so long a disagreement is told as small as it is by then."""

DRAWS: Final = 1_500
"""So many short runs are drawn."""

LONG: Final = 6
"""A run of so few events is not made shorter by drawing."""


@dataclass(frozen=True)
class Ran:
    """A run that is over. ``ways`` are those of its constants."""

    ways: Ways
    seed: int
    history: tuple[Done, ...]
    parted: Parted | None

    @property
    def events(self) -> tuple[Event, ...]:
        """What was drawn, without the start; a peace is one event."""
        return tuple(done.event for done in self.history if done.event is not None and not done.in_peace)


def repeat(system: FreeSystem, ways: Ways, seed: int, events: Iterable[Event]) -> Ran:
    """Let exactly these events happen, but for those that cannot when it is their turn. Raises Spent."""
    machine = Machine(ways, system, seed)
    found = machine.start()
    for event in events:
        if found is not None:
            break
        if event.what is What.PEACE:
            found = settle(machine, event)
        elif machine.can(event):
            found = machine.perform(event)
    if found is None:
        machine.pending()
    return Ran(ways, seed, tuple(machine.history), found or machine.fallen)


def smallest(system: FreeSystem, failed: Ran) -> tuple[Ran, bool, bool]:
    """The failing run made 1-minimal, whether it fails whenever it is repeated, and whether the time sufficed."""
    assert failed.parted is not None
    if failed.parted.sort is Sort.HUNG:
        # Each time that it is repeated takes the whole time limit again.
        return failed, True, False
    search = _Search(system, failed, failed.parted)
    try:
        best = search.least(failed.events)
    except ValueError:
        return failed, False, False
    while len(best) > LONG:
        shorter = search.drawn(best)
        if shorter is None:
            break
        best = search.least(shorter)
    minimal = not search.late
    again = repeat(system, failed.ways, failed.seed, best)
    same = again.parted is not None and again.events == tuple(best) and failed.parted.alike(again.parted)
    return (again, True, minimal) if same else (search.latest, False, minimal)


class _Search:
    """Runs that end as one did."""

    def __init__(self, system: FreeSystem, failed: Ran, parted: Parted) -> None:
        self.latest = failed
        self._system = system
        self._failed = failed
        self._parted = parted
        self._deadline = time.perf_counter() + SECONDS
        self._draws = 0

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.perf_counter() > self._deadline

    def least(self, events: Sequence[Event]) -> list[Event]:
        """Without what can be left out, or be plainer. Raises ValueError where the run does not fail again."""
        return minimize(events, self._failing, simpler=plainer)

    def _failing(self, events: Sequence[Event]) -> Sequence[Event] | None:
        if self.late:
            return None
        try:
            ran = repeat(self._system, self._failed.ways, self._failed.seed, events)
        except Spent:
            return None
        return self._alike(ran)

    def _alike(self, ran: Ran) -> Sequence[Event] | None:
        if ran.parted is None or not self._parted.alike(ran.parted):
            return None
        self.latest = ran
        return ran.events

    def drawn(self, best: Sequence[Event]) -> Sequence[Event] | None:
        """A shorter run that ends alike, drawn from the kinds of events of this one."""
        peace = best[-1] if best[-1].what is What.PEACE else None
        wanted = {_kind(event) for event in best}
        varied = {_kind(event): event for event in best if event.crash is not None or event.what in _VARIATIONS}
        while self._draws < DRAWS and not self.late:
            self._draws += 1
            chance = random.Random(self._failed.seed * 31 + self._draws)  # noqa: S311 - repeatable on purpose
            machine = Machine(self._failed.ways, self._system, self._failed.seed)
            try:
                parted = machine.start()
                while parted is None and len(machine.history) < len(best) - (peace is not None):
                    event = _one(machine.pending(), wanted, varied, chance)
                    if event is None:
                        break
                    parted = machine.perform(event)
                if parted is None and peace is not None:
                    parted = settle(machine, peace)
            except Spent:
                continue
            ran = Ran(self._failed.ways, self._failed.seed, tuple(machine.history), parted)
            found = self._alike(ran)
            if found is not None and len(found) < len(best):
                return found
        return None


_VARIATIONS: Final = (What.LOSE, What.REPEAT)

_Kind: TypeAlias = tuple[What, str, int | None, int | None, tuple[tuple[str, Argument], ...]]


def _kind(event: Event) -> _Kind:
    """What an event is and at whom, whatever else is pending."""
    what = What.DELIVER if event.what in _VARIATIONS else event.what
    return what, event.name, event.node, event.source, event.args


def _one(
    pending: Sequence[Pending], wanted: set[_Kind], varied: dict[_Kind, Event], chance: random.Random
) -> Event | None:
    events = [each.event for each in pending if _kind(each.event) in wanted]
    if not events:
        return None
    event = chance.choice(events)
    other = varied.get(_kind(event))
    if other is not None and chance.random() < 0.5:
        return replace(event, what=other.what, crash=other.crash)
    return event


def plainer(event: Event) -> Iterator[Event]:
    """The same event with less going wrong."""
    if event.crash is not None:
        # A loss of power between two events, as the system offers it: see What.CRASH.
        for args in ((), (("seed", 0),)):
            yield Event(What.CRASH, node=event.node, args=args)
        yield replace(event, crash=None)
        for effects in range(event.crash):
            yield replace(event, crash=effects)
    if event.what is What.REPEAT:
        yield replace(event, what=What.DELIVER)
    if event.what is What.PEACE:
        if event.args:
            yield replace(event, args=())
        if event.node is not None:
            yield replace(event, node=None)
    for number in range(event.number):
        yield replace(event, number=number)
