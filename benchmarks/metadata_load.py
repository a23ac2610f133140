"""An image of a million partitions, from the log and from a snapshot, beside Apache Kafka's own: seconds and bytes a
record. ``python benchmarks/metadata_load.py [PARTITIONS]``.

100 brokers, topics with 10 partitions of 3 replicas each. The log has a record of each partition, and one more by which
a replica leaves its ISR; the snapshot has the image that they come to. Ours: records of KIP-631, read by ``impl/log``
from a real file, replayed by ``impl/metadata``, each record checked. Kafka's: the same brokers, topics, partitions and
changes in the records that Kafka ships, written by our codec of the schemas in its jar; read by its ``BatchFileReader``
and replayed by its ``MetadataBatchLoader`` into a ``MetadataImage``, in a JVM from PyPI, as it starts and once more
when its code is compiled. So the two load the same cluster from files of their own; neither reads the other's records.

Ours is measured in a process for each part, Kafka's by the CPU time of the thread that loads. What was just written is
read from the operating system's cache. Without a JVM or Kafka's jars ours alone is told.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from cyclopts import App
from fencepost.impl.files import DiskFiles
from fencepost.impl.log import read_batches
from fencepost.impl.log.batch import encode_batch
from fencepost.impl.log.records import Record
from fencepost.impl.metadata import MetadataCodec, MetadataRecord, changes, encode, parse_schema
from fencepost.impl.metadata.elections import PartitionImage
from fencepost.impl.metadata.image import PartitionKey
from fencepost.impl.metadata.machine import MetadataMachine
from fencepost.impl.metadata.schema import Schema
from fencepost.impl.quorum import SnapshotId
from fencepost.impl.wire.controller import Endpoint
from fencepost.model.core.errors import BadInput
from fencepost.traces.jvm import java_binary
from fencepost.traces.kafka.maven import default_cache, fetch_kafka

app = App(help=__doc__, version_flags=[])

BROKERS, REPLICAS, PER_TOPIC = 100, 3, 10
BATCH = 10_000
"""Records of a batch: a call of the JVM is for each batch."""
LOG, SNAPSHOT = "log", "snapshot"


class Entry(NamedTuple):
    """What a record is about. ``isr``: empty for a broker or a topic."""

    kind: str
    number: int
    isr: tuple[int, ...] = ()


def entries(partitions: int, *, snapshot: bool) -> Iterator[Entry]:
    """The cluster's records, in order: a snapshot has the last ISR of each partition at once."""
    yield from (Entry("broker", number) for number in range(BROKERS))
    for number in range(partitions):
        if number % PER_TOPIC == 0:
            yield Entry("topic", number // PER_TOPIC)
        replicas = replicas_of(number)
        yield Entry("partition", number, replicas[:-1] if snapshot else replicas)
    if not snapshot:
        yield from (Entry("change", number, replicas_of(number)[:-1]) for number in range(partitions))


def replicas_of(number: int) -> tuple[int, ...]:
    """Those of a partition; the first one leads."""
    return tuple((number + place) % BROKERS for place in range(REPLICAS))


def topic_of(number: int) -> uuid.UUID:
    """The id of a topic."""
    return uuid.UUID(int=(0xC0FFEE << 64) + number + 1)


def ours(entry: Entry, *, snapshot: bool) -> bytes:
    """The record of KIP-631."""
    number, replicas = entry.number, replicas_of(entry.number)
    if entry.kind == "broker":
        ends = (Endpoint("PLAINTEXT", f"broker-{number}", 9092),)
        made = changes.register(number, number, uuid.UUID(int=number + 1), ends, None)
        return encode(made._replace(fields={**made.fields, "Fenced": False}))
    if entry.kind == "topic":
        return encode(changes.topic(topic_of(number), f"topic-{number}"))
    key = PartitionKey(topic_of(number // PER_TOPIC), number % PER_TOPIC)
    if entry.kind == "partition":
        state = PartitionImage(replicas, entry.isr, replicas[0], 0, int(snapshot))
        return encode(changes.partition(key, state))
    return encode(changes.isr(key, PartitionImage(replicas, entry.isr, replicas[0], 0, 1)))


class Kafkas:
    """The records that Kafka ships, by the schemas in its jar, each of version 0."""

    def __init__(self, directory: Path) -> None:
        (jar,) = directory.glob("kafka-metadata-*.jar")
        with zipfile.ZipFile(jar) as packed:
            names = [n for n in packed.namelist() if n.startswith("common/metadata/") and n.endswith(".json")]
            schemas = [parse_schema(packed.read(name).decode(), name) for name in names]
        self._schemas: dict[str, Schema] = {each.name: each for each in schemas}
        self._codec = MetadataCodec(schemas, framed=True)

    def __call__(self, entry: Entry, *, snapshot: bool) -> bytes:
        """The record that says the same."""
        number, replicas = entry.number, replicas_of(entry.number)
        if entry.kind == "broker":
            end = {"Name": "PLAINTEXT", "Host": f"broker-{number}", "Port": 9092, "SecurityProtocol": 0}
            about = {"BrokerId": number, "BrokerEpoch": number, "IncarnationId": uuid.UUID(int=number + 1)}
            return self._made("RegisterBrokerRecord", about | {"EndPoints": (end,), "Features": (), "Fenced": False})
        if entry.kind == "topic":
            return self._made("TopicRecord", {"Name": f"topic-{number}", "TopicId": topic_of(number)})
        where = {"PartitionId": number % PER_TOPIC, "TopicId": topic_of(number // PER_TOPIC), "Isr": entry.isr}
        if entry.kind == "change":
            return self._made("PartitionChangeRecord", where)
        more = {"Replicas": replicas, "Leader": replicas[0], "LeaderEpoch": 0, "PartitionEpoch": int(snapshot)}
        return self._made("PartitionRecord", where | more)

    def _made(self, name: str, fields: dict[str, Any]) -> bytes:
        known = self._schemas[name].fields
        rest = {each.name: each.default for each in known if each.name not in fields and 0 in each.versions}
        arrays = {each.name: () for each in known if each.name in rest and each.array and rest[each.name] == []}
        return self._codec.encode(MetadataRecord(name, 0, {**rest, **arrays, **fields}))


def write(path: Path, values: Iterable[bytes]) -> tuple[int, int]:
    """A file of batches; gives the number of records and of bytes."""
    offset, batch = 0, list[Record]()
    with path.open("wb") as file:
        for value in values:
            batch.append(Record(value, None, 0))
            if len(batch) == BATCH:
                file.write(encode_batch(batch, base_offset=offset, leader_epoch=1))
                offset += len(batch)
                batch = []
        if batch:
            file.write(encode_batch(batch, base_offset=offset, leader_epoch=1))
        return offset + len(batch), file.tell()


class _Writer:
    """A snapshot's file."""

    id = SnapshotId(1, 1)

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def append(self, data: bytes) -> None:
        self._file.write(data)

    def finished(self) -> None:
        self._file.close()


@app.command
def load_log(folder: Path) -> None:
    """Replay ours from the log, and write the snapshot; as JSON, as the other."""
    before, start = psutil.Process().memory_info().rss, time.process_time()
    machine, records = MetadataMachine(batch_records=BATCH), 0
    for batch in read_batches((folder / LOG).read_bytes(), LOG):
        stored = list(batch.records())
        machine.apply(stored)
        records += len(stored)
    seconds = time.process_time() - start
    mib = (psutil.Process().memory_info().rss - before) / (1 << 20)
    machine.snapshot(_Writer(folder / SNAPSHOT))
    print(json.dumps([seconds, mib, records, len(machine.image.partitions), _mark(machine)]))


@app.command
def load_snapshot(folder: Path) -> None:
    """Load ours from the snapshot."""
    before, start = psutil.Process().memory_info().rss, time.process_time()
    machine = MetadataMachine()
    machine.load(SnapshotId(1, 1), DiskFiles(str(folder)).open(SNAPSHOT))
    seconds = time.process_time() - start
    mib = (psutil.Process().memory_info().rss - before) / (1 << 20)
    records = sum(1 for _ in machine.image.records())
    print(json.dumps([seconds, mib, records, len(machine.image.partitions), _mark(machine)]))


def _mark(machine: MetadataMachine) -> int:
    """Of what the image says of partitions, for two to be compared."""
    found = 0
    for key, state in machine.image.partitions.items():
        found ^= hash((key.topic.int, key.partition, state.isr, state.leader, state.partition_epoch))
    return found


class Kafka:
    """A JVM with Kafka's classes."""

    def __init__(self, version: str) -> None:
        gateways = importlib.import_module("py4j.java_gateway")
        self._gateway = gateways.JavaGateway.launch_gateway(
            classpath=fetch_kafka(version, timeout=120).classpath,
            java_path=str(java_binary()),
            die_on_exit=True,
            javaopts=["-Xmx1600m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"],
        )
        self._jvm = self._gateway.jvm

    def type(self, name: str) -> Any:
        """A class of Kafka's by its name behind ``org.apache.kafka.``."""
        part = self._jvm
        for word in f"org.apache.kafka.{name}".split("."):
            part = getattr(part, word)
        return part

    def _loader(self) -> Any:
        """One that keeps what it has loaded, and tells nobody."""
        invoke, reflect = self._jvm.java.lang.invoke, self._jvm.java.lang
        updater = reflect.Class.forName("org.apache.kafka.image.loader.MetadataBatchLoader$MetadataUpdater")
        kinds = self._gateway.new_array(reflect.Class, 3)
        for place, name in enumerate(("MetadataDelta", "MetadataImage", "loader.LogDeltaManifest")):
            kinds[place] = reflect.Class.forName(f"org.apache.kafka.image.{name}")
        nothing = invoke.MethodHandles.empty(invoke.MethodType.methodType(reflect.Void.TYPE, kinds))
        listener = invoke.MethodHandleProxies.asInterfaceInstance(updater, nothing)
        faults = self.type("server.fault.LoggingFaultHandler")("load", None)
        context = self.type("common.utils.internals.LogContext")()
        (made,) = reflect.Class.forName("org.apache.kafka.image.loader.MetadataBatchLoader").getDeclaredConstructors()
        clock, checks = self.type("common.utils.Time").SYSTEM, self.type("metadata.SupportedConfigChecker").TRUE
        arguments = self._gateway.new_array(reflect.Object, 5)
        for place, each in enumerate((context, clock, faults, listener, checks)):
            arguments[place] = each
        loader = made.newInstance(arguments)  # py4j finds no constructor for an interface's proxy
        loader.resetToImage(self.type("image.MetadataImage").EMPTY)
        return loader

    def load(self, path: Path) -> tuple[float, int]:
        """Seconds of CPU, and how many partitions the image has. Raises SystemExit where it is not what was written."""
        threads = self._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        nobody = self.type("raft.LeaderAndEpoch").UNKNOWN
        reader = self._jvm.org.apache.kafka.metadata.util.BatchFileReader.Builder().setPath(str(path)).build()
        loader = self._loader()
        start = threads.getCurrentThreadCpuTime()
        while reader.hasNext():
            loader.loadBatch(reader.next().batch(), nobody)
        loader.maybeFlushBatches(nobody, True)
        seconds = (threads.getCurrentThreadCpuTime() - start) / 1e9
        reader.close()
        return seconds, self._counted(loader)

    def _counted(self, loader: Any) -> int:
        """How many topics its image has, and that the last of them is as it should be."""
        field = loader.getClass().getDeclaredField("image")
        field.setAccessible(True)
        topics = field.get(loader).topics()
        count = int(topics.topicsById().size())
        last = topics.getTopic(f"topic-{count - 1}").partitions().get(PER_TOPIC - 1)
        isr = tuple(importlib.import_module("py4j.java_gateway").get_field(last, "isr"))
        if isr != replicas_of(count * PER_TOPIC - 1)[:-1]:
            raise SystemExit(f"Kafka's image has the ISR {isr} of the last partition")
        return count * PER_TOPIC

    def close(self) -> None:
        """End it."""
        self._gateway.shutdown()


def in_process(*arguments: str) -> list[Any]:
    """What a part finds out in a fresh process."""
    run = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    found: list[Any] = json.loads(run.stdout)
    return found


def told(what: str, seconds: float, records: int, size: int, more: str) -> None:
    """One line of the table."""
    each = seconds / records * 1e6
    print(f"{what:<38}{records:>10,}{size / records:>10.1f}{seconds:>9.2f}{each:>10.2f}  {more}", flush=True)


@app.default
def main(partitions: int = 1_000_000) -> None:
    """Write the files, load them, and compare."""
    print(f"{partitions:,} partitions of {REPLICAS} replicas at {BROKERS} brokers; seconds of CPU")
    print(f"{'':<38}{'records':>10}{'B/record':>10}{'seconds':>9}{'µs/record':>10}")
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, size = write(folder / LOG, (ours(each, snapshot=False) for each in entries(partitions, snapshot=False)))
        marks = []
        for what, command in ((LOG, "load-log"), (SNAPSHOT, "load-snapshot")):
            seconds, mib, records, held, mark = in_process(command, name)
            told(f"ours, from the {what}", seconds, records, (folder / what).stat().st_size, f"{mib:.0f} MiB taken")
            found[what] = seconds
            marks.append((held, mark))
        if marks[0] != marks[1] or marks[0][0] != partitions:
            raise SystemExit(f"the snapshot holds another image than the log: {marks}")
        print(f"log : snapshot  {size / (folder / SNAPSHOT).stat().st_size:.2f} x bytes  ", end="")
        print(f"{found[LOG] / found[SNAPSHOT]:.2f} x seconds")
        try:
            _beside_kafka(folder, partitions, found)
        except (BadInput, ImportError) as absent:
            print(f"absent: Apache Kafka: {absent}")


def _beside_kafka(folder: Path, partitions: int, found: dict[str, float]) -> None:
    cached = sorted(each.name for each in default_cache().glob("*-layout1"))
    version = cached[-1].partition("-layout")[0] if cached else "4.4.0"
    made = Kafkas(fetch_kafka(version, timeout=120).directory)
    kafka = Kafka(version)
    for what in (LOG, SNAPSHOT):
        snapshot, path = what == SNAPSHOT, folder / f"kafka-{what}.checkpoint"
        records, size = write(path, (made(each, snapshot=snapshot) for each in entries(partitions, snapshot=snapshot)))
        for state in ("cold", "warm"):
            seconds, held = kafka.load(path)
            if held != partitions:
                raise SystemExit(f"Kafka's image has {held} partitions, and not {partitions}")
            ratio = f"ours takes {found[what] / seconds:.1f} x its time"
            told(f"Kafka {version}, from the {what}, {state}", seconds, records, size, ratio)
        path.unlink()
    kafka.close()


if __name__ == "__main__":
    app()
