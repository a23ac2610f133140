"""A snapshot of a million partitions beside the log that it replaces: ``python benchmarks/snapshots.py``.

The records are those of the text's own example: 100 brokers, topics with 10 partitions of 3 replicas each. Each
partition is written once, and again whenever a broker that has a replica of it stops or starts, so that restarting all
brokers one after another overwrites each record six times (``--restarts``). Key: topic id and partition. Value: what
Kafka's PartitionRecord holds, 64 bytes.

By the quorum's own replica and key-value machine, on real files in a temporary folder: one process writes the log, one
reads it and writes the snapshot (``.part``, fsync, renaming), one loads that, which must give what the log gave. What
was just written is read from the operating system's cache. Seconds by the clock and of CPU; resident memory at the
start, at the end and at most, in MiB. The machine's state alone is most of it.

The image of a cluster with a million partitions, from KIP-631's own records and beside Apache Kafka's MetadataImage, is
``metadata_load.py``.
"""

from __future__ import annotations

import hashlib
import json
import resource
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from typing import Any

import psutil
from cyclopts import App
from fencepost.impl.files import DiskFiles
from fencepost.impl.log import DataDirectory, Log, Record
from fencepost.impl.net import RealClock
from fencepost.impl.quorum import KeyValueMachine, QuorumConfig
from fencepost.impl.quorum.metrics import QuorumMetrics
from fencepost.impl.quorum.replica import Replica
from fencepost.impl.quorum.snapshots import SnapshotStore

app = App(help=__doc__, version_flags=[])

BROKERS, REPLICAS, PER_TOPIC = 100, 3, 10
BATCH = 1_000
PARTITION_RECORD = struct.Struct(">3b i 16s b3i b3i bb iii b")
"""Frame version, type, version; partition, topic id, replicas, ISR, removing, adding; leader, its epoch, the
partition's epoch; no tagged fields."""


