"""Traced terms read as z3: the one evaluator under the finite and the unbounded symbolic interpreter.

A state is a mapping from variable to a function of indices. The state after a step is made of closures over the
state before it (the writes, in their order, before what was there), so no primed function and no frame axiom is
needed. Terms come from ``TracedProtocol`` as they are; nothing here reads ``ground.py``'s terms, which is what makes
the comparison of the two worth something.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import z3

from ..core import terms
from ..core.algebra import EVERY
from ..core.domains import Index, Variable
from ..core.enum_value import Member
from ..core.errors import ProtocolError
from ..core.protocol import TracedAction, TracedProtocol
from ..core.terms import Sort, Term
from .symbolic_universe import UnboundedUniverse, Universe
from .symbolic_values import (
    Replicas,
    Scalar,
    Truth,
    Value,
    as_formula,
    both,
    choose,
    either,
    equal,
    implied,
    maximum,
    minimum,
    negated,
)

Function = Callable[[tuple[Scalar, ...]], Value]
"""A variable in one state, as a function of indices that are in range."""


@dataclass(frozen=True)
class Bound:
    """What a parameter or a bound variable stands for. It is known to be in the range of its index."""

    value: Scalar
    index: Index


Binding = Mapping[Term, Bound]

_Row: TypeAlias = "Sequence[tuple[int, Term, Index]]"
"""The indices along which a row is written: the place of each, its bound term, and what it ranges over."""

_DEFINED = frozenset({"first", "last", "majority"})
"""Operations whose value may be given by a definition beside the formula."""


@dataclass(frozen=True)
class SymbolicState:
    """A state: for each variable a function of indices."""

    universe: Universe
    variables: Mapping[str, Variable]
    functions: Mapping[str, Function]

    def read(self, name: str, indices: Sequence[Scalar], known: Sequence[bool] | None = None) -> Value:
        """A cell. Reads are total: an index out of range gives the variable's dead value.

        ``known`` marks the indices that are in range for certain, and need no test.
        """
        variable = self.variables[name]
        tests = [
            True if known is not None and known[i] else self.universe.inside(index, value)
            for i, (index, value) in enumerate(zip(variable.per, indices, strict=True))
        ]
        inside = both(*tests)
        dead = self.universe.literal(variable.values.sort, variable.dead) if inside is not True else None
        return dead if inside is False else choose(inside, self.functions[name](tuple(indices)), dead)

    def written(self, writes: Sequence[tuple[str, tuple[Scalar, ...], Function]]) -> SymbolicState:
        """The state after these writes, the later one winning; a write out of range writes nothing, EVERY all.

        The value of a write is a function of the cell's indices.
        """
        functions = dict(self.functions)
        for name, target, value in writes:
            functions[name] = _overwrite(functions[name], target, value)
        return SymbolicState(self.universe, self.variables, functions)


def _overwrite(before: Function, target: tuple[Scalar, ...], value: Function) -> Function:
    def after(indices: tuple[Scalar, ...]) -> Value:
        here = both(*(equal(i, t) for i, t in zip(indices, target, strict=True) if t is not EVERY))
        if isinstance(here, bool):
            return value(indices) if here else before(indices)
        return choose(here, value(indices), before(indices))

    return after


class Reading:
    """Terms read in one state under one binding; equal terms are read once.

    ``definitions`` collects the axioms of the values that ``first`` and ``last`` stand for where an index has no
    literal size; they belong beside every formula that this reading gave. They define and restrict nothing: both look
    no further than the index goes at the constants, as every finite reading does, so that there is one even where a
    changed condition holds at every dead cell. ``scope``: values bound around what is read, on which such values
    depend. ``named``: where a majority cannot be counted it is a new condition, the same for the same term, so that it
    can stand in an if-then-else; its definition says only that there is then a quorum. That allows more than the text
    does: where there is one, the condition may fail.
    """

    def __init__(
        self,
        universe: Universe,
        indices: Mapping[str, Index],
        state: SymbolicState,
        binding: Binding,
        *,
        scope: tuple[Bound, ...] = (),
        named: bool = False,
    ) -> None:
        self.universe = universe
        self.indices = indices
        self.state = state
        self.binding = binding
        self.definitions: list[z3.BoolRef] = []
        self._scope = scope
        self._named = named
        self._memo: dict[Term, Value] = {}
        self._known: Mapping[Term, Value] = {}
        self._more: frozenset[Term] = frozenset()
        self._rows: dict[tuple[Term, Term], Function] = {}
        self._cell = False

    def __call__(self, term: Term) -> Value:
        if term not in self._memo:
            self._memo[term] = self._read(term)
        return self._memo[term]

    def _read(self, t: Term) -> Value:
        if t.op == "const":
            return bool(t.value) if t.sort is Sort.BOOL else self.universe.literal(t.sort, terms.literal(t))
        if t.op == "constant":
            return self.universe.constants[str(t.value)]
        if t.op in ("param", "bound"):
            return self.binding[t].value
        if t.op == "var":
            return self._variable(t)
        if t.op in ("forall", "exists"):
            return self._quantified(t)
        if t.op in ("first", "last"):
            return self._extreme(t)
        if t.op == "member":
            replica, replicas = (self(a) for a in t.args)
            proper = t.args[0] in self.binding or negated(equal(replica, self.universe.none))
            return False if proper is False else both(proper, replicas.has(replica))
        if t.op == "majority":
            return self._majority(t, *(self(a) for a in t.args))
        if t.op == "eq" and t.args[0].sort is Sort.SET:
            return self._same_set(*(self(a) for a in t.args))
        return _OPERATIONS[t.op](*(self(a) for a in t.args))

    def _variable(self, t: Term) -> Value:
        variable = self.state.variables[str(t.value)]
        known = [a in self.binding and self.binding[a].index is i for a, i in zip(t.args, variable.per, strict=True)]
        return self.state.read(variable.name, [self(a) for a in t.args], known)

    def within(self, more: Binding) -> Reading:
        """A reading of the same state with more bound: what was read already stands for the same there."""
        inner = Reading(self.universe, self.indices, self.state, {**self.binding, **more}, named=self._named)
        inner._memo, inner._known = dict(self._memo), self._memo
        inner._more = self._more | frozenset(more)
        return inner

    def row(self, variable: Variable, target: Term, value: Term) -> Function:
        """What an update writes to a variable, as a function of the cell's indices.

        A value that is found by a definition (``first``, ``last``, a majority) where no index has a literal size has
        one definition for all indices of the row: it is read once, at indices for which any others are put.
        """
        row = [(place, bound, variable.per[place]) for place, bound in terms.row(target)]
        if not row:
            same = self(value)
            return lambda _: same
        if (target, value) not in self._rows:
            defined = any(part.op in _DEFINED for part in terms.parts(value))
            finite = self.universe.values(row[0][2]) is not None
            read = self._defined_row if defined and not finite else self._plain_row
            self._rows[target, value] = read(row, value)
        return self._rows[target, value]

    def defined_along(self, cell: Sequence[tuple[Term, Index]], value: Term) -> Function | None:
        """A value as a function of a cell's indices, where it is found by definitions that depend on these.

        None where none does, or the indices are finite: then the value may be read at each cell (``within``).
        """
        bounds = {bound for bound, _ in cell}
        defined = (part for part in terms.parts(value) if part.op in _DEFINED)
        if all(self.universe.values(index) is not None for _, index in cell):
            return None
        if not any(terms.free(part) & bounds for part in defined):
            return None
        return self._defined_row([(place, *each) for place, each in enumerate(cell)], value, cell=True)

    def _plain_row(self, row: _Row, value: Term) -> Function:
        found: dict[tuple[Hashable, ...], tuple[list[Bound], Value]] = {}

        def at(indices: tuple[Scalar, ...]) -> Value:
            bounds = [Bound(indices[place], index) for place, _, index in row]
            key = tuple(_key(each.value) for each in bounds)
            if key not in found:
                inner = self.within({bound: each for (_, bound, _), each in zip(row, bounds, strict=True)})
                # The key is z3's own number of a term, which is another's once there is no such term any more.
                found[key] = bounds, inner(value)
                assert not inner.definitions
            return found[key][1]

        return at

    def _defined_row(self, row: _Row, value: Term, *, cell: bool = False) -> Function:
        for part in terms.parts(value):
            # What does not depend on the row's indices has one value in all of it: the step's own.
            if part.op in _DEFINED and terms.free(part) <= set(self.binding):
                self(part)
        xs = [self.universe.fresh(index) for _, _, index in row]
        bounds = {bound: Bound(x, index) for x, (_, bound, index) in zip(xs, row, strict=True)}
        inner = self.within(bounds)
        inner._scope, inner.definitions = (*self._scope, *bounds.values()), self.definitions
        inner._cell = cell
        for part in sorted(terms.parts(value), key=lambda p: len(list(terms.parts(p)))) if cell else ():
            # So it is with the cell's own, in whatever else is found for it.
            if part.op in _DEFINED and terms.free(part) <= set(inner.binding):
                inner(part)
        anywhere = inner(value)

        def at(indices: tuple[Scalar, ...]) -> Value:
            here = [(x, _expression(indices[place])) for x, (place, _, _) in zip(xs, row, strict=True)]
            return _put(anywhere, here)

        return at

    def _at(self, bound: Term, value: Scalar, index: Index, *, quantified: bool = False) -> Reading:
        binding = {**self.binding, bound: Bound(value, index)}
        scope = (*self._scope, Bound(value, index)) if quantified else self._scope
        inner = Reading(self.universe, self.indices, self.state, binding, scope=scope, named=self._named)
        inner.definitions = self.definitions
        if self._cell:
            # What was found for the cell is not found anew for each value that is bound within.
            inner._cell = True
            inner._known = {**self._known, **{t: v for t, v in self._memo.items() if t.op in ("first", "last")}}
        return inner

    def _quantified(self, t: Term) -> Truth:
        (bound, body), index = t.args, self.indices[str(t.value)]
        values = self.universe.values(index)
        if values is not None:
            parts = (self._at(bound, value, index)(body) for value in values)
            return both(*parts) if t.op == "forall" else either(*parts)
        x = self.universe.fresh(index)
        inner, inside = self._at(bound, x, index, quantified=True)(body), self.universe.inside(index, x)
        if t.op == "forall":
            return inner if inner is True else z3.ForAll([x], as_formula(implied(inside, inner)))
        return inner if inner is False else z3.Exists([x], as_formula(both(inside, inner)))

    def _majority(self, t: Term, replicas: Replicas, of: Replicas) -> Truth:
        values = self.universe.values(self.indices["replica"])
        if values is None:
            return self._quorum(t, replicas)
        inside = [both(replicas.has(r), of.has(r)) for r in values]
        outside = [both(negated(replicas.has(r)), of.has(r)) for r in values]
        return _count(outside) < _count(inside)

    def _quorum(self, t: Term, replicas: Replicas) -> Truth:
        """A majority among any number of replicas: those of one set that no step changes are its quorums."""
        assert isinstance(self.universe, UnboundedUniverse)
        whole = t.args[1]
        if whole.op != "var" or whole.args:
            raise ProtocolError(f"among any number of replicas there is no majority of {whole}, which is no variable")
        quorums = self.universe.quorums
        # One name stands for one question: where it is asked of each cell of a row, or of each ghost, there are many.
        if not self._named or self._scope or terms.free(t) & self._more:
            return quorums.within(replicas)
        name = z3.Bool(f"majority!{t}")
        self._define(implied(name, quorums.within(replicas, asked=True)))
        return name

    def _same_set(self, left: Replicas, right: Replicas) -> Truth:
        index = self.indices["replica"]
        values = self.universe.values(index)
        if values is not None:
            return both(*(equal(left.has(r), right.has(r)) for r in values))
        x = self.universe.fresh(index)
        same = equal(left.has(x), right.has(x))
        return same if same is True else z3.ForAll([x], as_formula(implied(self.universe.inside(index, x), same)))

    def _extreme(self, t: Term) -> Scalar:
        bound, body, default = t.args
        index = self.indices[str(t.value)]
        values = self.universe.values(index)
        chosen = self(default)
        if values is not None:
            # Built from the least preferred value outwards, so that the preferred one is asked first.
            for value in reversed(values) if t.op == "first" else values:
                chosen = choose(self._at(bound, value, index)(body), value, chosen)
            return chosen
        for known, value in self._known.items():
            if known.op == t.op and terms.alike(known, t):
                return value
        assert isinstance(self.universe, UnboundedUniverse)
        inside = self.universe.inside
        found = self.universe.skolem(index, tuple(b.value for b in self._scope))
        x = self.universe.fresh(index)
        xs, reading, conditions = [x], self._at(bound, x, index, quantified=True), [inside(index, x)]
        while self._cell and body.op == "exists":
            # Taken in front, so that z3 can put what equals x in its place.
            (other, body), within = body.args, self.indices[str(body.value)]
            xs.append(self.universe.fresh(within))
            reading = reading._at(other, xs[-1], within, quantified=True)
            conditions.append(inside(within, xs[-1]))
        conditions.append(reading(body))
        at_found = both(inside(index, found), self._at(bound, found, index)(t.args[1]))
        nearer = found <= x if t.op == "first" else x <= found
        self._define(
            either(at_found, equal(found, chosen)),
            z3.ForAll(xs, as_formula(implied(both(*conditions), both(at_found, nearer)))),
        )
        return found

    def _define(self, *axioms: Truth) -> None:
        bound = [b.value for b in self._scope]
        inside = both(*(self.universe.inside(b.index, b.value) for b in self._scope))
        for axiom in axioms:
            self.definitions.append(z3.ForAll(bound, implied(inside, axiom)) if bound else as_formula(axiom))


def _key(index: Scalar) -> Hashable:
    return index if isinstance(index, int) else ("z3", index.get_id())


def _expression(value: Scalar) -> z3.ExprRef:
    return z3.IntVal(value) if isinstance(value, int) else value


def _put(value: Value, places: Sequence[tuple[z3.ExprRef, z3.ExprRef]]) -> Value:
    """A value with other terms in the places of these constants."""
    if isinstance(value, Replicas):
        return Replicas(lambda r: _put(value.has(r), places))
    return value if isinstance(value, int) else z3.substitute(value, *places)


def _count(conditions: Sequence[Truth]) -> Scalar:
    """How many of the conditions hold."""
    counted: Scalar = 0
    for condition in conditions:
        counted = counted + choose(condition, 1, 0)
    return counted


_OPERATIONS: dict[str, Callable[..., Value]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "min": minimum,
    "max": maximum,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": equal,
    "not": negated,
    "and": both,
    "or": either,
    "ite": choose,
    "with": lambda replicas, replica: replicas.with_member(replica),
    "without": lambda replicas, replica: replicas.without_member(replica),
}


@dataclass(frozen=True)
class Step:
    """One action with its parameters bound, from a state ``before``."""

    before: SymbolicState
    guards: Mapping[str, Truth]
    after: SymbolicState
    definitions: tuple[z3.BoolRef, ...]
    """The axioms of the skolem values in guards and effect (none where every index is finite)."""

    reading: Reading
    """How guards and effect were read."""

    @property
    def enabled(self) -> Truth:
        """All guards."""
        return both(*self.guards.values())


class Interpreter:
    """A traced protocol read in a universe: steps and invariants over any symbolic state."""

    def __init__(self, traced: TracedProtocol, universe: Universe) -> None:
        self.traced = traced
        self.universe = universe
        self.variables = traced.variables
        self.indices = traced.protocol.indices

    def reading(
        self, state: SymbolicState, binding: Binding, *, scope: tuple[Bound, ...] = (), named: bool = False
    ) -> Reading:
        """A reading of terms in a state."""
        return Reading(self.universe, self.indices, state, binding, scope=scope, named=named)

    def step(self, state: SymbolicState, action: str, params: Mapping[str, Scalar], *, canonical: bool = True) -> Step:
        """One action. KeyError for an action that the variant does not have, ProtocolError for other parameters.

        The first guard, ``parameters_in_range``, is there where a parameter is no literal. ``canonical`` gives
        a cell that is dead in the state after the step its variable's dead value, as every engine does.
        """
        traced = self.traced.action(action)
        if set(params) != set(traced.params):
            raise ProtocolError(f"{action} takes {', '.join(traced.params)}, not {', '.join(params) or 'nothing'}")
        binding = {
            terms.node("param", (), index.sort, name): Bound(_number(params[name]), index)
            for name, index in traced.params.items()
        }
        reading = self.reading(state, binding, named=True)
        guards, after = self.guards(traced, reading), self.after(traced, reading, canonical=canonical)
        return Step(state, guards, after, tuple(reading.definitions), reading)

    def guards(self, action: TracedAction, reading: Reading) -> dict[str, Truth]:
        """The guards of an action whose parameters a reading binds, ``parameters_in_range`` first."""
        params = [bound for term, bound in reading.binding.items() if term.op == "param"]
        in_range = both(*(self.universe.inside(bound.index, bound.value) for bound in params))
        first = {} if in_range is True else {"parameters_in_range": in_range}
        return first | {name: reading(guard) for name, guard in action.guards}

    def after(self, action: TracedAction, reading: Reading, *, canonical: bool = True) -> SymbolicState:
        """The state after an action whose parameters a reading binds."""
        writes = []
        for target, value in action.writes:
            at = tuple(EVERY if terms.is_along(a) else reading(a) for a in target.args)
            writes.append((str(target.value), at, reading.row(self.variables[str(target.value)], target, value)))
        after = reading.state.written(writes)
        return self.canonical(after) if canonical else after

    def canonical(self, state: SymbolicState) -> SymbolicState:
        """The state with each dead cell at its variable's dead value. What is live is read in the state as given."""
        functions = dict(state.functions)
        for name in self.traced.live:
            functions[name] = self._clear(state, self.variables[name])
        return SymbolicState(self.universe, self.variables, functions)

    def _clear(self, state: SymbolicState, variable: Variable) -> Function:
        before = state.functions[variable.name]
        dead = self.universe.literal(variable.values.sort, variable.dead)

        def after(indices: tuple[Scalar, ...]) -> Value:
            return choose(self.is_live(state, variable, indices), before(indices), dead)

        return after

    def is_live(self, state: SymbolicState, variable: Variable, indices: Sequence[Scalar]) -> Truth:
        """Whether a cell, at indices in range, is live."""
        if variable.live is None:
            return True
        bound, live = self.traced.live[variable.name]
        binding = {b: Bound(v, i) for b, v, i in zip(bound, indices, variable.per, strict=True)}
        reading = self.reading(state, binding)
        condition = reading(live)
        assert not reading.definitions
        return condition

    def type_ok_parts(self, state: SymbolicState, variable: Variable, indices: tuple[Scalar, ...]) -> list[Truth]:
        """What ``type_ok`` says of one cell: a value of its domain; dead exactly where the cell is not live."""
        value = state.read(variable.name, indices, [True] * len(indices))
        sort = variable.values.sort
        parts: list[Truth] = []
        if sort is Sort.INT or (sort is Sort.REPLICA and isinstance(self.universe.none, int)):
            low, high = self.universe.bounds(variable.values)
            parts += [low <= value, value <= high]
        if variable.live is not None:
            live = self.is_live(state, variable, indices)
            dead = self.universe.literal(sort, variable.dead)
            if sort is Sort.INT and not variable.unset:
                parts.append(equal(live, negated(equal(value, dead))))
            else:
                reading = self.reading(state, {})
                same = reading._same_set(value, dead) if sort is Sort.SET else equal(value, dead)
                parts.append(either(live, same))
        return parts


def _number(value: Scalar) -> Scalar:
    # z3 writes an int by str(), and that of a member of an enumeration is its name.
    return int(value) if isinstance(value, Member) else value
