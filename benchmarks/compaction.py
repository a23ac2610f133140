"""What cleaning a compacted log costs: ``python benchmarks/compaction.py``.

1. KIP-630's read volumes ("Loading State and Frequency of Compaction"): a state of 100 MB that changes by 1 MB/s, kept
   by in-memory snapshots or by compaction. The text: snapshots read 1 MB/s from the head of the log; compaction reads
   that, 1 MB/s for the map of keys to offsets, and 3 MB/s to copy what lives (100 + 50 MB each 50 s). Here the quorum's
   own replica and the cleaner run, on real files, and what is counted is every byte that is read of them. A second is
   1 MB of changes; nothing waits.
2. How fast a log is cleaned, under each strategy, by CPU time, and bytes a key.
3. Memory at most of processes that clean a log, and one of four times its length with as many keys.
4. Apache Kafka's own cleaner on the same log (``--kafka``, in a JVM, from the cache of jars or by Maven): the same
   records survive, byte for byte of key and value; and how long both took.

MB are 10**6 bytes. Ratios are of this run.
"""

from __future__ import annotations

import importlib
import json
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cyclopts import App
from fencepost.impl.compaction import CleanerConfig, CompactionConfig, Kind, LogCleaner, OffsetMap, Strategy, Table
from fencepost.impl.compaction.cleaner import Cleaned
from fencepost.impl.files import DiskFiles, File, Files
from fencepost.impl.log import DataDirectory, LogConfig, Record
from fencepost.impl.net import RealClock
from fencepost.impl.quorum import KeyValueMachine, QuorumConfig
from fencepost.impl.quorum.metrics import QuorumMetrics
from fencepost.impl.quorum.replica import Replica
from fencepost.impl.quorum.snapshots import SnapshotStore

app = App(help=__doc__, version_flags=[])

KEY = ("t", 0)
MB = 1_000_000
BATCH = 100
STRATEGIES = (Strategy(), Strategy(Kind.TIMESTAMP), Strategy(Kind.HEADER, "version"))
TEXT = {"head": 1.0, "map": 1.0, "copy": 3.0}
"""KIP-630's MB/s."""


