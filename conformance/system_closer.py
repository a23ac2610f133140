"""Close systems under test at the end of a command, under a time limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from .lockstep.traceback import raised_at
from .lockstep.watch import GRACE, STEP_TIMEOUT, Closable, Hung, Limit

_System = TypeVar("_System", bound=Closable)

_UNCHANGED: Final = "the verdict stays as it was printed"


class SystemCloser:
    """Closes each system once, after the answer was printed.

    A ``close`` that hangs or raises is reported by ``warn``. It changes no verdict: the runs are over.

    Args:
        seconds: Time limit of each ``close``.
        warn: Receives one line for each ``close`` that failed.
        grace: Seconds after the limit at which a ``close`` that cannot be interrupted ends the process.
    """

    def __init__(self, seconds: float = STEP_TIMEOUT, *, warn: Callable[[str], None], grace: float = GRACE) -> None:
        self._seconds = seconds
        self._grace = grace
        self._warn = warn
        self._systems: list[Closable] = []

    def keep(self, system: _System) -> _System:
        """Register a system to be closed; returns it."""
        if not any(system is each for each in self._systems):
            self._systems.append(system)
        return system

    def replace(self, old: Closable, new: _System) -> _System:
        """Register a system in the place of another one, which is already closed; returns the new one."""
        self._systems = [each for each in self._systems if each is not old]
        return self.keep(new)

    def close(self, code: int) -> None:
        """Close every registered system. ``code``: exit code of the process if a ``close`` cannot be interrupted."""
        systems, self._systems = self._systems, []
        if not systems:
            return
        with Limit(self._seconds, self._grace) as limit:
            limit.code, limit.verdict = code, _UNCHANGED
            for system in systems:
                try:
                    with limit.within(lambda: "close"):
                        system.close()
                except Hung as hung:
                    self._warn(f"{_named(system)}: {hung}{_at(hung)}; {_UNCHANGED}")
                except (Exception, SystemExit) as error:
                    told = " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())
                    self._warn(f"{_named(system)}: close raised {told}{_at(error)}; {_UNCHANGED}")


def _named(system: Closable) -> str:
    return str(getattr(system, "name", type(system).__name__))


def _at(error: BaseException) -> str:
    found = raised_at(error)
    return "" if found is None else f" ({found})"
