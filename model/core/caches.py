"""Where Fencepost keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """``$XDG_CACHE_HOME/fencepost/NAME``, or ``~/.cache/fencepost/NAME`` (XDG Base Directory Specification)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if named.startswith("/") else Path.home() / ".cache"
    return base / "fencepost" / name
