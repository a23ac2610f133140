"""The algebra ``k`` and the state ``s`` that the text of a protocol is written against.

``Algebra`` and ``View`` are the interface. ``tracer.py`` has the pair that records terms, and refuses what is no text;
``interpret/reference.py`` has the pair that computes with plain ints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from .domains import Index

Value: TypeAlias = Any
"""A term while tracing; an int or a bool (a replica set: a bit mask) in the reference interpreter."""


class _Every:
    """The type of ``EVERY``."""

    def __repr__(self) -> str:
        return "EVERY"


EVERY: Final = _Every()
"""In the place of an index, in an update: all values of that index."""

RowValue: TypeAlias = Callable[..., Value]
"""What an update writes along indices that are ``EVERY``: a function of one index for each of them."""


class Update:
    """The effect of an action: for each variable, the cells written and their values."""

    __slots__ = ("writes",)

    def __init__(self, writes: list[tuple[str, tuple[Value, ...], Value]]) -> None:
        self.writes = writes


Step: TypeAlias = Iterator[tuple[str, Value] | Update]
"""What the text of an action yields: named guards, then one update."""


class View(ABC):
    """The state as the text of a protocol sees it: ``s.leo[r]``, ``s.record_id[r, o]``, ``s.quorum_isr``."""

    @abstractmethod
    def __getattr__(self, name: str) -> Value: ...

    def update(self, **writes: Value) -> Update:
        """The state with these variables changed: ``s.update(quorum_isr=x, leo={replica: y})``.

        A scalar takes its value; an indexed variable takes a mapping from index (or tuple of indices) to value.
        ``EVERY`` in an index writes the cells at all its values: one value in all of them, or, given a function of
        the index, each its own, as in ``leader={EVERY: lambda p: k.ite(s.leader[p] == broker, k.NONE, s.leader[p])}``.
        A function takes one index for each ``EVERY``. All values are read in the state before the step.
        """
        flat: list[tuple[str, tuple[Value, ...], Value]] = []
        for name, what in writes.items():
            if isinstance(what, Mapping):
                for index, value in what.items():
                    flat.append((name, index if isinstance(index, tuple) else (index,), value))
            else:
                flat.append((name, (), what))
        return Update(flat)


@dataclass(frozen=True)
class Constant:
    """Read access to the constants by attribute: ``k.c.max_records``."""

    read: Callable[[str], Value]

    def __getattr__(self, name: str) -> Value:
        return self.read(name)


class Algebra(ABC):
    """The operations of a protocol's text. Comparison and arithmetic are Python's operators."""

    NONE: Value
    """No replica."""
    EMPTY: Value
    """The empty set of replicas."""

    def __init__(self, rules: object, constant: Callable[[str], Value]) -> None:
        self.rules: Any = rules
        """What the chosen variant's text depends on (``Variant.rules``)."""
        self.c: Any = Constant(constant)

    @abstractmethod
    def all(self, *conditions: Value) -> Value:
        """All conditions hold."""

    @abstractmethod
    def any(self, *conditions: Value) -> Value:
        """At least one condition holds."""

    @abstractmethod
    def negate(self, condition: Value) -> Value:
        """The condition does not hold."""

    def implies(self, condition: Value, consequence: Value) -> Value:
        """If the condition holds, then so does the consequence."""
        return self.any(self.negate(condition), consequence)

    @abstractmethod
    def ite(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """One of two values."""

    @abstractmethod
    def min(self, left: Value, right: Value) -> Value:
        """The smaller of two integers."""

    @abstractmethod
    def max(self, left: Value, right: Value) -> Value:
        """The larger of two integers."""

    @abstractmethod
    def member(self, replica: Value, replicas: Value) -> Value:
        """Whether the replica is in the set (NONE is in none)."""

    @abstractmethod
    def with_member(self, replicas: Value, replica: Value) -> Value:
        """The set and this replica."""

    @abstractmethod
    def without_member(self, replicas: Value, replica: Value) -> Value:
        """The set less this replica."""

    @abstractmethod
    def only(self, replica: Value) -> Value:
        """The set of just this replica."""

    @abstractmethod
    def majority(self, replicas: Value, of: Value) -> Value:
        """More than half of the members of ``of`` are in the set: any two such sets have a member in common."""

    @abstractmethod
    def forall(self, index: Index, body: Callable[[Value], Value]) -> Value:
        """The body holds for every value of the index."""

    @abstractmethod
    def exists(self, index: Index, body: Callable[[Value], Value]) -> Value:
        """The body holds for some value of the index. In a guard, prefer a parameter."""

    @abstractmethod
    def first(self, index: Index, body: Callable[[Value], Value], default: Value) -> Value:
        """The smallest value of an INT index for which the body holds, else ``default``."""

    @abstractmethod
    def last(self, index: Index, body: Callable[[Value], Value], default: Value) -> Value:
        """The largest value of an INT index for which the body holds, else ``default``."""
