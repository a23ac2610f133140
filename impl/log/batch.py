"""Record batches: the unit that a log stores, a follower copies byte for byte, and truncation never splits.

Header of magic 2, 61 bytes, big-endian (``DefaultRecordBatch`` in Kafka)::

    baseOffset int64, batchLength int32, partitionLeaderEpoch int32, magic int8, crc uint32,
    attributes int16, lastOffsetDelta int32, baseTimestamp int64, maxTimestamp int64,
    producerId int64, producerEpoch int16, baseSequence int32, recordCount int32

``batchLength`` counts what follows itself. The CRC-32C covers everything from the attributes on, so that a leader can
set the base offset and its epoch without looking at the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import google_crc32c

from . import legacy
from .codecs import Codec, compress, decompress
from .errors import CorruptBatch
from .records import NO_TIMESTAMP, Record, StoredRecord, decode_records, encode_records

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
PREFIX = struct.Struct(">qiib")
"""Base offset, length, leader epoch (a CRC in old formats) and magic: enough to step from batch to batch."""
LENGTH_END = 12
NO_EPOCH = -1
DECOMPRESSED_LIMIT = 256 << 20
"""No batch is read into more bytes than this."""

_COVERED = struct.Struct(">hiqqqhii")
_CRC_START = 21
_MIN_LENGTH = HEADER_BYTES - LENGTH_END
_OFFSET_AND_EPOCH = struct.Struct(">qii")
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
"""The base timestamp is when the tombstones of the batch may go, and not that of the first record (KIP-534)."""


class Batch(NamedTuple):
    """One batch with a right CRC. ``leader_epoch`` is -1 in magic 0 and 1, ``record_count`` what its header says."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    magic: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    data: bytes

    @property
    def next_offset(self) -> int:
        """One more than the last offset."""
        return self.last_offset + 1

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    @property
    def codec(self) -> int:
        """Bits 0 to 2 of the attributes, by ``Codec``."""
        return self.attributes & 0x07

    @property
    def is_control(self) -> bool:
        """Transaction markers and the quorum's own records: they take offsets, and no consumer sees them."""
        return self.magic >= 2 and bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether the records, or the marker, are part of a transaction (KIP-98)."""
        return self.magic >= 2 and bool(self.attributes & TRANSACTIONAL)

    @property
    def delete_horizon(self) -> int | None:
        """When the cleaner may remove the tombstones or the marker, in milliseconds; ``None`` where that is not set."""
        return self.base_timestamp if self.magic >= 2 and self.attributes & DELETE_HORIZON else None

    def records(self) -> list[StoredRecord]:
        """All records, decompressed. Raises ``CorruptBatch`` where they do not parse for all the right CRC."""
        try:
            if self.magic < 2:
                return legacy.entry_records(self.data, DECOMPRESSED_LIMIT)
            payload = self.data[HEADER_BYTES:]
            if self.codec and (self.record_count or payload):
                payload = decompress(self.codec, payload, DECOMPRESSED_LIMIT)
            delta = self.last_offset - self.base_offset
            records = decode_records(
                payload, self.record_count, self.base_offset, delta, self.base_timestamp, self.leader_epoch
            )
        except ValueError as error:
            raise CorruptBatch(f"the batch at offset {self.base_offset}: {error}") from None
        if self.attributes & LOG_APPEND_TIME:
            records = [record._replace(timestamp=self.max_timestamp) for record in records]
        return records


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    control: bool = False,
    transactional: bool = False,
) -> bytes:
    """A batch of magic 2 with the records at ``base_offset`` and on.

    An idempotent producer gives its id and epoch, and the number of the first record among all that it has sent to the
    partition (KIP-98); -1 for each says that there is none. ``control`` marks records of the quorum's own, and markers
    of transactions; ``transactional`` what belongs to one.
    Raises ``ValueError`` for no records: a batch without any takes no offset.
    """
    if not records:
        raise ValueError("a batch needs at least one record")
    base_timestamp = records[0].timestamp
    max_timestamp = max(record.timestamp for record in records)
    payload = compress(codec, encode_records(records, base_timestamp))
    count = len(records)
    producer = producer_id, producer_epoch, base_sequence
    attributes = codec | (CONTROL if control else 0) | (TRANSACTIONAL if transactional else 0)
    fields = attributes, count - 1, base_timestamp, max_timestamp, *producer, count
    return assemble(base_offset, leader_epoch, fields, payload)


def assemble(base_offset: int, leader_epoch: int, fields: Sequence[int], payload: bytes) -> bytes:
    """A batch of magic 2 from the header's ``fields``, from the attributes to the record count, and what follows it."""
    covered = _COVERED.pack(*fields) + payload
    crc = google_crc32c.value(covered)
    return struct.pack(">qiibI", base_offset, 9 + len(covered), leader_epoch, 2, crc) + covered


