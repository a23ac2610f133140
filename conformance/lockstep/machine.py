"""The lockstep machine: one run of the model and the system side by side, a try at a time.

A try is an action that the model allows, one that it refuses, or a fault. After each the model is led along the run
that the adapter reports, every step of which must be enabled; then what happened is held against what must have come of
it, every observed cell against the model's, and the protocol's promises against the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ...model.core.errors import BadInput
from ...model.core.ground import State
from ...model.core.user_error import is_user_error
from ...traces.format import Value
from .adapter import Adapter, Contradiction, Outcome
from .coverage import Coverage
from .divergence import CellDifference, Done, LockstepDivergence, Sort, error_words, expected_words
from .expect import Expectation, Standing, Try, event_run, expectation
from .faults import Kind
from .space import Call, Node, Pair, Space
from .traceback import raised_at
from .watch import Hung

MAX_CELLS: Final = 8
"""So many differing cells are told of one divergence."""


class Machine:
    """One run from the initial state. ``coverage`` is told of everything that is tried; None: nobody is."""

    def __init__(self, space: Space, adapter: Adapter, seed: int, coverage: Coverage | None = None) -> None:
        self.space = space
        self.adapter = adapter
        self.coverage = coverage
        self.standing = Standing()
        self.history: list[Done] = []
        self.met: set[Pair] = set()
        """The guards that were the first to refuse what was asked for."""
        self.node: Node = space.node(space.system.initial)
        self._seed = seed

    def start(self) -> LockstepDivergence | None:
        """Put the system in its initial state, and compare."""
        asked = Try(None)
        try:
            self.adapter.reset(self.space.system.constants, self._seed)
        except BadInput:
            raise
        except BaseException as error:
            self.history.append(Done(asked, (), None, None))
            return _fell_over(asked, error, "resetting it")
        return self._look(asked, changed=False)

    def skips(self, asked: Try) -> bool:
        """Whether a try makes no sense here: nothing is promised of it, or the fault does not fit what stands."""
        if asked.call is not None:
            return expectation(self.space, self.node, asked, self.standing) is None
        fault = asked.fault
        assert fault is not None
        match fault.kind:
            case Kind.HEAL:
                return fault.replica not in self.standing.isolated
            case Kind.ISOLATE:
                return fault.replica in self.standing.isolated
            case Kind.MARK_ONLINE:
                return fault.replica not in self.standing.offline
            case Kind.MARK_OFFLINE:
                return fault.replica in self.standing.offline
            case Kind.DELIVER_LATE:
                return self.standing.late == 0
            case Kind.CRASH:
                return not self.space.crashes
            case _:
                return False

    def perform(self, asked: Try) -> LockstepDivergence | None:
        """Carry out one try that is not to be skipped, and compare. The last entry of ``history`` tells of it."""
        before = self.node
        expected = None if asked.call is None else expectation(self.space, before, asked, self.standing)
        if asked.call is not None and asked.call not in before.after:
            self.met.add((asked.call[0], self.space.refused(before, asked.call)[0][0]))
        if self.coverage is not None:
            self.coverage.tried(self.space, before, asked)
        try:
            outcome = self._ask(asked)
        except BadInput:
            raise
        except BaseException as error:
            # Whatever a system under test raises is what we are looking for.
            self.history.append(Done(asked, (), None, None))
            return _fell_over(asked, error, "it")
        if asked.fault is not None:
            self.standing.after(asked.fault)
        run: list[tuple[Call, State]] = []
        found = self._advance(asked, outcome, run)
        if found is not None:
            return found
        if self.coverage is not None and len(run) != (asked.call is not None):
            self.coverage.happened_beside(call for call, _ in run if call != asked.call)
        if expected is not None and asked.call is not None:
            found = self._outcome(asked, asked.call, before, expected, outcome, [call for call, _ in run])
        else:
            found = self._event(asked, outcome, run)
        seen = self._look(asked, changed=not run, outcome=outcome, run=run)
        if found is not None:
            # The step did not go as it must; where the states differ too, that belongs to it.
            cells = () if seen is None else seen.cells
            return LockstepDivergence(found.sort, asked, found.detail, found.refusal, cells)
        return seen

    def _ask(self, asked: Try) -> Outcome:
        if asked.call is None:
            assert asked.fault is not None
            return self.adapter.inject(asked.fault)
        action, params = asked.call
        return self.adapter.apply(action, dict(params), asked.fault)

    def _advance(self, asked: Try, outcome: Outcome, run: list[tuple[Call, State]]) -> LockstepDivergence | None:
        """Lead the model along the run; ``run`` takes the steps that it allows."""
        for action, params in outcome.run:
            try:
                call = self.space.call(action, params)
            except KeyError:
                self._note(asked, outcome, run)
                told = f"{action}({', '.join(f'{name}={value}' for name, value in params.items())})"
                return LockstepDivergence(Sort.UNKNOWN, asked, f"it reports {told}, which is no step of the model")
            after = self.node.after.get(call)
            if after is None:
                refusal = self.space.explain(self.node.state, call)
                self._note(asked, outcome, run, refused=call)
                what = "it happened" if call == asked.call else f"{Try(call)} happened"
                return LockstepDivergence(Sort.REFUSED, asked, f"{what}, and the model refuses that", refusal)
            run.append((call, after))
            self.node = self.space.node(after)
        return None

    def _outcome(
        self,
        asked: Try,
        call: Call,
        before: Node,
        expected: Expectation,
        outcome: Outcome,
        run: list[Call],
    ) -> LockstepDivergence | None:
        happened = call in run
        if expected.fits(happened, outcome.error):
            return None
        if expected.happens and run and not happened and call not in self.node.after and outcome.error is None:
            return None  # what the system did first, and told, has left nothing to do
        enabled = call in before.after
        refusal = None if enabled else self.space.explain(before.state, call)
        answered = f"it answered {error_words(outcome.error)}"
        wanted = expected_words(expected)
        if expected.happens is True and not happened:
            return LockstepDivergence(Sort.MISSING, asked, f"it did not happen, {answered}; {wanted}")
        if expected.happens is False and happened:
            return LockstepDivergence(Sort.REFUSED, asked, f"it happened; {wanted}", refusal)
        return LockstepDivergence(Sort.ERROR, asked, f"{answered}; {wanted}", refusal)

    def _event(self, asked: Try, outcome: Outcome, run: list[tuple[Call, State]]) -> LockstepDivergence | None:
        assert asked.fault is not None
        if outcome.error is not None:
            return LockstepDivergence(Sort.ERROR, asked, f"a fault has no answer, and it answered {outcome.error}")
        wrong = event_run(self.space, asked.fault, tuple(call[0] for call, _ in run))
        return LockstepDivergence(Sort.CHANGED, asked, wrong) if wrong else None

    def _look(
        self,
        asked: Try,
        *,
        changed: bool,
        outcome: Outcome | None = None,
        run: Iterable[tuple[Call, State]] = (),
    ) -> LockstepDivergence | None:
        """Compare every observed cell and check the promises. ``changed``: a difference means that something moved."""
        done = outcome or Outcome()
        try:
            observed = self.adapter.observe()
        except BadInput:
            raise
        except BaseException as error:
            self.history.append(Done(asked, tuple(run), done.error, None))
            return _fell_over(asked, error, "observing it")
        self.history.append(Done(asked, tuple(run), done.error, observed))
        if self.coverage is not None:
            self.coverage.reached(self.node.state, observed)
        expected = self.node.expected
        if observed != expected:
            apart = _apart(expected, observed)
            if apart:
                sort = Sort.CHANGED if changed else Sort.CELLS
                if any(each.cell not in expected for each in apart):
                    sort = Sort.UNKNOWN
                return LockstepDivergence(sort, asked, str(apart[0]), None, apart[:MAX_CELLS])
        if self.node.broken:
            name = self.node.broken[0]
            return LockstepDivergence(Sort.PROMISE, asked, f"{name} does not hold after it", broken=name)
        return None

    def _note(self, asked: Try, outcome: Outcome, run: list[tuple[Call, State]], refused: Call | None = None) -> None:
        """Remember a try that the model could not follow to its end, with what can be seen of it."""
        try:
            observed: Mapping[str, Value] | None = self.adapter.observe()
        except BaseException as error:
            if not isinstance(error, Hung) and not is_user_error(error):
                raise
            # There is a divergence already.
            observed = None
        self.history.append(Done(asked, tuple(run), outcome.error, observed, refused))


def _fell_over(asked: Try, error: BaseException, what: str) -> LockstepDivergence:
    """What the system raised, as a divergence; a system that ends the process, and one that hangs, are such too.

    The adapter may have found a contradiction, and that is no exception of the system's.
    """
    if isinstance(error, Contradiction):
        return LockstepDivergence(Sort.CONTRADICTED, asked, str(error))
    if isinstance(error, Hung):
        return LockstepDivergence(Sort.HUNG, asked, str(error), at=raised_at(error))
    if not is_user_error(error):
        raise error
    detail = f"{what} raised {type(error).__name__}: {error}".removesuffix(": ")
    return LockstepDivergence(Sort.RAISED, asked, detail, at=raised_at(error))


def _apart(expected: Mapping[str, Value], observed: Mapping[str, Value]) -> tuple[CellDifference, ...]:
    """The observed cells that differ, in the model's order; then those that the model does not have."""
    found = []
    for cell, value in expected.items():
        if cell in observed:
            seen = observed[cell]
            if (tuple(seen) if isinstance(seen, list) else seen) != value or isinstance(seen, bool):
                found.append(CellDifference(cell, value, seen))
    strange = (cell for cell in observed if cell not in expected)
    return (*found, *(CellDifference(cell, "no such cell", observed[cell]) for cell in strange))
