"""The boot rule held against Apache Kafka's own ``KafkaRaftLog.createLog``, on the same files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.jvm import java_binary
from fencepost.traces.kafka.boot import emptied_for
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.maven import default_cache, fetch_kafka

from .encoder import Partition, batch, cache_of, snapshot_file, write_broker

if TYPE_CHECKING:
    from pathlib import Path

NAME = "__cluster_metadata-0"


@pytest.fixture(scope="module")
def kafka() -> Iterator[Any]:
    """A JVM with Apache Kafka's own raft classes, from the newest release in the cache or from Maven."""
    cached = sorted(default_cache().glob("*-layout*"))
    gateways = pytest.importorskip("py4j.java_gateway", reason="absent: py4j")
    try:
        jars = fetch_kafka(cached[-1].name.partition("-layout")[0] if cached else None)
        java = java_binary()
    except BadInput as missing:
        pytest.skip(f"absent: Apache Kafka: {missing}")
    gateway = gateways.JavaGateway.launch_gateway(
        classpath=jars.classpath, java_path=str(java), die_on_exit=True, javaopts=["-Xmx128m", "-XX:+UseSerialGC"]
    )
    yield gateway
    gateway.shutdown()


def booted(kafka: Any, root: Path) -> tuple[int, int]:
    """Log start and LEO of the metadata log once Kafka has created it from the files."""
    java = kafka.jvm
    common, raft = java.org.apache.kafka.common, java.org.apache.kafka.raft
    config = java.org.apache.kafka.common.config.AbstractConfig(
        raft.MetadataLogConfig.CONFIG_DEF, java.java.util.HashMap()
    )
    scheduler = java.org.apache.kafka.server.util.KafkaScheduler(1)
    scheduler.startup()
    log = raft.internals.KafkaRaftLog.createLog(
        common.TopicPartition("__cluster_metadata", 0),
        common.Uuid.METADATA_TOPIC_ID,
        java.java.io.File(str(root / NAME)),
        common.utils.Time.SYSTEM,
        scheduler,
        raft.MetadataLogConfig(config),
        1,
    )
    try:
        return log.startOffset(), log.endOffset().offset()
    finally:
        log.close()
        scheduler.shutdown()


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("epochs", "snapshots"),
    [
        ((1, 1, 1, 2, 2), ()),
        ((1, 1, 1, 2, 2), ((3, 1),)),
        ((1, 1, 1, 2, 2), ((3, 1), (6, 2))),
        ((1, 1, 1, 2, 2), ((3, 1), (6, 3))),
        ((1, 1, 1, 2, 2), ((3, 1), (5, 3))),
        ((1, 1, 1, 2, 2), ((3, 1), (4, 3))),
        ((1, 1, 1, 2, 2), ((3, 1), (6, 1))),
        ((1, 1, 1, 2, 2), ((5, 2),)),
        ((), ((9, 2),)),
    ],
)
def test_kafka_empties_the_logs_that_we_say(
    tmp_path: Path, kafka: Any, epochs: tuple[int, ...], snapshots: tuple[tuple[int, int], ...]
) -> None:
    data = b"".join(batch(offset, [b"\x01\x14\x00\x00"], epoch=epoch) for offset, epoch in enumerate(epochs))
    named = {each: snapshot_file([], epoch=each[1]) for each in snapshots}
    files = Partition({0: data}, cache_of(epochs), None, topic_id=None, snapshots=named)
    root = write_broker(tmp_path / "b", 1, {NAME: files})
    read = read_broker(root)
    found = emptied_for(read.partitions["__cluster_metadata", 0])
    copy = shutil.copytree(root, tmp_path / "kafka")
    start, end = booted(kafka, copy)
    assert (start, end) == ((0, len(epochs)) if found is None else (found.end_offset, found.end_offset))
    assert read.boots_from is None if found is None else read.boots_from is not None
