"""The rows of defects of a protocol whose systems run freely and are in no lockstep.

A defect is killed by a free run at default settings that ends in a divergence, made as small as it gets, and that the
implementation without the defect passes.
"""

from __future__ import annotations

import time
from contextlib import closing

from ...model.core.ground import ground
from ...model.core.registry import PROTOCOLS
from ..adapters.parts import Parts
from ..harness import MakeFreeOver, binding_of, find_harness, held_to, plan_of
from ..plan import constants_of
from ..simulation.runner import RunRecord, SimulationPlan, SimulationResult, repeat, simulate
from ..simulation.transitions import Transitions
from .defects import Defect
from .matrix import Cell, Kind, Outcome, Row
from .patched import patched


class FreeJudge:
    """Drives copies of what ``impl/`` has of a protocol. What was computed of it is kept for the next defect."""

    def __init__(self, runs: int = SimulationPlan.runs) -> None:
        self._runs = runs
        self._portfolios: dict[str, list[Transitions]] = {}

    def portfolio(self, protocol: str) -> list[Transitions]:
        """The constants that free runs go through by turns."""
        if protocol not in self._portfolios:
            text, binding = held_to(protocol), binding_of(protocol, protocol)
            written = plan_of(PROTOCOLS[protocol]).free or ("",)
            with closing(free_over(protocol)(None)) as system:
                traced = text.traced(system.variant)
            self._portfolios[protocol] = [
                Transitions(ground(traced, constants_of(text, at)), binding) for at in written
            ]
        return self._portfolios[protocol]

    def drive(self, defect: Defect, seed: int) -> SimulationResult:
        """Look for a run that shows the defect."""
        portfolio = self.portfolio(defect.protocol)
        with patched(*defect.patches) as root, closing(free_over(defect.protocol)(Parts.of(root))) as system:
            return simulate(system, portfolio, SimulationPlan(self._runs, seed=seed))

    def clean(self, defect: Defect, ran: RunRecord) -> RunRecord:
        """The same events on the implementation as it is."""
        with closing(free_over(defect.protocol)(None)) as system:
            return repeat(system, ran.ways, ran.seed, ran.events)

    def row(self, defect: Defect, seed: int = 0) -> Row:
        """The row of a defect."""
        start = time.perf_counter()
        answer = self.drive(defect, seed)
        seconds = time.perf_counter() - start
        of = f"{defect.protocol}, implementation"
        if answer.failure is None:
            detail = f"{answer.met.events:,} events, seed {seed}: {defect.doc}"
            cells = {"free": Cell(Outcome.SURVIVED, detail, seconds=seconds)}
            return Row(defect.name, Kind.IMPLEMENTATION, of, cells)
        issue = f" ({defect.issue})" if defect.issue else ""
        faults = []
        if self.clean(defect, answer.failure).divergence is not None:
            faults.append("the implementation without the defect parts from the model in the same run")
        if not answer.repeatable:
            faults.append("the run does not end alike each time")
        # A run that there was no time to make minimal has no length that could be told.
        length = len(answer.failure.events) if answer.minimal else None
        cell = Cell(Outcome.KILLED, f"{defect.doc}{issue}", length, seconds)
        return Row(defect.name, Kind.IMPLEMENTATION, of, {"free": cell}, faults=tuple(faults))


def free_over(protocol: str) -> MakeFreeOver:
    """What makes a system of a protocol that runs freely over parts of a copy of ``impl``."""
    harness = find_harness(protocol)
    make = None if harness is None else harness.find_free_over()
    assert make is not None
    return make


def is_free_only(protocol: str) -> bool:
    """Whether defects of what ``impl/`` has of a protocol are judged in free runs.

    So they are where it is in no lockstep, and where systems that run freely are held to a text of their own: there the
    constants of a defect are that text's.
    """
    harness = find_harness(protocol)
    return harness is not None and harness.free is not None and (harness.over_impl is None or harness.text is not None)
