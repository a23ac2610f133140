"""The broker as an endpoint: rights, metadata, committed offsets, messages that are none, timers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.impl.log import DataDirectory
from fencepost.impl.offsets import GroupCoordinator
from fencepost.impl.replica import ANY, Acl, AclTable, AllowAll, BrokerConfig, Kind, Operation
from fencepost.impl.replica.timers import Timers
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    CONSUMER,
    FIRST_CLIENT,
    LATEST,
    NO_LEADER,
    AlterIsrRequest,
    DeleteRecordsRequest,
    Envelope,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
    OfflineReplicasRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    Request,
    UpdateMetadataRequest,
)

from .brokers import TP, Cluster, records

TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CLUSTER_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
ALICE = "User:alice"
ELSEWHERE = TP._replace(topic="elsewhere")
METADATA = UpdateMetadataRequest(1, TP, 0, 3, frozenset({0, 1}), (0, 1, 2), frozenset({2}))


def led(*entries: Acl) -> Cluster:
    cluster = Cluster(authorizer=AclTable(entries))
    cluster.elect(0, 3, [0])
    cluster.produce(0, b"a")
    for request in (METADATA, replace(METADATA, partition=ELSEWHERE)):
        assert cluster.ask(0, request).error is ErrorCode.NONE
    return cluster


def topic(operation: Operation, name: str = TP.topic, principal: str = ALICE) -> Acl:
    return Acl(principal, operation, Kind.TOPIC, name)


ACTION = Acl(ALICE, Operation.CLUSTER_ACTION, Kind.CLUSTER, "kafka-cluster")
READ, WRITE, DESCRIBE = topic(Operation.READ), topic(Operation.WRITE), topic(Operation.DESCRIBE)
DELETE = topic(Operation.DELETE)
GROUP_READ = Acl(ALICE, Operation.READ, Kind.GROUP, "g")
EPOCH_END = OffsetsForLeaderEpochRequest(CONSUMER, TP, -1, 3)
CONSUMES = FetchRequest(CONSUMER, TP, 0, 100)
FOLLOWS = FetchRequest(1, TP, 1, 100, 3)
LEADS = LeaderAndIsrRequest(1, TP, 0, 4, frozenset({0}), (0, 1, 2), frozenset(), 9)
OFFLINE = OfflineReplicasRequest(1, TP, frozenset({2}), 3, 31)
COMMIT = OffsetCommitRequest("g", TP, 1)
COMMITTED = OffsetFetchRequest("g", TP)

RIGHTS: list[tuple[Request, list[tuple[Acl, ...]], list[tuple[tuple[Acl, ...], ErrorCode]]]] = [
    # KIP-320, "ACL Changes": Describe on the topic, or the old right on the cluster
    (EPOCH_END, [(DESCRIBE,), (ACTION,), (READ,), (WRITE,)], [((), TOPIC_DENIED)]),
    (CONSUMES, [(READ,)], [((DESCRIBE,), TOPIC_DENIED), ((WRITE, ACTION), TOPIC_DENIED)]),
    (FOLLOWS, [(ACTION,)], [((READ, WRITE, DESCRIBE), CLUSTER_DENIED)]),
    (ProduceRequest(TP, 1, records(b"b")), [(WRITE,)], [((READ, DESCRIBE, ACTION), TOPIC_DENIED)]),
    (DeleteRecordsRequest(TP, 0), [(DELETE,)], [((READ, WRITE, DESCRIBE, ACTION), TOPIC_DENIED)]),
    (ListOffsetsRequest(TP, LATEST), [(DESCRIBE,), (READ,), (DELETE,)], [((ACTION,), TOPIC_DENIED)]),
    (MetadataRequest(TP), [(DESCRIBE,), (WRITE,)], [((ACTION,), TOPIC_DENIED)]),
    (LEADS, [(ACTION,)], [((READ, WRITE, DESCRIBE), CLUSTER_DENIED)]),
    (OFFLINE, [(ACTION,)], [((DESCRIBE,), CLUSTER_DENIED)]),
    (METADATA, [(ACTION,)], [((DESCRIBE,), CLUSTER_DENIED)]),
    (COMMIT, [], [((READ,), ErrorCode.GROUP_AUTHORIZATION_FAILED), ((GROUP_READ, DESCRIBE), TOPIC_DENIED)]),
    (COMMITTED, [], [((READ,), ErrorCode.GROUP_AUTHORIZATION_FAILED), ((GROUP_READ,), TOPIC_DENIED)]),
]


@pytest.mark.parametrize(("body", "enough", "lacking"), RIGHTS, ids=lambda value: type(value).__name__)
def test_each_request_needs_its_right(
    body: Request, enough: list[tuple[Acl, ...]], lacking: list[tuple[tuple[Acl, ...], ErrorCode]]
) -> None:
    for entries in enough:
        assert led(*entries).ask(0, body, ALICE).error is ErrorCode.NONE, entries
    others = topic(Operation.READ, "others"), topic(Operation.WRITE, principal="User:bob")
    for entries, error in lacking:
        cluster = led(*entries, *others)
        before = cluster.snapshot(0)
        assert cluster.ask(0, body, ALICE).error is error, entries
        assert cluster.snapshot(0) == before
        assert cluster.ask(0, body).error is not error, "brokers are super users"


def test_a_right_may_be_everybodys_and_of_everything() -> None:
    table = AclTable([Acl(ANY, Operation.READ, Kind.TOPIC, ANY)], super_users=())
    assert table.authorize("User:x", Operation.READ, Kind.TOPIC, "t")
    assert table.authorize("User:x", Operation.DESCRIBE, Kind.TOPIC, "t")
    assert not table.authorize("User:x", Operation.WRITE, Kind.TOPIC, "t")
    assert not table.authorize("User:x", Operation.READ, Kind.GROUP, "t")
    assert AllowAll().authorize("", Operation.CLUSTER_ACTION, Kind.CLUSTER, "kafka-cluster")


def test_who_may_not_describe_a_topic_does_not_learn_whether_it_is_there() -> None:
    cluster = led()
    for partition in (TP, ELSEWHERE, TP._replace(topic="nowhere")):
        assert cluster.ask(0, replace(CONSUMES, partition=partition), ALICE).error is TOPIC_DENIED


# -- metadata ---------------------------------------------------------------------------------------------------------


def test_metadata_is_what_the_controller_said_last() -> None:
    cluster = Cluster()
    assert cluster.ask(0, MetadataRequest(TP)) == MetadataResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert cluster.ask(0, METADATA).error is ErrorCode.NONE
    known = MetadataResponse(ErrorCode.NONE, 0, 3, frozenset({0, 1}), (0, 1, 2), frozenset({2}))
    assert cluster.ask(0, MetadataRequest(TP)) == known
    old = replace(METADATA, leader=1, leader_epoch=2)
    assert cluster.ask(0, old).error is ErrorCode.NONE, "it was overtaken on its way"
    assert cluster.ask(0, MetadataRequest(TP)) == known
    gone = replace(METADATA, leader=NO_LEADER, leader_epoch=4, controller_epoch=2)
    assert cluster.ask(0, gone).error is ErrorCode.NONE
    answer = cluster.ask(0, MetadataRequest(TP))
    assert answer.error is ErrorCode.LEADER_NOT_AVAILABLE and answer.leader_epoch == 4
    before = cluster.snapshot(0)
    assert cluster.ask(0, replace(METADATA, leader_epoch=9)).error is ErrorCode.STALE_CONTROLLER_EPOCH
    assert cluster.ask(0, replace(METADATA, leader=7, controller_epoch=3)).error is ErrorCode.INVALID_REQUEST
    assert cluster.snapshot(0) == before


def test_a_broker_without_a_replica_knows_that_others_have_it() -> None:
    cluster = led()
    assert cluster.ask(0, replace(CONSUMES, partition=ELSEWHERE)) == FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    nowhere = TP._replace(topic="nowhere")
    assert cluster.ask(0, replace(CONSUMES, partition=nowhere)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- committed offsets ------------------------------------------------------------------------------------------------


def test_offsets_are_the_coordinators() -> None:
    cluster = Cluster()
    assert cluster.ask(0, COMMIT).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.ask(0, COMMITTED).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker = cluster.brokers[0]
    log = broker.directory.log("__consumer_offsets", 0)
    broker.coordinator = GroupCoordinator(log, cluster.network.clock, known=lambda key: key == TP)
    assert cluster.ask(0, replace(COMMIT, leader_epoch=2, serving_epoch=3, metadata="m")).error is ErrorCode.NONE
    assert cluster.ask(0, COMMITTED) == OffsetFetchResponse(ErrorCode.NONE, 1, 2, 3, "m")
    for bad, error in (
        (replace(COMMIT, group=7), ErrorCode.INVALID_GROUP_ID),
        (replace(COMMITTED, group=None), ErrorCode.INVALID_GROUP_ID),
        (replace(COMMIT, offset="1"), ErrorCode.INVALID_REQUEST),
        (replace(COMMIT, offset=-2), ErrorCode.INVALID_REQUEST),
        (replace(COMMIT, leader_epoch=None), ErrorCode.INVALID_REQUEST),
        (replace(COMMIT, metadata=b""), ErrorCode.INVALID_REQUEST),
        (replace(COMMIT, partition=None), ErrorCode.INVALID_REQUEST),
    ):
        assert cluster.ask(0, bad).error is error, bad
    assert cluster.ask(0, COMMITTED) == OffsetFetchResponse(ErrorCode.NONE, 1, 2, 3, "m")


# -- messages that are none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        None,
        "fetch",
        FetchResponse(ErrorCode.NONE, 7, 0, 3, b"x"),
        FetchResponse(ErrorCode.NONE, -7, 0, 3, None),  # type: ignore[arg-type]
        AlterIsrRequest(1, TP, 3, frozenset({0}), 0),
        object(),
    ],
    ids=lambda body: type(body).__name__,
)
def test_what_is_no_request_and_no_awaited_answer_is_ignored(body: Any) -> None:
    cluster = Cluster()
    cluster.elect(0, 3, [0])
    cluster.exchange(1)
    for node in (0, 1):
        before = cluster.snapshot(node)
        for correlation in range(5):
            cluster.brokers[node].receive(Envelope(FIRST_CLIENT, node, correlation, body))
        assert cluster.snapshot(node) == before and cluster.nothing_sent(node)


def test_an_answer_of_another_kind_counts_as_lost() -> None:
    cluster = Cluster()
    cluster.elect(0, 3, [0])
    cluster.produce(0, b"a")
    for answer in (
        FetchResponse(ErrorCode.NONE, 0, 0, 3, b"\0" * 70),
        cluster.ask(0, replace(EPOCH_END)),
        FetchResponse(ErrorCode.NONE, 1, 0, 2, records(b"z")),
    ):
        cluster.brokers[1].fire(("fetch", TP))
        flight = cluster.sent(1)
        cluster.network.drop(flight)
        cluster.brokers[1].receive(Envelope(0, 1, flight.envelope.correlation, answer))
        assert cluster.state(1).end == 0 and cluster.state(1).high_watermark == 0
        assert ("fetch", TP) in cluster.brokers[1].timers()
    cluster.fetch_all(1)
    assert cluster.values(1) == b"a"


# -- timers -----------------------------------------------------------------------------------------------------------


def test_timers_run_off_each_once_and_in_order() -> None:
    cluster = Cluster()
    broker, clock = cluster.brokers[1], cluster.network.clock
    assert broker.timers() == [("high-watermarks",), ("recovery-points",)]
    assert broker.deadline() == cluster.config.high_watermark_interval_ms
    cluster.tell(1, cluster.request(0, 0))
    assert broker.deadline() == 0
    broker.wake()
    assert len(cluster.network.in_flight(source=1, destination=0)) == 1
    broker.wake()
    assert len(cluster.network.in_flight(source=1, destination=0)) == 1
    clock.advance(cluster.config.high_watermark_interval_ms)
    broker.wake()
    assert broker.deadline() == 2 * cluster.config.high_watermark_interval_ms
    for _ in range(500):
        broker.fire(("fetch", TP))
    assert broker.deadline() == 2 * cluster.config.high_watermark_interval_ms
    assert len(broker._runtime.timers._heap) < 200 and len(broker._runtime._waiting) == 1


def test_a_timer_that_is_set_again_runs_off_at_its_new_time_only() -> None:
    timers = Timers()
    fetch, isr = ("fetch", TP), ("isr", TP)
    timers.set(fetch, 10)
    timers.set(isr, 15)
    timers.set(fetch, 20)
    assert timers.deadline() == 15 and timers.due(12) == []
    timers.set(isr, 20)
    timers.cancel(("produce", TP))
    assert timers.due(20) == [fetch, isr], "in the order in which they were set"
    assert timers.deadline() is None and timers.keys() == []
    timers.set(fetch, 5)
    timers.cancel(fetch)
    assert timers.get(fetch) is None and timers.due(99) == []


def test_a_timer_without_its_role_does_nothing_and_an_unknown_one_is_an_error() -> None:
    cluster = Cluster()
    cluster.elect(0, 0)
    before = cluster.snapshot(0)
    for name in ("fetch", "produce"):
        cluster.brokers[0].fire((name, TP))
    assert cluster.snapshot(0) == before and cluster.nothing_sent(0)
    for key in (("fetch", ELSEWHERE), ("lunch",)):
        with pytest.raises(KeyError):
            cluster.brokers[0].fire(key)


def test_settings_that_no_broker_can_run_with() -> None:
    for name in ("min_insync_replicas", "replica_fetch_max_bytes", "request_timeout_ms", "isr_interval_ms"):
        with pytest.raises(ValueError, match=name):
            BrokerConfig(**{name: 0})
    with pytest.raises(ValueError, match="refuse"):
        BrokerConfig(fetch_max_bytes=5)
    assert BrokerConfig(replica_lag_time_max_ms=0, replica_fetch_wait_ms=0).replica_fetch_max_bytes == 1 << 20


def test_recovery_points_are_stored_by_a_timer() -> None:
    cluster = Cluster()
    cluster.elect(0, 0, [0])
    cluster.produce(0, b"a")
    cluster.brokers[0].fire(("recovery-points",))
    directory = DataDirectory(cluster.disks[0], node_id=0, cluster_id=cluster.config.cluster_id)
    assert directory.log(*TP).recovered.end == 1
    assert b"orders 0 1" in cluster.snapshot(0)[4]["recovery-point-offset-checkpoint"]
