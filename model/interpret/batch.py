"""The batch interpreter: guards as masks and updates as columns over a whole frontier, in NumPy.

States travel as packed keys (``packing.py``). A block of keys is unpacked into one column per cell; every
condition is computed once per block, whichever instances share it; an update changes only its own fields of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..core.ground import Instance, System
from ..core.terms import Sort, Term, literal
from .bounds import Bounds
from .packing import Columns, Field, Packing, Words
from .trie import Trie, by_guards

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

_TEMPORARY: Final = 64
"""Bytes a state of what is computed and not kept: rows, masks, a column of whole words while it is unpacked."""


def _member(replica: Array, replicas: Array) -> Array:
    # NONE is -1 and in no set; a shift by it means nothing.
    inside: Array = np.right_shift(replicas, np.maximum(replica, 0)) & 1
    return np.logical_and(replica >= 0, inside)


def _bit(replica: Array, dtype: npt.DTypeLike) -> Array:
    """The set of one replica; of NONE, the empty set."""
    return np.where(replica >= 0, np.left_shift(1, np.maximum(replica, 0)), 0).astype(dtype)


def _majority(replicas: Array, of: Array) -> Array:
    # The count is narrow and unsigned: twice one of up to 63 still fits.
    more: Array = 2 * np.bitwise_count(replicas & of) > np.bitwise_count(of)
    return more


def _chosen(condition: Array, then: Array, otherwise: Array) -> Array:
    """``np.where`` by bits, which is thirty times as fast as by branches: a mask of states is hard to foretell."""
    if not condition.ndim or then.dtype != otherwise.dtype:
        return np.where(condition, then, otherwise)
    differing = then ^ otherwise
    # All ones where it holds; of truth values, it is the condition itself.
    mask = condition if differing.dtype == np.bool_ else np.negative(condition.view(np.int8))
    return otherwise ^ (differing & mask)


_OPERATIONS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "not": np.logical_not,
    "ite": _chosen,
    "with": lambda replicas, replica: replicas | _bit(replica, replicas.dtype),
    "without": lambda replicas, replica: replicas & ~_bit(replica, replicas.dtype),
    "majority": _majority,
}


class Block:
    """Terms evaluated over the columns of some states; each term once."""

    def __init__(self, columns: Columns, outer: tuple[Block, npt.NDArray[np.intp]] | None = None) -> None:
        self._columns = columns
        self._outer = outer
        self._memo: dict[Term, Array] = {}
        self._dtype: npt.DTypeLike = columns.dtype

    def select(self, rows: npt.NDArray[np.intp]) -> Block:
        """These rows alone. Whatever has been computed for all rows is taken from there."""
        return Block(self._columns, (self, rows))

    def __call__(self, term: Term) -> Array:
        """The term's value: an array of one value a state, or a NumPy scalar for a constant."""
        found = self._memo.get(term)
        if found is None:
            found = self._memo[term] = self._compute(term)
        return found

    def _compute(self, term: Term) -> Array:
        op, args = term.op, term.args
        if op == "const":
            return np.asarray(term.value, dtype=bool if term.sort is Sort.BOOL else self._dtype)
        if self._outer is not None:
            outer, rows = self._outer
            if op == "cell":
                taken: Array = self._columns[literal_cell(term)].take(rows)
                return taken
            known = outer._memo.get(term)
            if known is not None:
                values: Array = known.take(rows) if known.ndim else known
                return values
        elif op == "cell":
            column: Array = self._columns[literal_cell(term)]
            return column
        if op in ("and", "or"):
            combine = np.logical_and if op == "and" else np.logical_or
            result: Array = self(args[0])
            for arg in args[1:]:
                result = combine(result, self(arg))
            return result
        if op == "member":
            if args[0].op == "const":
                return np.asarray((self(args[1]) & np.asarray(1 << literal(args[0]), self._dtype)) != 0)
            return _member(self(args[0]), self(args[1]))
        return _OPERATIONS[op](*map(self, args))


def literal_cell(term: Term) -> int:
    """The number of the cell that a ground ``cell`` term reads."""
    assert isinstance(term.value, int)
    return term.value


@dataclass(frozen=True)
class _Computed:
    """A field of a key that an instance computes.

    ``certain`` says that the term cannot leave the cell's domain, so that nothing has to be looked at.
    """

    term: Term
    field: Field
    certain: bool

    def placed(self, value: Array) -> Words:
        """The field's bits in its word for each of these values, all of the domain."""
        # The difference fits: the columns' dtype was chosen so.
        above = value - value.dtype.type(self.field.low) if self.field.low else value
        return above.astype(np.uint64) << np.uint64(self.field.shift)


@dataclass(frozen=True)
class _Edit:
    """How an instance changes a key: bits to clear and to set in each word, then computed fields to put in."""

    clear: tuple[int, ...]
    fixed: tuple[int, ...]
    computed: tuple[_Computed, ...]


@dataclass(frozen=True)
class Candidates:
    """Successors of one block by one instance.

    ``rows``: the positions in the block of the states in which the instance is enabled, shape (n,).
    ``keys``: their successors, shape (words, n). ``escaped``: positions among the rows whose successor has a value
    outside its cell's domain; their keys mean nothing.
    """

    instance: int
    rows: npt.NDArray[np.intp]
    keys: Words
    escaped: npt.NDArray[np.intp]


