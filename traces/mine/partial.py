"""Conditions over states of which some cells were not observed: true, false, or not to be told.

Kleene's strong three-valued logic, over columns. A value that is told holds whatever the cells hold that were not
observed; the reverse is not claimed (``a or not a`` over a cell that was not observed is not told).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...model.core.terms import Term
from ...model.interpret.batch import Array, Block, literal_cell
from ..corpus.layout import Integers

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

EVERYWHERE = np.asarray(True)


class PartialBlock:
    """Ground terms over columns with holes, each evaluated once.

    ``columns``: shape (cells, n), any value of its domain where a cell was not observed; ``seen``: same shape.
    """

    def __init__(self, columns: Integers, seen: Mask) -> None:
        self._block = Block(columns)
        self._seen = seen
        self._memo: dict[Term, Array] = {}

    def broken(self, condition: Term) -> Mask:
        """Where a condition is certainly false, shape (n,)."""
        return np.broadcast_to(self.told(condition) & ~self._block(condition), (self._seen.shape[1],))

    def told(self, term: Term) -> Array:
        """Where the term's value is certain; then ``value`` has it."""
        found = self._memo.get(term)
        if found is None:
            found = self._memo[term] = self._told(term)
        return found

    def _told(self, term: Term) -> Array:
        op, args = term.op, term.args
        if op == "cell":
            column: Array = self._seen[literal_cell(term)]
            return column
        if not args:
            return EVERYWHERE
        parts = [self.told(arg) for arg in args]
        every = np.asarray(np.logical_and.reduce(np.broadcast_arrays(*parts)))
        if op in ("and", "or"):
            # One operand that is told, and decides.
            deciding = [told & (self._block(arg) == (op == "or")) for told, arg in zip(parts, args, strict=True)]
            return np.asarray(every | np.logical_or.reduce(np.broadcast_arrays(*deciding)))
        if op == "ite":
            test, then, otherwise = parts
            chosen = test & np.where(self._block(args[0]), then, otherwise)
            return np.asarray(chosen | (then & otherwise & (self._block(args[1]) == self._block(args[2]))))
        return every
