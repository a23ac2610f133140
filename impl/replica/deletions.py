"""DeleteRecords requests that wait for the followers (``DelayedDeleteRecords`` in Kafka, KIP-107)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..wire.errors import ErrorCode
from ..wire.messages import NO_OFFSET, DeleteRecordsResponse, Envelope, TopicPartition
from .runtime import Runtime


@dataclass(frozen=True, slots=True)
class Waiting:
    """A deletion that the leader has done."""

    required: int
    """It is over when every live replica's log begins here, or later."""
    deadline: int
    envelope: Envelope


class Deletions:
    """What waits, in the order in which it came. Its timer is ``("delete", partition)``."""

    def __init__(self, runtime: Runtime, key: TopicPartition) -> None:
        self._runtime = runtime
        self._timer = "delete", key
        self._waiting: list[Waiting] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, envelope: Envelope, required: int) -> None:
        """Let one wait, for ``request_timeout_ms`` at most."""
        deadline = self._runtime.clock.now() + self._runtime.config.request_timeout_ms
        self._waiting.append(Waiting(required, deadline, envelope))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._waiting:
            self._runtime.timers.set(self._timer, min(each.deadline for each in self._waiting))
        else:
            self._runtime.timers.cancel(self._timer)

    def _take(self, done: Callable[[Waiting], bool], error: ErrorCode, low_watermark: int = NO_OFFSET) -> None:
        taken = [each for each in self._waiting if done(each)]
        if taken:
            self._waiting = [each for each in self._waiting if not done(each)]
            self._set_timer()
        for each in taken:
            self._runtime.respond(each.envelope, DeleteRecordsResponse(error, low_watermark))

    def reached(self, low_watermark: int) -> None:
        """Answer those that are over: every live replica's log begins at ``low_watermark``, or later."""
        self._take(lambda each: each.required <= low_watermark, ErrorCode.NONE, low_watermark)

    def expire(self) -> None:
        """Answer those whose time is over with REQUEST_TIMED_OUT. What is deleted stays so."""
        now = self._runtime.clock.now()
        self._take(lambda each: each.deadline <= now, ErrorCode.REQUEST_TIMED_OUT)
        self._set_timer()

    def fail(self, error: ErrorCode) -> None:
        """Answer all: the replica leads no more."""
        self._take(lambda _: True, error)