def _gather(term: Term, into: set[Term]) -> None:
    """Add a term and all that it is made of."""
    if term not in into:
        into.add(term)
        for each in term.args:
            _gather(each, into)


def _columns_bytes(terms: set[Term], width: int) -> int:
    """Bytes of the values of these terms in one state; integers have ``width`` bytes."""
    return sum(1 if each.sort is Sort.BOOL else width for each in terms if each.op != "const")


class Batch:
    """A system compiled for blocks of states."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.packing = Packing(system.layout)
        self._bounds = Bounds(self.packing, system.constants.get("replicas", 0))
        self._edits = [self._edit(instance) for instance in system.instances]
        self._trie = by_guards(system)

    def _edit(self, instance: Instance) -> _Edit:
        clear = [0] * self.packing.words
        fixed = [0] * self.packing.words
        computed = []
        for number, term in instance.effect.items():
            field = self.packing.fields[number]
            clear[field.word] |= ((1 << field.bits) - 1) << field.shift
            if term.op == "const" and field.low <= literal(term) <= field.high:
                fixed[field.word] |= (literal(term) - field.low) << field.shift
            else:
                low, high = self._bounds(term)
                computed.append(_Computed(term, field, field.low <= low and high <= field.high))
        return _Edit(tuple(clear), tuple(fixed), tuple(computed))

    def block(self, keys: Words) -> Block:
        """The states of these keys, ready for evaluation."""
        return Block(self.packing.unpack(keys))

    def holds(self, block: Block, condition: Term, count: int) -> Mask:
        """Where a condition holds, shape (count,)."""
        return np.broadcast_to(block(condition), (count,))

    def successors(self, block: Block, keys: Words) -> list[Candidates]:
        """All successors of a block, instance by instance; instances enabled nowhere are left out.

        Instances come in the order of the trie of their guards, which is that of the staged reference.
        """
        return list(self.expand(block, keys))

    def expand(self, block: Block, keys: Words) -> Iterator[Candidates]:
        """The same one after the other, for whoever has no room for all at once."""
        for numbers, rows in self._reached(self._trie, None, block, keys.shape[1]):
            narrowed = block.select(rows)
            for number in numbers:
                yield self._apply(number, narrowed, rows, keys)

    @property
    def width(self) -> int:
        """Bytes of an integer in a column."""
        return np.dtype(self.packing.dtype).itemsize

    def state_bytes(self, conditions: Iterable[Term]) -> int:
        """Bytes that each state of a block takes at most while it is expanded; its successors not counted.

        ``conditions``: what else is computed of the block. Every term that is computed is kept until the block is done,
        and those of an effect until its instances are.
        """
        width = self.width
        kept: set[Term] = set()
        effects = 0
        below = [self._trie]
        for node in below:
            below.extend(node.children.values())
            for condition in node.children:
                _gather(condition, kept)
            own: set[Term] = set()
            for number in node.instances:
                for computed in self._edits[number].computed:
                    _gather(computed.term, own)
            effects = max(effects, _columns_bytes(own, width))
        for condition in conditions:
            _gather(condition, kept)
        columns = 8 * self.packing.words + width * len(self.packing.fields)
        return columns + _columns_bytes(kept, width) + effects + _TEMPORARY

    def enabled(self, block: Block, count: int) -> list[tuple[int, npt.NDArray[np.intp]]]:
        """The instances enabled somewhere in a block of ``count`` states, each with the ascending positions of those.

        For whoever takes one step of each state: most successors would be computed in vain.
        """
        nodes = self._reached(self._trie, None, block, count)
        return [(number, rows) for numbers, rows in nodes for number in numbers]

    def apply(self, number: int, block: Block, rows: npt.NDArray[np.intp], keys: Words) -> Candidates:
        """The successors by one instance of the states at these positions, in all of which it is enabled."""
        return self._apply(number, block.select(rows), rows, keys)

    def _reached(
        self, trie: Trie, mask: Array | None, block: Block, count: int
    ) -> Iterator[tuple[list[int], npt.NDArray[np.intp]]]:
        """The nodes below one, for the states where ``mask`` holds (None: all): instances, and where enabled."""
        if trie.instances:
            yield trie.instances, np.arange(count) if mask is None else np.flatnonzero(mask)
        for condition, child in trie.children.items():
            here = block(condition)
            both = here if mask is None else np.logical_and(mask, here)
            if both.any():
                yield from self._reached(child, both, block, count)

    def _apply(self, number: int, block: Block, rows: npt.NDArray[np.intp], keys: Words) -> Candidates:
        edit = self._edits[number]
        after = keys.take(rows, axis=1)
        for word in range(self.packing.words):
            if edit.clear[word]:
                after[word] &= np.uint64(~edit.clear[word] & 0xFFFFFFFFFFFFFFFF)
            if edit.fixed[word]:
                after[word] |= np.uint64(edit.fixed[word])
        bad: Mask | None = None
        for computed in edit.computed:
            field = computed.field
            value = block(computed.term)
            if value.ndim == 0:
                value = np.full(rows.size, value)
            if not computed.certain and (value.min() < field.low or value.max() > field.high):
                outside = (value < field.low) | (value > field.high)
                bad = outside if bad is None else bad | outside
                value = np.where(outside, field.low, value)
            after[field.word] |= computed.placed(value)
        escaped = np.flatnonzero(bad) if bad is not None else np.empty(0, dtype=np.intp)
        return Candidates(number, rows, after, escaped)
