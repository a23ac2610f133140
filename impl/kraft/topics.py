"""CreateTopics, DeleteTopics and ElectLeaders (``ReplicationControlManager`` in Kafka)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from uuid import UUID

from ..log.directory import is_partition
from ..metadata import changes
from ..metadata.elections import PartitionImage, elected, preferred
from ..metadata.image import ALL_BROKERS, Image, PartitionKey, ResourceKey
from ..wire.controller import (
    ConfigChange,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ResourceType,
)
from ..wire.errors import ErrorCode
from .configs import compaction_goes_together, config_error
from .decision import Decision

MAX_PARTITIONS = 10_000
"""The most that one request may make (``MAX_RECORDS_PER_USER_OP`` in Kafka)."""


def create_topic(image: Image, body: CreateTopicsRequest, *, cluster_id: str, epoch: int, offset: int) -> Decision:
    """Make a topic with its partitions, led by their first live replicas, in leader epoch 0.

    INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
    INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG. ``epoch`` and ``offset`` are those of the next record.
    """
    error = _name_error(image, body.name)
    if error is ErrorCode.NONE:
        error = config_error(ResourceType.TOPIC, [ConfigChange(*each) for each in body.configs])
    default = image.configs.get(ResourceKey(ResourceType.BROKER, ALL_BROKERS), {})
    if error is ErrorCode.NONE and not compaction_goes_together(dict(body.configs), default):
        error = ErrorCode.INVALID_CONFIG
    if error is not ErrorCode.NONE:
        return Decision(CreateTopicsResponse(error))
    topic = topic_id(cluster_id, epoch, offset)
    placed = _placed(image, body, topic)
    if isinstance(placed, ErrorCode):
        return Decision(CreateTopicsResponse(placed))
    records = [changes.topic(topic, body.name)]
    for number, replicas in enumerate(placed):
        isr = tuple(each for each in replicas if image.alive(each))
        records.append(changes.partition(PartitionKey(topic, number), PartitionImage(replicas, isr, isr[0], 0, 0)))
    records += [changes.config(ResourceType.TOPIC, body.name, *each) for each in body.configs]
    return Decision(CreateTopicsResponse(ErrorCode.NONE, topic), tuple(records))


def topic_id(cluster_id: str, epoch: int, offset: int) -> UUID:
    """An id by the place of the topic's record in the log: no other committed record has it, nor any other cluster."""
    return UUID(bytes=blake2b(f"{cluster_id} {epoch} {offset}".encode(), digest_size=16).digest())


def _name_error(image: Image, name: str) -> ErrorCode:
    if not is_partition(name, 0):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.TOPIC_ALREADY_EXISTS if name in image.names else ErrorCode.NONE


def _placed(image: Image, body: CreateTopicsRequest, topic: UUID) -> Sequence[tuple[int, ...]] | ErrorCode:
    """The replicas of each partition: as given, or round about the live brokers from a place that the id decides.

    Kafka's ``StripedReplicaPlacer`` spreads over racks, too.
    """
    if body.assignments:
        return body.assignments if _are_placed(image, body.assignments) else ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not 0 < body.partitions <= MAX_PARTITIONS:
        return ErrorCode.INVALID_PARTITIONS
    live = [broker for broker in sorted(image.brokers) if image.alive(broker)]
    if not 0 < body.replication_factor <= len(live):
        return ErrorCode.INVALID_REPLICATION_FACTOR
    first = topic.int % len(live)
    return [
        tuple(live[(first + number + place) % len(live)] for place in range(body.replication_factor))
        for number in range(body.partitions)
    ]


def _are_placed(image: Image, assignments: Sequence[tuple[int, ...]]) -> bool:
    """Each partition has as many replicas, on brokers that are registered, and at least one of them alive."""
    return (
        len(assignments) <= MAX_PARTITIONS
        and len({len(replicas) for replicas in assignments}) == 1
        and all(
            len(set(replicas)) == len(replicas)
            and all(each in image.brokers for each in replicas)
            and any(image.alive(each) for each in replicas)
            for replicas in assignments
        )
    )


def delete_topic(image: Image, body: DeleteTopicsRequest) -> Decision:
    """Delete a topic by its name (UNKNOWN_TOPIC_OR_PARTITION) or by its id (UNKNOWN_TOPIC_ID).

    INVALID_REQUEST by both or neither.
    """
    if (body.name is None) == (body.topic_id is None):
        return Decision(DeleteTopicsResponse(ErrorCode.INVALID_REQUEST))
    topic = body.topic_id if body.name is None else image.names.get(body.name)
    if topic is None or topic not in image.topics:
        error = ErrorCode.UNKNOWN_TOPIC_ID if body.name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return Decision(DeleteTopicsResponse(error))
    return Decision(DeleteTopicsResponse(ErrorCode.NONE), (changes.remove_topic(topic),))


def elect_leaders(image: Image, body: ElectLeadersRequest) -> Decision:
    """Elect the preferred replica of a partition, or uncleanly any live one where nobody leads.

    ELECTION_NOT_NEEDED where that one, or for an unclean election anybody, leads; PREFERRED_LEADER_NOT_AVAILABLE,
    ELIGIBLE_LEADERS_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = image.names.get(body.partition.topic)
    key = None if topic is None else PartitionKey(topic, body.partition.partition)
    partition = None if key is None else image.partitions.get(key)
    if key is None or partition is None:
        return Decision(ElectLeadersResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    if body.unclean:
        after: PartitionImage | None = elected(partition, image.alive, unclean=True)
        if after is partition:
            leads = partition.leader >= 0
            error = ErrorCode.ELECTION_NOT_NEEDED if leads else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            return Decision(ElectLeadersResponse(error))
    else:
        after = preferred(partition, image.alive)
        if after is partition:
            return Decision(ElectLeadersResponse(ErrorCode.ELECTION_NOT_NEEDED))
    if after is None:
        return Decision(ElectLeadersResponse(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE))
    return Decision(ElectLeadersResponse(ErrorCode.NONE), (changes.isr(key, after),))
