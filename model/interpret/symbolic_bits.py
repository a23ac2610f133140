"""The finite symbolic relation in bits: one step of any action as a formula that a SAT solver unrolls.

``Symbolic`` gives guards and effects over mathematical integers. At finite constants every integer in them has a
smallest and a largest value, so each formula is read again over bit vectors just wide enough that nothing wraps around
(the width follows from the formulas). One number, ``pick``, says which instance of an action happens; each cell has one
new value for each way in which instances change it; dead cells are cleared once, behind them all.

The formulas leave as SMT-LIB text and are read into a fresh context: what was built before in this process changes no
answer of a solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import z3

from ..core.domains import Constants
from ..core.errors import ProtocolError
from ..core.ground import Params, State
from ..core.protocol import TracedProtocol
from ..core.terms import Sort
from .symbolic import CellState, Symbolic
from .symbolic_terms import SymbolicState
from .symbolic_values import Replicas, as_formula

Range = tuple[int, int]
"""The smallest and the largest value of an integer, both included."""


class Ranges:
    """What values the integer formulas over these constants can have."""

    def __init__(self, constants: Mapping[str, Range]) -> None:
        self.constants = dict(constants)
        self._memo: dict[int, tuple[z3.ExprRef, Range]] = {}
        self.widest: Range = (0, 0)

    def __call__(self, formula: z3.ExprRef) -> Range:
        """The range of a formula; of a Boolean one (0, 1). Raises ProtocolError for what is no such formula."""
        key = formula.get_id()
        if key not in self._memo:
            found = self._of(formula)
            self._memo[key] = (formula, found)
            self.widest = min(self.widest[0], found[0]), max(self.widest[1], found[1])
        return self._memo[key][1]

    def _of(self, formula: z3.ExprRef) -> Range:
        if z3.is_int_value(formula):
            return formula.as_long(), formula.as_long()
        ranges = [self(child) for child in formula.children()]
        if z3.is_bool(formula):
            return 0, 1
        if z3.is_const(formula):
            return self.constants[formula.decl().name()]
        match formula.decl().kind():
            case z3.Z3_OP_ADD:
                return sum(low for low, _ in ranges), sum(high for _, high in ranges)
            case z3.Z3_OP_SUB:
                (low, high), *others = ranges
                return low - sum(most for _, most in others), high - sum(least for least, _ in others)
            case z3.Z3_OP_ITE:
                return min(ranges[1][0], ranges[2][0]), max(ranges[1][1], ranges[2][1])
        raise ProtocolError(f"no range is known of {formula.decl()}")


def width(values: Range) -> int:
    """How many bits hold these values in two's complement."""
    low, high = values
    return max((-low - 1).bit_length() if low < 0 else 0, high.bit_length()) + 1


class _Bits:
    """Integer formulas as formulas over bit vectors of one width. ``names``: new names of the constants."""

    def __init__(self, bits: int, names: Mapping[str, str]) -> None:
        self.bits = bits
        self._names = names
        self._memo: dict[int, tuple[z3.ExprRef, z3.ExprRef]] = {}

    def __call__(self, formula: z3.ExprRef) -> z3.ExprRef:
        key = formula.get_id()
        if key not in self._memo:
            self._memo[key] = (formula, self._of(formula))
        return self._memo[key][1]

    def _of(self, formula: z3.ExprRef) -> z3.ExprRef:
        if z3.is_int_value(formula):
            return z3.BitVecVal(formula.as_long(), self.bits)
        if z3.is_true(formula) or z3.is_false(formula):
            return formula
        if z3.is_const(formula):
            name = self._names[formula.decl().name()]
            return z3.BitVec(name, self.bits) if z3.is_int(formula) else z3.Bool(name)
        parts = [self(child) for child in formula.children()]
        match formula.decl().kind():
            case z3.Z3_OP_ADD:
                return sum(parts[1:], start=parts[0])
            case z3.Z3_OP_SUB:
                return parts[0] - sum(parts[2:], start=parts[1])
            case z3.Z3_OP_LE:
                return parts[0] <= parts[1]  # of bit vectors: signed
            case z3.Z3_OP_LT:
                return parts[0] < parts[1]
            case z3.Z3_OP_GE:
                return parts[0] >= parts[1]
            case z3.Z3_OP_GT:
                return parts[0] > parts[1]
            case z3.Z3_OP_EQ:
                return parts[0] == parts[1]
            case z3.Z3_OP_ITE:
                return z3.If(*parts)
        # And, or, not and implies are over truth values, as they were.
        return formula.decl()(*parts)


