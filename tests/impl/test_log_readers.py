"""What this log writes, read by others: the project's own reader of Kafka's files, and Apache Kafka's tool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fencepost.impl.files import DiskFiles
from fencepost.impl.log import Codec, DataDirectory, Log, LogConfig, Record
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.checks import check_brokers
from fencepost.traces.kafka.image import MetadataImage, PartitionState, TopicState
from fencepost.traces.kafka.remote_checks import BELOW, LINEAGE, NO_GAP, WELL_FORMED, check_remote

from .brokers import TP
from .kafka_jvm import java_class, kafka_gateway, read_buffer
from .tiering_rack import TieredRack

CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=300)


def fill(directory: DataDirectory) -> Log:
    """A log with every codec, several epochs and segments, a truncation, and deleted records."""
    log = directory.log("orders", 0)
    for n in range(60):
        records = [
            Record(b"v%d-%d" % (n, m) * 9, b"k", 1_700_000_000_000 + n, (("h", b"x"), ("n", None)))
            for m in range(n % 4 + 1)
        ]
        log.append_as_leader(records, n // 9, codec=Codec(n % 5))
    log.truncate_to(110)
    log.append_as_leader([Record(None, b"tombstone")], 20)
    log.delete_before(25)
    directory.store_high_watermarks({("orders", 0): log.end})
    return log


def test_the_projects_own_reader(tmp_path: Path) -> None:
    directory = DataDirectory(DiskFiles(tmp_path), node_id=1, cluster_id="c", config=CONFIG)
    log = fill(directory)
    directory.close()
    broker = read_broker(tmp_path)
    assert broker.problems == ()
    assert (broker.node_id, broker.cluster_id) == (1, "c")
    files = broker.partitions["orders", 0]
    assert len(files.segments) > 3 and [s.base_offset for s in files.segments] == list(log.segment_bases)
    assert (files.log_start, files.log_end, files.high_watermark) == (25, log.end, log.end)
    assert files.recovery_point == log.end and files.gaps() == []
    assert files.epoch_cache == files.epoch_starts()
    assert [tuple(entry) for entry in log.epochs.entries] == [(e.epoch, e.start_offset) for e in files.epoch_starts()]
    again = DataDirectory(DiskFiles(tmp_path), node_id=1, cluster_id="c").log("orders", 0)
    ours = [(record.offset, record.leader_epoch) for record in again.records(25)]
    theirs = files.records.between(25, log.end)
    assert ours == list(zip(theirs.offset.tolist(), theirs.leader_epoch.tolist(), strict=True))


def test_the_projects_own_checks_of_tiered_brokers(tmp_path: Path) -> None:
    """Real files of two brokers over two leader epochs; a copy's end that is lost is found in them."""
    rack = TieredRack(2, disk=lambda node: DiskFiles(tmp_path / str(node)))
    rack.begin()
    rack.write(0, 30)
    rack.elect(1, 2, isr=(0, 1))
    rack.run()
    rack.write(1, 30)
    rack.run(3000)
    segments, starts = rack.segments(1), [rack.log(node).local_start for node in (0, 1)]
    for node in (0, 1):
        rack.brokers[node].close()
        rack.stop(node)
    assert max(starts) > 20 and {entry.epoch for each in segments for entry in each.epochs} == {0, 2}
    topic = TopicState(TP.topic, segments[0].topic_id, {0: [PartitionState(1, (0, 1), (0, 1), 1, 2, 1)]})
    image = MetadataImage(topics={TP.topic: topic}, configs={TP.topic: {"remote.storage.enable": "true"}})
    brokers = [read_broker(tmp_path / str(node)) for node in (0, 1)]
    assert all(broker.problems == () for broker in brokers)
    assert {each.id for each in brokers[0].remote[0].events if not each.started} >= {each.id for each in segments}
    found = check_remote(brokers, image, {})
    assert {each.check for each in found} == {WELL_FORMED, LINEAGE, NO_GAP, BELOW}
    assert {each.verdict for each in found} == {"holds"}, [str(each) for each in found]
    for broker in brokers:
        lost = next(each.id for each in broker.remote[0].events if not each.started)
        broker.remote[0].events[:] = [e for e in broker.remote[0].events if e.started or e.id != lost]
    told = [each for each in check_remote(brokers, image, {}) if each.verdict != "holds"]
    assert [(each.check, each.verdict) for each in told] == [(NO_GAP, "unknown")]
    assert told[0].message.endswith("where the log starts no checkpoint tells"), "none has moved it yet"
    (tmp_path / "1" / "log-start-offset-checkpoint").write_text(f"0\n1\n{TP.topic} 0 0\n")
    (told,) = [each for each in check_remote(brokers, image, {}) if each.verdict != "holds"]
    assert told.verdict == "violated" and "offset 0 is below the local log start 58" in told.message


