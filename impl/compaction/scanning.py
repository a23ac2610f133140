"""The records of a batch, as far as the cleaner needs them, and where their bytes lie: most are copied as they are."""

from __future__ import annotations

from typing import NamedTuple

from ..log.batch import DECOMPRESSED_LIMIT, HEADER_BYTES, LOG_APPEND_TIME, Batch
from ..log.codecs import decompress
from ..log.errors import CorruptBatch
from ..log.varint import read_varint
from .strategy import ABSENT, NO_RANK, Kind, Strategy, header_rank


class Scanned(NamedTuple):
    """A record. Its bytes are ``start`` to ``end``; its attributes are at ``body``, its key begins at ``rest``."""

    offset: int
    timestamp: int
    key: bytes | None
    has_value: bool
    rank: int
    start: int
    body: int
    rest: int
    end: int


def scan(batch: Batch, strategy: Strategy) -> tuple[bytes, list[Scanned]]:
    """The bytes of a batch's records, decompressed, and each record. For batches of magic 2.

    What a record has from ``rest`` on does not depend on the batch's timestamp; its offset delta, which never changes,
    is in it. Raises ``CorruptBatch`` for what does not parse.
    """
    payload = batch.data[HEADER_BYTES:]
    try:
        if batch.codec and (batch.record_count or payload):
            payload = decompress(batch.codec, payload, DECOMPRESSED_LIMIT)
        return payload, _records(batch, payload, strategy)
    except IndexError:
        raise CorruptBatch(f"the batch at offset {batch.base_offset}: the bytes end inside a record") from None
    except ValueError as error:
        raise CorruptBatch(f"the batch at offset {batch.base_offset}: {error}") from None


def _records(batch: Batch, data: bytes, strategy: Strategy) -> list[Scanned]:
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    appended = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
    by_timestamp = strategy.kind is Kind.TIMESTAMP
    wanted = strategy.header.encode() if strategy.kind is Kind.HEADER else None
    records: list[Scanned] = []
    position, size, last = 0, len(data), batch.last_offset
    previous = base_offset - 1
    for _ in range(batch.record_count):
        # Five numbers a record, nearly all of them of one or two bytes: a call for each would be half of the time.
        start = position
        length = data[position]
        body = position + 1
        if length < 0x80:
            length = (length >> 1) ^ -(length & 1)
        else:
            length, body = read_varint(data, position)
        end = body + length
        if length < 0 or end > size:
            raise ValueError(f"a record runs to byte {end} of {size}")
        delta = data[body + 1]
        rest = body + 2
        if delta < 0x80:
            delta = (delta >> 1) ^ -(delta & 1)
        else:
            delta, rest = read_varint(data, body + 1, 10)
        timestamp = base_timestamp + delta if appended is None else appended
        delta = data[rest]
        position = rest + 1
        if delta < 0x80:
            delta = (delta >> 1) ^ -(delta & 1)
        else:
            delta, position = read_varint(data, rest)
        offset = base_offset + delta
        if not previous < offset <= last:
            raise ValueError(f"a record of offset {offset} after {previous}, the last is {last}")
        previous = offset
        length = data[position]
        if length < 0x80:
            length = (length >> 1) ^ -(length & 1)
            position += 1
        else:
            length, position = read_varint(data, position)
        key = None
        if length >= 0:
            key = data[position : position + length]
            position += length
        length, position = read_varint(data, position)
        value_end = position + length if length > 0 else position
        if value_end > end:
            raise ValueError(f"the record of offset {offset} has fields behind its end")
        rank = NO_RANK
        if by_timestamp:
            rank = timestamp
        elif wanted is not None:
            rank = _rank(data, value_end, end, wanted)
        records.append(Scanned(offset, timestamp, key, length >= 0, rank, start, body, rest, end))
        position = end
    if position != size:
        raise ValueError(f"{size - position} bytes are left behind the last record")
    return records


def _rank(data: bytes, position: int, end: int, wanted: bytes) -> int:
    """The rank by the last header of this name, among those that begin at ``position``."""
    rank = ABSENT
    count, position = read_varint(data, position)
    for _ in range(count):
        length, position = read_varint(data, position)
        name = data[position : position + length]
        position += length
        length, position = read_varint(data, position)
        if position + max(length, 0) > end:
            raise ValueError("a header runs past the end of its record")
        if name == wanted:
            rank = header_rank(data[position : position + length] if length >= 0 else None)
        position += max(length, 0)
    return rank
