"""Clocks: one that a simulation moves, and the machine's own."""

from __future__ import annotations

import time
from dataclasses import dataclass

WALL_START = 1_538_352_000_000
"""Time of day at simulated time 0: 2018-10-01T00:00:00Z, in milliseconds since 1970."""


class SimulatedClock:
    """Simulated time: it stands still until the simulation moves it, and never goes back.

    All machines share ``now``. Time of day differs from one to the next: ``at(address)`` is the ``Clock`` of one
    endpoint, and ``set_skew`` says by how much its time of day is off, at any moment and in either direction, as when a
    clock is set. The clock itself is a ``Clock`` without skew.
    """

    def __init__(self) -> None:
        self._now = 0
        self._skews: dict[int, int] = {}

    def now(self) -> int:
        """Milliseconds since the simulation began."""
        return self._now

    def wall(self, address: int | None = None) -> int:
        """Milliseconds since 1970, as the endpoint at ``address`` has it; ``None`` for the true time."""
        skew = 0 if address is None else self._skews.get(address, 0)
        return WALL_START + self._now + skew

    def set_skew(self, address: int, milliseconds: int) -> None:
        """Put the endpoint's time of day so far from the true one; ahead of it where positive."""
        self._skews[address] = milliseconds

    def at(self, address: int) -> EndpointClock:
        """The clock to give to the endpoint at ``address``."""
        return EndpointClock(self, address)

    def advance(self, milliseconds: int) -> None:
        """Let time pass. Raises ``ValueError`` for a negative number."""
        if milliseconds < 0:
            raise ValueError(f"simulated clock: {milliseconds} ms would go back; give a number from 0 on")
        self._now += milliseconds

    def advance_to(self, moment: int) -> None:
        """Let time pass up to ``moment``; nothing where that is past."""
        if moment > self._now:
            self._now = moment


@dataclass(frozen=True, slots=True)
class EndpointClock:
    """A ``Clock``: simulated time as one endpoint reads it."""

    clock: SimulatedClock
    address: int

    def now(self) -> int:
        """Milliseconds since the simulation began: the same for all."""
        return self.clock.now()

    def wall(self) -> int:
        """Milliseconds since 1970, with this endpoint's skew."""
        return self.clock.wall(self.address)


class RealClock:
    """A ``Clock``: the machine's."""

    def now(self) -> int:
        """Milliseconds of the monotonic clock."""
        return time.monotonic_ns() // 1_000_000

    def wall(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000
