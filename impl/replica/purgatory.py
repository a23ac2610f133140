"""Produce requests with acks=-1 that wait for the high watermark (``DelayedProduce`` in Kafka)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..wire.errors import ErrorCode
from ..wire.messages import NO_OFFSET, Envelope, ProduceResponse, TopicPartition
from .runtime import Runtime


@dataclass(frozen=True, slots=True)
class Waiting:
    """A produce whose records are in the leader's log."""

    required: int
    """It is done when the high watermark has reached this offset."""
    deadline: int
    envelope: Envelope
    base_offset: int


class Purgatory:
    """What waits, in the order in which it came. Its timer is ``("produce", partition)``."""

    def __init__(self, runtime: Runtime, key: TopicPartition) -> None:
        self._runtime = runtime
        self._timer = "produce", key
        self._waiting: list[Waiting] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, envelope: Envelope, base_offset: int, required: int) -> None:
        """Let one wait, for ``request_timeout_ms`` at most."""
        deadline = self._runtime.clock.now() + self._runtime.config.request_timeout_ms
        self._waiting.append(Waiting(required, deadline, envelope, base_offset))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._waiting:
            self._runtime.timers.set(self._timer, min(each.deadline for each in self._waiting))
        else:
            self._runtime.timers.cancel(self._timer)

    def _take(self, done: Callable[[Waiting], bool], error: ErrorCode, log_start: int = NO_OFFSET) -> None:
        taken = [each for each in self._waiting if done(each)]
        if taken:
            self._waiting = [each for each in self._waiting if not done(each)]
            self._set_timer()
        for each in taken:
            base_offset = each.base_offset if error is ErrorCode.NONE else NO_OFFSET
            self._runtime.respond(each.envelope, ProduceResponse(error, base_offset, log_start))

    def reached(self, high_watermark: int, error: ErrorCode, log_start: int) -> None:
        """Answer those that are done, with ``error``: NONE, or that the ISR is too small by now."""
        self._take(lambda each: each.required <= high_watermark, error, log_start)

    def expire(self) -> None:
        """Answer those whose time is over with REQUEST_TIMED_OUT. Their records stay in the log."""
        now = self._runtime.clock.now()
        self._take(lambda each: each.deadline <= now, ErrorCode.REQUEST_TIMED_OUT)
        self._set_timer()

    def fail(self, error: ErrorCode) -> None:
        """Answer all: the replica leads no more."""
        self._take(lambda _: True, error)
