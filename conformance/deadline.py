"""A point in time after which nothing more is run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final


class OutOfTime(Exception):
    """A deadline passed in the midst of a run."""


@dataclass(frozen=True)
class Deadline:
    """A deadline by ``time.perf_counter``, which all processes of a machine share; None: there is none."""

    at: float | None = None

    @staticmethod
    def after(seconds: float | None) -> Deadline:
        """Return the deadline in so many seconds from now; none for None."""
        return Deadline(None if seconds is None else time.perf_counter() + seconds)

    @property
    def has_passed(self) -> bool:
        """Whether the time is over."""
        return self.at is not None and time.perf_counter() > self.at

    @property
    def left(self) -> float | None:
        """Seconds until the deadline, at least 0; None if there is none."""
        return None if self.at is None else max(0.0, self.at - time.perf_counter())

    def check(self) -> None:
        """Raise OutOfTime if the time is over."""
        if self.has_passed:
            raise OutOfTime


NEVER: Final = Deadline()
"""No deadline."""
