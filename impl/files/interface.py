"""File system interface of a log, and its guarantees.

The guarantees are POSIX's and no more. A log that relies on the habits of one file system loses records on the next.

- Writes survive a crash only once ``File.fsync`` has returned; until then any part of them may survive;
- a created, renamed or removed name survives a crash only once ``Files.fsync_dir`` of its folder has returned,
  however often the file itself was synced;
- a rename is atomic: after a crash the name has either the whole old file or the whole new one.

Paths are relative to the root of the implementation, with ``/`` between the parts. Every failure is an ``OSError``
with its ``errno``, as the operating system gives it.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class File(Protocol):
    """Open file: random reads, appends at the end."""

    @property
    def path(self) -> str:
        """Path given to ``Files.open``."""

    @property
    def size(self) -> int:
        """Size in bytes, including unsynced bytes."""

    def append(self, data: bytes) -> int:
        """Write all of ``data`` at the end and return its start position in bytes.

        On failure (``ENOSPC``, ``EIO``) any part of ``data`` may have been written.
        """

    def pread(self, position: int, length: int) -> bytes:
        """Read ``length`` bytes from ``position``; fewer only at the end of the file."""

    def truncate(self, size: int) -> None:
        """Cut the file to its first ``size`` bytes; never extend it."""

    def fsync(self) -> None:
        """Return once all earlier writes and truncations survive a crash.

        After a failure the surviving bytes are unknown. A later successful ``fsync`` proves nothing, because Linux
        marks the pages clean all the same. The caller must close the file and read it again.
        """

    def close(self) -> None:
        """Close the file without syncing it."""


@runtime_checkable
class Files(Protocol):
    """Folder tree below one root."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open the file at ``path``.

        If it does not exist, ``create`` makes an empty one; without ``create``, raises ``FileNotFoundError``.
        """

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists at ``path``."""

    def list(self, folder: str) -> list[str]:
        """Return the sorted names in ``folder``; ``""`` is the root.

        Raises ``FileNotFoundError`` if the folder does not exist.
        """

    def make_dir(self, folder: str) -> None:
        """Make ``folder`` unless it exists."""

    def rename(self, source: str, target: str) -> None:
        """Rename ``source`` to ``target``, replacing any file there."""

    def remove(self, path: str) -> None:
        """Remove a file's name or an empty folder."""

    def fsync_dir(self, folder: str) -> None:
        """Return once every name in ``folder`` survives a crash; ``""`` is the root."""


def read_file(files: Files, path: str) -> bytes:
    """Read the whole file at ``path``."""
    file = files.open(path)
    try:
        return file.pread(0, file.size)
    finally:
        file.close()
