"""Batches by their headers alone: a read of 64 bytes each, however large they are."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ..log.batch import CONTROL, HEADER, HEADER_BYTES, TRANSACTIONAL
from ..log.segment import Segment

_AHEAD = 64
_KEY = struct.Struct(">hh")
ABORT, COMMIT = 0, 1
"""Types of a transaction's marker (``ControlRecordType`` in Kafka)."""


class Header(NamedTuple):
    """What the cleaner goes by before it reads a batch. ``producer_id`` is -1 where there is none."""

    base_offset: int
    last_offset: int
    timestamp: int
    """The largest of its records."""
    producer_id: int
    transactional: bool
    marker: int | None
    """``ABORT`` or ``COMMIT`` for the marker of a transaction; -1 for another control batch, ``None`` for records."""


def headers(segment: Segment, offset: int) -> Iterator[Header]:
    """The headers of the batches that end at ``offset`` or behind. Raises ``CorruptLog``."""
    _, position = segment.index.floor(offset)
    window = segment.window(_AHEAD)
    for place in segment.places(position, window):
        if place.last_offset < offset:
            continue
        if place.magic < 2:
            batch = segment.batch(place)
            yield Header(batch.base_offset, batch.last_offset, batch.max_timestamp, -1, False, None)
            continue
        fields = HEADER.unpack(window.get(place.position, HEADER_BYTES))
        attributes = fields[5]
        marker = marker_type(segment.batch(place).records()[0].key) if attributes & CONTROL and fields[12] else None
        if attributes & CONTROL and marker is None:
            marker = -1
        yield Header(
            place.base_offset, place.last_offset, fields[8], fields[9], bool(attributes & TRANSACTIONAL), marker
        )


def marker_type(key: bytes | None) -> int:
    """What the key of a control record says: version and type, an int16 each; -1 for a key that says nothing."""
    return int(_KEY.unpack_from(key)[1]) if key is not None and len(key) >= _KEY.size else -1
