"""The records inside a v2 batch: offsets and payload hashes, or all their fields.

Layout of a record (``DefaultRecord`` in Kafka; varints are zig-zag)::

    length varint, attributes int8, timestampDelta varlong, offsetDelta varint,
    keyLength varint (-1 is null), key, valueLength varint (-1 is null), value,
    headerCount varint, and per header: keyLength varint, key, valueLength varint (-1 is null), value
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HASH_BYTES = 8
"""Bytes of a payload hash: BLAKE2b over key, value and headers as they are encoded, cut to 64 bits.

Among n different payloads two collide with odds of about n*n / 2**65. Offsets, timestamps and the compression
take no part in it, so a recompressed copy of a record has the same hash.
"""

MIN_RECORD_BYTES = 7  # length, attributes, two deltas, null key, null value, no headers: one byte each


MAX_ITEMS = 1 << 21
"""Records and headers of one batch, together: more than any producer sends, and what takes 4 s and 200 MB to read."""


class RecordError(Exception):
    """The records of a batch do not parse; ``index`` counts the records before the broken one."""

    def __init__(self, what: str, index: int) -> None:
        super().__init__(what)
        self.what = what
        self.index = index


class TooManyItems(RecordError):
    """A batch has more records and headers than may be read of one."""

    def __init__(self, items: int, most: int, index: int) -> None:
        super().__init__(f"{items:,} records and headers in one batch, at most {most:,} are read", index)


@dataclass(frozen=True, slots=True)
class Record:
    """One record with all its fields. ``timestamp`` is in milliseconds since 1970."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


