"""The leader's deletions: of local segments that are in remote storage, and of remote ones, too old or too many.

(``UnifiedLog.deleteOldSegments`` and ``RLMExpirationTask`` in Kafka.) The log start offset is raised, on the disk,
before anything is deleted that was above it: a new leader that has not heard of it does the same by its own count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..replica.producers import Producers
from . import parts
from .config import UNLIMITED
from .records import encode_update
from .segments import RemoteSegment, SegmentState
from .steps import Call, Steps

if TYPE_CHECKING:
    from .remote import RemotePartition


class Expiry:
    """What one leader epoch deletes."""

    def __init__(self, remote: RemotePartition) -> None:
        self._remote = remote
        self._partition = remote.partition

    # -- the local log ----------------------------------------------------------------------------------------------

    def local_limit(self) -> int:
        """Up to where local segments may go: what the metadata log says is finished, without a hole, in this lineage.

        Nothing at or above it is removed, whatever the local retention says.
        """
        log = self._partition.log
        return self._followed(log.local_start, log.end)[1]

    def _followed(self, offset: int, end: int) -> tuple[list[tuple[RemoteSegment, int]], int]:
        """From an offset on what is in remote storage of this lineage without a hole, and up to where that goes.

        Each segment with the offset behind what it has of the lineage; the last may go on past ``end``.
        """
        log, segments = self._partition.log, self._remote.segments()
        found: list[tuple[RemoteSegment, int]] = []
        while offset < end:
            each = segments.find(log.epoch_for(offset), offset)
            if each is None:
                break
            # Of an epoch that this lineage left earlier, what comes after that is another's.
            offset = min([each.end_offset + 1, *self._left(each, offset)])
            found.append((each, offset))
        return found, offset

    def _left(self, segment: RemoteSegment, offset: int) -> list[int]:
        """Where this lineage and a segment part, from ``offset`` on, at which they agree."""
        log = self._partition.log
        bounds = sorted({each.start_offset for each in (*log.epochs.entries, *segment.epochs)})
        for bound in bounds:
            if offset < bound <= segment.end_offset:
                held = segment.range_of(log.epoch_for(bound))
                if held is None or not held[0] <= bound <= held[1]:
                    return [bound]
        return []

    def delete_local(self) -> None:
        """Remove the local segments that the local retention lets go. Raises like ``Log.delete_local_before``."""
        log, topic = self._partition.log, self._remote.config_of_topic
        limit = min(self.local_limit(), self._partition.high_watermark)
        now, size = self._remote.wall(), log.size
        to = log.local_start
        segments = self._remote.segments()
        for each in log.sealed:
            if each.end > limit:
                break
            copy = segments.find(log.epoch_for(each.end - 1), each.end - 1)
            old = topic.local_ms != UNLIMITED and copy is not None and now - copy.max_timestamp > topic.local_ms
            many = topic.local_bytes != UNLIMITED and size - each.size >= topic.local_bytes
            if not (old or many):
                break
            size -= each.size
            to = each.end
        if to > log.local_start:
            producers = Producers()
            producers.catch_up(log, to)
            log.delete_local_before(to, producers.snapshot())

    # -- the remote log ---------------------------------------------------------------------------------------------

    def run(self) -> Steps:
        """Delete what is to be deleted now. Raises ``RemoteStorageError``."""
        self._raise_log_start()
        for segment in self._remote.segments():
            if self._is_left_over(segment):
                yield from self.delete(segment)

    def _raise_log_start(self) -> None:
        """By the retention, and past what another leader has deleted, or begun to: none of it can be read any more."""
        log, topic = self._partition.log, self._remote.config_of_topic
        now, start = self._remote.wall(), log.log_start
        remote, end = self._followed(start, log.end)
        # What is in remote storage counts there alone.
        size = sum(each.size for each, _ in remote) + self._size_from(end)
        for each, behind in remote:
            old = topic.retention_ms != UNLIMITED and now - each.max_timestamp > topic.retention_ms
            many = topic.retention_bytes != UNLIMITED and size - each.size >= topic.retention_bytes
            if not (old or many):
                break
            size -= each.size
            start = behind
        while (last := self._gone_at(start)) is not None:
            start = last + 1
        start = min(start, self._partition.high_watermark)
        if start > log.log_start:
            log.delete_before(start)

    def _size_from(self, offset: int) -> int:
        """Bytes of the local segments that begin there or later."""
        log = self._partition.log
        sealed = log.sealed
        active = log.size - sum(each.size for each in sealed) if log.segment_bases[-1] >= offset else 0
        return active + sum(each.size for each in sealed if each.base_offset >= offset)

    def _gone_at(self, offset: int) -> int | None:
        """The last offset that went with an offset of the log's remote part, where no other copy has its record.

        Whoever has deleted it, or is about to, had raised its log start before; this log's may not have heard of that.
        """
        log = self._partition.log
        segments = self._remote.segments()
        epoch = log.epoch_for(offset)
        if offset >= log.local_start or segments.find(epoch, offset) is not None:
            return None
        last = segments.gone_at(epoch, offset)
        # Another lineage may go on in that epoch where this one has left it.
        return None if last is None else min(last, log.end_offset_for(epoch)[1] - 1)

    def _is_left_over(self, segment: RemoteSegment) -> bool:
        """Whether it is below the log start, or of no use to anybody: a copy or a deletion that came to no end.

        A copy of an epoch before all of this lineage is an older leader's that nobody can ask for.
        """
        log = self._partition.log
        if segment.state is SegmentState.DELETE_SEGMENT_STARTED:
            return True
        if segment.state is SegmentState.COPY_SEGMENT_STARTED:
            return segment.id not in self._remote.copying
        first = log.epochs.entries[0].epoch if log.epochs.entries else -1
        return segment.end_offset < log.log_start or segment.epochs[-1].epoch < first

    def delete(self, segment: RemoteSegment) -> Steps:
        """Delete a segment: the metadata log says so, its objects go, the metadata log says that they are gone."""
        remote = self._remote
        metrics = remote.metrics
        metrics.delete_requests.mark()
        if segment.state is not SegmentState.DELETE_SEGMENT_STARTED:
            # Whoever copies it may not have heard that it is deposed, and finish it before this is decided. Others go
            # by that then, and may have deleted their records.
            unfinished = segment.state is SegmentState.COPY_SEGMENT_STARTED
            state = SegmentState.DELETE_SEGMENT_STARTED
            started = encode_update(segment, state, remote.node_id, remote.wall(), unfinished=unfinished)
            deleting = yield from remote.commit(started, lambda: remote.is_deleting(segment.id, unfinished))
            if not deleting:
                return
        try:
            yield Call(lambda: parts.delete(remote.store, segment))
        except BaseException:
            metrics.delete_errors.mark()
            raise
        gone = encode_update(segment, SegmentState.DELETE_SEGMENT_FINISHED, remote.node_id, remote.wall())
        yield from remote.commit(gone, lambda: remote.is_deleted(segment.id))
