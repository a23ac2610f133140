"""Concrete states read by the unbounded symbolic interpreter, so that its steps can be held against the reference's."""

from __future__ import annotations

from dataclasses import dataclass

import z3
from fencepost.model.core.domains import Variable
from fencepost.model.core.ground import State, System
from fencepost.model.core.terms import Sort
from fencepost.model.interpret.symbolic_terms import Function, Step, SymbolicState
from fencepost.model.interpret.symbolic_unbounded import Unbounded
from fencepost.model.interpret.symbolic_values import Replicas, Scalar, Truth, both, choose, either, equal
from fencepost.model.prove.crosscheck import RefusedStep, Transition


@dataclass
class Concrete:
    """A state of a finite system as a state of the unbounded interpreter: replica i is a constant ``r<i>``."""

    system: System
    unbounded: Unbounded

    def __post_init__(self) -> None:
        universe = self.unbounded.universe
        self.replicas = [z3.Const(f"r{i}", universe.replica_sort) for i in range(self.system.constants["replicas"])]
        x = z3.Const("x", universe.replica_sort)
        self.world = [
            z3.Distinct(universe.none, *self.replicas),
            z3.ForAll([x], z3.Or([x == r for r in (universe.none, *self.replicas)])),
            *(universe.constants[name] == value for name, value in self.system.constants.items()),
        ]

    def replica(self, number: int) -> Scalar:
        return self.unbounded.universe.none if number < 0 else self.replicas[number]

    def state(self, state: State) -> SymbolicState:
        functions = {v.name: self._function(v, state) for v in self.unbounded.variables.values()}
        return SymbolicState(self.unbounded.universe, self.unbounded.variables, functions)

    def index(self, variable: Variable, index: tuple[int, ...]) -> tuple[Scalar, ...]:
        return tuple(
            self.replica(i) if at.sort is Sort.REPLICA else z3.IntVal(i)
            for i, at in zip(index, variable.per, strict=True)
        )

    def value(self, variable: Variable, value: int) -> Scalar:
        return self.replica(value) if variable.values.sort is Sort.REPLICA else z3.IntVal(value)

    def has(self, mask: int, replica: Scalar) -> Truth:
        return either(*(equal(replica, r) for i, r in enumerate(self.replicas) if mask >> i & 1))

    def _function(self, variable: Variable, state: State) -> Function:
        cells = self.system.layout.by_variable[variable.name]

        def read(indices: tuple[Scalar, ...]) -> Scalar | Replicas:
            def here(index: tuple[int, ...]) -> Truth:
                return both(*(equal(i, at) for i, at in zip(indices, self.index(variable, index), strict=True)))

            if variable.values.sort is Sort.SET:
                return Replicas(lambda r: either(*(both(here(i), self.has(state[n], r)) for i, n in cells.items())))
            found = self.value(variable, variable.dead)
            for index, number in cells.items():
                found = choose(here(index), self.value(variable, state[number]), found)
            return found

        return read

    def step(self, state: State, action: str, params: tuple[tuple[str, int], ...]) -> Step:
        indices = self.unbounded.traced.action(action).params
        values = {
            name: self.replica(value) if indices[name].sort is Sort.REPLICA else z3.IntVal(value)
            for name, value in params
        }
        return self.unbounded.interpreter.step(self.state(state), action, values)

    def is_state(self, symbolic: SymbolicState, state: State) -> z3.BoolRef:
        parts = []
        for cell in self.system.layout.cells:
            value = symbolic.read(cell.variable.name, self.index(cell.variable, cell.index))
            if isinstance(value, Replicas):
                mask = state[cell.number]
                parts += [equal(value.has(r), bool(mask >> i & 1)) for i, r in enumerate(self.replicas)]
            else:
                parts.append(equal(value, self.value(cell.variable, state[cell.number])))
        return z3.And([z3.BoolVal(p) if isinstance(p, bool) else p for p in parts])

    def takes(self, t: Transition) -> bool:
        """Whether the guards hold and the state after is this one, in every z3 model of this world."""
        step = self.step(t.state, t.action, t.params)
        solver = z3.Solver()
        solver.add(*self.world, *step.definitions)
        assert solver.check() == z3.sat  # else anything would follow
        solver.add(z3.Not(z3.And(step.enabled, self.is_state(step.after, t.after))))
        return bool(solver.check() == z3.unsat)

    def refuses(self, r: RefusedStep) -> bool:
        step = self.step(*r)
        solver = z3.Solver()
        solver.add(*self.world, *self.unbounded.assumed(step))
        return bool(solver.check() == z3.unsat)
