"""The processes that a session of Spark brings along: how they are told from others, and ended at once.

Spark's launcher is a script that starts a JVM that says what to start, and then becomes that. Who is interrupted while
this goes on has no handle of any of them, so that they go by a mark in their environment, which they all inherit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psutil

_ROUND_SECONDS: Final = 0.02

_MARK: Final = "FENCEPOST_SPARK_OF"
"""The variable that has the id of the process that a session belongs to."""


_marked = False
"""Whether this process has started any."""


def mark() -> Mapping[str, str]:
    """The variables to start a session's processes with."""
    global _marked
    # Loaded before there is anything to end: whoever is interrupted is in no state to import it.
    import psutil

    assert psutil
    _marked = True
    return {_MARK: str(os.getpid())}


def end_processes() -> int:
    """Kill what this process has started for Spark, workers too; gives how many kills that took.

    A session that is there does not work any more. Whoever stands on it is to end.
    """
    if not _marked:
        return 0
    import psutil

    mine, ended = str(os.getpid()), 0
    # One that was started while the others were looked at is found in the next round.
    while found := [each for each in _descendants() if _is_marked(each, mine)]:
        for process in found:
            # Not waited for here: PySpark asks what became of its own child, and would never hear of it.
            with suppress(psutil.Error):
                process.kill()
        ended += len(found)
        time.sleep(_ROUND_SECONDS)
    return ended


def _descendants() -> list[psutil.Process]:
    """The processes below this one; none without ``/proc``."""
    import psutil

    try:
        found: list[psutil.Process] = psutil.Process().children(recursive=True)
    except (psutil.Error, OSError):
        return []
    return found


def _is_marked(process: psutil.Process, owner: str) -> bool:
    import psutil

    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(_MARK) == owner
    except (psutil.Error, OSError):
        return False
