"""Bounds of a term's value over all states, from the domains of the cells that it reads."""

from __future__ import annotations

from ..core.terms import Term, literal
from .packing import Packing


class Bounds:
    """The least and the largest value that a term of integers, replicas or sets can have. Conditions have none."""

    def __init__(self, packing: Packing, replicas: int) -> None:
        self._fields = packing.fields
        self._all = (1 << replicas) - 1
        self._known: dict[Term, tuple[int, int]] = {}

    def __call__(self, term: Term) -> tuple[int, int]:
        """Both of them; they hold for every state whose cells are in their domains."""
        found = self._known.get(term)
        if found is None:
            found = self._known[term] = self._of(term)
        return found

    def _of(self, term: Term) -> tuple[int, int]:
        op, args = term.op, term.args
        if op == "const":
            return literal(term), literal(term)
        if op == "cell":
            assert isinstance(term.value, int)
            field = self._fields[term.value]
            return field.low, field.high
        if op in ("with", "without"):
            return 0, self._all
        (low, high), (other_low, other_high) = self(args[-2]), self(args[-1])
        if op == "add":
            return low + other_low, high + other_high
        if op == "sub":
            return low - other_high, high - other_low
        if op == "min":
            return min(low, other_low), min(high, other_high)
        if op == "max":
            return max(low, other_low), max(high, other_high)
        assert op == "ite", f"{op} has no bounds"
        return min(low, other_low), max(high, other_high)
