"""The leader epoch cache, by Kafka's rules."""

from __future__ import annotations

from itertools import pairwise

import pytest
from fencepost.impl.log import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEntry, LeaderEpochCache
from hypothesis import given
from hypothesis import strategies as st

UNDEFINED = UNDEFINED_EPOCH, UNDEFINED_OFFSET


def cache(*entries: tuple[int, int]) -> LeaderEpochCache:
    return LeaderEpochCache(EpochEntry(*entry) for entry in entries)


def plain_end_offset(entries: list[tuple[int, int]], epoch: int, end: int) -> tuple[int, int]:
    """The rule as its definition reads: the largest epoch at most the one asked for, and where the next one starts."""
    if epoch < 0 or not entries or epoch > max(e for e, _ in entries):
        return UNDEFINED
    later = [start for e, start in entries if e > epoch]
    below = [e for e, _ in entries if e <= epoch]
    return (max(below) if below else epoch), (min(later) if later else end)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int]]:
    epochs = sorted(draw(st.sets(st.integers(0, 12), max_size=6)))
    starts = sorted(draw(st.sets(st.integers(0, 30), min_size=len(epochs), max_size=len(epochs))))
    return list(zip(epochs, starts, strict=True))


@given(histories(), st.integers(-1, 14))
def test_end_offset_for_is_the_definition(entries: list[tuple[int, int]], epoch: int) -> None:
    assert cache(*entries).end_offset_for(epoch, 40) == plain_end_offset(entries, epoch, 40)


@pytest.mark.parametrize("shift", [-1, 1])
def test_the_definition_tells_an_off_by_one(monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    right = LeaderEpochCache.end_offset_for

    def wrong(self: LeaderEpochCache, epoch: int, end: int) -> tuple[int, int]:
        found, offset = right(self, epoch, end)
        return found, offset if found == UNDEFINED_EPOCH else offset + shift

    monkeypatch.setattr(LeaderEpochCache, "end_offset_for", wrong)
    with pytest.raises(AssertionError):
        test_end_offset_for_is_the_definition()


def test_the_cases_of_kafkas_documentation() -> None:
    epochs = cache((2, 10), (4, 20), (7, 30))
    assert epochs.end_offset_for(7, 35) == (7, 35)  # the latest: the log's end
    assert epochs.end_offset_for(5, 35) == (4, 30)  # unknown, between two: the one below ends where the next starts
    assert epochs.end_offset_for(1, 35) == (1, 10)  # below the first: its own number, and the first start
    assert epochs.end_offset_for(8, 35) == UNDEFINED
    assert epochs.end_offset_for(UNDEFINED_EPOCH, 35) == UNDEFINED
    assert cache().end_offset_for(0, 5) == UNDEFINED


@given(histories(), st.integers(0, 35))
def test_epoch_for(entries: list[tuple[int, int]], offset: int) -> None:
    below = [epoch for epoch, start in entries if start <= offset]
    assert cache(*entries).epoch_for(offset) == (below[-1] if below else UNDEFINED_EPOCH)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), max_size=12))
def test_assigning_keeps_both_columns_rising(entries: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochCache()
    for epoch, start in entries:
        before = epochs.latest
        changed = epochs.assign(epoch, start)
        if before and before.epoch == epoch and start >= before.start_offset:
            assert not changed and epochs.latest == before
        else:
            assert changed and epochs.latest == EpochEntry(epoch, start)
        found = epochs.entries
        assert all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(found))


def test_a_contradicting_epoch_drops_what_it_contradicts() -> None:
    epochs = cache((1, 0), (2, 10), (3, 20))
    assert epochs.assign(4, 10)
    assert epochs.entries == ((1, 0), (4, 10))
    assert epochs.assign(4, 5)  # found to start earlier
    assert epochs.entries == ((1, 0), (4, 5))


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_negative_numbers_are_refused(entry: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="may be negative"):
        LeaderEpochCache().assign(*entry)


@given(histories(), st.integers(0, 35), st.integers(0, 35))
def test_cutting_both_ends_leaves_the_epochs_of_what_is_left(
    entries: list[tuple[int, int]], start: int, end: int
) -> None:
    epochs, whole = cache(*entries), cache(*entries)
    epochs.truncate_from_end(end)
    epochs.truncate_from_start(start)
    assert [epochs.epoch_for(o) for o in range(start, end)] == [whole.epoch_for(o) for o in range(start, end)]
    assert all(entry.start_offset < end or entry.start_offset == start for entry in epochs.entries)
    assert all(entry.start_offset >= start for entry in epochs.entries)


def test_the_file_is_written_by_every_change_and_only_then() -> None:
    written: list[list[tuple[int, int]]] = []
    epochs = LeaderEpochCache((), lambda entries: written.append([tuple(entry) for entry in entries]))  # type: ignore[misc]
    epochs.assign(1, 0)
    epochs.assign(1, 5)
    epochs.assign(3, 8)
    epochs.truncate_from_end(9)
    epochs.truncate_from_start(0)
    assert written == [[(1, 0)], [(1, 0), (3, 8)]]
    epochs.truncate_from_start(4)
    epochs.truncate_from_end(8)
    epochs.clear()
    epochs.clear()
    assert written[2:] == [[(1, 4), (3, 8)], [(1, 4)], []]


def test_cutting_at_no_offset_leaves_everything() -> None:
    """``UNDEFINED_OFFSET`` is no end of a log (``LeaderEpochFileCache.truncateFromEnd``)."""
    written: list[tuple[tuple[int, int], ...]] = []
    epochs = LeaderEpochCache([EpochEntry(2, 0), EpochEntry(4, 20)], lambda found: written.append(tuple(found)))
    epochs.truncate_from_end(UNDEFINED_OFFSET)
    assert epochs.entries == ((2, 0), (4, 20)) and not written
    epochs.truncate_from_end(0)
    assert epochs.entries == () and written == [()]
