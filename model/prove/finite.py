"""Finite models: counterexamples where an obligation is not proved, and witnesses that its hypotheses can be met.

At finite constants every conjunct is expanded, and z3 answers with a state or says that there is none. What it gives
is decoded and re-run on plain ints: the step by the reference interpreter, ghosts and lemmas by their own text. Only
what these confirm is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import z3

from ..core.domains import Constants, Index
from ..core.ground import Cell, Layout, Params, State, System, ground
from ..core.terms import Term
from ..interpret.reference import IntState, Reference
from ..interpret.symbolic import Symbolic
from ..interpret.symbolic_terms import Bound, Step, SymbolicState
from ..interpret.symbolic_values import Truth, as_formula, both, either, negated
from .obligations import FOLLOWS, INITIAL, with_ghosts
from .proof_for_variant import TYPE_OK, AttachedProof, Clause, Conjunct

RLIMIT = 100_000_000
"""Of z3's resource units, for one finite model."""


class UndecidedError(Exception):
    """z3 found neither a finite model nor that there is none, within its resources."""


@dataclass(frozen=True)
class Found:
    """A state at finite constants, the ghosts' cells last, and a step from it (none where a state is all there is)."""

    constants: Constants
    state: State
    action: str
    params: Params
    after: State | None


@dataclass(frozen=True)
class Counterexample(Found):
    """A step from a state in which all conjuncts hold to one in which ``conjunct`` does not, for the values given."""

    conjunct: str = ""
    values: Params = ()


class FiniteProof:
    """An attached proof at finite constants."""

    def __init__(self, attached: AttachedProof, constants: Constants) -> None:
        self.attached = attached
        self.symbolic = Symbolic(attached.traced, constants)
        self.constants = self.symbolic.constants
        self.state = self.symbolic.state(self.symbolic.pre)
        self._steps: dict[str, tuple[Step, dict[str, z3.ArithRef]]] = {}

    @cached_property
    def concrete(self) -> Concrete:
        """The same on plain ints."""
        return Concrete(self.attached, self.constants)

    def counterexample(self, action: str, conjunct: str) -> Counterexample | None:
        """A step of the action, from a state in which all conjuncts hold, after which one of them does not.

        For ``initial``, the initial state where the conjunct does not hold in it; for ``follows``, a state in which all
        others hold and this one does not. Raises UndecidedError.
        """
        if action == INITIAL:
            return self.concrete.judged(Found(self.constants, self.concrete.system.initial, action, (), None), conjunct)
        if action == FOLLOWS:
            model = find_model([*self.hypotheses, self._denied(self.attached.conjuncts[conjunct], self.state)])
            if model is None:
                return None
            state = self.symbolic.decode(model)
            broken = self.concrete.broken(state)
            assert set(broken) <= self.attached.proof.follows, f"{broken} do not hold for the texts"
            return self.concrete.judged(Found(self.constants, state, action, (), None), conjunct)
        step, _ = self._step(action)
        found = self._found(action, self._denied(self.attached.conjuncts[conjunct], step.after))
        if found is None:
            return None
        judged = self.concrete.judged(found, conjunct)
        assert judged is not None, f"the texts see nothing wrong with {conjunct} after {action}{found.params}"
        return judged

    def witness(self, action: str) -> Found | None:
        """A state in which all conjuncts hold and the action can happen: no obligation of it holds for want of one."""
        return self._found(action, z3.BoolVal(True))

    def _found(self, action: str, also: z3.BoolRef) -> Found | None:
        step, params = self._step(action)
        model = find_model([*self.hypotheses, *map(as_formula, step.guards.values()), also])
        if model is None:
            return None
        state = self.symbolic.decode(model)
        chosen = tuple((name, model.eval(x, model_completion=True).as_long()) for name, x in params.items())
        return self.concrete.confirmed(state, action, chosen)

    def _step(self, action: str) -> tuple[Step, dict[str, z3.ArithRef]]:
        """The step with its parameters open: one query is about all of them."""
        if action not in self._steps:
            indices = self.attached.traced.action(action).params
            params = {name: z3.Int(f"{name}!param") for name in indices}
            interpreter = self.symbolic.interpreter
            step = interpreter.step(self.state, action, params)
            self._steps[action] = with_ghosts(self.attached, step, action), params
        return self._steps[action]

    @cached_property
    def hypotheses(self) -> list[z3.BoolRef]:
        """The inductive invariant at these constants: it holds in every reachable state."""
        parts = [self.symbolic.invariant(TYPE_OK)]  # of the ghosts too
        for conjunct in self.attached.conjuncts.values():
            for clause in conjunct.clauses if conjunct.name not in self.attached.proof.follows else ():
                parts += [as_formula(self._at(clause, values, self.state)) for values in self._all(clause.bound)]
        return [part for part in parts if not z3.is_true(part)]

    def _all(self, bound: tuple[tuple[Term, Index], ...]) -> Iterator[tuple[int, ...]]:
        return product(*(range(index.size(self.constants)) for _, index in bound))

    def _at(self, clause: Clause, values: tuple[int, ...], state: SymbolicState) -> Truth:
        binding = {term: Bound(x, index) for (term, index), x in zip(clause.bound, values, strict=True)}
        return self.symbolic.interpreter.reading(state, binding)(clause.body)

    def _denied(self, conjunct: Conjunct, state: SymbolicState) -> z3.BoolRef:
        if conjunct.name == TYPE_OK:
            ghosts = self.attached.proof.ghosts
            cells = [cell for cell in self.symbolic.layout.cells if cell.variable.name not in ghosts]
            typed = self.symbolic.interpreter.type_ok_parts
            return as_formula(negated(both(*(p for cell in cells for p in typed(state, cell.variable, cell.index)))))
        return as_formula(
            either(
                *(
                    negated(self._at(clause, values, state))
                    for clause in conjunct.clauses
                    for values in self._all(clause.bound)
                )
            )
        )


