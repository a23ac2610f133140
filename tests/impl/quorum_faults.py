"""Defects of a quorum node, each planted by patching one thing; what finds them is in ``test_quorum_crashes.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fencepost.impl.log.log import Log
from fencepost.impl.quorum import SnapshotId
from fencepost.impl.quorum.leader import Leader
from fencepost.impl.quorum.node import QuorumNode
from fencepost.impl.quorum.replica import Replica
from fencepost.impl.quorum.snapshots import PartialSnapshot
from fencepost.impl.quorum.state_file import Ballot, QuorumStateFile

Patch = pytest.MonkeyPatch


def renamed_before_synced(patch: Patch) -> None:
    def finish(self: Any) -> None:
        self._file.close()
        self._files.rename(self._path, f"{self._folder}/{self.id.file_name}")
        self._files.fsync_dir(self._folder)

    patch.setattr(PartialSnapshot, "finish", finish)


def name_not_synced(patch: Patch) -> None:
    def finish(self: Any) -> None:
        self._file.fsync()
        self._file.close()
        self._files.rename(self._path, f"{self._folder}/{self.id.file_name}")

    patch.setattr(PartialSnapshot, "finish", finish)


def written_in_place(patch: Patch) -> None:
    begin = PartialSnapshot.__init__

    def init(self: Any, files: Any, folder: str, snapshot: SnapshotId) -> None:
        begin(self, files, folder, snapshot)
        files.remove(self._path)
        self._path = f"{folder}/{snapshot.file_name}"
        self._file = files.open(self._path, create=True)
        self._file.truncate(0)

    patch.setattr(PartialSnapshot, "__init__", init)
    patch.setattr(PartialSnapshot, "discard", lambda self: self._file.close())


def boots_without_validation(patch: Patch) -> None:
    validate = Replica._validate

    def trusting(self: Any) -> None:
        if self.log.log_start > self.snapshots.latest_end:
            self.high_watermark = self.applied = self.log.log_start
            return
        validate(self)

    patch.setattr(Replica, "_validate", trusting)


def lbo_past_snapshot(patch: Patch) -> None:
    def advance(self: Any, offset: int) -> bool:
        if self.high_watermark <= self.begin:
            return False
        self.log.delete_before(self.high_watermark)
        return True

    patch.setattr(Replica, "advance_begin", advance)


def acknowledges_before_sync(patch: Patch) -> None:
    patch.setattr(Replica, "flush", lambda self: None)


def vote_not_stored(patch: Patch) -> None:
    def store(self: Any, ballot: Ballot) -> None:
        self.ballot = ballot

    patch.setattr(QuorumStateFile, "store", store)


def counts_half_fetched(patch: Patch) -> None:
    fetched = Leader.fetched

    def counting(self: Any, replica: int, offset: int, *, incomplete: bool) -> None:
        fetched(self, replica, offset, incomplete=False)

    patch.setattr(Leader, "fetched", counting)


def deletes_the_snapshot_at_the_lbo(patch: Patch) -> None:
    def delete(self: Any) -> tuple[SnapshotId, ...]:
        old = tuple(each for each in self.snapshots.ids if each.end_offset <= self.begin)
        self.snapshots.delete(old)
        return old

    patch.setattr(Replica, "delete_old_snapshots", delete)


def snapshot_past_high_watermark(patch: Patch) -> None:
    raised = Replica.raise_high_watermark

    def all_of_it(self: Any, offset: int) -> bool:
        return raised(self, self.end if offset > self.high_watermark else offset)

    patch.setattr(Replica, "raise_high_watermark", all_of_it)


def does_not_truncate(patch: Patch) -> None:
    patch.setattr(Replica, "matches", lambda self, offset, last: offset <= self.end)


def votes_for_anyone(patch: Patch) -> None:
    grant = QuorumNode.grant

    def granting(self: Any, candidate: int, position: tuple[int, int]) -> bool:
        return grant(self, candidate, (1 << 40, 0))

    patch.setattr(QuorumNode, "grant", granting)


def part_taken_for_whole(patch: Patch) -> None:
    taken = Replica.take_chunk

    def take(self: Any, position: int, data: bytes, *, more: bool) -> bool:
        return taken(self, position, data, more=False)

    patch.setattr(Replica, "take_chunk", take)
    patch.setattr(Replica, "_load", lambda self, snapshot, data: setattr(self, "applied", snapshot.end_offset))


def lbo_stored_late(patch: Patch) -> None:
    deleted = Log.delete_before

    def delete(self: Any, offset: int) -> None:
        store = self._store.store_log_start
        object.__setattr__(self, "_store", _Forgetful(self._store))
        try:
            deleted(self, offset)
        finally:
            self._store = self._store.inner
        store(offset)

    patch.setattr(Log, "delete_before", delete)


class _Forgetful:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def store_log_start(self, offset: int) -> None:
        """Forget it."""

    def store_recovery_point(self, offset: int) -> None:
        self.inner.store_recovery_point(offset)


CRASH_FAULTS: dict[str, Callable[[Patch], None]] = {
    each.__name__: each
    for each in (
        renamed_before_synced,
        name_not_synced,
        written_in_place,
        boots_without_validation,
        lbo_past_snapshot,
        acknowledges_before_sync,
        vote_not_stored,
        deletes_the_snapshot_at_the_lbo,
        lbo_stored_late,
    )
}
"""What crashes find."""

CHAOS_FAULTS: dict[str, Callable[[Patch], None]] = {
    each.__name__: each
    for each in (
        counts_half_fetched,
        snapshot_past_high_watermark,
        does_not_truncate,
        votes_for_anyone,
        part_taken_for_whole,
    )
}
"""What a bad network finds."""
