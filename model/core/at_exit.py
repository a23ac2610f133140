"""Faults outside the command's own thread of control: in ``atexit`` handlers and in Fencepost's threads.

Python prints such an exception, and ends with the code that was set before. Here the process ends with the code of an
internal fault, because an answer beside a fault may be incomplete.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from types import TracebackType

from .exit_code import ExitCode

_PACKAGE = __name__.partition(".")[0]

_faults: list[str] = []
_handlers_done = False
"""Whether all handlers ran that were registered after this module's: before it there are those of Python's start."""


def end_with_faults() -> None:
    """Have the process end with the code of an internal fault after one in a thread or in an ``atexit`` handler.

    Call it first of all: the handler that is registered first runs last.
    """
    atexit.register(_end)
    unraisable, excepthook, of_thread = sys.unraisablehook, sys.excepthook, threading.excepthook

    def on_unraisable(args: sys.UnraisableHookArgs) -> None:
        if (args.err_msg or "").startswith("Exception ignored in atexit callback"):
            _faults.append(f"at exit: {args.exc_type.__name__}")
            if _handlers_done:
                _end()
        else:
            unraisable(args)

    def on_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        # The command's own exceptions never come here. ``weakref.finalize`` reports its own at exit by this hook.
        _faults.append(f"at exit: {kind.__name__}")
        excepthook(kind, error, trace)

    def on_thread(args: threading.ExceptHookArgs) -> None:
        if _is_ours(args.exc_traceback):
            _faults.append(f"in a thread: {args.exc_type.__name__}")
        of_thread(args)

    sys.unraisablehook, sys.excepthook, threading.excepthook = on_unraisable, on_exception, on_thread


def _is_ours(trace: TracebackType | None) -> bool:
    """Whether a thread's first frame is Fencepost's: a thread of the system under test is not."""
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module != "threading":
            return str(module).partition(".")[0] == _PACKAGE
        trace = trace.tb_next
    return False


def _end() -> None:
    """End the process with the code of a fault, if there was one."""
    global _handlers_done
    _handlers_done = True
    if not _faults:
        return
    line = f"fencepost: a fault of Fencepost's own {_faults[0]}; run it with FENCEPOST_DEBUG=1 and report it\n"
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: S112 - the code must be set, whatever the streams do
            continue
    try:
        os.write(2, line.encode(errors="backslashreplace"))
    finally:
        os._exit(ExitCode.INTERNAL_FAULT)
