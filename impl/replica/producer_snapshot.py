"""A file of what is known of a partition's producers at an offset (``ProducerStateManager`` in Kafka).

Version 1, big-endian; the CRC-32C covers what follows it::

    version int16, crc uint32, count int32, and for each producer:
    producerId int64, producerEpoch int16, lastSequence int32, lastOffset int64, offsetDelta int32, timestamp int64,
    coordinatorEpoch int32, currentTxnFirstOffset int64

It has the last batch of each producer, so that a repeat of an earlier one is refused as a duplicate, and not answered
with where it is. There are no transactions here: the last two fields are -1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

import google_crc32c

VERSION = 1
_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_COVERED_FROM = 6
_NONE = -1


class ProducerEntry(NamedTuple):
    """A producer's last batch: its last sequence number and offset, and how many records it has but one."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int


def encode_producers(entries: Iterable[ProducerEntry]) -> bytes:
    """The bytes of the file."""
    rows = list(entries)
    body = struct.pack(">i", len(rows)) + b"".join(_ENTRY.pack(*row, _NONE, _NONE, _NONE) for row in rows)
    return struct.pack(">hI", VERSION, google_crc32c.value(body)) + body


def decode_producers(data: bytes) -> list[ProducerEntry]:
    """The entries. Raises ``ValueError`` for bytes that are no such file."""
    if len(data) < _HEAD.size:
        raise ValueError(f"a producer snapshot of {len(data)} bytes, its head has {_HEAD.size}")
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"version {version} of a producer snapshot, only {VERSION} is known")
    if google_crc32c.value(data[_COVERED_FROM:]) != crc:
        raise ValueError("the CRC-32C of a producer snapshot is wrong")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise ValueError(f"a producer snapshot of {len(data)} bytes has not {count} entries")
    return [ProducerEntry(*row[:5]) for row in _ENTRY.iter_unpack(data[_HEAD.size :])]
