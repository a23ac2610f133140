"""Compression of a batch's records (``CompressionType`` in Kafka).

Snappy is written in the framing of ``SnappyOutputStream`` (xerial), which is what Java clients expect: the magic
``82 53 4e 41 50 50 59 00``, two int32 versions, then blocks of an int32 length and raw snappy. Other clients write one
raw snappy block, so both are read. lz4 is the frame format, written with independent blocks: Kafka's reader
(``Lz4BlockInputStream``) refuses blocks that lean on each other, which is what most libraries write.
"""

from __future__ import annotations

import struct
from enum import IntEnum

import cramjam

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 << 10  # what SnappyOutputStream compresses at a time
_BUFFER_TOO_SMALL = "failed to write whole buffer"  # cramjam's words for it
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
"""Magic; version 1, independent blocks, no checksums, no size; blocks of at most 64 KiB; the checksum of these two."""
_LZ4_BLOCK = 64 << 10
_LZ4_STORED = 1 << 31
_LZ4_SIZE = struct.Struct("<I")
_LENGTH = struct.Struct(">i")


class Codec(IntEnum):
    """Bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: bytes) -> bytes:
    """``data`` as one frame."""
    if codec is Codec.NONE:
        return data
    if codec is Codec.GZIP:
        return bytes(cramjam.gzip.compress(data))
    if codec is Codec.LZ4:
        return _lz4(data)
    if codec is Codec.ZSTD:
        return bytes(cramjam.zstd.compress(data))
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        parts += [_LENGTH.pack(len(block)), block]
    return b"".join(parts)


def _lz4(data: bytes) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK):
        plain = data[start : start + _LZ4_BLOCK]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += [_LZ4_SIZE.pack(len(block)), block]
        else:
            parts += [_LZ4_SIZE.pack(len(plain) | _LZ4_STORED), plain]
    parts.append(_LZ4_SIZE.pack(0))
    return b"".join(parts)


def decompress(codec: int, data: bytes, limit: int) -> bytes:
    """The bytes that ``data`` holds. Raises ``ValueError`` for a broken frame, or one of more than ``limit`` bytes.

    The size that a frame announces is not believed: a hostile producer must not cost the broker its memory.
    """
    if codec == Codec.NONE:
        return data
    try:
        if codec == Codec.SNAPPY:
            return _snappy(data, limit)
        if codec == Codec.GZIP:
            return _bounded(cramjam.gzip.decompress_into, data, limit)
        if codec == Codec.LZ4:
            return _bounded(cramjam.lz4.decompress_into, data, limit)
        if codec == Codec.ZSTD:
            return _bounded(cramjam.zstd.decompress_into, data, limit)
    except cramjam.DecompressionError as error:
        raise ValueError(f"no valid {Codec(codec).name.lower()} frame: {error}") from None
    raise ValueError(f"unknown compression codec {codec}")


def _bounded(decompress_into: object, data: bytes, limit: int) -> bytes:
    assert callable(decompress_into)
    if not data:
        raise ValueError("no compressed bytes")
    size = min(limit, max(4096, 4 * len(data)))
    while True:
        out = bytearray(size)
        try:
            written = int(decompress_into(data, out))
        except cramjam.DecompressionError as error:
            if _BUFFER_TOO_SMALL not in str(error):
                raise
            if size >= limit:
                raise ValueError(f"more than {limit} bytes when uncompressed") from None
            size = min(limit, 4 * size)
        else:
            return bytes(memoryview(out)[:written])


def _snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, limit)
    parts: list[bytes] = []
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if data.startswith(_XERIAL_MAGIC, position):  # streams may be put one after another
            position += len(_XERIAL_HEADER)
            continue
        if len(data) - position < _LENGTH.size:
            raise ValueError("snappy: a block's length is cut off")
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise ValueError(f"snappy: a block of {length} bytes where {len(data) - position} are left")
        part = _snappy_block(data[position : position + length], limit)
        limit -= len(part)
        parts.append(part)
        position += length
    return b"".join(parts)


def _snappy_block(block: bytes, limit: int) -> bytes:
    size = int(cramjam.snappy.decompress_raw_len(block))
    if size > limit:
        raise ValueError(f"more than the {limit} bytes that are allowed when uncompressed")
    if size > 64 * len(block) + 64:  # snappy's best is 64 bytes from 3
        raise ValueError(f"snappy: a block of {len(block)} bytes claims {size}")
    if size == 0:
        return b""
    out = bytearray(size)
    return bytes(memoryview(out)[: int(cramjam.snappy.decompress_raw_into(block, out))])
