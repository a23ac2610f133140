"""Variable-length integers: LEB128, zig-zag for signed ones (``ByteUtils`` in Kafka)."""

from __future__ import annotations


def uvarint(value: int) -> bytes:
    """Unsigned. ``value`` must not be negative."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """Signed, zig-zag: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def read_uvarint(data: bytes, position: int, max_bytes: int = 5) -> tuple[int, int]:
    """The number at ``position`` and the position after it.

    Raises ``IndexError`` where the data end, ``ValueError`` for more than ``max_bytes`` (5 for int32, 10 for int64).
    """
    value = shift = 0
    for _ in range(max_bytes):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError(f"a varint of more than {max_bytes} bytes")


def read_varint(data: bytes, position: int, max_bytes: int = 5) -> tuple[int, int]:
    """Signed; like ``read_uvarint``."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    raw, position = read_uvarint(data, position, max_bytes)
    return (raw >> 1) ^ -(raw & 1), position
