"""Writing traces, and other files whole. A file appears under its final name only when it is whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from ..model.core.errors import BadInput
from .format import Trace, TraceEvent, TraceHeader, json_line


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file whole or not at all: ``write`` is given a hidden file beside it, which is then renamed.

    Raises BadInput where it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(part)
        part.replace(path)
    except OSError as error:
        mend = "name a file in a folder that is there and writable"
        raise BadInput(f"cannot write: {error.strerror}", str(path), mend) from error
    finally:
        part.unlink(missing_ok=True)


class TraceWriter:
    """Writes a trace an event at a time::

        with TraceWriter(path, header) as out:
            out.write(event)

    The lines go to a hidden file beside ``path``, which is flushed to disk and renamed when the block ends; when it
    ends in an exception, the hidden file is removed and ``path`` is as it was. Raises BadInput where the file cannot
    be written, ValueError for a step number that does not increase.
    """

    def __init__(self, path: Path | str, header: TraceHeader) -> None:
        self.path = Path(path)
        self._header = header
        self._part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        self._file: IO[bytes] | None = None
        self._last_step = -1

    def __enter__(self) -> TraceWriter:
        try:
            self._file = self._part.open("wb")
            self._file.write(json_line(self._header).encode("ascii"))
        except OSError as error:
            self._discard()
            raise self._refused(error) from error
        return self

    def write(self, event: TraceEvent) -> None:
        """Append one event."""
        assert self._file is not None, "write inside the with block"
        if event.step <= self._last_step:
            raise ValueError(f"step {event.step} after step {self._last_step}")
        self._last_step = event.step
        try:
            self._file.write(json_line(event).encode("ascii"))
        except OSError as error:
            raise self._refused(error) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        if error is not None:
            self._discard()
            return
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._part.replace(self.path)
            _sync_directory(self.path.parent)
        except OSError as failure:
            self._discard()
            raise self._refused(failure) from failure

    def _discard(self) -> None:
        if self._file is not None:
            # Closing flushes, and a full disk says so again.
            with suppress(OSError):
                self._file.close()
        self._part.unlink(missing_ok=True)

    def _refused(self, error: OSError) -> BadInput:
        name = str(self.path)
        return BadInput(
            f"cannot be written: {error.strerror}",
            name if name.isprintable() else ascii(name),
            "name a file in a directory that exists and has room",
        )


def _sync_directory(directory: Path) -> None:
    """Make a rename durable. Not every file system lets a directory be opened for that."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def write_trace(path: Path | str, trace: Trace) -> None:
    """Write a whole trace (see ``TraceWriter``)."""
    write_events(path, trace.header, trace.events)


def write_events(path: Path | str, header: TraceHeader, events: Iterable[TraceEvent]) -> None:
    """Write a header and events as they come (see ``TraceWriter``)."""
    with TraceWriter(path, header) as out:
        for event in events:
            out.write(event)
