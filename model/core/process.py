"""Run a command line as a process: its exit code is a verdict's only if a verdict gave it.

Python ends with 1 on an uncaught exception, a library may call ``sys.exit(1)``, and a shell reads 1 as "violated". This
module imports only what Python itself has loaded, so that it reports every later failure. A failure before it is
Python's own, such as a process that may not even have the memory for the interpreter.
"""

from __future__ import annotations

import os
import sys

_INTERNAL = 4
_INTERRUPTED = 130
# ``exit_code.py`` has both numbers. It may be the import that failed.


def run_process(place: str) -> None:
    """Call the function at ``package.module:name``, and end the process with the ``ExitCode`` that it returns."""
    code: object = _INTERNAL
    try:
        from .at_exit import end_with_faults

        end_with_faults()
        code = load(place)()
        from .exit_code import ExitCode

        if not isinstance(code, ExitCode):
            raise TypeError(f"{place} returned {code!r} and no ExitCode")
    except BaseException as error:
        code = _report(error)
    sys.exit(code)


class CannotStart(Exception):
    """A command line cannot be imported."""


def load(place: str):  # type: ignore[no-untyped-def]  # the types would have to be imported
    """Import the function at ``package.module:name``. Raises CannotStart, and KeyboardInterrupt."""
    module, _, name = place.partition(":")
    try:
        from importlib import import_module

        return getattr(import_module(module), name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise CannotStart(" ".join(f"{type(error).__name__}: {error}".split())) from error


def report_uncaught(error: BaseException) -> int:
    """Report an exception that ended a module of ``python -m``, and return its exit code."""
    if isinstance(error, ImportError):
        error = CannotStart(" ".join(f"{type(error).__name__}: {error}".split()))
    return _report(error)


def _report(error: BaseException) -> int:
    """Report an exception that reached the top in one line, and return its exit code."""
    if isinstance(error, KeyboardInterrupt):
        _write("interrupted")
        return _INTERRUPTED
    try:
        if os.environ.get("FENCEPOST_DEBUG"):
            sys.__excepthook__(type(error), error, error.__traceback__)
        if isinstance(error, CannotStart):
            _write(f"cannot start: {error}; install it again, with all that it needs")
        else:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            _write(f"a fault of Fencepost's own: {what}; run it again with FENCEPOST_DEBUG=1 and report it")
    except BaseException:
        _write("a fault of Fencepost's own; run it again with more memory")
    return _INTERNAL


def _write(line: str) -> None:
    try:
        os.write(2, f"fencepost: {line}\n".encode(errors="backslashreplace"))
    except BaseException:
        # Nobody can be told. The exit code still tells.
        return
