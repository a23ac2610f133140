"""Whether a message is well formed: looked at before anything else, so that a bad one changes nothing.

A transport that decodes bytes gives integers of the right size; whatever else calls itself a node may not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from ..wire.errors import ErrorCode
from ..wire.messages import (
    CONSUMER,
    EARLIEST_PENDING_UPLOAD,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    NO_LEADER,
    NO_TOPIC_ID,
    AlterIsrRequest,
    AlterIsrResponse,
    DeleteRecordsRequest,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OfflineReplicasRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    Request,
    StopReplicaRequest,
    TopicPartition,
    UpdateMetadataRequest,
)
from .config import BrokerConfig

_INT32 = 1 << 31
_INT64 = 1 << 63


def _int32(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value < _INT32


def _int64(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value < _INT64


def _replicas(value: Any, kind: type[tuple[Any, ...]] | type[frozenset[Any]]) -> bool:
    return isinstance(value, kind) and all(_int32(each) for each in value)


def names_partition(key: object) -> bool:
    """Whether it is a topic and a partition, be they there or not."""
    return type(key) is TopicPartition and type(key.topic) is str and type(key.partition) is int


def names_topic(body: object) -> bool:
    """Whether its topic id, if it has one, is one."""
    return type(getattr(body, "topic_id", NO_TOPIC_ID)) is UUID


def is_consistent(asked: UUID, here: UUID) -> bool:
    """Whether these may be the ids of one topic: where either is not known, too (``hasConsistentTopicId`` in Kafka)."""
    return asked == here or NO_TOPIC_ID in (asked, here)


def check_fetch(body: FetchRequest, config: BrokerConfig) -> ErrorCode:
    """An offset below 0 is out of every log's range, and left to the leader to say."""
    good = (
        _int32(body.replica_id, CONSUMER)
        and _int32(body.current_leader_epoch, NO_EPOCH)
        and _int32(body.last_fetched_epoch, NO_EPOCH)
        and type(body.max_bytes) is int
        and 0 < body.max_bytes <= config.fetch_max_bytes
        and _int64(body.fetch_offset, -_INT64)
    )
    return ErrorCode.NONE if good else ErrorCode.INVALID_REQUEST


def check_epoch_end(body: OffsetsForLeaderEpochRequest, _config: BrokerConfig) -> ErrorCode:
    """Epochs are from -1 on."""
    good = (
        _int32(body.replica_id, CONSUMER)
        and _int32(body.current_leader_epoch, NO_EPOCH)
        and _int32(body.leader_epoch, NO_EPOCH)
    )
    return ErrorCode.NONE if good else ErrorCode.INVALID_REQUEST


def check_list_offsets(body: ListOffsetsRequest, _config: BrokerConfig) -> ErrorCode:
    """A timestamp, or one of the sentinels."""
    good = _int64(body.timestamp, EARLIEST_PENDING_UPLOAD) and _int32(body.current_leader_epoch, NO_EPOCH)
    return ErrorCode.NONE if good else ErrorCode.INVALID_REQUEST


