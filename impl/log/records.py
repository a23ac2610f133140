"""The records inside a v2 batch.

Layout of one (``DefaultRecord`` in Kafka; varints are zig-zag)::

    length varint, attributes int8, timestampDelta varlong, offsetDelta varint,
    keyLength varint (-1 is null), key, valueLength varint (-1 is null), value,
    headerCount varint, and per header: keyLength varint, key, valueLength varint (-1 is null), value
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .varint import read_varint, uvarint, varint

NO_TIMESTAMP = -1

Headers = tuple[tuple[str, bytes | None], ...]

_NULL = varint(-1)
_MIN_RECORD_BYTES = 7  # length, attributes, two deltas, null key, null value, no headers: a byte each


class Record(NamedTuple):
    """What a producer sends. ``timestamp`` is in milliseconds since 1970; a value of ``None`` is a tombstone."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = NO_TIMESTAMP
    headers: Headers = ()


class StoredRecord(NamedTuple):
    """A record at its place in the log. ``leader_epoch`` is -1 where the batch's format has none (magic 0 and 1)."""

    offset: int
    leader_epoch: int
    value: bytes | None
    key: bytes | None
    timestamp: int
    headers: Headers


def encode_records(records: Sequence[Record], base_timestamp: int) -> bytes:
    """The records one after another, with offset deltas from 0 on."""
    out = bytearray()
    for delta, (value, key, timestamp, headers) in enumerate(records):
        body = bytearray(1)  # no attributes are in use
        body += varint(timestamp - base_timestamp)
        body += varint(delta)
        if key is None:
            body += _NULL
        else:
            body += uvarint(len(key) << 1)
            body += key
        if value is None:
            body += _NULL
        else:
            body += uvarint(len(value) << 1)
            body += value
        if headers:
            body += uvarint(len(headers) << 1)
            for name, content in headers:
                name_bytes = name.encode()
                body += uvarint(len(name_bytes) << 1)
                body += name_bytes
                body += _NULL if content is None else uvarint(len(content) << 1) + content
        else:
            body.append(0)
        out += uvarint(len(body) << 1)
        out += body
    return bytes(out)


def decode_records(
    data: bytes, count: int, base_offset: int, last_delta: int, base_timestamp: int, epoch: int
) -> list[StoredRecord]:
    """The ``count`` records in ``data``. Every byte must belong to one; offset deltas rise and end by ``last_delta``.

    Raises ``ValueError`` that says which record is wrong, and how.
    """
    if count < 0 or count * _MIN_RECORD_BYTES > len(data):
        raise ValueError(f"{count} records in {len(data)} bytes")
    records: list[StoredRecord] = []
    position = 0
    previous = -1
    for index in range(count):
        try:
            length, position = read_varint(data, position)
            end = position + length
            if length < 0 or end > len(data):
                raise ValueError(f"it runs to byte {end} of {len(data)}")
            timestamp, position = read_varint(data, position + 1, 10)
            delta, position = read_varint(data, position)
            if not previous < delta <= last_delta:
                raise ValueError(f"offset delta {delta} after {previous}, the batch's last is {last_delta}")
            previous = delta
            key, position = _nullable(data, position, end)
            value, position = _nullable(data, position, end)
            header_count, position = read_varint(data, position)
            headers: Headers = ()
            if header_count:
                headers, position = _headers(data, position, end, header_count)
        except IndexError:
            raise ValueError(f"record {index} of {count}: the bytes end inside it") from None
        except ValueError as error:
            raise ValueError(f"record {index} of {count}: {error}") from None
        if position != end:
            raise ValueError(f"record {index} of {count}: its fields end at byte {position}, its length says {end}")
        records.append(StoredRecord(base_offset + delta, epoch, value, key, base_timestamp + timestamp, headers))
    if position != len(data):
        raise ValueError(f"{len(data) - position} bytes are left after the last of {count} records")
    return records


def _nullable(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length == -1:
        return None, position
    stop = position + length
    if length < 0 or stop > end:
        raise ValueError(f"a field of {length} bytes where {max(0, end - position)} are left")
    return data[position:stop], stop


def _headers(data: bytes, position: int, end: int, count: int) -> tuple[Headers, int]:
    if not 0 <= count <= end - position:
        raise ValueError(f"{count} headers in {max(0, end - position)} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _nullable(data, position, end)
        if name is None:
            raise ValueError("a header with no key")
        content, position = _nullable(data, position, end)
        headers.append((name.decode(), content))  # UnicodeDecodeError is a ValueError
    return tuple(headers), position
