"""Topic ids at brokers (KIP-516): a topic made anew under its name has nothing to do with the former one."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log.topic_id import PARTITION_METADATA, read_topic_id, write_topic_id
from fencepost.impl.replica import Role
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    CONSUMER,
    LEADER_DURING_DELETE,
    NO_TOPIC_ID,
    FetchRequest,
    LeaderAndIsrResponse,
    MetadataRequest,
    OfflineReplicasRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    ProduceResponse,
    StopReplicaRequest,
    TopicPartition,
    UpdateMetadataRequest,
)

from .brokers import TP, Cluster, records

OLD, NEW = UUID(int=7), UUID(int=8)
NONE = ErrorCode.NONE
EVERYONE = frozenset((0, 1, 2))


def led(topic: UUID = OLD, cluster: Cluster | None = None) -> Cluster:
    """Broker 0 leads in epoch 0, and the others have truncated."""
    cluster = Cluster() if cluster is None else cluster
    for node in range(3):
        assert cluster.tell(node, cluster.request(0, 0, topic_id=topic)) is NONE
    for node in (1, 2):
        cluster.truncate(node)
    return cluster


def stop(cluster: Cluster, node: int, topic: UUID = OLD) -> ErrorCode:
    error: ErrorCode = cluster.ask(node, StopReplicaRequest(1, TP, topic)).error
    return error


def fetch(follower: int, offset: int, topic: UUID = NO_TOPIC_ID) -> FetchRequest:
    return FetchRequest(follower, TP, offset, 100, 0, topic_id=topic)


def late_fetch() -> Cluster:
    """Both topics are led by the same broker in leader epoch 0: by that epoch a late fetch would be the follower's."""
    cluster = led()
    cluster.produce(0, b"old", acks=1)
    cluster.fetch_all(1, 2)
    cluster.brokers[1].fire(("fetch", TP))
    late = cluster.sent(1)
    assert isinstance(late.envelope.body, FetchRequest) and late.envelope.body.fetch_offset == 1
    cluster.network.drop(late)
    assert [stop(cluster, node) for node in range(3)] == [NONE] * 3
    led(NEW, cluster)
    assert cluster.state(0).end == cluster.state(0).high_watermark == 0
    assert cluster.produce(0, b"new", acks=-1) is None
    cluster.exchange(2)
    cluster.exchange(2)
    cluster.brokers[0].receive(late.envelope)
    return cluster


def test_a_late_fetch_of_the_former_topic_acknowledges_nothing() -> None:
    cluster = late_fetch()
    assert dict(cluster.state(0).progress) == {1: -1, 2: 1}
    assert cluster.state(0).high_watermark == 0 and cluster.answer_to(cluster.last) is None, "1 has nothing"


def test_by_the_name_alone_it_would_acknowledge_what_the_follower_never_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.impl.replica.broker.is_consistent", lambda *_: True)
    cluster = late_fetch()
    assert cluster.answer_to(cluster.last) == ProduceResponse(NONE, 0, 0)
    assert cluster.state(1).end == 0


@pytest.mark.parametrize(
    "body",
    [
        fetch(1, 0, NEW),
        fetch(CONSUMER, 0, NEW),
        OffsetsForLeaderEpochRequest(1, TP, 0, 0, NEW),
        ProduceRequest(TP, 1, records(b"a"), NEW),
        StopReplicaRequest(1, TP, NEW),
        OfflineReplicasRequest(1, TP, frozenset({1}), 0, 99, NEW),
    ],
    ids=lambda body: type(body).__name__,
)
def test_what_is_of_another_topic_is_refused_and_changes_nothing(body: object) -> None:
    cluster = led()
    cluster.produce(0, b"old", acks=1)
    before = cluster.snapshot(0)
    answer = cluster.ask(0, body)  # type: ignore[arg-type]
    assert answer.error is ErrorCode.INCONSISTENT_TOPIC_ID and cluster.snapshot(0) == before
    assert cluster.ask(0, replace(body, topic_id=OLD)).error is NONE  # type: ignore[type-var]


