"""Opening a log after whatever happened (``LogLoader`` and ``LogSegment.recover`` in Kafka).

What may be wrong is told apart by the recovery point, up to which everything was synced. Below it nothing may be
missing or damaged: that is an error which names the file and the byte, and nothing is touched. From it on, the log ends
before the first batch that is torn, damaged or out of place; what lies behind that was never synced, and goes.

The CRC of a batch does not cover its base offset, length and leader epoch. A tear in those is found by what they must
agree with: the offset and epoch of the batch before, and the epoch cache, whose checkpoint is always synced before the
first batch of an epoch is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

from ..files.interface import Files
from .batch import NO_EPOCH, Batch
from .checkpoints import EPOCH_CHECKPOINT, TEMPORARY, read_epochs, write_epochs
from .config import LogConfig
from .epochs import LeaderEpochCache
from .errors import CorruptBatch, CorruptLog
from .segment import INDEX_SUFFIX, LOG_SUFFIX, REPLACE, Segment, close_all, segment_name
from .swap import CLEANED, DELETED, complete_swaps

LEFTOVERS = (TEMPORARY, DELETED, CLEANED)
"""Names that end so are of work that a crash ended."""


@dataclass(slots=True)
class Recovered:
    """An open log's parts, and what was done to have them."""

    segments: list[Segment]
    epochs: LeaderEpochCache
    log_start: int
    cut: tuple[str, int, str] | None = None
    """File, byte and reason of the cut, where the log was cut."""
    removed: list[str] = field(default_factory=list)
    """Paths of files that were removed."""

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.segments[-1].next_offset


def recover(
    files: Files,
    folder: str,
    config: LogConfig,
    recovery_point: int,
    log_start: int,
    remote_start: int | None = None,
    *,
    copies_holes: bool = False,
) -> Recovered:
    """Open the log in ``folder``, which exists; offsets as the data directory's checkpoints have them (0 for none).

    ``log_start`` is where the records on this disk begin. Where earlier ones, from ``remote_start`` on, are in remote
    storage, their epochs are kept, and a log that cannot say them is damaged: nothing here could make them anew.

    A log that ``copies_holes`` ends at the recovery point: what is above it may have been torn in a way that does not
    show (``CompactedPart``).

    Raises ``CorruptLog`` for damage below the recovery point, ``CorruptCheckpoint`` for a damaged epoch checkpoint, and
    ``OSError``; no file is left open then.
    """
    first = log_start if remote_start is None else min(remote_start, log_start)
    recovery = _Recovery(files, folder, config, recovery_point, log_start, first, copies_holes=copies_holes)
    try:
        return recovery.run()
    except BaseException:
        close_all(recovery.result.segments)
        raise


