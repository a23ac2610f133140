"""The obligations of a proof with no bound, as SMT-LIB: initiation, and one for each action and each conjunct.

Each is a refutation: the axioms of the constants, every conjunct in the state before, the guards of one action, its
hints, and that one conjunct does not hold in the state after. The state after is made of closures over the state
before, so there is neither a primed function nor a frame axiom. A promise that is no part of the induction has one
obligation: that it follows from all else in the state before. That the conjunct held before is said once more of just
the values for which it is denied; where the action changes nothing that the conjunct reads, that is all there is to
say. The constants (log size, largest leader epoch, ...) are unknown integers, so what is proved holds for all of them;
a run without any bound is, step by step, one within some.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import z3

from ..core.domains import Index, Variable
from ..core.terms import Term, variables_in
from ..interpret.symbolic_terms import Bound, Function, Reading, Step, SymbolicState
from ..interpret.symbolic_unbounded import Unbounded
from ..interpret.symbolic_values import Scalar, Truth, Value, as_formula, both, either, implied, negated
from .proof_for_variant import TYPE_OK, AttachedProof, Clause, Conjunct, GhostUpdate, split

INITIAL = "initial"
"""Stands for the action in an obligation of initiation."""

FOLLOWS = "follows"
"""Stands for the action in the one obligation of a promise that follows from the other conjuncts."""


@dataclass(frozen=True)
class Obligation:
    """What must be refuted: that a conjunct does not hold initially, or after an action. ``smt`` is SMT-LIB text.

    ``hypotheses``: the names of those that it assumes of the state before, in the order of the text, behind the axioms.
    """

    action: str
    conjunct: str
    smt: str
    hypotheses: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """``follower_fetch.log_matching``."""
        return f"{self.action}.{self.conjunct}"


class Obligations:
    """All obligations of an attached proof."""

    def __init__(self, attached: AttachedProof) -> None:
        self.attached = attached
        self.unbounded = Unbounded(attached.traced)
        self._steps: dict[str, Step] = {}
        self._held: dict[str, list[z3.BoolRef]] = {}
        proof = attached.proof
        given = {n: c for n, c in attached.conjuncts.items() if n not in proof.derived | proof.follows}
        self.hypotheses = {
            f"{name}.{number}": part
            for name, conjunct in given.items()
            for number, part in enumerate(self._assumed(conjunct))
        }
        """Every conjunct in the state before as small clauses, by name and number; but for promises that are derived,
        or follow."""
        self._layers = {name: attached.conjuncts[name.partition(".")[0]].layer for name in self.hypotheses}

    def names(self) -> list[tuple[str, str]]:
        """Action and conjunct of every obligation, in the order of the report."""
        actions = [INITIAL, *(action.name for action in self.attached.traced.actions)]
        follows = self.attached.proof.follows
        inductive = [conjunct for conjunct in self.attached.conjuncts if conjunct not in follows]
        named = [(action, conjunct) for action in actions for conjunct in inductive]
        return named + [(FOLLOWS, conjunct) for conjunct in self.attached.conjuncts if conjunct in follows]

    def obligation(self, action: str, conjunct: str, core: Collection[str] | None = None) -> Obligation:
        """One obligation, of those named. KeyError for an action or a conjunct that there is not.

        ``core``: with no other hypotheses than these; one that there is not is not assumed.
        """
        wanted = self.attached.conjuncts[conjunct]
        given = [name for name in self.hypotheses if core is None or name in core]
        if action == INITIAL:
            given, assertions = [], [self.unbounded.initial(), *self._denied(wanted, self.unbounded.pre)]
        elif action == FOLLOWS:
            assertions = [*self._formulas(given), *self._denied(wanted, self.unbounded.pre)]
        else:
            step = self.step(action)
            assertions = [*self._held_before(wanted), *self._denied(wanted, step.after)]
            if not self._is_untouched(action, wanted):
                hints = self._hints(action, wanted)
                given = [name for name in given if self._layers[name] <= wanted.layer]
                assertions = [*self._formulas(given), *self.unbounded.assumed(step), *hints, *assertions]
            else:
                given = []
        return Obligation(action, conjunct, self.text(f"{action}.{conjunct}", assertions), tuple(given))

    def impossible(self, action: str) -> str:
        """The text that an action can happen where every conjunct holds: what has no model never does."""
        step = self.step(action)
        return self.text(f"{action} never", [*self._formulas(self.hypotheses), *self.unbounded.assumed(step)])

    def _formulas(self, hypotheses: Iterable[str]) -> list[z3.BoolRef]:
        return [self.hypotheses[name] for name in hypotheses]

    def _is_untouched(self, action: str, conjunct: Conjunct) -> bool:
        """The action changes nothing that the conjunct reads: that it held before is reason enough."""
        if conjunct.name == TYPE_OK:
            return False
        return not self._changed(action) & {name for clause in conjunct.clauses for name in variables_in(clause.body)}

    def text(self, name: str, assertions: Sequence[z3.BoolRef]) -> str:
        """These assertions beside the axioms of the constants, as SMT-LIB."""
        # Not by way of a solver: it would simplify what it prints, in an order that depends on what was built before.
        formulas = [*self.unbounded.constant_axioms, *assertions]
        *others, last = [formula.as_ast() for formula in formulas]
        traced = self.attached.traced
        title = f"{traced.protocol.name} {traced.variant.name}: {name}"
        text = z3.Z3_benchmark_to_smtlib_string(
            z3.main_ctx().ref(), title, "UFLIA", "unknown", "", len(others), (z3.Ast * len(others))(*others), last
        )
        return str(text)

    def step(self, action: str) -> Step:
        """An action from an arbitrary state, ghosts and all. KeyError for one that the variant does not have."""
        if action not in self._steps:
            # A universe of its own, so that the names in it do not depend on what was asked before.
            own = Unbounded(self.attached.traced, mark="step!")
            step = with_ghosts(self.attached, own.step(action), action)
            self._steps[action] = replace(step, after=self._unless_changed(action, step))
        return self._steps[action]

    def _unless_changed(self, action: str, step: Step) -> SymbolicState:
        """The state after, where what does not change is what it was: by ``type_ok`` it was in canonical form."""
        changed, after = self._changed(action), step.after
        functions = {name: (after if name in changed else step.before).functions[name] for name in after.functions}
        return replace(after, functions=functions)

    def _changed(self, action: str) -> set[str]:
        """The variables that an action writes, with the ghosts among them, and those of which it may clear a cell."""
        traced = self.attached.traced
        written = {str(target.value) for target, _ in traced.action(action).writes}
        written |= {update.name for update in self.attached.updates.get(action, ())}
        return written | {name for name, (_, live) in traced.live.items() if variables_in(live) & written}

    def _assumed(self, conjunct: Conjunct) -> list[z3.BoolRef]:
        state = self.unbounded.pre
        if conjunct.name == TYPE_OK:
            interpreter = self.unbounded.interpreter

            def typed(variable: Variable) -> z3.BoolRef:
                parts = interpreter.type_ok_parts
                return self.unbounded.forall(variable.per, lambda at: both(*parts(state, variable, at)))

            return [typed(variable) for variable in self.attached.base.variables.values()]
        return [part for clause in conjunct.clauses for small in split(clause) for part in self._forall(small)]

    def _forall(self, clause: Clause) -> list[z3.BoolRef]:
        chosen = [self.unbounded.universe.fresh(index) for _, index in clause.bound]
        inside, body, definitions = self._read(self.unbounded, clause, chosen, self.unbounded.pre, quantified=True)
        formula = as_formula(implied(inside, body))
        return [z3.ForAll(chosen, formula) if chosen else formula, *definitions]

    @staticmethod
    def _read(
        unbounded: Unbounded, clause: Clause, chosen: Sequence[Scalar], state: SymbolicState, *, quantified: bool
    ) -> tuple[Truth, Truth, list[z3.BoolRef]]:
        """That the values chosen are inside their indices, the clause's body for them, and the axioms in it."""
        pairs = list(zip(clause.bound, chosen, strict=True))
        inside = both(*(unbounded.universe.inside(index, x) for (_, index), x in pairs))
        binding = {term: Bound(x, index) for (term, index), x in pairs}
        reading = unbounded.interpreter.reading(state, binding, scope=tuple(binding.values()) if quantified else ())
        body = reading(clause.body)
        return inside, body, reading.definitions

    def _denied(self, conjunct: Conjunct, state: SymbolicState, mark: str = "goal!") -> list[z3.BoolRef]:
        """That the conjunct does not hold: some clause does not, for some values."""
        parts, axioms = [], []
        own = Unbounded(self.attached.traced, mark=mark)
        if conjunct.name == TYPE_OK:
            universe, interpreter = self.unbounded.universe, self.unbounded.interpreter
            for variable in self.attached.base.variables.values():
                at = tuple(self._some(variable.name, n, index) for n, index in enumerate(variable.per))
                inside = both(*(universe.inside(index, x) for index, x in zip(variable.per, at, strict=True)))
                parts.append(both(inside, negated(both(*interpreter.type_ok_parts(state, variable, at)))))
        for clause, values in self._goals(conjunct):
            inside, body, definitions = self._read(own, clause, values, state, quantified=False)
            parts.append(both(inside, negated(body)))
            axioms += definitions
        return [as_formula(either(*parts)), *axioms]

    def _held_before(self, conjunct: Conjunct) -> list[z3.BoolRef]:
        """That the conjunct holds in the state before for just the values for which it is denied in the state after."""
        if conjunct.name not in self._held:
            # The first or last offset of a kind may be another one in the state after: its name is not the goal's.
            denied, *axioms = self._denied(conjunct, self.unbounded.pre, mark="held!")
            self._held[conjunct.name] = [z3.Not(denied), *axioms]
        return self._held[conjunct.name]

    def _goals(self, conjunct: Conjunct) -> Iterator[tuple[Clause, list[Scalar]]]:
        """Each clause of a conjunct with the constants for which it is assumed not to hold."""
        for number, clause in enumerate(conjunct.clauses):
            yield clause, [self._some(str(number), n, index) for n, (_, index) in enumerate(clause.bound)]

    def _some(self, scope: str, number: int, index: Index) -> Scalar:
        return z3.Const(f"some!{scope}!{index.name}!{number}", self.unbounded.universe.sort(index.sort))

    def _hints(self, action: str, conjunct: Conjunct) -> list[z3.BoolRef]:
        """Atoms of a predicate that says nothing, over the terms that z3 shall know."""
        own = self.step(action).reading
        goals = [
            [(index, value) for (_, index), value in zip(clause.bound, values, strict=True)]
            for clause, values in self._goals(conjunct)
        ]
        return self.hinted(action, own, goals)

    def hinted(
        self, action: str, reading: Reading, goals: Iterable[Sequence[tuple[Index, Scalar]]]
    ) -> list[z3.BoolRef]:
        """The hints of an action, for each choice of values of their own indices out of one of the ``goals``."""
        found: dict[int, z3.BoolRef] = {}
        for hint in self.attached.hints[action]:
            indices = [index for _, index in hint.goal]
            for goal in goals:
                for chosen in product(*([v for i, v in goal if i is index] for index in indices)):
                    asked = {t: Bound(x, i) for (t, i), x in zip(hint.goal, chosen, strict=True)}
                    within = reading.within(asked)
                    for term in hint.terms:
                        atom = _atom(within(term))
                        found[atom.get_id()] = atom
        return list(found.values())


def _atom(value: Scalar) -> z3.BoolRef:
    term = z3.IntVal(value) if isinstance(value, int) else value
    return z3.Function(f"hint!{term.sort()}", term.sort(), z3.BoolSort())(term)


def with_ghosts(attached: AttachedProof, step: Step, action: str) -> Step:
    """A step whose state after has the action's updates of ghosts too."""
    functions = dict(step.after.functions)
    for update in attached.updates.get(action, ()):
        functions[update.name] = _updated(step, update, step.after.variables[update.name].per)
    # What an update finds by a definition for each cell has that beside the step's own.
    return replace(step, after=replace(step.after, functions=functions), definitions=tuple(step.reading.definitions))


def _updated(step: Step, update: GhostUpdate, per: Sequence[Index]) -> Function:
    defined = step.reading.defined_along(tuple(zip(update.bound, per, strict=True)), update.value)
    if defined is not None:
        return defined

    def after(indices: tuple[Scalar, ...]) -> Value:
        cell: Mapping[Term, Bound] = {
            term: Bound(at, index) for term, at, index in zip(update.bound, indices, per, strict=True)
        }
        # A majority here is the step's own, and so is the first offset of a kind: their definitions are beside it.
        return step.reading.within(cell)(update.value)

    return after
