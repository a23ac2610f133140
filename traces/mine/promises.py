"""Pass one: the promises that observed states break, as array expressions over blocks of rows.

No step is looked at, so this holds for traces that lack events too. Where cells were not observed, a promise counts as
broken only if it is whatever they hold (``partial.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...model.core.ground import System
from ...model.core.terms import Term, literal
from ...model.interpret.batch import Block, literal_cell
from ..corpus.layout import Events, Integers
from .against import Rows
from .partial import Mask, PartialBlock

BLOCK: Final = 1 << 14
"""Rows evaluated at once: some hundred columns of temporary values then stay in the second-level cache. At 3/2/2/2, in
million rows a second of one core: 2**11 4.9, 2**12 8.2, 2**13 16, 2**14 26, 2**15 13, 2**17 8.4."""


@dataclass(frozen=True)
class Promises:
    """The conditions of each invariant that is to be checked, by name, in the model's order."""

    conditions: Mapping[str, tuple[Term, ...]]

    @classmethod
    def of(cls, system: System) -> Promises:
        """All invariants of a system, without what is true of every value of a cell's domain.

        Whoever reads a file has held each value to its domain.
        """
        return cls({name: _undecided(system, term) for name, term in system.invariants.items()})

    def broken(self, events: Events) -> dict[str, Rows]:
        """For each invariant that some row breaks, in the model's order, those rows, ascending."""
        found: dict[str, list[Rows]] = {}
        for low in range(0, len(events), BLOCK):
            cells = events.cells[:, low : low + BLOCK]
            seen = None if events.seen is None else events.seen[:, low : low + BLOCK]
            for name, rows in self._broken(cells, seen):
                found.setdefault(name, []).append(rows + low)
        return {name: np.concatenate(found[name]) for name in self.conditions if name in found}

    def _broken(self, cells: Integers, seen: Mask | None) -> Iterator[tuple[str, Rows]]:
        block = Block(cells)
        partial = None if seen is None or seen.all() else PartialBlock(cells, seen)
        for name, conditions in self.conditions.items():
            bad: Mask | None = None
            for condition in conditions:
                if partial is not None:
                    wrong = partial.broken(condition)
                    bad = wrong if bad is None else bad | wrong
                    continue
                holds = block(condition)
                if not holds.all():
                    bad = ~holds if bad is None else bad | ~holds
            if bad is not None and bad.any():
                yield name, np.flatnonzero(np.broadcast_to(bad, cells.shape[1:]))


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
