"""Decompression of a batch's records, bounded: a lying or hostile frame costs at most ``limit`` bytes.

Kafka names the codec in bits 0-2 of the batch's attributes (``CompressionType``): 0 none, 1 gzip, 2 snappy,
3 lz4 (frame format), 4 zstd. Snappy from Java clients is in xerial framing (``SnappyOutputStream``): the magic
``82 53 4e 41 50 50 59 00``, two int32 versions, then blocks of an int32 length and raw snappy; other
clients write one raw snappy block.
"""

from __future__ import annotations

import struct

import cramjam

CODEC_NAMES = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_OUTPUT_FULL = "failed to write whole buffer"  # cramjam's words for an output buffer that is too small


class CodecError(Exception):
    """The compressed bytes of a batch are no valid frame, or hold more than the limit."""


def decompress(codec: int, data: bytes, limit: int) -> bytes:
    """The uncompressed bytes of ``data``; at most ``limit`` bytes are ever allocated for them, twice.

    Raises ``CodecError`` for an unknown codec, a broken frame and a frame that holds more than ``limit`` bytes.
    """
    if codec == 0:
        return data
    if codec == 2:
        return _snappy(data, limit)
    if codec == 1:
        return _grow(cramjam.gzip.decompress_into, data, limit)
    if codec == 3:
        return _grow(cramjam.lz4.decompress_into, data, limit)
    if codec == 4:
        return _grow(cramjam.zstd.decompress_into, data, limit)
    raise CodecError(f"unknown compression codec {codec}")


def _grow(decompress_into: object, data: bytes, limit: int) -> bytes:
    """Decompress into a buffer of a guessed size, growing it up to the limit.

    The size that a frame announces is never believed: the buffer's own size is what bounds the memory.
    """
    assert callable(decompress_into)
    if not data:
        raise CodecError("no compressed bytes")
    size = min(limit, max(1 << 16, 6 * len(data)))
    while True:
        out = bytearray(size)
        try:
            written = int(decompress_into(data, out))
        except cramjam.DecompressionError as error:
            if _OUTPUT_FULL not in str(error):
                raise CodecError(str(error)) from None
            if size >= limit:
                raise CodecError(f"more than {limit} bytes when uncompressed") from None
            size = min(limit, size * 4)
        else:
            return bytes(memoryview(out)[:written])


def _snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, limit)
    if len(data) < _XERIAL_HEADER:
        raise CodecError("snappy: the xerial header is cut off")
    parts: list[bytes] = []
    total = 0
    pos = _XERIAL_HEADER
    while pos < len(data):
        # A stream may be a concatenation: SnappyInputStream skips a repeated header.
        if data.startswith(_XERIAL_MAGIC, pos) and len(data) - pos >= _XERIAL_HEADER:
            pos += _XERIAL_HEADER
            continue
        if len(data) - pos < 4:
            raise CodecError("snappy: a block length is cut off")
        (length,) = struct.unpack_from(">i", data, pos)
        pos += 4
        if length < 0 or length > len(data) - pos:
            raise CodecError(f"snappy: a block of {length} bytes where {len(data) - pos} are left")
        part = _snappy_block(data[pos : pos + length], limit, total)
        total += len(part)
        parts.append(part)
        pos += length
    return b"".join(parts)


def _snappy_block(block: bytes, limit: int, before: int = 0) -> bytes:
    try:
        size = int(cramjam.snappy.decompress_raw_len(block))
        if before + size > limit:
            raise CodecError(f"more than {limit} bytes when uncompressed")
        # 64 KB of raw snappy can not become more than 21 times as much: a larger claim is a lie.
        if size > 64 * len(block) + 64:
            raise CodecError(f"snappy: a block of {len(block)} bytes claims {size} uncompressed bytes")
        if size == 0 and len(block) != 1:
            raise CodecError(f"snappy: a block of {len(block)} bytes says that it is empty")
        out = bytearray(size)
        written = int(cramjam.snappy.decompress_raw_into(block, out)) if size else 0
    except cramjam.DecompressionError as error:
        raise CodecError(str(error)) from None
    return bytes(memoryview(out)[:written])
