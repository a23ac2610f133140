"""Values of the symbolic interpreter: Python literals where they are known, z3 expressions where they are not.

Every operation folds literals, so that what is built for small finite constants stays small. A set of replicas
is a predicate (``Replicas``); it never becomes a z3 set or bit vector. z3 has no type information: the aliases
below say what is meant and are ``Any`` to the type checker, and only here and in the ``symbolic*`` modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import z3

# The process's end frees the main context. Where terms are left when it is deleted, as may be at exit, z3 goes through
# all of them once for each level of the deepest: minutes, after a whole proof was told.
z3.main_ctx().owner = False

Truth: TypeAlias = Any
"""A Python bool, or a ``z3.BoolRef``."""

Scalar: TypeAlias = Any
"""A Python int, a ``z3.ArithRef``, or a z3 constant of the sort of replicas."""

Value: TypeAlias = Any
"""A ``Truth``, a ``Scalar`` or a ``Replicas``."""


@dataclass(frozen=True)
class Replicas:
    """A set of replicas: ``has(replica)`` is the condition of being in it, for a replica that is not NONE."""

    has: Callable[[Scalar], Truth]

    def with_member(self, replica: Scalar) -> Replicas:
        """The set and this replica."""
        return Replicas(lambda r: either(equal(r, replica), self.has(r)))

    def without_member(self, replica: Scalar) -> Replicas:
        """The set less this replica."""
        return Replicas(lambda r: both(negated(equal(r, replica)), self.has(r)))

    def inverse(self) -> Replicas:
        """The replicas that are not in the set."""
        return Replicas(lambda r: negated(self.has(r)))


EMPTY = Replicas(lambda _: False)


def is_literal(value: Value) -> bool:
    """Whether the value is known: a Python int or bool."""
    return isinstance(value, int)


def both(*conditions: Truth) -> Truth:
    """All of them."""
    return _junction(conditions, absorbing=False, build=z3.And)


def either(*conditions: Truth) -> Truth:
    """At least one of them."""
    return _junction(conditions, absorbing=True, build=z3.Or)


def _junction(conditions: Iterable[Truth], *, absorbing: bool, build: Callable[..., Truth]) -> Truth:
    open_parts = []
    for condition in conditions:
        if isinstance(condition, bool):
            if condition is absorbing:
                return absorbing
            continue
        open_parts.append(condition)
    if not open_parts:
        return not absorbing
    return open_parts[0] if len(open_parts) == 1 else build(open_parts)


def negated(condition: Truth) -> Truth:
    """Not."""
    return not condition if isinstance(condition, bool) else z3.Not(condition)


def implied(condition: Truth, consequence: Truth) -> Truth:
    """If the condition holds, then so does the consequence."""
    if isinstance(condition, bool):
        return consequence if condition else True
    if isinstance(consequence, bool):
        return True if consequence else negated(condition)
    return z3.Implies(condition, consequence)


def equal(left: Value, right: Value) -> Truth:
    """Equality of two values that are not sets."""
    if is_literal(left) and is_literal(right):
        return left == right
    if not is_literal(left) and not is_literal(right) and left.eq(right):
        return True
    for this, other in ((left, right), (right, left)):
        if isinstance(this, bool):
            return other if this else negated(other)
    return left == right


def choose(condition: Truth, then: Value, otherwise: Value) -> Value:
    """If-then-else over two values of one sort."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    if isinstance(then, Replicas):
        return Replicas(lambda r: choose(condition, then.has(r), otherwise.has(r)))
    if isinstance(then, bool) and isinstance(otherwise, bool):
        if then is otherwise:
            return then
        return condition if then else negated(condition)
    if is_literal(then) and is_literal(otherwise):
        return then if then == otherwise else z3.If(condition, z3.IntVal(then), z3.IntVal(otherwise))
    if equal(then, otherwise) is True:
        return then
    return z3.If(condition, then, otherwise)


def minimum(left: Scalar, right: Scalar) -> Scalar:
    """The smaller of two integers."""
    return choose(left < right, left, right)


def maximum(left: Scalar, right: Scalar) -> Scalar:
    """The larger of two integers."""
    return choose(left < right, right, left)


def as_formula(condition: Truth) -> z3.BoolRef:
    """A condition as a z3 expression, whatever it was folded to."""
    return z3.BoolVal(condition) if isinstance(condition, bool) else condition
