"""Record batches that are on their way and arrive otherwise than they were sent: one bit, that a CRC covers.

Whoever gets them must notice, and take nothing: a leader answers CORRUPT_MESSAGE, a follower fetches again, a consumer
raises. Bits that no CRC covers are left alone: a base offset or a leader epoch may be believed.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any, Final

from ...impl.wire.messages import Envelope

_HEAD: Final = struct.Struct(">qi")
"""A batch's base offset and its length, which counts what follows itself."""
_CRC: Final = 17
"""In a batch of magic 2 the CRC begins here, and what it covers follows."""
_PLACES: Final = 7
"""In so many places of a batch a bit is turned, from the CRC to the last byte."""


def has_batches(envelope: Envelope) -> bool:
    """Whether a message carries record batches."""
    return bool(getattr(envelope.body, "records", b""))


def garbled(envelope: Envelope, way: int) -> Envelope:
    """The message with one bit turned in one of its batches; ``way`` says where."""
    body: Any = envelope.body
    return replace(envelope, body=replace(body, records=turned(body.records, way)))


def turned(records: bytes, way: int) -> bytes:
    """The batches with one bit turned."""
    starts, start = list[int](), 0
    while start < len(records):
        starts.append(start)
        start += _HEAD.size + _HEAD.unpack_from(records, start)[1]
    begin = starts[way % len(starts)]
    end = _HEAD.size + _HEAD.unpack_from(records, begin)[1] + begin
    last = end - 1 - (begin + _CRC)
    place = begin + _CRC + last * (way % _PLACES) // (_PLACES - 1)
    found = bytearray(records)
    found[place] ^= 1 << way % 8
    return bytes(found)