def read_uvarint(data: bytes, pos: int, max_bytes: int = 5) -> tuple[int, int]:
    """An unsigned LEB128 number at ``pos`` and the position after it.

    Raises ``IndexError`` where the data end and ``ValueError`` for more than ``max_bytes`` bytes.
    """
    value = 0
    for shift in range(0, 7 * max_bytes, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
    raise ValueError(f"a varint of more than {max_bytes} bytes")


def read_varint(data: bytes, pos: int, max_bytes: int = 5) -> tuple[int, int]:
    """A zig-zag varint (varlong with ``max_bytes`` 10) at ``pos`` and the position after it."""
    raw, pos = read_uvarint(data, pos, max_bytes)
    return (raw >> 1) ^ -(raw & 1), pos


def hash_records(data: bytes, count: int, last_offset_delta: int) -> tuple[list[int], list[bytes]]:
    """``scan_records``, without the number of headers."""
    deltas, hashes, _ = scan_records(data, count, last_offset_delta)
    return deltas, hashes


def scan_records(
    data: bytes, count: int, last_offset_delta: int, most: int = MAX_ITEMS
) -> tuple[list[int], list[bytes], int]:
    """Offset deltas and payload hashes (``HASH_BYTES`` each) of all ``count`` records in ``data``, and their headers.

    Every byte must belong to a record, deltas must rise strictly and stay within ``last_offset_delta``.
    Raises ``RecordError`` otherwise, and ``TooManyItems`` for more than ``most`` records and headers. One pass, about
    two microseconds a record: the one hot loop of the reader, which is why varints of one byte are decoded in line.
    """
    size = len(data)
    if count < 0 or count * MIN_RECORD_BYTES > size:
        raise RecordError(f"{count} records can not fit into {size} bytes", 0)
    if count > most:
        raise TooManyItems(count, most, 0)
    items = count
    deltas: list[int] = []
    hashes: list[bytes] = []
    pos = 0
    previous = -1
    index = 0
    try:
        for index in range(count):
            raw = data[pos]
            pos += 1
            if raw >= 0x80:
                raw, pos = _more(data, raw, pos)
            end = pos + (raw >> 1)
            if raw & 1 or end > size:
                raise RecordError(f"a record's length runs to {end} of {size} bytes", index)
            pos += 1
            if data[pos] >= 0x80:
                pos = _skip_varlong(data, pos)
            pos += 1
            raw = data[pos]
            pos += 1
            if raw >= 0x80:
                raw, pos = _more(data, raw, pos)
            delta = (raw >> 1) ^ -(raw & 1)
            if delta <= previous or delta > last_offset_delta:
                raise RecordError(
                    f"offset delta {delta} after {previous} in a batch whose last is {last_offset_delta}", index
                )
            previous = delta
            body = pos
            raw = data[pos]
            pos += 1
            if raw >= 0x80:
                raw, pos = _more(data, raw, pos)
            if not raw & 1:
                pos += raw >> 1
            elif raw != 1:
                raise RecordError("a negative length of a key", index)
            raw = data[pos]
            pos += 1
            if raw >= 0x80:
                raw, pos = _more(data, raw, pos)
            if not raw & 1:
                pos += raw >> 1
            elif raw != 1:
                raise RecordError("a negative length of a value", index)
            if data[pos]:
                pos, headers = _skip_headers(data, pos, end, index, most - items)
                items += headers
            else:
                pos += 1
            if pos != end:
                raise RecordError(f"a record's fields end at {pos} and its length says {end}", index)
            deltas.append(delta)
            hashes.append(blake2b(data[body:end], digest_size=HASH_BYTES).digest())
    except IndexError:
        raise RecordError(f"the records end after {size} bytes, inside a record", index) from None
    except ValueError as error:
        raise RecordError(str(error), index) from None
    if pos != size:
        raise RecordError(f"{size - pos} bytes are left after the last of {count} records", count)
    return deltas, hashes, items - count


def _more(data: bytes, first: int, pos: int) -> tuple[int, int]:
    """The unsigned varint of at least two bytes whose ``first`` is before ``pos``, and the position after it."""
    second = data[pos]
    if second < 0x80:
        return first & 0x7F | second << 7, pos + 1
    return read_uvarint(data, pos - 1)


def _skip_varlong(data: bytes, pos: int) -> int:
    """The position of the last byte of the varlong at ``pos``."""
    last = pos + 9
    while data[pos] >= 0x80:
        if pos == last:
            raise ValueError("a varint of more than 10 bytes")
        pos += 1
    return pos


def _skip_headers(data: bytes, pos: int, end: int, index: int, most: int) -> tuple[int, int]:
    """The position after a record's headers, and how many there are."""
    count, pos = read_varint(data, pos)
    if count < 0 or count > end - pos:
        raise RecordError(f"{count} headers in {max(0, end - pos)} bytes", index)
    if count > most:
        raise TooManyItems(count, most, index)
    for _ in range(count):
        length, pos = read_varint(data, pos)
        if length < 0:
            raise RecordError("a header with no key", index)
        length, pos = read_varint(data, pos + length)
        if length < -1:
            raise RecordError("a negative length of a header's value", index)
        pos += max(length, 0)
    return pos, count


def iter_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int, most: int = MAX_ITEMS
) -> Iterator[Record]:
    """All fields of the records in ``data``: for the metadata log, where the values are read.

    Raises ``RecordError`` at the first record that does not parse, ``TooManyItems`` as ``hash_records`` does.
    """
    if count < 0:
        raise RecordError(f"{count} records", 0)
    if count > most:
        raise TooManyItems(count, most, 0)
    items = count
    pos = 0
    for index in range(count):
        try:
            length, pos = read_varint(data, pos)
            end = pos + length
            if length < 0 or end > len(data):
                raise RecordError(f"a record's length runs to {end} of {len(data)} bytes", index)
            timestamp, pos = read_varint(data, pos + 1, 10)
            delta, pos = read_varint(data, pos)
            key, pos = _nullable(data, pos, end)
            value, pos = _nullable(data, pos, end)
            header_count, pos = read_varint(data, pos)
            if header_count < 0 or header_count > end - pos:
                raise ValueError(f"{header_count} headers in {max(0, end - pos)} bytes")
            items += header_count
            if items > most:
                raise TooManyItems(items, most, index)
            headers: list[tuple[bytes, bytes | None]] = []
            for _ in range(header_count):
                name, pos = _nullable(data, pos, end)
                content, pos = _nullable(data, pos, end)
                headers.append((name or b"", content))
        except (IndexError, ValueError) as error:
            raise RecordError(str(error), index) from None
        if pos != end:
            raise RecordError(f"a record's fields end at {pos} and its length says {end}", index)
        yield Record(base_offset + delta, base_timestamp + timestamp, key, value, tuple(headers))


def _nullable(data: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    length, pos = read_varint(data, pos)
    if length == -1:
        return None, pos
    if length < 0 or length > end - pos:
        raise ValueError(f"a field of {length} bytes where {max(0, end - pos)} are left")
    return data[pos : pos + length], pos + length
