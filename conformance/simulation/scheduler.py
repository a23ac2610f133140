"""What happens next: a seeded draw among what is pending.

First the class of event is drawn (a message arrives, a timer fires, a client asks, an operator acts, something fails),
then which one: so that twelve ways to crash a node are not twelve times as likely as one message. Each run draws its
own world (swarm testing): how likely each class and each kind is, some kinds not at all; how often messages are lost,
come twice or wait; how often a node loses power in the midst of an event.

Calm stretches, in which messages arrive in their order and what is due fires, take the system to where something can go
wrong; in storms anything happens. Elections and failures are rare beside what they interrupt, as what the model's
constants allow of them is soon used up.

Coverage leads: a kind of event of which seldom anything comes (a message, or a state of the model that no run had met)
is drawn less, and what has seldom happened rather. So is a loss of power at whoever has just sent something, as what
is not yet on its disk is what it forgets. A failure that an event has seldom met comes to it rather: as often to the
one answer of a thousand that makes a node start over as to those that bring nothing.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from .coverage_feedback import GARBLED, LEAST, CoverageFeedback, Kind
from .events import Event, EventKind
from .system import EnabledEvent

_CLASSES: Final = {
    EventKind.DELIVER: 10.0,
    EventKind.TIMER: 4.0,
    EventKind.CALL: 3.0,
    EventKind.TIME: 0.7,
    EventKind.SYNC: 1.0,
    EventKind.START: 1.5,
    EventKind.HEAL: 0.6,
}
"""How likely a class of events is beside the others, in a run that is as most are."""

_DISRUPTIONS: Final = {
    EventKind.OPERATE: 1.0,
    EventKind.PROBE: 0.8,
    EventKind.CRASH: 0.35,
    EventKind.CUT: 0.3,
    EventKind.DISK: 0.12,
}
"""The same of what changes the course of things. How often any of these comes is drawn apart."""

_CLOCK: Final = 0.15
"""How often a clock is set, beside those; where no system offers it, nothing is drawn for it."""
_DISRUPTING: Final = frozenset({*_DISRUPTIONS, EventKind.CLOCK})
_FAULTS: Final = frozenset({EventKind.CRASH, EventKind.CUT, EventKind.DISK, EventKind.PROBE})
_ENDS: Final = ((EventKind.START, ""), (EventKind.HEAL, ""), (EventKind.DISK, "mended"))
"""The ends of what goes wrong."""
_QUIET: Final = (0, 0, 40, 80)
"""A run begins with so many events of calm in which nothing disrupts the course of things: what went well before shows
in what goes wrong."""
_OFF: Final = 0.2
"""So many kinds of failures and operations do not happen in a run."""
_GARBLINGS: Final = (0.0, 0.03, 0.1)
"""How often a message that has a checksum arrives garbled; each run draws one of these."""
_GARBLED_WAYS: Final = 12
"""In so many ways."""
_GARBLES: Final = 0x2545F491
_EFFECTS: Final = 12
"""Power is lost after fewer effects than this."""
_WITHIN: Final = frozenset(
    {EventKind.DELIVER, EventKind.REPEAT, EventKind.TIMER, EventKind.SYNC, EventKind.START, EventKind.CALL}
)
"""In the midst of which events a node may lose power."""
_WITHIN_UNNUMBERED: Final = frozenset(
    {EventKind.DELIVER, EventKind.REPEAT, EventKind.TIMER, EventKind.START, EventKind.OPERATE}
)
"""The same where an event names no node and a process without a number can crash: no client's calls."""
_EARLY: Final = 0.2
"""The weight of a timer that fires before it is due, where a system says which are due."""
_SLOW: Final = 0.08
"""How likely time passes in calm while messages are in flight."""
_ASKED: Final = 0.3
"""The same of what clients ask for, and of the timers of who has no clock."""
_DULL: Final = 0.25
"""Where no more than this is to be hoped for, something else is tried as often."""
_MOST: Final = 0.4
"""The course of things is not disrupted more often than this, whatever a system would rather have."""
_STILL: Final = 16
"""After so many events in which nothing could be seen to change, the course of things leads nowhere."""


