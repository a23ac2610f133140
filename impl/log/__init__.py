"""The replicated log on disk: batches, segments, leader epochs, checkpoints, recovery."""

from .batch import Batch, encode_batch, read_batch, read_batches
from .codecs import Codec
from .config import LogConfig
from .directory import DataDirectory
from .epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEntry, LeaderEpochCache
from .errors import (
    CorruptBatch,
    CorruptCheckpoint,
    CorruptLog,
    InvalidAppend,
    LogError,
    LogOffline,
    OffsetOutOfRange,
)
from .log import AppendInfo, Log
from .records import Record, StoredRecord
from .remote_part import OffsetStore, SealedSegment

__all__ = [
    "UNDEFINED_EPOCH",
    "UNDEFINED_OFFSET",
    "AppendInfo",
    "Batch",
    "Codec",
    "CorruptBatch",
    "CorruptCheckpoint",
    "CorruptLog",
    "DataDirectory",
    "EpochEntry",
    "InvalidAppend",
    "LeaderEpochCache",
    "Log",
    "LogConfig",
    "LogError",
    "LogOffline",
    "OffsetOutOfRange",
    "OffsetStore",
    "Record",
    "SealedSegment",
    "StoredRecord",
    "encode_batch",
    "read_batch",
    "read_batches",
]
