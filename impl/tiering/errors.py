"""What goes wrong with remote storage: one line that says what, where and how to mend it."""

from __future__ import annotations

from ..log.errors import CorruptLog, LogError


class RemoteStorageError(LogError):
    """The store could not be asked, or has not what it should have. What was to be done may be tried again."""

    def __init__(self, what: str, where: str, mend: str = "look at the store; it is asked again") -> None:
        super().__init__(what, where, mend)


class CorruptRemoteSegment(RemoteStorageError):
    """An object of the store is not as it was written."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(what, where, "put the object back from a copy: no other replica may have its records")


class CorruptRemoteMetadata(CorruptLog):
    """A record of the remote log metadata whose CRC is right and that does not parse. ``offset`` is its own."""

    def __init__(self, what: str, folder: str, offset: int) -> None:
        super().__init__(what, f"{folder}, offset {offset}", None, "restore the log from a replica that reads it")
        self.offset = offset
