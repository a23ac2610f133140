"""A batch with fewer records (``MemoryRecords.filterTo`` in Kafka).

It keeps its first and last offset, its leader epoch, producer and sequence: so followers, and readers that stand inside
of it, find it where it was, and a producer's last sequence is still known. The records that stay are copied as bytes;
only where the delete horizon is set, which takes the place of the base timestamp, are their timestamps counted anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..log.batch import DELETE_HORIZON, LOG_APPEND_TIME, Batch, assemble
from ..log.codecs import Codec, compress
from ..log.legacy import encode_message
from ..log.records import NO_TIMESTAMP, StoredRecord
from ..log.varint import uvarint, varint
from .scanning import Scanned

_CODEC_BITS = 0x07


def rewritten(batch: Batch, payload: bytes, kept: Sequence[Scanned], horizon: int | None) -> bytes:
    """The batch with those records alone, at least one; ``horizon`` is set where it has none, ``None`` to leave it."""
    attributes, base_timestamp = batch.attributes, batch.base_timestamp
    if horizon is not None:
        attributes, base_timestamp = attributes | DELETE_HORIZON, horizon
        parts = [_at(payload, record, horizon, batch) for record in kept]
    else:
        parts = [payload[record.start : record.end] for record in kept]
    appended = attributes & LOG_APPEND_TIME
    max_timestamp = batch.max_timestamp if appended else max(record.timestamp for record in kept)
    data = compress(Codec(attributes & _CODEC_BITS), b"".join(parts))
    return _batch(batch, attributes, base_timestamp, max_timestamp, len(kept), data)


def _at(payload: bytes, record: Scanned, base_timestamp: int, batch: Batch) -> bytes:
    """A record's bytes, with its timestamp counted from this one."""
    timestamp = batch.base_timestamp if batch.attributes & LOG_APPEND_TIME else record.timestamp
    body = payload[record.body : record.body + 1] + varint(timestamp - base_timestamp)
    body += payload[record.rest : record.end]
    return uvarint(len(body) << 1) + body


def emptied(batch: Batch) -> bytes:
    """The batch with no records: it holds its offsets, and its producer's last sequence."""
    attributes = batch.attributes & ~(_CODEC_BITS | DELETE_HORIZON)
    return _batch(batch, attributes, NO_TIMESTAMP, batch.max_timestamp, 0, b"")


def _batch(batch: Batch, attributes: int, base: int, highest: int, count: int, payload: bytes) -> bytes:
    delta = batch.last_offset - batch.base_offset
    producer = batch.producer_id, batch.producer_epoch, batch.base_sequence
    fields = attributes, delta, base, highest, *producer, count
    return assemble(batch.base_offset, batch.leader_epoch, fields, payload)


def messages(batch: Batch, kept: Sequence[StoredRecord]) -> list[tuple[int, bytes]]:
    """Records of magic 0 or 1, each a message of its own, not compressed, with its offset."""
    stamped = batch.attributes & LOG_APPEND_TIME
    return [(each.offset, encode_message(each, batch.magic, stamped)) for each in kept]
