"""The requests and responses of a quorum's log: KIP-595's, with what KIP-630 adds to them.

Fields are those of Kafka's message definitions. Every response names the epoch and the leader that the answering
replica knows. One of Fetch repeats what was asked, and one of FetchSnapshot names the snapshot, which the text of
KIP-630 leaves out: without it a late response passes for the answer to another request. Offsets of a snapshot id are
inclusive, as in the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .errors import ErrorCode
from .messages import NO_EPOCH, NO_LEADER, NO_OFFSET, TopicPartition


class OffsetAndEpoch(NamedTuple):
    """An offset and the leader epoch that belongs to it."""

    offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """A candidate asks for a vote. ``last_offset`` is that of its last record, inclusive.

    Both are -1 for an empty log, and for a log whose snapshot is incomplete (KIP-630, "Changes to Leader Election").
    """

    partition: TopicPartition
    epoch: int
    candidate: int
    last_epoch: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class VoteResponse:
    """Whether the vote was granted."""

    error: ErrorCode
    epoch: int = NO_EPOCH
    leader: int = NO_LEADER
    granted: bool = False


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochRequest:
    """The leader of an epoch tells a voter that it is."""

    partition: TopicPartition
    epoch: int
    leader: int


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochResponse:
    """Whether the voter follows."""

    error: ErrorCode
    epoch: int = NO_EPOCH
    leader: int = NO_LEADER


@dataclass(frozen=True, slots=True)
class EndQuorumEpochRequest:
    """The leader of an epoch gives it up; the successor that it likes best comes first."""

    partition: TopicPartition
    epoch: int
    leader: int
    preferred_successors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EndQuorumEpochResponse:
    """Whether the voter took it."""

    error: ErrorCode
    epoch: int = NO_EPOCH
    leader: int = NO_LEADER


@dataclass(frozen=True, slots=True)
class QuorumFetchRequest:
    """Records from ``fetch_offset`` on; the record before is of ``last_fetched_epoch``, -1 where there is none.

    ``snapshot_incomplete``: the replica lacks (a part of) the snapshot before its log, so that the log must not count
    as replicated. The text lacks this field, and a leader elected meanwhile could not know.
    """

    partition: TopicPartition
    replica_id: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    max_bytes: int
    snapshot_incomplete: bool


@dataclass(frozen=True, slots=True)
class QuorumFetchResponse:
    """Records, or where the logs diverge, or the snapshot to start over from.

    ``diverging``: the largest epoch up to ``last_fetched_epoch`` that the leader knows, and its end, exclusive.
    ``snapshot`` with ``next_fetch``: SnapshotOffsetAndEpoch, and the offset after it with the snapshot's epoch.
    """

    error: ErrorCode
    epoch: int = NO_EPOCH
    leader: int = NO_LEADER
    fetch_offset: int = NO_OFFSET
    last_fetched_epoch: int = NO_EPOCH
    high_watermark: int = NO_OFFSET
    log_begin_offset: int = NO_OFFSET
    records: bytes = b""
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    next_fetch: OffsetAndEpoch | None = None


@dataclass(frozen=True, slots=True)
class FetchSnapshotRequest:
    """At most ``max_bytes`` of a snapshot, from byte ``position`` on."""

    partition: TopicPartition
    replica_id: int
    current_leader_epoch: int
    snapshot: OffsetAndEpoch
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FetchSnapshotResponse:
    """``unaligned_records``: bytes from ``position`` on, which need not end where a batch does.

    ``continues`` is the text's ``Continue``: there are more. ``size`` is that of the whole snapshot, as in Kafka.
    """

    error: ErrorCode
    epoch: int = NO_EPOCH
    leader: int = NO_LEADER
    snapshot: OffsetAndEpoch | None = None
    size: int = -1
    position: int = -1
    continues: bool = False
    unaligned_records: bytes = b""


@dataclass(frozen=True, slots=True)
class DeleteRecordsRequest:
    """A client wants the log to begin at ``offset``; -1 for the high watermark."""

    partition: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True)
class DeleteRecordsResponse:
    """``low_watermark`` is the log begin offset now."""

    error: ErrorCode
    epoch: int = NO_EPOCH
    leader: int = NO_LEADER
    low_watermark: int = NO_OFFSET


QuorumRequest = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | QuorumFetchRequest
    | FetchSnapshotRequest
    | DeleteRecordsRequest
)
QuorumResponse = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | QuorumFetchResponse
    | FetchSnapshotResponse
    | DeleteRecordsResponse
)
