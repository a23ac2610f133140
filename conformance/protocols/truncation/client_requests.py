"""Whether a consumer asks anew who leads, where whom it took for the leader has not answered, or is not the leader.

No single state shows that it never will: it may do so at any later time, as far as the model knows. But what it asks
next shows it. After a time-out, and after an error that says that the leader may be another one, the next request for
the partition is for metadata; until then no leader is asked again (``NetworkClient.handleTimedOutRequests`` and
``FetchUtils.requestMetadataUpdate`` in Kafka).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ....impl.wire.messages import (
    Envelope,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetsForLeaderEpochRequest,
    TopicPartition,
)
from .commits import WrongAnswer

_OF_LEADER: Final = (FetchRequest, ListOffsetsRequest, OffsetsForLeaderEpochRequest)


class Asking:
    """The requests of one consumer, whatever it reads."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout = timeout_ms
        self._open: dict[TopicPartition, tuple[int, int, int]] = {}
        """By partition: the request to a leader that is not over: its correlation id, whom it asks, when it is over."""
        self._doubts: dict[TopicPartition, str] = {}
        """By partition of which the leader is to be asked for: why."""

    def forget(self) -> None:
        """The process ends."""
        self._open.clear()
        self._doubts.clear()

    def look(
        self,
        address: int,
        told: Sequence[tuple[str, Envelope]],
        waits: Callable[[TopicPartition], bool],
        now: int,
        *,
        woken: bool,
    ) -> None:
        """After an event. ``told``: what was sent and delivered in it, in order; ``address``: the consumer's.

        ``waits``: whether it waits for an answer of a partition now; ``woken``: it was to give up what has timed out.
        Raises WrongAnswer.
        """
        if woken:
            for partition, (_, node, expires) in list(self._open.items()):
                if expires <= now:
                    self._doubts[partition] = f"broker {node} has not answered"
                    del self._open[partition]
        for what, envelope in told:
            if what == "sent" and envelope.source == address:
                self._sent(envelope, now)
            elif what == "delivered" and envelope.destination == address:
                self._heard(envelope)
        # What the application has it forget, by a seek, is over as well.
        self._open = {partition: each for partition, each in self._open.items() if waits(partition)}

    def _sent(self, envelope: Envelope, now: int) -> None:
        body = envelope.body
        if isinstance(body, MetadataRequest):
            self._doubts.pop(body.partition, None)
        elif isinstance(body, _OF_LEADER):
            why = self._doubts.get(body.partition)
            if why is not None:
                what = f"{type(body).__name__} to broker {envelope.destination}"
                raise WrongAnswer(f"{why}, and a consumer sends {what} before it has asked who leads")
            self._open[body.partition] = envelope.correlation, envelope.destination, now + self._timeout

    def _heard(self, envelope: Envelope) -> None:
        body: Any = envelope.body
        for partition, (correlation, node, _) in list(self._open.items()):
            if (correlation, node) == (envelope.correlation, envelope.source):
                del self._open[partition]
                if body.error.retriable:
                    self._doubts[partition] = f"broker {node} has answered {body.error.name}"
