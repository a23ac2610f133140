"""One partition's batches on their way, in order, and what each answer changes. No input or output.

The batches that are not acknowledged stand in a row, the oldest first, and the last of them still takes records. Each
has the sequence number of its first record from the start, so that a repeat is known by the leader as one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ..log.batch import HEADER_BYTES, encode_batch
from ..log.records import Record
from ..wire.errors import ErrorCode
from ..wire.messages import NO_EPOCH, NO_LEADER, MetadataResponse, ProduceResponse, TopicPartition
from .config import Delivery, ProducerConfig

_SEQUENCES = 1 << 31
"""Sequence numbers go around here."""
_RECORD_BYTES = 36
"""At most so many bytes of a record are neither key, value nor header."""


def record_bytes(record: Record) -> int:
    """The most that a record takes in a batch, before compression."""
    size = _RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += 10 + 4 * len(name) + len(value or b"")
    return size


@dataclass(slots=True, eq=False)
class Outgoing:
    """A batch. Once it was sent (``data``) it takes no more records."""

    sequence: int
    created: int
    size: int = HEADER_BYTES
    records: list[Record] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    data: bytes = b""
    correlation: int | None = None
    """Of the request that an answer is awaited to."""
    expires: int = 0
    early: bool = False
    """The leader lacked the batches before it: it goes again when it is the first."""
    done: bool = False


class Queue:
    """The state of one partition."""

    def __init__(self, partition: TopicPartition, config: ProducerConfig) -> None:
        self.partition = partition
        self.config = config
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.stale = True
        """Whether the metadata is missing, or may be wrong."""
        self.asking: int | None = None
        """The correlation id of a MetadataRequest."""
        self.asking_expires = 0
        self.retry_at = 0
        self.failed: ErrorCode | None = None
        self.pending = 0
        """Records that are not acknowledged."""
        self.bytes = 0
        """Bytes of those."""
        self._sequence = 0
        self._batches: deque[Outgoing] = deque()

    # -- filling ----------------------------------------------------------------------------------------------------

    def add(self, record: Record, size: int, now: int) -> Delivery:
        """Put a record, of at most ``size`` bytes, into the last batch or a new one."""
        last = self._batches[-1] if self._batches else None
        if last is None or last.data or last.size + size > self.config.batch_bytes:
            last = Outgoing(self._sequence, now)
            self._batches.append(last)
        delivery = Delivery(self.partition)
        last.records.append(record)
        last.deliveries.append(delivery)
        last.size += size
        self._sequence = (self._sequence + 1) % _SEQUENCES
        self.pending += 1
        self.bytes += size
        return delivery

    # -- sending ----------------------------------------------------------------------------------------------------

    def _window(self) -> list[Outgoing]:
        """Those that may be on their way.

        The first batch of all goes alone: a log that knows nothing of the producer any more takes whatever comes first.
        """
        batches = self._batches
        width = 1 if batches and batches[0].sequence == 0 else self.config.max_in_flight
        return [batches[place] for place in range(min(width, len(batches)))]

    def _ready_at(self, batch: Outgoing) -> int:
        """When a batch that is not on its way may go."""
        filling = batch is self._batches[-1] and not batch.data and batch.size < self.config.batch_bytes
        return max(self.retry_at, batch.created + self.config.linger_ms if filling else 0)

    def _waiting(self) -> Outgoing | None:
        """The oldest batch that is to be sent, if any is."""
        for batch in self._window():
            if batch.correlation is None and not batch.done and not (batch.early and batch is not self._batches[0]):
                return batch
        return None

    def wants_metadata(self, now: int) -> bool:
        """Whether to ask for metadata now."""
        return self.stale and self.asking is None and bool(self._batches) and now >= self.retry_at

    def due(self, now: int) -> Outgoing | None:
        """A batch that is to be sent now, encoded; the caller sends it and says ``sent``."""
        if self.stale:
            return None
        batch = self._waiting()
        if batch is None or now < self._ready_at(batch):
            return None
        if not batch.data:
            config = self.config
            batch.data = encode_batch(
                batch.records,
                codec=config.codec,
                producer_id=config.producer_id,
                producer_epoch=config.producer_epoch,
                base_sequence=batch.sequence,
            )
            batch.records = []
        return batch

    def sent(self, batch: Outgoing, correlation: int, now: int) -> None:
        """It is on its way."""
        batch.correlation = correlation
        batch.expires = now + self.config.request_timeout_ms
        batch.early = False

    def deadline(self) -> int | None:
        """When there is something to do; ``None`` for not before an answer or another record comes."""
        if not self._batches:
            return None
        times = [self._batches[0].created + self.config.delivery_timeout_ms]
        times += [batch.expires for batch in self._window() if batch.correlation is not None]
        if self.asking is not None:
            times.append(self.asking_expires)
        elif self.stale:
            times.append(self.retry_at)
        elif (waiting := self._waiting()) is not None:
            times.append(self._ready_at(waiting))
        return min(times)

    # -- answers ----------------------------------------------------------------------------------------------------

    def expire(self, now: int) -> list[int]:
        """Give up what has timed out; the correlation ids whose answers count no more."""
        if not self._batches:
            return []
        if self._batches[0].created + self.config.delivery_timeout_ms <= now:
            return self.fail(ErrorCode.REQUEST_TIMED_OUT)
        over = []
        for batch in self._window():
            if batch.correlation is not None and batch.expires <= now:
                over.append(batch.correlation)
                batch.correlation = None
                self._retry(now)
        if self.asking is not None and self.asking_expires <= now:
            over.append(self.asking)
            self.asking = None
        return over

    def take_metadata(self, response: MetadataResponse, now: int) -> None:
        """Who leads, unless that is older than what is known already."""
        self.asking = None
        known = response.error is ErrorCode.NONE and response.leader != NO_LEADER
        if known and response.leader_epoch >= self.leader_epoch:
            self.leader, self.leader_epoch, self.stale = response.leader, response.leader_epoch, False
        else:
            self.retry_at = now + self.config.retry_backoff_ms

    def take(self, batch: Outgoing, response: ProduceResponse, now: int) -> list[int]:
        """The answer to a batch; the correlation ids whose answers count no more.

        OUT_OF_ORDER_SEQUENCE_NUMBER is no end: what was sent before may come later, and a leader that was replaced
        lacks what its successor has acknowledged.
        """
        batch.correlation = None
        error = response.error
        if error is ErrorCode.NONE:
            self._delivered(batch, response.base_offset)
        elif error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch is not self._batches[0]:
            batch.early = True
        elif error.retriable or error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self._retry(now)
        else:
            return self.fail(error)
        return []

    def _retry(self, now: int) -> None:
        self.stale = True
        self.retry_at = now + self.config.retry_backoff_ms

    def _delivered(self, batch: Outgoing, base_offset: int) -> None:
        batch.done = True
        for place, delivery in enumerate(batch.deliveries):
            delivery.offset = base_offset + place
            delivery.error = ErrorCode.NONE
        self._let_go(batch)
        while self._batches and self._batches[0].done:
            self._batches.popleft()

    def _let_go(self, batch: Outgoing) -> None:
        self.pending -= len(batch.deliveries)
        self.bytes -= batch.size - HEADER_BYTES

    def fail(self, error: ErrorCode) -> list[int]:
        """Give up everything; the correlation ids whose answers count no more."""
        self.failed = error
        over = [batch.correlation for batch in self._batches if batch.correlation is not None]
        for batch in self._batches:
            if not batch.done:
                for delivery in batch.deliveries:
                    delivery.error = error
                self._let_go(batch)
        self._batches.clear()
        if self.asking is not None:
            over.append(self.asking)
            self.asking = None
        return over
