"""What indices range over in the symbolic interpreter: finitely many literals, or any number of anything.

``FiniteUniverse`` reads a protocol at finite constants: a replica is an int (NONE is -1), an index is a range,
quantifiers are expanded. ``UnboundedUniverse`` reads it at all constants at once: replicas are an uninterpreted
sort with one element ``none`` that is no replica, constants are unknown integers, and an index of integers ends where
its size, a number made of them, says so: what breaks at the last offset that a log has room for breaks there too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import reduce
from itertools import count
from operator import add

import z3

from ..core.domains import REPLICA, Constants, Index, Size, Values
from ..core.errors import ProtocolError
from ..core.symbolic_size import sum_of
from ..core.terms import NONE, Sort
from .symbolic_values import EMPTY, Replicas, Scalar, Truth, Value, both, either, equal


class Universe(ABC):
    """The reading of constants, literals and indices."""

    none: Scalar
    """The value of a REPLICA that names no replica."""

    constants: Mapping[str, Scalar]
    """The protocol's constants, ints or z3 integers."""

    @abstractmethod
    def values(self, index: Index) -> range | None:
        """The values of an index where they are finitely many; None where they are not."""

    @abstractmethod
    def inside(self, index: Index, value: Scalar) -> Truth:
        """Whether a value is in the range of an index."""

    @abstractmethod
    def fresh(self, index: Index) -> Scalar:
        """A new z3 constant of the sort of an index, to be bound by a quantifier."""

    @abstractmethod
    def replica(self, number: int) -> Scalar:
        """A literal REPLICA."""

    @abstractmethod
    def replicas(self, mask: int) -> Replicas:
        """A literal SET, given as a bit mask; as in Python, a negative one has all members but those of its inverse."""

    @abstractmethod
    def sort(self, sort: Sort) -> z3.SortRef:
        """The z3 sort of INT or REPLICA values."""

    def literal(self, sort: Sort, value: int) -> Value:
        """A literal of any sort."""
        if sort is Sort.REPLICA:
            return self.replica(value)
        return self.replicas(value) if sort is Sort.SET else value

    def bounds(self, values: Values) -> tuple[Scalar, Scalar]:
        """The smallest and the largest INT of a value domain (they may depend on the constants)."""
        return self.sized(values.low, "the bound of a value"), self.sized(values.high, "the bound of a value")

    @abstractmethod
    def sized(self, size: Size, of: str) -> Scalar:
        """A number that depends on the constants; ``of`` says in words whose it is."""


class FiniteUniverse(Universe):
    """A protocol at finite constants. Offsets and epochs stay mathematical integers; only their use is finite."""

    none = NONE

    def __init__(self, constants: Constants) -> None:
        self.constants = dict(constants)

    def values(self, index: Index) -> range:
        return range(index.size(self.constants))

    def inside(self, index: Index, value: Scalar) -> Truth:
        return both(0 <= value, value < index.size(self.constants))

    def fresh(self, index: Index) -> Scalar:
        raise AssertionError(f"{index.name} is finite here, and expanded")

    def replica(self, number: int) -> Scalar:
        return number

    def replicas(self, mask: int) -> Replicas:
        if mask < 0:
            return self.replicas(~mask).inverse()
        numbers = [i for i in range(mask.bit_length()) if mask >> i & 1]
        return Replicas(lambda r: either(*(equal(r, i) for i in numbers)))

    def sort(self, sort: Sort) -> z3.SortRef:
        assert sort in (Sort.INT, Sort.REPLICA)
        return z3.IntSort()

    def sized(self, size: Size, of: str) -> int:  # noqa: ARG002 - any function of finite constants will do
        return size(self.constants)


