"""The requests and responses that nodes and clients exchange, each for one partition.

Fields are those of Kafka's message definitions, under their names; a topic and partition is a ``TopicPartition``.
Kafka's wire encoding is no concern of the nodes: a transport that speaks it maps these to and from bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from .errors import ErrorCode

if TYPE_CHECKING:
    from .controller import ControllerRequest, ControllerResponse, ReplicaRequest
    from .quorum import QuorumRequest, QuorumResponse

CONTROLLER = -10
"""The controller's address. Brokers have their node ids, from 0 on."""
FIRST_CLIENT = -100
"""The address of the first client; further ones go downwards."""
NO_EPOCH = -1
"""No leader epoch: in a request, the check is skipped."""
NO_OFFSET = -1
NO_LEADER = -1
LEADER_DURING_DELETE = -2
"""The leader that UpdateMetadata names where the topic is deleted (``LeaderAndIsr.LEADER_DURING_DELETE``)."""
NO_TOPIC_ID = UUID(int=0)
"""No topic id: in a request, the check is skipped (``Uuid.ZERO_UUID``, KIP-516)."""
CONSUMER = -1
"""The ``replica_id`` of a client that is no replica."""
EARLIEST = -2
"""The timestamp that asks ListOffsets for the log start offset."""
LATEST = -1
"""The timestamp that asks ListOffsets for the high watermark."""
MAX_TIMESTAMP = -3
"""For the offset of the record with the largest timestamp (KIP-734)."""
EARLIEST_LOCAL = -4
"""For the local log start offset (KIP-405)."""
LAST_TIERED = -5
"""For the last offset in remote storage, as far as the leader knows (KIP-1005)."""
EARLIEST_PENDING_UPLOAD = -6
"""For the offset after that: the first that is to be uploaded (KIP-1023)."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class LeaderAndIsrRequest:
    """The controller tells a replica who leads a partition, in which epoch, with which ISR."""

    controller_epoch: int
    partition: TopicPartition
    leader: int
    leader_epoch: int
    isr: frozenset[int]
    replicas: tuple[int, ...]
    offline: frozenset[int]
    partition_epoch: int
    """The version of leader and ISR in the controller; an AlterIsr names it (Kafka's ``zkVersion``)."""
    topic_id: UUID = NO_TOPIC_ID
    """From version 5 on (KIP-516): a topic that is made anew under its name is another one."""


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponse:
    """Whether the replica took the request up."""

    error: ErrorCode
    topic_id: UUID = NO_TOPIC_ID
    """With INCONSISTENT_TOPIC_ID that of the topic of which the broker has a replica. (Kafka repeats the request's.)"""


@dataclass(frozen=True, slots=True)
class StopReplicaRequest:
    """The controller tells a broker to give up its replica of a topic that is deleted, and to remove the log.

    Kafka's, with ``DeletePartition`` set, names no topic id: it comes before all that is said of the next topic of that
    name.
    """

    controller_epoch: int
    partition: TopicPartition
    topic_id: UUID


@dataclass(frozen=True, slots=True)
class StopReplicaResponse:
    """Whether the replica is gone; INCONSISTENT_TOPIC_ID where that which is there is another topic's."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class OfflineReplicasRequest:
    """The controller tells a leader which replicas of a partition it has marked offline (KIP-320, KIP-112)."""

    controller_epoch: int
    partition: TopicPartition
    offline: frozenset[int]
    leader_epoch: int
    """Only the leader of this epoch has use for it."""
    partition_epoch: int
    """The version of the marks: one that was overtaken on its way must not undo a later one."""
    topic_id: UUID = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class OfflineReplicasResponse:
    """Whether the broker knows of it; UNKNOWN_LEADER_EPOCH where it is not in the leader epoch yet."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Records from ``fetch_offset`` on: whole batches, ``max_bytes`` at most but always one.

    ``current_leader_epoch`` is a replica's current epoch, compared for equality; a consumer's is the epoch of the
    leader that served its position, of which the leader must be no older. ``last_fetched_epoch`` is a consumer's: that
    of the record before ``fetch_offset``. ``NO_EPOCH`` skips either check.
    """

    replica_id: int
    partition: TopicPartition
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = NO_EPOCH
    last_fetched_epoch: int = NO_EPOCH
    log_start_offset: int = NO_OFFSET
    topic_id: UUID = NO_TOPIC_ID
    """From version 13 on (KIP-516)."""


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """``records`` are encoded batches; the first may begin below the fetch offset."""

    error: ErrorCode
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH
    """The epoch that the answering leader is in."""
    records: bytes = b""


@dataclass(frozen=True, slots=True)
class OffsetsForLeaderEpochRequest:
    """Where does ``leader_epoch`` end in the leader's log? ``current_leader_epoch`` fences as in a fetch.

    ``topic_id``: Kafka's names none.
    """

    replica_id: int
    partition: TopicPartition
    current_leader_epoch: int
    leader_epoch: int
    topic_id: UUID = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class OffsetsForLeaderEpochResponse:
    """The largest epoch of the leader's log that is at most the one asked for, and where it ends (KIP-279)."""

    error: ErrorCode
    leader_epoch: int = NO_EPOCH
    end_offset: int = NO_OFFSET
    answering_epoch: int = NO_EPOCH
    """The epoch that the answering leader is in."""


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest:
    """The offset for ``timestamp``: of the first record that is as late (milliseconds), or what a sentinel asks for.

    The sentinels are ``LATEST``, ``EARLIEST``, ``MAX_TIMESTAMP``, ``EARLIEST_LOCAL``, ``LAST_TIERED`` and
    ``EARLIEST_PENDING_UPLOAD``.
    """

    partition: TopicPartition
    timestamp: int
    current_leader_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    """``leader_epoch`` is that of the record before ``offset``, -1 if there is none (KIP-320).

    For sentinels from ``MAX_TIMESTAMP`` down it is that of ``offset`` itself, as in shipped Kafka.
    """

    error: ErrorCode
    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH
    timestamp: int = -1
    answering_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """Append encoded batches. ``acks``: 0 and 1 when the leader has them, -1 when the whole ISR has."""

    partition: TopicPartition
    acks: int
    records: bytes
    topic_id: UUID = NO_TOPIC_ID
    """From version 13 on (KIP-516)."""


@dataclass(frozen=True, slots=True)
class ProduceResponse:
    """``base_offset`` is that of the first record."""

    error: ErrorCode
    base_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET


@dataclass(frozen=True, slots=True)
class DeleteRecordsRequest:
    """Delete what lies below ``offset``, ``NO_OFFSET`` for the high watermark (KIP-107)."""

    partition: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True)
