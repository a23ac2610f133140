"""Standard output and standard error that never break off a command: the verdict's exit code outlives a closed pipe.

A reader that has seen enough (``head``, ``less``, ``grep -q``) closes the pipe, and the answer stays what it is. A
standard output that is full, or closed from the start, means that nobody has the answer: that is exit code 2, whatever
the verdict. What happens to standard error changes nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from ...model.core.errors import BadInput

MEND = "give it a pipe, a file with room, or /dev/null"


class Lenient:
    """A text stream whose writes never raise: from the first that fails on, all is thrown away.

    ``failed``: the error of that write, or of a flush, None where there was none. All else is the stream's own.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failed: OSError | None = None

    def write(self, text: str) -> int:
        """Write, or pretend to. Gives the number of characters, as a stream does."""
        if self.failed is None:
            try:
                return self._stream.write(text)
            except OSError as error:
                self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """Hand over what was written so far."""
        if self.failed is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.failed = error
        with suppress(OSError, ValueError):
            # What is left in the stream's buffer is flushed when the interpreter ends, and must go somewhere.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)

    @property
    def lost(self) -> OSError | None:
        """Why the output has not arrived; None where it has, or where its reader went away."""
        return None if isinstance(self.failed, BrokenPipeError | ConnectionResetError) else self.failed

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextmanager
def lenient() -> Iterator[Lenient]:
    """Have both streams lenient; gives standard output's. Raises BadInput where standard output is closed."""
    out, err = sys.stdout, sys.stderr
    if out is None:
        raise BadInput("it is closed, so nobody would see the answer", "standard output", MEND)
    kept = Lenient(out)
    sys.stdout = kept
    if err is not None:
        sys.stderr = Lenient(err)
    try:
        yield kept
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        sys.stdout, sys.stderr = out, err


def fill_closed() -> None:
    """Open ``/dev/null`` where one of the three standard streams is closed.

    Else the next file that is opened would get its number, and what is meant for the stream would end in the file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
