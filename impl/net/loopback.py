"""A host in real time and one thread: every message arrives, in order, in the process that sent it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from ..wire.messages import Envelope
from .clock import RealClock
from .host import BudgetExceeded, Host
from .interface import Clock

_NAP = 50
"""The longest sleep, in milliseconds, so that a condition over something outside is seen in time."""


class LoopbackHost(Host):
    """Transport and host of endpoints in real time. A message to an endpoint that is down vanishes."""

    def __init__(self, clock: Clock | None = None, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """``sleep`` takes seconds; a test gives one that moves its clock."""
        super().__init__()
        self.clock = clock or RealClock()
        self._sleep = sleep
        self._queue: deque[Envelope] = deque()

    def send(self, envelope: Envelope) -> None:
        """Take a message on its way."""
        self._queue.append(envelope)

    def step(self) -> bool:
        """Deliver the next message or wake the next endpoint whose time has come; ``False`` where neither is there."""
        # Deadlines come first: in a stream of messages they would else never be met.
        wake = self._next_wake()
        if wake is not None and wake[0] <= self.clock.now():
            self._wake(wake[1])
            return True
        if not self._queue:
            return False
        envelope = self._queue.popleft()
        endpoint = self._endpoints.get(envelope.destination)
        if endpoint is not None:
            endpoint.receive(envelope)
            self._asked(envelope.destination, endpoint)
        return True

    def run(self, until: Callable[[], bool], *, timeout: int) -> None:
        """Run until the condition holds. Raises ``BudgetExceeded`` after ``timeout`` milliseconds."""
        self.refresh()
        end = self.clock.now() + timeout
        while not until():
            left = end - self.clock.now()
            if left <= 0:
                raise BudgetExceeded(
                    f"loopback host: not done after {timeout} ms, with {len(self._queue)} messages on their way; "
                    "raise the timeout, or look at the endpoints"
                )
            if not self.step():
                wake = self._next_wake()
                nap = left if wake is None else min(left, wake[0] - self.clock.now())
                self._sleep(max(0, min(nap, _NAP)) / 1000)
