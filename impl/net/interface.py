"""How a node meets the world: a transport to send by, and a clock. Files are in ``files``.

A node does no waiting of its own. Its host hands it each message that arrives (``receive``), asks when it next wants
to be woken (``deadline``), and wakes it (``wake``). The simulation is one host; sockets and real time are another.
"""

from __future__ import annotations

from typing import Protocol

from ..wire.messages import Envelope


class Transport(Protocol):
    """Sends messages. They may be lost, late, repeated or out of order, and nobody is told.

    That includes answers to an endpoint's former life: one that starts anew must not use correlation ids again.
    """

    def send(self, envelope: Envelope) -> None:
        """Hand a message over; returns at once."""


class Clock(Protocol):
    """Monotonic time, and time of day."""

    def now(self) -> int:
        """Milliseconds since some moment; never falls."""

    def wall(self) -> int:
        """Milliseconds since 1970, for record timestamps."""


class Endpoint(Protocol):
    """What has an address on the network: a broker, the controller, a client."""

    @property
    def address(self) -> int:
        """Brokers have their node id from 0 on; the controller and clients have negative numbers."""

    def receive(self, envelope: Envelope) -> None:
        """A message has arrived."""

    def deadline(self) -> int | None:
        """When it wants to be woken next, in the clock's milliseconds; ``None`` for not at all."""

    def wake(self) -> None:
        """Do everything whose time has come."""
