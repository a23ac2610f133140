"""Message sets of magic 0 and 1, which no producer sends: brokers before Kafka 0.11 and their clients are gone.

They have no leader epoch: every record is read with -1. An entry is ``offset int64, size int32``, then a message::

    crc uint32 (CRC-32 of what follows), magic int8, attributes int8, timestamp int64 (magic 1 only),
    keyLength int32 (-1 is null), key, valueLength int32 (-1 is null), value

A compressed message wraps a message set as its value and has the offset of its last one; the inner offsets are absolute
in magic 0 and count from 0 in magic 1 (KIP-31).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from .codecs import Codec, decompress
from .records import NO_TIMESTAMP, StoredRecord

_ENTRY = struct.Struct(">qi")
_HEAD = struct.Struct(">Ibb")
_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")
MIN_LENGTH = _HEAD.size + 2 * _INT.size  # of a message of magic 0: null key and null value
LOG_APPEND_TIME = 0x08


def check_crc(data: bytes) -> bool:
    """Whether the CRC-32 of the one entry in ``data`` is right."""
    (crc,) = struct.unpack_from(">I", data, _ENTRY.size)
    return int(crc) == zlib.crc32(memoryview(data)[_ENTRY.size + 4 :])


def head(data: bytes) -> tuple[int, int]:
    """``(attributes, timestamp)`` of the one entry in ``data``."""
    _, magic, attributes = _HEAD.unpack_from(data, _ENTRY.size)
    timestamp = _LONG.unpack_from(data, _ENTRY.size + _HEAD.size)[0] if magic == 1 else NO_TIMESTAMP
    return attributes, timestamp


def entry_records(data: bytes, limit: int) -> list[StoredRecord]:
    """The record of an entry, or the records that it wraps. Raises ``ValueError`` for what does not parse."""
    offset, magic, attributes, timestamp, key, value = _message(data, 0, len(data))
    codec = attributes & 0x07
    if not codec:
        return [StoredRecord(offset, -1, value, key, timestamp, ())]
    if value is None:
        raise ValueError("a compressed message with no value")
    if codec == Codec.LZ4 and magic == 0:
        # KAFKA-3160: producers of that time wrote a frame with a wrong header checksum.
        raise ValueError("lz4 in a message set of magic 0, whose frames are broken")
    inner = list(_messages(decompress(codec, value, limit)))
    if not inner:
        raise ValueError("a compressed message with no message in it")
    shift = offset - inner[-1].offset if magic == 1 else 0
    stamped = bool(attributes & LOG_APPEND_TIME)
    return [
        record._replace(offset=record.offset + shift, timestamp=timestamp if stamped else record.timestamp)
        for record in inner
    ]


def encode_message(record: StoredRecord, magic: int, attributes: int) -> bytes:
    """One message with its offset and size, not compressed: what the cleaner keeps of a wrapper."""
    body = bytes((magic, attributes)) + (_LONG.pack(record.timestamp) if magic == 1 else b"")
    for part in (record.key, record.value):
        body += _INT.pack(-1) if part is None else _INT.pack(len(part)) + part
    message = struct.pack(">I", zlib.crc32(body)) + body
    return _ENTRY.pack(record.offset, len(message)) + message


def _messages(data: bytes) -> Iterator[StoredRecord]:
    position = 0
    while position < len(data):
        if len(data) - position < _ENTRY.size:
            raise ValueError("an inner message's offset and size are cut off")
        _, size = _ENTRY.unpack_from(data, position)
        end = position + _ENTRY.size + size
        if size < MIN_LENGTH or end > len(data):
            raise ValueError(f"an inner message of {size} bytes where {len(data) - position} are left")
        offset, _, attributes, timestamp, key, value = _message(data, position, end)
        if attributes & 0x07:
            raise ValueError("a compressed message inside a compressed message")
        yield StoredRecord(offset, -1, value, key, timestamp, ())
        position = end


def _message(data: bytes, start: int, end: int) -> tuple[int, int, int, int, bytes | None, bytes | None]:
    """Offset, magic, attributes, timestamp, key and value of the message in ``data[start:end]``."""
    offset, _ = _ENTRY.unpack_from(data, start)
    position = start + _ENTRY.size
    _, magic, attributes = _HEAD.unpack_from(data, position)
    position += _HEAD.size
    timestamp = NO_TIMESTAMP
    try:
        if magic == 1:
            (timestamp,) = _LONG.unpack_from(data, position)
            position += _LONG.size
        elif magic != 0:
            raise ValueError(f"an inner message of magic {magic}")
        key, position = _nullable(data, position, end)
        value, position = _nullable(data, position, end)
    except struct.error:
        raise ValueError("a message ends inside its fields") from None
    if position != end:
        raise ValueError(f"a message's fields end at byte {position}, its size says {end}")
    return offset, magic, attributes, timestamp, key, value


def _nullable(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    (length,) = _INT.unpack_from(data, position)
    position += _INT.size
    if length == -1:
        return None, position
    if length < 0 or position + length > end:
        raise ValueError(f"a field of {length} bytes where {end - position} are left")
    return data[position : position + length], position + length