def test_a_leader_and_isr_of_another_topic_is_refused_and_told_which_is_here() -> None:
    cluster = led()
    before = cluster.snapshot(1)
    answer = cluster.ask(1, cluster.request(1, 5, topic_id=NEW))
    assert answer == LeaderAndIsrResponse(ErrorCode.INCONSISTENT_TOPIC_ID, OLD)
    assert cluster.snapshot(1) == before
    assert cluster.tell(1, cluster.request(1, 5, topic_id=OLD)) is NONE


def test_without_an_id_on_either_side_nothing_is_compared() -> None:
    """As in Kafka, where a request of an older version has none, and so has a log of before there were ids."""
    cluster = led(NO_TOPIC_ID)
    assert cluster.state(0).topic_id == NO_TOPIC_ID and not cluster.disks[0].exists(f"{TP}/{PARTITION_METADATA}")
    assert cluster.ask(0, fetch(1, 0, NEW)).error is NONE
    assert cluster.tell(0, cluster.request(0, 1, topic_id=OLD)) is NONE
    assert cluster.state(0).topic_id == OLD and read_topic_id(cluster.disks[0], str(TP)) == OLD
    assert cluster.ask(0, replace(fetch(1, 0), current_leader_epoch=1)).error is NONE
    assert cluster.ask(0, StopReplicaRequest(1, TP, NO_TOPIC_ID)).error is ErrorCode.INVALID_REQUEST


