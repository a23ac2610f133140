"""Committed offsets: the group coordinator and its log, ``__consumer_offsets``."""

from .coordinator import OFFSETS_TOPIC, CorruptOffsets, GroupCoordinator, OffsetsConfig, coordinate
from .schema import (
    EPOCH_VERSION,
    PLAIN_VERSION,
    CommittedOffset,
    OffsetKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

__all__ = [
    "EPOCH_VERSION",
    "OFFSETS_TOPIC",
    "PLAIN_VERSION",
    "CommittedOffset",
    "CorruptOffsets",
    "GroupCoordinator",
    "OffsetKey",
    "OffsetsConfig",
    "coordinate",
    "decode_key",
    "decode_value",
    "encode_key",
    "encode_value",
]
