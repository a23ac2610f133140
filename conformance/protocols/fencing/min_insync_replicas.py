"""``min.insync.replicas`` of the topic, which an operator changes while the system runs.

The model says what is committed: what everybody in the ISR has, and be that the leader alone. How small an ISR may be
for acks=all decides whether a producer hears of it, and changes no cell: who is refused is not acknowledged, and what
is acknowledged is below the high watermark, whatever the minimum. So each answer is held, beside the model, to the
setting that its broker has heard of (``producers.py``).

A broker hears of a topic's settings when it is told, each at its own time, and reads them when it starts. In between
two brokers go by two settings, and so does one before and after it has heard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from random import Random
from typing import Final

from ...simulation.events import Event, EventKind

MINIMUM: Final = "min-isr"
"""The name of an operator's call: the topic has another ``min.insync.replicas`` from now on."""
SETTINGS: Final = "settings"
"""A timer of a broker's: it hears of the topic's settings, which it is due to as soon as they are set."""
_CHANGES: Final = 0.3
"""In so many runs it is changed."""
_DRAWN_APART: Final = 0x3C6EF372


class Minimum:
    """The setting as the operator has it, and as each broker knows it. ``first``: that of all of them at the start.

    What is drawn here changes nothing that others draw.
    """

    def __init__(self, first: int, replicas: Iterable[int], seed: int) -> None:
        self._replicas = tuple(replicas)
        self._known = dict.fromkeys(self._replicas, first)
        self._changes = Random(seed ^ _DRAWN_APART).random() < _CHANGES  # noqa: S311 - repeatable on purpose
        self.wanted = first
        """As the operator has set it."""

    def at(self, node: int) -> int:
        """What a broker goes by."""
        return self._known[node]

    def calls(self) -> Iterator[Event]:
        """What an operator may set next: any number for which there are replicas, as Kafka's tools let it."""
        if self._changes:
            for replicas in range(1, len(self._replicas) + 1):
                if replicas != self.wanted:
                    yield _changed(replicas)

    def unheard(self, up: Iterable[int]) -> Iterator[int]:
        """Who of these has not heard yet of what was set."""
        return (node for node in up if self._known[node] != self.wanted)

    def hears(self, node: int) -> int:
        """A broker is told, or starts; gives what it is told."""
        self._known[node] = self.wanted
        return self.wanted


@lru_cache(64)
def _changed(replicas: int) -> Event:
    return Event(EventKind.OPERATE, MINIMUM, args=(("replicas", replicas),))
