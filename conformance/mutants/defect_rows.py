"""The rows of the implementation's mutants: each is driven in lockstep with the model until the two part.

A defect is killed by a run that ends in a divergence, made as small as it gets, and that the implementation without
the defect passes. The run is a trace, which the model refuses on replay where a state shows what is wrong; where only
an error code is, no trace can say so. What is in no lockstep is judged in free runs (``free_rows.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ...model.core.ground import ground
from ...model.core.registry import PROTOCOLS
from ...model.explore import Verdict
from ...traces.replay import replay
from ...traces.stepper import DirectStepper
from ..adapters.parts import Parts
from ..harness import binding_of, over_impl
from ..lockstep.adapter import Adapter
from ..lockstep.choice_log import tape_of
from ..lockstep.goals import Goals
from ..lockstep.play import Played, repeat
from ..lockstep.runner import Conformance, Plan, conform
from ..lockstep.space import Space
from .defects import Constants, Defect
from .free_rows import FreeJudge, is_free_only
from .matrix import Cell, Kind, Outcome, Row
from .patched import patched
from .trace_replay import refused_by

EXAMPLES: Final = 600
"""Runs after which a defect has survived."""
STEPS: Final = 25
"""Of one run."""

OnDefect = Callable[[Defect], object]


class Judge:
    """Drives copies of the implementation. What was explored of a protocol is kept for the next defect."""

    def __init__(self, examples: int = EXAMPLES) -> None:
        self._examples = examples
        self._goals: dict[tuple[str, Constants], Goals] = {}
        self._free = FreeJudge()

    def goals(self, defect: Defect) -> Goals:
        """The protocol at the defect's constants, and where runs can be led in it."""
        key = (defect.protocol, defect.constants)
        if key not in self._goals:
            protocol = PROTOCOLS[defect.protocol]
            traced = protocol.traced(over_impl(defect.protocol, disk=False).variant)
            constants = dict(zip(protocol.constants, defect.constants, strict=True))
            self._goals[key] = Goals(Space(ground(traced, constants), binding_of(defect.protocol, defect.name)))
        return self._goals[key]

    def drive(self, defect: Defect, seed: int) -> Conformance:
        """Look for a run that shows the defect. ``coverage.steps`` are those up to the first one found."""
        goals = self.goals(defect)
        with patched(*defect.patches) as root:
            adapter = over_impl(defect.protocol, disk=False, parts=Parts.of(root))
            return self._driven(adapter, goals, seed)

    def _driven(self, adapter: Adapter, goals: Goals, seed: int) -> Conformance:
        try:
            plan = Plan(examples=self._examples, steps=STEPS, seed=seed, shrink=False)
            return conform(adapter, goals.space.system, goals.space.binding, plan, goals=goals)
        finally:
            adapter.close()

    def clean(self, defect: Defect, played: Played) -> Played:
        """The same tries on the implementation as it is."""
        adapter = over_impl(defect.protocol, disk=False)
        try:
            return repeat(self.goals(defect).space, adapter, played.seed, played.tries)
        finally:
            adapter.close()

    def row(self, defect: Defect, seed: int = 0) -> Row:
        """The row of a defect."""
        if is_free_only(defect.protocol):
            return self._free.row(defect, seed)
        start = time.perf_counter()
        answer = self.drive(defect, seed)
        seconds = time.perf_counter() - start
        of = f"{defect.protocol}, implementation"
        if answer.failure is None or answer.failure.divergence is None:
            detail = f"{answer.coverage.steps:,} steps, seed {seed}: {defect.doc}"
            cells = {"hypothesis": Cell(Outcome.SURVIVED, detail, seconds=seconds)}
            return Row(defect.name, Kind.IMPLEMENTATION, of, cells)
        played = answer.failure
        issue = f" ({defect.issue})" if defect.issue else ""
        detail = f"{defect.doc}{issue}"
        faults = []
        if self.clean(defect, played).divergence is not None:
            faults.append("the implementation without the defect parts from the model in the same run")
        if not answer.repeatable:
            faults.append("the run does not end alike each time")
        cells = {
            "hypothesis": Cell(Outcome.KILLED, detail, len(played.tries), seconds),
            "replay": self._replayed(defect, played),
        }
        return Row(defect.name, Kind.IMPLEMENTATION, of, cells, faults=tuple(faults))

    def _replayed(self, defect: Defect, played: Played) -> Cell:
        start = time.perf_counter()
        system = self.goals(defect).space.system
        answer = replay(tape_of(system, played, "memory"), DirectStepper(system.traced, system.constants))
        seconds = time.perf_counter() - start
        if answer.verdict is Verdict.HOLDS:
            return Cell(Outcome.EQUIVALENT, "no state shows an error code", seconds=seconds)
        return Cell(Outcome.KILLED, f"step {answer.step}: {refused_by(answer)}", len(played.tries), seconds)


def defect_rows(
    judge: Judge, which: Iterable[Defect], seed: int = 0, on_defect: OnDefect | None = None
) -> Iterator[Row]:
    """A row for each of these defects, as each is judged."""
    for defect in which:
        if on_defect is not None:
            on_defect(defect)
        yield judge.row(defect, seed)
