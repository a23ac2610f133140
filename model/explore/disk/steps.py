"""The two steps of a level, over a part of it: states are expanded, and candidates are held against what is known.

A part of the first is a slice of the level, a part of the second a range of the order: so parts need nothing of each
other, and whoever has the files can do any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from ..batch import Spent
from ..result import Watch
from .files import Keys, Spill, Writer
from .kernel import Kernel
from .order import BITS, Actions, Rows

FINEST: Final = 16
"""Candidates that do not fit in memory are taken in parts, at most two to the power of this many."""

Discoveries: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
"""New states by the action that found them first: that of number n at n + 1."""


def expand(
    kernel: Kernel,
    watch: Watch,
    level: Keys,
    begins: int,
    ends: int,
    spilled: Callable[[Kernel, int], Spill],
    report: Callable[[int], None],
) -> list[Spill]:
    """Expand states of a level, as far as one breaks an invariant. The files of candidates that memory had no room for.

    The kernel has the rest of them. ``spilled``: writes its candidates, to the file of that number. ``report``: told of
    how many states are left. Raises Spent.
    """
    spills: list[Spill] = []
    for keys in level.chunks(begins, ends):
        at = 0
        while at < len(keys):
            report(ends - begins - at)
            at += kernel.expand(keys[at:], begins + at)
            if kernel.tally().broken:
                return spills
            if at < len(keys):
                if not kernel.count:
                    raise Spent(watch.too_much)
                spills.append(spilled(kernel, len(spills)))
                kernel.again()
        begins += len(keys)
    return spills


def merge(
    kernel: Kernel,
    watch: Watch,
    spills: Sequence[Spill],
    known: Sequence[Keys],
    told: Callable[[], None],
    shared: int = 0,
    part: int = 0,
) -> None:
    """Strike out what is known among the candidates in files, in parts that memory has room for, in order.

    ``told``: called when the kernel has such a part. ``shared``, ``part``: of all keys those whose order begins with so
    many bits, which are those of that number. Raises Spent.
    """
    room = kernel.holds()
    files = [spill.keys for spill in spills]
    for finer in range(FINEST + 1):
        bits = shared + finer
        if sum(keys.count for keys in files) >> bits > room:
            continue
        parts = range(part << finer, (part + 1) << finer)
        places = [_places(keys, bits, parts) for keys in files]
        counts = [sum(ends[number + 1] - ends[number] for ends in places) for number in range(len(parts))]
        if max(counts) <= room:
            break
    else:
        raise Spent(watch.too_much)
    within = [_places(keys, bits, parts) for keys in known]
    for number, count in enumerate(counts):
        kernel.load(_loaded(spills, places, number), count, bits)
        for level, ends in zip(known, within, strict=True):
            for keys in level.chunks(ends[number], ends[number + 1]):
                kernel.strike(keys)
        told()


def _places(keys: Keys, bits: int, parts: range) -> list[int]:
    """Where each of these ranges of the order begins in a file, and where the last one ends."""
    return [keys.place(number << BITS - bits) for number in (*parts, parts[-1] + 1)]


def _loaded(spills: Sequence[Spill], places: Sequence[Sequence[int]], number: int) -> Iterator[tuple[Rows, Actions]]:
    for spill, ends in zip(spills, places, strict=True):
        yield from spill.chunks(ends[number], ends[number + 1])


def lay(kernel: Kernel, writer: Writer, discoveries: Discoveries) -> None:
    """Append what was not struck out, and count who has found it."""
    for keys, actions in kernel.fresh():
        writer.write(keys)
        discoveries += np.bincount(actions, minlength=discoveries.size)