class Concrete:
    """An attached proof on plain ints: the reference interpreter's steps, and the texts of ghosts and lemmas."""

    def __init__(self, attached: AttachedProof, constants: Constants) -> None:
        self.attached = attached
        self.base = ground(attached.base, constants)
        self.system = _with_ghost_cells(attached, self.base)
        self.reference = Reference(self.base)
        self.k = self.reference.k
        self._own = len(self.base.layout.cells)

    def own(self, state: State) -> State:
        """The state without ghosts."""
        return state[: self._own]

    def step(self, state: State, action: str, params: Params) -> State | None:
        """The state after a step, ghosts and all; None where a guard refuses it."""
        after = self.reference.step(self.own(state), action, params)
        if after is None:
            return None
        ghosts = list(state[self._own :])
        text = self.attached.proof.update_texts.get(action)
        if text is not None:
            s = IntState(self.system, state)
            for name, value_at in text(self.k, s, **dict(params)).items():
                for index, number in self.system.layout.by_variable[name].items():
                    ghosts[number - self._own] = int(value_at(*index))
        return (*after, *ghosts)

    def broken(self, state: State) -> list[str]:
        """The conjuncts that do not hold in a state."""
        return [name for name in self.attached.conjuncts if self.broken_for(state, name) is not None]

    def broken_for(self, state: State, conjunct: str) -> Params | None:
        """The values for which a lemma does not hold (of another conjunct: none); None where it holds."""
        lemma = self.attached.proof.lemmas.get(conjunct)
        if lemma is None:
            return () if conjunct in self.reference.broken(self.own(state)) else None
        s = IntState(self.system, state)
        for values in product(*(range(index.size(self.system.constants)) for index in lemma.params.values())):
            chosen = dict(zip(lemma.params, values, strict=True))
            if not lemma.text(self.k, s, **chosen):
                return tuple(chosen.items())
        return None

    def confirmed(self, state: State, action: str, params: Params) -> Found:
        """A state and a step that z3 found, after the texts have confirmed guards and conjuncts.

        Raises AssertionError where they do not: z3 and the reference then read the protocol differently.
        """
        after = self.step(state, action, params)
        assert after is not None, f"the reference refuses {action}{params}"
        broken = [name for name in self.broken(state) if name not in self.attached.proof.follows]
        assert not broken, f"{broken} do not hold for the texts in {self.shown(state)}"
        return Found(self.system.constants, state, action, params, after)

    def judged(self, found: Found, conjunct: str) -> Counterexample | None:
        """The finding as a counterexample, if the conjunct does not hold where it ends."""
        values = self.broken_for(found.state if found.after is None else found.after, conjunct)
        if values is None:
            return None
        return Counterexample(found.constants, found.state, found.action, found.params, found.after, conjunct, values)

    def shown(self, state: State) -> Mapping[str, str]:
        """The cells that are not as in the initial state, by name."""
        cells = self.system.layout.cells
        return {c.name: shown_cell(c, v) for c, v in zip(cells, state, strict=True) if v != c.initial}

    def changes(self, before: State, after: State) -> Mapping[str, tuple[str, str]]:
        """The cells that differ, by name, with both values."""
        rows = zip(self.system.layout.cells, before, after, strict=True)
        return {c.name: (shown_cell(c, b), shown_cell(c, a)) for c, b, a in rows if a != b}


def find_model(formulas: list[z3.BoolRef]) -> z3.ModelRef | None:
    """A model, None where there is none, found in a fresh context from the text alone.

    So no question asked before changes which one. Raises UndecidedError.
    """
    collected = z3.Solver()
    collected.add(*formulas)
    context = z3.Context()
    solver = z3.SolverFor("QF_LIA", ctx=context)
    solver.set(random_seed=0, rlimit=RLIMIT)
    solver.add(*z3.parse_smt2_string(collected.to_smt2(), ctx=context))
    answer = solver.check()
    if answer == z3.unknown:
        raise UndecidedError(str(solver.reason_unknown()))
    return solver.model().translate(z3.main_ctx()) if answer == z3.sat else None


def shown_cell(cell: Cell, value: int) -> str:
    """A cell's value as a person reads it."""
    return cell.variable.values.told(value)


def _with_ghost_cells(attached: AttachedProof, base: System) -> System:
    """A system that is read only: its layout has the ghosts' cells after all others."""
    layout = Layout(attached.traced.variables, base.constants)
    return System(attached.traced, base.constants, layout, [], {}, {})
