"""Apache Kafka's own cleaner on a log that ours has cleaned too: the fourth part of ``benchmarks/compaction.py``.

``org.apache.kafka.storage.internals.log.Cleaner`` of the release in the cache of jars (or of 4.4.0, by Maven), in a
JVM, on a copy of the very files: ``UnifiedLog`` opens them, the map is a ``SkimpyOffsetMap`` of as many bytes, the
bound is the same. What is left must be the same records: offset, timestamp, key, value and headers. Both are measured
by the CPU time of the thread that cleans; Kafka's twice, as the second time its code is compiled.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compaction import KEY, MB, STRATEGIES, clean, write
from fencepost.impl.log import StoredRecord, read_batches
from fencepost.traces.jvm import java_binary
from fencepost.traces.kafka.maven import default_cache, fetch_kafka

VERSION = "4.4.0"
MAP_BYTES = 32 << 20
SEGMENT_BYTES = 16 * MB
_LOG = "org.apache.kafka.storage.internals.log."


def survivors(folder: Path) -> Iterator[StoredRecord]:
    """All records of a log, by its files alone."""
    for path in sorted((folder / f"{KEY[0]}-{KEY[1]}").glob("*.log")):
        for batch in read_batches(path.read_bytes(), str(path)):
            yield from batch.records()


class Kafka:
    """A JVM with Kafka's classes."""

    def __init__(self, gateway: Any) -> None:
        self._jvm = gateway.jvm

    def new(self, name: str, *arguments: Any) -> Any:
        """An object of a class."""
        return self.type(name)(*arguments)

    def type(self, name: str) -> Any:
        """A class by its full name."""
        part = self._jvm
        for word in name.split("."):
            part = getattr(part, word)
        return part

    def open(self, folder: Path, *, clean: bool = True, **more: str) -> Any:
        """The log there, as a broker opens it after a shutdown; ``more`` are configs of the topic's."""
        settings = self.new("java.util.HashMap")
        for name, value in (
            ("cleanup.policy", "compact"),
            ("segment.bytes", str(SEGMENT_BYTES)),
            ("file.delete.delay.ms", "0"),
            *more.items(),
        ):
            settings.put(name.replace("_", "."), value)
        none = self.type("java.util.Optional").empty()
        return self.type(_LOG + "UnifiedLog").create(
            self.new("java.io.File", str(folder / f"{KEY[0]}-{KEY[1]}")),
            self.new(_LOG + "LogConfig", settings),
            0,
            0,
            self.new("org.apache.kafka.server.util.KafkaScheduler", 1),
            self.new("org.apache.kafka.storage.log.metrics.BrokerTopicStats"),
            self.type("org.apache.kafka.common.utils.Time").SYSTEM,
            60_000,
            self.new(_LOG + "ProducerStateManagerConfig", 86_400_000, False),
            600_000,
            self.new(_LOG + "LogDirFailureChannel", 1),
            clean,
            none,
        )

    def clean(self, folder: Path, bound: int) -> tuple[float, int]:
        """Seconds of CPU of Kafka's cleaner, and how far it came."""
        log = self.open(folder)
        cleaner, what = self.cleaner(), self.new(_LOG + "LogToClean", log, 0, bound, False)
        threads = self.type("java.lang.management.ManagementFactory").getThreadMXBean()
        start = threads.getCurrentThreadCpuTime()
        end = cleaner.clean(what).getKey()
        seconds = (threads.getCurrentThreadCpuTime() - start) / 1e9
        log.close()
        return seconds, int(end)

    def clean_at(self, log: Any, first_dirty: int, bound: int, now: int) -> int:
        """Clean an open log at this time, in milliseconds; gives how far it came."""
        what = self.new(_LOG + "LogToClean", log, first_dirty, bound, False)
        return int(self.cleaner().doClean(what, now).getKey())

    def cleaner(self) -> Any:
        """A cleaner with a map of ``MAP_BYTES``."""
        clock = self.type("org.apache.kafka.common.utils.Time").SYSTEM
        throttler = self.new(
            "org.apache.kafka.storage.internals.utils.Throttler", 1e12, 1000, "cleaner", "bytes", clock
        )
        done = self.type("java.util.stream.Stream").builder()  # something that takes what it is told
        winners = self.new(_LOG + "SkimpyOffsetMap", MAP_BYTES)
        return self.new(_LOG + "Cleaner", 0, winners, 1 << 19, 1 << 20, 0.9, throttler, clock, done)


def launch() -> tuple[str, Any]:
    """The release in the cache of jars, or the one that is fetched, and a JVM with it."""
    cached = sorted(default_cache().glob("*-layout*"))
    version = cached[-1].name.partition("-layout")[0] if cached else VERSION
    gateways = importlib.import_module("py4j.java_gateway")
    return version, gateways.JavaGateway.launch_gateway(
        classpath=fetch_kafka(version, timeout=120).classpath,
        java_path=str(java_binary()),
        die_on_exit=True,
        javaopts=["-Xmx512m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"],
    )


def compare(folder: Path, total: int) -> None:
    """Write a log, clean a copy of it here and two there, and hold what is left against each other."""
    version, gateway = launch()
    kafka = Kafka(gateway)
    print(f"\nApache Kafka {version}'s own cleaner, by offset, values of 100 bytes, one in twenty a tombstone")
    write(str(folder / "source"), 100, total, total // 1400, SEGMENT_BYTES, 0.05)
    for name in ("here", "cold", "warm"):
        shutil.copytree(folder / "source", folder / name)
    seconds, ours = clean(str(folder / "here"), STRATEGIES[0], MAP_BYTES, SEGMENT_BYTES)
    here = list(survivors(folder / "here"))
    print(f"  {'ours':<24}{ours.bytes_before / seconds / MB:>8.1f} MB/s{len(here):>12,} records left")
    for name in ("cold", "warm"):
        theirs, end = kafka.clean(folder / name, ours.end)
        there = list(survivors(folder / name))
        rate = ours.bytes_before / theirs / MB
        print(f"  {'Kafka, ' + name:<24}{rate:>8.1f} MB/s{len(there):>12,} records left", end="")
        print(f"   ours takes {seconds / theirs:.1f} x its time")
        if here != there or end != ours.end:
            raise SystemExit(f"other records survive: {len(set(here) ^ set(there))} differ")
    print(f"  the same {len(here):,} records, byte for byte")
    gateway.shutdown()