class CountedFile:
    """A file that counts what is read of it."""

    def __init__(self, file: File, counted: Counter[str], owner: CountedFiles) -> None:
        self._file = file
        self._counted = counted
        self._owner = owner

    def pread(self, position: int, length: int) -> bytes:
        data = self._file.pread(position, length)
        self._counted[self._owner.reader] += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class CountedFiles:
    """A disk that counts, for each ``reader``, how many bytes were read."""

    def __init__(self, root: str) -> None:
        self._files = DiskFiles(root)
        self.reader = "opening"
        self.read: Counter[str] = Counter()

    def open(self, path: str, *, create: bool = False) -> Any:
        return CountedFile(self._files.open(path, create=create), self.read, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


def changes(
    chance: random.Random, keys: int, count: int, size: int, now: int, *, tombstones: float = 0
) -> list[Record]:
    """Changes of random keys. Versions and timestamps rise but for one in ten, which comes late."""
    found = []
    for _ in range(count):
        late = 1000 if chance.random() < 0.1 else 0
        version = struct.pack(">q", now - late)
        key = b"key-%010d" % chance.randrange(keys)
        value = None if chance.random() < tombstones else chance.randbytes(8) * (size // 8)
        found.append(Record(value, key, now - late, (("version", version),)))
    return found


def everything(keys: int, size: int) -> Iterator[list[Record]]:
    """Each key once."""
    chance = random.Random(0)
    for first in range(0, keys, BATCH):
        version = (("version", struct.pack(">q", 0)),)
        value = chance.randbytes(8) * (size // 8)
        yield [Record(value, b"key-%010d" % n, 0, version) for n in range(first, min(keys, first + BATCH))]


def directory(files: Files, segment_bytes: int) -> DataDirectory:
    config = LogConfig(segment_bytes=segment_bytes, cleanup_policy="compact")
    return DataDirectory(files, node_id=1, cluster_id="benchmark", topics={KEY[0]: config})


# -- 1: KIP-630's read volumes -------------------------------------------------------------------------------------


def compaction_volumes(root: str, state: int, cleanings: int, ratio: float) -> tuple[Counter[str], int, list[Cleaned]]:
    """MB/s of each reader, the seconds, and the cleanings after the first, which makes the state."""
    files = CountedFiles(root)
    place = directory(files, max(state // 10, MB))
    log, chance, size = place.log(*KEY), random.Random(1), 1000
    keys = state // (size + 40)
    settings = CompactionConfig(min_cleanable_dirty_ratio=ratio, segment_ms=1 << 50)
    cleaner = LogCleaner(place, {KEY[0]: settings}, lambda: 0, CleanerConfig(dedupe_buffer_bytes=64 << 20))
    table, read = Table(Strategy()), 0
    for batch in everything(keys, size):
        log.append_as_leader(batch, 0)
    log.flush()
    log.roll()
    done: list[Cleaned] = []
    seconds = 0
    while len(done) <= cleanings:
        if due := cleaner.due({KEY: log.end}):
            files.reader = "cleaning"
            found = cleaner.clean(due[0])
            assert found is not None
            done.append(found)
            if len(done) == 1:
                table.apply_all(log.records(0))
                read = log.end
                files.read.clear()
            continue
        seconds += 1
        written = log.size
        while log.size - written < MB:
            log.append_as_leader(changes(chance, keys, BATCH, size, seconds), 0)
        files.reader = "head"
        table.apply_all(log.records(read))
        read = log.end
        files.reader = "looking for what to clean"
    place.close()
    return files.read, seconds, done[1:]


def snapshot_volumes(root: str, state: int, snapshots: int) -> tuple[Counter[str], int]:
    """The same changes, applied by the quorum's replica; a snapshot for as many bytes of them as the state has."""
    files = CountedFiles(root)
    config = QuorumConfig(voters=(0,))
    place = DataDirectory(files, node_id=0, cluster_id=config.cluster_id, config=config.log)
    log, chance, size = place.log(*config.partition), random.Random(1), 1000
    keys = state // (size + 40)
    replica = Replica(log, SnapshotStore(files, log.folder), KeyValueMachine(), RealClock(), QuorumMetrics())
    for batch in everything(keys, size):
        log.append_as_leader(batch, 0)
    log.flush()
    replica.raise_high_watermark(log.end)
    files.read.clear()
    seconds, since = 0, log.size
    while snapshots:
        seconds += 1
        written = log.size
        while log.size - written < MB:
            log.append_as_leader(changes(chance, keys, BATCH, size, seconds), 0)
        log.flush()
        files.reader = "head"
        replica.raise_high_watermark(log.end)
        if log.size - since >= state:
            files.reader = "snapshot"
            replica.generate_snapshot()
            since, snapshots = log.size, snapshots - 1
    place.close()
    return files.read, seconds


def volumes(state: int, cleanings: int) -> None:
    """Part 1."""
    print(f"read volumes: a state of {state / MB:.0f} MB that changes by 1 MB/s, MB/s")
    print(f"  {'':<44}{'head':>8}{'map':>8}{'copy':>8}{'all':>8}")
    print(f"  {'KIP-630, snapshots':<44}{1:>8.2f}{0:>8.2f}{0:>8.2f}{1:>8.2f}")
    with tempfile.TemporaryDirectory() as root:
        read, seconds = snapshot_volumes(root, state, cleanings)
    head, more = read["head"] / seconds / MB, read["snapshot"] / seconds / MB
    print(f"  {'here, snapshots':<44}{head:>8.2f}{0:>8.2f}{more:>8.2f}{head + more:>8.2f}", flush=True)
    text = TEXT["head"], TEXT["map"], TEXT["copy"]
    print(f"  {'KIP-630, compaction':<44}{text[0]:>8.2f}{text[1]:>8.2f}{text[2]:>8.2f}{sum(text):>8.2f}")
    for ratio, what in ((0.5, "the default"), (1 / 3, "the text's 50 MB for 100")):
        with tempfile.TemporaryDirectory() as root:
            read, seconds, done = compaction_volumes(root, state, cleanings, ratio)
        head = read["head"] / seconds / MB
        mapped = sum(each.counts.mapped_bytes for each in done)
        copied = sum(each.counts.copied_bytes for each in done)
        rest = read["cleaning"] - mapped - copied + read["looking for what to clean"]
        name = f"here, dirty ratio {ratio:.2f}, {what}"
        each = head, mapped / seconds / MB, copied / seconds / MB
        print(f"  {name:<44}{each[0]:>8.2f}{each[1]:>8.2f}{each[2]:>8.2f}{sum(each):>8.2f}", end="")
        print(f"  + {rest / seconds / MB:.2f} beside; a cleaning each {seconds / len(done):.0f} s", flush=True)


# -- 2: speed and bytes a key --------------------------------------------------------------------------------------


def write(root: str, size: int, total: int, keys: int, segment_bytes: int, tombstones: float = 0) -> None:
    """A log of random changes, its active segment closed."""
    place = directory(DiskFiles(root), segment_bytes)
    log, chance, now = place.log(*KEY), random.Random(2), 1000
    while log.size < total:
        now += 1
        log.append_as_leader(changes(chance, keys, BATCH, size, now, tombstones=tombstones), 0)
    log.flush()
    log.roll()
    place.close()


def clean(root: str, strategy: Strategy, memory: int, segment_bytes: int) -> tuple[float, Cleaned]:
    """Seconds of CPU of the cleaner alone."""
    place = directory(DiskFiles(root), segment_bytes)
    settings = CompactionConfig(strategy, min_cleanable_dirty_ratio=0)
    cleaner = LogCleaner(place, {KEY[0]: settings}, lambda: 0, CleanerConfig(dedupe_buffer_bytes=memory))
    (what,) = cleaner.due({KEY: place.log(*KEY).end})
    start = time.process_time()
    done = cleaner.clean(what)
    seconds = time.process_time() - start
    assert done is not None and done.end == what.bound
    place.close()
    return seconds, done


def speed(total: int) -> None:
    """Part 2."""
    print("\ncleaning, of the bytes that were dirty")
    first: dict[int, float] = {}
    for size in (100, 1000):
        with tempfile.TemporaryDirectory() as source:
            keys = total // (size + 40) // 10
            write(source, size, total, keys, 16 * MB)
            for strategy in STRATEGIES:
                with tempfile.TemporaryDirectory() as root:
                    shutil.copytree(source, root, dirs_exist_ok=True)
                    seconds, done = clean(root, strategy, 32 << 20, 16 * MB)
                rate = done.bytes_before / seconds / MB
                first.setdefault(size, rate)
                print(f"  values of {size:>4} bytes, {strategy.kind.value:<10}{rate:>8.1f} MB/s", end="")
                print(f"{done.counts.records_read / seconds:>12,.0f} records/s", end="")
                print(
                    f"   {rate / first[size]:.2f} x offset   {done.keys:,} keys of {done.counts.records_read:,} records"
                )
    print("\nbytes a key          KIP-280    payload   slot    at a load factor of 0.9")
    for strategy, text in zip(STRATEGIES, (8, 16, 16), strict=True):
        winners = OffsetMap(1 << 20, ranked=strategy.ranked)
        number = 0
        while winners.put(b"%d" % number, 0, number):
            number += 1
        a_key = winners.memory / winners.size
        print(f"  {strategy.kind.value:<16}{text:>12}{winners.payload_bytes:>11}{winners.slot_bytes:>7}{a_key:>13.1f}")


# -- 3: memory -----------------------------------------------------------------------------------------------------


@app.command
def peak(root: str, segment_bytes: int) -> None:
    """Clean the log there, and print the process's memory before and at most, in KiB."""
    before = most_kib()
    clean(root, STRATEGIES[2], 4 << 20, segment_bytes)
    print(json.dumps([before, most_kib()]))


def most_kib() -> int:
    """Resident memory of this process at most. What ``getrusage`` says begins with that of the one that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory(total: int) -> None:
    """Part 3."""
    print("\nmemory at most, MiB: before, and while a log is cleaned by header with a map of 4 MiB")
    found = []
    for length in (total, 4 * total):
        with tempfile.TemporaryDirectory() as root:
            write(root, 100, length, 50_000, 4 * MB)
            run = [sys.executable, __file__, "peak", root, str(4 * MB)]
            before, most = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
        found.append((most - before) / 1024)
        print(f"  a log of {length / MB:>5.0f} MB{before / 1024:>10.1f}{most / 1024:>8.1f}", flush=True)
    print(f"  four times the log takes {found[1] / found[0]:.2f} x the memory")


@app.default
def main(state_mb: int = 100, cleanings: int = 2, speed_mb: int = 32, memory_mb: int = 16, kafka: bool = False) -> None:
    """All parts; the fourth where ``--kafka`` says so."""
    volumes(state_mb * MB, cleanings)
    speed(speed_mb * MB)
    memory(memory_mb * MB)
    if kafka:
        sys.path.insert(0, str(Path(__file__).parent))  # where this is run as a module of its package
        compare = importlib.import_module("compaction_kafka").compare
        with tempfile.TemporaryDirectory() as folder:
            compare(Path(folder), speed_mb * MB)


if __name__ == "__main__":
    app()
