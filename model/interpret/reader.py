"""Traced terms evaluated as they stand, with quantifiers and parameters, in one state: no grounding, no compiling.

``explain.py`` tells by it what a guard read; the reference interpreter runs by it what has no text, a shifted mutant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..core import terms
from ..core.algebra import EVERY, Value
from ..core.domains import Values
from ..core.ground import Params, State, System
from ..core.terms import Term

if TYPE_CHECKING:
    from ..core.protocol import TracedAction


def bound(action: TracedAction, params: Params) -> dict[Term, int]:
    """The parameters of an action, as its terms name them."""
    values = dict(params)
    return {terms.node("param", (), index.sort, name): values[name] for name, index in action.params.items()}


class Reader:
    """Evaluates traced terms in one state.

    ``binding`` gives the parameters. ``read`` are the cells that were looked at, by name, with their values; of a
    conjunction that fails those of its first failing part alone, of a disjunction those of all parts.
    """

    def __init__(self, system: System, state: State, binding: Mapping[Term, int]) -> None:
        self.system = system
        self.state = state
        self.binding = dict(binding)
        self.read: dict[str, tuple[Values, int]] = {}

    def __call__(self, term: Term) -> int:
        op = term.op
        if op == "const":
            return terms.literal(term)
        if op == "constant":
            return self.system.constants[str(term.value)]
        if op in ("param", "bound"):
            return self.binding[term]
        if op == "var":
            return self._cell(str(term.value), tuple(self(a) for a in term.args))
        if op in terms.BINDERS:
            return self._quantified(term)
        if op == "and":
            return self._conjunction(term)
        args = [self(a) for a in term.args]
        return _OPERATIONS[op](*args)

    def written(self, target: Term, value: Term) -> tuple[str, tuple[Value, ...], Value]:
        """What an update writes: a variable, indices with ``EVERY`` among them, and a value, or a function of these."""
        index = tuple(EVERY if terms.is_along(a) else self(a) for a in target.args)
        row = dict(terms.row(target))
        if not row:
            return str(target.value), index, self(value)
        along = [place for place, a in enumerate(target.args) if terms.is_along(a)]

        def at(*indices: int) -> int:
            self.binding |= {row[place]: i for place, i in zip(along, indices, strict=True) if place in row}
            return self(value)

        return str(target.value), index, at

    def _cell(self, name: str, index: tuple[int, ...]) -> int:
        variable = self.system.traced.variables[name]
        number = self.system.layout.by_variable[name].get(index)
        value = variable.dead if number is None else self.state[number]
        # A cell that is not there, at an index out of range, is read too.
        told = name + "".join(f"[{i}]" for i in index) if number is None else self.system.layout.cells[number].name
        self.read[told] = (variable.values, value)
        return value

    def _alone(self, term: Term) -> tuple[int, dict[str, tuple[Values, int]]]:
        outer, self.read = self.read, {}
        value = self(term)
        inner, self.read = self.read, outer
        return value, inner

    def _conjunction(self, term: Term) -> int:
        collected: dict[str, tuple[Values, int]] = {}
        for part in term.args:
            value, read = self._alone(part)
            if not value:
                self.read |= read
                return 0
            collected |= read
        self.read |= collected
        return 1

    def _quantified(self, term: Term) -> int:
        op, (bound, body, *rest) = term.op, term.args
        values = range(self.system.traced.protocol.indices[str(term.value)].size(self.system.constants))
        order = reversed(values) if op == "last" else iter(values)
        collected: dict[str, tuple[Values, int]] = {}
        for value in order:
            self.binding[bound] = value
            holds, read = self._alone(body)
            if bool(holds) is (op != "forall"):
                self.read |= read
                return {"forall": 0, "exists": 1}.get(op, value)
            collected |= read
        self.read |= collected
        return self(rest[0]) if rest else int(op == "forall")


def _member(replica: int, replicas: int) -> int:
    return int(replica >= 0 and replicas >> replica & 1)


_OPERATIONS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "min": min,
    "max": max,
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "eq": lambda a, b: int(a == b),
    "not": lambda a: int(not a),
    "or": lambda *parts: int(any(parts)),
    "ite": lambda test, yes, no: yes if test else no,
    "member": _member,
    "with": lambda replicas, replica: replicas | (1 << replica if replica >= 0 else 0),
    "without": lambda replicas, replica: replicas & ~(1 << replica if replica >= 0 else 0),
    "majority": lambda replicas, of: int(2 * (replicas & of).bit_count() > of.bit_count()),
}
