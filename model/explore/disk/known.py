"""What is known, in few files: levels, and runs in which many small levels lie together.

A run is the keys of some levels in one order. It holds nothing that the levels do not: it is made anew where a search
goes on, and goes when it ends.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ..result import Watch
from .files import CHUNK, Keys, Writer
from .manifest import Directory
from .order import order_of, sorting

SMALL: Final = 1 << 12
"""A level of fewer states is read in less time than its file is opened."""

MANY: Final = 32
"""So many small levels become one run."""

LARGEST: Final = 1 << 18
"""Keys of a run at most, which is sorted in memory."""


class Known:
    """The files of all levels of a directory, some of which stand for several."""

    def __init__(self, directory: Directory, watch: Watch) -> None:
        self._directory = directory
        self._watch = watch
        self._seen = 0
        self._large: list[Keys] = []
        self._small: list[Keys] = []
        self._runs: list[Keys] = []
        self._made = 0

    def files(self) -> list[Keys]:
        """Files that together have every key of every finished level once. Raises DiskFull."""
        for number in range(self._seen, len(self._directory.content.levels)):
            level = self._directory.level(number)
            (self._small if level.count < SMALL else self._large).append(level)
            self._seen += 1
            if len(self._small) >= MANY:
                self._merge()
        return [*self._large, *self._runs, *self._small]

    def _merge(self) -> None:
        """Make a run of the small levels and the last run, where that stays small; not where memory is short."""
        parts = list(self._small)
        count = sum(keys.count for keys in parts)
        grows = bool(self._runs) and self._runs[-1].count + count <= LARGEST
        if grows:
            parts.append(self._runs[-1])
            count += parts[-1].count
        words = parts[0].words
        if not self._watch.grants(count * (16 * words + 32) + CHUNK * 8 * words):
            return
        keys = np.concatenate([chunk.copy() for part in parts for chunk in part.chunks()])
        writer = Writer(self._directory.folder / f"run-{self._made:05}.part")
        try:
            writer.write(keys[sorting(keys, order_of(keys))])
        finally:
            writer.close()
        self._made += 1
        if grows:
            self._runs.pop().path.unlink()
        self._runs.append(Keys(writer.part, count, words))
        self._small.clear()
