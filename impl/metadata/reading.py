"""What the generated readers are made of: the parts of Kafka's flexible format whose size is not fixed.

A reader takes the bytes and a position, and gives the value and the position behind it. Whatever a length claims is
held against the bytes that are there before anything is made of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from uuid import UUID

from ..log.varint import read_uvarint
from .errors import CorruptRecord
from .values import TaggedField, Value

MAX_STRING = 0x7FFF
"""Bytes of a string; Kafka's generated classes read and write no longer one."""
MAX_TAG = 0x7FFF_FFFF
CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Of each fixed type, the format of the module ``struct``."""

Reader: TypeAlias = Callable[[bytes, int], tuple[Value, int]]

_KEPT_UUIDS = 1 << 16
_uuids: dict[bytes, UUID] = {}


class Malformed(Exception):
    """What is wrong at a byte; whoever reads the field says which one it is."""

    def __init__(self, what: str, byte: int) -> None:
        super().__init__(what)
        self.what = what
        self.byte = byte


def uuid_of(raw: bytes) -> UUID:
    """The UUID of 16 bytes. One is made once: a topic's partitions have its id in common, and making it is slow."""
    found = _uuids.get(raw)
    if found is None:
        if len(_uuids) >= _KEPT_UUIDS:
            _uuids.clear()
        found = _uuids[raw] = UUID(bytes=raw)
    return found


def length_at(data: bytes, position: int, nullable: bool, what: str) -> tuple[int, int]:
    """A compact length, which is one more than it says, and -1 for null."""
    claimed, after = _uvarint(data, position)
    if claimed == 0 and not nullable:
        raise Malformed(f"{what} is null, which no version with this number lets it be", position)
    return claimed - 1, after


def read_bytes(data: bytes, position: int, nullable: bool, what: str = "bytes") -> tuple[bytes | None, int]:
    """Compact bytes."""
    length, after = length_at(data, position, nullable, what)
    if length > len(data) - after:
        raise Malformed(f"{what} of {length} bytes where {len(data) - after} are left", position)
    return (data[after : after + length], after + length) if length >= 0 else (None, after)


def read_string(data: bytes, position: int, nullable: bool) -> tuple[str | None, int]:
    """A compact string."""
    raw, after = read_bytes(data, position, nullable, "a string")
    if raw is None:
        return None, after
    if len(raw) > MAX_STRING:
        raise Malformed(f"a string of {len(raw)} bytes, the limit is {MAX_STRING}", position)
    try:
        return raw.decode(), after
    except UnicodeDecodeError as error:
        raise Malformed("a string that is not UTF-8", after - len(raw) + error.start) from None


def read_numbers(data: bytes, position: int, nullable: bool, code: str, size: int) -> tuple[Value, int]:
    """A compact array of values of a fixed size, UUIDs excepted."""
    length, after = length_at(data, position, nullable, "an array")
    if length * size > len(data) - after:
        raise Malformed(f"an array of {length} items of {size} bytes where {len(data) - after} are left", position)
    if length < 0:
        return None, after
    return struct.unpack_from(f">{length}{code}", data, after), after + length * size


def read_items(data: bytes, position: int, nullable: bool, item: Reader, least: int) -> tuple[Value, int]:
    """A compact array of anything else. ``least``: bytes that an item has at least."""
    length, after = length_at(data, position, nullable, "an array")
    if length * least > len(data) - after:
        raise Malformed(
            f"an array of {length} items of at least {least} bytes where {len(data) - after} are left", position
        )
    if length < 0:
        return None, after
    found = []
    for _ in range(length):
        value, after = item(data, after)
        found.append(value)
    return tuple(found), after


def read_uuid(data: bytes, position: int) -> tuple[UUID, int]:
    """Sixteen bytes."""
    raw = data[position : position + 16]
    if len(raw) < 16:
        raise IndexError
    return uuid_of(raw), position + 16


def read_tags(
    data: bytes, position: int, readers: Mapping[int, Reader]
) -> tuple[dict[int, Value], tuple[TaggedField, ...], int]:
    """The section of tagged fields: those with a reader by their tags, the others as they are."""
    start = position
    count, position = _uvarint(data, position)
    if 2 * count > len(data) - position:
        raise Malformed(f"{count} tagged fields in {len(data) - position} bytes", start)
    known: dict[int, Value] = {}
    unknown: list[TaggedField] = []
    last = -1
    for _ in range(count):
        start = position
        tag, position = _uvarint(data, position)
        if not last < tag <= MAX_TAG:
            raise Malformed(f"tag {tag} twice" if tag == last else f"tag {tag} after tag {last}", start)
        last = tag
        start = position
        size, position = _uvarint(data, position)
        if size > len(data) - position:
            raise Malformed(f"tag {tag} of {size} bytes where {len(data) - position} are left", start)
        end = position + size
        reader = readers.get(tag)
        if reader is None:
            unknown.append(TaggedField(tag, data[position:end]))
        else:
            try:
                known[tag], after = reader(data, position)
            except (IndexError, struct.error):
                raise Malformed(f"tag {tag}: the record ends inside it", position) from None
            if after != end:
                raise Malformed(f"tag {tag} of {size} bytes holds a value of {after - position}", start)
        position = end
    return known, tuple(unknown), position


def _uvarint(data: bytes, position: int) -> tuple[int, int]:
    try:
        return read_uvarint(data, position)
    except IndexError:
        raise Malformed("the record ends inside it", position) from None
    except ValueError as error:
        raise Malformed(str(error), position) from None


def corrupt(error: Exception, data: bytes, position: int, name: str, run: tuple[tuple[str, int], ...]) -> CorruptRecord:
    """What a reader of ``name`` raises. ``run``: the fields that it was at, with their sizes where they are fixed."""
    place = run[0][0]
    if isinstance(error, Malformed):
        return CorruptRecord(f"{name}.{place}: {error.what}", error.byte)
    if isinstance(error, UnicodeDecodeError):
        # Only what is a string of less than 127 bytes is decoded where it is read: its length is one byte.
        return CorruptRecord(f"{name}.{place}: a string that is not UTF-8", position + 1 + error.start)
    for name_of, size in run:
        place = name_of
        if position + size > len(data):
            break
        position += size
    return CorruptRecord(f"{name}.{place}: the record ends inside it", min(position, len(data)))


def unpackers(code: str) -> list[Any]:
    """What unpacks small arrays, by the compact length, from 1 (no item) to 63."""
    return [None, *(struct.Struct(f">{count}{code}").unpack_from for count in range(63))]
