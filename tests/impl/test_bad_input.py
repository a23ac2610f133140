"""Bad input to a node: the protocol's error code, and nothing changed; whatever the fields hold, and in every role."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import Any

import pytest
from fencepost.impl.log import Log
from fencepost.impl.offsets import coordinate
from fencepost.impl.replica import Role
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    CONSUMER,
    LATEST,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OfflineReplicasRequest,
    OfflineReplicasResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

from .brokers import CONFIG, TP, Cluster, records

E = ErrorCode
NOWHERE = TP._replace(topic="nowhere")
ELSEWHERE = TP._replace(partition=7)
"""No replica is here, but the metadata has it."""
EPOCH = 5
END = 3
ALL = frozenset(range(5))
EVERYONE = tuple(range(5))
LIMIT = 4096
"""Bytes of a produce, and of a fetch."""

ANSWERS: dict[type, Any] = {
    FetchRequest: FetchResponse,
    OffsetsForLeaderEpochRequest: OffsetsForLeaderEpochResponse,
    ListOffsetsRequest: ListOffsetsResponse,
    ProduceRequest: ProduceResponse,
    MetadataRequest: MetadataResponse,
    OffsetCommitRequest: OffsetCommitResponse,
    OffsetFetchRequest: OffsetFetchResponse,
    LeaderAndIsrRequest: LeaderAndIsrResponse,
    OfflineReplicasRequest: OfflineReplicasResponse,
    UpdateMetadataRequest: UpdateMetadataResponse,
}
GOOD: dict[type, Any] = {
    FetchRequest: FetchRequest(CONSUMER, TP, 1, 1000),
    OffsetsForLeaderEpochRequest: OffsetsForLeaderEpochRequest(CONSUMER, TP, -1, EPOCH),
    ListOffsetsRequest: ListOffsetsRequest(TP, LATEST),
    ProduceRequest: ProduceRequest(TP, 1, records(b"x")),
    MetadataRequest: MetadataRequest(TP),
    OffsetCommitRequest: OffsetCommitRequest("g", TP, 1),
    OffsetFetchRequest: OffsetFetchRequest("g", TP),
    LeaderAndIsrRequest: LeaderAndIsrRequest(1, TP, 0, EPOCH + 1, ALL, EVERYONE, frozenset(), 60),
    OfflineReplicasRequest: OfflineReplicasRequest(1, TP, frozenset({3}), EPOCH, 51),
    UpdateMetadataRequest: UpdateMetadataRequest(1, TP, 0, EPOCH + 1, ALL, EVERYONE, frozenset()),
}
ROLES = (Role.LEADER, Role.FOLLOWER, Role.TRUNCATING, Role.NONE, Role.OFFLINE)
"""Those of brokers 0 to 4."""


def world() -> Cluster:
    """Five brokers, each in another role; broker 0 is the coordinator too, and all know the metadata."""
    cluster = Cluster(5, replace(CONFIG, produce_max_bytes=LIMIT, fetch_max_bytes=LIMIT))
    coordinate(cluster.brokers[0], cluster.network.clock)
    cluster.elect(0, EPOCH, (0, 1), nodes=(0, 1, 4))
    cluster.produce(0, b"a", b"b", acks=0)
    cluster.produce(0, b"c", acks=0, producer_id=9, producer_epoch=2, base_sequence=0)
    cluster.fetch_all(1)
    cluster.tell(2, cluster.request(0, EPOCH))
    for node in range(5):
        for partition in (TP, ELSEWHERE):
            cluster.ask(node, UpdateMetadataRequest(1, partition, 0, EPOCH, ALL, EVERYONE, frozenset()))
    cluster.ask(0, OffsetCommitRequest("g", TP, 2, EPOCH, EPOCH, "m"))
    log: Log = cluster.brokers[3].directory.log(*TP)
    log.append_batches_as_leader(records(b"a", b"b"), EPOCH)
    log.flush()
    cluster.crash(3)
    cluster.ask(3, UpdateMetadataRequest(1, TP, 0, EPOCH, ALL, EVERYONE, frozenset()))

    def broken(operation: str, path: str) -> None:
        if operation == "append":
            raise OSError(errno.EIO, "I/O error", path)

    cluster.disks[4].hook = broken
    cluster.tell(4, cluster.request(4, EPOCH + 1))
    cluster.disks[4].hook = None
    assert tuple(cluster.state(node).role for node in range(5)) == ROLES
    return cluster


def everything(cluster: Cluster, node: int) -> Any:
    """The snapshot, and what groups have committed."""
    coordinator: Any = cluster.brokers[node].coordinator
    return cluster.snapshot(node), None if coordinator is None else coordinator.committed


def refused(cluster: Cluster, node: int, body: Any) -> ErrorCode:
    """The error, and nothing changed."""
    before = everything(cluster, node)
    answer = cluster.ask(node, body)
    assert type(answer) is ANSWERS[type(body)] and answer.error is not E.NONE, f"{body}: {answer}"
    assert everything(cluster, node) == before, body
    error: ErrorCode = answer.error
    return error


# -- the list ---------------------------------------------------------------------------------------------------------

UNKNOWN, INVALID, ELECTED = E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_REQUEST, E.NOT_LEADER_OR_FOLLOWER
_NAMELESS = (TP._replace(topic=""), TP._replace(topic="a/b"), TP._replace(partition=-1), TP._replace(topic=".."))
NEEDS_A_REPLICA = (FetchRequest, OffsetsForLeaderEpochRequest, ListOffsetsRequest, ProduceRequest)


@pytest.mark.parametrize("kind", GOOD, ids=lambda kind: kind.__name__)
def test_the_good_request_is_taken(kind: type) -> None:
    """So that what follows is refused for what was changed in it, and for nothing else."""
    assert world().ask(0, GOOD[kind]).error is E.NONE


@pytest.mark.parametrize("kind", GOOD, ids=lambda kind: kind.__name__)
def test_an_unknown_topic_or_partition(kind: type) -> None:
    cluster = world()
    for partition in (NOWHERE, TP._replace(partition=99), *_NAMELESS):
        body = replace(GOOD[kind], partition=partition)
        if kind in (LeaderAndIsrRequest, UpdateMetadataRequest, OfflineReplicasRequest):
            # The controller says what there is: a new name is news, but no name at all is none.
            if partition in _NAMELESS:
                assert refused(cluster, 0, body) is INVALID
            elif kind is OfflineReplicasRequest:
                assert refused(cluster, 0, body) is UNKNOWN
        elif kind is OffsetFetchRequest:
            assert cluster.ask(0, body) == OffsetFetchResponse(E.NONE), "nothing committed is no error, as in Kafka"
        else:
            assert refused(cluster, 0, body) is UNKNOWN, partition
    if kind in NEEDS_A_REPLICA:
        assert refused(cluster, 0, replace(GOOD[kind], partition=ELSEWHERE)) is ELECTED
    for nothing in (None, "orders-0", ("orders", 0), TP._replace(topic=7), TP._replace(partition="0")):  # type: ignore[arg-type]
        assert refused(cluster, 0, replace(GOOD[kind], partition=nothing)) is INVALID


CHANGES: list[tuple[type, dict[str, Any], ErrorCode]] = [
    # negative offsets and epochs
    (FetchRequest, {"fetch_offset": -1}, E.OFFSET_OUT_OF_RANGE),
    (FetchRequest, {"fetch_offset": -1, "replica_id": 1, "current_leader_epoch": EPOCH}, E.OFFSET_OUT_OF_RANGE),
    (FetchRequest, {"current_leader_epoch": -2}, INVALID),
    (FetchRequest, {"last_fetched_epoch": -2}, INVALID),
    (FetchRequest, {"replica_id": -2}, INVALID),
    (FetchRequest, {"replica_id": 1, "current_leader_epoch": -1}, E.FENCED_REPLICA),
    (OffsetsForLeaderEpochRequest, {"leader_epoch": -2}, INVALID),
    (OffsetsForLeaderEpochRequest, {"current_leader_epoch": -2}, INVALID),
    (ListOffsetsRequest, {"timestamp": -7}, INVALID),
    (ListOffsetsRequest, {"current_leader_epoch": -2}, INVALID),
    (OffsetCommitRequest, {"offset": -1}, INVALID),
    (OffsetCommitRequest, {"leader_epoch": -2}, INVALID),
    (OffsetCommitRequest, {"serving_epoch": -2}, INVALID),
    (LeaderAndIsrRequest, {"leader_epoch": -1}, INVALID),
    (LeaderAndIsrRequest, {"controller_epoch": -1}, INVALID),
    (LeaderAndIsrRequest, {"partition_epoch": -1}, INVALID),
    (LeaderAndIsrRequest, {"leader": -2}, INVALID),
    (UpdateMetadataRequest, {"leader_epoch": -2}, INVALID),
    (OfflineReplicasRequest, {"controller_epoch": -1}, INVALID),
    (OfflineReplicasRequest, {"offline": frozenset({-1})}, INVALID),
    (OfflineReplicasRequest, {"leader_epoch": -2}, INVALID),
    (OfflineReplicasRequest, {"partition_epoch": -1}, INVALID),
    # an epoch of another time
    (FetchRequest, {"current_leader_epoch": EPOCH + 1}, E.UNKNOWN_LEADER_EPOCH),
    (FetchRequest, {"last_fetched_epoch": EPOCH + 1}, E.UNKNOWN_LEADER_EPOCH),
    (FetchRequest, {"replica_id": 1, "current_leader_epoch": EPOCH - 1}, E.FENCED_REPLICA),
    (OffsetsForLeaderEpochRequest, {"current_leader_epoch": EPOCH + 1}, E.UNKNOWN_LEADER_EPOCH),
    (ListOffsetsRequest, {"current_leader_epoch": EPOCH + 1}, E.UNKNOWN_LEADER_EPOCH),
    (LeaderAndIsrRequest, {"leader_epoch": EPOCH - 1}, E.FENCED_REPLICA),
    (LeaderAndIsrRequest, {"controller_epoch": 0}, E.STALE_CONTROLLER_EPOCH),
    (UpdateMetadataRequest, {"controller_epoch": 0}, E.STALE_CONTROLLER_EPOCH),
    (OfflineReplicasRequest, {"controller_epoch": 0}, E.STALE_CONTROLLER_EPOCH),
    # past the end
    (FetchRequest, {"fetch_offset": END + 1}, E.OFFSET_OUT_OF_RANGE),
    (FetchRequest, {"fetch_offset": (1 << 63) - 1}, E.OFFSET_OUT_OF_RANGE),
    (FetchRequest, {"fetch_offset": END + 1, "replica_id": 1, "current_leader_epoch": EPOCH}, E.OFFSET_OUT_OF_RANGE),
    (FetchRequest, {"fetch_offset": 1, "last_fetched_epoch": EPOCH - 1}, E.LOG_TRUNCATION),
    # oversized
    (FetchRequest, {"max_bytes": LIMIT + 1}, INVALID),
    (FetchRequest, {"max_bytes": 0}, INVALID),
    (FetchRequest, {"fetch_offset": 1 << 63}, INVALID),
    (OffsetsForLeaderEpochRequest, {"leader_epoch": 1 << 31}, INVALID),
    (ListOffsetsRequest, {"timestamp": 1 << 63}, INVALID),
    (ProduceRequest, {"records": bytes(LIMIT + 1)}, E.MESSAGE_TOO_LARGE),
    (OffsetCommitRequest, {"offset": 1 << 63}, INVALID),
    (OffsetCommitRequest, {"metadata": "x" * 5000}, E.OFFSET_METADATA_TOO_LARGE),
    (OffsetCommitRequest, {"group": "g" * 40_000}, E.INVALID_GROUP_ID),
    (OffsetFetchRequest, {"group": "g" * 40_000}, E.INVALID_GROUP_ID),
    (LeaderAndIsrRequest, {"leader_epoch": 1 << 31}, INVALID),
    (UpdateMetadataRequest, {"leader": 1 << 31}, INVALID),
    # not of this world
    (ProduceRequest, {"acks": 2}, E.INVALID_REQUIRED_ACKS),
    (ProduceRequest, {"records": b""}, INVALID),
    (ProduceRequest, {"records": b"\0" * 61}, E.CORRUPT_MESSAGE),
    (ProduceRequest, {"records": records(b"x")[:-1]}, E.CORRUPT_MESSAGE),
    (ProduceRequest, {"records": records(b"x", producer_id=9)}, E.INVALID_RECORD),
    (
        ProduceRequest,
        {"records": records(b"x", producer_id=9, producer_epoch=2, base_sequence=5)},
        E.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ),
    (
        ProduceRequest,
        {"records": records(b"x", producer_id=9, producer_epoch=1, base_sequence=0)},
        E.INVALID_PRODUCER_EPOCH,
    ),
    (OffsetCommitRequest, {"group": ""}, E.INVALID_GROUP_ID),
    (OffsetFetchRequest, {"group": ""}, E.INVALID_GROUP_ID),
    (OffsetCommitRequest, {"group": "\ud800"}, E.INVALID_GROUP_ID),
    (OffsetCommitRequest, {"metadata": "\ud800"}, INVALID),
    (LeaderAndIsrRequest, {"isr": frozenset({9})}, INVALID),
    (LeaderAndIsrRequest, {"replicas": (1, 2), "isr": frozenset({1}), "leader": 1}, INVALID),
    (LeaderAndIsrRequest, {"leader_epoch": EPOCH, "leader": 1}, E.FENCED_REPLICA),
    (UpdateMetadataRequest, {"replicas": (0, 0)}, INVALID),
]


@pytest.mark.parametrize(("kind", "changes", "error"), CHANGES, ids=lambda value: getattr(value, "__name__", None))
def test_a_bad_request_is_refused_by_its_code(kind: type, changes: dict[str, Any], error: ErrorCode) -> None:
    assert refused(world(), 0, replace(GOOD[kind], **changes)) is error


def test_only_the_leader_and_the_coordinator_answer_and_one_that_is_offline_says_so() -> None:
    cluster = world()
    for node, role in enumerate(ROLES[1:], start=1):
        wanted = E.KAFKA_STORAGE_ERROR if role is Role.OFFLINE else ELECTED
        for kind in NEEDS_A_REPLICA:
            assert refused(cluster, node, GOOD[kind]) is wanted, (node, kind)
        for group in (OffsetCommitRequest, OffsetFetchRequest):
            assert refused(cluster, node, GOOD[group]) is ELECTED, (node, group)
    assert refused(cluster, 4, replace(GOOD[LeaderAndIsrRequest], leader=4)) is E.KAFKA_STORAGE_ERROR
