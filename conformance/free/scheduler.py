"""What happens next: a seeded draw among what is pending.

Each run draws its own world (swarm testing): how likely each kind of event is, and some not at all; how often messages
are lost, come twice or wait; how often a node loses power in the midst of an event. Calm stretches, in which messages
arrive in their order and due timers fire, take the system to where something can go wrong; in storms anything happens.

What has seldom happened comes rather, at whom it has seldom happened, and so does a loss of power at whoever has just
sent something, as what is not yet on its disk is what it forgets.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from .events import Event, What
from .system import Pending

Kind: TypeAlias = tuple[What, str]
"""What is weighed: the event and its name, not at whom."""

_FAULTS: Final = (What.CRASH, What.CUT, What.DISK, What.PROBE)
_ENDS: Final = (What.START, What.HEAL)
_MENDED: Final = "mended"
_OFF: Final = 0.15
"""So many kinds of events do not happen in a run."""
_EFFECTS: Final = 12
"""Power is lost after fewer effects than this."""


def _ends(kind: Kind) -> bool:
    """Whether something is over that goes wrong."""
    return kind[0] in _ENDS or kind == (What.DISK, _MENDED)


class Memory:
    """How often each kind of event has happened, over all runs."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[Kind, bool]] = Counter()

    def rarity(self, kind: Kind, *, crash: bool = False) -> float:
        """From 1 for what has never happened towards 0."""
        return math.pow(1.0 + self.counts[kind, crash], -0.25)

    def happened(self, event: Event) -> None:
        """Count an event."""
        self.counts[(event.what, event.name), event.crash is not None] += 1


class Scheduler:
    """The draw of one run. ``faults``: whether anything goes wrong at all."""

    def __init__(self, seed: int, memory: Memory, *, faults: bool = True) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self._memory = memory
        chance = self._chance
        self._weights: dict[Kind, float] = {}
        scale = chance.choice((0.0, 0.3, 1.0, 1.0, 3.0)) if faults else 0.0
        self._lose = scale * chance.choice((0.0, 0.01, 0.05, 0.15))
        self._repeat = scale * chance.choice((0.0, 0.01, 0.05, 0.15))
        self._crash_within = scale * chance.choice((0.0, 0.0, 0.01, 0.03))
        self._crash_after = scale * chance.choice((0.0, 0.01, 0.05, 0.2))
        self._faults = scale
        self._storm = chance.choice((0.1, 0.3, 0.5, 0.9))
        self._late = chance.choice((0.0, 0.1, 0.3))
        self._stretch = 0
        self._stormy = False
        self._held: dict[tuple[str, int | None, int | None], int] = {}
        self._clock = 0
        self._last: Event | None = None
        self._busy = False

    def after(self, event: Event, *, sent: bool) -> None:
        """Take note of what has just happened; ``sent``: whether a message left in it."""
        self._last = event
        self._busy = sent
        self._memory.happened(event)

    def next(self, pending: Sequence[Pending]) -> Event | None:
        """One of the pending events, or a variation of one; None where nothing is pending."""
        if not pending:
            return None
        self._clock += 1
        if self._stretch <= 0:
            self._stormy = self._chance.random() < self._storm
            self._stretch = self._chance.randint(3, 25)
        self._stretch -= 1
        crash = self._crash_of_the_last(pending)
        if crash is not None:
            return crash
        ready = [each.event for each in pending if not self._is_held(each.event)]
        event = self._drawn(ready or [each.event for each in pending])
        return self._varied(event)

    def _crash_of_the_last(self, pending: Sequence[Pending]) -> Event | None:
        if self._last is None or not self._busy or self._chance.random() >= self._crash_after:
            return None
        crashes = [
            each.event for each in pending if each.event.what is What.CRASH and each.event.node == self._last.node
        ]
        return self._chance.choice(crashes) if crashes else None

    def _is_held(self, event: Event) -> bool:
        """Whether a message waits: between two endpoints, of one kind, for as long as is drawn when it is first met."""
        if event.what is not What.DELIVER or not self._late:
            return False
        way = (event.name, event.source, event.node)
        until = self._held.get(way, -1)
        if until < self._clock - 40:
            longer = self._chance.random() < self._late
            until = self._clock + (self._chance.randint(5, 60) if longer else -1)
            self._held[way] = until
        return self._clock < until

    def _drawn(self, events: Sequence[Event]) -> Event:
        # What is offered in several ways (with other arguments) is not the likelier for it.
        ways: Counter[tuple[What, str, int | None]] = Counter()
        for event in events:
            if event.what is not What.DELIVER:
                ways[event.what, event.name, event.node] += 1
        weights = [self._weight(event) / (ways[event.what, event.name, event.node] or 1) for event in events]
        total = sum(weights)
        if total <= 0:
            return self._chance.choice(events)
        point = self._chance.random() * total
        for event, weight in zip(events, weights, strict=True):
            point -= weight
            if point < 0:
                return event
        return events[-1]

    def _weight(self, event: Event) -> float:
        kind = (event.what, event.name)
        weight = self._weights.get(kind)
        if weight is None:
            weight = self._weights[kind] = self._weight_of(kind)
        if weight and not self._stormy:
            if event.what is What.DELIVER:
                weight = 6.0 / (1 + 3 * event.number)
            elif event.what in _FAULTS and not _ends(kind):
                weight *= 0.05
        elif _ends(kind):
            weight = max(weight, 1.0)
        return weight

    def _weight_of(self, kind: Kind) -> float:
        """How likely a kind of event is in this run."""
        chance, what = self._chance, kind[0]
        spread = math.pow(4.0, chance.uniform(-1, 1))
        off = chance.random() < _OFF
        if _ends(kind):
            return spread
        if what in _FAULTS:
            rare = {What.CRASH: 0.06, What.CUT: 0.06, What.DISK: 0.03, What.PROBE: 0.15}[what]
            return 0.0 if off else self._faults * rare * spread * 2 * self._memory.rarity(kind)
        if what is What.DELIVER:
            return 2.0 * spread
        if what is What.TIME:
            return 0.3 * spread
        return 0.0 if off else 0.5 * spread * (0.5 + self._memory.rarity(kind))

    def _varied(self, event: Event) -> Event:
        chance = self._chance
        if event.what is What.DELIVER:
            point = chance.random()
            if point < self._lose:
                return replace(event, what=What.LOSE)
            if point < self._lose + self._repeat:
                event = replace(event, what=What.REPEAT)
        within = event.what in (What.DELIVER, What.REPEAT, What.TIMER, What.SYNC, What.START, What.CALL)
        if within and event.node is not None and event.node >= 0 and chance.random() < self._crash_within:
            return event.crashing(int(math.pow(_EFFECTS, chance.random())) - 1)
        return event