class _Recovery:
    def __init__(
        self,
        files: Files,
        folder: str,
        config: LogConfig,
        recovery_point: int,
        log_start: int,
        remote_start: int,
        *,
        copies_holes: bool,
    ) -> None:
        self.files = files
        self.folder = folder
        self.config = config
        self.recovery_point = recovery_point
        self.remote_start = remote_start
        self.copies_holes = copies_holes
        self.reopened: list[Segment] = []
        path = f"{folder}/{EPOCH_CHECKPOINT}"
        self.have_epochs = files.exists(path)
        entries = read_epochs(files, path) if self.have_epochs else []
        # Written once, at the end: until then the file stays as it was found.
        self.epochs = LeaderEpochCache(entries)
        self.latest_stored = self.epochs.latest_epoch
        self.result = Recovered(
            [], LeaderEpochCache(entries, lambda found: write_epochs(files, path, found)), log_start
        )

    def run(self) -> Recovered:
        result = self.result
        result.removed += complete_swaps(self.files, self.folder)
        bases = self._bases()
        # Kafka deletes segments that end at or below the log start; a crash may have come between.
        while len(bases) > 1 and bases[1] <= result.log_start:
            self._remove(bases.pop(0))
        if bases and bases[0] > result.log_start:
            self._check_beginning(bases)
            self._remove(bases.pop())
        first_unsynced = max([index for index, base in enumerate(bases) if base <= self.recovery_point], default=0)
        for index, base in enumerate(bases):
            if index < first_unsynced:
                self._open_synced(base, bases[index + 1])
            elif not self._open_unsynced(base):
                for later in bases[index if self._gone(base) else index + 1 :]:
                    self._remove(later)
                break
        end = result.end if result.segments else 0
        if max(end, result.log_start) < self.recovery_point:
            what = f"the log ends at offset {end}, and was synced up to {self.recovery_point}"
            last = result.segments[-1] if result.segments else None
            raise CorruptLog(what, last.path if last else self.folder, last.size if last else None, REPLACE)
        if self.remote_start < result.log_start:
            self._check_remote(end)
        if not result.segments or end < result.log_start:
            self._start_anew()
        self._settle()
        return result

    def _check_remote(self, end: int) -> None:
        """Raises ``CorruptLog`` where what is in remote storage has lost its epochs, or the segment that follows it.

        Both are on disk before the log start is stored that claims it (``Log.start_after_remote``), and it is given up
        before either goes.
        """
        if not self.have_epochs or self.epochs.epoch_for(self.remote_start) < 0:
            what = f"no epoch is known of offset {self.remote_start}, from which on records are in remote storage"
            raise CorruptLog(what, f"{self.folder}/{EPOCH_CHECKPOINT}", None, REPLACE)
        if end < self.result.log_start:
            what = f"no segment follows offset {self.result.log_start}, up to which records are in remote storage"
            raise CorruptLog(what, self.folder, None, REPLACE)

    # -- files ------------------------------------------------------------------------------------------------------

    def _bases(self) -> list[int]:
        """The base offsets of the segments; leftovers, and index files with no segment, are removed."""
        names = self.files.list(self.folder)
        bases = sorted(
            int(name.removesuffix(LOG_SUFFIX))
            for name in names
            if name.endswith(LOG_SUFFIX) and len(name) == 24 and name[:20].isascii() and name[:20].isdigit()
        )
        known = {segment_name(base) + INDEX_SUFFIX for base in bases}
        for name in names:
            if name.endswith(LEFTOVERS) or (name.endswith(INDEX_SUFFIX) and name not in known):
                self.files.remove(f"{self.folder}/{name}")
                self.result.removed.append(f"{self.folder}/{name}")
        return bases

    def _remove(self, base: int) -> None:
        stem = f"{self.folder}/{segment_name(base)}"
        for path in (stem + LOG_SUFFIX, stem + INDEX_SUFFIX):
            if self.files.exists(path):
                self.files.remove(path)
                self.result.removed.append(path)

    def _check_beginning(self, bases: Sequence[int]) -> None:
        """Raises ``CorruptLog`` where records at and above the log start are missing from the front.

        The log start is on disk before a segment is removed from the front, and a segment is synced before the next is
        begun. So nothing explains a first segment above the log start but a crash while the log was begun anew below
        it: that has left one segment with nothing in it, no epochs, and no recovery point above the log start.
        """
        first, start = bases[0], self.result.log_start
        path = f"{self.folder}/{segment_name(first)}{LOG_SUFFIX}"
        if len(bases) == 1 and self.recovery_point <= start and not self.epochs.entries:
            with closing(self.files.open(path)) as file:
                if not file.size:
                    return
        what = f"the first segment begins at offset {first}, the log starts at {start}: what is between is missing"
        raise CorruptLog(what, path, None, f"put the missing segment back, or {REPLACE}")

    def _gone(self, base: int) -> bool:
        """Whether the segment was refused as a whole, and not cut."""
        return not self.result.segments or self.result.segments[-1].base_offset != base

    def _start_anew(self) -> None:
        """One empty segment at the log start: nothing of the log is left at or above it."""
        result = self.result
        for segment in result.segments:
            segment.close()
            self._remove(segment.base_offset)
        self.reopened.clear()
        result.segments = [
            Segment(
                self.files,
                self.folder,
                result.log_start,
                self.config.index_interval_bytes,
                create=True,
                holes=self.config.compacted,
            )
        ]
        self.epochs.clear()
        self.files.fsync_dir(self.folder)

    # -- segments ---------------------------------------------------------------------------------------------------

    def _open(self, base: int) -> Segment:
        interval, holes = self.config.index_interval_bytes, self.config.compacted
        segment = Segment(self.files, self.folder, base, interval, create=False, holes=holes)
        self.result.segments.append(segment)
        return segment

    def _open_synced(self, base: int, next_base: int) -> None:
        """A segment below the recovery point: its index is believed if it can be true.

        Where the end is not what it should be, all of the segment is looked at: that tells the index from the log, and
        which batch is wrong.
        """
        segment = self._open(base)
        if not self._load(segment, next_base):
            try:
                for position, batch in segment.rebuilt():
                    self._check_offset(segment, batch, position)
            except CorruptBatch as error:
                raise CorruptLog(error.what, error.path, error.byte, REPLACE) from None
            segment.seal()
        if not self.have_epochs:
            for place in segment.places():
                if place.leader_epoch > self.epochs.latest_epoch and place.last_offset >= self.result.log_start:
                    self.epochs.assign(place.leader_epoch, place.base_offset)
        if segment.next_offset != next_base and not self._is_hole(segment.next_offset, next_base, next_base):
            what = f"the segment ends at offset {segment.next_offset}, the next begins at {next_base}"
            raise segment.corrupt(what, segment.size)

    def _load(self, segment: Segment, next_base: int) -> bool:
        try:
            end = segment.next_offset if segment.load() else -1
            return end == next_base or (end >= 0 and self._is_hole(end, next_base, next_base))
        except CorruptLog:
            return False

    def _open_unsynced(self, base: int) -> bool:
        """A segment that may hold batches that were not synced; ``False`` if the log ends in or before it."""
        end = self.result.end if self.result.segments else base
        if base != end and not self._is_hole(end, base, base):
            what = f"the segment of base {base} does not follow offset {end}"
            path = f"{self.folder}/{segment_name(base)}{LOG_SUFFIX}"
            if end < self.recovery_point:
                raise CorruptLog(f"{what}, up to {self.recovery_point} everything was synced", path, 0, REPLACE)
            self.result.cut = path, 0, what
            return False
        segment = self._open(base)
        self.reopened.append(segment)
        epoch = self.epochs.epoch_for(base - 1) if base else -1
        try:
            for position, batch in segment.rebuilt():
                if self.copies_holes and batch.next_offset > self.recovery_point:
                    what = f"a batch above offset {self.recovery_point}, copied among holes and not flushed"
                    raise CorruptBatch(what, position, segment.path)
                self._check_offset(segment, batch, position)
                epoch = self._check_epoch(segment, batch, position, epoch)
        except CorruptBatch as error:
            if segment.next_offset < self.recovery_point:
                what = f"{error.what}; up to offset {self.recovery_point} everything was synced"
                raise CorruptLog(what, error.path, error.byte, REPLACE) from None
            self.result.cut = error.path, error.byte, error.what
            segment.cut(error.byte, segment.next_offset)
            return False
        return True

    def _is_hole(self, expected: int, found: int, end: int) -> bool:
        """Whether a hole from ``expected`` to ``found``, and what follows up to ``end``, may be the cleaner's.

        No CRC covers a base offset, so a tear in it looks like a hole too: one is believed where what follows was
        synced, by the stored recovery point (``CompactedPart``), or where none is stored and nothing can be told.
        """
        believed = self.recovery_point < 0 or end <= self.recovery_point
        return self.config.compacted and expected < found and believed

    def _check_offset(self, segment: Segment, batch: Batch, position: int) -> None:
        """Raises ``CorruptBatch`` where the batch does not follow."""
        expected = segment.next_offset
        if batch.base_offset != expected and not self._is_hole(expected, batch.base_offset, batch.next_offset):
            what = f"base offset {batch.base_offset} where {expected} follows"
            raise CorruptBatch(what, position, segment.path)
        if not segment.holds(batch.last_offset, 0):
            what = f"last offset {batch.last_offset} in the segment of base {segment.base_offset}"
            raise CorruptBatch(what, position, segment.path)

    def _check_epoch(self, segment: Segment, batch: Batch, position: int, before: int) -> int:
        """The latest epoch so far. Raises ``CorruptBatch`` for an epoch that can not stand at this offset.

        A checkpoint that is there was synced before the first batch of each epoch; one that is lost is made anew.
        """
        if batch.next_offset <= self.result.log_start:
            return before  # deleted: the cache has forgotten it, and so may have who leads
        epoch = batch.leader_epoch
        if batch.magic < 2:
            self.epochs.clear()  # as appending it did
        if epoch == NO_EPOCH:
            return before
        known = self.epochs.epoch_for(batch.base_offset)
        if epoch < max(before, known) or (known != epoch <= self.epochs.latest_epoch and known >= 0):
            what = f"leader epoch {epoch} at offset {batch.base_offset}, where it was {max(before, known)}"
            raise CorruptBatch(what, position, segment.path)
        if epoch > self.epochs.latest_epoch:
            if self.have_epochs and epoch > self.latest_stored:
                what = f"leader epoch {epoch} at offset {batch.base_offset}, which the epoch checkpoint does not have"
                raise CorruptBatch(what, position, segment.path)
            self.epochs.assign(epoch, batch.base_offset)
        return epoch

    # -- the end ----------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """The epoch cache cut to the log at both ends, and everything that was changed synced."""
        result = self.result
        result.log_start = max(result.log_start, result.segments[0].base_offset)
        self.epochs.truncate_from_end(result.end)
        self.epochs.truncate_from_start(min(self.remote_start, result.log_start))
        if result.removed:
            self.files.fsync_dir(self.folder)
        # From now on the recovery point may pass these, and then their indexes are believed.
        for segment in self.reopened:
            segment.seal()
        result.epochs.replace(self.epochs.entries)
