"""The leader's upload task (``RLMCopyTask`` in Kafka): sealed segments below the last stable offset, one after another.

Each of its three steps may be the last before a crash: the metadata log says that the copy has started; its objects
are in the store; the metadata log says that it is finished. Only what is finished is there for anybody. What was
started and comes to no end is deleted by whoever leads then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..log.batch import read_batch
from ..log.epochs import EpochEntry
from ..log.errors import CorruptBatch
from ..log.log import Log
from ..log.remote_part import SealedSegment
from ..log.segment import INDEX_SUFFIX, LOG_SUFFIX, Window, segment_name
from ..replica.producers import Producers
from . import parts
from .errors import RemoteStorageError
from .parts import SegmentFiles
from .records import encode_started, encode_update
from .segments import RemoteSegment, SegmentState
from .steps import Call, Steps

if TYPE_CHECKING:
    from .remote import RemotePartition


class Copier:
    """What one leader epoch has copied."""

    def __init__(self, remote: RemotePartition) -> None:
        self._remote = remote
        self._partition = remote.partition
        self._producers = Producers()
        self.highest: int | None = None
        """The last offset of this lineage that is in remote storage, -1 for none; ``None`` before the first look."""

    def look(self) -> int:
        """Find ``highest`` by the metadata log, as far as this broker has read it (``findHighestRemoteOffset``)."""
        log = self._partition.log
        found = self._remote.segments().highest_offset(log.epochs, log.end)
        self.highest = found if self.highest is None else max(self.highest, found)
        return self.highest

    def candidates(self) -> list[SealedSegment]:
        """What is to be copied: never the active segment, and nothing at or above the last stable offset.

        There are no transactions here, so that is the high watermark.
        """
        highest = self.look()
        stable = self._partition.high_watermark
        return [each for each in self._partition.log.sealed if highest + 1 < each.end <= stable]

    def run(self) -> Steps:
        """Copy all that is to be copied now. Raises ``RemoteStorageError``."""
        while waiting := self.candidates():
            size = sum(each.size for each in waiting)
            self._remote.metrics.copy_lag_bytes, self._remote.metrics.copy_lag_segments = size, len(waiting)
            yield from self.copy(waiting[0])
        self._remote.metrics.copy_lag_bytes = self._remote.metrics.copy_lag_segments = 0

    def copy(self, sealed: SealedSegment) -> Steps:
        """Copy one segment. Raises ``RemoteStorageError``; it is copied anew then, under another id."""
        remote, log = self._remote, self._partition.log
        self._producers.catch_up(log, sealed.end)
        stem = f"{log.folder}/{segment_name(sealed.base_offset)}"
        files = self._partition.runtime.directory.files
        every = _until(log, sealed.end)
        source = SegmentFiles(files, stem + LOG_SUFFIX, stem + INDEX_SUFFIX, every, self._producers.snapshot())
        latest, epochs = yield Call(lambda: examine(source, sealed))
        segment = RemoteSegment(
            *remote.topic,
            remote.new_id(),
            sealed.base_offset,
            sealed.end - 1,
            remote.node_id,
            latest,
            remote.wall(),
            epochs,
            sealed.size,
        )
        metrics = remote.metrics
        try:
            metrics.copy_requests.mark()
            yield from self._start(segment)
            objects = yield Call(lambda: parts.copy(remote.store, segment, source))
            yield Call(lambda: parts.verify(remote.store, segment, objects))
        except RemoteStorageError:
            metrics.copy_errors.mark()
            raise
        update = encode_update(segment, SegmentState.COPY_SEGMENT_FINISHED, remote.node_id, remote.wall(), objects)
        finished = yield from remote.commit(update, lambda: remote.is_finished(segment.id))
        if finished:
            metrics.copied.mark(sum(each.size for each in objects))
            self.highest = max(-1 if self.highest is None else self.highest, segment.end_offset)

    def _start(self, segment: RemoteSegment) -> Steps:
        remote = self._remote
        remote.copying.add(segment.id)
        yield from remote.commit(encode_started(segment), lambda: remote.is_known(segment.id))


def _until(log: Log, end: int) -> tuple[EpochEntry, ...]:
    return tuple(entry for entry in log.epochs.entries if entry.start_offset < end)


def examine(source: SegmentFiles, sealed: SealedSegment) -> tuple[int, tuple[EpochEntry, ...]]:
    """The largest timestamp of a segment's records, and their epochs. Raises ``RemoteStorageError`` for damage.

    The epochs are those of the batches: the log's own begin with its log start, which may lie inside of the segment.
    What nobody could read here any more must not go where it will be all that there is.
    """
    latest, position, following = -1, 0, sealed.base_offset
    epochs: list[EpochEntry] = []
    try:
        file = source.files.open(source.log_path)
        try:
            window = Window(file)
            while position < sealed.size:
                length = int.from_bytes(window.get(position, 12)[8:12], "big", signed=True)
                batch = read_batch(window.get(position, max(12 + length, 17)), 0, source.log_path, position)
                if batch.base_offset != following:
                    raise CorruptBatch(f"base offset {batch.base_offset} where {following} follows", position)
                if not epochs or epochs[-1].epoch != batch.leader_epoch:
                    epochs.append(EpochEntry(batch.leader_epoch, batch.base_offset))
                latest, position, following = max(latest, batch.max_timestamp), position + batch.size, batch.next_offset
        finally:
            file.close()
    except (OSError, CorruptBatch) as error:
        raise RemoteStorageError(f"the segment is not copied: {error}", source.log_path) from error
    if following != sealed.end or position != sealed.size:
        raise RemoteStorageError(f"the segment ends at offset {following}, not {sealed.end}", source.log_path)
    return latest, tuple(epochs)