def test_who_has_no_replica_knows_the_topic_or_does_not() -> None:
    cluster = Cluster()
    known = UpdateMetadataRequest(1, TP, 1, 3, EVERYONE, (0, 1, 2), frozenset(), NEW)
    assert cluster.ask(0, fetch(1, 0, NEW)).error is ErrorCode.UNKNOWN_TOPIC_ID
    assert cluster.ask(0, fetch(1, 0)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.ask(0, known).error is NONE
    assert cluster.ask(0, fetch(1, 0, NEW)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.ask(0, fetch(1, 0, OLD)).error is ErrorCode.UNKNOWN_TOPIC_ID
    assert cluster.ask(0, MetadataRequest(TP)).topic_id == NEW


def test_metadata_of_a_deleted_topic_is_forgotten_and_epochs_are_compared_within_one() -> None:
    cluster = Cluster()
    old = UpdateMetadataRequest(1, TP, 1, 5, EVERYONE, (0, 1, 2), frozenset(), OLD)
    new = replace(old, leader=2, leader_epoch=0, topic_id=NEW)
    gone = UpdateMetadataRequest(1, TP, LEADER_DURING_DELETE, -1, frozenset(), (), frozenset(), OLD)
    for told, knows in ((old, old), (replace(old, leader_epoch=4), old), (new, new), (gone, new)):
        assert cluster.ask(0, told).error is NONE
        assert cluster.brokers[0].metadata == {TP: knows}
    assert cluster.ask(0, replace(gone, topic_id=NEW)).error is NONE
    assert cluster.brokers[0].metadata == {}
    assert cluster.ask(0, replace(gone, leader=-3)).error is ErrorCode.INVALID_REQUEST


# -- deleting ---------------------------------------------------------------------------------------------------------


def test_a_stopped_replica_leaves_nothing_that_the_next_topic_could_find() -> None:
    cluster = led()
    for number in range(3):
        cluster.produce(0, b"%d" % number, acks=1)
    cluster.fetch_all(1, 2)
    for node in range(3):
        cluster.brokers[node].fire(("high-watermarks",))
        cluster.brokers[node].fire(("recovery-points",))
    assert cluster.produce(0, b"waits", acks=-1) is None
    waiting = cluster.last
    assert stop(cluster, 0) is NONE
    assert cluster.answer_to(waiting) == ProduceResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    broker = cluster.brokers[0]
    assert broker.partitions == {} and [key for key in broker.timers() if len(key) > 1] == []
    assert stop(cluster, 0) is NONE, "there is none of it"
    texts = [cluster.disks[0].open(name) for name in cluster.disks[0].list("") if name.endswith("checkpoint")]
    assert all(TP.topic.encode() not in file.pread(0, file.size) for file in texts)
    assert [name for name in cluster.disks[0].list("") if name.startswith(TP.topic)] == []
    assert cluster.tell(0, cluster.request(0, 0, topic_id=NEW)) is NONE
    state = cluster.state(0)
    assert (state.end, state.high_watermark, state.log_start, state.leader_epoch) == (0, 0, 0, 0)
    assert stop(cluster, 0) is ErrorCode.INCONSISTENT_TOPIC_ID, "a late one"
    assert cluster.state(0) == state


@pytest.mark.parametrize("effects", range(12))
def test_a_loss_of_power_leaves_the_replica_of_one_topic_or_none(effects: int) -> None:
    """Whatever is there then is stopped, or taken up, as of the topic that it is of."""
    cluster = led()
    cluster.produce(0, b"old", acks=1)
    disk, left = cluster.disks[0], effects

    def hook(operation: str, _path: str) -> None:
        nonlocal left
        if operation in ("append", "fsync", "fsync_dir", "rename", "remove", "make_dir"):
            left -= 1
            if left < 0:
                raise KeyboardInterrupt

    disk.hook = hook
    try:
        stop(cluster, 0)
        cluster.tell(0, cluster.request(0, 0, topic_id=NEW))
    except KeyboardInterrupt:
        pass
    disk.hook = None
    broker = cluster.crash(0, effects)
    there = broker.partitions.get(TP)
    if there is not None and there.topic_id == OLD:
        assert there.log.end == 1
        assert cluster.tell(0, cluster.request(0, 0, topic_id=NEW)) is ErrorCode.INCONSISTENT_TOPIC_ID
        assert stop(cluster, 0) is NONE
    else:
        assert there is None or (there.log.end == 0 and there.topic_id in (NO_TOPIC_ID, NEW))
    answer = cluster.tell(0, cluster.request(1, 1, topic_id=NEW))
    assert answer is NONE and cluster.state(0)[:1] == (Role.TRUNCATING,) and cluster.state(0).end == 0


def test_a_replica_is_of_its_topic_after_a_restart() -> None:
    cluster = led()
    cluster.produce(0, b"old", acks=1)
    cluster.crash(0)
    assert cluster.state(0).topic_id == OLD
    assert cluster.tell(0, cluster.request(0, 1, topic_id=NEW)) is ErrorCode.INCONSISTENT_TOPIC_ID
    assert cluster.tell(0, cluster.request(0, 1, topic_id=OLD)) is NONE


def test_a_disk_that_fails_keeps_the_replica_until_it_is_mended() -> None:
    cluster = led()
    cluster.produce(0, b"old", acks=1)

    def fails(operation: str, path: str) -> None:
        if operation == "rename" and path == str(TP):
            raise OSError(5, "Input/output error", path)

    cluster.disks[0].hook = fails
    assert stop(cluster, 0) is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.state(0).role is Role.OFFLINE
    assert stop(cluster, 0) is ErrorCode.KAFKA_STORAGE_ERROR
    cluster.disks[0].hook = None
    cluster.brokers[0].reopen(TP)
    assert cluster.state(0).topic_id == OLD and cluster.state(0).end == 1
    assert stop(cluster, 0) is NONE and TP not in cluster.brokers[0].partitions


def test_the_id_is_stored_as_kafka_does() -> None:
    files = SimulatedFiles(1)
    files.make_dir("t-0")
    write_topic_id(files, "t-0", UUID("5b4f1d20-7b3c-4c8a-9f40-6f1f2f3f4f5f"))
    file = files.open(f"t-0/{PARTITION_METADATA}")
    assert file.pread(0, file.size) == b"version: 0\ntopic_id: W08dIHs8TIqfQG8fLz9PXw\n"
    assert read_topic_id(files, "t-0") == UUID("5b4f1d20-7b3c-4c8a-9f40-6f1f2f3f4f5f")


def test_other_partitions_of_a_broker_stay() -> None:
    cluster = led()
    other = TopicPartition(TP.topic, 1)
    assert cluster.tell(0, replace(cluster.request(0, 0, topic_id=OLD), partition=other)) is NONE
    assert stop(cluster, 0) is NONE
    assert list(cluster.brokers[0].partitions) == [other] and cluster.disks[0].exists(str(other))
