"""What a log is to remote storage (KIP-405): the part of it that is there, and the segments that may go there.

A log whose earlier records are in remote storage begins at its log start offset like any other, but on this disk only
at its local log start offset. Both are in checkpoints of the data directory, and so is nothing else of it: the leader
epochs of the remote part are in the log's own checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..files.interface import Files, read_file
from .checkpoints import write_atomically
from .epochs import EpochEntry, LeaderEpochCache
from .errors import OffsetOutOfRange

if TYPE_CHECKING:
    from .segment import Segment

PRODUCERS_SUFFIX = ".snapshot"
"""Of what is known of the producers at an offset, as Kafka names the file. The log does not look into it."""
BEGUN = "remote-part.begun"
"""A file that is in the folder while a remote part is put before the log, or given up, until all of that is on disk."""


class OffsetStore(Protocol):
    """Where a log keeps the offsets that lie outside of its folder. Each returns once the value survives a crash."""

    def store_recovery_point(self, offset: int) -> None:
        """Everything below ``offset`` is synced; nothing above is known to be."""

    def store_log_start(self, offset: int) -> None:
        """Records below ``offset`` are deleted."""

    def store_local_start(self, offset: int) -> None:
        """Records from the log start up to ``offset`` are in remote storage alone (KIP-405)."""

    def lower_cleaned(self, offset: int) -> None:
        """Nothing at or above ``offset`` is cleaned any more; asked of compacted logs alone."""

    def store_holes(self, offset: int | None) -> None:
        """Holes are copied above ``offset``, the recovery point that is stored; with ``None`` no more are."""


class SealedSegment(NamedTuple):
    """A segment that is synced and gets no more records. Its offsets are from ``base_offset`` on and below ``end``."""

    base_offset: int
    end: int
    size: int


class RemotePart:
    """What ``Log`` has of this, over its own segments, epochs and offsets."""

    folder: str
    _files: Files
    _segments: list[Segment]
    _epochs: LeaderEpochCache
    _store: OffsetStore
    _storage: AbstractContextManager[None]
    _log_start: int
    _local_start: int
    _stored_local_start: int

    if TYPE_CHECKING:

        @property
        def end(self) -> int: ...

        def _slot(self, offset: int) -> int: ...

        def _start_at(self, offset: int) -> None: ...

        def _drop(self, segments: Sequence[Segment]) -> None: ...

    @property
    def local_start(self) -> int:
        """The local log start offset: records below, from the log start on, are in remote storage."""
        return self._local_start

    @property
    def sealed(self) -> tuple[SealedSegment, ...]:
        """The segments but the active one, which is the last."""
        return tuple(SealedSegment(each.base_offset, each.next_offset, each.size) for each in self._segments[:-1])

    def files_of(self, segment: SealedSegment) -> tuple[bytes, bytes]:
        """The bytes of a sealed segment and of its offset index, as they are on the disk. Raises ``KeyError``."""
        found = {each.base_offset: each for each in self._segments[:-1]}[segment.base_offset]
        with self._storage:
            return found.content()

    def delete_local_before(self, offset: int, producers: bytes = b"") -> None:
        """Remove the segments that lie wholly below ``offset``: their records are in remote storage, and still the log.

        ``producers`` is kept for ``read_producers``: it is of what is below the segment that holds ``offset``.
        The local log start becomes the base offset of the first that stays; the active segment always does. Raises
        ``OffsetOutOfRange`` above the log's end; the owner sees to it that all below is in remote storage.
        """
        with self._storage:
            if offset > self.end:
                raise OffsetOutOfRange(self.folder, offset, self._local_start, self.end)
            kept = self._slot(offset)
            base = self._segments[kept].base_offset
            if base <= self._local_start:
                return
            self._keep_producers(base, producers)
            self._store.store_local_start(base)
            self._stored_local_start = self._local_start = base
            self._drop(self._segments[:kept])
            del self._segments[:kept]

    def start_after_remote(
        self, log_start: int, offset: int, epochs: Sequence[EpochEntry], producers: bytes = b""
    ) -> None:
        """Remove everything; the log is empty, ends at ``offset``, and what is in remote storage comes before it.

        That begins at ``log_start``; ``epochs`` are its leader epochs, the first of them at or below ``log_start``, all
        of it below ``offset`` (KIP-405, "auxiliary state"; KIP-1023). A crash leaves all of that, or an empty log that
        begins at 0: one that began at ``offset`` would say of all that is remote that it was deleted. Raises
        ``ValueError`` for epochs that do not say that of each offset.
        """
        first = epochs[0].start_offset if epochs else offset
        rising = all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(epochs))
        if not (0 <= first <= log_start < offset and rising and epochs[-1].start_offset < offset):
            raise ValueError(f"epochs {list(epochs)} do not say that of each offset from {log_start} to {offset}")
        with self._storage, self._begun():
            self._start_at(offset)
            self._store.store_local_start(offset)
            self._stored_local_start = offset
            self._keep_producers(offset, producers)
            self._epochs.replace(epochs)
            self._epochs.truncate_from_start(log_start)
            self._store.store_log_start(log_start)
            self._log_start = log_start

    @contextmanager
    def _begun(self) -> Iterator[None]:
        """A crash in here leaves an empty log that begins at 0: no other offset is said to be the log start."""
        path = f"{self.folder}/{BEGUN}"
        within = self._files.exists(path)
        if not within:
            write_atomically(self._files, path, b"")
        yield
        if not within:
            self._remove_begun()

    def _begin_remote(self) -> None:
        """Once the log is open: begin anew where a crash has come in the midst of that."""
        if self._files.exists(f"{self.folder}/{BEGUN}"):
            self._start_at(0)
            self._remove_begun()

    def _remove_begun(self) -> None:
        self._files.remove(f"{self.folder}/{BEGUN}")
        self._files.fsync_dir(self.folder)

    def _cut_remote(self, offset: int, producers: bytes) -> None:
        """Cut the log below its local start: what is remote below the cut stays so.

        ``producers`` is kept for ``read_producers``, of what is below the cut.
        """
        if self._log_start < min(offset, self._local_start):
            kept = [entry for entry in self._epochs.entries if entry.start_offset < offset]
            self.start_after_remote(self._log_start, offset, kept, producers)
        else:
            self._start_at(offset)

    def read_producers(self) -> bytes:
        """What was kept of the producers below the local log start; nothing where it is not there."""
        path = self._producers_at(self._local_start)
        with self._storage:
            return read_file(self._files, path) if self._files.exists(path) else b""

    def _producers_at(self, offset: int) -> str:
        return f"{self.folder}/{offset:020d}{PRODUCERS_SUFFIX}"

    def _keep_producers(self, offset: int, data: bytes) -> None:
        """Put it on disk, and remove those of former local log starts."""
        kept = self._producers_at(self._local_start), self._producers_at(offset)
        for name in self._files.list(self.folder):
            path = f"{self.folder}/{name}"
            if name.endswith(PRODUCERS_SUFFIX) and path not in kept:
                self._files.remove(path)
        if data:
            write_atomically(self._files, self._producers_at(offset), data)

    def _give_up_remote(self) -> None:
        """Let the log start where it does on this disk, on the disk too, before that is made anew below."""
        if self._log_start < self._local_start:
            self._store.store_log_start(self._local_start)
            self._log_start = self._local_start
        if self._stored_local_start:
            self._store.store_local_start(0)
            self._stored_local_start = 0
