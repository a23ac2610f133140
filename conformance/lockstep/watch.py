"""A time limit for each call of an adapter: a system that hangs is a finding, not the end of the harness.

A timer's signal interrupts Python code, sleeping and waiting. What cannot be interrupted (a lock taken in a C library,
code that swallows every exception) is met by a thread that says so and ends the process.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from types import FrameType
from typing import Final, Protocol, Self, TypeVar

from ...model.core.exit_code import exit_code
from ...traces.format import Value
from .adapter import Adapter, Outcome
from .faults import Fault, Kind

STEP_TIMEOUT: Final = 60.0
"""Seconds that one call may take unless somebody says otherwise: far more than any healthy step."""

GRACE: Final = 10.0
"""So many seconds after the limit, a call that could not be interrupted ends the process."""

HUNG_STATUS: Final = 97
"""A worker process ends with this status after it reported a hang. Python ends with 1 on any exception."""


class Hung(BaseException):
    """A call did not come back in time. No ``Exception``, so that a system that catches those does not catch this one.

    ``call`` says which: ``apply(follower_fetch(leader=0, follower=1))``.
    """

    def __init__(self, call: str, seconds: float) -> None:
        super().__init__(f"{call} did not come back within {seconds:g} s")
        self.call = call
        self.seconds = seconds


class Closable(Protocol):
    """A system that can be closed."""

    def close(self) -> None:
        """Release everything."""


_System = TypeVar("_System", bound=Closable)


class Limit:
    """The time limit of calls, in the main thread and as ``with``: ``within`` raises ``Hung`` after so many seconds.

    Elsewhere than in the main thread there is no signal, and only the thread that ends the process.

    ``hung``: whether a call has hung since this was last set to False. ``code`` and ``verdict``: exit code, and its
    reason, of a process that ends because a call cannot be interrupted.
    """

    def __init__(self, seconds: float = STEP_TIMEOUT, grace: float = GRACE) -> None:
        self.seconds = seconds
        self.grace = grace
        self.hung = False
        self.code: int = exit_code("violated") if parent_process() is None else HUNG_STATUS
        self.verdict = "the verdict is violated, and there is no trace"
        self._call: str | None = None
        self._due = 0.0
        self._over = threading.Event()
        self._signals = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        if self._signals:
            self._before = signal.signal(signal.SIGALRM, self._alarm)
        self._guard = threading.Thread(target=self._wait, daemon=True, name="step-timeout")
        self._guard.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._guard.join()
        if self._signals:
            signal.signal(signal.SIGALRM, self._before)

    @contextmanager
    def within(self, told: Callable[[], str]) -> Iterator[None]:
        """Limit what is done inside; ``told`` names it."""
        self._told = told
        self._due = time.monotonic() + self.seconds
        self._call = ""
        if self._signals:
            # Again and again: a system that swallows the first exception gets another.
            signal.setitimer(signal.ITIMER_REAL, self.seconds, 1.0)
        try:
            yield
        finally:
            self._call = None
            if self._signals:
                signal.setitimer(signal.ITIMER_REAL, 0.0)

    def replaced(self, system: _System, fresh: Callable[[_System], _System]) -> _System:
        """Close a system in which a call hung, and make another. Raises RuntimeError if that fails, and ``Hung``."""
        with suppress(Hung, Exception, SystemExit), self.within(lambda: "close"):
            system.close()
        self.hung = False
        try:
            with self.within(lambda: "making a fresh system"):
                return fresh(system)
        except Exception as error:
            # Not BadInput, which would end the command without the finding.
            raise RuntimeError(f"after a hung call no fresh system could be made: {error}") from error

    def _alarm(self, _number: int, _frame: FrameType | None) -> None:
        if self._call is not None:
            self.hung = True
            raise Hung(self._told(), self.seconds)

    def _wait(self) -> None:
        """Look now and then whether a call is long overdue, and end the process if one is."""
        while not self._over.wait(min(1.0, self.grace / 2)):
            if self._call is not None and time.monotonic() > self._due + self.grace:
                told = (
                    f"fencepost: {self._told()} did not come back within {self.seconds:g} s and cannot be interrupted"
                )
                print(f"{told}; {self.verdict}", file=sys.stderr, flush=True)
                faulthandler.dump_traceback(file=sys.__stderr__ or 2)
                os._exit(self.code)


class Watched(Limit):
    """An adapter whose calls raise ``Hung`` after so many seconds.

    A hung call may leave locks, threads or ports behind. If ``fresh`` is given, the next ``reset`` closes the hung
    adapter and continues with ``fresh(hung adapter)``.
    """

    def __init__(
        self,
        adapter: Adapter,
        seconds: float = STEP_TIMEOUT,
        grace: float = GRACE,
        *,
        fresh: Callable[[Adapter], Adapter] | None = None,
    ) -> None:
        super().__init__(seconds, grace)
        self.adapter = adapter
        self._fresh = fresh

    @property
    def name(self) -> str:
        """The adapter's."""
        return self.adapter.name

    @property
    def protocol(self) -> str:
        """The adapter's."""
        return self.adapter.protocol

    @property
    def variant(self) -> str:
        """The adapter's."""
        return self.adapter.variant

    @property
    def faults(self) -> Collection[Kind]:
        """The adapter's."""
        return self.adapter.faults

    def reset(self, constants: Mapping[str, int], seed: int) -> None:
        """As the adapter's, or a fresh adapter's after a hung call."""
        if self.hung and self._fresh is not None:
            self.adapter = self.replaced(self.adapter, self._fresh)
        with self.within(lambda: "reset"):
            self.adapter.reset(constants, seed)

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """As the adapter's."""

        def told() -> str:
            fits = ", ".join(f"{name}={value}" for name, value in params.items())
            return f"apply({action}({fits}){'' if fault is None else f' with {fault}'})"

        with self.within(told):
            return self.adapter.apply(action, params, fault)

    def observe(self) -> Mapping[str, Value]:
        """As the adapter's."""
        with self.within(lambda: "observe"):
            return self.adapter.observe()

    def inject(self, fault: Fault) -> Outcome:
        """As the adapter's."""
        with self.within(lambda: f"inject({fault})"):
            return self.adapter.inject(fault)

    def close(self) -> None:
        """As the adapter's."""
        self.adapter.close()
