"""How fast the log appends and reads: ``python benchmarks/log.py [RECORDS] [FOLDER]``.

Batches of 100 records of 100 bytes, by a leader, copied by a follower, read whole and record by record, on a real disk
(in FOLDER, a temporary one by default) and in memory; then one record a batch, with a flush after each. Prints records
and megabytes (of 10**6 bytes) a second, and ratios within this run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fencepost.impl.files import DiskFiles, Files, SimulatedFiles
from fencepost.impl.log import Codec, DataDirectory, Log, LogConfig, Record

BATCH = 100
VALUE = bytes(range(100))
CONFIG = LogConfig(segment_bytes=64 << 20)


def timed(label: str, records: int, job: Callable[[], int]) -> float:
    """Run a job, which gives the bytes that it handled; print and give records a second."""
    start = time.perf_counter()
    size = job()
    seconds = time.perf_counter() - start
    print(f"  {label:<44}{records / seconds:>12,.0f} records/s{size / seconds / 1e6:>10,.1f} MB/s")
    return records / seconds


def lead(log: Log, records: int, codec: Codec = Codec.NONE) -> int:
    """Append batches and flush once."""
    for n in range(0, records, BATCH):
        log.append_as_leader([Record(VALUE, b"key", n)] * BATCH, n // (records // 4 + 1), codec=codec)
    log.flush()
    return log.size


def copy(leader: Log, follower: Log) -> int:
    """Fetch a megabyte at a time until the follower has everything."""
    while follower.end < leader.end:
        follower.append_as_follower(b"".join(batch.data for batch in leader.read(follower.end)))
    follower.flush()
    return follower.size


def read_whole(log: Log) -> int:
    """Every batch, with its CRC checked."""
    offset = size = 0
    while offset < log.end:
        batches = log.read(offset)
        size += sum(batch.size for batch in batches)
        offset = batches[-1].next_offset
    return size


def read_records(log: Log) -> int:
    """Every record, decoded."""
    assert sum(1 for _ in log.records(0)) == log.end
    return log.size


def one_by_one(log: Log, records: int, *, flush: bool) -> int:
    """A batch for each record, as an acks=all producer with nothing to batch sends them."""
    for n in range(records):
        log.append_as_leader([Record(VALUE, b"key", n)], 0)
        if flush:
            log.flush()
    return log.size


def measure(name: str, files: Files, records: int) -> dict[str, float]:
    """All figures for one kind of files."""
    print(f"{name}:")
    directory = DataDirectory(files, node_id=1, cluster_id="benchmark", config=CONFIG)
    log = directory.log("bench", 0)
    rates = {
        "append": timed("append as leader", records, lambda: lead(log, records)),
        "lz4": timed("append as leader, lz4", records, lambda: lead(directory.log("bench", 1), records, Codec.LZ4)),
        "copy": timed("copy to a follower", records, lambda: copy(log, directory.log("bench", 2))),
        "read": timed("read batches", records, lambda: read_whole(log)),
        "decode": timed("read records", records, lambda: read_records(log)),
    }
    few = max(records // 100, 100)
    rates["one"] = timed("append one by one", few, lambda: one_by_one(directory.log("bench", 3), few, flush=False))
    rates["synced"] = timed(
        "append one by one, flushed", few, lambda: one_by_one(directory.log("bench", 4), few, flush=True)
    )
    end = log.end

    def reopen() -> int:
        again = DataDirectory(files, node_id=1, cluster_id="benchmark", config=CONFIG).log("bench", 0)
        assert again.end == end
        return again.size

    rates["recover"] = timed("recover after a crash, all of it", records, reopen)
    directory.close()
    return rates


def main(records: int = 200_000, folder: str | None = None) -> None:
    """Print the figures."""
    print(f"{records:,} records of {len(VALUE)} bytes, {BATCH} a batch")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        disk = measure(f"disk ({scratch})", DiskFiles(Path(scratch) / "data"), records)
    memory = measure("memory", SimulatedFiles(1), records)

    def ratio(what: str, over: str) -> str:
        return f"{what} : {over} {disk[what] / disk[over]:.2f} x"

    print("memory : disk", *(f"{each} {memory[each] / disk[each]:.2f} x" for each in memory), sep="  ")
    pairs = ("copy", "append"), ("read", "append"), ("read", "decode"), ("append", "lz4"), ("one", "synced")
    print("on disk", *(ratio(*pair) for pair in pairs), sep="  ")


if __name__ == "__main__":
    main(*[int(each) for each in sys.argv[1:2]], *sys.argv[2:3])
