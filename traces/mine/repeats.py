"""Events that came before: of a file whose traces are numbered like those of files that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model.core.errors import BadInput
from ..corpus.files import EventsFile, open_events
from ..corpus.manifest import CorpusFile
from ..text import counted

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Repeats:
    """How many events of a file belong to traces that came before, and the first of them (a trace id and a step).

    ``duplicate``: with the same trace and step. ``late``: at a step that is new and below the last that had come.
    ``continued``: at a step after all that had come.
    """

    duplicate: int = 0
    late: int = 0
    continued: int = 0
    first: tuple[int, int] | None = None

    @property
    def told(self) -> str:
        """In words; empty where there are none."""
        kinds = (("duplicate", self.duplicate), ("late", self.late), ("continued", self.continued))
        counts = [counted(count, f"{name} event") for name, count in kinds if count]
        if self.first is None:
            return ""
        return f"{' and '.join(counts)}, the first of trace {self.first[0]} at step {self.first[1]}"


def repeats_of(file: CorpusFile, earlier: Sequence[Path]) -> Repeats:
    """What of a file repeats or goes on with traces of earlier files.

    Only the row groups whose ranges of trace ids meet are read. An earlier file that is not there any more, or cannot
    be read, does not count. Raises BadInput where the file itself cannot be read.
    """
    with file.open() as opened:
        mine = _events(opened, [(file.first or 0, file.last or 0)])
        bounds = opened.bounds
    if mine is None:
        return Repeats()
    theirs: list[npt.NDArray[Any]] = []
    for path in earlier:
        try:
            with open_events(path) as other:
                found = _events(other, bounds)
        except BadInput:
            continue
        if found is not None:
            theirs.append(found)
    if not theirs:
        return Repeats()
    return _compared(mine, np.concatenate(theirs, axis=1))


def _events(file: EventsFile, bounds: Sequence[tuple[int, int]]) -> Longs | None:
    """Trace ids and steps, shape (2, n), of the row groups that meet a range."""
    found = [
        np.stack([events.trace, events.step.astype(np.int64)])
        for group, (first, last) in enumerate(file.bounds)
        if any(first <= high and low <= last for low, high in bounds)
        for events in [file.read(group, cells=())]
    ]
    return np.concatenate(found, axis=1) if found else None


def _compared(mine: Longs, theirs: Longs) -> Repeats:
    traces, number = np.unique(theirs[0], return_inverse=True)
    latest = np.zeros(traces.size, dtype=np.int64)
    np.maximum.at(latest, number, theirs[1])
    place = np.minimum(np.searchsorted(traces, mine[0]), traces.size - 1)
    known = traces[place] == mine[0]
    # A step fits into 31 bits, so that trace number and step make one key.
    same = known & np.isin((place << 32) | mine[1], (number << 32) | theirs[1])
    late = known & ~same & (mine[1] < latest[place])
    if not known.any():
        return Repeats()
    at = int(known.argmax())
    first = int(mine[0, at]), int(mine[1, at])
    return Repeats(int(same.sum()), int(late.sum()), int((known & ~same & ~late).sum()), first)
