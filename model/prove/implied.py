"""What the inductive invariant of a proved variant implies of a mutant's steps, with no bound.

A proof says of every reachable state, at any constants, that its invariant holds there for some values of the ghosts.
So what is refuted of every state that satisfies the invariant is refuted of every reachable one:

- no step more: where all guards of the mutant hold, so do the variant's, and both lead to the same state;
- no step less: where all guards of the variant hold, so do the mutant's.

A mutant without a step more has only runs of the variant, and keeps every promise of safety; one without a step less
either has the same runs. Where a step more, or less, leads from a state to the same state, it changes no run either.
States are compared by the protocol's own variables: ghosts are in the invariant, and in no step.

Each question is a refutation by E-matching, as an obligation is (``obligations.py``). What z3 does not refute is not
implied, and says nothing. Nothing here follows for a variant whose proof does not go through: whoever asks sees to it.
What a mutant's text defines (a first or last one of a kind) stands beside every question; where that alone refutes the
variant's own guards, it contradicts itself, and nothing is implied.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import z3

from ..core.domains import Index, Variable
from ..core.errors import ProtocolError
from ..core.protocol import TracedAction, TracedProtocol
from ..core.terms import Sort, Term, parts, variables_in
from ..interpret.symbolic_terms import Bound, SymbolicState
from ..interpret.symbolic_unbounded import Unbounded
from ..interpret.symbolic_values import Scalar, Truth, as_formula, both, either, equal, negated
from .obligations import Obligation, Obligations
from .proof import Proof
from .proof_for_variant import attach, params_of, prenex
from .solve import RLIMIT, Answer, ask

MAX_EFFORT = 2 * RLIMIT
"""Of z3's resource units, for one question. The costliest that the matrices rely on takes 33.1 million."""


class Relation(Enum):
    """A mutant's steps beside the variant's, in every state that the invariant allows."""

    SAME = "the same steps"
    STILL = "the same steps, but for such as change nothing"
    FEWER = "no steps but the model's, or such as change nothing"
    UNKNOWN = "unknown"
    """z3 does not refute that it has others. It may have."""


@dataclass(frozen=True)
class Implied:
    """What is implied of one mutant; ``asked``: every question with z3's answer."""

    relation: Relation
    asked: tuple[tuple[Obligation, Answer], ...]
    seconds: float


class Implications:
    """Asks of mutants of one variant. Raises ProtocolError for a proof of another variant."""

    def __init__(self, proof: Proof, traced: TracedProtocol, *, seed: int = 0, rlimit: int = MAX_EFFORT) -> None:
        if proof.protocol is not traced.protocol or proof.variant != traced.variant.name:
            raise ProtocolError(f"this is a proof of {proof.protocol.name} {proof.variant}")
        self.traced = traced
        self.obligations = Obligations(attach(proof, traced))
        self.seed, self.rlimit = seed, rlimit

    def judge(self, mutant: TracedProtocol, action: str) -> Implied:
        """A mutant that differs from the variant in one action alone. KeyError for one that the variant has not."""
        start = time.perf_counter()
        comparison = _Comparison(self.obligations, self.traced.action(action), mutant.action(action))
        asked: list[tuple[Obligation, Answer]] = []

        def refuted(questions: Iterable[Obligation]) -> bool:
            for question in questions:
                asked.append((question, ask(question.smt, seed=self.seed, rlimit=self.rlimit)))
                if not asked[-1][1].proved:
                    return False
            return True

        def beyond(side: _Side, other: _Side) -> Relation:
            """What is to be said of one side's steps that the other side lacks."""
            found = Relation.SAME
            for guard in comparison.lacking(side, other):
                if refuted([comparison.step(side, other, guard)]):
                    continue
                if not refuted(comparison.moves(side, other, guard)):
                    return Relation.UNKNOWN
                found = Relation.STILL
            return found

        own, changed = comparison.own, comparison.changed
        relation = beyond(changed, own) if refuted(comparison.outcomes()) else Relation.UNKNOWN
        if relation is not Relation.UNKNOWN:
            less = beyond(own, changed)
            relation = Relation.FEWER if less is Relation.UNKNOWN else relation if less is Relation.SAME else less
        if relation is not Relation.UNKNOWN and comparison.defines and refuted([comparison.nothing()]):
            relation = Relation.UNKNOWN
        return Implied(relation, tuple(asked), time.perf_counter() - start)


