"""What a log is to the cleaner: its sealed segments, cleaned ones put in their place, and holes in its offsets.

Offsets never change, so that a compacted log has holes: between batches, and between records within one. A follower
copies them. No CRC covers a batch's base offset, and where any may come, a tear in it would look like a hole. So
opening a log believes a hole only below the *stored* recovery point. That is stored when what follows a hole is
flushed, before anybody hears of it, and before a cleaned segment is put in.

A tear may fill a hole, too: the batch behind it then begins where the log ended, as one would that follows. So before a
batch is appended behind a hole, it is on disk that this log copies holes, and of such a one nothing is believed above
the stored recovery point, hole or not. That is over with the first flush of batches that all follow one another. (Kafka
believes any base offset that is not too small.)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ..files.interface import Files
from .config import LogConfig
from .remote_part import OffsetStore
from .segment import INDEX_SUFFIX, LOG_SUFFIX, Segment, close_all, segment_name
from .swap import CLEANED, swap_in


class CompactedPart:
    """What ``Log`` has of this, over its own segments and offsets."""

    folder: str
    config: LogConfig
    removing: list[str]
    renaming: list[str]
    """Files that were renamed so, and may not be there after a crash."""
    _files: Files
    _segments: list[Segment]
    _store: OffsetStore
    _storage: AbstractContextManager[None]
    _recovery_point: int
    _stored_recovery_point: int
    _copies_holes: bool
    """It is on disk that nothing is to be believed above the stored recovery point."""
    _hole_appended: bool
    """A batch was appended behind a hole since the last flush."""
    cuts: int
    """How often the log was cut since it was opened, where it is compacted."""

    if TYPE_CHECKING:

        @property
        def end(self) -> int: ...

        def _slot(self, offset: int) -> int: ...

        def _roll(self, base_offset: int) -> None: ...

        def flush(self) -> int: ...

    def _begin_compacted(self, recovery_point: int, *, copies_holes: bool) -> None:
        self.renaming = []
        self.cuts = 0
        self._copies_holes = copies_holes
        self._hole_appended = False
        if recovery_point < 0:
            # None was stored, all has been looked at: from now on holes can be told from tears.
            self._store.store_recovery_point(self._recovery_point)
            self._stored_recovery_point = self._recovery_point

    def configure(self, config: LogConfig) -> None:
        """Take other settings. Holes that are there are no damage before the log is read as one that has none."""
        self.config = config
        for segment in self._segments:
            segment.holes = config.compacted

    # -- holes ------------------------------------------------------------------------------------------------------

    def _begin_holes(self) -> None:
        """Batches are about to be appended, one of them behind a hole."""
        with self._storage:
            if not self._copies_holes:
                # What is there follows without a hole: it would not be believed any more unless it is flushed.
                if self._stored_recovery_point < self.flush():
                    self._store_recovery_point()
                self._store.store_holes(self._recovery_point)
                self._copies_holes = True
            self._hole_appended = True

    def _store_holes(self) -> None:
        if self._copies_holes and self._stored_recovery_point < self._recovery_point:
            self._store_recovery_point()

    def _end_holes(self) -> None:
        """What was appended is flushed, and the recovery point stored."""
        if self._copies_holes and not self._hole_appended:
            self._store.store_holes(None)
            self._copies_holes = False
        self._hole_appended = False

    def _store_recovery_point(self) -> None:
        self._store.store_recovery_point(self._recovery_point)
        self._stored_recovery_point = self._recovery_point

    def _before_hole(self, offset: int) -> int:
        """Where the log is to be cut that is to end by ``offset``: where the last batch before that ends.

        A restart would find no other end than that. Offsets in a hole behind it may have records on a leader that has
        not cleaned them; and were this replica to lead, its followers could never fetch up to an end in a hole.
        """
        if not self.config.compacted:
            return offset
        slot = self._slot(offset)
        segment = self._segments[slot]
        place = segment.find(offset)
        end = segment.end_before(place.position if place is not None else segment.size)
        while end == segment.base_offset and slot:
            slot -= 1
            segment = self._segments[slot]
            end = segment.next_offset
        return min(offset, end)

    def _cut_cleaned(self, offset: int) -> None:
        """The log is about to be cut: nothing at or above ``offset`` is cleaned, and readers have to look again."""
        self.cuts += 1
        self._store.lower_cleaned(offset)

    # -- the cleaner ------------------------------------------------------------------------------------------------

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, the active one last; to be read, and changed by this log only."""
        return tuple(self._segments)

    def roll(self) -> bool:
        """Begin a new segment, so that what is there can be cleaned; gives whether there is anything in the last."""
        with self._storage:
            if not self._segments[-1].size:
                return False
            self._roll(self.end)
            return True

    def new_cleaned(self, base_offset: int) -> Segment:
        """An empty segment to write cleaned records to, under names that are removed when the log is opened.

        The caller gives it to ``swap_in`` or closes it. Raises ``LogOffline``.
        """
        interval = self.config.index_interval_bytes
        with self._storage:
            for kind in (LOG_SUFFIX, INDEX_SUFFIX):  # a cleaning that was given up may have left one
                path = f"{self.folder}/{segment_name(base_offset)}{kind}{CLEANED}"
                if self._files.exists(path):
                    self._files.remove(path)
            return Segment(self._files, self.folder, base_offset, interval, create=True, holes=True, suffix=CLEANED)

    def write_cleaned(self, cleaned: Segment, batches: Sequence[tuple[int, bytes]]) -> None:
        """Append batches, each with its last offset, to a cleaned segment. Raises ``LogOffline``."""
        if batches:
            with self._storage:
                cleaned.append(batches)

    def swap_in(self, cleaned: Segment, replaced: Sequence[Segment]) -> None:
        """Put a cleaned segment, which has the base offset of the first of these, in their place.

        They follow one another, and the active one is not among them. All of the cleaned one survives a crash from
        here on, or nothing of it. Raises ``LogOffline``, and ``ValueError`` for other segments.
        """
        first = self._segments.index(replaced[0])
        if list(replaced) != self._segments[first : first + len(replaced)] or replaced[-1] is self._segments[-1]:
            raise ValueError(f"{self.folder}: sealed segments that follow one another can be replaced, no others")
        with self._storage:
            try:
                cleaned.seal()
            finally:
                cleaned.close()
            if self._stored_recovery_point < self._segments[-1].base_offset:
                self._store_recovery_point()
            close_all(replaced)
            bases = [each.base_offset for each in replaced]
            swap_in(self._files, self.folder, bases, self.removing, self.renaming)
            segment = Segment(
                self._files, self.folder, bases[0], self.config.index_interval_bytes, create=False, holes=True
            )
            self._segments[first : first + len(replaced)] = [segment]
            if not segment.load():
                for _ in segment.rebuilt():
                    pass
