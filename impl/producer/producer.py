"""The producer client: an ``Endpoint`` that sends what an application gives it, until it is acknowledged by all.

Idempotent, always with acks=-1: each partition's records are in the log in the order in which they were given, and each
once, whatever the network loses, repeats and overtakes and whoever leads.
"""

from __future__ import annotations

from ..log.records import NO_TIMESTAMP, Record
from ..net.interface import Clock, Transport
from ..wire.messages import (
    Envelope,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
    Request,
    TopicPartition,
)
from .batches import Outgoing, Queue, record_bytes
from .config import BufferExhausted, Delivery, PartitionFailed, ProducerConfig, RecordTooLarge

_ACKS_ALL = -1


class Producer:
    """One producer. ``send`` only takes a record; its host lets it do the rest.

    A record that cannot be delivered fails its partition: what comes after it would overtake it. The application goes
    on with another producer of the same id and the next epoch, whose sequence numbers begin anew.
    """

    def __init__(self, transport: Transport, clock: Clock, config: ProducerConfig) -> None:
        self.config = config
        self._transport = transport
        self._clock = clock
        self._queues: dict[TopicPartition, Queue] = {}
        # A request that awaits its answer: its destination, and the batch (``None``: it asks for metadata).
        self._sent: dict[int, tuple[int, Queue, Outgoing | None]] = {}
        self._correlation = config.first_correlation
        self._broker = 0

    # -- the application --------------------------------------------------------------------------------------------

    def send(self, partition: TopicPartition, record: Record) -> Delivery:
        """Take a record; one without a timestamp gets the present one.

        Raises ``RecordTooLarge``, ``BufferExhausted`` and, once a record of the partition was given up,
        ``PartitionFailed``.
        """
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = Queue(partition, self.config)
        if queue.failed is not None:
            mend = f"take producer epoch {self.config.producer_epoch + 1}"
            raise PartitionFailed(f"{partition}: a record was given up ({queue.failed.name}); {mend}")
        size = record_bytes(record)
        if size > self.config.max_request_bytes:
            limit = f"max_request_bytes is {self.config.max_request_bytes}"
            raise RecordTooLarge(f"{partition}: a record of {size} bytes, {limit}; split it, or raise the limit")
        if self.buffered + size > self.config.buffer_bytes:
            raise BufferExhausted(f"{partition}: {self.buffered} bytes wait already; let the producer send them first")
        if record.timestamp == NO_TIMESTAMP:
            record = record._replace(timestamp=self._clock.wall())
        return queue.add(record, size, self._clock.now())

    @property
    def pending(self) -> int:
        """Records that are neither acknowledged nor given up."""
        return sum(queue.pending for queue in self._queues.values())

    @property
    def buffered(self) -> int:
        """Bytes of those."""
        return sum(queue.bytes for queue in self._queues.values())

    # -- endpoint ---------------------------------------------------------------------------------------------------

    @property
    def address(self) -> int:
        """Where answers reach it."""
        return self.config.address

    def deadline(self) -> int | None:
        """When a batch is to be sent, or a request times out."""
        return min((at for queue in self._queues.values() if (at := queue.deadline()) is not None), default=None)

    def wake(self) -> None:
        """Give up what has timed out, and send what is due."""
        for queue in self._queues.values():
            self._forget(queue.expire(self._clock.now()))
            self._advance(queue)

    def receive(self, envelope: Envelope) -> None:
        """Take an answer. One that is late, repeated, or of another sender changes nothing."""
        sent = self._sent.get(envelope.correlation)
        if sent is None or sent[0] != envelope.source:
            return
        _, queue, batch = sent
        body, now = envelope.body, self._clock.now()
        if batch is None and isinstance(body, MetadataResponse):
            queue.take_metadata(body, now)
        elif batch is not None and isinstance(body, ProduceResponse):
            self._forget(queue.take(batch, body, now))
        else:
            return
        self._forget([envelope.correlation])
        self._advance(queue)

    def _forget(self, correlations: list[int]) -> None:
        for correlation in correlations:
            self._sent.pop(correlation, None)

    def _advance(self, queue: Queue) -> None:
        now = self._clock.now()
        if queue.wants_metadata(now):
            broker = self.config.brokers[self._broker]
            self._broker = (self._broker + 1) % len(self.config.brokers)
            queue.asking = self._request(broker, MetadataRequest(queue.partition), queue, None)
            queue.asking_expires = now + self.config.request_timeout_ms
        while (batch := queue.due(now)) is not None:
            request = ProduceRequest(queue.partition, _ACKS_ALL, batch.data)
            queue.sent(batch, self._request(queue.leader, request, queue, batch), now)

    def _request(self, destination: int, body: Request, queue: Queue, batch: Outgoing | None) -> int:
        correlation = self._correlation
        self._correlation += 1
        self._sent[correlation] = destination, queue, batch
        self._transport.send(Envelope(self.address, destination, correlation, body, self.config.principal))
        return correlation
