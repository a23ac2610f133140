"""The search on disk, its levels done by other processes: slices are expanded, ranges held against what is known.

Files and answers are those of one process, byte for byte: the driver lays the ranges of a level one behind the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...core.errors import BadInput
from ..batch import Spent
from ..result import Exploration, OnProgress, Query, Watch
from .files import Keys, Spill
from .kernel import Tally
from .manifest import Directory
from .search import DiskSearch, in_directory, refuse_engine, writing
from .tasks import Asked, Expand, Expanded, Merge, Merged, expand_slice, merge_range, summed

ALONE: Final = 1 << 17
"""A level of fewer states is done by the driver: a job of Spark's takes some tenths of a second."""

SLICE: Final = 1 << 20
"""States that a task expands at most."""

WAYS: Final = 8
"""Tasks of a level at least, each of two kinds."""

Spread = Callable[[Sequence[Any], Callable[[Any], Any]], list[Any]]
"""Does work on each of some pieces, wherever; the results, in the order of the pieces. Raises BadInput."""


class SpreadSearch(DiskSearch):
    """``spread`` does the tasks of large levels; small ones are done here."""

    def __init__(
        self,
        query: Query,
        directory: Directory,
        watch: Watch,
        engine: str | None,
        dropped: tuple[str, ...],
        spread: Spread,
    ) -> None:
        super().__init__(query, directory, watch, engine)
        self._asked = Asked.of(query, dropped)
        self._spread = spread
        self._peak = 0

    def run(self) -> Exploration:
        """As in one process; the memory is that of the process which had most."""
        answer = super().run()
        answer.memory = max(answer.memory, self._peak)
        return answer

    def _level(self) -> None:
        number = len(self.content.levels) - 1
        level = self.directory.level(number)
        if level.count < ALONE:
            super()._level()
            return
        engine = self.answer.engine = self._kernel().name
        folder = self.directory.folder.absolute()
        level = Keys(folder / level.path.name, level.count, level.words)
        try:
            size = min(SLICE, -(-level.count // WAYS))
            slices = [
                Expand(self._asked, engine, folder, level, at, min(at + size, level.count))
                for at in range(0, level.count, size)
            ]
            self._report(level.count)
            expanded: list[Expanded] = self._done(slices, expand_slice)
            tally = summed([each.tally for each in expanded], len(self.system.instances), len(self.system.witnesses))
            if not self._ended(tally):
                self._merged(engine, level, [spill for each in expanded for spill in each.spills], len(slices), tally)
        finally:
            self.directory.clear(runs=False)

    def _merged(self, engine: str, level: Keys, spills: Sequence[Spill], slices: int, tally: Tally) -> None:
        """Hold candidates against what is known, range by range, and lay the ranges one behind the other."""
        folder = level.path.parent
        known = tuple(Keys(folder / each.path.name, each.count, each.words) for each in self._known.files())
        shared = (max(slices, WAYS) - 1).bit_length()
        ranges = [Merge(self._asked, engine, folder, tuple(spills), known, shared, part) for part in range(1 << shared)]
        self._report(0)
        merged: list[Merged] = self._done(ranges, merge_range)
        with writing(self.directory.folder, len(self.content.levels)) as writer:
            for each in merged:
                assert each.found is not None
                for keys in each.found.chunks():
                    writer.write(keys)
            self._counted(tally, np.sum([each.discoveries for each in merged], axis=0, dtype=np.int64))
            self._found(writer)

    def _done(self, pieces: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
        """The results of tasks. Raises Spent where one was given up, BadInput where one is refused."""
        results = self._spread(pieces, work)
        for each in results:
            if isinstance(each, BadInput):
                raise each
            if each.unknown is not None:
                raise Spent(each.unknown)
        self._peak = max(self._peak, *(each.memory for each in results))
        return results


def explore_spread(
    query: Query,
    folder: Path,
    spread: Spread,
    engine: str | None = None,
    dropped: tuple[str, ...] = (),
    on_progress: OnProgress | None = None,
) -> Exploration:
    """As ``explore_on_disk``, with large levels done wherever ``spread`` does its work; all see the directory.

    ``dropped``: the guards that the query's text lacks, as ACTION.GUARD, since others read it anew. ``max_memory`` is
    granted to each process. Raises BadInput.
    """
    refuse_engine(query, engine)
    return in_directory(
        query, folder, on_progress, lambda at, watch: SpreadSearch(query, at, watch, engine, dropped, spread)
    )