@dataclass(frozen=True)
class _Side:
    """One of the two actions, as read in the state before."""

    name: str
    action: TracedAction
    guards: Mapping[str, Truth]
    after: SymbolicState


@dataclass
class _Denial:
    """That something does not hold: a formula, the axioms in it, and the constants for which it is denied."""

    formula: Truth
    axioms: list[z3.BoolRef] = field(default_factory=list)
    goals: list[list[tuple[Index, Scalar]]] = field(default_factory=list)


class _Comparison:
    """The questions about one action, both of whose forms are read together, so that what they share is one term."""

    def __init__(self, obligations: Obligations, own: TracedAction, changed: TracedAction) -> None:
        self._obligations = obligations
        self._traced = obligations.attached.traced
        self._unbounded = Unbounded(self._traced, mark="step!")
        interpreter = self._unbounded.interpreter
        values = self._unbounded.params(own.name)
        binding = {term: Bound(values[name], own.params[name]) for name, term in params_of(own.params).items()}
        self._reading = interpreter.reading(self._unbounded.pre, binding, named=True)
        self.own, self.changed = (
            _Side(name, action, interpreter.guards(action, self._reading), interpreter.after(action, self._reading))
            for name, action in (("variant", own), ("mutant", changed))
        )
        self._ways = ((self.own, self.changed), (self.changed, self.own))
        self._read_at = self._indices_read()

    def lacking(self, side: _Side, other: _Side) -> list[str]:
        """The guards of the other side that this side does not have as they stand."""
        return [name for name, _ in _guards_apart(other.action, side.action)]

    @property
    def defines(self) -> bool:
        """Whether there are definitions beside the questions."""
        return bool(self._reading.definitions)

    def nothing(self) -> Obligation:
        """That the variant takes a step: nothing is denied, and so it must not be refuted."""
        return self._obligation("it can happen", [self.own])

    def step(self, side: _Side, other: _Side, guard: str) -> Obligation:
        """That one side takes a step at which that guard of the other refuses."""
        denied = self._denied_guard(other, guard)
        return self._obligation(f"{guard} in {side.name}", [side], denied)

    def moves(self, side: _Side, other: _Side, guard: str) -> Iterator[Obligation]:
        """That such a step changes something, for each variable that it writes."""
        refused = self._denied_guard(other, guard)
        for variable in self._written(side):
            denied = self._denied_equal(variable, side.after, self._unbounded.pre)
            yield self._obligation(f"{guard}, {variable.name} in {side.name}", [side], refused, denied)

    def outcomes(self) -> Iterator[Obligation]:
        """That a step of both leads to states that differ, for each variable that they do not write alike."""
        differing = [target for side, other in self._ways for target, _ in _writes_apart(side.action, other.action)]
        for variable in self._clearing({str(target.value) for target in differing}):
            denied = self._denied_equal(variable, self.own.after, self.changed.after)
            yield self._obligation(f"{variable.name}'", [self.own, self.changed], denied)

    def _written(self, side: _Side) -> list[Variable]:
        return self._clearing({str(target.value) for target, _ in side.action.writes})

    def _clearing(self, written: set[str]) -> list[Variable]:
        """These variables, and those of which a cell may be dead by their values."""
        dead = {name for name, (_, live) in self._traced.live.items() if variables_in(live) & written}
        return [each for name, each in self._obligations.attached.base.variables.items() if name in written | dead]

    def _denied_guard(self, side: _Side, name: str) -> _Denial:
        denied = _Denial(False)
        universe = self._unbounded.universe
        for number, clause in enumerate(prenex(dict(side.action.guards)[name], self._traced.protocol.indices)):
            values = [self._some(f"{name}!{number}", n, index) for n, (_, index) in enumerate(clause.bound)]
            goal = [(index, value) for (_, index), value in zip(clause.bound, values, strict=True)]
            bound = {term: Bound(value, index) for (term, index), (_, value) in zip(clause.bound, goal, strict=True)}
            within = self._reading.within(bound) if bound else self._reading
            body = within(clause.body)
            denied.formula = either(
                denied.formula, both(*(universe.inside(index, value) for index, value in goal), negated(body))
            )
            denied.axioms += within.definitions if bound else []
            denied.goals.append(goal)
        return denied

    def _denied_equal(self, variable: Variable, left: SymbolicState, right: SymbolicState) -> _Denial:
        """That a variable differs in two states, at some cell; of a set, at some member."""
        universe = self._unbounded.universe
        at = tuple(self._some(variable.name, n, index) for n, index in enumerate(variable.per))
        goal = list(zip(variable.per, at, strict=True))
        values = [state.read(variable.name, at, [True] * len(at)) for state in (left, right)]
        if variable.values.sort is Sort.SET:
            replica = self._traced.protocol.indices["replica"]
            member = self._some(variable.name, len(at), replica)
            goal.append((replica, member))
            values = [replicas.has(member) for replicas in values]
        inside = both(*(universe.inside(index, value) for index, value in goal))
        return _Denial(both(inside, negated(equal(*values))), [], [goal])

    def _indices_read(self) -> list[tuple[Index, Scalar]]:
        """Where variables are read in what differs: there, too, the hints may have lemmas instantiated."""
        apart = [term for side, other in self._ways for _, term in _guards_apart(side.action, other.action)]
        apart += [term for side, other in self._ways for _, term in _writes_apart(side.action, other.action)]
        found: dict[tuple[str, Term], tuple[Index, Scalar]] = {}
        for read in (part for term in apart for part in parts(term) if part.op == "var"):
            for index, at in zip(self._traced.variables[str(read.value)].per, read.args, strict=True):
                if not any(part.op == "bound" for part in parts(at)):
                    found[index.name, at] = index, self._reading(at)
        return list(found.values())

    def _some(self, scope: str, number: int, index: Index) -> Scalar:
        return z3.Const(f"some!{scope}!{index.name}!{number}", self._unbounded.universe.sort(index.sort))

    def _obligation(self, name: str, sides: Sequence[_Side], *denials: _Denial) -> Obligation:
        guards = {id(guard): guard for side in sides for guard in side.guards.values()}
        goals = [[*goal, *self._read_at] for denial in denials for goal in denial.goals] or [list(self._read_at)]
        assertions = [
            *self._obligations.hypotheses.values(),
            *(as_formula(guard) for guard in guards.values()),
            *self._reading.definitions,
            *self._obligations.hinted(self.own.action.name, self._reading, goals),
            *(axiom for denial in denials for axiom in denial.axioms),
            *(as_formula(denial.formula) for denial in denials),
        ]
        action = self.own.action.name
        return Obligation(action, name, self._obligations.text(f"{action}: {name}", assertions))


def _guards_apart(action: TracedAction, other: TracedAction) -> list[tuple[str, Term]]:
    """The guards of an action that another does not have as they stand. Equal terms are one object."""
    has = {id(guard) for _, guard in other.guards}
    return [(name, guard) for name, guard in action.guards if id(guard) not in has]


def _writes_apart(action: TracedAction, other: TracedAction) -> list[tuple[Term, Term]]:
    has = {(id(target), id(value)) for target, value in other.writes}
    return [(target, value) for target, value in action.writes if (id(target), id(value)) not in has]
