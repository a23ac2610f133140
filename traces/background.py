"""A call that goes on beside the rest, in a thread that nobody waits for when the process is to end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """A call that has begun. The pools of ``concurrent.futures`` would hold up an interrupt until it is over."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._result: T
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:
            self._error = error

    @property
    def over(self) -> bool:
        """Whether the call has ended, in whatever way."""
        return not self._thread.is_alive()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is over, for so many seconds at most."""
        self._thread.join(seconds)

    def result(self, seconds: float | None = None) -> T:
        """What the call returns, once it has; raises what it raises, and TimeoutError after so many seconds."""
        self.wait(seconds)
        if not self.over:
            raise TimeoutError(f"not over after {seconds} s")
        if self._error is not None:
            raise self._error
        return self._result
