"""What a simulated network does to messages, and what it has done."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..wire.messages import Envelope


@dataclass(frozen=True, slots=True)
class Faults:
    """How bad the network is. Raises ``ValueError`` for a rate outside of 0 to 1 and for a latency that is no range.

    ``latency`` is the range, in milliseconds and with both ends, from which each message draws its own time: where it
    is no single number, messages overtake each other. ``loss`` and ``duplication`` are the shares of messages.
    """

    latency: tuple[int, int] = (1, 1)
    loss: float = 0.0
    duplication: float = 0.0

    def __post_init__(self) -> None:
        low, high = self.latency
        if not 0 <= low <= high:
            raise ValueError(f"faults: latency {self.latency} is no range from 0 on; give (LOW, HIGH) in milliseconds")
        for name, rate in (("loss", self.loss), ("duplication", self.duplication)):
            if not 0 <= rate <= 1 or math.isnan(rate):
                raise ValueError(f"faults: {name} {rate} is no share; give a number from 0 to 1")


@dataclass(slots=True)
class Counts:
    """How many messages met with what, since the network was made.

    Each message that was sent, and each copy, ends as one of ``delivered``, ``lost``, ``cut``, ``undeliverable`` and
    ``dropped``, or is still on its way.
    """

    sent: int = 0
    duplicated: int = 0
    """Copies, by chance or by hand."""
    delivered: int = 0
    lost: int = 0
    """By chance."""
    cut: int = 0
    """Lost at a partition of the network, when sent or on arrival."""
    undeliverable: int = 0
    """Arrived where no endpoint was up."""
    dropped: int = 0
    """By hand."""
    reordered: int = 0
    """Of those delivered: after one that was sent later between the same two endpoints."""
    woken: int = 0
    """Deadlines of endpoints."""


@dataclass(slots=True, eq=False)
class Flight:
    """A message on its way: the handle to do something with it by hand."""

    envelope: Envelope
    number: int
    """Rises with each message and copy."""
    arrival: int
    """When it arrives by itself, in simulated milliseconds."""
    held: bool = False
    """It waits for ``deliver``, ``drop`` or ``release``, however late it is."""
