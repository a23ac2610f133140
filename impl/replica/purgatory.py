"""Produce requests with acks=-1 that wait for the high watermark (``DelayedProduce`` in Kafka)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..wire.errors import ErrorCode
from ..wire.messages import Envelope


@dataclass(frozen=True, slots=True)
class Waiting:
    """A produce whose records are in the leader's log."""

    required: int
    """It is done when the high watermark has reached this offset."""
    deadline: int
    envelope: Envelope
    base_offset: int


Answer = Callable[[Waiting, ErrorCode], None]


class Purgatory:
    """What waits, in the order in which it came; ``answer`` is called once for each."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._waiting: list[Waiting] = []

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def deadline(self) -> int | None:
        """When the first one gives up."""
        return min((each.deadline for each in self._waiting), default=None)

    def add(self, waiting: Waiting) -> None:
        """Let one wait."""
        self._waiting.append(waiting)

    def _take(self, done: Callable[[Waiting], bool], error: ErrorCode) -> None:
        taken = [each for each in self._waiting if done(each)]
        if taken:
            self._waiting = [each for each in self._waiting if not done(each)]
            for each in taken:
                self._answer(each, error)

    def reached(self, high_watermark: int, error: ErrorCode) -> None:
        """Answer those that are done, with ``error``: NONE, or that the ISR is too small by now."""
        self._take(lambda each: each.required <= high_watermark, error)

    def expire(self, now: int) -> None:
        """Answer those whose time is over with REQUEST_TIMED_OUT. Their records stay in the log."""
        self._take(lambda each: each.deadline <= now, ErrorCode.REQUEST_TIMED_OUT)

    def fail(self, error: ErrorCode) -> None:
        """Answer all: the replica leads no more."""
        self._take(lambda _: True, error)
