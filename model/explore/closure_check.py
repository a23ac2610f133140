"""Whether a mutant keeps all promises, from the states that are known already: the model's own.

The model's reachable states, closed under the mutant's steps, hold every state that the mutant reaches. Where a promise
holds in all of them, the mutant keeps it, and need not be explored from its initial state. Mostly the mutant leads to
no state beyond the model's, and the comparison of the two has seen it. That a promise breaks is never said here: a
state of the closure may be out of the mutant's reach, and a shortest run to one is for ``explore`` to find.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.ground import System
from ..core.terms import TRUE
from ..interpret.batch import Batch
from ..interpret.packing import Words
from ..interpret.reference import Reference
from ..interpret.table import StateTable
from .batch import BLOCK, Search
from .compare import Difference
from .result import Step, Watch


class Model:
    """The states of a model that holds, and a run to each of its witnesses."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self._runs: dict[str, list[Step] | None] = {}

    def run_to(self, witness: str) -> list[Step] | None:
        """A shortest run of the model to a state that meets a witness; None where it meets it in no last state.

        With symmetry the run ends in a renamed state, which is asked again.
        """
        if witness not in self._runs:
            self._runs[witness] = self._found(witness)
        return self._runs[witness]

    def _found(self, witness: str) -> list[Step] | None:
        batch, table = self.search.batch, self.search.table
        term = self.search.system.witnesses[witness]
        for at, keys in _blocks(table, 0, table.count):
            met = batch.holds(batch.block(keys), term, keys.shape[1])
            if met.any():
                path = self.search.path(at + int(np.argmax(met)))
                last = path[-1].state if path else self.search.system.initial
                key = batch.packing.key(last)[:, None]
                return path if batch.holds(batch.block(key), term, 1).all() else None
        return None


class Closure:
    """The states of a model, and those to which a mutant's steps lead from them."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.search = model.search
        self.watch = Watch(self.search.query.limits, None)
        self._told: list[Words] = []
        self._waiting = 0
        self._table: StateTable | None = None
        self._escaped = False

    def add(self, keys: Words, escaped: bool) -> None:
        """States to which steps lead that the model has not: what ``compare`` tells of. ``escaped``: one has no key."""
        self._escaped |= escaped
        self._told.append(keys)
        self._waiting += keys.shape[1]
        if self._waiting > BLOCK:
            self._take()

    def _take(self) -> None:
        """Put what was told of into the table, many at once."""
        if self._told:
            if self._table is None:
                self._table = self.search.table.copy()
            self._insert(self._table, self._told)
            self._told, self._waiting = [], 0

    def keeps_promises(self, mutant: System, action: str, difference: Difference) -> bool:
        """Whether a mutant holds, as ``explore`` would find with the query of the search. False: explore it.

        All its steps that differ have been told of; ``action`` is the one in which it differs, and ``difference`` how.
        False also where a limit is met, a value leaves its domain, or the search is bounded in depth.
        """
        if self.search.query.limits.max_depth is not None or mutant.constraint is not TRUE or self._escaped:
            return False
        self._take()
        if self._table is not None and not self._closes(self._table, Batch(mutant)):
            return False
        # Where the mutant only has more steps it reaches all that the model does, and the model meets every witness.
        if not difference.fewer and not difference.other:
            return True
        return all(self._goes_along(mutant, action, name) for name in mutant.witnesses) or self._meets(mutant)

    def _closes(self, table: StateTable, batch: Batch) -> bool:
        """Add all that the mutant's steps lead to from states beyond the model's. False where a promise breaks."""
        promises = [batch.system.invariants[name] for name in self.search.query.invariants]
        start = self.search.table.count
        while start < table.count:
            end = table.count
            for _, keys in _blocks(table, start, end):
                block = batch.block(keys)
                if not all(batch.holds(block, promise, keys.shape[1]).all() for promise in promises):
                    return False
                successors = batch.successors(block, keys)
                if any(each.escaped.size for each in successors):
                    return False
                self._insert(table, [each.keys for each in successors])
                if self.watch.exhausted(table.count):
                    return False
            start = end
        return True

    def _goes_along(self, mutant: System, action: str, witness: str) -> bool:
        """Whether the model's run to a witness is one of the mutant too, by the reference's word."""
        reference = Reference(mutant)
        state, run = mutant.initial, self.model.run_to(witness)
        for step in run or ():
            taken = step.instance
            if taken.action == action and reference.step(state, action, taken.params) != step.state:
                return False
            state = step.state
        return run is not None

    def _meets(self, mutant: System) -> bool:
        """Whether the mutant's own states, level after level, meet every witness."""
        batch = Batch(mutant)
        table = StateTable(batch.packing.words)
        self._insert(table, [batch.packing.key(mutant.initial)[:, None]])
        unmet = dict(mutant.witnesses)
        start = 0
        while unmet and start < table.count:
            end = table.count
            for _, keys in _blocks(table, start, end):
                block = batch.block(keys)
                unmet = {name: w for name, w in unmet.items() if not batch.holds(block, w, keys.shape[1]).any()}
                if not unmet:
                    break
                successors = batch.successors(block, keys)
                self._insert(table, [each.keys for each in successors])
                if self.watch.exhausted(table.count):
                    return False
            start = end
        return not unmet

    def _insert(self, table: StateTable, found: list[Words]) -> None:
        if found:
            keys = np.concatenate(found, axis=1)
            table.insert(self.search.canonical(keys) if self.search.canonical else keys)


def _blocks(table: StateTable, start: int, end: int) -> Iterator[tuple[int, Words]]:
    """The keys of these members, some at a time, with the first one's number; copies, as the table may grow."""
    for at in range(start, end, BLOCK):
        yield at, table.keys[:, at : min(at + BLOCK, end)].copy()
