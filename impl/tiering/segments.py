"""The remote segments of one partition, as the metadata log tells of them (``RemoteLogMetadataCache`` in Kafka).

A segment of a leader that was deposed in an unclean election has records that are in no later leader's log. So nothing
is looked up by an offset alone: who asks gives the leader epoch that the offset has in its own lineage, and a segment
has it only where that epoch wrote it there, too. Two logs with the same epoch at one offset are the same up to there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from ..log.epochs import EpochEntry, LeaderEpochCache

LOG, INDEX, EPOCHS, PRODUCERS = "log", "index", "leader-epoch-checkpoint", "snapshot"
"""The parts of a segment: records, offset index, leader epochs from the log start on, producers at its end."""
PARTS = LOG, INDEX, EPOCHS, PRODUCERS


class SegmentState(IntEnum):
    """How far copying or deleting it has come (``RemoteLogSegmentState``)."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


_AFTER = {
    SegmentState.COPY_SEGMENT_STARTED: (SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_STARTED),
    SegmentState.COPY_SEGMENT_FINISHED: (SegmentState.DELETE_SEGMENT_STARTED,),
    SegmentState.DELETE_SEGMENT_STARTED: (SegmentState.DELETE_SEGMENT_FINISHED,),
    SegmentState.DELETE_SEGMENT_FINISHED: (),
}


class RemoteObject(NamedTuple):
    """An object of the store: which part it is, its size in bytes, its CRC-32C."""

    part: str
    size: int
    crc: int


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """One copy of a segment: records from ``start_offset`` to ``end_offset``, both included. Times in milliseconds."""

    topic: str
    topic_id: UUID
    partition: int
    id: UUID
    start_offset: int
    end_offset: int
    broker: int
    max_timestamp: int
    event_timestamp: int
    epochs: tuple[EpochEntry, ...]
    """Leader epochs of its records, the first from ``start_offset`` on."""
    size: int
    """Bytes of its records."""
    state: SegmentState = SegmentState.COPY_SEGMENT_STARTED
    objects: tuple[RemoteObject, ...] = ()
    """Once it is copied."""

    def object_name(self, part: str) -> str:
        """The name of a part's object: the same for all who know the segment."""
        return f"{self.topic}-{self.partition}-{self.topic_id}/{self.start_offset:020d}-{self.id}.{part}"

    def object(self, part: str) -> RemoteObject | None:
        """What is known of a part's object."""
        return next((each for each in self.objects if each.part == part), None)

    def range_of(self, epoch: int) -> tuple[int, int] | None:
        """The first and last offset that an epoch has in it."""
        for slot, entry in enumerate(self.epochs):
            if entry.epoch == epoch:
                following = self.epochs[slot + 1].start_offset if slot + 1 < len(self.epochs) else self.end_offset + 1
                return entry.start_offset, following - 1
        return None


