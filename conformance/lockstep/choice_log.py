"""A lockstep run as a trace file, and back: what was asked, faults included, beside what happened and what was seen.

Each try becomes one event for each model step that happened, the last with the observations after it; a try of which
nothing happened becomes a look at the state. The first event of a try has in its ``source`` the object ``lockstep``:
``action``, ``params`` and ``fault`` as asked, and the ``error`` that was answered. The header's ``source`` has the
adapter and the seed that it was reset with. ``fencepost replay`` reads such a file as any trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...model.core.errors import BadInput
from ...model.core.ground import System
from ...traces.format import Trace, TraceEvent, TraceHeader, Value
from ...traces.observe import encode
from ...traces.read import read_trace
from ...traces.run_report import Json
from .divergence import Done
from .expect import Try
from .faults import Fault
from .play import Played
from .space import Call, Space

KEY = "lockstep"


@dataclass(frozen=True)
class Tape:
    """What a trace file says of a lockstep run: enough to run it again.

    ``adapter``: what ``--impl`` named; None for a trace that was recorded in another way.
    """

    protocol: str
    variant: str
    constants: Mapping[str, int]
    adapter: str | None
    seed: int
    tries: tuple[Try, ...]


def tape_of(system: System, played: Played, adapter: str, more: Mapping[str, Json] | None = None) -> Trace:
    """The trace of a run. ``adapter`` is what ``--impl`` names; ``more`` goes to the header's source too."""
    source: dict[str, Json] = {KEY: {"adapter": adapter, "seed": played.seed}}
    if played.divergence is not None:
        source["disagreement"] = played.divergence.headline
    header = TraceHeader(
        system.name,
        system.traced.variant.name,
        dict(system.constants),
        complete=True,
        source=source | dict(more or {}),
    )
    events: list[TraceEvent] = []
    for done in played.history:
        events += _events(system, done, len(events) + 1)
    return Trace(header, tuple(events))


def _events(system: System, done: Done, step: int) -> list[TraceEvent]:
    steps: list[Call | None] = [call for call, _ in done.run]
    if done.refused is not None:
        steps.append(done.refused)
    if not steps:
        steps.append(None)
    observed, strange = _sound(system, done.observed or {})
    told: dict[str, Json] = {}
    if done.asked != Try(None):
        told[KEY] = done.asked.to_json() | ({} if done.error is None else {"error": done.error})
    if strange:
        told["not in the model"] = strange
    found = []
    for number, call in enumerate(steps):
        last = number == len(steps) - 1
        found.append(
            TraceEvent(
                step + number,
                None if call is None else call[0],
                {} if call is None else dict(call[1]),
                observed if last else {},
                told if number == 0 else {},
            )
        )
    return found


def _sound(system: System, observed: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, Json]]:
    """What a trace may say was observed; and what no cell of the model can hold, as text."""
    sound: dict[str, Value] = {}
    strange: dict[str, Json] = {}
    layout = system.layout
    for cell, value in observed.items():
        try:
            encode(layout.cells[layout.by_name[cell]], value)
        except (KeyError, ValueError):
            strange[str(cell)] = repr(value)
        else:
            sound[cell] = tuple(value) if isinstance(value, list) else value
    return sound, strange


def read_tape(path: Path) -> Tape:
    """Read what ``fencepost conform`` wrote, or any other complete trace: its steps are then the tries.

    Raises BadInput for a file that is neither.
    """
    trace = read_trace(path)
    header, mend = trace.header, "give a trace that fencepost conform wrote"
    if KEY not in header.source and header.complete:
        tries = [_step(event, str(path)) for event in trace.events if event.action is not None]
        return Tape(header.protocol, header.variant, header.constants, None, 0, tuple(tries))
    head = header.source.get(KEY)
    if not isinstance(head, dict):
        raise BadInput("this trace is not of a lockstep run, and steps may be missing from it", str(path), mend)
    adapter, seed = head.get("adapter"), head.get("seed")
    if not isinstance(adapter, str) or type(seed) is not int:
        raise BadInput("the header's lockstep has no adapter, or no seed", f"{path}, line 1", mend)
    tries = []
    for event in trace.events:
        told = event.source.get(KEY)
        if told is not None:
            where = f"{path}, line {event.line}"
            if not isinstance(told, dict):
                raise BadInput("lockstep is no object", where, mend)
            tries.append(_try(told, where))
    return Tape(header.protocol, header.variant, header.constants, adapter, seed, tuple(tries))


def _step(event: TraceEvent, where: str) -> Try:
    """The step of an event as a try."""
    params: list[tuple[str, int]] = []
    for name, value in event.params.items():
        if value is None:
            what = f"the parameter {name} of {event.call} is not known"
            raise BadInput(what, f"{where}, line {event.line}", "give a trace with all parameters")
        params.append((name, value))
    assert event.action is not None
    return Try((event.action, tuple(params)))


def _try(told: Mapping[str, Any], where: str) -> Try:
    mend = "give what fencepost conform wrote"
    fault, action, params = told.get("fault"), told.get("action"), told.get("params", {})
    if not (fault is None or isinstance(fault, dict)) or not isinstance(params, dict):
        raise BadInput("lockstep has a fault or params that are no object", where, mend)
    if not (action is None or isinstance(action, str)) or (action is None and fault is None):
        raise BadInput("lockstep has neither an action nor a fault", where, mend)
    for value in params.values():
        # A value of an enumeration is told by its name.
        if type(value) is not int and not (isinstance(value, str) and value.isidentifier()):
            raise BadInput(f"lockstep has the parameter {value!r}", where, mend)
    call = None if action is None else (action, tuple(params.items()))
    return Try(call, None if fault is None else Fault.from_json(fault, where))


def bound_tries(space: Space, tape: Tape, where: str) -> tuple[Try, ...]:
    """The tries of a tape as instances of the model. Raises BadInput for what the model does not have."""
    found = []
    for asked in tape.tries:
        if asked.call is not None:
            action, params = asked.call
            try:
                asked = Try(space.call(action, dict(params)), asked.fault)
            except KeyError:
                raise BadInput(
                    f"{asked} is no step of {space.system.name} {space.system.traced.variant.name}",
                    where,
                    "replay it against the variant that it was recorded with",
                ) from None
        found.append(asked)
    return tuple(found)
