"""Where later runs begin: at the end of an earlier one that had met what runs seldom meet.

What it takes much to come to (a follower that starts over from remote storage, a rare answer) is met late in a run, and
what goes wrong from there on needs many runs that come there. So whatever less than a fifth of the runs has met is
remembered with the events that led to it, and a part of the later runs repeats those, or all but the last few of them,
and is drawn from there on. Once a fifth of the runs meets it that ends by itself.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from .events import Event
from .shrink import RunRecord
from .transitions import Transitions

Feature: TypeAlias = tuple[str, str, str]
"""A step of the model (``step``, its action), or an event: what it is, its name, and the sort of message."""
At: TypeAlias = tuple[str, str, tuple[tuple[str, int], ...]]
"""Where a run was: the protocol, the variant and the constants."""

FIRST: Final = 16
"""So many runs are all drawn."""
SELDOM: Final = 0.2
"""What less of the runs than this have met is met seldom."""
KEPT: Final = 4
"""So many beginnings are kept of each, the last ones."""
SHARE: Final = 0.25
"""So many runs go on from a beginning, where there is one."""
STEP: Final = "step"
OF_STEPS: Final = 0.6
"""So many of those go on from a step of the model, where one is met seldom."""
BACK: Final = 8
"""Up to so many of the last events are drawn anew, in every other run."""


@dataclass(frozen=True)
class Prefix:
    """What a run repeats before anything is drawn: the seed that the system is reset with, and events."""

    seed: int
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Course:
    """What a run met, each with the number of events after which it first had, and the events up to the last of it."""

    at: At
    beginning: Prefix
    met: Mapping[Feature, int]


def at_of(ways: Transitions) -> At:
    """Where the runs of these constants are."""
    system = ways.system
    return system.name, system.traced.variant.name, tuple(sorted(system.constants.items()))


class PrefixCorpus:
    """What runs have met so far, and the beginnings of those that met what is seldom met."""

    def __init__(self) -> None:
        self._runs = 0
        self._met: Counter[Feature] = Counter()
        self._kept: dict[At, dict[Feature, tuple[Prefix, ...]]] = {}

    def copy(self) -> PrefixCorpus:
        """One that knows the same, and learns apart."""
        found = PrefixCorpus()
        found._runs = self._runs
        found._met = self._met.copy()
        found._kept = {at: dict(kept) for at, kept in self._kept.items()}
        return found

    def is_seldom(self, feature: Feature) -> bool:
        """Whether less than a fifth of the runs has met it."""
        return self._met[feature] < SELDOM * max(self._runs, FIRST)

    def take(self, course: Course) -> None:
        """Take in what a run has met."""
        self._runs += 1
        self._met.update(course.met.keys())
        kept = self._kept.setdefault(course.at, {})
        events = course.beginning.events
        for feature, after in course.met.items():
            if after <= len(events) and self.is_seldom(feature):
                this = Prefix(course.beginning.seed, events[:after])
                kept[feature] = (*kept.get(feature, ()), this)[-KEPT:]

    def draw(self, ways: Transitions, seed: int) -> Prefix | None:
        """The beginning of a run: of one that met something seldom, the seldomer the likelier; None for all drawn."""
        if self._runs < FIRST:
            return None
        chance = random.Random(seed ^ 0x3C6EF372)  # noqa: S311 - repeatable on purpose
        seldom = {feature: kept for feature, kept in self._kept.get(at_of(ways), {}).items() if self.is_seldom(feature)}
        if not seldom or chance.random() >= SHARE:
            return None
        # Steps of the model are few beside all the ways in which messages are lost and come again.
        steps = [each for each in seldom if each[0] == STEP]
        among = steps if steps and chance.random() < OF_STEPS else list(seldom)
        feature = chance.choices(among, [1 / self._met[each] for each in among])[0]
        chosen = chance.choice(seldom[feature])
        back = chance.choice((0, chance.randint(1, BACK)))
        return Prefix(chosen.seed, chosen.events[: max(0, len(chosen.events) - back)])


def course_of(ran: RunRecord, sorts: Mapping[int, str], known: PrefixCorpus) -> Course:
    """What a run met, with the events up to the last thing that is met seldom.

    ``sorts``: of the messages that arrived, by their places in its history. What is part of a peace is met with that.
    """
    events: list[Event] = []
    met: dict[Feature, int] = {}
    for place, done in enumerate(ran.history):
        if done.event is None:
            continue
        if not done.in_peace:
            events.append(done.event)
            met.setdefault((done.event.what.value, done.event.name, sorts.get(place, "")), len(events))
        for (action, _), _ in done.path:
            met.setdefault((STEP, action, ""), len(events))
    last = max((after for feature, after in met.items() if known.is_seldom(feature)), default=0)
    return Course(at_of(ran.ways), Prefix(ran.seed, tuple(events[:last])), met)
