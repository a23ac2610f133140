"""The algebra ``k`` and the state ``s`` that the text of a protocol is written against.

``Algebra`` and ``View`` are the interface. This module's ``Tracer`` and ``TracedState`` record terms;
``interpret/reference.py`` has the pair that computes with plain ints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeAlias

from . import terms
from .domains import Index, Variable
from .errors import ProtocolError
from .terms import NONE, Sort, Term

Value: TypeAlias = Any
"""A term while tracing; an int or a bool (a replica set: a bit mask) in the reference interpreter."""


class _Every:
    """The type of ``EVERY``."""

    def __repr__(self) -> str:
        return "EVERY"


EVERY: Final = _Every()
"""In the place of an index, in an update: all values of that index."""


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

    @staticmethod
    def update(**writes: Value) -> Update:
        """The state with these variables changed: ``s.update(quorum_isr=x, leo={replica: y})``.

        A scalar takes its value; an indexed variable takes a mapping from index (or tuple of indices) to value.
        ``EVERY`` in an index writes the cells at all its values. All values are read in the state before the step.
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


class Tracer(Algebra):
    """The algebra of terms: what it computes is the text itself."""

    NONE = terms.const(NONE, Sort.REPLICA)

    def __init__(self, rules: object) -> None:
        super().__init__(rules, lambda name: terms.node("constant", (), Sort.INT, name))
        self._fresh = count()

    def all(self, *conditions: Value) -> Value:
        return terms.conjunction(*conditions)

    def any(self, *conditions: Value) -> Value:
        return terms.disjunction(*conditions)

    def negate(self, condition: Value) -> Value:
        return terms.negate(condition)

    def ite(self, condition: Value, then: Value, otherwise: Value) -> Value:
        return terms.choose(condition, then, otherwise)

    def min(self, left: Value, right: Value) -> Value:
        return terms.minimum(left, right)

    def max(self, left: Value, right: Value) -> Value:
        return terms.maximum(left, right)

    def member(self, replica: Value, replicas: Value) -> Value:
        return terms.member(replica, replicas)

    def with_member(self, replicas: Value, replica: Value) -> Value:
        return terms.with_member(replicas, replica)

    def without_member(self, replicas: Value, replica: Value) -> Value:
        return terms.without_member(replicas, replica)

    def only(self, replica: Value) -> Value:
        return terms.with_member(terms.const(0, Sort.SET), replica)

    def majority(self, replicas: Value, of: Value) -> Value:
        return terms.majority(replicas, of)

    def _bind(self, op: str, index: Index, body: Callable[[Value], Value], *rest: Term) -> Term:
        variable = terms.node("bound", (), index.sort, f"{index.name}#{next(self._fresh)}")
        inner = terms.lift(body(variable))
        if inner.sort is not Sort.BOOL:
            raise ProtocolError(f"the body {inner} of {op} over {index.name} is not a condition")
        sort = Sort.INT if rest else Sort.BOOL
        return terms.node(op, (variable, inner, *rest), sort, index.name)

    def forall(self, index: Index, body: Callable[[Value], Value]) -> Value:
        return self._bind("forall", index, body)

    def exists(self, index: Index, body: Callable[[Value], Value]) -> Value:
        return self._bind("exists", index, body)

    def first(self, index: Index, body: Callable[[Value], Value], default: Value) -> Value:
        return self._bind("first", index, body, terms.lift(default))

    def last(self, index: Index, body: Callable[[Value], Value], default: Value) -> Value:
        return self._bind("last", index, body, terms.lift(default))


class _TracedVariable:
    """``s.leo`` while tracing: indexing it gives a ``var`` term."""

    def __init__(self, variable: Variable) -> None:
        self._variable = variable

    def __getitem__(self, index: Value) -> Term:
        indices = index if isinstance(index, tuple) else (index,)
        return read_term(self._variable, tuple(terms.lift(i) for i in indices))


def read_term(variable: Variable, indices: tuple[Term, ...]) -> Term:
    """The term that reads one cell of a variable.

    Raises ProtocolError where the number or the sorts of the indices are not the variable's.
    """
    _check_number(variable, indices)
    for index, term in zip(variable.per, indices, strict=True):
        if term.sort is not index.sort:
            raise ProtocolError(f"{variable.name} is indexed by {index.name}, not by the {term.sort.value} {term}")
    return terms.node("var", indices, variable.values.sort, variable.name)


def written_term(variable: Variable, indices: tuple[Value, ...]) -> Term:
    """The term that names the cells that an update writes: one cell, or all along an index that is ``EVERY``.

    Raises ProtocolError as ``read_term`` does.
    """
    _check_number(variable, indices)
    return read_term(
        variable,
        tuple(
            terms.every(index.sort) if i is EVERY else terms.lift(i)
            for i, index in zip(indices, variable.per, strict=True)
        ),
    )


def _check_number(variable: Variable, indices: tuple[Value, ...]) -> None:
    if len(indices) != len(variable.per):
        raise ProtocolError(f"{variable.name} takes {len(variable.per)} indices, not {len(indices)}")


class TracedState(View):
    """The state of terms."""

    def __init__(self, variables: Mapping[str, Variable]) -> None:
        object.__setattr__(self, "_variables", variables)

    def __getattr__(self, name: str) -> Value:
        variables: Mapping[str, Variable] = object.__getattribute__(self, "_variables")
        if name not in variables:
            raise ProtocolError(f"the state has no variable {name!r}; it has {', '.join(variables)}")
        variable = variables[name]
        return _TracedVariable(variable) if variable.per else read_term(variable, ())
