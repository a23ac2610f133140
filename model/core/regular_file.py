"""Open files that a folder holds. A FIFO, a socket or a device under a file's name would block, or never end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO, Final

_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NotRegularFileError(OSError):
    """A path is no regular file; ``strerror`` says what it is."""

    def __init__(self, mode: int, path: Path | str) -> None:
        kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "something else")
        super().__init__(errno.EINVAL, f"it is {kind} and no regular file", str(path))


def check_regular(path: Path | str) -> None:
    """Raise OSError for a path that is no regular file, without opening it."""
    mode = Path(path).stat().st_mode
    if not stat.S_ISREG(mode):
        raise NotRegularFileError(mode, path)


def open_regular(path: Path | str, flags: int = os.O_RDONLY, *, buffering: int = -1) -> IO[bytes]:
    """Open a regular file in bytes, and never wait for another process. Raises OSError.

    Args:
        flags: Of ``os.open``: ``O_RDONLY``, or ``O_WRONLY`` with others.
    """
    # With O_NONBLOCK a FIFO opens at once, or fails. It changes nothing for a regular file.
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegularFileError(status.st_mode, path)
        mode = "rb" if not flags & os.O_WRONLY else "ab" if flags & os.O_APPEND else "wb"
        return os.fdopen(descriptor, mode, buffering)
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path | str) -> bytes:
    """The whole of a regular file. Raises OSError."""
    with open_regular(path) as file:
        return file.read()
