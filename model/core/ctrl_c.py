"""The exception of a real Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType

RESEND_SECONDS = 0.01
"""A signal that is sent again any sooner would arrive within the hook, and be swallowed there too."""


class CtrlC(KeyboardInterrupt):
    """Raised by Fencepost's handlers of signals alone, so that it differs from a KeyboardInterrupt of user code."""


def resend_if_swallowed(number: int, handler: Callable[[int, FrameType | None], None]) -> None:
    """Send a signal again whose ``CtrlC`` Python swallows, as in a destructor or a generator that is closed.

    Args:
        number: The signal.
        handler: Its handler from then on.
    """
    import os
    import signal
    import sys
    import threading

    before = sys.unraisablehook

    def hook(args: sys.UnraisableHookArgs) -> None:
        if not issubclass(args.exc_type, CtrlC):
            before(args)
            return
        signal.signal(number, handler)
        timer = threading.Timer(RESEND_SECONDS, os.kill, (os.getpid(), number))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = hook
