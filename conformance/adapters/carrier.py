"""Messages that go only when they are told to: each is delivered, lost, repeated or kept back by hand.

An adapter lays out schedules of such messages, so that a step of the model is a run of the system.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

from ...impl.net.clock import SimulatedClock
from ...impl.net.faults import Faults, Flight
from ...impl.net.simulated import SimulatedNetwork
from ...impl.wire.errors import ErrorCode
from ...impl.wire.messages import (
    BROKER_PRINCIPAL,
    Envelope,
    FetchResponse,
    OffsetsForLeaderEpochResponse,
    ProduceResponse,
    Response,
)
from ...impl.wire.quorum import QuorumResponse
from ..lockstep.faults import TIMED_OUT, Kind

CLIENT: Final = -100
LOSES: Final = frozenset({Kind.LOSE_REQUEST, Kind.LOSE_RESPONSE, Kind.DELAY_RESPONSE})
"""The faults after which the asker has no answer."""
_OF_BROKERS: Final = (FetchResponse, OffsetsForLeaderEpochResponse, ProduceResponse)
LIFE: Final = 1 << 48
"""Correlation ids of one process of a node; those of messages in somebody's name are below all of them."""

Request_ = TypeVar("Request_")
Response_ = TypeVar("Response_")


class Carrier(Generic[Request_, Response_]):
    """A network without a will of its own, on a clock that stands still, and the responses that it keeps back."""

    def __init__(self, seed: int) -> None:
        self.clock = SimulatedClock()
        self.network = SimulatedNetwork(
            seed,
            clock=self.clock,
            faults=Faults(latency=(0, 0)),
            hold_if=lambda _envelope: True,
            observer=self._observe,
        )
        self.late: list[Flight] = []
        """Responses that were kept back, the oldest first."""
        self.answered: Response_ | None = None
        """What the last request that was carried was answered with, if it arrived, whether or not the answer did."""
        self._correlation = 0

    def _observe(self, what: str, _moment: int, envelope: Envelope) -> None:
        if what == "sent":
            self._notice(envelope)

    def _notice(self, envelope: Envelope) -> None:
        """Told of every message that is sent, whether it can reach anybody or not."""

    def sent(self, source: int, destination: int) -> Flight | None:
        """The message that was sent last on this way, and is not kept back."""
        flights = [f for f in self.network.in_flight(source=source, destination=destination) if f not in self.late]
        return flights[-1] if flights else None

    def ask(self, source: int, destination: int, body: Request_, principal: str = BROKER_PRINCIPAL) -> Flight | None:
        """Send a request in somebody's name; None where the way is cut."""
        self._correlation -= 1  # those of nodes count up
        self.network.send(Envelope(source, destination, self._correlation, cast(Any, body), principal))
        return self.sent(source, destination)

    def carry(
        self, flight: Flight | None, fault: Kind | None = None, wanted: Callable[[Response_], bool] = lambda _: True
    ) -> Response_ | None:
        """Carry a request to its receiver and the answer back, with a fault on the way; the answer unless it was lost.

        An answer that is not ``wanted`` is seen, but does not arrive.
        """
        self.answered = None
        if flight is None:
            return None
        if fault is Kind.LOSE_REQUEST:
            self.network.drop(flight)
            return None
        request = flight.envelope
        if fault is Kind.DUPLICATE_REQUEST:
            self.network.deliver(flight, keep=True)
        self.network.deliver(flight)
        answers = [
            each
            for each in self.network.in_flight(source=request.destination, destination=request.source)
            if each.envelope.correlation == request.correlation and each not in self.late
        ]
        if not answers:
            return None
        body = self.answered = cast(Response_, answers[0].envelope.body)
        if fault is Kind.DELAY_RESPONSE:
            self.late += answers
            return None
        if fault is Kind.LOSE_RESPONSE or not wanted(body):
            for answer in answers:
                self.network.drop(answer)
            return None if fault is Kind.LOSE_RESPONSE else body
        if fault is Kind.DUPLICATE_RESPONSE:
            self.network.deliver(answers[0], keep=True)
        for answer in answers:
            self.network.deliver(answer)
        return body

    def deliver_late(self) -> None:
        """Let the oldest response that was kept back arrive."""
        if self.late:
            self.network.deliver(self.late.pop(0))

    def lose(self, source: int, destination: int) -> None:
        """Lose what was sent last on this way, if anything was."""
        flight = self.sent(source, destination)
        if flight is not None:
            self.network.drop(flight)


def error_name(answer: Response | QuorumResponse | None) -> str | None:
    """The error of an answer as the models name it; one that did not come is a timeout."""
    if answer is None:
        return TIMED_OUT
    unknown = answer.error is ErrorCode.UNKNOWN_TOPIC_ID and isinstance(answer, _OF_BROKERS)
    if unknown or answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER.name  # the broker was told of no leader epoch of the partition yet
    return None if answer.error is ErrorCode.NONE else answer.error.name