class BitRelation:
    """One variant at finite constants: a step from ``pre`` to ``post``, and what breaks a promise in ``post``.

    Formulas live in ``context``, which is this object's own. ``pre``, ``middle`` (the state before dead cells are
    cleared), ``post`` and ``pick`` are their constants, to be put in place of for each step of a run.
    """

    def __init__(self, traced: TracedProtocol, constants: Constants, invariants: Sequence[str]) -> None:
        self.symbolic = Symbolic(traced, constants)
        self._raw = CellState(self.symbolic.layout, self.symbolic.constants.get("replicas", 0), "~")
        self.instances: list[tuple[str, Params]] = []
        """Actions with their parameters that some state may allow; ``pick`` is the position of one."""
        self._enabled: list[z3.BoolRef] = []
        self._after: list[list[z3.ExprRef]] = []
        self._collect()
        changed = [self._changed(cell) for cell in range(len(self._flat(self.symbolic.pre)))]
        cleared = self._values(self.symbolic.interpreter.canonical(self.symbolic.state(self._raw)))
        holds = [self.symbolic.invariant(name, self.symbolic.post) for name in invariants]
        self.bits = width(self._widest(changed, cleared, holds))
        self._write(changed, cleared, holds)

    def _collect(self) -> None:
        before = self.symbolic.state(self.symbolic.pre)
        for action, params in self.symbolic.steps():
            step = self.symbolic.interpreter.step(before, action, dict(params), canonical=False)
            enabled = as_formula(step.enabled)
            if z3.is_false(z3.simplify(enabled)):
                continue
            self.instances.append((action, params))
            self._enabled.append(enabled)
            self._after.append(self._values(step.after))

    @staticmethod
    def _flat(cells: CellState) -> list[z3.ExprRef]:
        return [constant for cell in cells.cells for constant in cell]

    def _values(self, state: SymbolicState) -> list[z3.ExprRef]:
        """The state's value of each constant of a cell, in their order."""
        found: list[z3.ExprRef] = []
        for cell, constants in zip(self.symbolic.layout.cells, self.symbolic.pre.cells, strict=True):
            value = state.read(cell.variable.name, cell.index, [True] * len(cell.index))
            if isinstance(value, Replicas):
                found += [as_formula(value.has(i)) for i in range(len(constants))]
            else:
                found.append(z3.IntVal(value) if isinstance(value, int) else value)
        return found

    def _changed(self, cell: int) -> list[tuple[z3.ExprRef, list[int]]]:
        """The new values that instances give a constant, each with the instances that do."""
        before = self._flat(self.symbolic.pre)[cell]
        groups: dict[int, tuple[z3.ExprRef, list[int]]] = {}
        for number, after in enumerate(self._after):
            if not after[cell].eq(before):
                groups.setdefault(after[cell].get_id(), (after[cell], []))[1].append(number)
        return list(groups.values())

    def _widest(
        self,
        changed: list[list[tuple[z3.ExprRef, list[int]]]],
        cleared: list[z3.ExprRef],
        holds: Iterable[z3.BoolRef],
    ) -> Range:
        """What any integer of the relation can be, from states in which ``type_ok`` holds."""
        pre, raw, post = (self._flat(cells) for cells in (self.symbolic.pre, self._raw, self.symbolic.post))
        ranges = Ranges({str(c): r for c, r in zip(pre, self._domains, strict=True)})
        for formula in self._enabled:
            ranges(formula)
        for constant, new, before in zip(raw, changed, pre, strict=True):
            lows, highs = zip(*(ranges(each) for each in (before, *(value for value, _ in new))), strict=True)
            ranges.constants[str(constant)] = min(lows), max(highs)
        for constant, value in zip(post, cleared, strict=True):
            ranges.constants[str(constant)] = ranges(value)
        for formula in holds:
            ranges(formula)
        return ranges.widest

    @property
    def _domains(self) -> list[Range]:
        """The domain of each constant of ``pre``."""
        found: list[Range] = []
        for cell, constants in zip(self.symbolic.layout.cells, self.symbolic.pre.cells, strict=True):
            found += [(cell.low, cell.high)] if cell.variable.values.sort is not Sort.SET else [(0, 1)] * len(constants)
        return found

    def _write(
        self,
        changed: list[list[tuple[z3.ExprRef, list[int]]]],
        cleared: list[z3.ExprRef],
        holds: Iterable[z3.BoolRef],
    ) -> None:
        pick = z3.BitVec("pick", self._pick_bits)
        pre, raw, post = (self._flat(cells) for cells in (self.symbolic.pre, self._raw, self.symbolic.post))
        # Names that SMT-LIB need not quote.
        named = zip("abc", (pre, raw, post), strict=True)
        bits = _Bits(self.bits, {str(c): f"{mark}{i}" for mark, cells in named for i, c in enumerate(cells)})
        parts = [z3.ULE(pick, len(self.instances) - 1)]
        parts += [z3.Implies(pick == i, bits(enabled)) for i, enabled in enumerate(self._enabled)]
        for before, new, constant in zip(pre, changed, raw, strict=True):
            value = bits(before)
            for each, numbers in new:
                value = z3.If(z3.Or(*(pick == i for i in numbers)), bits(each), value)
            parts.append(bits(constant) == value)
        parts += [bits(constant) == bits(value) for constant, value in zip(post, cleared, strict=True)]
        self.context = z3.Context()
        self.step = self._read(z3.And(*parts))
        self.broken = self._read(z3.Not(z3.And(*(bits(formula) for formula in holds))))
        self.pre, self.middle, self.post = (
            [self._constant(str(bits(c)), z3.is_bool(c)) for c in cells] for cells in (pre, raw, post)
        )
        self.pick = z3.BitVec("pick", self._pick_bits, self.context)

    def _read(self, formula: z3.BoolRef) -> z3.BoolRef:
        """The formula in this object's context, from its text alone."""
        collected = z3.Solver()
        collected.add(formula)
        return z3.And(*z3.parse_smt2_string(collected.to_smt2(), ctx=self.context), self.context)

    def _constant(self, name: str, boolean: bool) -> z3.ExprRef:
        return z3.Bool(name, self.context) if boolean else z3.BitVec(name, self.bits, self.context)

    @cached_property
    def _pick_bits(self) -> int:
        return max(1, (len(self.instances) - 1).bit_length())

    def at(self, constants: Sequence[z3.ExprRef], time: int) -> list[z3.ExprRef]:
        """These constants at one point of a run, under names of their own."""
        return [z3.Const(f"{constant}@{time}", constant.sort()) for constant in constants]

    def literals(self, state: State) -> list[z3.ExprRef]:
        """The literals of a state, one for each of ``pre``."""
        literals = self.symbolic.pre.literals(state)
        return [
            z3.BitVecVal(each.as_long(), self.bits, self.context)
            if z3.is_int_value(each)
            else z3.BoolVal(z3.is_true(each), self.context)
            for each in literals
        ]
