"""Reads below the local log start: a consumer's fetch, and ListOffsets by timestamp (``RemoteLogReader`` in Kafka)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from uuid import UUID

from ..log.batch import Batch
from ..replica.fetch import latest_of, offset_of
from ..wire.errors import ErrorCode
from ..wire.messages import (
    MAX_TIMESTAMP,
    NO_OFFSET,
    Envelope,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    Response,
)
from .errors import RemoteStorageError
from .parts import read_part, read_records
from .segments import INDEX, RemoteSegment
from .steps import Call, Pause, Steps

if TYPE_CHECKING:
    from .remote import RemotePartition

INDEXES = 64
"""Offset indexes that are kept (``remote.log.index.file.cache.total.size.bytes`` is Kafka's bound)."""
_READ_BYTES = 1 << 20


class Reader:
    """What one broker reads of one partition's remote segments."""

    def __init__(self, remote: RemotePartition) -> None:
        self._remote = remote
        self._partition = remote.partition
        self._indexes: OrderedDict[UUID, bytes] = OrderedDict()

    # -- records ----------------------------------------------------------------------------------------------------

    def _index(self, segment: RemoteSegment) -> Steps:
        known = self._indexes.get(segment.id)
        if known is None:
            known = yield Call(lambda: read_part(self._remote.store, segment, INDEX))
            self._indexes[segment.id] = known
            while len(self._indexes) > INDEXES:
                self._indexes.popitem(last=False)
        return known

    def _end_in_lineage(self, segment: RemoteSegment, offset: int) -> int:
        """Up to where a segment that has ``offset`` in this lineage may be read: to where its epoch ends in either."""
        log = self._partition.log
        epoch = log.epoch_for(offset)
        held = segment.range_of(epoch)
        assert held is not None
        return min(log.end_offset_for(epoch)[1], held[1] + 1)

    def _find(self, offset: int) -> RemoteSegment:
        """The segment to read. Raises ``RemoteStorageError`` where the metadata log knows of none (yet)."""
        log = self._partition.log
        found = self._remote.segments().find(log.epoch_for(offset), offset)
        if found is None:
            what = f"no remote segment has offset {offset} of leader epoch {log.epoch_for(offset)}"
            raise RemoteStorageError(what, log.folder, "wait for the metadata log")
        return found

    def read(self, offset: int, max_bytes: int) -> Steps:
        """Whole batches from the one that holds ``offset`` on, of one epoch, below the high watermark.

        Raises ``RemoteStorageError``.
        """
        segment = self._find(offset)
        up_to = min(self._end_in_lineage(segment, offset), self._partition.high_watermark)
        index = yield from self._index(segment)
        store = self._remote.store
        batches: list[Batch] = yield Call(lambda: read_records(store, segment, index, offset, max_bytes, up_to))
        return batches

    # -- requests ---------------------------------------------------------------------------------------------------

    def fetch(self, envelope: Envelope, request: FetchRequest) -> Steps:
        """Answer a consumer. An offset whose records are gone meanwhile is out of range."""
        metrics = self._remote.metrics
        metrics.fetch_requests.mark()
        offset = request.fetch_offset
        until = self._deadline()
        while True:
            log, leader = self._partition.log, self._partition.leader
            if leader is None:
                return self._respond(envelope, FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            if offset < log.log_start:
                error = ErrorCode.OFFSET_OUT_OF_RANGE
                return self._respond(
                    envelope, FetchResponse(error, log_start_offset=log.log_start, leader_epoch=leader.epoch)
                )
            try:
                batches = yield from self.read(offset, request.max_bytes)
            except RemoteStorageError:
                metrics.fetch_errors.mark()
                if self._remote.now() >= until:
                    # Kafka answers so, too: the consumer asks again.
                    return self._respond(
                        envelope, FetchResponse(ErrorCode.REQUEST_TIMED_OUT, leader_epoch=leader.epoch)
                    )
                yield Pause(self._remote.config.read_retry_ms)
                continue
            if self._partition.leader is not leader:
                continue  # what it was has been decided anew
            records = b"".join(batch.data for batch in batches)
            metrics.fetched.mark(len(records))
            high_watermark, start = self._partition.high_watermark, log.log_start
            answer = FetchResponse(ErrorCode.NONE, high_watermark, start, leader.epoch, records)
            return self._respond(envelope, answer)

    def list_offsets(self, envelope: Envelope, request: ListOffsetsRequest) -> Steps:
        """Answer for a timestamp, or for the largest one, by remote segments first and then by the local log."""
        until = self._deadline()
        while True:
            leader = self._partition.leader
            if leader is None:
                return self._respond(envelope, ListOffsetsResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            try:
                offset, timestamp = yield from (
                    self._latest() if request.timestamp == MAX_TIMESTAMP else self._first(request.timestamp)
                )
            except RemoteStorageError:
                self._remote.metrics.fetch_errors.mark()
                if self._remote.now() >= until:
                    answer = ListOffsetsResponse(ErrorCode.REQUEST_TIMED_OUT, answering_epoch=leader.epoch)
                    return self._respond(envelope, answer)
                yield Pause(self._remote.config.read_retry_ms)
                continue
            if self._partition.leader is leader:
                break
        log = self._partition.log
        at = offset if request.timestamp == MAX_TIMESTAMP else offset - 1
        epoch = log.epoch_for(at) if at >= log.log_start and offset != NO_OFFSET else -1
        return self._respond(envelope, ListOffsetsResponse(ErrorCode.NONE, offset, epoch, timestamp, leader.epoch))

    def _first(self, timestamp: int) -> Steps:
        """Offset and timestamp of the first record that is as late; segments of earlier records are not read."""
        log = self._partition.log
        offset = log.log_start
        while offset < log.local_start:
            segment = self._find(offset)
            if segment.max_timestamp < timestamp:
                offset = self._end_in_lineage(segment, offset)
                continue
            batches = yield from self.read(offset, _READ_BYTES)
            for batch in batches:
                for record in batch.records() if batch.max_timestamp >= timestamp and not batch.is_control else ():
                    if record.timestamp >= timestamp and record.offset >= log.log_start:
                        return record.offset, record.timestamp
            offset = batches[-1].next_offset if batches else self._end_in_lineage(segment, offset)
        return offset_of(log, timestamp, self._partition.high_watermark)

    def _latest(self) -> Steps:
        """Offset and timestamp of the first record with the largest timestamp."""
        log = self._partition.log
        while True:
            local_start = log.local_start
            found = yield from self._latest_remote()
            expired = NO_OFFSET < found[0] < log.log_start
            if not expired and log.local_start == local_start:
                break
        latest = latest_of(log, self._partition.high_watermark)
        return latest if latest[1] > found[1] else found

    def _latest_remote(self) -> Steps:
        """The same of what is in remote storage; -1 and -1 where nothing is.

        What is known of a segment bounds its records' timestamps: the largest may be of another lineage, or be deleted.
        """
        log = self._partition.log
        parts: list[tuple[int, int, int]] = []
        offset = log.log_start
        while offset < log.local_start:
            segment = self._find(offset)
            end = min(self._end_in_lineage(segment, offset), log.local_start)
            parts.append((-segment.max_timestamp, offset, end))
            offset = end
        best = NO_OFFSET, -1
        for bound, offset, end in sorted(parts):
            if (bound, offset) > (-best[1], best[0]):
                break
            found = yield from self._latest_in(offset, end)
            best = min(best, found, key=lambda each: (-each[1], each[0]))
        return best

    def _latest_in(self, offset: int, end: int) -> Steps:
        """The same of the records from an offset to an end."""
        best = NO_OFFSET, -1
        while offset < end:
            batches = yield from self.read(offset, _READ_BYTES)
            for batch in batches:
                for record in batch.records() if batch.max_timestamp > best[1] and not batch.is_control else ():
                    if record.timestamp > best[1] and offset <= record.offset < end:
                        best = record.offset, record.timestamp
            if not batches:
                break
            offset = batches[-1].next_offset
        return best

    def _deadline(self) -> int:
        return self._remote.now() + self._partition.runtime.config.request_timeout_ms

    def _respond(self, envelope: Envelope, answer: Response) -> None:
        self._partition.runtime.respond(envelope, answer)
