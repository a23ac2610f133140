"""Where a consumer is in a partition, and what it knows of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

from ..wire.errors import ErrorCode
from ..wire.messages import BROKER_PRINCIPAL, FIRST_CLIENT, NO_EPOCH, NO_LEADER, TopicPartition


class ResetPolicy(Enum):
    """``auto.offset.reset``. After a truncation ``EARLIEST`` and ``LATEST`` both go to the divergence (KIP-320)."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


class Outcome(IntEnum):
    """What became of the last fetch of a partition."""

    FETCHING = 0
    """It was answered, or is still to be sent or to be answered."""
    UNKNOWN_LEADER_EPOCH = 1
    """The leader is in an older epoch than the position: metadata is asked for."""
    LOG_TRUNCATION = 2
    """The record before the position is not the one that was read: the divergence is asked for."""
    OFFSET_OUT_OF_RANGE = 3
    """The leader's log does not have the position."""
    DIVERGENCE_FOUND = 4
    """Where to go on from is known. The next ``poll`` goes there or, with the policy ``NONE``, raises."""


class Target(Enum):
    """Where a new position is asked for."""

    COMMITTED = "committed"
    BEGINNING = "beginning"
    END = "end"
    NEAREST = "nearest"


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A position to seek to or to commit.

    ``leader_epoch`` is that of the record before ``offset``, ``serving_epoch`` that of the leader which served it; -1
    where it is not known, and nothing is checked by it. Raises ``ValueError`` for numbers below.
    """

    offset: int
    leader_epoch: int = NO_EPOCH
    serving_epoch: int = NO_EPOCH
    metadata: str = ""

    def __post_init__(self) -> None:
        if self.offset < 0 or self.leader_epoch < NO_EPOCH or self.serving_epoch < NO_EPOCH:
            epochs = f"epochs {self.leader_epoch} and {self.serving_epoch}"
            raise ValueError(f"offset {self.offset} with {epochs}: no offset is below 0, no epoch below -1")

    @property
    def least_epoch(self) -> int:
        """A leader in a lower epoch was replaced before this position was read: it may not answer."""
        return max(self.leader_epoch, self.serving_epoch)


class ConsumerRecord(NamedTuple):
    """A record, with the leader epoch that it was written in; -1 where the message format has none."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """The settings of a consumer. Times in milliseconds, sizes in bytes, defaults are Kafka's where it has them."""

    brokers: tuple[int, ...]
    """Whom to ask for metadata, one after another."""
    group: str = ""
    """``group.id``; the empty group commits nothing."""
    coordinator: int = NO_LEADER
    """The broker that keeps the group's offsets; the first of ``brokers`` unless it is named."""
    reset_policy: ResetPolicy = ResetPolicy.LATEST
    max_bytes: int = 1 << 20
    """``max.partition.fetch.bytes``; 1 gives one batch."""
    max_poll_records: int = 500
    retry_backoff_ms: int = 100
    request_timeout_ms: int = 30_000
    address: int = FIRST_CLIENT
    principal: str = "User:ANONYMOUS"
    first_correlation: int = 0
    """A consumer that takes over an address begins behind the ids that were used: answers may still be on their way."""

    def __post_init__(self) -> None:
        if not self.brokers:
            raise ValueError("a consumer needs at least one broker")
        if self.principal == BROKER_PRINCIPAL:
            raise ValueError(f"{BROKER_PRINCIPAL} is no client")
        if min(self.max_bytes, self.max_poll_records, self.retry_backoff_ms, self.request_timeout_ms) < 1:
            raise ValueError("sizes, counts and times must be positive")


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A look at one partition of a consumer."""

    partition: TopicPartition
    position: OffsetAndMetadata | None
    """The next offset to read, with its epochs; ``None`` while it has none."""
    consumed_from: int
    """What was read from here to the position was read without a break, of one history; -1 without a position."""
    outcome: Outcome
    answered_epoch: int
    """The epoch of the leader that refused the fetch, or that found the divergence; -1 while fetching."""
    divergence: OffsetAndMetadata | None
    """Where to go on from, once it has been found. Its serving epoch is ``answered_epoch``."""
    leader: int
    """By the metadata, which may be old."""
    leader_epoch: int
    asks_for: Target | None
    """Which new position is being asked for: by a seek, a reset, or for want of any."""
    in_flight: bool
    fetched: tuple[ConsumerRecord, ...]
    """Records that have arrived and that ``poll`` has not yet given."""
    served_by: int
    """The epoch of the leader that sent them; -1 where there are none."""
    committed: OffsetAndMetadata | None
    """What this consumer knows to be committed."""
    last_error: ErrorCode
    """That of the last answer."""

    @property
    def looking_up(self) -> bool:
        """Whether a new position is being asked for."""
        return self.asks_for is not None

    @property
    def buffered(self) -> int:
        """How many records have arrived and wait for ``poll``."""
        return len(self.fetched)


def nearest(end_offset: int, epoch: int, position: OffsetAndMetadata) -> tuple[int, int]:
    """What the answer of OffsetsForLeaderEpoch makes of a position: the offset to go on from, and the epoch there.

    The answer is the largest epoch of the leader's log that is not larger than the position's, and where it ends. The
    offset is exactly where the logs part if it is the position's own epoch, else a bound. The epoch is -1 where the
    answer does not belong to the offset, and at the first offset, before which there is no record.
    """
    offset = min(end_offset, position.offset)
    belongs = end_offset <= position.offset or epoch == position.leader_epoch
    return offset, epoch if belongs and offset > 0 else NO_EPOCH
