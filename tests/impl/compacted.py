"""Logs to clean: random records over few keys, what a reader makes of them, and one log with its cleaner."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable

from fencepost.impl.compaction import CleanerConfig, CompactionConfig, Kind, LogCleaner, Strategy, Table
from fencepost.impl.compaction.cleaner import Cleaned
from fencepost.impl.compaction.manager import Cleanable
from fencepost.impl.files import Files
from fencepost.impl.log import Codec, DataDirectory, Log, LogConfig, Record, StoredRecord

KEY = ("t", 0)
STRATEGIES = (Strategy(), Strategy(Kind.TIMESTAMP), Strategy(Kind.HEADER, "version"))
LOG = LogConfig(segment_bytes=700, index_interval_bytes=100, cleanup_policy="compact")
MAP_BYTES = 4096


def settings(strategy: Strategy, **more: int | float) -> CompactionConfig:
    """A topic's, that cleans whatever there is."""
    return CompactionConfig(strategy, **{"min_cleanable_dirty_ratio": 0.0, "delete_retention_ms": 100, **more})  # type: ignore[arg-type]


class Place:
    """A data directory with one compacted log, and its cleaner; ``now`` is its clock."""

    def __init__(
        self, files: Files, config: CompactionConfig, *, log: LogConfig = LOG, memory: int = MAP_BYTES, now: int = 0
    ) -> None:
        self.files = files
        self.now = now
        self.directory = DataDirectory(files, node_id=1, cluster_id="test", topics={KEY[0]: log})
        cleaner = CleanerConfig(dedupe_buffer_bytes=memory)
        self.cleaner = LogCleaner(self.directory, {KEY[0]: config}, lambda: self.now, cleaner)
        self.log: Log = self.directory.log(*KEY)

    def clean(self, high_watermark: int | None = None, *, roll: bool = True) -> list[Cleaned]:
        """All passes that there are to do; with ``roll`` the active segment is closed before."""
        if roll:
            self.log.roll()
        done: list[Cleaned] = []
        while what := self.cleanable(high_watermark):
            found = self.cleaner.clean(what)
            assert found is not None and found.end > found.first_dirty
            done.append(found)
        return done

    def cleanable(self, high_watermark: int | None = None) -> Cleanable | None:
        return self.cleaner.cleanable(KEY, self.log.end if high_watermark is None else high_watermark)

    def table(self, strategy: Strategy) -> dict[bytes, bytes]:
        return table_of(self.log.records(self.log.log_start), strategy)


def table_of(records: Iterable[StoredRecord], strategy: Strategy) -> dict[bytes, bytes]:
    table = Table(strategy)
    table.apply_all(records)
    return dict(table)


def naive(records: Iterable[StoredRecord], strategy: Strategy) -> dict[bytes, StoredRecord]:
    """The winner of each key by KIP-280's rules, pair by pair as the text has them."""
    found: dict[bytes, StoredRecord] = {}
    for record in records:
        if record.key is None:
            continue
        other = found.get(record.key)
        found[record.key] = record if other is None or beats(record, other, strategy) else other
    return found


def beats(a: StoredRecord, b: StoredRecord, strategy: Strategy) -> bool:
    """Whether ``a`` stays and ``b`` goes: the text's sentences, one after another."""
    if strategy.kind is Kind.TIMESTAMP and a.timestamp != b.timestamp:
        return a.timestamp > b.timestamp
    if strategy.kind is Kind.HEADER:
        here, there = version(a), version(b)
        if here is not None and there is not None and here != there:
            return here > there
        if (here is None) != (there is None):
            return there is None
    return a.offset > b.offset


def version(record: StoredRecord) -> int | None:
    found = [value for name, value in record.headers if name == "version"]
    if not found or found[-1] is None or len(found[-1]) != 8:
        return None
    return int(struct.unpack(">q", found[-1])[0])


def draw(chance: random.Random, serial: int, now: int, keys: int = 6) -> Record:
    """A record: one in five a tombstone; timestamps and versions that collide; headers that lack, repeat, are wrong."""
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        number = chance.choice((-(1 << 63), -1, 0, 1, 2, 3, (1 << 63) - 1))
        value = (
            chance.choice((None, b"", b"1234567", bytes(9))) if chance.random() < 0.15 else struct.pack(">q", number)
        )
        headers.append((chance.choice(("version", "version", "other")), value))
    value = None if chance.random() < 0.2 else b"%d" % serial + b"x" * chance.randrange(30)
    return Record(value, b"k%d" % chance.randrange(keys), now - chance.randrange(6), tuple(headers))


def fill(log: Log, chance: random.Random, batches: int, now: int, *, epoch: int = 0, keys: int = 6) -> None:
    """Append random batches."""
    for _ in range(batches):
        codec = Codec(chance.randrange(5))
        records = [draw(chance, log.end + n, now, keys) for n in range(chance.randint(1, 4))]
        log.append_as_leader(records, epoch, codec=codec)
    log.flush()


def stored(log: Log) -> list[StoredRecord]:
    return list(log.records(log.log_start))
