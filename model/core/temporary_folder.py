"""Temporary folders that an interrupt cannot leave behind."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import weakref
from pathlib import Path


class TemporaryFolder:
    """A folder that is removed by ``cleanup``, at the end of a ``with`` block, or with the object.

    ``tempfile.TemporaryDirectory`` arranges the removal after it has made the folder, so that an exception raised by a
    signal handler in between leaves the folder behind. Here the removal is arranged first.

    Args:
        prefix: Start of the folder's name.
        parent: Folder to make it in; by default the system's temporary folder.

    Raises:
        OSError: The folder cannot be made.
    """

    def __init__(self, prefix: str, parent: Path | None = None) -> None:
        # 64 random bits: a name that exists is an attack or a fault, and ``mkdir`` reports it.
        self.path = Path(tempfile.gettempdir() if parent is None else parent, prefix + secrets.token_hex(8))
        if self.path.exists():
            raise FileExistsError(f"{self.path} exists")
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self.path.mkdir(mode=0o700)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def cleanup(self) -> None:
        """Remove the folder, as far as the system permits. Call it again after an interrupted call."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._finalizer.detach()
