"""What a broker has done outside of its one thread, or after a time: requests to the store. It never waits for them."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from ..net.interface import Clock


class Job(Protocol):
    """One piece of work."""

    def due(self) -> int:
        """When to look at it next, in the clock's milliseconds."""

    def done(self) -> bool:
        """Whether it has come to an end; asked when it is due."""

    def result(self) -> Any:
        """What it gave; raises what it raised."""


class Jobs(Protocol):
    """Where work is done."""

    def submit(self, work: Callable[[], Any]) -> Job:
        """Begin with it, at once or later."""

    def close(self) -> None:
        """The broker is gone: what has not begun is not done."""


class _Later:
    """Work that is done all at once when its time has come."""

    def __init__(self, work: Callable[[], Any], clock: Clock, at: int) -> None:
        self._work = work
        self._clock = clock
        self._at = at
        self._result: Any = None
        self._error: Exception | None = None
        self._ran = False

    def due(self) -> int:
        return self._at

    def done(self) -> bool:
        if not self._ran and self._clock.now() >= self._at:
            self._ran = True
            try:
                self._result = self._work()
            except Exception as error:
                self._error = error
        return self._ran

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


class SimulatedJobs:
    """Work takes a time from ``latency`` (milliseconds, both included) that the seed draws, and is done at its end."""

    def __init__(self, clock: Clock, seed: int = 0, latency: tuple[int, int] = (0, 0)) -> None:
        self._clock = clock
        self._chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self.latency = latency

    def submit(self, work: Callable[[], Any]) -> Job:
        """Draw how long it takes."""
        return _Later(work, self._clock, self._clock.now() + self._chance.randint(*self.latency))

    def close(self) -> None:
        """Nobody looks at what is left."""


class _Threaded:
    def __init__(self, future: Future[Any], clock: Clock, poll: int) -> None:
        self._future = future
        self._clock = clock
        self._poll = poll

    def due(self) -> int:
        return self._clock.now() + (0 if self._future.done() else self._poll)

    def done(self) -> bool:
        return self._future.done()

    def result(self) -> Any:
        return self._future.result()


class ThreadJobs:
    """Work is done by some threads (``remote.log.manager.thread.pool.size``); every ``poll_ms`` it is looked at."""

    def __init__(self, clock: Clock, threads: int = 4, poll_ms: int = 2) -> None:
        self._clock = clock
        self._poll = poll_ms
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="remote-log")

    def submit(self, work: Callable[[], Any]) -> Job:
        """Let a thread do it."""
        return _Threaded(self._pool.submit(work), self._clock, self._poll)

    def close(self) -> None:
        """Wait for what has begun."""
        self._pool.shutdown(cancel_futures=True)
