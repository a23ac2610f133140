"""Snapshot files beside the log: ``<20 digits>-<10 digits>.checkpoint``, end offset and epoch (``Snapshots`` in Kafka).

A snapshot is written under its name with ``.part`` behind it, synced, renamed, and its folder synced: whatever has the
name without ``.part`` is whole. Names have the exclusive end offset, as Kafka's; the text and the messages have the
last offset. ``SnapshotId`` translates between the two, and nobody else does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from ..files.interface import File, Files
from ..log.batch import LENGTH_END, PREFIX, Batch, read_batch
from ..log.segment import Window
from ..wire.quorum import OffsetAndEpoch

CHECKPOINT_SUFFIX = ".checkpoint"
PART_SUFFIX = ".part"

_AHEAD = 1 << 20
"""Bytes of a snapshot that are read at once."""
_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """``end_offset``: one more than the last offset that is included; ``epoch``: that of the record there."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The name of the whole file."""
        return f"{self.end_offset:020d}-{self.epoch:010d}{CHECKPOINT_SUFFIX}"

    @property
    def in_messages(self) -> OffsetAndEpoch:
        """As requests and responses name it: by the last offset."""
        return OffsetAndEpoch(self.end_offset - 1, self.epoch)

    @classmethod
    def from_message(cls, named: OffsetAndEpoch) -> SnapshotId:
        """The id of what a request or response names."""
        return cls(named.offset + 1, named.epoch)


def parse_name(name: str) -> SnapshotId | None:
    """The id in a file's name; ``None`` where it is no snapshot's."""
    match = _NAME.fullmatch(name)
    return SnapshotId(int(match[1]), int(match[2])) if match else None


def batches_of(file: File, path: str) -> Iterator[Batch]:
    """All batches of a file, a piece of which at a time is in memory. Raises ``CorruptBatch`` as ``read_batches``."""
    window = Window(file, _AHEAD)
    position = 0
    while position < file.size:
        head = window.get(position, PREFIX.size)
        length = PREFIX.unpack(head)[1] if len(head) == PREFIX.size else 0
        batch = read_batch(window.get(position, max(LENGTH_END + length, PREFIX.size)), 0, path, shift=position)
        yield batch
        position += batch.size


class PartialSnapshot:
    """A snapshot that is being written, by the state machine or from a leader's bytes."""

    def __init__(self, files: Files, folder: str, snapshot: SnapshotId) -> None:
        self.id = snapshot
        self._files = files
        self._folder = folder
        self._path = f"{folder}/{snapshot.file_name}{PART_SUFFIX}"
        self._file: File = files.open(self._path, create=True)
        self._closed_at: int | None = None
        try:
            self._file.truncate(0)
        except OSError:
            self._file.close()
            raise

    @property
    def size(self) -> int:
        """Bytes so far: the position of the next."""
        return self._file.size if self._closed_at is None else self._closed_at

    def append(self, data: bytes) -> None:
        """Write at the end."""
        self._file.append(data)

    def restart(self) -> None:
        """Begin again with the first byte."""
        self._file.truncate(0)

    @property
    def file(self) -> File:
        """To read what there is of it."""
        return self._file

    def finish(self) -> None:
        """Make it whole: it survives a crash on return."""
        self._file.fsync()
        self._file.close()
        self._files.rename(self._path, f"{self._folder}/{self.id.file_name}")
        self._files.fsync_dir(self._folder)

    def discard(self) -> None:
        """Remove it. A crash may bring it back; opening the folder removes it then."""
        self.abandon()
        self._files.remove(self._path)

    def abandon(self) -> None:
        """Close the file as it is; opening the folder removes it."""
        if self._closed_at is None:
            self._closed_at = 0
            with suppress(OSError):
                self._closed_at = self._file.size
            self._file.close()


class SnapshotStore:
    """The whole snapshots in a partition's folder."""

    def __init__(self, files: Files, folder: str) -> None:
        """Look what is there; partial snapshots, which a crash left, are removed. Raises ``OSError``."""
        self._files = files
        self._folder = folder
        names = files.list(folder)
        partial = [name for name in names if name.endswith(CHECKPOINT_SUFFIX + PART_SUFFIX)]
        for name in partial:
            files.remove(f"{folder}/{name}")
        self._ids = sorted(found for found in map(parse_name, names) if found is not None)
        # A process that ended between a renaming and this has left a name that a crash could still take away.
        files.fsync_dir(folder)

    @property
    def ids(self) -> tuple[SnapshotId, ...]:
        """In rising order."""
        return tuple(self._ids)

    @property
    def latest(self) -> SnapshotId | None:
        """The one that reaches furthest."""
        return self._ids[-1] if self._ids else None

    @property
    def latest_end(self) -> int:
        """The end offset of the latest, 0 where there is none."""
        return self._ids[-1].end_offset if self._ids else 0

    def path(self, snapshot: SnapshotId) -> str:
        """Where the whole file is."""
        return f"{self._folder}/{snapshot.file_name}"

    def epoch_at_end(self, end_offset: int) -> int:
        """The epoch of the record before ``end_offset``, by a snapshot that ends there; -1 where none does."""
        return next((each.epoch for each in self._ids if each.end_offset == end_offset), -1)

    @contextmanager
    def opened(self, snapshot: SnapshotId) -> Iterator[File]:
        """The file, to be read. Raises ``OSError`` where it is not there."""
        file = self._files.open(self.path(snapshot))
        try:
            yield file
        finally:
            file.close()

    def size(self, snapshot: SnapshotId) -> int:
        """Bytes. Raises ``OSError`` where it is not there."""
        with self.opened(snapshot) as file:
            return file.size

    def read_at(self, snapshot: SnapshotId, position: int, max_bytes: int) -> bytes:
        """At most ``max_bytes`` from ``position`` on."""
        with self.opened(snapshot) as file:
            return file.pread(position, max_bytes)

    def begin(self, snapshot: SnapshotId) -> PartialSnapshot:
        """Begin to write a snapshot."""
        return PartialSnapshot(self._files, self._folder, snapshot)

    def add(self, partial: PartialSnapshot) -> None:
        """Finish a snapshot: from now on it is one of the whole ones."""
        partial.finish()
        if partial.id not in self._ids:
            self._ids = sorted([*self._ids, partial.id])

    def delete(self, snapshots: Iterable[SnapshotId]) -> None:
        """Delete them; they are gone for good on return."""
        gone = [each for each in snapshots if each in self._ids]
        for each in gone:
            self._files.remove(self.path(each))
            self._ids.remove(each)
        if gone:
            self._files.fsync_dir(self._folder)
