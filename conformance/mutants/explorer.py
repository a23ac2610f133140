"""The explorer's column: does a promise break, at the smallest constants at which one does?

A mutant is tried at rising constants. Where its steps differ from the model's in no reachable state, or only by steps
that change nothing, it reaches the same states, and nothing has to be searched again; nor has it where the model's
states, closed under the mutant's steps, hold every promise. What holds everywhere is held, at the constants whose state
graph is small, against the liveness properties that the model itself keeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...model.core.errors import BadInput, ProtocolError
from ...model.core.ground import System, ground, ground_mutant
from ...model.core.mutants import Mutant
from ...model.core.protocol import TracedProtocol
from ...model.explore import Exploration, Limits, Query, Verdict, explore
from ...model.explore.batch import Search, search_batch
from ...model.explore.closure_check import Closure, Model
from ...model.explore.compare import Change, Difference, compare
from ...model.explore.liveness import check_liveness
from ...model.explore.result import OnProgress, Step
from ...model.interpret.reference import Reference
from ..harness import plan_of
from ..plan import constants_of, written
from .beyond import Beyond
from .matrix import Cell, Outcome

LIVE_STATES = 2_000
"""Liveness is checked where the model has at most so many states."""


@dataclass(frozen=True)
class Base:
    """The model itself at one rung: all its reachable states, and the liveness properties that it keeps."""

    constants: str
    model: Model
    live: frozenset[tuple[str, str]]

    @property
    def search(self) -> Search:
        """The search that found the states."""
        return self.model.search


@dataclass(frozen=True)
class Finding:
    """What the explorer found out about a mutant.

    ``change``: how its steps differ over all rungs that were tried. ``path``: a run of it to a broken promise.
    ``base``, ``system`` and ``difference``: the model, the mutant and how they differ at the first rung where they do,
    or the one at which the mutant was killed; None where its steps are the same everywhere. ``model``: the model there,
    also where it was not explored itself. ``apart``: how they differ at each rung at which they do, by its constants.
    """

    cell: Cell
    change: Change
    system: System | None = None
    path: tuple[Step, ...] | None = None
    base: Base | None = None
    difference: Difference | None = None
    model: System | None = None
    apart: tuple[tuple[Mapping[str, int], Difference], ...] = ()


class Explorer:
    """Judges the mutants of one traced variant. What it found out about the model is kept.

    Raises BadInput where the variant itself does not hold: of mutants of a broken model nothing follows.
    """

    def __init__(self, traced: TracedProtocol, rungs: Sequence[str] = (), limits: Limits | None = None) -> None:
        self.traced = traced
        plan = plan_of(traced.protocol)
        self.beyond: Mapping[str, Beyond] = {} if rungs else plan.beyond
        self.rungs = tuple(rungs) or plan.rungs or (written(constants_of(traced.protocol, "")),)
        self.limits = limits or Limits()
        self.symmetry = plan.symmetric
        self._bases: dict[str, Base | None] = {}
        self._systems: dict[str, System] = {}

    def system(self, at: str) -> System:
        """The model at these constants. Kept, with what grounding its mutants comes to."""
        if at not in self._systems:
            self._systems[at] = ground(self.traced, constants_of(self.traced.protocol, at))
        return self._systems[at]

    def base(self, rung: str, on_progress: OnProgress | None = None) -> Base | None:
        """The model at one rung; None where a budget ran out."""
        if rung not in self._bases:
            system = self.system(rung)
            search = search_batch(self._query(system), on_progress)
            if search.answer.verdict is Verdict.VIOLATED:
                variant = self.traced.variant.name
                raise BadInput(
                    f"{variant} itself breaks {search.answer.violated} at {rung}",
                    "--variant",
                    "choose a variant that keeps its promises: of its mutants nothing would follow",
                )
            holds = search.answer.verdict is Verdict.HOLDS
            self._bases[rung] = Base(rung, Model(search), _kept(system, search.answer)) if holds else None
        return self._bases[rung]

    def _query(self, system: System) -> Query:
        return Query.of(system, symmetry=self.symmetry, limits=self.limits)

    def judge(self, mutant: Mutant, on_progress: OnProgress | None = None) -> Finding:
        """Try a mutant at each rung, until it breaks something."""
        differing: list[tuple[Base, System, Difference]] = []
        finding = self._tried(mutant, differing, on_progress)
        return replace(finding, apart=tuple((system.constants, found) for _, system, found in differing))

    def _tried(
        self, mutant: Mutant, differing: list[tuple[Base, System, Difference]], on_progress: OnProgress | None
    ) -> Finding:
        for rung in self.rungs:
            self.base(rung, on_progress)  # a model that is broken anywhere is refused before anything is said
        start = time.perf_counter()
        for rung in self.rungs:
            base = self.base(rung)
            if base is None:
                return Finding(_unknown(f"{rung}: too large for the budget", start), _overall(differing))
            system = ground_mutant(base.search.system, mutant.traced, mutant.action)
            closure = Closure(base.model)
            difference = compare(base.search, system, mutant.action, closure.add)
            if difference.change is not Change.NONE:
                differing.append((base, system, difference))
            if difference.change in (Change.NONE, Change.STUTTERS):
                continue
            if closure.keeps_promises(system, mutant.action, difference):
                continue
            found = explore(self._query(system), on_progress=on_progress)
            if found.verdict is Verdict.UNKNOWN:
                return Finding(_unknown(f"{rung}: {found.reason}", start), _overall(differing))
            if found.verdict is Verdict.VIOLATED:
                cell = _killed(found.violated or "", rung, found.path, start)
                path = None if found.path is None else confirmed(system, found)
                return Finding(cell, _overall(differing), system, path, base, difference, base.search.system)
        if mutant.name in self.beyond:
            return self._beyond(mutant, _overall(differing), start, on_progress)
        for base, system, difference in differing:
            broken = _lost(base, system) if difference.change is not Change.STUTTERS else None
            if broken is not None:
                name, loop = broken
                cell = _killed(name, base.constants, loop, start)
                return Finding(cell, _overall(differing), system, None, base, difference, base.search.system)
        cell = Cell(Outcome.SURVIVED, f"holds up to {self.rungs[-1]}", seconds=time.perf_counter() - start)
        if not differing:
            return Finding(cell, Change.NONE)
        base, system, difference = differing[0]
        return Finding(cell, _overall(differing), system, None, base, difference, base.search.system)

    def _beyond(self, mutant: Mutant, change: Change, start: float, on_progress: OnProgress | None) -> Finding:
        """Search for a run to a broken promise where it is said that there is one."""
        place = self.beyond[mutant.name]
        model = self.system(place.constants)
        system = ground_mutant(model, mutant.traced, mutant.action)
        query = self._query(place.of(system))
        found = explore(query, on_progress=on_progress)
        if found.path is None:
            reason = found.reason or "it is said to break a promise there, and does not"
            return Finding(_unknown(f"{place.constants}: {reason}", start), change)
        cell = _killed(found.violated or "", place.constants, found.path, start)
        return Finding(cell, change, system, confirmed(system, found), model=model)


def _kept(system: System, answer: Exploration) -> frozenset[tuple[str, str]]:
    """The pairs (property, fairness) that hold; none where there is none, or the graph is large."""
    protocol = system.traced.protocol
    if not protocol.liveness or answer.distinct > LIVE_STATES:
        return frozenset()
    answers = check_liveness(system)
    return frozenset((each.spec.name, each.fairness) for each in answers if each.verdict is Verdict.HOLDS)


def _lost(base: Base, system: System) -> tuple[str, Sequence[Step]] | None:
    """A liveness property that the model keeps and the mutant does not, with its lasso once around."""
    if not base.live:
        return None
    for answer in check_liveness(system, limits=Limits()):
        if answer.lasso is not None and (answer.spec.name, answer.fairness) in base.live:
            return f"{answer.spec.name} under {answer.fairness}", answer.lasso.path
    return None


def _overall(differing: Sequence[tuple[Base, System, Difference]]) -> Change:
    return Change.of(*(difference for _, _, difference in differing))


def _killed(violated: str, rung: str, path: Sequence[Step] | None, start: float) -> Cell:
    length = None if path is None else len(path)
    # A witness that is never met has no run that shows it.
    detail = f"{violated} at {rung}" if path is not None else f"{violated} never happens at {rung}"
    return Cell(Outcome.KILLED, detail, length, time.perf_counter() - start)


def _unknown(reason: str, start: float) -> Cell:
    return Cell(Outcome.UNKNOWN, reason, seconds=time.perf_counter() - start)


def confirmed(system: System, found: Exploration) -> tuple[Step, ...]:
    """The path of a counterexample, once the reference has run it: it ends in the first state that breaks the promise.

    Raises ProtocolError where the reference does not confirm it. For a shifted bound the reference reads the terms as
    they stand; the search read them grounded and compiled.
    """
    assert found.path is not None
    reference = Reference(system)
    state = system.initial
    for number, step in enumerate(found.path, 1):
        if set(found.query.invariants) & set(reference.broken(state)):
            raise ProtocolError(f"{found.violated}: the reference finds a promise broken before step {number}")
        after = reference.step(state, step.instance.action, step.instance.params)
        if after != step.state:
            raise ProtocolError(f"{found.violated}: the reference takes step {number}, {step.instance}, otherwise")
        state = after
    if found.violated not in reference.broken(state):
        raise ProtocolError(f"the reference does not find {found.violated} broken after {len(found.path)} steps")
    return tuple(found.path)


OnMutant = Callable[[Mutant], OnProgress]
"""Told of a mutant before it is judged; gives what the progress of its searches is told to."""
