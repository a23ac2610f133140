"""A folder as an object store of fsspec, each object durable when it is written.

fsspec's own ``file://`` leaves what was written in the page cache: a crash could lose objects that the metadata log
says are there, after their records are deleted from the broker's disk. This one writes through ``impl/files``: an
object is synced under another name, gets its own by a rename, and that name is synced. And on simulated files a test
can crash it at any effect.
"""

from __future__ import annotations

import io
from typing import Any

from fsspec.spec import AbstractFileSystem

from ..files.interface import Files
from ..log.checkpoints import TEMPORARY


class _Writer:
    """An object that is being written: it is there once it is closed, unless it was discarded.

    No file of ``io``: those close themselves when they are forgotten, as where a broker dies while it writes.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._file = files.open(path + TEMPORARY, create=True)
        self._file.truncate(0)  # a crash may have left one

    def write(self, data: bytes) -> int:
        self._file.append(data)
        return len(data)

    def discard(self) -> None:
        """Let there be no such object; what was written goes with the object's deletion."""
        self._file.close()

    def close(self) -> None:
        try:
            self._file.fsync()
        finally:
            self._file.close()
        self._files.rename(self._path + TEMPORARY, self._path)
        self._files.fsync_dir(self._path.rpartition("/")[0])


class DurableFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """The objects in ``files``. Folders are made as they are needed, and stay."""

    protocol = "fencepost"
    cachable = False

    def __init__(self, files: Files) -> None:
        super().__init__()
        self._files = files
        self._synced: set[str] = set()

    def _make(self, folder: str) -> None:
        """Make a folder. One that is there may be another's, who died before its name was synced: that is done here."""
        if folder and folder not in self._synced:
            parent = folder.rpartition("/")[0]
            self._make(parent)
            self._files.make_dir(folder)
            self._files.fsync_dir(parent)
            self._synced.add(folder)

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        """A writer for ``wb``, else a reader of all of the object."""
        path = self._strip_protocol(path)
        if mode == "wb":
            self._make(path.rpartition("/")[0])
            return _Writer(self._files, path)
        return io.BytesIO(self.cat_file(path))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """Bytes of an object. Raises ``FileNotFoundError``."""
        file = self._files.open(self._strip_protocol(path))
        try:
            first = start or 0
            return file.pread(first, (file.size if end is None else end) - first)
        finally:
            file.close()

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """``name``, ``size`` and ``type``. Raises ``FileNotFoundError``."""
        path = self._strip_protocol(path)
        file = self._files.open(path)
        try:
            return {"name": path, "size": file.size, "type": "file"}
        finally:
            file.close()

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What is in a folder."""
        path = self._strip_protocol(path)
        names = [f"{path}/{name}" if path else name for name in self._files.list(path)]
        if not detail:
            return names
        found: list[Any] = []
        for name in names:
            try:
                found.append(self.info(name))
            except OSError:
                found.append({"name": name, "size": 0, "type": "directory"})
        return found

    def rm_file(self, path: str) -> None:
        """Remove an object, for good, and what a crash left of writing it. Raises ``FileNotFoundError``.

        For good where there is none, too: another may have removed it, who died before that was synced.
        """
        path = self._strip_protocol(path)
        folder = path.rpartition("/")[0]
        if self._files.exists(path + TEMPORARY):
            self._files.remove(path + TEMPORARY)
            self._files.fsync_dir(folder)
        try:
            self._files.remove(path)
        except FileNotFoundError:
            self._files.fsync_dir(folder)
            raise
        self._files.fsync_dir(folder)
