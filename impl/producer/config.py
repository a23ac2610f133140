"""A producer's settings, what an application holds of a record that it has sent, and what it may be told instead."""

from __future__ import annotations

from dataclasses import dataclass

from ..log.codecs import Codec
from ..wire.errors import ErrorCode
from ..wire.messages import BROKER_PRINCIPAL, FIRST_CLIENT, NO_OFFSET, TopicPartition

REMEMBERED = 5
"""By so many batches a leader knows a repeat (``ProducerStateEntry.NUM_BATCHES_TO_RETAIN``)."""


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """Times in milliseconds, sizes in bytes, Kafka's names and defaults. Raises ``ValueError``.

    Kafka's brokers give out producer ids (InitProducerId); here the application does, and sees to it that no two
    producers have the same id and epoch. One that takes over an id takes the next epoch.
    """

    brokers: tuple[int, ...]
    """Whom to ask for metadata, one after another."""
    producer_id: int
    producer_epoch: int = 0
    batch_bytes: int = 16_384
    """``batch.size``: no record is added to a batch that would grow beyond this."""
    linger_ms: int = 0
    """How long a batch that is not full waits for more records."""
    max_in_flight: int = REMEMBERED
    """``max.in.flight.requests.per.connection``, for each partition. At most 5."""
    buffer_bytes: int = 32 << 20
    """``buffer.memory``: how much may wait for its acknowledgement."""
    max_request_bytes: int = 1 << 20
    """``max.request.size``: the largest record."""
    retry_backoff_ms: int = 100
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    """When a record that is not acknowledged is given up, and its partition with it."""
    codec: Codec = Codec.NONE
    address: int = FIRST_CLIENT
    principal: str = "User:ANONYMOUS"
    first_correlation: int = 0
    """A producer that takes over an address begins behind the ids that were used: answers may still be on their way."""

    def __post_init__(self) -> None:
        if not self.brokers:
            raise ValueError("a producer needs at least one broker")
        if self.principal == BROKER_PRINCIPAL:
            raise ValueError(f"{BROKER_PRINCIPAL} is no client")
        if not (0 <= self.producer_id < 1 << 63 and 0 <= self.producer_epoch < 1 << 15):
            raise ValueError(
                f"producer id {self.producer_id}, epoch {self.producer_epoch}: an int64 and an int16 from 0"
            )
        if not 1 <= self.max_in_flight <= REMEMBERED:
            raise ValueError(f"max_in_flight {self.max_in_flight} is not from 1 to {REMEMBERED}")
        times = self.retry_backoff_ms, self.request_timeout_ms, self.delivery_timeout_ms
        if self.linger_ms < 0 or min(*times, self.batch_bytes, self.buffer_bytes, self.max_request_bytes) < 1:
            raise ValueError("sizes and times must be positive")


@dataclass(slots=True, eq=False)
class Delivery:
    """What became of one record. ``error`` is ``None`` until it is known.

    NONE says that every member of the ISR has the record, at ``offset``. With REQUEST_TIMED_OUT nobody knows; with any
    other error no leader that answered has taken it, but one that did not answer may have.
    """

    partition: TopicPartition
    offset: int = NO_OFFSET
    error: ErrorCode | None = None

    @property
    def done(self) -> bool:
        """Whether it was acknowledged or given up."""
        return self.error is not None


class ProducerError(Exception):
    """``str()`` is one line, ``WHERE: WHAT; HOW TO MEND``; nothing was taken."""


class BufferExhausted(ProducerError):
    """As much as may waits for its acknowledgement (``BufferExhaustedException``)."""


class RecordTooLarge(ProducerError):
    """One record above ``max_request_bytes`` (``RecordTooLargeException``)."""


class PartitionFailed(ProducerError):
    """A record of the partition was given up: those after it may not overtake it."""
