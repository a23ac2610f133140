"""The log of one replica of one partition (``UnifiedLog`` and ``LocalLog`` in Kafka).

What survives a crash is decided by the order of the syncs:

- an epoch is in its synced checkpoint before its first batch is written (``_append``), so the cache is never behind;
- a segment is synced before the next one is begun (``_roll``), and that one's name before anything is written to it, so
  only the last segment can lose anything;
- the recovery point is lowered on disk before anything below it is cut (``truncate_to``), so that what is written there
  next is looked at when the log is opened;
- a cut is synced before anything is appended behind it, and the epoch cache follows the log, never precedes it;
- the log start, or the local log start, is on disk before a segment is removed from the front (``delete_before``,
  ``delete_local_before``);
- the epochs of records in remote storage are on disk before the log start says that they are part of this log
  (``start_after_remote``), and the log start gives them up before their epochs go.

After a failed write, sync or rename nobody knows what the disk holds, so the log goes offline as Kafka's does: every
call raises ``LogOffline`` until the log is opened again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from ..files.interface import Files
from .batch import NO_EPOCH, Batch, encode_batch, read_batches, stamped
from .codecs import Codec
from .compacted_part import CompactedPart
from .config import LogConfig
from .epochs import UNDEFINED_EPOCH, LeaderEpochCache
from .errors import CorruptBatch, InvalidAppend, OffsetOutOfRange
from .offline_part import OfflinePart
from .records import Record, StoredRecord
from .recovery import Recovered, recover
from .remote_part import OffsetStore, RemotePart
from .segment import INDEX_SUFFIX, LOG_SUFFIX, Segment, close_all, segment_name


class AppendInfo(NamedTuple):
    """What an append did: offsets of the first and last record, the epoch of the last batch, bytes written."""

    first_offset: int
    last_offset: int
    leader_epoch: int
    size: int


class Log(OfflinePart, RemotePart, CompactedPart):
    """An open log. Not for several threads at once. Offsets: ``log_start <= recovery_point <= end`` after ``flush``.

    Records from ``log_start`` up to ``local_start`` are in remote storage (KIP-405); the two are the same where none
    are, and this class reads and cuts what is local alone.

    Each offset has its record, and a hole is damage, but where ``cleanup.policy=compact`` (``CompactedPart``).
    """

    def __init__(
        self,
        files: Files,
        folder: str,
        config: LogConfig,
        store: OffsetStore,
        recovery_point: int,
        log_start: int,
        local_start: int = 0,
        *,
        copies_holes: bool = False,
    ) -> None:
        """Open the log in ``folder``, recovering it; the offsets are what ``store`` last stored, 0 if never.

        ``copies_holes``: whether ``store`` last stored that it does.

        Raises ``CorruptLog`` or ``CorruptCheckpoint`` for damage that no crash explains, ``LogOffline`` and
        ``OSError``; no file is left open then.
        """
        self._files = files
        self.folder = folder
        self.config = config
        self._store = store
        self.removing: list[str] = []
        """Files that were removed, and may be there again after a crash."""
        self._begin_online()
        first = max(log_start, local_start)
        self.recovered: Recovered = recover(
            files, folder, config, recovery_point, first, log_start, copies_holes=copies_holes
        )
        """What opening the log has found, cut and removed."""
        self._segments = self.recovered.segments
        self._epochs = self.recovered.epochs
        self._local_start = self.recovered.log_start
        self._log_start = log_start if log_start < first else self._local_start
        self._stored_local_start = local_start
        self._recovery_point = self.recovered.end
        self._stored_recovery_point = recovery_point
        try:
            self._begin_compacted(recovery_point, copies_holes=copies_holes)
            self._begin_remote()
        except BaseException:
            close_all(self._segments)
            raise

    # -- what there is ----------------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The log end offset (LEO): that of the next record."""
        return self._segments[-1].next_offset

    @property
    def log_start(self) -> int:
        """The log start offset: records below are deleted."""
        return self._log_start

    @property
    def recovery_point(self) -> int:
        """The end of what is synced: it survives a crash."""
        return self._recovery_point

    @property
    def epochs(self) -> LeaderEpochCache:
        """The leader epoch cache; to be read, and changed by this log only."""
        return self._epochs

    @property
    def latest_epoch(self) -> int:
        """The largest leader epoch, -1 if none is known."""
        return self._epochs.latest_epoch

    @property
    def segment_bases(self) -> tuple[int, ...]:
        """Base offsets of the segments."""
        return tuple(segment.base_offset for segment in self._segments)

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self._segments)

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """``LeaderEpochCache.end_offset_for`` with this log's end: what OffsetsForLeaderEpoch answers."""
        return self._epochs.end_offset_for(epoch, self.end)

    def epoch_for(self, offset: int) -> int:
        """The leader epoch of the record at ``offset``, -1 if it is not known."""
        return self._epochs.epoch_for(offset)

    # -- appending --------------------------------------------------------------------------------------------------

    def assign_epoch(self, epoch: int) -> None:
        """Note that ``epoch`` begins at the log's end: what becoming leader does before any record comes."""
        with self._storage:
            self._require_epoch(epoch)
            self._epochs.assign(epoch, self.end)

    def append_as_leader(
        self, records: Sequence[Record], epoch: int, *, codec: Codec = Codec.NONE, control: bool = False
    ) -> AppendInfo:
        """Append the records as one batch of this epoch. Returns once they are written; ``flush`` makes them survive.

        ``control`` marks records of the quorum's own, which no consumer sees.

        Raises ``InvalidAppend`` for an epoch below the latest and a batch that is too large; ``LogOffline``.
        """
        self._require_epoch(epoch)
        try:
            data = encode_batch(records, base_offset=self.end, leader_epoch=epoch, codec=codec, control=control)
        except ValueError as error:
            raise InvalidAppend(str(error), self.folder, "send records that a batch can hold") from None
        return self._append([(self.end, self.end + len(records) - 1, epoch, data)], self.config.max_message_bytes)

    def append_batches_as_leader(self, data: bytes, epoch: int) -> AppendInfo:
        """Append batches as a producer encoded them; they get this log's offsets and ``epoch``.

        Raises ``InvalidAppend`` besides for bytes that are no batches of magic 2, or whose records do not count from 0.
        """
        return self.append_parsed_as_leader(self._parsed(data), epoch)

    def append_parsed_as_leader(self, batches: Sequence[Batch], epoch: int) -> AppendInfo:
        """``append_batches_as_leader`` of what ``read_batches`` made of the bytes."""
        self._require_epoch(epoch)
        placed: list[tuple[int, int, int, bytes]] = []
        offset = self.end
        for batch in batches:
            deltas = [record.offset - batch.base_offset for record in self._decoded(batch)]
            if batch.magic != 2 or batch.is_control or deltas != list(range(batch.last_offset - batch.base_offset + 1)):
                what = "not a batch of magic 2 with offset deltas from 0 on"
                raise InvalidAppend(what, self.folder, "let the producer count its records from 0")
            placed.append((offset, offset + len(deltas) - 1, epoch, stamped(batch.data, offset, epoch)))
            offset += len(deltas)
        return self._append(placed, self.config.max_message_bytes)

    def append_as_follower(self, data: bytes, leader_epoch: int | None = None) -> AppendInfo:
        """Append batches byte for byte as the leader has them.

        They must continue this log: the first at its end, each at the end of the one before, epochs never falling, nor
        rising above ``leader_epoch``, that of the leader that they come from: no CRC covers the epoch of a batch.
        Raises ``InvalidAppend``, with nothing written, where they do not; ``LogOffline``.
        """
        batches = self._parsed(data)
        end = self.end
        hole = False
        epoch = self._epochs.epoch_for(end - 1) if end else NO_EPOCH
        for batch in batches:
            hole |= batch.base_offset > end
            if batch.base_offset < end or (hole and not self.config.compacted):
                what = f"a batch of offsets {batch.base_offset} to {batch.last_offset} where {end} follows"
                raise InvalidAppend(what, self.folder)
            if 0 <= batch.leader_epoch < epoch:
                what = f"leader epoch {batch.leader_epoch} at offset {batch.base_offset}, after epoch {epoch}"
                raise InvalidAppend(what, self.folder, "truncate to where the leader's epochs and these agree")
            if leader_epoch is not None and batch.leader_epoch > leader_epoch:
                what = (
                    f"leader epoch {batch.leader_epoch} at offset {batch.base_offset}, the leader's is {leader_epoch}"
                )
                raise InvalidAppend(what, self.folder)
            end, epoch = batch.next_offset, max(epoch, batch.leader_epoch)
        placed = [
            (batch.base_offset, batch.last_offset, batch.leader_epoch if batch.magic == 2 else -2, batch.data)
            for batch in batches
        ]
        if hole:
            self._begin_holes()
        return self._append(placed, None)

    def straddled_by(self, data: bytes, leader_start: int = 0) -> int | None:
        """The base offset of the first batch in ``data`` where this log's end lies inside of that batch.

        So it is where the leader's log start does, after records were deleted up to there: a batch is copied whole, and
        this log has to begin with it. It is empty then (KAFKA-6975), or ends at ``leader_start``, the leader's log
        start: all that it has is deleted, and the leader may know none of its epochs any more by which to cut.
        Else ``None``. Raises ``InvalidAppend`` for what is no batch.
        """
        is_empty = self._log_start == self._local_start == self.end
        if not 0 < self.end or not (is_empty or leader_start == self.end):
            return None
        first = next(iter(self._parsed(data)), None)
        return first.base_offset if first is not None and first.base_offset < self.end <= first.last_offset else None

    def _append(self, batches: Sequence[tuple[int, int, int, bytes]], max_bytes: int | None) -> AppendInfo:
        """Write ``(first, last, epoch, bytes)`` batches; an epoch of -2 is of a format that has none."""
        if not batches:
            raise InvalidAppend("no batch", self.folder, "send at least one record")
        limit = self.config.segment_bytes if max_bytes is None else min(max_bytes, self.config.segment_bytes)
        for _, _, _, data in batches:
            if len(data) > limit:
                what = f"a batch of {len(data)} bytes, the limit is {limit}"
                raise InvalidAppend(what, self.folder, "send fewer or smaller records, or raise the limit")
        total = 0
        with self._storage:
            run: list[tuple[int, bytes]] = []
            run_bytes = 0
            for first, last, epoch, data in batches:
                size = len(data)
                active = self._segments[-1]
                full = active.size + run_bytes + size > self.config.segment_bytes and active.size + run_bytes > 0
                if full or not active.holds(last, run_bytes + size) or self._epoch_changes(epoch):
                    if run:
                        active.append(run)
                        run, run_bytes = [], 0
                    self._take_epoch(epoch, first)
                    if full or not active.holds(last, size):
                        self._roll(first)
                run.append((last, data))
                run_bytes += size
                total += size
            self._segments[-1].append(run)
        return AppendInfo(batches[0][0], batches[-1][1], max(batches[-1][2], NO_EPOCH), total)

    def _epoch_changes(self, epoch: int) -> bool:
        return epoch != self._epochs.latest_epoch if epoch != NO_EPOCH else False

    def _take_epoch(self, epoch: int, offset: int) -> None:
        """Note the epoch of the batch that comes next, on disk, before the batch is written."""
        if epoch == -2:
            # Kafka: with records that have no epoch, truncation must go by the high watermark again.
            self._epochs.clear()
        elif epoch != NO_EPOCH:
            if epoch < self._epochs.latest_epoch:
                # An epoch that this replica led and wrote nothing in: the cache may not go by it any more.
                self._epochs.truncate_from_end(offset)
            self._epochs.assign(epoch, offset)

    def _roll(self, base_offset: int) -> None:
        self._segments[-1].seal()
        segment = self._new_segment(base_offset)
        try:
            self._files.fsync_dir(self.folder)
        except OSError:
            segment.close()
            raise
        self._segments.append(segment)
        self._recovery_point = base_offset
        self._store_holes()

    def _new_segment(self, base_offset: int) -> Segment:
        interval, holes = self.config.index_interval_bytes, self.config.compacted
        return Segment(self._files, self.folder, base_offset, interval, create=True, holes=holes)

    def flush(self) -> int:
        """Sync everything; gives the recovery point, which is the log's end now."""
        with self._storage:
            grew = self._recovery_point < self.end
            if grew:
                self._segments[-1].fsync()
                self._recovery_point = self.end
            self._store_holes()
            if grew:
                self._end_holes()
        return self._recovery_point

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int = 1 << 20, up_to: int | None = None) -> list[Batch]:
        """Whole batches from the one that holds ``offset`` on, ``max_bytes`` at most but always one, if there is one.

        No record at or above ``up_to`` (the high watermark, for a consumer) is in them. The first batch may begin below
        ``offset``. Every CRC is checked. Raises ``OffsetOutOfRange`` for an offset below the local log start or above
        the end, ``CorruptLog`` for bytes that are not as they were written.
        """
        if not self._local_start <= offset <= self.end:
            raise OffsetOutOfRange(self.folder, offset, self._local_start, self.end)
        limit = self.end if up_to is None else min(up_to, self.end)
        batches: list[Batch] = []
        epoch_for = self._epochs.epoch_for
        with self._storage:
            for segment in self._segments[self._slot(offset) :]:
                if offset >= limit or not segment.read(offset, max_bytes, limit, batches, epoch_for):
                    break
        return batches

    def records(self, offset: int, up_to: int | None = None) -> Iterator[StoredRecord]:
        """The records from ``offset`` on that lie below ``up_to``, as a consumer sees them: no control records."""
        limit = self.end if up_to is None else min(up_to, self.end)
        while offset < limit:
            batches = self.read(offset, up_to=limit)
            if not batches:
                return
            for batch in batches:
                if not batch.is_control:
                    yield from (record for record in batch.records() if record.offset >= offset)
            offset = batches[-1].next_offset

    def _slot(self, offset: int) -> int:
        """The index of the segment that holds ``offset``."""
        slot = len(self._segments) - 1
        while slot > 0 and self._segments[slot].base_offset > offset:
            slot -= 1
        return slot

    # -- cutting ----------------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int, producers: bytes = b"") -> int:
        """Remove every record at or above ``offset``; gives the new end, which survives a crash on return.

        A batch is never split, as in Kafka: its CRC and its bytes are the leader's. One that ``offset`` lies inside of
        is removed whole, so the new end is that batch's base offset and may be below ``offset``. (Kafka's in-memory end
        is ``offset`` then, until a restart finds the smaller one; a follower would fetch past records it lacks.)
        The epoch cache is cut to the new end also where there is nothing to remove: this replica may have led an epoch
        that it wrote nothing in.

        ``producers``: where that is below the local log start, what is known of those below it, for ``read_producers``.
        """
        with self._storage:
            if offset < 0:
                raise OffsetOutOfRange(self.folder, offset, self._log_start, self.end)
            if offset >= self.end:
                self._epochs.truncate_from_end(self.end)
                return self.end
            if offset < self._segments[0].base_offset:
                self._cut_remote(offset, producers)
                return offset
            slot = self._slot(offset := self._before_hole(offset))
            segment = self._segments[slot]
            place = segment.find(offset)
            if place is None:  # offset lies in a hole behind the segment's last record
                position, end = segment.size, segment.next_offset
            else:
                position, end = place.position, min(offset, segment.batch(place).base_offset)
            self._lower_recovery_point(end)
            self._drop(self._segments[slot + 1 :])
            del self._segments[slot + 1 :]
            segment.cut(position, end)
            self._recovery_point = end
            self._store_holes()
            self._epochs.truncate_from_end(end)
            if end < self._local_start:
                self._give_up_remote()
                self._log_start = self._local_start = end
                self._store.store_log_start(end)
            return end

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the log is empty, and begins and ends at ``offset``."""
        with self._storage:
            if offset < 0:
                raise OffsetOutOfRange(self.folder, offset, self._log_start, self.end)
            self._start_at(offset)

    def _start_at(self, offset: int) -> None:
        # Without a remote part nothing is said of the log start before it is the new one.
        with self._begun() if self._log_start < self._local_start else nullcontext():
            self._begin_anew(offset)

    def _begin_anew(self, offset: int) -> None:
        # Each step leaves what opening the log can make sense of: first an empty log where it began, then one whose end
        # is below its log start, which is begun anew there.
        first = self._segments[0]
        self._lower_recovery_point(min(offset, first.base_offset))
        self._drop(self._segments[1:])
        del self._segments[1:]
        first.cut(0, first.base_offset)
        self._give_up_remote()
        self._epochs.clear()
        self._log_start = self._local_start = offset
        self._store.store_log_start(offset)
        if offset != first.base_offset:
            self._segments = [self._new_segment(offset)]
            self._drop([first])  # syncs the new one's name too
        self._recovery_point = offset

    def delete_before(self, offset: int) -> None:
        """Raise the log start to ``offset``; segments that lie wholly below it are removed (``DeleteRecords``).

        Lower offsets change nothing. Raises ``OffsetOutOfRange`` above the log's end; the owner sees to it that
        ``offset`` is at most the high watermark.
        """
        with self._storage:
            if offset > self.end:
                raise OffsetOutOfRange(self.folder, offset, self._log_start, self.end)
            if offset <= self._log_start:
                return
            self._store.store_log_start(offset)
            self._log_start = offset
            kept = self._slot(offset)
            self._drop(self._segments[:kept])
            del self._segments[:kept]
            self._local_start = max(self._local_start, offset)
            self._epochs.truncate_from_start(offset)

    def _drop(self, segments: Sequence[Segment]) -> None:
        """Remove segments, and make that survive a crash."""
        for segment in segments:
            segment.close()
            stem = f"{self.folder}/{segment_name(segment.base_offset)}"
            for path in (stem + LOG_SUFFIX, stem + INDEX_SUFFIX):
                self.removing.append(path)
                self._files.remove(path)
        if segments:
            self._files.fsync_dir(self.folder)
            self.removing.clear()

    def _lower_recovery_point(self, offset: int) -> None:
        if self.config.compacted:
            self._cut_cleaned(offset)
        if offset < self._stored_recovery_point:
            self._store.store_recovery_point(offset)
            self._stored_recovery_point = offset

    def checkpointed(self, recovery_point: int) -> None:
        """The owner has stored this recovery point, with those of other logs."""
        self._stored_recovery_point = recovery_point

    def close(self) -> None:
        """Flush, and close the files; those of an offline log are closed."""
        if self._offline is None:
            self.flush()
        self.abandon()

    # -- guards -----------------------------------------------------------------------------------------------------

    def _require_epoch(self, epoch: int) -> None:
        latest = self._epochs.latest_epoch
        if epoch < 0 or (latest != UNDEFINED_EPOCH and epoch < latest):
            what = f"leader epoch {epoch}, the latest is {latest}"
            raise InvalidAppend(what, self.folder, "let only the leader of the latest epoch append")

    def _parsed(self, data: bytes) -> list[Batch]:
        try:
            return list(read_batches(data))
        except CorruptBatch as error:
            raise InvalidAppend(error.what, f"{self.folder}, byte {error.byte} of the append") from None

    def _decoded(self, batch: Batch) -> list[StoredRecord]:
        try:
            return batch.records()
        except CorruptBatch as error:
            raise InvalidAppend(error.what, self.folder, "let the producer encode its records anew") from None
