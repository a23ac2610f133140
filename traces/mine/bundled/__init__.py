"""Two small corpora that come along: one with planted bugs, and one without. README.md says how they are made."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PLANTED: Final = "planted"
CLEAN: Final = "clean"


def folder() -> Path:
    """Where the two lie, each in a folder of its name."""
    return Path(__file__).parent
