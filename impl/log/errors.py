"""What goes wrong in a log: one line that says what, where (file and byte or line) and how to mend it."""

from __future__ import annotations


class LogError(Exception):
    """Base of all errors of a log. ``str()`` is one line, ``WHERE: WHAT; MEND``."""

    def __init__(self, what: str, where: str, mend: str) -> None:
        super().__init__(f"{where}: {what}; {mend}")
        self.what = what
        self.where = where
        self.mend = mend


class CorruptLog(LogError):
    """Bytes that no crash explains: a file that was synced and is not as it was written.

    ``path`` is the file, ``byte`` where in it (``None`` where the file as a whole is missing or unexpected).
    """

    def __init__(self, what: str, path: str, byte: int | None, mend: str) -> None:
        super().__init__(what, path if byte is None else f"{path}, byte {byte}", mend)
        self.path = path
        self.byte = byte


class CorruptCheckpoint(LogError):
    """A checkpoint file that does not parse. ``path`` is the file, ``line`` the line, from 1."""

    def __init__(self, what: str, path: str, line: int, mend: str) -> None:
        super().__init__(what, f"{path}, line {line}", mend)
        self.path = path
        self.line = line


class CorruptBatch(LogError):
    """Bytes that are no valid record batch. ``byte`` counts in the bytes that were given, or in the file."""

    def __init__(self, what: str, byte: int = 0, path: str = "record batch") -> None:
        super().__init__(what, f"{path}, byte {byte}", "fetch the records again from a replica that has them")
        self.byte = byte
        self.path = path


class InvalidAppend(LogError):
    """Records that do not belong at the end of this log: nothing was written."""

    def __init__(self, what: str, where: str, mend: str = "fetch from the log end offset") -> None:
        super().__init__(what, where, mend)


class OffsetOutOfRange(LogError):
    """An offset below the log start offset or above the log end offset (Kafka's OFFSET_OUT_OF_RANGE)."""

    def __init__(self, where: str, offset: int, log_start: int, end: int) -> None:
        super().__init__(
            f"offset {offset} is outside of the log, which has {log_start} to {end}",
            where,
            "reset to the nearest offset of the log",
        )
        self.offset = offset
        self.log_start = log_start
        self.end = end


class LogOffline(LogError):
    """A write, sync or rename has failed before: nobody knows what is on the disk, so nothing more is done to it.

    Kafka takes the log directory offline (``LogDirFailureChannel``). Opening the log again recovers it.
    """
