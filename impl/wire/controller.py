"""The requests and responses between brokers, clients and the controllers of KIP-631, each for one thing.

Fields are those of Kafka's message definitions, under their names: BrokerRegistration and BrokerHeartbeat (KIP-631),
AlterPartition (KIP-497, KIP-841, KIP-903), CreateTopics, DeleteTopics, IncrementalAlterConfigs and ElectLeaders. What
the text of KIP-631 says without a message: a heartbeat tells the offset of the sender's latest snapshot, standby
controllers send one too, and the answer says whose turn it is to take a snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from .errors import ErrorCode
from .messages import NO_EPOCH, NO_LEADER, FetchRequest, OffsetsForLeaderEpochRequest, TopicPartition

NO_BROKER_EPOCH = -1
"""No broker epoch: that of a replica whose registration is not known."""


class Endpoint(NamedTuple):
    """How a broker can be reached. ``security_protocol`` by Kafka's numbers, 0 for PLAINTEXT."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


@dataclass(frozen=True, slots=True)
class BrokerRegistrationRequest:
    """A broker process that has started wants an epoch. ``incarnation`` is a new id of each process."""

    broker: int
    cluster_id: str
    incarnation: UUID
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerRegistrationResponse:
    """``broker_epoch``: the offset of the registration's record."""

    error: ErrorCode
    broker_epoch: int = NO_BROKER_EPOCH


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatRequest:
    """A broker lives. ``metadata_offset`` is the last record that it has replayed, ``snapshot_offset`` the end of its
    latest snapshot, 0 for none."""

    broker: int
    broker_epoch: int
    metadata_offset: int
    snapshot_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatResponse:
    """What the broker is now, and what it may or should do."""

    error: ErrorCode
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False
    should_snapshot: bool = False


@dataclass(frozen=True, slots=True)
class ControllerHeartbeatRequest:
    """A standby controller lives: how far it is, and the end of its latest snapshot, 0 for none."""

    node: int
    metadata_offset: int
    snapshot_offset: int


@dataclass(frozen=True, slots=True)
class ControllerHeartbeatResponse:
    """Whether it is the standby's turn to take a snapshot."""

    error: ErrorCode
    should_snapshot: bool = False


class IsrMember(NamedTuple):
    """A replica and the epoch of the broker process that it is at, as the leader knows it (KIP-903)."""

    broker: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class AlterPartitionRequest:
    """A leader asks for another ISR."""

    broker: int
    broker_epoch: int
    topic_id: UUID
    partition: TopicPartition
    leader_epoch: int
    new_isr: tuple[IsrMember, ...]
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class AlterPartitionResponse:
    """What the controller has now; with an error nothing was changed."""

    error: ErrorCode
    partition: TopicPartition
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    isr: frozenset[int] = frozenset()
    partition_epoch: int = -1


@dataclass(frozen=True, slots=True)
class CreateTopicsRequest:
    """Make a topic: of ``partitions`` partitions with ``replication_factor`` replicas each, which the controller
    places, or with the replicas that ``assignments`` has for partitions 0, 1, ..., the preferred one first."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    assignments: tuple[tuple[int, ...], ...] = ()
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTopicsResponse:
    """The new topic's id."""

    error: ErrorCode
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopicsRequest:
    """Delete a topic by its name or by its id."""

    name: str | None = None
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopicsResponse:
    """Whether it is gone."""

    error: ErrorCode


class ResourceType(IntEnum):
    """What has configs, by Kafka's numbers (``ConfigResource.Type``)."""

    TOPIC = 2
    BROKER = 4


class ConfigChange(NamedTuple):
    """Set a config, or with ``None`` delete it."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsRequest:
    """Change configs of one resource, all of them or none. A broker's name is its id, ``""`` is for all brokers."""

    resource_type: int
    resource_name: str
    changes: tuple[ConfigChange, ...]


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsResponse:
    """Whether they are changed."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class ElectLeadersRequest:
    """Elect the preferred replica, or with ``unclean`` any live one where nobody leads."""

    partition: TopicPartition
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class ElectLeadersResponse:
    """Whether somebody was elected."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class ReplicaRequest:
    """What a follower asks its leader, with the epoch of its broker process (``ReplicaState`` of Fetch, KIP-903)."""

    replica_epoch: int
    body: FetchRequest | OffsetsForLeaderEpochRequest


ControllerRequest = (
    BrokerRegistrationRequest
    | BrokerHeartbeatRequest
    | ControllerHeartbeatRequest
    | AlterPartitionRequest
    | CreateTopicsRequest
    | DeleteTopicsRequest
    | IncrementalAlterConfigsRequest
    | ElectLeadersRequest
)
ControllerResponse = (
    BrokerRegistrationResponse
    | BrokerHeartbeatResponse
    | ControllerHeartbeatResponse
    | AlterPartitionResponse
    | CreateTopicsResponse
    | DeleteTopicsResponse
    | IncrementalAlterConfigsResponse
    | ElectLeadersResponse
)
