"""What a log asks of a file system, and what it may rely on.

The promises are POSIX's and no more, because a log that leans on what one file system happens to do loses records on
the next:

- what was written is there after a crash only once ``File.fsync`` has returned; until then any part of it may be;
- a name that was created, renamed or removed is so after a crash only once ``Files.fsync_dir`` of the folder that holds
  the name has returned, however often the file itself was synced;
- a rename puts one whole file in the place of another: a crash leaves the name with the one or the other.

Paths are relative to the root of the implementation, with ``/`` between the parts. Every failure is an ``OSError``
with its ``errno``, as the operating system gives it.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class File(Protocol):
    """An open file: read anywhere, written at its end."""

    @property
    def path(self) -> str:
        """The path that it was opened by."""

    @property
    def size(self) -> int:
        """Bytes in the file, those that are not synced included."""

    def append(self, data: bytes) -> int:
        """Write all of ``data`` at the end; gives the byte that it begins at.

        On failure (``ENOSPC``, ``EIO``) any part of ``data`` may have been written.
        """

    def pread(self, position: int, length: int) -> bytes:
        """At most ``length`` bytes from ``position``; fewer only where the file ends."""

    def truncate(self, size: int) -> None:
        """Cut the file to its first ``size`` bytes; it never grows by this."""

    def fsync(self) -> None:
        """Return once all that was written or cut survives a crash.

        After a failure nobody knows what survives, and a later ``fsync`` that succeeds does not say so either: Linux
        marks the pages clean all the same. So the caller must give the file up and read it again.
        """

    def close(self) -> None:
        """Give the file back. What is not synced stays so."""


@runtime_checkable
class Files(Protocol):
    """A folder tree."""

    def open(self, path: str, *, create: bool = False) -> File:
        """The file at ``path``; with ``create`` an empty one where there is none, else ``FileNotFoundError``."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder at ``path``."""

    def list(self, folder: str) -> list[str]:
        """The names in ``folder``, sorted; ``""`` is the root. ``FileNotFoundError`` where there is no such folder."""

    def make_dir(self, folder: str) -> None:
        """Make ``folder``; nothing where there is one."""

    def rename(self, source: str, target: str) -> None:
        """Give the file at ``source`` the name ``target``, in place of a file that has it."""

    def remove(self, path: str) -> None:
        """Remove the name of a file, or a folder with nothing in it."""

    def fsync_dir(self, folder: str) -> None:
        """Return once every name in ``folder`` survives a crash; ``""`` is the root."""


def read_file(files: Files, path: str) -> bytes:
    """All bytes of the file at ``path``."""
    file = files.open(path)
    try:
        return file.pread(0, file.size)
    finally:
        file.close()
