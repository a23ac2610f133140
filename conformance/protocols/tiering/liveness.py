"""What leaders owe whoever has asked them for something, and the model has no word for: an answer.

A request for what is in remote storage waits for the store, and a produce for the ISR: both are answered by what comes
of it, or when their time is over. So in the end nobody waits who asked a leader that leads still, in the same leader
epoch, and nobody for longer than its time whose leader waits for nothing else; whose leader has another role, or is
gone, asks another one when its own patience is over (``ended`` of ``impl/tiering/remote.py``,
``DelayedOperationPurgatory`` in Kafka).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from ....impl.wire.messages import (
    Envelope,
    FetchRequest,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    TopicPartition,
)
from ...lockstep.adapter import Contradiction

REQUESTS: Final = (FetchRequest, ListOffsetsRequest, OffsetsForLeaderEpochRequest, ProduceRequest)


class Unanswered(Contradiction):
    """Somebody waits for an answer longer than its time is."""


class Owed:
    """The requests of one run that were not answered yet.

    ``leader_of`` gives the role of a broker that is up as the leader of a partition, one object for a leader epoch of
    one process; None where it does not lead it.
    """

    def __init__(self, leader_of: Callable[[int, TopicPartition], Any]) -> None:
        self._leader_of = leader_of
        self._waiting: dict[tuple[int, int, int], tuple[Envelope, Any, int]] = {}
        """By broker, sender and correlation id: the request, the role in which it was taken, and when."""

    def arrives(self, envelope: Envelope, now: int) -> None:
        """A message is about to be taken by a broker that is up."""
        body: Any = envelope.body
        if isinstance(body, REQUESTS):
            leader = self._leader_of(envelope.destination, body.partition)
            if leader is not None:
                self._waiting[envelope.destination, envelope.source, envelope.correlation] = envelope, leader, now

    def was_sent(self, envelope: Envelope) -> None:
        """A message is sent: it may be an answer."""
        self._waiting.pop((envelope.source, envelope.destination, envelope.correlation), None)

    def unanswered(self, well: Collection[int]) -> str | None:
        """Who waits for a broker that is ``well``, in words that follow "and yet"; None where nobody does."""
        for (node, source, _), (request, _, _) in self._of_leaders():
            if node in well:
                return _told(node, source, request)
        return None

    def check_in_time(self, node: int, now: int, patience: int) -> None:
        """A broker that waits for nothing, and has done all that is due, has answered what was asked ``patience`` ago.

        Raises ``Unanswered``.
        """
        for (at, source, _), (request, _, since) in self._of_leaders():
            if at == node and now - since > patience:
                raise Unanswered(f"{_told(node, source, request)} for {now - since} ms")

    def _of_leaders(self) -> Iterator[tuple[tuple[int, int, int], tuple[Envelope, Any, int]]]:
        """What waits for who leads still, in the role in which it was asked."""
        for key, waiting in sorted(self._waiting.items(), key=lambda each: each[0]):
            body: Any = waiting[0].body
            if self._leader_of(key[0], body.partition) is waiting[1]:
                yield key, waiting


def _told(node: int, source: int, request: Envelope) -> str:
    body: Any = request.body
    who = f"broker {source}" if source >= 0 else "a client"
    what = type(body).__name__.removesuffix("Request")
    return f"broker {node}, which leads {body.partition}, has not answered the {what} of {who}"