class Scheduler:
    """The draw of one run. ``faults``: whether anything goes wrong at all."""

    def __init__(self, seed: int, memory: CoverageFeedback, *, faults: bool = True) -> None:
        self._chance = chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self._memory = memory
        self._weights: dict[Kind, float] = {}
        self._faults = chance.choice((0.0, 0.3, 1.0, 1.0, 2.0)) if faults else 0.0
        self._classes = {
            what: weight * math.pow(4.0, chance.uniform(-0.7, 0.7)) * (self._faults if what in _FAULTS else 1.0)
            for what, weight in (_CLASSES | _DISRUPTIONS).items()
        }
        self._classes[EventKind.CLOCK] = _CLOCK * self._faults
        self._disrupt = chance.choice((0.01, 0.03, 0.06, 0.12))
        self._lose = self._faults * chance.choice((0.0, 0.01, 0.05, 0.15))
        self._repeat = self._faults * chance.choice((0.0, 0.01, 0.05, 0.15))
        self._crash_within = self._faults * chance.choice((0.0, 0.0, 0.01, 0.03))
        self._crash_after = self._faults * chance.choice((0.0, 0.01, 0.05, 0.2))
        # Drawn apart: for a system whose messages have no checksum nothing is.
        self._garbler = random.Random(seed ^ _GARBLES)  # noqa: S311 - repeatable on purpose
        self._garble = self._faults * self._garbler.choice(_GARBLINGS)
        self._storm = chance.choice((0.1, 0.3, 0.5, 0.9))
        self._late = chance.choice((0.0, 0.1, 0.3))
        self._stretch = chance.choice(_QUIET)
        self._quiet = self._stretch > 0
        self._stormy = False
        self._held: dict[tuple[str, int | None, int | None], int] = {}
        self._clock = 0
        self._last: Event | None = None
        self._busy = False
        self._still = 0
        self._fruitless: dict[int | None, set[Event]] = {}
        """The timers of which nothing came, by their nodes, since anything else happened there."""

    def after(self, event: Event, sent: Sequence[str], *, new: bool, changed: bool = True) -> None:
        """Take note of what has just happened: the messages that left in it, whether the model met a new state.

        ``changed``: whether anything could be seen to change.
        """
        self._last = event
        self._busy = bool(sent)
        self._memory.happened(event, sent, new=new)
        self._still = 0 if changed else self._still + 1
        if event.what is EventKind.TIMER and not sent and not changed:
            self._fruitless.setdefault(event.node, set()).add(event)
        elif event.what is EventKind.TIME:
            self._fruitless.clear()
        else:
            self._fruitless.pop(event.node, None)

    def next(self, pending: Sequence[EnabledEvent]) -> Event | None:
        """One of the pending events, or a variation of one; None where nothing is pending."""
        if not pending:
            return None
        self._clock += 1
        if self._stretch <= 0:
            self._stormy = self._chance.random() < self._storm
            self._stretch = self._chance.randint(3, 25)
            self._quiet = False
        self._stretch -= 1
        crash = self._crash_of_the_last(pending)
        if crash is not None:
            return crash
        ready: Sequence[EnabledEvent] = pending
        if self._late:
            deliver = EventKind.DELIVER
            ready = [each for each in pending if each.event.what is not deliver or not self._is_held(each.event)]
        drawn = self._drawn(ready or pending)
        return self._varied(drawn, drawn.event.node is not None or any(map(_crashes_unnumbered, pending)))

    def _crash_of_the_last(self, pending: Sequence[EnabledEvent]) -> Event | None:
        if self._last is None or not self._busy or self._chance.random() >= self._crash_after:
            return None
        if self._last.what is EventKind.CALL and self._last.node is None:
            return None  # it was a client that sent something
        crashes = [
            each.event for each in pending if each.event.what is EventKind.CRASH and each.event.node == self._last.node
        ]
        return self._chance.choice(crashes) if crashes else None

    def _is_held(self, event: Event) -> bool:
        """Whether a message waits: between two endpoints, of one kind, for as long as is drawn when it is first met."""
        way = (event.name, event.source, event.node)
        until = self._held.get(way, -1)
        if until < self._clock - 40:
            longer = self._chance.random() < self._late
            until = self._clock + (self._chance.randint(5, 60) if longer else -1)
            self._held[way] = until
        return self._clock < until

    def _drawn(self, pending: Sequence[EnabledEvent]) -> EnabledEvent:
        groups: dict[EventKind, list[EnabledEvent]] = {}
        for each in pending:
            what = each.event.what
            if what is EventKind.OPERATE or what is EventKind.DISK:
                what = self._class_of(each)
            if what in groups:
                groups[what].append(each)
            else:
                groups[what] = [each]
        what = self._class_drawn(groups)
        group = groups[what]
        # What is offered in several ways (with other arguments) is not the likelier for it.
        hopes: dict[Kind, float] = {}
        if what is EventKind.DELIVER:
            weights = [self._weight(each, hopes) for each in group]
        else:
            places = [(each.event.name, each.event.node) for each in group]
            ways = Counter(places)
            weights = [self._weight(each, hopes) / ways[place] for each, place in zip(group, places, strict=True)]
        return group[self._one(weights)]

    def _class_of(self, pending: EnabledEvent) -> EventKind:
        """The class of an event: a disk that works again is like other ends, and what is due is asked for."""
        what = pending.event.what
        if what is EventKind.OPERATE and pending.due:
            return EventKind.CALL
        return EventKind.HEAL if what is EventKind.DISK and (what, pending.event.name) in _ENDS else what

    def _class_drawn(self, groups: Mapping[EventKind, Sequence[EnabledEvent]]) -> EventKind:
        """Whether the course of things is disrupted, and then a class. Where nothing else leads on it is, rather."""
        course = {what: self._promise(group) for what, group in groups.items() if what not in _DISRUPTING}
        disruptions = [what for what in groups if self._classes[what] and what in _DISRUPTING]
        often = self._disrupt * (2.0 if self._stormy else 0.3)
        promised = max((promise for what, promise in course.items() if what is not EventKind.TIME), default=0.0)
        if promised < _DULL or self._still >= _STILL:
            often = max(often, _DULL)
        wanted = {what: max(each.weight for each in groups[what]) for what in disruptions}
        often = min(often * max(wanted.values(), default=1.0), max(often, _MOST))
        if self._quiet and course:
            # Nothing disturbs the calm; but where nobody leads somebody has to be elected.
            disruptions = [what for what in disruptions if what is EventKind.OPERATE and self._still >= _STILL]
        if disruptions and (not course or self._chance.random() < often):
            return disruptions[self._one([self._classes[what] * wanted[what] for what in disruptions])]
        if not course:
            return next(iter(groups))
        if not self._stormy and EventKind.DELIVER in course:
            # In calm, messages are quick beside whatever is waited for.
            slowly = {
                EventKind.TIME: _SLOW,
                EventKind.TIMER: _SLOW if self._memory.tells_due else _ASKED,
                EventKind.CALL: _ASKED,
            }
            for slow, by in slowly.items():
                if slow in course and not any(each.due for each in groups[slow]):
                    course[slow] *= by
        return list(course)[self._one([self._classes[what] * promise for what, promise in course.items()])]

    def _is_fruitless(self, event: Event) -> bool:
        """A timer of which nothing came, at a node to which nothing has happened since: nothing will come of it now."""
        return event.what is EventKind.TIMER and event in self._fruitless.get(event.node, ())

    def _promise(self, group: Sequence[EnabledEvent]) -> float:
        """How much may come of a class: as much as of the best of its kinds that are pending, and of what is due."""
        what = group[0].event.what
        if what is EventKind.TIMER and self._fruitless:
            hopeful = [each for each in group if not self._is_fruitless(each.event)]
            if not hopeful:
                return LEAST
            group = hopeful
        if any(each.due for each in group):
            self._memory.tells_due = self._memory.tells_due or what is EventKind.TIMER
            return max(each.weight for each in group if each.due)
        wanted = max(each.weight for each in group)
        if what in (EventKind.TIME, EventKind.START, EventKind.HEAL):
            return wanted
        early = _EARLY if what is EventKind.TIMER and self._memory.tells_due else 1.0
        return early * wanted * max([self._memory.yields((what, name)) for name in {each.event.name for each in group}])

    def _one(self, weights: Sequence[float]) -> int:
        """A place, drawn by its weight; by none where all are zero."""
        total = sum(weights)
        if total <= 0:
            return self._chance.randrange(len(weights))
        point = self._chance.random() * total
        for place, weight in enumerate(weights):
            point -= weight
            if point < 0:
                return place
        return len(weights) - 1

    def _weight(self, pending: EnabledEvent, hopes: dict[Kind, float]) -> float:
        """How likely one is in its class; ``hopes``: what may come of each kind, as far as this draw has asked."""
        event = pending.event
        kind = (event.what, event.name)
        weight = self._weights.get(kind)
        if weight is None:
            weight = self._weights[kind] = self._weight_of(kind)
        hope = hopes.get(kind)
        if hope is None:
            hope = hopes[kind] = self._memory.yields(kind)
        if event.what is EventKind.DELIVER and not self._stormy:
            # In calm every message comes, and in the order in which they were sent.
            return pending.weight * (0.3 + hope) / (1 + 3 * event.number)
        weight *= hope * pending.weight
        if self._is_fruitless(event):
            return weight * LEAST
        if event.what is EventKind.TIME:
            # Most often the next thing comes soon.
            return pending.weight * math.pow(1 + int(event.arg("ms")), -0.25)
        if event.what is EventKind.TIMER and self._memory.tells_due and not pending.due:
            # A node that asks again and again hears of no answer.
            weight *= _EARLY if self._stormy else _EARLY * _SLOW
        if self._stormy:
            return weight
        return max(weight, pending.weight) if pending.due else weight

    def _weight_of(self, kind: Kind) -> float:
        """How likely a kind of event is among those of its class, in this run."""
        chance, what = self._chance, kind[0]
        spread = math.pow(4.0, chance.uniform(-1, 1))
        off = chance.random() < _OFF and (what in _FAULTS or what is EventKind.OPERATE) and kind not in _ENDS
        return 0.0 if off else spread * (0.5 + self._memory.rarity(kind))

    def _varied(self, pending: EnabledEvent, crashable: bool) -> Event:
        """The event, or that its message is lost or comes twice, or that whoever can crash loses power in its midst."""
        chance, event = self._chance, pending.event
        if pending.garbles and self._garbler.random() < self._often(pending, GARBLED, self._garble):
            self._memory.failed(pending, GARBLED)
            return event.garbled(self._garbler.randrange(_GARBLED_WAYS))
        if event.what is EventKind.DELIVER:
            point = chance.random()
            lost, again = self._often(pending, "lost", self._lose), self._often(pending, "repeated", self._repeat)
            if point < lost:
                self._memory.failed(pending, "lost")
                return replace(event, what=EventKind.LOSE)
            if point < lost + again:
                self._memory.failed(pending, "repeated")
                event = replace(event, what=EventKind.REPEAT)
        if event.node is None:
            within = event.what in _WITHIN_UNNUMBERED and crashable
        else:
            within = event.what in _WITHIN and event.node >= 0
        if within and chance.random() < self._often(pending, "broken", self._crash_within):
            self._memory.failed(pending, "broken")
            return event.crashing(int(math.pow(_EFFECTS, chance.random())) - 1)
        return event

    def _often(self, pending: EnabledEvent, failure: str, often: float) -> float:
        """How likely a failure comes to an event now: as in this run, and rather where it has seldom come."""
        return max(often, min(self._faults, 1.0) * self._memory.fresh(pending, failure))


def _crashes_unnumbered(pending: EnabledEvent) -> bool:
    """Whether a process without a number may crash."""
    return pending.event.what is EventKind.CRASH and pending.event.node is None