def test_the_projects_own_checks_of_two_replicas(tmp_path: Path) -> None:
    logs = []
    for node in (1, 2):
        directory = DataDirectory(DiskFiles(tmp_path / str(node)), node_id=node, cluster_id="c")
        log = directory.log("orders", 0)
        if not logs:
            for n in range(20):
                log.append_as_leader([Record(b"%d" % n)], n // 5, codec=Codec(n % 5))
        else:
            log.append_as_follower(b"".join(batch.data for batch in logs[0].read(0)))
        logs.append(log)
        directory.store_high_watermarks({("orders", 0): 20})
        directory.flush()
    report = check_brokers([read_broker(tmp_path / "1"), read_broker(tmp_path / "2")])
    assert not report.problems and str(report.verdict) in ("holds", "unknown")
    assert [comparison.divergences for comparison in report.comparisons] == [()]
    assert (tmp_path / "1/orders-0/00000000000000000000.log").read_bytes() == (
        tmp_path / "2/orders-0/00000000000000000000.log"
    ).read_bytes()


@pytest.fixture(scope="module")
def kafka() -> Iterator[Any]:
    """A JVM with Apache Kafka's own storage classes."""
    yield from kafka_gateway()


@pytest.mark.kafka
def test_apache_kafkas_own_classes(tmp_path: Path, kafka: Any) -> None:
    """What DumpLogSegments does, by the classes that it does it with.

    The tool itself lies in a jar that needs kafka-tools-api, which the cache leaves out since Maven Central lacks it
    for the newest release.
    """
    directory = DataDirectory(DiskFiles(tmp_path), node_id=1, cluster_id="c", config=CONFIG)
    fill(directory)
    directory.close()
    log = DataDirectory(DiskFiles(tmp_path), node_id=1, cluster_id="c", config=CONFIG).log("orders", 0)
    folder = tmp_path / "orders-0"
    file_records = java_class(
        kafka, "org.apache.kafka.common.record.internal.FileRecords", "org.apache.kafka.common.record.FileRecords"
    )
    offset_index = java_class(kafka, "org.apache.kafka.storage.internals.log.OffsetIndex")
    found: list[tuple[int, int, int]] = []
    values: list[tuple[int, bytes | None]] = []
    entries = 0
    for base in log.segment_bases:
        records = file_records.open(kafka.jvm.java.io.File(str(folder / f"{base:020d}.log")), False)
        places = {}
        for batch in each_of(records.batches()):
            batch.ensureValid()
            found.append((batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch()))
            places[batch.lastOffset()] = batch.position()
            for record in each_of(batch):
                value = record.value()
                values.append((record.offset(), None if value is None else read_buffer(kafka, value)))
        index = offset_index(kafka.jvm.java.io.File(str(folder / f"{base:020d}.index")), base, -1, False)
        index.sanityCheck()
        for n in range(index.entries()):
            entry = index.entry(n)
            offset, position = (member(entry, name) for name in ("offset", "position"))
            assert places[offset] == position
            entries += 1
        index.close()
        records.close()
    assert entries > 5
    assert [each for each in found if each[1] >= 25] == [
        (batch.base_offset, batch.last_offset, batch.leader_epoch) for batch in log.read(25, 1 << 30)
    ]
    assert [each for each in values if each[0] >= 25] == [(r.offset, r.value) for r in log.records(25)]
    channel = java_class(kafka, "org.apache.kafka.storage.internals.log.LogDirFailureChannel")(1)
    checkpoint = java_class(kafka, "org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile")
    path = kafka.jvm.java.io.File(str(folder / "leader-epoch-checkpoint"))
    assert [
        tuple(member(entry, name) for name in ("epoch", "startOffset")) for entry in checkpoint(path, channel).read()
    ] == [tuple(entry) for entry in log.epochs.entries]


def member(value: Any, name: str) -> Any:
    """A component of a Java record, or what older releases have for it, a public field."""
    kind = value.getClass()
    return getattr(value, name)() if kind.isRecord() else kind.getField(name).get(value)


def each_of(iterable: Any) -> Iterator[Any]:
    """A Java Iterable, which py4j takes for no Python one unless it is a Collection."""
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()
