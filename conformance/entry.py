"""The console script, ``fencepost``."""

from __future__ import annotations

from ..model.core.process import run_process


def run() -> None:
    """Run the command line, and end the process."""
    run_process(f"{__package__}.interrupts:run_interruptible")
