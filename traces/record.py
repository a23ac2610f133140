"""Recording a run of a model as a trace, wholly or in part, and checking a run against the reference."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ..model.core.errors import ProtocolError
from ..model.core.ground import State, System
from ..model.explore.result import Step
from ..model.interpret.reference import Reference
from .format import Trace, TraceEvent, TraceHeader
from .observe import choose_cells, observe
from .run_report import Json
from .stepper import TakenStep


def run_of(path: Iterable[Step | TakenStep]) -> tuple[TakenStep, ...]:
    """The steps of an explorer's path (what follows the initial state) as a run."""
    return tuple(
        step if isinstance(step, TakenStep) else TakenStep(step.instance.action, step.instance.params, step.state)
        for step in path
    )


def check_run(reference: Reference, run: Iterable[TakenStep], initial: State | None = None) -> None:
    """Re-run every step by the reference interpreter. Raises ProtocolError at the first that it does not confirm."""
    state = reference.system.initial if initial is None else initial
    for number, step in enumerate(run, 1):
        if step.action not in reference.system.actions:
            raise ProtocolError(f"step {number} of the run, {step.call}: the variant has no such action")
        after = reference.step(state, step.action, step.params)
        if after is None:
            guard = reference.refused_by(state, step.action, step.params)
            raise ProtocolError(f"step {number} of the run, {step.call}: the reference refuses it by its guard {guard}")
        if after != step.state:
            cells = reference.system.layout.cells
            apart = ", ".join(cells[n].name for n, value in enumerate(after) if value != step.state[n])
            raise ProtocolError(f"step {number} of the run, {step.call}: the reference gets other values for {apart}")
        state = after


def record(
    system: System,
    path: Sequence[Step | TakenStep],
    *,
    variables: Collection[str] | None = None,
    replicas: Collection[int] | None = None,
    source: Mapping[str, Json] | None = None,
) -> Trace:
    """The trace of a run from the initial state, complete, every event with the chosen cells of the state after it.

    ``variables`` and ``replicas`` choose what is observed, as in ``choose_cells``; None means all, an empty collection
    of variables nothing. Event ``n`` is the run's step ``n``, counted from 1. Raises ProtocolError for a path that is
    no run of the system, BadInput for a variable or replica that it does not have.
    """
    cells = choose_cells(system.layout, variables=variables, replicas=replicas)
    run = run_of(path)
    check_run(Reference(system), run)
    header = TraceHeader(
        system.name, system.traced.variant.name, dict(system.constants), complete=True, source=dict(source or {})
    )
    events = tuple(
        TraceEvent(number, step.action, dict(step.params), observe(system.layout, step.state, cells))
        for number, step in enumerate(run, 1)
    )
    return Trace(header, events)
