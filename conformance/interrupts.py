"""Run the command line under Ctrl-C: from the first moment on, that is one line and exit code 130, and nothing goes on.

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

from ..model.core.ctrl_c import CtrlC, resend_if_swallowed
from ..model.core.exit_code import ExitCode
from ..model.core.process import load

GRACE_SECONDS = 5.0
"""How long a command may take to put away what it has begun."""

YOUNG = 50_000
"""How many objects Python makes before it looks for cycles among them; by default 700. What is imported and traced
stays, so that looking through it again and again took a twelfth of a short command."""


def run_interruptible() -> ExitCode:
    """Run the command line; returns its exit code, unless an interrupt ends the process."""
    gc.set_threshold(YOUNG)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell started this in the background, out of reach of the terminal's Ctrl-C.
        return _ending_soon(_imported()())
    signal.signal(signal.SIGINT, _at_once)
    command = _imported()
    signal.signal(signal.SIGINT, _orderly)
    code = command()
    if code is ExitCode.INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _leave()
    return _ending_soon(code)


def _ending_soon(code: ExitCode) -> ExitCode:
    """End the process after ``GRACE_SECONDS`` if a thread, as of a system under test, does not end by itself."""
    import threading

    others = (each for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon)
    if any(others):
        timer = threading.Timer(GRACE_SECONDS, _leave, (code,))
        timer.daemon = True
        timer.start()
    return code


def _imported() -> Callable[[], ExitCode]:
    root = __package__.rpartition(".")[0]
    # The handler ends Spark's processes, and imports nothing then.
    load(f"{root}.traces.spark_processes:end_processes")
    found: Callable[[], ExitCode] = load(f"{__package__}.cli:command_line")
    return found


def _orderly(_number: int, _frame: FrameType | None) -> None:
    """The first Ctrl-C: the command ends as by an exception. Spark's processes end first, or they would tell of it."""
    # Not at the top: whatever is imported there, Ctrl-C may come meanwhile.
    import logging
    import threading

    from ..traces.spark_processes import end_processes

    signal.signal(signal.SIGINT, _at_once)
    resend_if_swallowed(signal.SIGINT, _orderly)
    # Py4J logs what it is interrupted in, with a stack trace.
    logging.disable(logging.CRITICAL)
    timer = threading.Timer(GRACE_SECONDS, _tell_and_leave)
    timer.daemon = True
    timer.start()
    end_processes()
    raise CtrlC


def _at_once(_number: int, _frame: FrameType | None) -> None:
    _tell_and_leave()


def _tell_and_leave() -> None:
    _tell(b"fencepost: interrupted\n")
    _leave()


def _tell(line: bytes) -> None:
    with suppress(OSError):
        os.write(2, line)


def _leave(code: ExitCode = ExitCode.INTERRUPTED) -> None:
    """End the process without waiting for its threads: a search, or a proof, goes on for minutes."""
    known = sys.modules.get(f"{__package__.rpartition('.')[0]}.traces.spark_processes")
    if known is not None:
        with suppress(Exception):
            known.end_processes()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)
