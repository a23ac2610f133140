"""The finite symbolic interpreter: one variant at finite constants as z3 formulas over named cells.

Every cell of the state before and after a step is a z3 constant: an Int ``leo[1]`` or ``leo[1]'`` for integers and for
replicas (NONE is -1), and for a set of replicas one Bool for each replica, ``isr[0] has 1``. ``relation`` is a
formula over both; the state after a step is determined, dead cells included, so that a state and a step with its
parameters leave at most one successor.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import z3

from ..core.domains import Constants
from ..core.ground import Cell, Layout, Params, State
from ..core.protocol import TracedProtocol
from ..core.terms import Sort
from .symbolic_terms import Function, Interpreter, Step, SymbolicState
from .symbolic_universe import FiniteUniverse
from .symbolic_values import Replicas, Scalar, Value, as_formula, both, choose, either, equal

Constant = tuple[z3.ExprRef, ...]
"""The z3 constants of one cell: one Int, or a Bool for each replica."""


class CellState:
    """The z3 constants of a whole state; ``mark`` ends their names."""

    def __init__(self, layout: Layout, replicas: int, mark: str) -> None:
        self.layout = layout
        self.cells: list[Constant] = [_constants(cell, replicas, mark) for cell in layout.cells]
        self._kept: dict[tuple[int, int], tuple[list[z3.ExprRef], list[z3.Ast]]] = {}

    def encode(self, state: State) -> list[tuple[z3.ExprRef, z3.ExprRef]]:
        """Pairs (constant, literal), as ``z3.substitute`` takes them.

        Raises ValueError for a set with a member that there is no constant for.
        """
        return list(zip((c for cell in self.cells for c in cell), self.literals(state), strict=True))

    def literals(self, state: State) -> list[z3.ExprRef]:
        """The literals of a state, one for each constant, in the order of the cells."""
        return [x for cell, value in zip(self.layout.cells, state, strict=True) for x in self._literals(cell, value)]

    def handles(self, state: State) -> list[z3.Ast]:
        """The same literals as z3's own handles; this object keeps them alive."""
        found: list[z3.Ast] = []
        for number, value in enumerate(state):
            kept = self._kept.get((number, value))
            if kept is None:
                literals = self._literals(self.layout.cells[number], value)
                kept = self._kept[number, value] = (literals, [x.as_ast() for x in literals])
            found += kept[1]
        return found

    def _literals(self, cell: Cell, value: int) -> list[z3.ExprRef]:
        if cell.variable.values.sort is not Sort.SET:
            return [z3.IntVal(value)]
        members = len(self.cells[cell.number])
        if not 0 <= value < 1 << members:
            raise ValueError(f"{cell.name} holds {value:#b}, and there are {members} replicas")
        return [z3.BoolVal(bool(value >> i & 1)) for i in range(members)]

    def equals(self, state: State) -> z3.BoolRef:
        """The formula that these constants hold this state."""
        return as_formula(both(*(constant == literal for constant, literal in self.encode(state))))

    def decode(self, model: z3.ModelRef) -> State:
        """The state that a model gives these constants; a constant that the model leaves open is 0 or false."""
        values = []
        for cell, constants in zip(self.layout.cells, self.cells, strict=True):
            read = [model.eval(constant, model_completion=True) for constant in constants]
            if cell.variable.values.sort is Sort.SET:
                values.append(sum(1 << i for i, member in enumerate(read) if z3.is_true(member)))
            else:
                values.append(read[0].as_long())
        return tuple(values)

    def value(self, number: int) -> Value:
        """The value of a cell: its Int, or its set."""
        constants = self.cells[number]
        if self.layout.cells[number].variable.values.sort is not Sort.SET:
            return constants[0]
        return Replicas(lambda r: _member(constants, r))


def _member(constants: Constant, replica: Scalar) -> Value:
    if isinstance(replica, int):
        return constants[replica] if 0 <= replica < len(constants) else False
    return either(*(both(equal(replica, i), constant) for i, constant in enumerate(constants)))


def _constants(cell: Cell, replicas: int, mark: str) -> Constant:
    name = cell.name + mark
    if cell.variable.values.sort is Sort.SET:
        return tuple(z3.Bool(f"{name} has {i}") for i in range(replicas))
    return (z3.Int(name),)