def record(partition: int, isr: list[int], epoch: int) -> Record:
    """A partition's state. The ISR of Kafka's record has no fixed size; here whoever is out leaves a -1 behind."""
    topic = uuid.UUID(int=partition // PER_TOPIC).bytes
    number = partition % PER_TOPIC
    replicas = [(partition + n) % BROKERS for n in range(REPLICAS)]
    padded = isr + [-1] * (REPLICAS - len(isr))
    value = PARTITION_RECORD.pack(
        1, 3, 0, number, topic, REPLICAS + 1, *replicas, len(isr) + 1, *padded, 1, 1, isr[0], epoch, epoch, 0
    )
    return Record(value, topic + number.to_bytes(4), 0)


def history(partitions: int, restarts: int) -> Iterator[Record]:
    """Every partition once, then each broker's restart: all that it has a replica of without it, and with it again."""
    for partition in range(partitions):
        yield record(partition, [(partition + n) % BROKERS for n in range(REPLICAS)], 0)
    for restart in range(restarts):
        for broker in range(BROKERS):
            for back in (False, True):
                for first in range(0, partitions, BROKERS):
                    for place in range(REPLICAS):
                        partition = first + (broker - place) % BROKERS
                        replicas = [(partition + n) % BROKERS for n in range(REPLICAS)]
                        epoch = 2 * (restart * REPLICAS + sorted(replicas).index(broker)) + 1 + back
                        if partition < partitions:
                            yield record(partition, replicas if back else [r for r in replicas if r != broker], epoch)


class Part:
    """Measures what happens inside ``with``."""

    def __init__(self, **about: Any) -> None:
        self.found: dict[str, Any] = about

    def __enter__(self) -> Part:
        self.found["start_mib"] = psutil.Process().memory_info().rss / (1 << 20)
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.found["seconds"] = time.perf_counter() - self._wall
        self.found["cpu"] = time.process_time() - self._cpu
        self.found["end_mib"] = psutil.Process().memory_info().rss / (1 << 20)
        self.found["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def opened(folder: str) -> tuple[DataDirectory, Log]:
    """The log, with the settings of a quorum node."""
    config = QuorumConfig(voters=(0,))
    directory = DataDirectory(DiskFiles(folder), node_id=0, cluster_id=config.cluster_id, config=config.log)
    return directory, directory.log(*config.partition)


def replica_of(folder: str, log: Log) -> tuple[Replica, KeyValueMachine]:
    """A replica that loads the latest snapshot, if there is one."""
    machine = KeyValueMachine()
    return Replica(log, SnapshotStore(DiskFiles(folder), log.folder), machine, RealClock(), QuorumMetrics()), machine


def digest(machine: KeyValueMachine) -> str:
    """Of all that the machine holds."""
    found = hashlib.blake2b(digest_size=16)
    for key in sorted(machine.values):
        found.update(key + machine.values[key])
    return found.hexdigest()


@app.command
def write_log(folder: str, partitions: int, restarts: int) -> None:
    """Append all records in batches and sync once; as JSON, as the others."""
    directory, log = opened(folder)
    with Part() as part:
        batch: list[Record] = []
        for each in history(partitions, restarts):
            batch.append(each)
            if len(batch) == BATCH:
                log.append_as_leader(batch, 0)
                batch = []
        if batch:
            log.append_as_leader(batch, 0)
        log.flush()
    part.found |= {"records": log.end, "bytes": log.size}
    directory.close()
    print(json.dumps([part.found]))


@app.command
def read_log(folder: str) -> None:
    """Start from the log alone, then write a snapshot."""
    with Part() as read:
        directory, log = opened(folder)
        replica, machine = replica_of(folder, log)
        replica.raise_high_watermark(log.end)
    read.found |= {"records": log.end, "bytes": log.size, "digest": digest(machine)}
    with Part() as write:
        replica.generate_snapshot()
    latest = replica.snapshots.latest
    assert latest is not None and latest.end_offset == log.end
    write.found |= {"records": len(machine.values), "bytes": replica.snapshots.size(latest)}
    directory.close()
    print(json.dumps([read.found, write.found]))


@app.command
def load(folder: str) -> None:
    """Start from the snapshot, with nothing of the log to apply."""
    with Part() as part:
        directory, log = opened(folder)
        replica, machine = replica_of(folder, log)
    assert replica.applied == log.end
    latest = replica.snapshots.latest
    assert latest is not None
    size = replica.snapshots.size(latest)
    part.found |= {"records": len(machine.values), "bytes": size, "digest": digest(machine)}
    directory.close()
    print(json.dumps([part.found]))


def in_process(*arguments: str) -> list[dict[str, Any]]:
    """What a part finds out in a fresh process."""
    run = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    found: list[dict[str, Any]] = json.loads(run.stdout)
    return found


def told(name: str, part: dict[str, Any]) -> None:
    """One line of the table."""
    records, size = part["records"], part["bytes"]
    print(
        f"{name:<16}{records:>10,}{size / 1e6:>9.1f}{size / records:>10.1f}{part['seconds']:>9.2f}{part['cpu']:>8.2f}"
        f"{part['start_mib']:>10.0f}{part['end_mib']:>8.0f}{part['peak_mib']:>8.0f}",
        flush=True,
    )


@app.default
def main(partitions: int = 1_000_000, restarts: int = 1) -> None:
    """Write the log, read it, write the snapshot and load it."""
    print(f"{partitions:,} partitions, each overwritten {2 * REPLICAS * restarts} times")
    print("part               records       MB  B/record  seconds     CPU start MiB     end    most")
    with tempfile.TemporaryDirectory() as folder:
        (log,) = in_process("write-log", folder, str(partitions), str(restarts))
        told("write the log", log)
        read, write = in_process("read-log", folder)
        told("read the log", read)
        told("write a snapshot", write)
        (load,) = in_process("load", folder)
        told("load it", load)
    if load["digest"] != read["digest"]:
        raise SystemExit("the snapshot holds something else than the log")
    print(f"log : snapshot  bytes {read['bytes'] / write['bytes']:.2f} x", end="")
    for what in ("seconds", "cpu"):
        print(f"  {what} to read {read[what] / load[what]:.2f} x", end="")
    print(f"\nreading the log : writing the snapshot  cpu {read['cpu'] / write['cpu']:.2f} x")
    state = read["end_mib"]
    print(f"memory at most : after reading the log  {write['peak_mib'] / state:.2f} x writing", end="")
    print(f"  {load['peak_mib'] / state:.2f} x loading")


if __name__ == "__main__":
    app()
