"""Run a Cyclopts command line to an exit code, whatever it raises."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from cyclopts import App, CycloptsError

from ..model.core.errors import FencepostError
from ..model.core.exit_code import ExitCode, exit_code

DEBUG: Final = "FENCEPOST_DEBUG"
"""The environment variable with which an internal fault shows its traceback."""


def run_app(app: App, arguments: Sequence[str], note: Callable[[str], None]) -> ExitCode:
    """Run one command, and report what ends it in one line.

    A command returns an ``ExitCode``. None comes from the library's own commands (``--help``, ``--version``).

    Args:
        note: Prints one line on standard error.
    """
    try:
        result = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        return ExitCode.DONE if result is None else _checked(result)
    except BaseException as error:
        return report_end(error, note, app.name[0])


def run_module(app: App) -> NoReturn:
    """Run the command line of ``python -m MODULE``, and end the process; SIGTERM ends it through every ``finally``."""
    terminated: list[int] = []

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        terminated.append(number)
        sys.exit(128 + number)

    def note(line: str) -> None:
        if not terminated:
            print(line, file=sys.stderr, flush=True)

    signal.signal(signal.SIGTERM, end)
    code = run_app(app, sys.argv[1:], note)
    sys.exit(128 + terminated[0] if terminated else code)


def report_end(error: BaseException, note: Callable[[str], None], program: str = "fencepost") -> ExitCode:
    """Report the exception that ended a command of a program in one line, and return its exit code."""
    code = ExitCode.BAD_INPUT if isinstance(error, CycloptsError) else exit_code(error)
    try:
        note(f"fencepost: {_line(error, code, program)}")
    except BaseException:
        # No memory, or no standard error: the code must still come from here.
        with suppress(OSError):
            os.write(2, f"fencepost: {type(error).__name__}\n".encode())
    return code


def _checked(result: object) -> ExitCode:
    if not isinstance(result, ExitCode):
        raise TypeError(f"the command returned {result!r} and no ExitCode")
    return result


def _line(error: BaseException, code: ExitCode, program: str) -> str:
    if code is ExitCode.INTERRUPTED:
        return "interrupted"
    if isinstance(error, CycloptsError):
        command = " ".join([program, *(error.command_chain or ())])
        return f"{' '.join(str(error).split())}; see {command} --help"
    if isinstance(error, FencepostError):
        return str(error)
    return _fault(error)


def _fault(error: BaseException) -> str:
    """``WHERE: WHAT; MEND`` for an exception that nothing caught."""
    debug = bool(os.environ.get(DEBUG))
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    said = " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    mend = "report it with these lines" if debug else f"run it again with {DEBUG}=1 and report it with the traceback"
    return f"a fault of Fencepost's own, and no verdict: {said}{place}; {mend}"
