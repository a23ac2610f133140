"""The exit codes of every command, and the one function that gives them.

This module imports little: the console script needs it before it imports the rest of the package.
"""

from __future__ import annotations

from enum import IntEnum

from .errors import FencepostError
from .user_error import is_user_error

_VERDICTS = ("holds", "violated", "unknown")


class ExitCode(IntEnum):
    """The exit codes. A shell reads 1 as "violated", so no fault of any kind may end with it."""

    HOLDS = 0
    DONE = 0
    """The command did its work, and that work has no verdict: it wrote a corpus, or printed its help."""
    VIOLATED = 1
    BAD_INPUT = 2
    """The input or the command line is wrong, or the output cannot be written."""
    UNKNOWN = 3
    INTERNAL_FAULT = 4
    """Fencepost failed. This is no verdict."""
    INTERRUPTED = 130
    """128 and the number of SIGINT, as shells have it."""


def exit_code(outcome: object) -> ExitCode:
    """Map the outcome of a command to its exit code.

    Args:
        outcome: A verdict, as the enumeration or as its word; an ``ExitCode``; or the exception that ended the command.

    Everything else is a fault of Fencepost's own: a plain number, the code of a ``SystemExit``, or a missing result
    never becomes a verdict.
    """
    if isinstance(outcome, ExitCode):
        return outcome
    if isinstance(outcome, BaseException):
        return _of_exception(outcome)
    word = getattr(outcome, "value", outcome)
    return ExitCode[word.upper()] if isinstance(word, str) and word in _VERDICTS else ExitCode.INTERNAL_FAULT


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception is Ctrl-C, or was raised while Ctrl-C was handled."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        if isinstance(at, KeyboardInterrupt) and not is_user_error(at):
            return True
        seen.add(id(at))
        at = at.__context__
    return False


def _of_exception(error: BaseException) -> ExitCode:
    if is_interrupt(error):
        return ExitCode.INTERRUPTED
    return ExitCode.BAD_INPUT if isinstance(error, FencepostError) else ExitCode.INTERNAL_FAULT
