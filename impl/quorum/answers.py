"""What a quorum node answers to Vote, Begin- and EndQuorumEpoch, Fetch, FetchSnapshot and DeleteRecords.

Epochs are looked at first: an older one is refused with FENCED_REPLICA (FENCED_LEADER_EPOCH in Kafka), a newer one is
taken up where the request is an election's. An error changes nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wire.errors import ErrorCode
from ..wire.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    OffsetAndEpoch,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
    VoteResponse,
)
from .candidate import Unattached
from .leader import Leader
from .snapshots import SnapshotId
from .state_file import NO_VOTE

if TYPE_CHECKING:
    from .node import QuorumNode


def answer_vote(node: QuorumNode, body: VoteRequest) -> VoteResponse:
    """Grant the vote if it is free in that epoch and the candidate's log is as far as this replica's.

    INVALID_REQUEST, whatever epoch this replica is in, for a position that no candidate of that epoch can have: a last
    record of that epoch or a later one, and an epoch without an offset or the reverse.
    """
    error = _election_error(node, body.candidate, body.epoch)
    if body.last_epoch >= body.epoch or (body.last_epoch < 0) != (body.last_offset < 0):
        error = ErrorCode.INVALID_REQUEST
    granted = False
    if error is ErrorCode.NONE:
        node.learn(body.epoch, -1)
        granted = node.grant(body.candidate, (body.last_epoch, body.last_offset))
    return VoteResponse(error, node.epoch, node.leader_id, granted)


def answer_begin(node: QuorumNode, body: BeginQuorumEpochRequest) -> BeginQuorumEpochResponse:
    """Follow the leader; INVALID_REQUEST where the epoch has another one."""
    error = _election_error(node, body.leader, body.epoch)
    if error is ErrorCode.NONE:
        node.learn(body.epoch, body.leader)
        if node.leader_id != body.leader:
            error = ErrorCode.INVALID_REQUEST
    return BeginQuorumEpochResponse(error, node.epoch, node.leader_id)


def answer_end(node: QuorumNode, body: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
    """Stand for the next epoch: at once as the first of the successors, else after giving those before their time."""
    error = _election_error(node, body.leader, body.epoch)
    if error is ErrorCode.NONE:
        node.learn(body.epoch, -1)
        if node.leader_id in (-1, body.leader):
            node.succeed(body.preferred_successors)
        else:
            error = ErrorCode.INVALID_REQUEST
    return EndQuorumEpochResponse(error, node.epoch, node.leader_id)


def _election_error(node: QuorumNode, other: int, epoch: int) -> ErrorCode:
    if not node.is_voter or other not in node.config.voters or other == node.address:
        return ErrorCode.INCONSISTENT_VOTER_SET
    if epoch < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.FENCED_REPLICA if epoch < node.epoch else ErrorCode.NONE


def _leader(node: QuorumNode, replica: int, epoch: int) -> Leader | ErrorCode:
    """The leader that may serve this replica, or why there is none."""
    if replica < 0 or replica == node.address:
        return ErrorCode.INVALID_REQUEST
    if epoch != node.epoch:
        return ErrorCode.FENCED_REPLICA if epoch < node.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
    return node.role if isinstance(node.role, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def answer_fetch(node: QuorumNode, body: QuorumFetchRequest) -> QuorumFetchResponse:
    """Records, the end of the epoch at which the logs part, or the latest snapshot's id ("Handling Fetch Request")."""
    leader = _leader(node, body.replica_id, body.current_leader_epoch)
    replica, offset, last = node.replica, body.fetch_offset, body.last_fetched_epoch
    asked = node.epoch, node.leader_id, offset, last
    if isinstance(leader, ErrorCode):
        return QuorumFetchResponse(leader, *asked)
    if offset < 0:
        return QuorumFetchResponse(ErrorCode.INVALID_REQUEST, *asked)
    if replica.is_below(offset, last):
        latest = replica.snapshots.latest
        if latest is None:
            return QuorumFetchResponse(ErrorCode.SNAPSHOT_NOT_FOUND, *asked)
        following = OffsetAndEpoch(latest.end_offset, latest.epoch)
        return QuorumFetchResponse(ErrorCode.NONE, *asked, snapshot=latest.in_messages, next_fetch=following)
    if not replica.matches(offset, last):
        known, end = replica.known_epoch(last)
        return QuorumFetchResponse(ErrorCode.NONE, *asked, diverging=OffsetAndEpoch(end, known))
    leader.fetched(body.replica_id, offset, incomplete=body.snapshot_incomplete)
    records = b""
    if offset < replica.end:
        max_bytes = min(body.max_bytes, node.config.fetch_max_bytes)
        records = b"".join(batch.data for batch in replica.log.read(offset, max_bytes))
    return QuorumFetchResponse(ErrorCode.NONE, *asked, replica.high_watermark, replica.begin, records)


def answer_fetch_snapshot(node: QuorumNode, body: FetchSnapshotRequest) -> FetchSnapshotResponse:
    """Bytes of a snapshot ("Request Handling"): SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE, or a fencing error."""
    leader = _leader(node, body.replica_id, body.current_leader_epoch)
    snapshots, wanted = node.replica.snapshots, SnapshotId.from_message(body.snapshot)
    asked = node.epoch, node.leader_id, body.snapshot
    if isinstance(leader, ErrorCode):
        return FetchSnapshotResponse(leader, *asked, position=body.position)
    if wanted not in snapshots.ids:
        return FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, *asked, position=body.position)
    size = snapshots.size(wanted)
    if not 0 <= body.position <= size:
        return FetchSnapshotResponse(ErrorCode.POSITION_OUT_OF_RANGE, *asked, size, body.position)
    data = snapshots.read_at(wanted, body.position, min(body.max_bytes, node.config.snapshot_max_bytes))
    more = body.position + len(data) < size
    return FetchSnapshotResponse(ErrorCode.NONE, *asked, size, body.position, more, data)


def answer_delete_records(node: QuorumNode, body: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Advance the LBO for a client, under the leader's own rules."""
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if isinstance(node.role, Leader):
        error = node.role.delete_records(body.offset)
    return DeleteRecordsResponse(error, node.epoch, node.leader_id, node.replica.begin)


def is_free_to_vote(node: QuorumNode) -> bool:
    """Whether no vote was given in this epoch, and no leader is known."""
    return node.ballot.voted == NO_VOTE and isinstance(node.role, Unattached)
