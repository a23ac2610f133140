"""The exception of a real Ctrl-C."""

from __future__ import annotations


class CtrlC(KeyboardInterrupt):
    """Raised by Fencepost's handlers of signals alone, so that it differs from a KeyboardInterrupt of user code."""
