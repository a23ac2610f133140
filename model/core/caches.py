"""Where Fencepost keeps files that it can make again. Every command also works without this folder."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path | None:
    """``$XDG_CACHE_HOME/fencepost/NAME``, or ``~/.cache/fencepost/NAME`` (XDG Base Directory Specification).

    None for a user without a home: there is no ``HOME``, and the user database has no entry. The folder may be missing
    or not writable; the caller creates it.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    if named.startswith("/"):
        return Path(named) / "fencepost" / name
    try:
        return Path.home() / ".cache" / "fencepost" / name
    except RuntimeError:
        return None