class Quorums:
    """Majorities of one set among any number of replicas: whatever they are, any two have a member in common."""

    def __init__(self, replicas: z3.SortRef, none: Scalar) -> None:
        self._sort = z3.DeclareSort("Quorum")
        self._replicas, self._none = replicas, none
        self._is = z3.Function("quorum", self._sort, z3.BoolSort())
        self._asked = z3.Function("quorum!asked", self._sort, z3.BoolSort())
        self._has = z3.Function("quorum!member", self._sort, replicas, z3.BoolSort())
        self._common = z3.Function("quorum!common", self._sort, self._sort, replicas)

    def axiom(self) -> z3.BoolRef:
        """Two quorums have a member in common."""
        left, right = z3.Consts("quorum!left quorum!right", self._sort)
        common = self._common(left, right)
        shared = z3.And(common != self._none, self._has(left, common), self._has(right, common))
        both_are = z3.And(self._is(left), self._is(right))
        # Nested, as z3's Python does not keep what a pattern of two terms is made of.
        inner = z3.ForAll([right], z3.Implies(both_are, shared), patterns=[self._is(right)])
        return z3.ForAll([left], inner, patterns=[self._asked(left)])

    def within(self, replicas: Replicas, *, asked: bool = False) -> z3.BoolRef:
        """Some quorum is within a set. ``asked``: it is one whose common members with others z3 shall look for."""
        quorum, r = z3.Const("quorum!some", self._sort), z3.Const("quorum!replica", self._replicas)
        inside = z3.ForAll([r], z3.Implies(self._has(quorum, r), replicas.has(r)), patterns=[self._has(quorum, r)])
        parts = [self._is(quorum), *([self._asked(quorum)] if asked else []), inside]
        return z3.Not(z3.ForAll([quorum], z3.Not(z3.And(parts)), patterns=[self._is(quorum)]))


class UnboundedUniverse(Universe):
    """A protocol with any number of replicas, offsets and epochs.

    The names of bound constants are counted from zero in each universe, so that the same calls give the same text;
    ``mark`` keeps the skolem values of one universe apart from those of another in the same text.
    """

    def __init__(self, constants: Mapping[str, object], mark: str = "") -> None:
        self.replica_sort = z3.DeclareSort("Replica")
        self.none = z3.Const("none", self.replica_sort)
        self.constants = {name: z3.Int(name) for name in constants}
        self.quorums = Quorums(self.replica_sort, self.none)
        self._mark = mark
        self._fresh = count()

    def values(self, index: Index) -> None:  # noqa: ARG002 - no index is finite here
        return None

    def inside(self, index: Index, value: Scalar) -> Truth:
        if index.sort is Sort.REPLICA:
            if index.name != REPLICA.name:
                raise ProtocolError(f"among any number of replicas {index.name} is no index: only REPLICA is")
            return value != self.none
        return both(0 <= value, value < self.sized(index.size, f"the size of {index.name}"))

    def sized(self, size: Size, of: str) -> Scalar:
        """The same as a formula. Raises BadText, with the line, for more than constants, + and -."""
        found = sum_of(size, self.constants, of)
        terms = [
            self.constants[name] * count if count != 1 else self.constants[name] for name, count in found.times.items()
        ]
        if not terms:
            return found.number
        whole = reduce(add, terms)
        return whole if not found.number else whole + found.number if found.number > 0 else whole - -found.number

    def fresh(self, index: Index) -> Scalar:
        return z3.Const(f"{index.name}!{next(self._fresh)}", self.sort(index.sort))

    def skolem(self, index: Index, scope: tuple[Scalar, ...]) -> Scalar:
        """A new value of an INT index that depends on the constants bound around it."""
        name = f"{index.name}!at!{self._mark}{next(self._fresh)}"
        if not scope:
            return z3.Int(name)
        return z3.Function(name, *(x.sort() for x in scope), z3.IntSort())(*scope)

    def replica(self, number: int) -> Scalar:
        if number != NONE:
            raise ProtocolError(f"the text names replica {number}; among any number of replicas none has a number")
        return self.none

    def replicas(self, mask: int) -> Replicas:
        if mask not in (0, -1):
            raise ProtocolError(f"the text names the set {mask:#b}; among any number of replicas only {{}} is literal")
        return EMPTY if mask == 0 else EMPTY.inverse()

    def sort(self, sort: Sort) -> z3.SortRef:
        assert sort in (Sort.INT, Sort.REPLICA)
        return z3.IntSort() if sort is Sort.INT else self.replica_sort
