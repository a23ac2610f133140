"""Where a text stands: from whatever went wrong while it ran, or was declared, to its file and line.

The line is one of the person's own: the innermost frame that is not of the language itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from inspect import unwrap
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, Final

from .errors import BadText, ProtocolError
from .user_error import is_user_error

_LANGUAGE = Path(__file__).parent
# Beside the language itself, whoever else runs texts or has them declared.
_READERS = {
    str(_LANGUAGE.parent / name) for name in ("prove/proof.py", "prove/proof_for_variant.py", "explore/liveness.py")
}


def place(file: str, line: int) -> str:
    """``toy.py, line 12``; the file as seen from the current directory where it lies below it."""
    name = file
    with suppress(ValueError, OSError):
        name = str(Path(file).relative_to(Path.cwd()))
    return f"{name if name.isprintable() else ascii(name)}, line {line}"


NAMES: Final = 20
"""So many names are listed."""


def declared_here() -> str:
    """The line outside the language that is running now: where something is declared."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_language(frame.f_code):
        frame = frame.f_back
    return "the protocol" if frame is None else place(frame.f_code.co_filename, frame.f_lineno)


def place_of(text: Callable[..., Any]) -> str:
    """The line at which a function begins."""
    code = getattr(unwrap(text), "__code__", None)
    return place(code.co_filename, code.co_firstlineno) if isinstance(code, CodeType) else "the protocol"


def near(name: str, known: Iterator[str] | list[str] | tuple[str, ...]) -> str:
    """How to mend an unknown name: the nearest of those that there are, or all of them, up to ``NAMES``."""
    names = list(known)
    if not names:
        return "there is none"
    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return f"choose one of {', '.join(names[:NAMES])}{more}"


class Reading:
    """While a text runs: a mistake that is found in it leaves as ``BadText``, with file and line.

    ``generator`` is the running text of an action; between two of its steps it stands at what it has just yielded.
    An exception of Python's own that the text raises (a misspelt name, a wrong number of arguments) is a mistake in it
    too; one that the language raises is not.
    """

    def __init__(self, text: Callable[..., Any], generator: object = None) -> None:
        self._text = text
        self.generator = generator

    def __enter__(self) -> Reading:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, BadText) or not is_user_error(error):
            return
        frames = _frames(trace)[1:]
        own = [(code, line) for code, line in frames if not _is_language(code)]
        if isinstance(error, ProtocolError):
            mend = error.mend or "see docs/reference/language.md"
            raise BadText(error.what, self._where(own), mend) from error
        # The stack may overflow in the language, which the text called once too often.
        if own and (frames[-1] == own[-1] or isinstance(error, RecursionError)):
            what = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise BadText(what, self._where(own), "mend the text there") from error

    def _where(self, own: list[tuple[CodeType, int]]) -> str:
        if own:
            code, line = own[-1]
            return place(code.co_filename, line)
        running = self.generator
        found = None
        while (frame := getattr(running, "gi_frame", None)) is not None:
            found = place(frame.f_code.co_filename, frame.f_lineno)
            running = getattr(running, "gi_yieldfrom", None)
        return found or place_of(self._text)


def _frames(trace: TracebackType | None) -> list[tuple[CodeType, int]]:
    found = []
    while trace is not None:
        found.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    return found


def _is_language(code: CodeType) -> bool:
    return Path(code.co_filename).parent == _LANGUAGE or code.co_filename in _READERS
