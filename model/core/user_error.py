"""Tell an exception of a user's own code from Ctrl-C.

A protocol, an adapter or a system under test may call ``sys.exit`` or raise KeyboardInterrupt. Neither may end the
command: its exit code would read as a verdict.
"""

from __future__ import annotations

import signal

from .ctrl_c import CtrlC


def is_user_error(error: BaseException) -> bool:
    """Whether user code raised an exception that was caught around a call of it."""
    if isinstance(error, KeyboardInterrupt):
        # Python's own handler raises the same class as user code does.
        return not isinstance(error, CtrlC) and signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    return isinstance(error, Exception | SystemExit)
