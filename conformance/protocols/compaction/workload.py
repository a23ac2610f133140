"""What a run of brokers with a compacted topic is like, by its seed: what arrives at once, and who is in time."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final, NamedTuple

from ...simulation.events import Event
from .records import BEFORE_MS, STEP_MS

CONTROL: Final = frozenset({"LeaderAndIsr", "AlterIsr", "UpdateMetadata", "OffsetsForLeaderEpoch", "OfflineReplicas"})
REQUESTS: Final = CONTROL | {"Produce", "Fetch"}

_PATIENCE_MS: Final = 1_500
"""What comes within this time from the beginning of a run has come when nothing moves any more."""


class Ages(NamedTuple):
    """How old records must be, and may be: a topic's configurations in milliseconds, drawn for a run."""

    segment: int
    """``segment.ms``."""
    least: int
    """``min.compaction.lag.ms``."""
    most: int | None
    """``max.compaction.lag.ms``; None where it is not set."""

    @classmethod
    def drawn(cls, segment: int, seed: int) -> Ages:
        """Some records become old enough in the midst of a run, others sooner."""
        chance = Random(f"ages {seed}")  # noqa: S311 - repeatable on purpose
        least = chance.choice((0, 0, 0, BEFORE_MS + 60, BEFORE_MS + 400, BEFORE_MS + 900))
        most = chance.choice((None, None, 1, BEFORE_MS + 400))
        return cls(segment, least, None if most is None else max(least, most))

    def configs(self) -> dict[str, str]:
        """As a topic has them."""
        set_ = {"segment.ms": self.segment, "min.compaction.lag.ms": self.least, "max.compaction.lag.ms": self.most}
        return {name: str(value) for name, value in set_.items() if value is not None}

    def closes(self, constants: Mapping[str, int]) -> bool:
        """Whether each active segment is closed in the end that has a record."""
        return _in_time(self.segment, constants) or _in_time(self.most, constants)

    def cleans(self, ratio: float, constants: Mapping[str, int]) -> bool:
        """Whether whatever can be cleaned is due in the end."""
        return _in_time(self.least, constants) and (ratio == 0 or _in_time(self.most, constants))


def _in_time(age: int | None, constants: Mapping[str, int]) -> bool:
    """Whether every record has this age when a run ends in peace."""
    return age is not None and age - BEFORE_MS + STEP_MS * (constants["timestamps"] - 1) <= _PATIENCE_MS


class Workload:
    """The drawn features of one run, and when there was an election last."""

    def __init__(self, chance: Random) -> None:
        self.at_once: frozenset[str] = chance.choice((frozenset(), CONTROL, REQUESTS, REQUESTS, REQUESTS))
        """The kinds of requests that arrive at once, and are answered so."""
        self.punctual = chance.random() < 0.7
        """Whether no time passes as long as somebody lags behind what a tombstone deletes."""
        self.numbered = chance.random() < 0.25
        """Whether producers give their batches numbers."""
        self.probes = chance.random() < 0.7
        """Whether producers send what must be refused."""
        self.changes = chance.random() < 0.4
        """Whether the strategy is set while the topic lives."""
        self.starts_over = chance.random() < 0.3
        """Whether the consumer starts over."""
        self.alone = chance.random() < 0.4
        """Whether the first leader begins as the whole ISR, and followers come late to what it has cleaned."""
        self._term = chance.choice((15, 30, 60))
        self._events = 0
        self._elected = -self._term
        self.peace = False
        """Nothing is kept waiting any more."""

    def is_time(self, what: str) -> bool:  # noqa: ARG002 - there is one thing that waits
        """Whether a leader epoch may be spent again."""
        return self.peace or self._events - self._elected >= self._term

    def is_prompt(self, kind: str) -> bool:
        """Whether a message of a kind arrives at once."""
        return kind in self.at_once

    def after(self, event: Event) -> None:
        """Count an event."""
        self._events += 1
        if event.name in ("elect", "shrink"):
            self._elected = self._events
