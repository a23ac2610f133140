"""Bounded search: a shortest counterexample by a SAT solver, from runs of one step upwards.

The step relation (``interpret/symbolic_bits.py``) is unrolled once for each step, and z3 is asked whether a run of just
so many steps breaks a promise. What it has learned of shorter runs it keeps, and that none of them breaks one, so the
first run that it finds is a shortest one. It is walked again by the reference before anyone sees it. Of runs that
differ in the names of replicas only one is looked at. No states are counted, so that nothing is ever found to hold:
the verdict at the end of the bound is ``unknown``.
"""

from __future__ import annotations

import z3

from ..core.domains import REPLICA
from ..core.errors import BadInput
from ..core.ground import System
from ..core.terms import TRUE
from ..interpret.reference import Reference
from ..interpret.symbolic_bits import BitRelation
from ..interpret.symmetry import interchangeable
from .result import Exploration, OnProgress, Query, Step, Verdict, Watch

MAX_DEPTH = 20
"""Steps of the longest run that is looked at, where a query does not say."""


def explore_symbolic(query: Query, on_progress: OnProgress | None = None) -> Exploration:
    """Look for a counterexample of at most ``query.limits.max_depth`` steps."""
    return Unrolling(query, Watch(query.limits, on_progress)).run()


class Unrolling:
    """One bounded search. ``depth`` of the answer counts the states of the longest runs that were decided."""

    def __init__(self, query: Query, watch: Watch) -> None:
        assert query.system.constraint is TRUE, "the lifted terms do not have it"
        self.system = query.system
        self.watch = watch
        self.query = query
        self.answer = Exploration(query, "symbolic", Verdict.UNKNOWN, 0, 1, 0.0)

    def run(self) -> Exploration:
        """Search until a promise breaks, the bound is reached or a budget runs out."""
        broken = self._broken(Reference(self.system), self.system.initial)
        if broken is not None:
            self._violated([], broken)
        else:
            self._unroll()
        self.answer.seconds = self.watch.seconds
        self.answer.memory = self.watch.peak
        return self.answer

    def _unroll(self) -> None:
        limits = self.query.limits
        if limits.max_effort >= 1 << 32:
            raise BadInput(
                f"{limits.max_effort:,} is more than z3 counts", "--max-effort", "give at most 4,294,967,295"
            )
        most = MAX_DEPTH if limits.max_depth is None else limits.max_depth
        relation = self.relation = BitRelation(self.system.traced, self.system.constants, self.query.invariants)
        solver = z3.SolverFor("QF_FD", ctx=relation.context)
        solver.set(random_seed=0, rlimit=limits.max_effort)
        state = relation.at(relation.pre, 0)
        literals = relation.literals(self.system.initial)
        solver.add(*(constant == literal for constant, literal in zip(state, literals, strict=True)))
        names = _FirstNames(self.system, relation)
        for depth in range(1, most + 1):
            self.watch.report(depth, 0, 0)
            state = self._step(solver, state, depth)
            solver.add(*names.at(depth))
            broken = z3.substitute(relation.broken, *zip(relation.post, state, strict=True))
            asked = z3.Bool(f"broken@{depth}", relation.context)
            solver.add(asked == broken)
            found = solver.check(asked)
            if found == z3.sat:
                self._walk(solver.model(), depth)
                return
            if found == z3.unknown:
                self._undecided(depth, str(solver.reason_unknown()))
                return
            solver.add(z3.Not(asked))
            self.answer.depth = depth + 1
            self.answer.reason = self.watch.exhausted(0)
            if self.answer.reason:
                return
        self.answer.reason = (
            f"no run of up to {most} steps breaks a promise; longer ones were not looked at (--max-depth)"
        )

    def _step(self, solver: z3.Solver, state: list[z3.ExprRef], depth: int) -> list[z3.ExprRef]:
        """Add one step to the run; gives the constants of the state after it."""
        relation = self.relation
        # pre@n is the post of step n: a state has one name for its cells, whichever end of a step it is.
        after = relation.at(relation.pre, depth)
        placed = [
            *zip(relation.pre, state, strict=True),
            *zip(relation.middle, relation.at(relation.middle, depth), strict=True),
            *zip(relation.post, after, strict=True),
            (relation.pick, *relation.at([relation.pick], depth)),
        ]
        solver.add(z3.substitute(relation.step, *placed))
        return after

    def _undecided(self, depth: int, reason: str) -> None:
        if "interrupt" in reason:  # z3 takes the signal itself
            raise KeyboardInterrupt
        self.answer.reason = (
            f"no run of up to {depth - 1} steps breaks a promise; of {depth} steps z3 does not decide it within "
            f"{self.query.limits.max_effort:,} of its resource units (--max-effort)"
        )

    def _walk(self, model: z3.ModelRef, depth: int) -> None:
        """The run that a model is, step by step by the reference."""
        reference = Reference(self.system)
        state = self.system.initial
        path: list[Step] = []
        for time in range(1, depth + 1):
            (pick,) = self.relation.at([self.relation.pick], time)
            action, params = self.relation.instances[model.eval(pick, model_completion=True).as_long()]
            after = reference.step(state, action, params)
            if after is None:
                raise AssertionError(f"the reference refuses {action}{params} in {state}")
            path.append(Step(self.system.by_step[action, params], after))
            state = after
            broken = self._broken(reference, state)
            if (broken is None) is (time == depth):
                raise AssertionError(f"the reference finds {broken or 'nothing'} broken after {time} of {depth} steps")
        assert broken is not None
        self._violated(path, broken)

    def _broken(self, reference: Reference, state: tuple[int, ...]) -> str | None:
        """The first invariant of the query, in its order, that does not hold."""
        broken = reference.broken(state)
        return next((name for name in self.query.invariants if name in broken), None)

    def _violated(self, path: list[Step], broken: str) -> None:
        self.answer.verdict = Verdict.VIOLATED
        self.answer.violated = broken
        self.answer.path = path
        self.answer.depth = len(path) + 1


class _FirstNames:
    """Of runs that are equal but for the names of replicas, the one that takes up names in their order.

    Where two neighbours can be swapped in the initial state, nothing tells them apart before a step has one of them for
    a parameter; so the lower one may come first, within a step in the order of its parameters.
    """

    def __init__(self, system: System, relation: BitRelation) -> None:
        self._relation = relation
        self._pairs = interchangeable(system)
        self._named = [
            [value for name, value in params if system.traced.action(action).params[name] is REPLICA]
            for action, params in relation.instances
        ]

    def at(self, time: int) -> list[z3.BoolRef]:
        """What holds of the step that ends at this point of the run."""
        context = self._relation.context
        (pick,) = self._relation.at([self._relation.pick], time)
        found = []
        for low in self._pairs:
            early = [pick == i for i, named in enumerate(self._named) if _comes_first(named, low + 1, low)]
            uses = [pick == i for i, named in enumerate(self._named) if low in named]
            used, now = (z3.Bool(f"used {low}@{when}", context) for when in (time - 1, time))
            before = used if time > 1 else z3.BoolVal(False, context)
            found.append(z3.Implies(z3.Or(*early, context), before))
            found.append(now == z3.Or(before, *uses))
        return found


def _comes_first(named: list[int], this: int, other: int) -> bool:
    return this in named and (other not in named or named.index(this) < named.index(other))
