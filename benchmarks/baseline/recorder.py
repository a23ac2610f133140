"""Measure items and append them to a record, skipping those that it has."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .command import CHECKOUT
from .item import Item
from .record import Record


def record(items: Sequence[Item], path: Path, shard: tuple[int, int] = (1, 1), sample: int | None = None) -> int:
    """Measure the items of a shard, and return how many were new.

    Args:
        items: All items, in a fixed order.
        path: File of the record.
        shard: ``(i, n)``: measure items ``i - 1, i - 1 + n, ...``.
        sample: Limit of items of the shard, spread evenly over it; None: all.
    """
    chosen = list(items)[shard[0] - 1 :: shard[1]]
    if sample is not None and sample < len(chosen):
        chosen = [chosen[number * len(chosen) // sample] for number in range(sample)]
    found, about, new = Record(path), describe_checkout(), 0
    for number, item in enumerate(chosen, 1):
        if found.has(item.part, item.key):
            continue
        start = time.perf_counter()
        value = item.measure()
        seconds = round(time.perf_counter() - start, 1)
        found.add(item.part, item.key, value, about | {"seconds": seconds})
        new += 1
        print(f"{number} of {len(chosen)}: {item.part} {item.key} ({seconds} s)", file=sys.stderr, flush=True)
    return new


def describe_checkout() -> dict[str, Any]:
    """Return commit, state and Python of the checkout."""
    return {
        "commit": _git("rev-parse", "HEAD"),
        "changed": _git("status", "--porcelain", "--untracked-files=no") != "",
        "python": platform.python_version(),
    }


def _git(*args: str) -> str:
    done = subprocess.run(["git", "-C", str(CHECKOUT), *args], capture_output=True, text=True, check=False)
    return done.stdout.strip()
