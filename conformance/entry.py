"""The console script's way in: from its first moment on, Ctrl-C is one line and exit code 130, and nothing goes on.

The command line takes a second to import. This module imports next to nothing, so that what comes in that second is met
here too; what comes earlier, in the 20 ms in which Python itself starts, is Python's.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

INTERRUPTED = 130
"""128 and the number of SIGINT, as shells have it."""

INTERNAL = 4
"""As ``cli`` has it: something of the command line's own is broken, which says nothing of what was asked."""

GRACE_SECONDS = 5.0
"""How long a command may take to put away what it has begun."""

YOUNG = 50_000
"""How many objects Python makes before it looks for cycles among them; by default 700. What is imported and traced
stays, so that looking through it again and again took a twelfth of a short command."""


def run() -> None:
    """Run the command line, and end the process."""
    gc.set_threshold(YOUNG)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Whoever started this in the background wants no part in the terminal's Ctrl-C.
        command = _imported()
        command()
        return
    signal.signal(signal.SIGINT, _at_once)
    command = _imported()
    signal.signal(signal.SIGINT, _orderly)
    try:
        command()
    except SystemExit as end:
        if end.code != INTERRUPTED:
            raise
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _leave()


def _imported() -> Callable[[], None]:
    """The command line. Where it cannot be imported, the process ends with a line, and with a code of its own."""
    try:
        from ..traces import spark_processes  # noqa: F401 - the handler ends these, and imports nothing then
        from .cli import run as command
    except Exception as error:
        if os.environ.get("FENCEPOST_DEBUG"):
            sys.excepthook(type(error), error, error.__traceback__)
        told = " ".join(f"{type(error).__name__}: {error}".split())
        sys.stderr.write(f"fencepost: cannot start: {told}; install it again, with all that it needs\n")
        raise SystemExit(INTERNAL) from None
    return command


def _orderly(_number: int, _frame: FrameType | None) -> None:
    """The first Ctrl-C: the command ends as by an exception. Spark's processes end first, or they would tell of it."""
    # Not at the top: whatever is imported there, Ctrl-C may come meanwhile.
    import logging
    import threading

    from ..traces.spark_processes import end_processes

    signal.signal(signal.SIGINT, _at_once)
    sys.unraisablehook = _raise_again
    # Py4J logs what it is interrupted in, with a stack trace.
    logging.disable(logging.CRITICAL)
    timer = threading.Timer(GRACE_SECONDS, _tell_and_leave)
    timer.daemon = True
    timer.start()
    end_processes()
    raise KeyboardInterrupt


def _raise_again(swallowed: sys.UnraisableHookArgs) -> None:
    """An interrupt that came while Python was in a destructor is lost there, so it comes again."""
    if swallowed.exc_type is KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)


def _at_once(_number: int, _frame: FrameType | None) -> None:
    _tell_and_leave()


def _tell_and_leave() -> None:
    with suppress(OSError):
        os.write(2, b"fencepost: interrupted\n")
    _leave()


def _leave() -> None:
    """End the process without waiting for its threads: a search, or a proof, goes on for minutes."""
    known = sys.modules.get(f"{__package__.rpartition('.')[0]}.traces.spark_processes")
    if known is not None:
        with suppress(Exception):
            known.end_processes()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(INTERRUPTED)
