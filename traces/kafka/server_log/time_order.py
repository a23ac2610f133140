"""The order of the lines of one process in one file: exports are sorted otherwise than logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, TypeVar

T = TypeVar("T")
_STEP: Final = 1000
"""Milliseconds by which threads of one process may log out of order."""
_FEW: Final = 5
_LEAST: Final = 3
"""Lines that show an order: fewer may come from a clock that was set back."""


def in_time_order(items: Sequence[T], time_of: Callable[[T], int | None]) -> list[T]:
    """Order the lines of one process.

    Lines of a log stay as they are, even if the clock is set back once. Exports with the newest line first are
    reversed. Parts of a log that were joined in the wrong order are ordered by their times if these do not overlap.
    Lines without any order are sorted by time.
    """
    times = [time for item in items if (time := time_of(item)) is not None]
    falls = sum(later < earlier - _STEP for earlier, later in pairwise(times))
    if not falls:
        return list(items)
    if falls >= _LEAST and all(later <= earlier + _STEP for earlier, later in pairwise(times)):
        return list(reversed(items))
    blocks = _blocks(items, time_of)
    whole = all(len(each) >= _LEAST for _, each in blocks)
    spans = sorted((min(each), max(each), place) for place, (_, each) in enumerate(blocks))
    if whole and all(one[1] <= other[0] for one, other in pairwise(spans)):
        return [item for *_, place in spans for item in blocks[place][0]]
    if falls < _LEAST or falls * _FEW < len(times):
        return list(items)
    latest = 0
    keyed = []
    for place, item in enumerate(items):
        time = time_of(item)
        latest = latest if time is None else time
        keyed.append((latest, place, item))
    return [item for *_, item in sorted(keyed, key=lambda each: each[:2])]


def _blocks(items: Sequence[T], time_of: Callable[[T], int | None]) -> list[tuple[list[T], list[int]]]:
    """Cut where the time goes back; each block with its times."""
    blocks: list[tuple[list[T], list[int]]] = [([], [])]
    for item in items:
        time = time_of(item)
        members, times = blocks[-1]
        if time is not None and times and time < max(times) - _STEP:
            members, times = [], []
            blocks.append((members, times))
        members.append(item)
        if time is not None:
            times.append(time)
    return [(members, times or [0]) for members, times in blocks]
