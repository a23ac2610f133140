"""Interfaces between a node and its host: transport and clock. Files are in ``files``.

A node never blocks. Its host delivers each message (``receive``), queries its next deadline (``deadline``), and wakes
it then (``wake``). The simulation is one host; sockets and real time are another.
"""

from __future__ import annotations

from typing import Protocol

from ..wire.messages import Envelope


class Transport(Protocol):
    """Unreliable transport: it loses, delays, repeats or reorders messages silently.

    Responses to an earlier incarnation of an endpoint may also arrive. A restarted endpoint must not reuse
    correlation ids.
    """

    def send(self, envelope: Envelope) -> None:
        """Send a message without blocking."""


class Clock(Protocol):
    """Monotonic time and time of day."""

    def now(self) -> int:
        """Milliseconds since an arbitrary moment; never decreases."""

    def wall(self) -> int:
        """Milliseconds since 1970, for record timestamps."""


class Endpoint(Protocol):
    """Addressable node on the network: a broker, the controller or a client."""

    @property
    def address(self) -> int:
        """Node id from 0 for brokers; negative for the controller and clients."""

    def receive(self, envelope: Envelope) -> None:
        """Process an arrived message."""

    def deadline(self) -> int | None:
        """Return the next wake-up in the clock's milliseconds, or ``None`` for never."""

    def wake(self) -> None:
        """Run all work that is due."""
