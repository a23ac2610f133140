"""What a run of brokers with a compacted topic is like, by its seed: what arrives at once, and who is in time."""

from __future__ import annotations

from random import Random
from typing import Final

from ...free.events import Event, What

CONTROL: Final = frozenset({"LeaderAndIsr", "AlterIsr", "UpdateMetadata", "OffsetsForLeaderEpoch", "OfflineReplicas"})
REQUESTS: Final = CONTROL | {"Produce", "Fetch"}


class Pace:
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
        if event.what is What.CALL and event.name in ("elect", "shrink"):
            self._elected = self._events
