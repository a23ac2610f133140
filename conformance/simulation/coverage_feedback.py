"""What runs have met so far, and what the next draws make of it: coverage leads (``scheduler.py``)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, TypeAlias

from ...model.core.ground import State
from .events import Event, EventKind
from .prefix_corpus import Course, PrefixCorpus
from .system import EnabledEvent

Kind: TypeAlias = tuple[EventKind, str]
"""What is weighed: the event and its name, not at whom."""

LEAST: Final = 0.04
"""The weight of a kind of event of which nothing new ever comes, beside one of which it always does."""
GARBLED: Final = "garbled"
"""The failure that every message with a checksum may meet."""
_FRESH: Final = 0.25
"""How likely an event meets a failure that its sort has never met."""


@dataclass(frozen=True)
class Learned:
    """What one run adds to a memory, to be told to another process."""

    counts: Mapping[tuple[Kind, bool], int]
    worth: Mapping[Kind, float]
    failed: Mapping[tuple[Kind, str, str], int]
    states: Set[int]
    tells_due: bool
    courses: tuple[Course, ...] = ()


class CoverageFeedback:
    """How often each kind of event has happened, over all runs, and how often something came of it."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[Kind, bool]] = Counter()
        self._worth: dict[Kind, float] = {}
        self._happened: Counter[Kind] = Counter()
        self._states: set[int] = set()
        self._before: Set[int] = frozenset()
        """The states of the memory that this one was made from: it may be large, and is not copied."""
        self._failed: Counter[tuple[Kind, str, str]] = Counter()
        self.beginnings = PrefixCorpus()
        self._courses: list[Course] | None = None
        """Those of a memory that is apart, as they are to be told."""
        self.tells_due = False
        """Whether the system says which timers are due."""

    def is_new(self, state: State) -> bool:
        """Whether no run has met a state of the model before; it has from now on."""
        number = hash(state)
        if number in self._before:
            return False
        known = len(self._states)
        self._states.add(number)
        return len(self._states) > known

    def yields(self, kind: Kind) -> float:
        """How often something comes of a kind of event, at once or by a message; 1 for what has never happened."""
        return LEAST + (1 - LEAST) * (1 + self._worth.get(kind, 0.0)) / (1 + self._happened[kind])

    def rarity(self, kind: Kind) -> float:
        """From 1 for what has never happened towards 0."""
        return math.pow(1.0 + self._happened[kind], -0.25)

    def fresh(self, pending: EnabledEvent, failure: str) -> float:
        """How likely a failure comes to an event of a sort of its own, or garbles one, for having seldom done so."""
        event = pending.event
        if not pending.sort and failure != GARBLED:
            return 0.0
        return _FRESH * math.pow(1 + self._failed[(event.what, event.name), pending.sort, failure], -0.7)

    def failed(self, pending: EnabledEvent, failure: str) -> None:
        """Count a failure of an event."""
        self._failed[(pending.event.what, pending.event.name), pending.sort, failure] += 1

    def ran(self, course: Course) -> None:
        """A run without a divergence is over."""
        self.beginnings.take(course)
        if self._courses is not None:
            self._courses.append(course)

    def happened(self, event: Event, sent: Sequence[str], *, new: bool) -> None:
        """Count an event: the messages that left in it, and whether the model met a new state.

        A message is worth what comes of its arrival.
        """
        kind = (event.what, event.name)
        self.counts[kind, event.crash is not None] += 1
        self._happened[kind] += 1
        worth = 1.0 if new else max((self.yields((EventKind.DELIVER, name)) for name in sent), default=0.0)
        self._worth[kind] = self._worth.get(kind, 0.0) + worth

    # -- runs that do not know of each other -------------------------------------------------------------------------

    def apart(self) -> CoverageFeedback:
        """A memory for one run, which knows all that this one does; what it learns is taken in later, or never."""
        found = CoverageFeedback()
        found.counts = self.counts.copy()
        found._worth = self._worth.copy()
        found._happened = self._happened.copy()
        found._failed = self._failed.copy()
        found._before = self._states
        found.beginnings = self.beginnings.copy()
        found._courses = []
        found.tells_due = self.tells_due
        return found

    def learned(self, since: CoverageFeedback) -> Learned:
        """What this one knows that the memory which it was made from does not."""
        gained = {kind: worth - since._worth.get(kind, 0.0) for kind, worth in self._worth.items()}
        return Learned(
            self.counts - since.counts,
            {kind: worth for kind, worth in gained.items() if worth},
            self._failed - since._failed,
            frozenset(self._states),
            self.tells_due,
            tuple(self._courses or ()),
        )

    def take(self, learned: Learned) -> None:
        """Take in what a run has learned. In the order of the runs, all who do so come to the same memory."""
        for (kind, crashed), times in learned.counts.items():
            self.counts[kind, crashed] += times
            self._happened[kind] += times
        for kind, worth in learned.worth.items():
            self._worth[kind] = self._worth.get(kind, 0.0) + worth
        for failure, times in learned.failed.items():
            self._failed[failure] += times
        self._states |= learned.states
        self.tells_due = self.tells_due or learned.tells_due
        for course in learned.courses:
            self.beginnings.take(course)
