"""What a replica answers to Fetch, OffsetsForLeaderEpoch and ListOffsets.

Only a leader answers, so the role is looked at before the epoch: "if the leader receives a fetch request from a replica
with a lower epoch, it will return a FENCED_REPLICA error" (KIP-320, "Proposed Changes"). An error changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from ..log.epochs import UNDEFINED_EPOCH
from ..log.errors import OffsetOutOfRange
from ..log.log import Log
from ..wire.errors import ErrorCode
from ..wire.messages import (
    CONSUMER,
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LAST_TIERED,
    LATEST,
    MAX_TIMESTAMP,
    NO_EPOCH,
    NO_OFFSET,
    Envelope,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from .leader import Leader
from .partition import Partition

_READ_BYTES = 1 << 20


def answer_fetch(partition: Partition, request: FetchRequest, envelope: Envelope | None = None) -> FetchResponse | None:
    """Whole batches from the fetch offset on, for a consumer below the high watermark. Raises like ``Log.read``.

    What is in remote storage is for a follower to build on (OFFSET_MOVED_TO_TIERED_STORAGE), and is fetched for a
    consumer: ``None``, as the ``envelope`` is answered later.
    """
    leader = partition.leader
    if leader is None:
        return FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    log = partition.log
    offset = request.fetch_offset
    replica = request.replica_id != CONSUMER
    if replica:
        error = _check_replica(leader, request.replica_id, request.current_leader_epoch)
        up_to = None
    else:
        error = _check_consumer(leader, max(request.current_leader_epoch, request.last_fetched_epoch))
        if error is ErrorCode.NONE and is_truncated(log, leader.epoch, offset, request.last_fetched_epoch):
            error = ErrorCode.LOG_TRUNCATION
        up_to = partition.high_watermark
    if error is ErrorCode.NONE and not log.log_start <= offset <= log.end:
        error = ErrorCode.OFFSET_OUT_OF_RANGE
    if error is ErrorCode.NONE and offset < log.local_start:
        if not replica and envelope is not None and partition.remote is not None:
            partition.remote.fetch(envelope, request)
            return None
        error = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
    if error is not ErrorCode.NONE:
        return FetchResponse(error, log_start_offset=log.log_start, leader_epoch=leader.epoch)
    if replica:
        leader.fetched(request.replica_id, offset, request.log_start_offset)
    records = b""
    if offset < (log.end if replica else partition.high_watermark):
        records = b"".join([batch.data for batch in log.read(offset, request.max_bytes, up_to)])
    return FetchResponse(ErrorCode.NONE, partition.high_watermark, log.log_start, leader.epoch, records)


def _check_replica(leader: Leader, replica: int, epoch: int) -> ErrorCode:
    """A replica follows in this very epoch, or it is refused (KIP-320, "Replica Handling")."""
    if epoch != leader.epoch:
        return ErrorCode.FENCED_REPLICA if epoch < leader.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if replica in leader.progress else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _check_consumer(leader: Leader, epoch: int) -> ErrorCode:
    """A leader must be no older than what the consumer has seen. An older consumer is not fenced."""
    return ErrorCode.NONE if epoch <= leader.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH


def is_truncated(log: Log, leader_epoch: int, offset: int, last_epoch: int) -> bool:
    """Whether the record before ``offset`` is not the one of ``last_epoch`` that a consumer has fetched.

    KIP-320, "Leader Fetch Handling": a larger epoch begins below the offset. That alone leaves a gap, so also: this
    log does not hold that epoch (``LastFetchedEpoch`` in Kafka's Fetch version 12). ``NO_EPOCH`` skips the check.
    """
    found, end = log.end_offset_for(last_epoch)
    if found == UNDEFINED_EPOCH:
        return False  # the consumer names no epoch, or the log has none: there is nothing to check by
    if last_epoch < leader_epoch and end < offset:
        return True
    if 0 < end <= log.log_start:
        return False  # what was before is deleted: it cannot be said
    if log.config.compacted and _in_hole(log, offset - 1):
        return False  # it may have been cleaned, and with it all that a later copy could know of its epoch
    return log.epoch_for(end - 1) != last_epoch


def _in_hole(log: Log, offset: int) -> bool:
    """Whether no batch of a compacted log holds the offset. Raises like ``Log.read``."""
    found = log.read(offset, 1) if log.log_start <= offset < log.end else []
    return not found or found[0].base_offset > offset


def answer_epoch_end(partition: Partition, request: OffsetsForLeaderEpochRequest) -> OffsetsForLeaderEpochResponse:
    """Where an epoch ends (KIP-101, KIP-279).

    A consumer gets the epoch of the record before that end, so that the two make a position to go on from; -1 where
    there is none. A replica that asks below this log's first epoch gets that epoch back, as in Kafka.
    """
    leader = partition.leader
    if leader is None:
        return OffsetsForLeaderEpochResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    consumer = request.replica_id == CONSUMER
    if consumer:
        error = _check_consumer(leader, request.current_leader_epoch)
    else:
        error = _check_replica(leader, request.replica_id, request.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return OffsetsForLeaderEpochResponse(error, answering_epoch=leader.epoch)
    epoch, end = partition.log.end_offset_for(request.leader_epoch)
    if consumer and end != NO_OFFSET:
        epoch = partition.log.epoch_for(end - 1)
    return OffsetsForLeaderEpochResponse(ErrorCode.NONE, epoch, end, leader.epoch)


def answer_list_offsets(
    partition: Partition, request: ListOffsetsRequest, envelope: Envelope | None = None
) -> ListOffsetsResponse | None:
    """The offset of a timestamp, with the epoch of the record before it (KIP-320, "ListOffsets").

    Raises like ``Log.read``. No offset, and no error, where no record below the high watermark is as late. ``None``
    where remote storage is to be asked: the ``envelope`` is answered later.
    """
    leader = partition.leader
    if leader is None:
        return ListOffsetsResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    error = _check_consumer(leader, request.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return ListOffsetsResponse(error, answering_epoch=leader.epoch)
    log = partition.log
    timestamp = -1
    if request.timestamp == EARLIEST:
        offset = log.log_start
    elif request.timestamp == LATEST:
        offset = partition.high_watermark
    elif request.timestamp in _AT_OFFSET:
        offset = _AT_OFFSET[request.timestamp](partition)
        return ListOffsetsResponse(ErrorCode.NONE, offset, _epoch_at(partition, offset), -1, leader.epoch)
    elif partition.remote is not None and envelope is not None and log.log_start < log.local_start:
        return partition.remote.list_offsets(envelope, request)
    elif request.timestamp == MAX_TIMESTAMP:
        offset, timestamp = latest_of(log, partition.high_watermark)
        return ListOffsetsResponse(ErrorCode.NONE, offset, _epoch_at(partition, offset), timestamp, leader.epoch)
    else:
        offset, timestamp = offset_of(log, request.timestamp, partition.high_watermark)
    epoch = log.epoch_for(offset - 1) if offset > log.log_start else NO_EPOCH
    return ListOffsetsResponse(ErrorCode.NONE, offset, epoch, timestamp, leader.epoch)


def _epoch_at(partition: Partition, offset: int) -> int:
    """The leader epoch of the record at ``offset``: at the log's end, of the one before."""
    return partition.log.epoch_for(offset) if offset >= 0 else NO_EPOCH


def _last_tiered(partition: Partition) -> int:
    return NO_OFFSET if partition.remote is None else partition.remote.last_tiered_offset()


def _pending_upload(partition: Partition) -> int:
    """The offset after the last one that was uploaded; -1 where that is not known (KIP-1023, "ReplicaFetcher")."""
    last = _last_tiered(partition)
    return NO_OFFSET if last == NO_OFFSET else last + 1


_AT_OFFSET: dict[int, Callable[[Partition], int]] = {
    EARLIEST_LOCAL: lambda partition: partition.log.local_start,
    LAST_TIERED: _last_tiered,
    EARLIEST_PENDING_UPLOAD: _pending_upload,
}


def latest_of(log: Log, up_to: int) -> tuple[int, int]:
    """Offset and timestamp of the first local record with the largest timestamp; -1 and -1 where there is none."""
    best, latest = NO_OFFSET, -1
    offset = log.local_start
    while batches := log.read(offset, _READ_BYTES, up_to):
        for batch in batches:
            if batch.max_timestamp > latest and not batch.is_control:
                for record in batch.records():
                    if record.timestamp > latest and record.offset >= log.local_start:
                        best, latest = record.offset, record.timestamp
        offset = batches[-1].next_offset
    return best, latest


def offset_of(log: Log, timestamp: int, up_to: int) -> tuple[int, int]:
    """Offset and timestamp of the first local record that is as late. There is no time index: all batches are read."""
    offset = log.local_start
    try:
        while batches := log.read(offset, _READ_BYTES, up_to):
            for batch in batches:
                if batch.max_timestamp >= timestamp and not batch.is_control:
                    for record in batch.records():
                        if record.timestamp >= timestamp and record.offset >= log.log_start:
                            return record.offset, record.timestamp
            offset = batches[-1].next_offset
    except OffsetOutOfRange:
        pass  # the log ends with a hole
    return NO_OFFSET, -1
