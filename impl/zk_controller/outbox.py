"""The controller's requests that wait for an answer. At most one of each kind for each broker and partition.

A newer request takes the place of the older one, answered or not. One that is not answered in time is built anew, from
what the controller knows by then, and sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple
from uuid import UUID

from ..net.interface import Clock, Transport
from ..wire.messages import BROKER_PRINCIPAL, NO_TOPIC_ID, Envelope, Request, TopicPartition


class Kind(Enum):
    """What a request is about."""

    LEADER_AND_ISR = auto()
    STOP_REPLICA = auto()
    OFFLINE_REPLICAS = auto()
    METADATA = auto()


class RequestKey(NamedTuple):
    """Which request: there is one of each."""

    kind: Kind
    broker: int
    partition: TopicPartition
    topic_id: UUID = NO_TOPIC_ID
    """Of a topic that is deleted: the partition of now may be another's."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    correlation: int
    deadline: int


class Outbox:
    """Sends requests until they are answered.

    ``build`` gives the body of a request when it is sent. ``correlation`` is the first correlation id; ``retry`` is in
    milliseconds.
    """

    def __init__(
        self,
        address: int,
        transport: Transport,
        clock: Clock,
        build: Callable[[RequestKey], Request],
        *,
        correlation: int,
        retry: int,
    ) -> None:
        self._address = address
        self._transport = transport
        self._clock = clock
        self._build = build
        self._next = correlation
        self._retry = retry
        # Each goes in at the end when it is sent, so the first is the next to be sent again.
        self._waiting: dict[RequestKey, _Waiting] = {}
        self._keys: dict[int, RequestKey] = {}

    def resume(self, keys: Iterable[RequestKey]) -> None:
        """Take in requests that are due at once, before any other."""
        assert not self._waiting, "requests wait already"
        now = self._clock.now()
        self._waiting = {key: _Waiting(-1, now) for key in keys}

    def post(self, key: RequestKey) -> None:
        """Send a request now."""
        self.forget(key)
        correlation = self._next
        self._next += 1
        self._waiting[key] = _Waiting(correlation, self._clock.now() + self._retry)
        self._keys[correlation] = key
        body = self._build(key)
        self._transport.send(Envelope(self._address, key.broker, correlation, body, BROKER_PRINCIPAL))

    def forget(self, key: RequestKey) -> None:
        """Wait no more, where it does."""
        waiting = self._waiting.pop(key, None)
        if waiting is not None:
            self._keys.pop(waiting.correlation, None)

    def forget_broker(self, broker: int) -> None:
        """Wait for none of this broker's answers."""
        for key in [key for key in self._waiting if key.broker == broker]:
            self.forget(key)

    def forget_partition(self, partition: TopicPartition) -> None:
        """Wait for no answer to what was said of a partition that is deleted."""
        for key in [key for key in self._waiting if key.partition == partition and key.topic_id == NO_TOPIC_ID]:
            self.forget(key)

    def waits(self, key: RequestKey) -> bool:
        """Whether the request is on its way and not answered."""
        return key in self._waiting

    def answered(self, correlation: int) -> RequestKey | None:
        """Which request an answer belongs to; ``None`` where nobody waits for it. It goes on waiting."""
        return self._keys.get(correlation)

    def deadline(self) -> int | None:
        """When the next request is to be sent again, in the clock's milliseconds."""
        return next((waiting.deadline for waiting in self._waiting.values()), None)

    def send_again(self) -> None:
        """Send what is due."""
        now = self._clock.now()
        due = []
        for key, waiting in self._waiting.items():
            if waiting.deadline > now:
                break
            due.append(key)
        for key in due:
            self.post(key)