def check_produce(body: ProduceRequest, config: BrokerConfig) -> ErrorCode:
    """What can be said before the batches are read."""
    if type(body.acks) is not int or body.acks not in (-1, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if type(body.records) is not bytes:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if len(body.records) <= config.produce_max_bytes else ErrorCode.MESSAGE_TOO_LARGE


def check_delete_records(body: DeleteRecordsRequest, _config: BrokerConfig) -> ErrorCode:
    """An offset that no log has is left to the leader to say."""
    return ErrorCode.NONE if _int64(body.offset, -_INT64) else ErrorCode.INVALID_REQUEST


def check_offline(body: OfflineReplicasRequest, _config: BrokerConfig) -> ErrorCode:
    """Replicas have numbers from 0 on."""
    numbers = body.controller_epoch, body.leader_epoch, body.partition_epoch
    good = all(_int32(each) for each in numbers) and _replicas(body.offline, frozenset)
    return ErrorCode.NONE if good else ErrorCode.INVALID_REQUEST


def check_stop(body: StopReplicaRequest, _config: BrokerConfig) -> ErrorCode:
    """Without an id of the topic nobody could tell whether the replica is still that which is meant."""
    good = _int32(body.controller_epoch) and body.topic_id != NO_TOPIC_ID
    return ErrorCode.NONE if good else ErrorCode.INVALID_REQUEST


def check_group(body: OffsetCommitRequest | OffsetFetchRequest, _config: BrokerConfig) -> ErrorCode:
    """Types only: what may be in the fields is for the coordinator to judge."""
    if type(body.group) is not str:
        return ErrorCode.INVALID_GROUP_ID
    if isinstance(body, OffsetFetchRequest):
        return ErrorCode.NONE
    numbers = body.offset, body.leader_epoch, body.serving_epoch
    good = all(type(each) is int for each in numbers) and type(body.metadata) is str
    return ErrorCode.NONE if good else ErrorCode.INVALID_REQUEST


def check_leader(body: LeaderAndIsrRequest | UpdateMetadataRequest, _config: BrokerConfig) -> ErrorCode:
    """Epochs are from 0 on (metadata may tell of a partition that had no leader yet); who leads is in the ISR."""
    if type(body) is UpdateMetadataRequest and body.leader == LEADER_DURING_DELETE and type(body.leader) is int:
        return ErrorCode.NONE if _int32(body.controller_epoch) else ErrorCode.INVALID_REQUEST
    good = (
        _int32(body.controller_epoch)
        and _int32(body.leader, NO_LEADER)
        and _int32(body.leader_epoch, NO_EPOCH if type(body) is UpdateMetadataRequest else 0)
        and _replicas(body.replicas, tuple)
        and len(set(body.replicas)) == len(body.replicas)
        and _replicas(body.isr, frozenset)
        and _replicas(body.offline, frozenset)
        and body.isr.issubset(body.replicas)
        and (body.leader == NO_LEADER or body.leader in body.isr)
        and (not isinstance(body, LeaderAndIsrRequest) or _int32(body.partition_epoch))
    )
    return ErrorCode.NONE if good else ErrorCode.INVALID_REQUEST


def is_alter_isr(body: AlterIsrRequest) -> bool:
    """Whether the controller can look at it; what is in the fields is for it to judge."""
    return (
        _int32(body.broker, NO_LEADER)
        and names_partition(body.partition)
        and _int32(body.leader_epoch, NO_EPOCH)
        and _int32(body.partition_epoch, -1)
        and _replicas(body.new_isr, frozenset)
        and names_topic(body)
    )


def is_response(body: object) -> bool:
    """Whether an answer can be used. One that cannot counts as lost."""
    if type(body) is FetchResponse:
        good = (
            _int64(body.high_watermark, -1)
            and _int64(body.log_start_offset, -1)
            and _int32(body.leader_epoch, NO_EPOCH)
            and type(body.records) is bytes
        )
        return good and (body.error is not ErrorCode.NONE or min(body.high_watermark, body.log_start_offset) >= 0)
    if type(body) is OffsetsForLeaderEpochResponse:
        return _int32(body.leader_epoch, -1) and _int64(body.end_offset, -1) and _int32(body.answering_epoch, -1)
    if type(body) is ListOffsetsResponse:
        return (
            _int64(body.offset, -1)
            and _int32(body.leader_epoch, NO_EPOCH)
            and _int64(body.timestamp, -1)
            and _int32(body.answering_epoch, -1)
        )
    if type(body) is ProduceResponse:
        return _int64(body.base_offset, -1) and _int64(body.log_start_offset, -1)
    return (
        isinstance(body, AlterIsrResponse)
        and _int32(body.leader, NO_LEADER)
        and _int32(body.leader_epoch, NO_EPOCH)
        and _int32(body.partition_epoch, -1)
        and _replicas(body.isr, frozenset)
    )


Check = Callable[[Any, BrokerConfig], ErrorCode]
CHECKS: dict[type[Request], Check] = {
    FetchRequest: check_fetch,
    OffsetsForLeaderEpochRequest: check_epoch_end,
    ListOffsetsRequest: check_list_offsets,
    ProduceRequest: check_produce,
    DeleteRecordsRequest: check_delete_records,
    LeaderAndIsrRequest: check_leader,
    StopReplicaRequest: check_stop,
    OfflineReplicasRequest: check_offline,
    OffsetCommitRequest: check_group,
    OffsetFetchRequest: check_group,
    UpdateMetadataRequest: check_leader,
}
"""Checks of requests by their type; none for those with no field but the partition."""
