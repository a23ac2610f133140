"""What producers of a compacted topic send, and what is on a broker's disk, both as the model has it.

A record is a key, a value or none, a timestamp and the values of one header, out of few, so that producers race on all
of them. Each value is its own, so that a record that was changed is told from the one that was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ....impl.files.interface import Files, read_file
from ....impl.log.batch import read_batches
from ....impl.log.errors import CorruptBatch
from ....impl.log.records import Headers, Record, StoredRecord
from ....impl.log.segment import LOG_SUFFIX
from ....impl.net.clock import WALL_START
from ...adapters.cluster import PARTITION
from ...adapters.stores import OncePerChange

HEADER: Final = "version"
"""``compaction.strategy.header``."""
_LONGS: Final = (-(1 << 63), -1, 0, 1, (1 << 63) - 1)
"""Values of the header, in their order."""
_NO_LONGS: Final = (b"", b"1234567", bytes(9), None)
"""Values that are none."""
BEFORE_MS: Final = 1_000
"""The first timestamp is so much older than the run: the age of records and segments counts from it."""
STEP_MS: Final = 50
"""From one of the model's timestamps to the next."""


class Sent(NamedTuple):
    """A record, in the model's numbers. ``key``: the number of keys stands for none. Of the headers 0 is none, and the
    largest a value that is no long."""

    key: int
    tombstone: int
    timestamp: int
    header: int
    earlier_header: int


class Row(NamedTuple):
    """A record on a disk: where it is, what it is, its bytes, and the delete horizon of its batch."""

    offset: int
    epoch: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers
    horizon: int | None

    @property
    def content(self) -> tuple[object, ...]:
        """What never changes."""
        return self.key, self.value, self.timestamp, self.headers


def header_value(number: int, values: int, serial: int) -> bytes | None:
    """The bytes of a header of the model, from 1 on; ``values``: how many of them are longs."""
    if number > values:
        return _NO_LONGS[serial % len(_NO_LONGS)]
    return _LONGS[number - 1].to_bytes(8, "big", signed=True)


def most_longs() -> int:
    """How many values of the header there may be."""
    return len(_LONGS)


def made(sent: Sent, constants: Mapping[str, int], serial: int) -> Record:
    """The record that a producer sends; ``serial`` is its own."""
    values = constants["header_values"]
    headers = [
        (HEADER, header_value(number, values, serial)) for number in (sent.earlier_header, sent.header) if number
    ]
    key = None if sent.key == constants["keys"] else b"k%d" % sent.key
    value = None if sent.tombstone else b"%d" % serial
    return Record(value, key, WALL_START - BEFORE_MS + STEP_MS * sent.timestamp, (("other", b"x"), *headers))


def cells_of_record(row: Row, constants: Mapping[str, int]) -> dict[str, int]:
    """What a record is, by variable."""
    found = [value for name, value in row.headers if name == HEADER]
    return {
        "record_key": -1 if row.key is None else int(row.key[1:]),
        "record_tombstone": int(row.value is None),
        "record_timestamp": (row.timestamp - WALL_START + BEFORE_MS) // STEP_MS,
        "record_header": _number(found[-1], constants) if found else -1,
        "record_earlier_header": _number(found[-2], constants) if len(found) > 1 else -1,
    }


def _number(value: bytes | None, constants: Mapping[str, int]) -> int:
    if value is None or len(value) != 8:
        return constants["header_values"]
    return _LONGS.index(int.from_bytes(value, "big", signed=True))


class LogReader:
    """Reads what is in a replica's segments, past its broker. The same bytes are decoded once."""

    def __init__(self) -> None:
        self._decoded: dict[bytes, tuple[Row, ...]] = {}
        self.read = OncePerChange(self._read)
        """The records of a disk, in the order of its segments' names."""

    def _read(self, files: Files) -> tuple[Row, ...]:
        folder = str(PARTITION)
        if not files.exists(folder):
            return ()
        found: list[Row] = []
        for name in files.list(folder):
            if name.endswith(LOG_SUFFIX):
                found += self._decode(read_file(files, f"{folder}/{name}"))
        return tuple(found)

    def _decode(self, data: bytes) -> tuple[Row, ...]:
        found = self._decoded.get(data)
        if found is None:
            rows: list[Row] = []
            try:
                for batch in read_batches(data):
                    rows += (row_of(record, batch.delete_horizon) for record in batch.records())
            except CorruptBatch:
                pass  # a crash tears the last batch, and recovery cuts it off
            found = self._decoded[data] = tuple(rows)
        return found


def row_of(record: StoredRecord, horizon: int | None) -> Row:
    """A record of a batch with this delete horizon."""
    return Row(record.offset, record.leader_epoch, record.key, record.value, record.timestamp, record.headers, horizon)
