"""Traces that the array passes leave open are replayed one by one, with a frontier."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from ...model.core.ground import System
from ...model.explore.result import Verdict
from ..corpus.convert import trace_of
from ..corpus.layout import Events
from ..observe import encode
from ..replay import Budget, Replay, replay
from ..stepper import MAX_COMPILED_CELLS, CompiledStepper, DirectStepper, Stepper
from .against import Against
from .answer import Bug
from .signature import variables_of


class Fallback:
    """Replays single traces. The model is compiled when the first one is."""

    def __init__(self, against: Against, budget: Budget) -> None:
        self.against = against
        self.budget = budget

    @cached_property
    def stepper(self) -> Stepper:
        """The variant, compiled where that pays."""
        system = self.against.system
        if len(system.layout.cells) <= MAX_COMPILED_CELLS:
            return CompiledStepper(system)
        return DirectStepper(system.traced, system.constants)

    def __call__(self, events: Events, place: int) -> tuple[int, Bug | None, str | None]:
        """The row at which the trace at a place is refused, and by what; or why that is not known; or neither."""
        trace = trace_of(events, place)
        # The miner itself answers `unknown` for partial traces that nothing refuses.
        trace = replace(trace, header=replace(trace.header, partial=None))
        answer = replay(trace, self.stepper, budget=self.budget)
        if answer.verdict is Verdict.HOLDS:
            return 0, None, None
        if answer.verdict is Verdict.UNKNOWN:
            # Without the numbers: they would make as many reasons as there are traces.
            return 0, None, (answer.reason or "").partition(":")[0]
        assert answer.event is not None
        low, high = int(events.starts[place]), int(events.ends[place])
        row = low + int((events.step[low:high] < answer.event.step).sum())
        return row, bug_of(answer, self.against.system), None


def bug_of(answer: Replay, system: System) -> Bug:
    """What a replay with the verdict ``violated`` found wrong."""
    if answer.breach is not None:
        return Bug(system.name, "promise", invariant=answer.breach.invariants[0])
    assert answer.event is not None
    action = answer.event.action
    if answer.conflict is not None:
        names = (system.layout.cells[claim.number].variable.name for claim in answer.conflict.claims[-1:])
        return Bug(system.name, "effect", action, variables=tuple(names))
    denials = answer.frontier[0].denials if answer.frontier else ()
    if not denials:
        return Bug(system.name, "guard", action)
    refusal = denials[0].refusal
    if refusal is not None:
        return Bug(system.name, "guard", action, refusal.guard)
    apart = {}
    for each in denials[0].differences:
        cell = system.layout.cells[system.layout.by_name[each.cell]]
        apart[cell.number] = encode(cell, each.observed) - encode(cell, each.expected)
    return Bug(system.name, "effect", action, variables=variables_of(system.layout, apart))
