"""What leaders owe whoever has asked them for something, and the model has no word for: an answer.

A request for what is in remote storage waits for the store, and a produce for the ISR: both are answered by what comes
of it, or when their time is over. So in the end nobody waits who asked a leader that leads still, in the same leader
epoch; whose leader has another role, or is gone, asks another one when its own patience is over (``ended`` of
``impl/tiering/remote.py``, ``DelayedOperationPurgatory`` in Kafka).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from ....impl.wire.messages import (
    Envelope,
    FetchRequest,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    TopicPartition,
)

REQUESTS: Final = (FetchRequest, ListOffsetsRequest, OffsetsForLeaderEpochRequest, ProduceRequest)


class Owed:
    """The requests of one run that were not answered yet.

    ``leader_of`` gives the role of a broker that is up as the leader of a partition, one object for a leader epoch of
    one process; None where it does not lead it.
    """

    def __init__(self, leader_of: Callable[[int, TopicPartition], Any]) -> None:
        self._leader_of = leader_of
        self._waiting: dict[tuple[int, int, int], tuple[Envelope, Any]] = {}
        """By broker, sender and correlation id: the request, and the role in which it was taken."""

    def arrives(self, envelope: Envelope) -> None:
        """A message is about to be taken by a broker that is up."""
        body: Any = envelope.body
        if isinstance(body, REQUESTS):
            leader = self._leader_of(envelope.destination, body.partition)
            if leader is not None:
                self._waiting[envelope.destination, envelope.source, envelope.correlation] = envelope, leader

    def was_sent(self, envelope: Envelope) -> None:
        """A message is sent: it may be an answer."""
        self._waiting.pop((envelope.source, envelope.destination, envelope.correlation), None)

    def unanswered(self, well: Collection[int]) -> str | None:
        """Who waits for a broker that is ``well``, in words that follow "and yet"; None where nobody does."""
        for (node, source, _), (request, leader) in sorted(self._waiting.items(), key=lambda each: each[0]):
            body: Any = request.body
            if node in well and self._leader_of(node, body.partition) is leader:
                who = f"broker {source}" if source >= 0 else "a client"
                what = type(body).__name__.removesuffix("Request")
                return f"broker {node}, which leads {body.partition}, has not answered the {what} of {who}"
        return None
