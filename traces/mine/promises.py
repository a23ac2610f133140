"""Pass one: the promises that observed states break, as array expressions over blocks of rows.

No step is looked at, so this holds for traces that lack events too. Where cells were not observed, a promise counts as
broken only if it is whatever they hold (``partial.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from ...model.core import terms
from ...model.core.ground import System
from ...model.core.terms import Term, literal
from ...model.interpret.batch import Block, literal_cell
from ..corpus.layout import Events
from .kernel import Kernel
from .partial import Mask, PartialBlock, Rows

ROWS: Final = 1 << 16
"""Rows that go through compiled conditions at once. Of fencing at 3/2/2/2, in million rows a second of one core: 2**12
27, 2**13 49, 2**14 82, 2**15 118, 2**16 134; of consumers at 2/2/3/2: 13, 21, 40, 55, 68."""

BLOCK: Final = 1 << 14
"""Rows whose every term is kept while they are looked at: some hundred columns then stay in the second-level cache. Of
fencing, likewise: 2**11 4.9, 2**12 8.2, 2**13 16, 2**14 26, 2**15 13, 2**17 8.4."""


class Promises:
    """The conditions of each invariant that is to be checked, by name, in the model's order."""

    def __init__(self, conditions: Mapping[str, tuple[Term, ...]]) -> None:
        self.conditions = conditions
        self._kernels: dict[np.dtype[Any], Kernel] = {}

    @classmethod
    def of(cls, system: System) -> Promises:
        """All invariants of a system, without what is true of every value of a cell's domain.

        Whoever reads a file has held each value to its domain.
        """
        return cls({name: _undecided(system, term) for name, term in system.invariants.items()})

    def broken(self, events: Events) -> dict[str, Rows]:
        """For each invariant that some row breaks, in the model's order, those rows, ascending."""
        found: dict[str, list[Rows]] = {}
        for name, rows in self._whole(events) if events.seen is None else self._partial(events, events.seen):
            found.setdefault(name, []).append(rows)
        return {name: np.concatenate(found[name]) for name in self.conditions if name in found}

    def _kernel(self, dtype: np.dtype[Any]) -> Kernel:
        """All conditions as one: nearly every row keeps all promises."""
        if dtype not in self._kernels:
            every = terms.conjunction(*(part for parts in self.conditions.values() for part in parts))
            self._kernels[dtype] = Kernel(every, dtype, ROWS)
        return self._kernels[dtype]

    def _whole(self, events: Events) -> Iterator[tuple[str, Rows]]:
        kernel = self._kernel(events.cells.dtype)
        for low in range(0, len(events), ROWS):
            holds = kernel(events.cells[:, low : low + ROWS])
            if holds.all():
                continue
            rows = low + np.flatnonzero(~holds)
            block = Block(events.cells.take(rows, axis=1))
            for name, conditions in self.conditions.items():
                bad = ~np.broadcast_to(block(terms.conjunction(*conditions)), rows.shape)
                if bad.any():
                    yield name, rows[bad]

    def _partial(self, events: Events, seen: Mask) -> Iterator[tuple[str, Rows]]:
        for low in range(0, len(events), BLOCK):
            block = PartialBlock(events.cells[:, low : low + BLOCK], seen[:, low : low + BLOCK])
            for name, conditions in self.conditions.items():
                bad = block.broken(terms.conjunction(*conditions))
                if bad.any():
                    yield name, low + np.flatnonzero(bad)


def _undecided(system: System, invariant: Term) -> tuple[Term, ...]:
    parts = invariant.args if invariant.op == "and" else (invariant,)
    return tuple(part for part in parts if not _in_domain(system, part))


def _in_domain(system: System, part: Term) -> bool:
    """Whether a condition is a bound of one cell that its domain keeps."""
    if part.op != "le":
        return False
    left, right = part.args
    cells = system.layout.cells
    if left.op == "const" and right.op == "cell":
        return literal(left) <= cells[literal_cell(right)].low
    if left.op == "cell" and right.op == "const":
        return cells[literal_cell(left)].high <= literal(right)
    return False
