"""A log whose disk has failed: it is offline, and touches the disk no more until it is opened again."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

from .errors import LogOffline
from .segment import Segment, close_all


class OfflinePart:
    """What ``Log`` has of this. Whatever touches the disk does so ``with self._storage``."""

    folder: str
    _segments: list[Segment]
    _offline: str | None
    _storage: AbstractContextManager[None]

    def _begin_online(self) -> None:
        self._offline = None
        self._storage = _Storage(self)

    @property
    def offline(self) -> str | None:
        """Why the log is offline; ``None`` while it is not."""
        return self._offline

    def abandon(self) -> None:
        """Close the files as they are: what is not synced stays so."""
        self._offline = self._offline or "the log is closed"
        close_all(self._segments)

    def _fail(self, error: OSError) -> None:
        self._offline = f"storage failed: {error.strerror or error} ({error.filename or self.folder})"
        self.abandon()
        raise LogOffline(self._offline, self.folder, "mend the disk, then open the log again") from error

    def _require_online(self) -> None:
        if self._offline is not None:
            raise LogOffline(self._offline, self.folder, "mend the disk, then open the log again")


class _Storage:
    """What touches the disk: refused while the log is offline, and takes it offline where it fails.

    One object for all, and no generator: it is entered several times for each record that is copied.
    """

    __slots__ = ("_log",)

    def __init__(self, log: OfflinePart) -> None:
        self._log = log

    def __enter__(self) -> None:
        if self._log._offline is not None:
            self._log._require_online()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):
            self._log._fail(error)