class DeleteRecordsResponse:
    """``low_watermark``: the smallest offset at which a live replica's log begins by now."""

    error: ErrorCode
    low_watermark: int = NO_OFFSET


@dataclass(frozen=True, slots=True)
class AlterIsrRequest:
    """A leader asks the controller for another ISR (``AlterPartition``)."""

    broker: int
    partition: TopicPartition
    leader_epoch: int
    new_isr: frozenset[int]
    partition_epoch: int
    topic_id: UUID = NO_TOPIC_ID
    """From version 2 on (KIP-841)."""


@dataclass(frozen=True, slots=True)
class AlterIsrResponse:
    """What the controller has now; with an error nothing was changed."""

    error: ErrorCode
    partition: TopicPartition
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    isr: frozenset[int] = frozenset()
    partition_epoch: int = -1


@dataclass(frozen=True, slots=True)
class OffsetCommitRequest:
    """A group's position, with the epoch of the record before it and that of the leader which served it."""

    group: str
    partition: TopicPartition
    offset: int
    leader_epoch: int = NO_EPOCH
    serving_epoch: int = NO_EPOCH
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class OffsetCommitResponse:
    """Whether the commit is in the offsets log."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class OffsetFetchRequest:
    """The group's committed position."""

    group: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetFetchResponse:
    """``offset`` is ``NO_OFFSET`` where nothing was committed."""

    error: ErrorCode
    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH
    serving_epoch: int = NO_EPOCH
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """Who leads a partition, as far as the broker that is asked knows."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class MetadataResponse:
    """Leader and epoch may be old: metadata travels by itself (KIP-232)."""

    error: ErrorCode
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    isr: frozenset[int] = frozenset()
    replicas: tuple[int, ...] = ()
    offline: frozenset[int] = frozenset()
    topic_id: UUID = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class UpdateMetadataRequest:
    """The controller tells every broker what to answer to MetadataRequest.

    Of a partition whose topic is deleted the leader is ``LEADER_DURING_DELETE``: it is to be forgotten.
    """

    controller_epoch: int
    partition: TopicPartition
    leader: int
    leader_epoch: int
    isr: frozenset[int]
    replicas: tuple[int, ...]
    offline: frozenset[int]
    topic_id: UUID = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class UpdateMetadataResponse:
    """Whether the broker took it."""

    error: ErrorCode


Request = (
    LeaderAndIsrRequest
    | StopReplicaRequest
    | OfflineReplicasRequest
    | FetchRequest
    | OffsetsForLeaderEpochRequest
    | ListOffsetsRequest
    | ProduceRequest
    | DeleteRecordsRequest
    | AlterIsrRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | MetadataRequest
    | UpdateMetadataRequest
)
Response = (
    LeaderAndIsrResponse
    | StopReplicaResponse
    | OfflineReplicasResponse
    | FetchResponse
    | OffsetsForLeaderEpochResponse
    | ListOffsetsResponse
    | ProduceResponse
    | DeleteRecordsResponse
    | AlterIsrResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | MetadataResponse
    | UpdateMetadataResponse
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message on its way. A response carries the correlation id of its request, and travels the other way."""

    source: int
    destination: int
    correlation: int
    body: Request | Response | QuorumRequest | QuorumResponse | ControllerRequest | ControllerResponse | ReplicaRequest
    principal: str = ""
    """Who asks: what the authorizer goes by. Brokers and the controller are ``BROKER_PRINCIPAL``."""


BROKER_PRINCIPAL = "User:broker"
