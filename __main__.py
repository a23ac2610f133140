"""Run the command line as ``python -m fencepost``."""

from __future__ import annotations

from .conformance.entry import run

if __name__ == "__main__":
    run()
