"""The consumer: a client that detects log truncation (KIP-320)."""

from .consumer import Commit, Consumer
from .errors import (
    BrokerError,
    ConsumerError,
    CorruptRecordError,
    LogTruncationError,
    NoOffsetForPartitionError,
    NotAssignedError,
    OffsetOutOfRangeError,
)
from .position import ConsumerConfig, ConsumerRecord, OffsetAndMetadata, Outcome, PartitionState, ResetPolicy

__all__ = [
    "BrokerError",
    "Commit",
    "Consumer",
    "ConsumerConfig",
    "ConsumerError",
    "ConsumerRecord",
    "CorruptRecordError",
    "LogTruncationError",
    "NoOffsetForPartitionError",
    "NotAssignedError",
    "OffsetAndMetadata",
    "OffsetOutOfRangeError",
    "Outcome",
    "PartitionState",
    "ResetPolicy",
]
