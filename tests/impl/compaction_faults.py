"""Defects of the cleaner and of its swap, of real kinds, as patches: crash points must show each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fencepost.impl.compaction import cleaner, manager
from fencepost.impl.compaction.offset_map import OffsetMap
from fencepost.impl.compaction.retention import Retention
from fencepost.impl.files import Files
from fencepost.impl.log import Log, compacted_part, recovery, swap
from fencepost.impl.log.segment import Segment

Fault = Callable[[pytest.MonkeyPatch], None]
FAULTS: dict[str, Fault] = {}


def fault(patch: Fault) -> Fault:
    FAULTS[patch.__name__] = patch
    return patch


@fault
def swap_not_completed(patch: pytest.MonkeyPatch) -> None:
    """What has the name ``.swap`` is thrown away when the log is opened."""

    def forget(files: Files, folder: str) -> list[str]:
        for name in files.list(folder):
            if name.endswith(swap.SWAP):
                files.remove(f"{folder}/{name}")
        return []

    patch.setattr(recovery, "complete_swaps", forget)


@fault
def cleaned_not_synced(patch: pytest.MonkeyPatch) -> None:
    """The cleaned segment gets its name before its records are on the disk."""
    seal = Segment.seal

    def sealed(self: Segment) -> None:
        if not self.path.endswith(swap.CLEANED):
            seal(self)

    patch.setattr(Segment, "seal", sealed)


@fault
def steps_of_the_swap_not_synced(patch: pytest.MonkeyPatch) -> None:
    """The folder is synced at the end alone, and a crash shows the steps in any order."""

    def rename(files: Files, _folder: str, names: Sequence[tuple[str, str]], *_: Any) -> None:
        for source, target in names:
            files.rename(source, target)

    patch.setattr(swap, "_rename", rename)


@fault
def replaced_segments_stay(patch: pytest.MonkeyPatch) -> None:
    """Completing a swap leaves the segments that it replaces."""

    def rename_alone(files: Files, folder: str) -> list[str]:
        for name in files.list(folder):
            if name.endswith(".log" + swap.SWAP):
                files.rename(f"{folder}/{name}", f"{folder}/{name.removesuffix(swap.SWAP)}")
        return []

    patch.setattr(recovery, "complete_swaps", rename_alone)


@fault
def recovery_point_not_stored_before_the_swap(patch: pytest.MonkeyPatch) -> None:
    """Opening the log then takes the cleaner's holes for damage."""
    patch.setattr(Log, "_store_recovery_point", lambda _self: None)


@fault
def cleaned_offset_stored_first(patch: pytest.MonkeyPatch) -> None:
    """How far the log is clean is stored before it is."""
    clean = cleaner.Cleaner.clean

    def hasty(self: Any, log: Log, *args: Any, **more: Any) -> Any:
        log._store.directory.store_cleaned("t", 0, more["bound"])  # type: ignore[attr-defined]
        return clean(self, log, *args, **more)

    patch.setattr(cleaner.Cleaner, "clean", hasty)


@fault
def cleaned_offset_not_lowered(patch: pytest.MonkeyPatch) -> None:
    """What is appended where the log was cut counts as clean."""
    patch.setattr(Log, "_cut_cleaned", lambda _self, _offset: None)


@fault
def map_of_the_dirty_part_alone(patch: pytest.MonkeyPatch) -> None:
    """A clean record that beats a dirty one does not take its place in the map, and both stay."""
    put = OffsetMap.put

    def forgetful(self: OffsetMap, key: bytes, rank: int, offset: int) -> bool:
        found = self.get(key)
        return True if found is not None and found[1] > offset else put(self, key, rank, offset)

    patch.setattr(OffsetMap, "put", forgetful)


@fault
def tombstone_gone_before_what_it_beats(patch: pytest.MonkeyPatch) -> None:
    """Under every strategy a tombstone goes at its horizon: what it beats may lie behind it."""
    keeps = Retention._keeps

    def eager(self: Retention, record: Any, expired: bool) -> bool:
        kept = keeps(self, record, expired)
        return kept and (record.has_value or not expired or record.offset >= self._mapped)

    patch.setattr(Retention, "_keeps", eager)


@fault
def tombstone_gone_at_once(patch: pytest.MonkeyPatch) -> None:
    """No delete horizon: a tombstone goes with what it beats, and a crash between two groups brings that back."""
    keeps = Retention._keeps

    def eager(self: Retention, record: Any, _expired: bool) -> bool:
        return keeps(self, record, True) and (record.has_value or record.offset >= self._mapped)

    patch.setattr(Retention, "_keeps", eager)


@fault
def cleaned_past_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """All that is not in the active segment is cleaned."""
    cleanable = manager.LogCleaner.cleanable

    def all_of_it(self: Any, key: Any, _high_watermark: int) -> Any:
        return cleanable(self, key, 1 << 40)

    patch.setattr(manager.LogCleaner, "cleanable", all_of_it)


@fault
def mapped_part_taken_for_all(patch: pytest.MonkeyPatch) -> None:
    """A map that is too small is taken for one of all that may be cleaned."""
    filled = cleaner.Cleaner._fill

    def whole(self: Any, log: Log, start: int, bound: int, *args: Any) -> int:
        filled(self, log, start, bound, *args)
        return bound

    patch.setattr(cleaner.Cleaner, "_fill", whole)


@fault
def any_hole_believed(patch: pytest.MonkeyPatch) -> None:
    """Opening a log takes a torn base offset for a hole."""
    patch.setattr(recovery._Recovery, "_is_hole", lambda _self, expected, found, _end: expected < found)


@fault
def holes_not_stored(patch: pytest.MonkeyPatch) -> None:
    """What a follower flushed behind a hole is not believed when the log is opened."""
    patch.setattr(Log, "_store_holes", lambda _self: None)


@fault
def truncation_inside_a_hole(patch: pytest.MonkeyPatch) -> None:
    """The log ends where it was cut, in memory: a restart finds another end."""
    patch.setattr(compacted_part.CompactedPart, "_before_hole", lambda _self, offset: offset)
