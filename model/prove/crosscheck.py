"""The symbolic relation held against the reference interpreter, in both directions.

``crosscheck`` asks z3 of every transition that the reference takes whether the relation accepts it, and whether it
refuses the same transition with one cell of the state after it changed; of a part of them, whether the relation
leaves any other state at all; of every step that the reference refuses, whether the relation has no successor; and
of states, whether each invariant is what the reference says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, TypeAlias, TypeVar

import z3

from ..core.ground import Cell, Params, State, System
from ..explore.result import Verdict
from ..interpret.reference import Reference
from ..interpret.symbolic import Symbolic

_Item = TypeVar("_Item")


class Transition(NamedTuple):
    """A step of the reference."""

    state: State
    action: str
    params: Params
    after: State


class RefusedStep(NamedTuple):
    """A step that the reference refuses."""

    state: State
    action: str
    params: Params


_Asked: TypeAlias = "Transition | RefusedStep | tuple[str, State]"
"""What a query is about: a step, or an invariant in a state."""


@dataclass
class Sample:
    """What a cross-check runs on, all of it found by the reference interpreter."""

    states: list[State] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    refused: list[RefusedStep] = field(default_factory=list)

    def of_action(self, action: str) -> Sample:
        """The part that concerns one action."""
        return Sample(
            self.states,
            [t for t in self.transitions if t.action == action],
            [r for r in self.refused if r.action == action],
        )


@dataclass(frozen=True)
class Failure:
    """Where relation and reference differ: what was asked, of which step, and the cell that was changed (if any)."""

    kind: str
    step: str
    state: str
    cell: str | None = None

    def __str__(self) -> str:
        changed = f", with {self.cell}" if self.cell else ""
        return f"{self.kind}: {self.step}{changed}, in the state {self.state}"


@dataclass(frozen=True)
class CrossCheck:
    """The outcome: how much was asked before the first failure, or in all."""

    verdict: Verdict
    seed: int
    accepted: int
    """Transitions that the relation accepts."""
    near_misses: int
    """Transitions with one cell changed, which it refuses."""
    determined: int
    """Transitions whose state after is the only one that the relation allows."""
    refused: int
    """Steps that the reference refuses, for which it has no successor."""
    invariants: int
    """Pairs (state, invariant) on which both agree."""
    by_action: Mapping[str, int]
    """Transitions by action."""
    first_failure: Failure | None


def exhaustive(system: System) -> Sample:
    """Every reachable state, every transition and every refused step. For small constants: nothing bounds it."""
    reference = Reference(system)
    sample = Sample([system.initial])
    seen = {system.initial}
    for state in sample.states:  # grows while it is walked: breadth-first
        for action, params in system.by_step:
            after = reference.step(state, action, params)
            if after is None:
                sample.refused.append(RefusedStep(state, action, params))
                continue
            sample.transitions.append(Transition(state, action, params, after))
            if after not in seen:
                seen.add(after)
                sample.states.append(after)
    return sample


def sampled(system: System, count: int, seed: int, *, length: int = 40, refused_each: int = 2) -> Sample:
    """``count`` different transitions of random walks from the initial state, each walk at most ``length`` long.

    At each state an action is drawn first and its parameters next, so that actions with few parameters are not
    rare. What was drawn and refused on the way is kept too, up to ``refused_each`` of a state. Gives fewer where
    100 walks in a row find nothing new.
    """
    random = Random(seed)  # noqa: S311 - a seeded choice, no secret
    reference, sample = Reference(system), Sample()
    by_action: dict[str, list[Params]] = {}
    for action, params in system.by_step:
        by_action.setdefault(action, []).append(params)
    seen: set[object] = set()
    idle = 0
    while len(sample.transitions) < count and idle < 100:
        state, before = system.initial, len(sample.transitions)
        for _ in range(length):
            if state not in seen:
                seen.add(state)
                sample.states.append(state)
            refused_here = 0
            for action, params in _drawn(by_action, random):
                after = reference.step(state, action, params)
                if after is not None:
                    break
                refused = RefusedStep(state, action, params)
                if refused_here < refused_each and refused not in seen:
                    refused_here += 1
                    seen.add(refused)
                    sample.refused.append(refused)
            else:
                break
            transition = Transition(state, action, params, after)
            if transition not in seen and len(sample.transitions) < count:
                seen.add(transition)
                sample.transitions.append(transition)
            state = after
        idle = 0 if len(sample.transitions) > before else idle + 1
    return sample


def disturbed(system: System, states: list[State], count: int, seed: int, *, cells: int = 3) -> Sample:
    """Every step from ``count`` states that are each one of these with ``cells`` cells changed.

    No run reaches most of them. Where a guard is implied by the others in all reachable states, only such states
    tell whether the relation has it.
    """
    random = Random(seed)  # noqa: S311 - a seeded choice, no secret
    reference, sample = Reference(system), Sample()
    for _ in range(count):
        values = list(random.choice(states))
        for cell in random.sample(system.layout.cells, cells):
            values[cell.number] = changed(cell, values[cell.number], random)
        state = tuple(values)
        sample.states.append(state)
        for action, params in system.by_step:
            after = reference.step(state, action, params)
            if after is None:
                sample.refused.append(RefusedStep(state, action, params))
            else:
                sample.transitions.append(Transition(state, action, params, after))
    return sample


def _drawn(by_action: Mapping[str, list[Params]], random: Random) -> Iterator[tuple[str, Params]]:
    for action in random.sample(list(by_action), len(by_action)):
        choices = by_action[action]
        for params in random.sample(choices, len(choices)):
            yield action, params


def changed(cell: Cell, value: int, random: Random) -> int:
    """Another value for a cell, from its domain where that has one, else just outside of it."""
    others = [v for v in range(cell.low, cell.high + 1) if v != value]
    return random.choice(others) if others else cell.high + 1


def crosscheck(
    system: System,
    sample: Sample,
    seed: int,
    *,
    symbolic: Symbolic | None = None,
    thorough: int = 50,
    refused: int | None = None,
    states: int = 200,
    rlimit: int = 10_000_000,
) -> CrossCheck:
    """Hold the symbolic relation (of ``system``, or the one given) against what the reference did.

    Every transition of the sample is asked as it is and with one cell changed, drawn by ``seed``; ``thorough``
    transitions are also asked with every cell changed and for any second successor; of the refused steps
    ``refused`` are asked (None: all), spread evenly over the guards that refuse them; and all invariants are read in
    ``states`` of the states. ``violated`` and the first failure where anything differs; ``unknown`` where z3 leaves one
    query undecided within ``rlimit`` of its own resource units.
    """
    random = Random(seed)  # noqa: S311 - a seeded choice, no secret
    check = _Check(system, symbolic or Symbolic(system.traced, system.constants), random, rlimit)
    try:
        failure = check.run(sample, thorough, refused, states)
        verdict = Verdict.HOLDS if failure is None else Verdict.VIOLATED
    except _UndecidedError as undecided:
        failure, verdict = undecided.failure, Verdict.UNKNOWN
    counts = check.counts
    return CrossCheck(
        verdict,
        seed,
        counts["accepted"],
        counts["near misses"],
        counts["determined"],
        counts["refused"],
        counts["invariants"],
        dict(sorted(Counter(t.action for t in sample.transitions).items())),
        failure,
    )


class _UndecidedError(Exception):
    """z3 answered ``unknown``; that is neither an acceptance nor a refusal."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _Check:
    """One cross-check: what it counts, and the questions that it asks."""

    def __init__(self, system: System, symbolic: Symbolic, random: Random, rlimit: int) -> None:
        self.rlimit = rlimit
        self.system = system
        self.symbolic = symbolic
        self.random = random
        self.reference = Reference(system)
        self.counts: Counter[str] = Counter()

    def run(self, sample: Sample, thorough: int, refused: int | None, states: int) -> Failure | None:
        """The first failure, or None."""
        for transition in sample.transitions:
            failure = self.accepts(transition) or self.refuses_near(transition, [self.random.choice(self.cells)])
            if failure:
                return failure
        for transition in self._some(sample.transitions, thorough):
            failure = self.refuses_near(transition, self.cells) or self.determines(transition)
            if failure:
                return failure
        for step in sample.refused if refused is None else self._spread(sample.refused, refused):
            failure = self.blocks(step)
            if failure:
                return failure
        for state in self._some(sample.states, states):
            failure = self.agrees_on_invariants(state)
            if failure:
                return failure
        return None

    @property
    def cells(self) -> list[Cell]:
        return self.system.layout.cells

    def accepts(self, t: Transition) -> Failure | None:
        if self._holds(self.symbolic.relation(t.action, t.params), t, t.state, t.after):
            self.counts["accepted"] += 1
            return None
        return self._failure("the relation refuses a transition of the reference", t)

    def refuses_near(self, t: Transition, cells: Iterable[Cell]) -> Failure | None:
        relation = self.symbolic.relation(t.action, t.params)
        for cell in cells:
            value = changed(cell, t.after[cell.number], self.random)
            near = (*t.after[: cell.number], value, *t.after[cell.number + 1 :])
            if self._holds(relation, t, t.state, near):
                text = f"{cell.name} {cell.variable.values.told(value)} after it"
                return self._failure("the relation accepts a transition with one cell changed", t, text)
            self.counts["near misses"] += 1
        return None

    def determines(self, t: Transition) -> Failure | None:
        """No state but the reference's satisfies the relation. One query asks for all others at once."""
        others = z3.Not(self.symbolic.post.equals(t.after))
        relation = self.symbolic.relation(t.action, t.params)
        if not self._satisfiable(t, relation, self.symbolic.pre.equals(t.state), others):
            self.counts["determined"] += 1
            return None
        return self._failure("the relation leaves a second state after a transition", t)

    def blocks(self, r: RefusedStep) -> Failure | None:
        relation = self.symbolic.relation(r.action, r.params)
        decided = self.symbolic.decided(relation, r.state)
        if decided is None:  # not a literal yet: the state after it is free, so ask whether there is one
            decided = self._satisfiable(r, relation, self.symbolic.pre.equals(r.state))
        if decided:
            guard = self.reference.refused_by(*r)
            return self._failure(f"the relation has a successor where the reference's guard {guard} refuses", r)
        self.counts["refused"] += 1
        return None

    def agrees_on_invariants(self, state: State) -> Failure | None:
        broken = self.reference.broken(state)
        for name in self.system.invariants:
            holds = self._holds(self.symbolic.invariant(name), (name, state), state)
            if holds is (name in broken):
                says = "holds" if holds else "does not hold"
                return Failure("z3 and the reference differ", f"{name} {says} for z3", self._state(state))
            self.counts["invariants"] += 1
        return None

    def _holds(self, formula: z3.BoolRef, asked: _Asked, state: State, after: State | None = None) -> bool:
        decided = self.symbolic.decided(formula, state, after)
        if decided is None:
            decided = self._satisfiable(asked, z3.substitute(formula, *self.symbolic.encode(state, after)))
        return decided

    def _satisfiable(self, asked: _Asked, *formulas: z3.BoolRef) -> bool:
        solver = z3.Solver()
        solver.set(rlimit=self.rlimit)
        solver.add(*formulas)
        answer = solver.check()
        if answer == z3.unknown:
            kind = f"z3 does not decide ({solver.reason_unknown()})"
            if isinstance(asked, Transition | RefusedStep):
                raise _UndecidedError(self._failure(kind, asked))
            raise _UndecidedError(Failure(kind, asked[0], self._state(asked[1])))
        return bool(answer == z3.sat)

    def _some(self, items: list[_Item], count: int) -> list[_Item]:
        return items if len(items) <= count else self.random.sample(items, count)

    def _spread(self, refused: list[RefusedStep], count: int) -> list[RefusedStep]:
        """As many refused steps of each guard as there are, or as the others leave room for."""
        groups: dict[tuple[str, str | None], list[RefusedStep]] = {}
        for step in self.random.sample(refused, len(refused)):
            groups.setdefault((step.action, self.reference.refused_by(*step)), []).append(step)
        spread: list[RefusedStep] = []
        depth = 0
        while len(spread) < min(count, len(refused)):
            spread += [group[depth] for group in groups.values() if depth < len(group)]
            depth += 1
        return spread[:count]

    def _failure(self, kind: str, at: Transition | RefusedStep, cell: str | None = None) -> Failure:
        step = f"{at.action}({', '.join(f'{k}={v}' for k, v in at.params)})"
        return Failure(kind, step, self._state(at.state), cell)

    def _state(self, state: State) -> str:
        """The state, less what is as in the initial one."""
        shown = [
            f"{c.name}={c.variable.values.told(v)}" for c, v in zip(self.cells, state, strict=True) if v != c.initial
        ]
        return ", ".join(shown) or "the initial state"
