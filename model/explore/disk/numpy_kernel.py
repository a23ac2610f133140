"""A level with NumPy: what everyone has, and what the compiled one is held against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.terms import TRUE
from ...interpret.batch import Batch, Block, Candidates
from ...interpret.packing import Words
from ...interpret.symmetry import Symmetry
from ...interpret.table import INSERTED, StateTable, grown
from .. import memory
from ..batch import BLOCK, LEAST, WAITING, Spent
from ..result import Query, Watch
from .kernel import Tally
from .order import Actions, Orders, Rows, matches, order_of, sorting

_SORTED = 40
"""Bytes for each candidate while they are brought into their order, its own words excepted."""

_LAID = 1 << 16
"""Candidates that are given out at once."""


@dataclass
class _Settled:
    """Candidates in order, and which of them were struck out."""

    keys: Rows
    orders: Orders
    actions: Actions
    known: npt.NDArray[np.bool_]


class NumpyKernel:
    """A level by the batch interpreter; with symmetry of orbits."""

    name = "batch"

    def __init__(self, query: Query, watch: Watch) -> None:
        self.query = query
        self.watch = watch
        self.system = query.system
        self.batch = Batch(self.system)
        symmetry = Symmetry(self.system) if query.symmetry else None
        self.canonical = symmetry.representatives(self.batch.packing) if symmetry else None
        self.words = self.batch.packing.words
        self._limit = query.limits.max_memory
        self._invariants = list(self.system.invariants)
        numbers = {name: number for number, name in enumerate(self.system.actions)}
        self._actions = np.array([numbers[each.action] + 1 for each in self.system.instances], dtype=np.uint16)
        self._of_state = self.batch.state_bytes(
            [
                self.system.constraint,
                *self.system.witnesses.values(),
                *(self.system.invariants[name] for name in query.invariants),
            ]
        )
        cells = len(self.system.layout.cells)
        # A successor is kept as it comes, and then by the state that it comes from; with symmetry it is renamed.
        renamed = 2 * self.batch.width * cells + 24 * self.words if symmetry else 0
        self._of_successor = 2 * (8 * self.words + 8) + 24 + renamed
        self._rows = BLOCK
        self._table: StateTable | None = None
        self._settled: _Settled | None = None
        self._found = np.empty(1 << 10, dtype=np.uint16)
        self._tally = Tally([], [])

    @property
    def _most(self) -> int:
        return self._limit // (8 * self.words + 12)

    def begin(self, candidates: int) -> None:  # noqa: ARG002 - the table grows by itself
        """A new table."""
        self.again()
        self._tally = Tally([0] * len(self.system.instances), [0] * len(self.system.witnesses))

    def again(self) -> None:
        """Another table."""
        self.clear()
        self._table = StateTable(self.words, self._most)
        self._found = np.empty(1 << 10, dtype=np.uint16)

    def clear(self) -> None:
        """Without a table."""
        self._table = self._settled = None
        self._found = np.empty(0, dtype=np.uint16)
        memory.give_back()

    @property
    def count(self) -> int:
        """Keys in the table."""
        return 0 if self._table is None else self._table.count

    def tally(self) -> Tally:
        """What was counted since the level began."""
        return self._tally

    def expand(self, keys: Rows, begins: int) -> int:
        """Block by block. A block is halved where memory is short; with candidates there, they go to disk first."""
        at = 0
        self._rows = min(2 * self._rows, BLOCK)
        while at < len(keys) and not self._tally.broken:
            many = min(self._rows, len(keys) - at)
            if self.watch.grants(many * self._each) and self._block(keys[at : at + many], begins + at):
                at += many
            elif self._rows > LEAST:
                self._rows //= 2
            elif self.count:
                break
            else:
                raise Spent(self.watch.too_much)
        return at

    @property
    def _each(self) -> int:
        """Bytes that a state takes while it is expanded, of an ordinary one."""
        return self._of_state + (WAITING + 1) * (self._of_successor + INSERTED)

    def _block(self, rows: Rows, begins: int) -> bool:
        """Check and expand some states. False, and nothing done, where their successors are too many for memory."""
        keys: Words = np.ascontiguousarray(rows.T)
        count = len(rows)
        block = self.batch.block(keys)
        broken = self._broken(block, count)
        if broken:
            self._tally.broken = begins + broken[0], broken[1]
            return True
        witnesses = [
            int(np.count_nonzero(self.batch.holds(block, term, count))) for term in self.system.witnesses.values()
        ]
        places = np.arange(count).astype(np.uint16)  # no more than a block has; few bits are sorted faster
        if self.system.constraint is not TRUE:
            inside = self.batch.holds(block, self.system.constraint, count)
            places, keys = places[inside], np.ascontiguousarray(keys[:, inside])
            block = self.batch.block(keys)
        found = self._successors(block, keys) if places.size else []
        if found is None or (found and not self._take(found, places, begins)):
            return False
        for candidates in found:
            self._tally.transitions[candidates.instance] += candidates.rows.size
        for number, met in enumerate(witnesses):
            self._tally.witnesses[number] += met
        return True

    def _successors(self, block: Block, keys: Words) -> list[Candidates] | None:
        """All of a block; None where memory is denied for them."""
        found: list[Candidates] = []
        kept, looked = 0, WAITING * keys.shape[1]
        for candidates in self.batch.expand(block, keys):
            found.append(candidates)
            kept += candidates.rows.size
            if kept > looked:
                looked += WAITING * keys.shape[1]
                if not self.watch.grants(kept * self._of_successor):
                    return None
        return found

    def _broken(self, block: Block, count: int) -> tuple[int, int] | None:
        """The first state of a block that breaks an invariant, and the first invariant that it breaks."""
        first: tuple[int, int] | None = None
        for number, name in enumerate(self._invariants):
            if name not in self.query.invariants:
                continue
            holds = self.batch.holds(block, self.system.invariants[name], count)
            if not holds.all() and (first is None or int(np.argmin(holds)) < first[0]):
                first = int(np.argmin(holds)), number
        return first

    def _take(self, found: list[Candidates], places: npt.NDArray[np.uint16], begins: int) -> bool:
        """Take the successors of a block into the table, by the states that they come from."""
        assert self._table is not None
        escaped = [(int(places[each.rows[each.escaped[0]]]), each.instance) for each in found if each.escaped.size]
        if escaped and self._tally.escaped is None:
            # Of one state the first instance, as they come in the trie.
            row, instance = min(escaped, key=lambda each: each[0])
            self._tally.escaped = begins + row, instance
        if self._tally.escaped is not None:
            return True
        many = sum(each.rows.size for each in found)
        after = many * self._of_successor + self._table.needs(many) + (self._table.count + many) * _SORTED
        if not self.watch.grants(after):
            return False
        keys = np.concatenate([each.keys for each in found], axis=1)
        rows = np.concatenate([places[each.rows] for each in found])
        actions = np.repeat(self._actions[[each.instance for each in found]], [each.rows.size for each in found])
        by_state = np.argsort(rows, kind="stable")
        keys, actions = keys[:, by_state], actions[by_state]
        known = self._table.count
        fresh = self._table.insert(self.canonical(keys) if self.canonical else keys)
        self._found = grown(self._found, known, self._table.count, self._most)
        self._found[known : self._table.count] = actions[fresh]
        return True

    def settle(self) -> None:
        """Sort them."""
        assert self._table is not None
        keys: Rows = self._table.keys.T
        actions = self._found[: len(keys)]
        # Slots are not needed any more.
        self._table = None
        self._sort(keys, actions)

    def _sort(self, keys: Rows, actions: Actions) -> None:
        orders = order_of(keys)
        by_order = sorting(keys, orders)
        keys, orders, actions = keys[by_order], orders[by_order], actions[by_order]
        alike = np.flatnonzero(orders[1:] == orders[:-1])
        kept = np.ones(len(keys), dtype=np.bool_)
        kept[alike[(keys[alike] == keys[alike + 1]).all(axis=1)] + 1] = False
        if not kept.all():
            keys, orders, actions = keys[kept], orders[kept], actions[kept]
        self._settled = _Settled(keys, orders, actions, np.zeros(len(keys), dtype=np.bool_))

    def strike(self, keys: Rows) -> None:
        """Mark those that are there."""
        settled = self._settled
        assert settled is not None
        if not len(keys):
            return
        orders = order_of(keys)
        low = int(np.searchsorted(settled.orders, orders[0], "left"))
        high = int(np.searchsorted(settled.orders, orders[-1], "right"))
        mine, _ = matches(settled.keys[low:high], settled.orders[low:high], keys, orders)
        settled.known[low + mine] = True

    def fresh(self) -> Iterator[tuple[Rows, Actions]]:
        """A slice after the other."""
        settled = self._settled
        assert settled is not None
        for at in range(0, len(settled.orders), _LAID):
            kept = np.flatnonzero(~settled.known[at : at + _LAID]) + at
            if kept.size:
                yield settled.keys[kept], settled.actions[kept]

    def holds(self) -> int:
        """By what sorting takes."""
        self.clear()
        there = self._limit - memory.resident() - BLOCK * 8 * self.words
        room = there // (2 * (8 * self.words + _SORTED))
        if room < LEAST:
            raise Spent(self.watch.too_much)
        return room

    def load(self, spilled: Iterable[tuple[Rows, Actions]], count: int, shared: int) -> None:  # noqa: ARG002
        """All side by side, sorted at once."""
        self.clear()
        keys = np.empty((count, self.words), dtype=np.uint64)
        actions = np.empty(count, dtype=np.uint16)
        at = 0
        for some, theirs in spilled:
            keys[at : at + len(some)] = some
            actions[at : at + len(some)] = theirs
            at += len(some)
        self._sort(keys[:at], actions[:at])

    def leads(self, keys: Rows, key: Rows) -> int | None:
        """The first that has a step there."""
        at, rows = 0, BLOCK
        while at < len(keys):
            many = min(rows, len(keys) - at)
            if not self.watch.grants(many * self._each) and rows > LEAST:
                rows //= 2
                continue
            found = self._leading(np.ascontiguousarray(keys[at : at + many].T), key)
            if found is not None:
                return at + found
            at += many
        return None

    def _leading(self, keys: Words, key: Rows) -> int | None:
        block = self.batch.block(keys)
        places = np.arange(keys.shape[1])
        if self.system.constraint is not TRUE:
            places = np.flatnonzero(self.batch.holds(block, self.system.constraint, keys.shape[1]))
            keys = np.ascontiguousarray(keys[:, places])
            block = self.batch.block(keys)
        first: int | None = None
        for each in self.batch.expand(block, keys) if places.size else ():
            after = self.canonical(each.keys) if self.canonical else each.keys
            same = (after == key[:, None]).all(axis=0)
            same[each.escaped] = False
            if same.any():
                row = int(places[each.rows[int(np.argmax(same))]])
                first = row if first is None else min(first, row)
        return first
