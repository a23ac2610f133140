"""Clocks: simulated time and the machine's own."""

from __future__ import annotations

import time
from dataclasses import dataclass

WALL_START = 1_538_352_000_000
"""Time of day at simulated time 0: 2018-10-01T00:00:00Z, in milliseconds since 1970."""


class SimulatedClock:
    """Simulated time: only the simulation advances it, and it never goes back.

    All machines share ``now``, but each endpoint has its own time of day. ``at(address)`` returns the ``Clock`` of one
    endpoint. ``set_skew`` changes its skew at any moment, forward or back, as when a clock is set. The simulated clock
    itself is a ``Clock`` without skew.
    """

    def __init__(self) -> None:
        self._now = 0
        self._skews: dict[int, int] = {}

    def now(self) -> int:
        """Milliseconds since the simulation began."""
        return self._now

    def wall(self, address: int | None = None) -> int:
        """Milliseconds since 1970 on the endpoint's clock; ``None`` means the true time."""
        skew = 0 if address is None else self._skews.get(address, 0)
        return WALL_START + self._now + skew

    def set_skew(self, address: int, milliseconds: int) -> None:
        """Set the endpoint's clock skew in milliseconds; positive is ahead of true time."""
        self._skews[address] = milliseconds

    def at(self, address: int) -> EndpointClock:
        """Return the clock of the endpoint at ``address``."""
        return EndpointClock(self, address)

    def advance(self, milliseconds: int) -> None:
        """Advance the time. Raises ``ValueError`` for a negative number."""
        if milliseconds < 0:
            raise ValueError(f"simulated clock: {milliseconds} ms would go back; give a number from 0 on")
        self._now += milliseconds

    def advance_to(self, moment: int) -> None:
        """Advance the time to ``moment``, or do nothing if it is past."""
        if moment > self._now:
            self._now = moment


@dataclass(frozen=True, slots=True)
class EndpointClock:
    """A ``Clock``: simulated time as one endpoint reads it."""

    clock: SimulatedClock
    address: int

    def now(self) -> int:
        """Milliseconds since the simulation began, equal on all endpoints."""
        return self.clock.now()

    def wall(self) -> int:
        """Milliseconds since 1970, with this endpoint's skew."""
        return self.clock.wall(self.address)


class RealClock:
    """The machine's clocks as a ``Clock``."""

    def now(self) -> int:
        """Milliseconds of the monotonic clock."""
        return time.monotonic_ns() // 1_000_000

    def wall(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000
