"""How likely events of Apache Kafka's tiered brokers are, so that runs come to where something is decided."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from ...simulation.events import EventKind
from ...simulation.system import EnabledEvent

_HURRIED: Final = 6
"""In one of so many runs nothing is likelier."""
_WEIGHTS: Final = {
    "produce": 3.0,
    "fetch": 3.0,
    "isr": 1.0,
    "checkpoint": 0.3,
    "timeout": 0.3,
    "copy": 3.0,
    "expire": 0.7,
    "go": 6.0,
    "retain": 1.5,
    "learn": 2.0,
    "metadata": 3.0,
    "replace": 3.0,
    "elect": 0.4,
    "elect-unclean": 0.25,
    "session": 2.0,
    "store-works": 4.0,
}
_DELIVERED: Final = 4.0
_LAGS: Final = 0.15
"""How likely it is that somebody goes on who lags behind what is on its leader's disk."""
_FAILS_BUILDING: Final = 6.0
"""How likely it is that the store fails a broker that is about to read what to begin with."""


def weighed(
    pending: Iterable[EnabledEvent], seed: int, nodes: int, building: Collection[int]
) -> Iterator[EnabledEvent]:
    """What is pending, with how likely it is in the run with this seed: in half of them a broker lags.

    ``building``: who asks its leader where to begin.
    """
    slow = seed // _HURRIED % (2 * nodes)
    for each in pending:
        event = each.event
        if seed % _HURRIED == 0:
            yield each
        elif event.node == slow and (event.name == "fetch" or event.what is EventKind.DELIVER):
            yield each.weighing(_LAGS)
        elif event.what is EventKind.DELIVER:
            yield each.weighing(_DELIVERED)
        elif event.name == "store-fails" and event.node in building:
            yield each.weighing(_FAILS_BUILDING)
        elif event.what is EventKind.START:
            yield each.weighing(3.0)
        else:
            weight = _WEIGHTS.get(event.name, 1.0)
            yield each if weight == 1.0 else each.weighing(weight)
