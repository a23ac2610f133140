"""Which right each request needs (Kafka's ``KafkaApis``; KIP-320, "ACL Changes")."""

from __future__ import annotations

from ..wire.errors import ErrorCode
from ..wire.messages import (
    CONSUMER,
    DeleteRecordsRequest,
    FetchRequest,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OfflineReplicasRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    Request,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from .acl import CLUSTER, Authorizer, Kind, Operation

_BROKERS = (LeaderAndIsrRequest, StopReplicaRequest, OfflineReplicasRequest, UpdateMetadataRequest)
_ON_TOPIC: dict[type[Request], Operation] = {
    FetchRequest: Operation.READ,
    OffsetsForLeaderEpochRequest: Operation.DESCRIBE,
    ListOffsetsRequest: Operation.DESCRIBE,
    ProduceRequest: Operation.WRITE,
    DeleteRecordsRequest: Operation.DELETE,
    MetadataRequest: Operation.DESCRIBE,
    OffsetCommitRequest: Operation.READ,
    OffsetFetchRequest: Operation.DESCRIBE,
}


def denied(authorizer: Authorizer, principal: str, body: Request) -> ErrorCode:
    """NONE where the principal may ask this, else the code that says which right it lacks."""

    def cluster_action() -> bool:
        return authorizer.authorize(principal, Operation.CLUSTER_ACTION, Kind.CLUSTER, CLUSTER)

    kind = type(body)
    if kind in _BROKERS or (isinstance(body, FetchRequest) and body.replica_id != CONSUMER):
        return ErrorCode.NONE if cluster_action() else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    operation = _ON_TOPIC[kind]
    if isinstance(body, OffsetCommitRequest | OffsetFetchRequest) and not authorizer.authorize(
        principal, operation, Kind.GROUP, body.group
    ):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if authorizer.authorize(principal, operation, Kind.TOPIC, body.partition.topic):
        return ErrorCode.NONE
    # The right that OffsetsForLeaderEpoch needed before the KIP is enough still.
    old = kind is OffsetsForLeaderEpochRequest and cluster_action()
    return ErrorCode.NONE if old else ErrorCode.TOPIC_AUTHORIZATION_FAILED
