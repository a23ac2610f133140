"""Errors of a log: one line with the place (file and byte or line) and the fix."""

from __future__ import annotations


class LogError(Exception):
    """Base of all errors of a log. ``str()`` is one line, ``WHERE: WHAT; HOW TO FIX IT``."""

    def __init__(self, what: str, where: str, mend: str) -> None:
        super().__init__(f"{where}: {what}; {mend}")
        self.what = what
        self.where = where
        self.mend = mend


class CorruptLog(LogError):
    """Corruption that no crash explains: a synced file differs from its writes.

    ``path`` is the file and ``byte`` the position in it. ``byte`` is ``None`` if the whole file is missing or
    unexpected.
    """

    def __init__(self, what: str, path: str, byte: int | None, mend: str) -> None:
        super().__init__(what, path if byte is None else f"{path}, byte {byte}", mend)
        self.path = path
        self.byte = byte


class CorruptCheckpoint(LogError):
    """Checkpoint file that does not parse: ``path`` and ``line``, counted from 1."""

    def __init__(self, what: str, path: str, line: int, mend: str) -> None:
        super().__init__(what, f"{path}, line {line}", mend)
        self.path = path
        self.line = line


class CorruptBatch(LogError):
    """Invalid record batch. ``byte`` is a position in the given bytes or in the file."""

    def __init__(self, what: str, byte: int = 0, path: str = "record batch") -> None:
        super().__init__(what, f"{path}, byte {byte}", "fetch the records again from a replica that has them")
        self.byte = byte
        self.path = path


class InvalidAppend(LogError):
    """Records that do not continue this log; the log is unchanged."""

    def __init__(self, what: str, where: str, mend: str = "fetch from the log end offset") -> None:
        super().__init__(what, where, mend)


class OffsetOutOfRange(LogError):
    """Offset outside log start to log end (Kafka's OFFSET_OUT_OF_RANGE)."""

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
    """Log that is offline after a failed write, sync or rename.

    The contents of the disk are unknown, so the log does nothing more to it. Kafka takes the log directory offline
    (``LogDirFailureChannel``). Reopening the log recovers it.
    """
