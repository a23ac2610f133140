"""Between a broker and the network: it speaks to the active controller as to that of ZooKeeper's time, and to other
brokers with the epoch of its process.

An AlterIsr becomes an AlterPartition with the broker epochs of the ISR's members (KIP-903), each as the member's last
fetch in this process told it. What a follower asks has its process's epoch with it, and is refused where that process
is over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..metadata.image import Image
from ..net.interface import Transport
from ..replica.runtime import Requests
from ..replica.validate import names_partition
from ..wire.controller import (
    NO_BROKER_EPOCH,
    AlterPartitionRequest,
    AlterPartitionResponse,
    IsrMember,
    ReplicaRequest,
)
from ..wire.errors import ErrorCode
from ..wire.messages import (
    BROKER_PRINCIPAL,
    CONTROLLER,
    AlterIsrRequest,
    AlterIsrResponse,
    Envelope,
    FetchRequest,
    FetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    TopicPartition,
)


class Gateway:
    """The ``Transport`` of the broker inside. ``receive`` hands a message to that broker.

    ``epoch``: that of the broker's process. ``to``: the controller.
    """

    def __init__(
        self,
        transport: Transport,
        requests: Requests,
        *,
        epoch: Callable[[], int],
        image: Callable[[], Image],
        to: Callable[[], int],
        receive: Callable[[Envelope], None],
    ) -> None:
        self._transport = transport
        self._requests = requests
        self._epoch = epoch
        self._image = image
        self._to = to
        self._receive = receive
        self._fetched: dict[tuple[TopicPartition, int], int] = {}
        """The epoch in the last fetch of each follower that was served: that process has what the leader counts."""
        self._asked: dict[TopicPartition, int] = {}
        """The AlterPartition of each partition that was sent last: the broker has one in hand at a time."""
        self._fetching: Envelope | None = None
        self._served = False
        self.answer: Any = None
        """What the broker has last answered to its controller."""

    def send(self, envelope: Envelope) -> None:
        """Send what the broker sends, as it is or in the form that others understand."""
        body = envelope.body
        if isinstance(body, AlterIsrRequest):
            self._alter_partition(envelope, body)
        elif envelope.destination == CONTROLLER:
            self.answer = body
        elif isinstance(body, FetchRequest | OffsetsForLeaderEpochRequest):
            self._transport.send(_with(envelope, ReplicaRequest(self._epoch(), body)))
        else:
            self._look(envelope)
            self._transport.send(envelope)

    def serve(self, envelope: Envelope, body: ReplicaRequest) -> None:
        """A follower's request: for the broker to answer, unless the process that asks is known to be over."""
        asked = body.body
        error = self._error(body)
        if error is ErrorCode.NONE:
            self._fetching, self._served = envelope, False
            self._receive(_with(envelope, asked))
            self._fetching = None
            if self._served:
                self._fetched[asked.partition, asked.replica_id] = body.replica_epoch
        elif isinstance(asked, OffsetsForLeaderEpochRequest):
            self._requests.respond(envelope, OffsetsForLeaderEpochResponse(error))
        else:
            self._requests.respond(envelope, FetchResponse(error))

    def _error(self, body: ReplicaRequest) -> ErrorCode:
        asked = body.body
        if not isinstance(asked, FetchRequest | OffsetsForLeaderEpochRequest) or type(body.replica_epoch) is not int:
            return ErrorCode.INVALID_REQUEST
        if not names_partition(asked.partition) or type(asked.replica_id) is not int:
            return ErrorCode.INVALID_REQUEST
        known = self._image().brokers.get(asked.replica_id)
        last = self._fetched.get((asked.partition, asked.replica_id), NO_BROKER_EPOCH)
        over = body.replica_epoch < max(last, NO_BROKER_EPOCH if known is None else known.epoch)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if over else ErrorCode.NONE

    def _look(self, envelope: Envelope) -> None:
        """Whether this serves the fetch that is being looked at: a fetch is answered at once."""
        asked, body = self._fetching, envelope.body
        if asked is not None and isinstance(body, FetchResponse):
            back = envelope.destination, envelope.correlation
            self._served = back == (asked.source, asked.correlation) and body.error is ErrorCode.NONE

    def forget(self, partition: TopicPartition) -> None:
        """A partition is gone: what its followers fetched says nothing of the next of its name."""
        self._requests.forget(self._asked.pop(partition, None))
        for follower in [each for each in self._fetched if each[0] == partition]:
            del self._fetched[follower]

    def _alter_partition(self, envelope: Envelope, body: AlterIsrRequest) -> None:
        members = tuple(
            IsrMember(each, self._epoch_of(body.partition, each, body.broker)) for each in sorted(body.new_isr)
        )
        asked = AlterPartitionRequest(
            body.broker, self._epoch(), body.topic_id, body.partition, body.leader_epoch, members, body.partition_epoch
        )

        def answered(told: object) -> None:
            if isinstance(told, AlterPartitionResponse) and told.partition == body.partition:
                answer = AlterIsrResponse(
                    told.error, told.partition, told.leader, told.leader_epoch, told.isr, told.partition_epoch
                )
                self._receive(Envelope(CONTROLLER, envelope.source, envelope.correlation, answer, BROKER_PRINCIPAL))

        self._requests.forget(self._asked.get(body.partition))
        self._asked[body.partition] = self._requests.request(self._to(), asked, answered)

    def _epoch_of(self, partition: TopicPartition, replica: int, leader: int) -> int:
        return self._epoch() if replica == leader else self._fetched.get((partition, replica), NO_BROKER_EPOCH)


def _with(envelope: Envelope, body: FetchRequest | OffsetsForLeaderEpochRequest | ReplicaRequest) -> Envelope:
    return Envelope(envelope.source, envelope.destination, envelope.correlation, body, envelope.principal)
