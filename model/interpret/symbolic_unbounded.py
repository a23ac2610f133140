"""The unbounded symbolic interpreter: one variant for any number of replicas, offsets and epochs, as z3 terms.

The state is a z3 function or constant for each variable: ``leo(Replica)``, ``record_epoch(Replica, Int)``; a set of
replicas is a predicate with one argument more, ``isr(Replica, Replica)``. Constants of the protocol are z3 integers,
and appear only where a text names them. The state after a step is made of closures over the state before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import z3

from ..core import terms
from ..core.domains import Index, Variable
from ..core.errors import ProtocolError
from ..core.protocol import TracedProtocol
from ..core.terms import Sort, Term
from .symbolic_terms import Binding, Function, Interpreter, Step, SymbolicState
from .symbolic_universe import UnboundedUniverse
from .symbolic_values import Replicas, Scalar, Truth, Value, as_formula, both, equal, implied, negated


@dataclass(frozen=True)
class Claim:
    """A condition on a state, and the axioms of the skolem values in it, which are assumed even where it is denied."""

    formula: z3.BoolRef
    definitions: tuple[z3.BoolRef, ...] = ()


class Unbounded:
    """One variant of a protocol at all constants at once.

    Whatever the constants are: an index goes as far as they say, quantifiers too, and a read beyond it gives the dead
    value. So every run at finite constants is a run here, and with replicas and constants to be chosen no step more.
    """

    def __init__(self, traced: TracedProtocol, mark: str = "") -> None:
        self.traced = traced
        self.universe = UnboundedUniverse(traced.protocol.constants, mark)
        self.interpreter = Interpreter(traced, self.universe)
        self.variables = traced.variables

    @cached_property
    def pre(self) -> SymbolicState:
        """An arbitrary state, from which steps go."""
        return self.state("")

    @cached_property
    def constant_axioms(self) -> list[z3.BoolRef]:
        """Each constant is within what the protocol says of its values; and two quorums intersect.

        Raises ProtocolError where there are majorities of two sets, or of one that a step changes.
        """
        specs = self.traced.protocol.constants.values()
        within = [self.universe.constants[spec.name] >= spec.minimum for spec in specs]
        within += [self.universe.constants[each.name] <= each.maximum for each in specs if each.maximum is not None]
        wholes = self._wholes
        if not wholes:
            return within
        if len(wholes) > 1 or wholes & self._written:
            raise ProtocolError(f"quorums are those of one set that never changes, not of {', '.join(sorted(wholes))}")
        return [*within, self.universe.quorums.axiom()]

    @cached_property
    def _wholes(self) -> set[str]:
        """The sets of which there are majorities in the text of an action."""
        texts = [t for a in self.traced.actions for t in (*(g for _, g in a.guards), *(v for _, v in a.writes))]
        return {str(t.args[1].value) for text in texts for t in terms.parts(text) if t.op == "majority"}

    @cached_property
    def _written(self) -> set[str]:
        return {str(target.value) for action in self.traced.actions for target, _ in action.writes}

    def state(self, mark: str) -> SymbolicState:
        """An arbitrary state; ``mark`` ends the names of its functions."""
        functions = {v.name: self._function(v, mark) for v in self.variables.values()}
        return SymbolicState(self.universe, self.variables, functions)

    def _function(self, variable: Variable, mark: str) -> Function:
        domain = [self.universe.sort(index.sort) for index in variable.per]
        name, sort = variable.name + mark, variable.values.sort
        if sort is Sort.SET:
            has = z3.Function(name, *domain, self.universe.replica_sort, z3.BoolSort())
            return lambda indices: Replicas(lambda r: has(*indices, r))
        if not domain:
            scalar = z3.Const(name, self.universe.sort(sort))
            return lambda _: scalar
        function = z3.Function(name, *domain, self.universe.sort(sort))
        return lambda indices: function(*indices)

    def params(self, action: str) -> dict[str, Scalar]:
        """A z3 constant for each parameter of an action, marked so that it is no variable of that name."""
        params = self.traced.action(action).params
        return {name: z3.Const(f"{name}!param", self.universe.sort(index.sort)) for name, index in params.items()}

    def step(self, action: str, *, canonical: bool = True) -> Step:
        """An action from ``pre``, its parameters the constants of ``params``. KeyError for one that there is not."""
        return self.interpreter.step(self.pre, action, self.params(action), canonical=canonical)

    def assumed(self, step: Step) -> list[z3.BoolRef]:
        """The guards of a step, one formula each, and the axioms of its skolem values."""
        return [as_formula(guard) for guard in step.guards.values()] + list(step.definitions)

    def invariant(self, name: str, state: SymbolicState | None = None) -> Claim:
        """An invariant in a state (``pre`` unless another is given). KeyError for a name that there is not."""
        state = self.pre if state is None else state
        if name == "type_ok":
            return Claim(z3.And([self._typed(state, v) for v in self.variables.values()]))
        return self.condition(self.traced.invariants[name], state)

    def condition(self, term: Term, state: SymbolicState, binding: Binding | None = None) -> Claim:
        """Any traced condition in a state."""
        reading = self.interpreter.reading(state, binding or {})
        formula = as_formula(reading(term))
        return Claim(formula, tuple(reading.definitions))

    def forall(self, per: tuple[Index, ...], body: Callable[[tuple[Scalar, ...]], Truth]) -> z3.BoolRef:
        """The body for all values of these indices (with none: the body itself)."""
        bound = tuple(self.universe.fresh(index) for index in per)
        inside = both(*(self.universe.inside(index, x) for index, x in zip(per, bound, strict=True)))
        formula = as_formula(implied(inside, body(bound)))
        return z3.ForAll(list(bound), formula) if bound else formula

    def _typed(self, state: SymbolicState, variable: Variable) -> z3.BoolRef:
        parts = self.interpreter.type_ok_parts
        return self.forall(variable.per, lambda bound: both(*parts(state, variable, bound)))

    def initial(self, state: SymbolicState | None = None) -> z3.BoolRef:
        """The formula that a state is the initial one. The set of whose majorities the text speaks may be any.

        Raises ProtocolError for a set that is at first neither empty nor full: no other is told by its bit mask
        for any number of replicas.
        """
        state = self.pre if state is None else state
        fixed = self._wholes
        return z3.And([self._starts(state, variable) for name, variable in self.variables.items() if name not in fixed])

    def _starts(self, state: SymbolicState, variable: Variable) -> z3.BoolRef:
        if self._is_somebody(variable):
            nobody = self.universe.none
            return self.forall(variable.per, lambda at: negated(equal(state.read(variable.name, at, _all(at)), nobody)))
        if variable.values.sort is not Sort.SET:
            start = self._initially(variable)
            return self.forall(variable.per, lambda bound: equal(state.read(variable.name, bound, _all(bound)), start))
        full = self._full(variable)
        replica = self.traced.protocol.indices["replica"]

        def same(bound: tuple[Scalar, ...]) -> Truth:
            has = state.read(variable.name, bound[:-1], _all(bound[:-1])).has(bound[-1])
            return equal(has, full)

        return self.forall((*variable.per, replica), same)

    def _is_somebody(self, variable: Variable) -> bool:
        """Whether a variable names replica 0 at first: that is any, as replicas are alike, and there is one."""
        if variable.values.sort is not Sort.REPLICA:
            return False
        start = self.universe.sized(variable.initially, f"the initial value of {variable.name}")
        return isinstance(start, int) and start == 0

    def _initially(self, variable: Variable) -> Value:
        start = self.universe.sized(variable.initially, f"the initial value of {variable.name}")
        return self.universe.replica(start) if variable.values.sort is Sort.REPLICA else start

    def _full(self, variable: Variable) -> bool:
        """Whether a set is full at first, found at two numbers of replicas."""
        others = {name: spec.default for name, spec in self.traced.protocol.constants.items()}
        starts = [(variable.initially({**others, "replicas": n}), (1 << n) - 1) for n in (2, 3)]
        if all(start == 0 for start, _ in starts):
            return False
        if all(start == full for start, full in starts):
            return True
        raise ProtocolError(f"{variable.name} is at first neither empty nor full; say so by an action instead")


def _all(indices: tuple[Scalar, ...]) -> list[bool]:
    return [True] * len(indices)
