"""What the remote log metadata says of one partition, record by record (``RemoteSegments``)."""

from __future__ import annotations

from uuid import UUID

import pytest
from fencepost.impl.log.epochs import EpochEntry, LeaderEpochCache
from fencepost.impl.tiering.segments import RemoteObject, RemoteSegment, RemoteSegments, SegmentState

TOPIC = UUID(int=1)


def segments(*copies: tuple[int, int, int, bool]) -> RemoteSegments:
    """Copies of one leader epoch each: epoch, first and last offset, and whether the copy was finished."""
    found = RemoteSegments()
    for number, (epoch, first, last, finished) in enumerate(copies, 10):
        entries = (EpochEntry(epoch, first),)
        assert found.started(RemoteSegment("t", TOPIC, 0, UUID(int=number), first, last, 0, 0, 0, entries, 100))
        if finished:
            assert found.updated(UUID(int=number), SegmentState.COPY_SEGMENT_FINISHED, (RemoteObject("log", 100, 0),))
    return found


def delete(found: RemoteSegments, number: int) -> None:
    for state in (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED):
        assert found.updated(UUID(int=number), state)


@pytest.mark.parametrize(("end", "highest"), [(2, 1), (3, 1), (4, 3), (9, 3)])
def test_what_was_never_copied_is_not_the_highest_offset(end: int, highest: int) -> None:
    """A leader has had offset 2 deleted before it was copied; one that is elected uncleanly has it, and no more."""
    found = segments((0, 1, 1, True), (0, 2, 2, False), (0, 3, 3, True))
    lineage = LeaderEpochCache([EpochEntry(0, 1), EpochEntry(2, end)])
    assert found.highest_offset(lineage, end) == highest


def test_what_was_copied_counts_though_it_is_deleted_since() -> None:
    found = segments((0, 1, 1, True), (0, 2, 2, True), (0, 3, 3, True))
    delete(found, 11)
    assert found.highest_offset(LeaderEpochCache([EpochEntry(0, 1)]), 3) == 2


def test_copies_may_overlap_and_come_in_any_order() -> None:
    found = segments((1, 6, 9, True), (1, 2, 3, True), (1, 3, 5, True), (0, 0, 1, True))
    lineage = LeaderEpochCache([EpochEntry(0, 0), EpochEntry(1, 2)])
    assert [found.highest_offset(lineage, end) for end in (3, 6, 7, 10, 20)] == [2, 5, 6, 9, 9]


def test_an_epoch_of_which_the_lineage_has_none_that_was_copied_is_passed_over() -> None:
    found = segments((0, 0, 1, True), (1, 4, 5, True))
    lineage = LeaderEpochCache([EpochEntry(0, 0), EpochEntry(1, 2)])
    assert found.highest_offset(lineage, 4) == 1
    assert found.highest_offset(lineage, 5) == 4
    assert segments().highest_offset(lineage, 5) == -1
