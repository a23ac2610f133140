"""Storage defects, small and of real kinds, as patches of ``impl/log``: a crash or the list must show each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fencepost.impl.files import Files
from fencepost.impl.log import Batch, CorruptBatch, Log, checkpoints, log, read_batch, recovery, segment
from fencepost.impl.log.epochs import EpochEntry, LeaderEpochCache
from fencepost.impl.log.log import Segment
from fencepost.impl.log.segment import Place

Fault = Callable[[pytest.MonkeyPatch], None]
FAULTS: dict[str, Fault] = {}


def fault(plant: Fault) -> Fault:
    """Enter a fault in the list by its name."""
    FAULTS[plant.__name__] = plant
    return plant


@fault
def checkpoint_renamed_before_sync(patch: pytest.MonkeyPatch) -> None:
    """The name can survive and the content be lost."""

    def write(files: Files, path: str, data: bytes) -> None:
        file = files.open(path + ".tmp", create=True)
        file.truncate(0)
        file.append(data)
        files.rename(path + ".tmp", path)
        file.fsync()
        files.fsync_dir(path.rpartition("/")[0])

    patch.setattr(checkpoints, "write_atomically", write)


@fault
def checkpoint_folder_not_synced(patch: pytest.MonkeyPatch) -> None:
    """The old checkpoint can come back after the caller was told of the new one."""

    def write(files: Files, path: str, data: bytes) -> None:
        file = files.open(path + ".tmp", create=True)
        file.truncate(0)
        file.append(data)
        file.fsync()
        files.rename(path + ".tmp", path)

    patch.setattr(checkpoints, "write_atomically", write)


@fault
def checkpoint_written_in_place(patch: pytest.MonkeyPatch) -> None:
    """A crash leaves half a checkpoint."""

    def write(files: Files, path: str, data: bytes) -> None:
        file = files.open(path, create=True)
        file.truncate(0)
        file.append(data)
        file.fsync()
        files.fsync_dir(path.rpartition("/")[0])

    patch.setattr(checkpoints, "write_atomically", write)


@fault
def leftover_checkpoint_appended_to(patch: pytest.MonkeyPatch) -> None:
    """A temporary file that a crash left is taken for an empty one."""

    def write(files: Files, path: str, data: bytes) -> None:
        file = files.open(path + ".tmp", create=True)
        file.append(data)
        file.fsync()
        files.rename(path + ".tmp", path)
        files.fsync_dir(path.rpartition("/")[0])

    patch.setattr(checkpoints, "write_atomically", write)
    patch.setattr(recovery, "LEFTOVERS", (".deleted",))


@fault
def full_segment_not_synced(patch: pytest.MonkeyPatch) -> None:
    """Rolling raises the recovery point past records that were not synced."""
    patch.setattr(Segment, "seal", lambda _self: None)


@fault
def new_segment_name_not_synced(patch: pytest.MonkeyPatch) -> None:
    """The records of a synced file are gone with its name."""

    def roll(self: Log, base_offset: int) -> None:
        self._segments[-1].seal()
        self._segments.append(self._new_segment(base_offset))
        self._recovery_point = base_offset

    patch.setattr(Log, "_roll", roll)


@fault
def flush_does_not_sync(patch: pytest.MonkeyPatch) -> None:
    """``flush`` answers before anything is synced."""

    def flush(self: Log) -> int:
        self._recovery_point = self.end
        return self.end

    patch.setattr(Log, "flush", flush)


@fault
def recovery_cuts_one_batch_too_many(patch: pytest.MonkeyPatch) -> None:
    """The last valid batch before a torn tail goes too."""
    whole = Segment.scan

    def scan(self: Segment) -> Iterator[tuple[int, Batch]]:
        held: tuple[int, Batch] | None = None
        try:
            for item in whole(self):
                if held:
                    yield held
                held = item
        except CorruptBatch as error:
            raise CorruptBatch(error.what, held[0] if held else error.byte, error.path) from None
        if held:
            yield held

    patch.setattr(Segment, "scan", scan)


@fault
def recovery_believes_the_headers(patch: pytest.MonkeyPatch) -> None:
    """No CRC is checked when the log is opened."""

    def unchecked(data: bytes, position: int = 0, path: str = "", shift: int = 0) -> Batch:
        if len(data) - position < 61:
            raise CorruptBatch("no batch", position + shift, path)
        base, length, epoch, magic = segment.PREFIX.unpack_from(data, position)
        if magic != 2 or length < 49 or 12 + length > len(data) - position:
            raise CorruptBatch("no batch", position + shift, path)
        delta = int.from_bytes(data[position + 23 : position + 27], "big", signed=True)
        return Batch(base, base + delta, epoch, 2, 0, 0, 0, -1, -1, -1, 0, data[position : position + 12 + length])

    patch.setattr(segment, "read_batch", unchecked)
    patch.setattr(Segment, "batch", lambda self, place, window=None: _checked(self, place))


def _checked(part: Segment, place: Place) -> Batch:
    return read_batch(part._file.pread(place.position, place.size), 0, part.path, place.position)


@fault
def recovery_takes_any_epoch(patch: pytest.MonkeyPatch) -> None:
    """An epoch that was torn to zeros, which no CRC covers, is served."""

    def take(self: recovery._Recovery, _segment: Segment, batch: Batch, _position: int, _before: int) -> int:
        if batch.leader_epoch > self.epochs.latest_epoch:
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
        return batch.leader_epoch

    patch.setattr(recovery._Recovery, "_check_epoch", take)


@fault
def recovery_takes_any_offset(patch: pytest.MonkeyPatch) -> None:
    """A batch, or a segment, that does not follow is taken for one that does."""
    patch.setattr(recovery._Recovery, "_check_offset", lambda *_args: None)


@fault
def recovered_epochs_not_cut(patch: pytest.MonkeyPatch) -> None:
    """The epoch checkpoint claims epochs whose records were lost."""
    patch.setattr(LeaderEpochCache, "truncate_from_end", lambda _self, _offset: None)


@fault
def recovered_epochs_not_raised_to_the_log_start(patch: pytest.MonkeyPatch) -> None:
    """The epoch checkpoint claims an epoch for records that are deleted."""
    patch.setattr(LeaderEpochCache, "truncate_from_start", lambda _self, _offset: None)


@fault
def epoch_not_stored_before_its_records(patch: pytest.MonkeyPatch) -> None:
    """The epoch checkpoint is behind what was acknowledged."""

    def assign(self: LeaderEpochCache, epoch: int, start_offset: int) -> bool:
        return self._assign(EpochEntry(epoch, start_offset))

    patch.setattr(LeaderEpochCache, "assign", assign)
    # Kafka looks at the segments from the recovery point on only, and so finds no more than this.
    patch.setattr(recovery._Recovery, "_check_epoch", lambda *args: args[2].leader_epoch)


@fault
def recovery_point_not_lowered(patch: pytest.MonkeyPatch) -> None:
    """What is written after a truncation is not looked at when the log is opened."""
    patch.setattr(Log, "_lower_recovery_point", lambda _self, _offset: None)


@fault
def truncation_not_synced(patch: pytest.MonkeyPatch) -> None:
    """Truncated records come back behind new ones."""

    def cut(self: Segment, position: int, next_offset: int) -> None:
        self._recent.clear()
        self.index.truncate_to(position)
        self._since_entry = position - self.index.last_position()
        self._file.truncate(position)
        self.next_offset = next_offset

    patch.setattr(Segment, "cut", cut)


@fault
def truncation_splits_a_batch(patch: pytest.MonkeyPatch) -> None:
    """The batch that the offset lies inside of stays."""

    def find(self: Segment, offset: int) -> Place | None:
        return next((place for place in self.places() if place.base_offset >= offset), None)

    patch.setattr(Segment, "find", find)


@fault
def truncation_leaves_the_epochs(patch: pytest.MonkeyPatch) -> None:
    """The running log's cache still knows epochs that are cut off."""
    whole = LeaderEpochCache.truncate_from_end

    def truncate(self: LeaderEpochCache, offset: int) -> None:
        if self.latest and self.latest.start_offset > offset:
            return
        whole(self, offset)

    patch.setattr(LeaderEpochCache, "truncate_from_end", truncate)


@fault
def removed_segments_not_synced(patch: pytest.MonkeyPatch) -> None:
    """Segments that were truncated away come back."""

    def drop(self: Log, segments: list[Segment]) -> None:
        for part in segments:
            part.close()
            self._files.remove(part.path)
            self._files.remove(part.index.path)

    patch.setattr(Log, "_drop", drop)


@fault
def log_start_stored_last(patch: pytest.MonkeyPatch) -> None:
    """Segments are gone from the front, and the log does not know why."""

    def delete_before(self: Log, offset: int) -> None:
        if offset <= self._log_start:
            return
        self._log_start = offset
        kept = self._slot(offset)
        self._drop(self._segments[:kept])
        del self._segments[:kept]
        self._epochs.truncate_from_start(offset)
        self._store.store_log_start(offset)

    patch.setattr(Log, "delete_before", delete_before)


@fault
def index_not_cut_with_its_segment(patch: pytest.MonkeyPatch) -> None:
    """Entries point to bytes that hold other batches by now."""
    patch.setattr(log.Segment, "cut", _cut_log_only)


def _cut_log_only(self: Segment, position: int, next_offset: int) -> None:
    self._recent.clear()
    self._file.truncate(position)
    self._file.fsync()
    self.next_offset = next_offset