class Symbolic:
    """One variant of a protocol at finite constants, as formulas over ``pre`` and ``post``.

    Raises BadInput for constants that the protocol does not have.
    """

    def __init__(self, traced: TracedProtocol, constants: Constants) -> None:
        self.traced = traced
        self.constants = traced.protocol.check_constants(constants)
        self.layout = Layout(traced.variables, self.constants)
        self.interpreter = Interpreter(traced, FiniteUniverse(self.constants))
        replicas = self.constants.get("replicas", 0)
        self.pre = CellState(self.layout, replicas, "")
        self.post = CellState(self.layout, replicas, "'")
        handles = [c.as_ast() for cells in (self.pre, self.post) for cell in cells.cells for c in cell]
        self._constants = (z3.Ast * len(handles))(*handles)
        self._state = self.state(self.pre)
        self._steps: dict[tuple[str, Params], Step] = {}
        self._relations: dict[tuple[str, Params], z3.BoolRef] = {}
        self._invariants: dict[str, z3.BoolRef] = {}

    def state(self, cells: CellState) -> SymbolicState:
        """Cell constants as a symbolic state, to read invariants in or to step from."""
        functions = {name: _lookup(numbers, cells) for name, numbers in self.layout.by_variable.items()}
        return SymbolicState(self.interpreter.universe, self.interpreter.variables, functions)

    def steps(self) -> list[tuple[str, Params]]:
        """Every action with every choice of parameters."""
        return [
            (action.name, tuple(zip(action.params, values, strict=True)))
            for action in self.traced.actions
            for values in product(*(index.values(self.constants) for index in action.params.values()))
        ]

    def step(self, action: str, params: Params) -> Step:
        """The step from ``pre``: its guards, and the state after it as functions of ``pre``."""
        key = (action, params)
        if key not in self._steps:
            self._steps[key] = self.interpreter.step(self._state, action, dict(params))
        return self._steps[key]

    def guard(self, action: str, guard: str, params: Params) -> z3.BoolRef:
        """One guard over ``pre``. KeyError for a guard or an action that the variant does not have."""
        return as_formula(self.step(action, params).guards[guard])

    def relation(self, action: str, params: Params) -> z3.BoolRef:
        """The step from ``pre`` to ``post``: all guards, and every cell of ``post`` at its new value."""
        key = (action, params)
        if key not in self._relations:
            step = self.step(action, params)
            assert not step.definitions, "every index is finite here"
            effect = (self._holds(cell, self.post, step.after) for cell in self.layout.cells)
            self._relations[key] = as_formula(both(step.enabled, *effect))
        return self._relations[key]

    def _holds(self, cell: Cell, cells: CellState, state: SymbolicState) -> Value:
        value = state.read(cell.variable.name, cell.index)
        constants = cells.cells[cell.number]
        if isinstance(value, Replicas):
            return both(*(equal(constant, value.has(i)) for i, constant in enumerate(constants)))
        return equal(constants[0], value)

    def invariant(self, name: str, cells: CellState | None = None) -> z3.BoolRef:
        """An invariant over ``pre``, or over other cell constants. KeyError for a name that there is not."""
        if cells is not None:
            return self._read_invariant(name, self.state(cells))
        if name not in self._invariants:
            self._invariants[name] = self._read_invariant(name, self._state)
        return self._invariants[name]

    def _read_invariant(self, name: str, state: SymbolicState) -> z3.BoolRef:
        if name == "type_ok":
            return as_formula(both(*(p for c in self.layout.cells for p in self._typed(state, c))))
        return as_formula(self.interpreter.reading(state, {})(self.traced.invariants[name]))

    def _typed(self, state: SymbolicState, cell: Cell) -> list[Value]:
        return self.interpreter.type_ok_parts(state, cell.variable, cell.index)

    def initial(self) -> z3.BoolRef:
        """The formula that ``pre`` is the initial state."""
        return self.pre.equals(self.layout.initial)

    def decided(self, formula: z3.BoolRef, state: State, after: State | None = None) -> bool | None:
        """The formula with a state in the place of ``pre`` (and one in the place of ``post``), simplified by z3.

        True or False where nothing is left of it but that literal, None where z3 leaves more.
        """
        kept = self.pre.handles(state) + ([] if after is None else self.post.handles(after))
        # What z3.substitute does, less its check of the sorts of each pair in Python, which takes most of the time.
        ctx = formula.ctx
        literals = (z3.Ast * len(kept))(*kept)
        placed = z3.BoolRef(z3.Z3_substitute(ctx.ref(), formula.as_ast(), len(kept), self._constants, literals), ctx)
        simple = z3.simplify(placed)
        return True if z3.is_true(simple) else False if z3.is_false(simple) else None

    def encode(self, state: State, after: State | None = None) -> list[tuple[z3.ExprRef, z3.ExprRef]]:
        """The substitution that puts a state in the place of ``pre``, and one after it in the place of ``post``."""
        return self.pre.encode(state) + ([] if after is None else self.post.encode(after))

    def decode(self, model: z3.ModelRef) -> State:
        """The state that a model gives ``pre`` (``post.decode`` gives the other)."""
        return self.pre.decode(model)


def _lookup(numbers: Mapping[tuple[int, ...], int], cells: CellState) -> Function:
    def read(indices: tuple[Scalar, ...]) -> Value:
        candidates = []
        for index, number in numbers.items():
            here = both(*(equal(i, at) for i, at in zip(indices, index, strict=True)))
            if here is True:
                return cells.value(number)
            if here is not False:
                candidates.append((here, number))
        # The indices are in range, so where no other candidate is meant, the last one is.
        value = cells.value(candidates[-1][1])
        for here, number in reversed(candidates[:-1]):
            value = choose(here, cells.value(number), value)
        return value

    return read
