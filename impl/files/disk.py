"""``Files`` in a folder of the operating system."""

from __future__ import annotations

import os
from pathlib import Path


class DiskFile:
    """Open file without a buffer: only a crash of the machine loses its writes."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self.path = path
        self._size = os.fstat(descriptor).st_size

    @property
    def size(self) -> int:
        """Size in bytes, cached: each append reads it, and only the log writes its files."""
        return self._size

    def append(self, data: bytes) -> int:
        """Write at the end; retry after a short write, so a full disk raises ``OSError``."""
        start = self._size
        view = memoryview(data)
        while view:
            written = os.pwrite(self._descriptor, view, self._size)
            self._size += written
            view = view[written:]
        return start

    def pread(self, position: int, length: int) -> bytes:
        """Read from ``position``; retry after a short read until the end of the file."""
        length = min(length, self._size - position)
        if length <= 0:
            return b""
        data = os.pread(self._descriptor, length, position)
        while len(data) < length:
            more = os.pread(self._descriptor, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def truncate(self, size: int) -> None:
        """Cut to ``size`` bytes."""
        if size < self._size:
            os.ftruncate(self._descriptor, size)
            self._size = size

    def fsync(self) -> None:
        """``fsync(2)``, and not ``fdatasync``: the size is part of what must survive."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)  # releases the descriptor on failure too


class DiskFiles:
    """Files below the folder ``root``, created if missing.

    The constructor syncs the name of a new ``root`` in its parent folder: synced paths below rely on it.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            self.root.mkdir(parents=True)
            _fsync_folder(self.root.parent)

    def _at(self, path: str) -> Path:
        return self.root / path

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        """Open for reading and writing."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return DiskFile(os.open(self._at(path), flags, 0o644), path)

    def exists(self, path: str) -> bool:
        """Whether the path is there."""
        return self._at(path).exists()

    def list(self, folder: str) -> list[str]:
        """Names, sorted."""
        return sorted(os.listdir(self._at(folder)))  # noqa: PTH208 - names are what is asked for

    def make_dir(self, folder: str) -> None:
        """One level; its parent must be there."""
        self._at(folder).mkdir(exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """``rename(2)``: atomic within one file system."""
        self._at(source).replace(self._at(target))

    def remove(self, path: str) -> None:
        """``unlink`` or ``rmdir``."""
        where = self._at(path)
        if where.is_dir():
            where.rmdir()
        else:
            where.unlink()

    def fsync_dir(self, folder: str) -> None:
        """``fsync`` of the folder itself."""
        _fsync_folder(self._at(folder))


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
