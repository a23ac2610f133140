"""Planted defects of tiered storage: ways to lose or mix up records, that the crash stories must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fencepost.impl.log import EpochEntry
from fencepost.impl.tiering import filesystem, parts
from fencepost.impl.tiering.bootstrap import Bootstrap
from fencepost.impl.tiering.records import encode_update as _encode_update
from fencepost.impl.tiering.segments import LOG, RemoteObject

Patch = pytest.MonkeyPatch


def _finished_without_its_records(patch: Patch) -> None:
    """The metadata log says that a copy is finished, and one of its objects is not there."""
    whole = parts.copy

    def copy(store: Any, segment: Any, source: Any) -> tuple[RemoteObject, ...]:
        objects = whole(store, segment, source)
        store.delete(segment.object_name(LOG))
        return objects

    patch.setattr(parts, "copy", copy)
    patch.setattr(parts, "verify", lambda *_: None)


def _whoever_clears_up_takes_finished_copies_along(patch: Patch) -> None:
    """A deletion of an unfinished copy counts for one that was finished meanwhile."""

    def encode(*args: Any, unfinished: bool = False, **more: Any) -> bytes:
        return _encode_update(*args, **more)

    patch.setattr("fencepost.impl.tiering.expiry.encode_update", encode)


def _objects_that_are_not_synced(patch: Patch) -> None:
    """The store says that an object is written, and its disk has it not yet."""

    def close(self: Any) -> None:
        self._file.close()
        self._files.rename(self._path + filesystem.TEMPORARY, self._path)

    patch.setattr(filesystem._Writer, "close", close)


def _epochs_from_the_local_start_alone(patch: Patch) -> None:
    """A follower that begins after remote storage knows the epoch of its first record, and of no earlier one."""

    def begin(self: Any, log_start: int, offset: int, epochs: list[EpochEntry], producers: bytes) -> None:
        self._partition.start_after_remote(log_start, offset, [EpochEntry(epochs[-1].epoch, 0)], producers)

    patch.setattr(Bootstrap, "_begin", begin)


CRASH_FAULTS: dict[str, Callable[[Patch], None]] = {
    "a copy is finished without its records": _finished_without_its_records,
    "a finished copy is cleared up as unfinished": _whoever_clears_up_takes_finished_copies_along,
    "objects are not synced": _objects_that_are_not_synced,
    "epochs are those from the local start on": _epochs_from_the_local_start_alone,
}
"""By what is wrong."""