def stamped(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """A batch of magic 2 at another place: only the bytes that the CRC does not cover change."""
    (length,) = struct.unpack_from(">i", data, 8)
    return _OFFSET_AND_EPOCH.pack(base_offset, length, leader_epoch) + data[16:]


def read_batch(data: bytes, position: int = 0, path: str = "record batch", shift: int = 0) -> Batch:
    """The batch at ``position``, its length, magic, CRC and offsets checked, its records not yet looked at.

    Raises ``CorruptBatch`` with byte ``position + shift`` of ``path``; so too where ``data`` end inside the batch.
    """
    left = len(data) - position
    if left < PREFIX.size:
        raise CorruptBatch(f"{left} bytes are left, no whole batch", position + shift, path)
    base_offset, length, epoch, magic = PREFIX.unpack_from(data, position)
    size = LENGTH_END + length
    if length < (_MIN_LENGTH if magic == 2 else legacy.MIN_LENGTH) or not 0 <= magic <= 2:
        raise CorruptBatch(f"no batch: a length of {length} and magic {magic}", position + shift, path)
    if size > left:
        raise CorruptBatch(f"a batch of {size} bytes where {left} are left", position + shift, path)
    raw = data[position : position + size]
    if magic < 2:
        return _old(raw, base_offset, magic, position + shift, path)
    fields = HEADER.unpack_from(raw)
    crc, attributes, last_delta = fields[4:7]
    actual = google_crc32c.value(raw[_CRC_START:])
    if actual != crc:
        what = f"CRC-32C {actual:08x} where the batch at offset {base_offset} says {crc:08x}"
        raise CorruptBatch(what, position + shift, path)
    if base_offset < 0 or last_delta < 0:
        what = f"offsets {base_offset} to {base_offset + last_delta} in one batch"
        raise CorruptBatch(what, position + shift, path)
    return Batch._make((base_offset, base_offset + last_delta, epoch, magic, attributes, *fields[7:], raw))


def _old(raw: bytes, offset: int, magic: int, byte: int, path: str) -> Batch:
    if not legacy.check_crc(raw):
        raise CorruptBatch(f"the CRC-32 of the message at offset {offset} is wrong", byte, path)
    attributes, timestamp = legacy.head(raw)
    base, count = offset, 1
    if attributes & 0x07:  # only the messages inside say where a wrapper begins
        try:
            records = legacy.entry_records(raw, DECOMPRESSED_LIMIT)
        except ValueError as error:
            raise CorruptBatch(f"the message at offset {offset}: {error}", byte, path) from None
        base, count = records[0].offset, len(records)
    if not 0 <= base <= offset:
        raise CorruptBatch(f"offsets {base} to {offset} in one message", byte, path)
    first = timestamp if timestamp >= 0 else NO_TIMESTAMP
    return Batch(base, offset, NO_EPOCH, magic, attributes, first, timestamp, -1, -1, -1, count, raw)


def read_batches(data: bytes, path: str = "record batch") -> Iterator[Batch]:
    """All batches in ``data``. Raises ``CorruptBatch`` at the first byte that belongs to none."""
    position = 0
    while position < len(data):
        batch = read_batch(data, position, path)
        yield batch
        position += len(batch.data)
