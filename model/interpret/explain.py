"""Why a step is refused: the guard, and what its operands were."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..core import terms
from ..core.ground import Params, State, System
from ..core.show import show, show_set
from ..core.terms import NONE, Sort, Term
from .reference import Reference


def show_value(sort: Sort, value: int) -> str:
    """A cell's value as a person reads it."""
    if sort is Sort.SET:
        return show_set(value)
    if sort is Sort.REPLICA and value == NONE:
        return "NONE"
    return str(value)


@dataclass(frozen=True)
class Refusal:
    """A step that a guard refuses. ``operands`` are the cells that the guard read, with their values."""

    action: str
    params: Params
    guard: str
    condition: str
    operands: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        step = f"{self.action}({', '.join(f'{k}={v}' for k, v in self.params)})"
        values = ", ".join(f"{name} is {value}" for name, value in self.operands)
        return f"{step}: guard {self.guard} wants {self.condition}" + (f"; {values}" if values else "")


class _Reader:
    """Evaluates traced terms in one state, and remembers which cells they read."""

    def __init__(self, system: System, state: State, binding: Mapping[Term, int]) -> None:
        self.system = system
        self.state = state
        self.binding = dict(binding)
        self.read: dict[str, str] = {}

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
        # A conjunction that fails is explained by its first failing part alone, a disjunction by all of its parts.
        if op == "and":
            return self._conjunction(term)
        args = [self(a) for a in term.args]
        return _OPERATIONS[op](*args)

    def _cell(self, name: str, index: tuple[int, ...]) -> int:
        variable = self.system.traced.protocol.variables[name]
        number = self.system.layout.by_variable[name].get(index)
        value = variable.dead if number is None else self.state[number]
        self.read[name + "".join(f"[{i}]" for i in index)] = show_value(variable.values.sort, value)
        return value

    def _alone(self, term: Term) -> tuple[int, dict[str, str]]:
        outer, self.read = self.read, {}
        value = self(term)
        inner, self.read = self.read, outer
        return value, inner

    def _conjunction(self, term: Term) -> int:
        collected: dict[str, str] = {}
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
        collected: dict[str, str] = {}
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
}


def refusal(reference: Reference, state: State, action: str, params: Params) -> Refusal | None:
    """The first guard that refuses a step, with its operands; None where the step is enabled.

    Raises KeyError for an action that the variant does not have.
    """
    name = reference.refused_by(state, action, params)
    if name is None:
        return None
    traced = reference.system.traced.action(action)
    guard = dict(traced.guards)[name]
    binding = {terms.node("param", (), index.sort, p): dict(params)[p] for p, index in traced.params.items()}
    reader = _Reader(reference.system, state, binding)
    reader(guard)
    return Refusal(action, params, name, show(guard), tuple(reader.read.items()))