class RemoteSegments:
    """All copies of one partition's segments that are not deleted."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Know of nothing, as before the first record of the log."""
        self._segments: dict[UUID, RemoteSegment] = {}
        self._ordered: list[RemoteSegment] | None = None
        """All of them by their first offsets; made when it is asked for, as ``_finished`` and ``_epochs`` are."""
        self._finished: list[RemoteSegment] = []
        self._epochs: dict[int, list[RemoteSegment]] = {}
        """Of each epoch those that can be read and have records of it."""
        self._deleted: set[UUID] = set()
        """A record that comes once more, and late, must not bring one of these back."""
        self._gone: dict[int, list[tuple[int, int]]] = {}
        """By leader epoch, the first and last offsets that were copied and are deleted."""
        self._copied: dict[int, list[tuple[int, int]]] = {}
        """Of each leader epoch the first and last offsets that were copied, be they deleted since or not; those that
        follow one another, or overlap, as one, in their order."""

    def __iter__(self) -> Iterator[RemoteSegment]:
        return iter(tuple(self._in_order()))

    def _in_order(self) -> list[RemoteSegment]:
        if self._ordered is None:
            self._ordered = sorted(self._segments.values(), key=lambda each: (each.start_offset, each.id))
            self._finished = [each for each in self._ordered if each.state is SegmentState.COPY_SEGMENT_FINISHED]
            self._epochs = {}
            for each in self._finished:
                for entry in each.epochs:
                    self._epochs.setdefault(entry.epoch, []).append(each)
        return self._ordered

    def __len__(self) -> int:
        return len(self._segments)

    def get(self, segment: UUID) -> RemoteSegment | None:
        """One by its id; ``None`` where it is not known, or is deleted."""
        return self._segments.get(segment)

    def was_deleted(self, segment: UUID) -> bool:
        """Whether it was there once."""
        return segment in self._deleted

    # -- the log of them --------------------------------------------------------------------------------------------

    def started(self, segment: RemoteSegment) -> bool:
        """A leader has begun to copy a segment; gives whether that is news."""
        if segment.id in self._segments or segment.id in self._deleted:
            return False
        self._segments[segment.id] = segment
        self._ordered = None
        return True

    def updated(
        self,
        segment: UUID,
        state: SegmentState,
        objects: tuple[RemoteObject, ...] = (),
        *,
        unfinished: bool = False,
    ) -> bool:
        """A segment has come into a state; gives whether it may come there from the one that it was in.

        The first that is said counts: a copy that somebody has begun to delete cannot be finished any more, and one
        that is finished is not deleted by who has found it ``unfinished``.
        """
        known = self._segments.get(segment)
        if known is None or state not in _AFTER[known.state]:
            return False
        if unfinished and known.state is SegmentState.COPY_SEGMENT_FINISHED:
            return False
        self._ordered = None
        if state is SegmentState.DELETE_SEGMENT_FINISHED:
            del self._segments[segment]
            self._deleted.add(segment)
            for entry in known.epochs if known.objects else ():
                gone = known.range_of(entry.epoch)
                assert gone is not None
                self._gone.setdefault(entry.epoch, []).append(gone)
            return True
        self._segments[segment] = replace(known, state=state, objects=objects or known.objects)
        if state is SegmentState.COPY_SEGMENT_FINISHED:
            for entry in known.epochs:
                found = known.range_of(entry.epoch)
                assert found is not None
                self._note_copied(entry.epoch, *found)
        return True

    def _note_copied(self, epoch: int, first: int, last: int) -> None:
        apart = []
        for begin, end in self._copied.get(epoch, ()):
            if end + 1 < first or last + 1 < begin:
                apart.append((begin, end))
            else:
                first, last = min(first, begin), max(last, end)
        self._copied[epoch] = sorted([*apart, (first, last)])

    # -- by lineage -------------------------------------------------------------------------------------------------

    def finished(self) -> list[RemoteSegment]:
        """Those that can be read, by their first offsets."""
        self._in_order()
        return list(self._finished)

    def find(self, epoch: int, offset: int) -> RemoteSegment | None:
        """One that has the record that ``epoch`` wrote at ``offset``; of several, the one that goes on the longest."""
        best: RemoteSegment | None = None
        self._in_order()
        for each in self._epochs.get(epoch, ()):
            if each.start_offset > offset:
                break
            found = each.range_of(epoch)
            if (
                found is not None
                and found[0] <= offset <= found[1]
                and (best is None or best.end_offset < each.end_offset)
            ):
                best = each
        return best

    def ending_at(self, epoch: int, offset: int) -> RemoteSegment | None:
        """One whose last record is the one that ``epoch`` wrote at ``offset``."""
        self._in_order()
        return next(
            (
                each
                for each in self._epochs.get(epoch, ())
                if (each.epochs[-1].epoch, each.end_offset) == (epoch, offset)
            ),
            None,
        )

    def gone_at(self, epoch: int, offset: int) -> int | None:
        """The last offset of what was deleted with the record that ``epoch`` wrote at ``offset``, or is about to be.

        ``None`` where no copy that had it is deleted.
        """
        deleting = SegmentState.DELETE_SEGMENT_STARTED
        ranges = [each.range_of(epoch) for each in self._segments.values() if each.state is deleting and each.objects]
        found = [
            (first, last)
            for first, last in (*filter(None, ranges), *self._gone.get(epoch, ()))
            if first <= offset <= last
        ]
        return max((last for _, last in found), default=None)

    def highest_offset(self, lineage: LeaderEpochCache, end: int) -> int:
        """The last offset of a lineage that was ever copied, -1 where none was (``findHighestRemoteOffset``).

        An epoch may have more records in a deposed leader's segments than it has in this lineage: those do not count.
        (Kafka takes the epoch's last one then, whether that was copied or not: it may have been deleted before.)
        """
        for entry in reversed(lineage.entries):
            epoch_end = lineage.end_offset_for(entry.epoch, end)[1]
            for first, last in reversed(self._copied.get(entry.epoch, ())):
                if first < epoch_end:
                    return min(last, epoch_end - 1)
        return -1
