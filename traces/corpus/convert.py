"""Between events as columns and traces as they are read and written one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ..format import Trace, TraceEvent, Value
from ..observe import decode, encode
from ..run_report import Json
from .layout import LOOK, UNKNOWN, CorpusLayout, Events


def events_of(layout: CorpusLayout, traces: Iterable[tuple[int, Trace]]) -> Events:
    """Traces with their ids, in ascending order, as columns.

    What they say must be sayable in the layout's vocabulary (`read.py` holds them to it). Raises ValueError for a cell,
    an action or a value that is not.
    """
    chosen = list(traces)
    count = sum(len(trace) for _, trace in chosen)
    ids = np.repeat(np.array([i for i, _ in chosen], dtype=np.int64), [len(trace) for _, trace in chosen])
    step = np.empty(count, dtype=np.int32)
    action = np.full(count, LOOK, dtype=np.int8)
    params = np.full((layout.params, count), UNKNOWN, dtype=layout.param_dtype)
    cells = np.repeat(layout.unobserved(), count, axis=1)
    seen = np.zeros(cells.shape, dtype=np.bool_)
    by_name = layout.vocabulary.layout.by_name
    for row, event in enumerate(event for _, trace in chosen for event in trace.events):
        step[row] = event.step
        if event.action is not None:
            if event.action not in layout.numbers:
                raise ValueError(f"{layout.header.variant} has no action {event.action!r}")
            action[row] = number = layout.numbers[event.action]
            for place, name in enumerate(layout.param_names[number]):
                value = event.params.get(name)
                if value is not None:
                    params[place, row] = value
        for name, observed in event.observed.items():
            if name not in by_name:
                raise ValueError(f"the state has no cell {name!r}")
            cells[by_name[name], row] = encode(layout.cells[by_name[name]], observed)
            seen[by_name[name], row] = True
    return Events.whole(layout, ids, step, action, params, cells, None if seen.all() else seen)


def event_of(events: Events, row: int) -> TraceEvent:
    """One row as an event of a trace."""
    layout = events.layout
    observed: dict[str, Value] = {}
    for place, number in enumerate(events.numbers):
        if events.seen is None or events.seen[place, row]:
            cell = layout.cells[number]
            observed[cell.name] = decode(cell, int(events.cells[place, row]))
    step, number = int(events.step[row]), int(events.action[row])
    if number == LOOK:
        return TraceEvent(step, observed=observed)
    action = layout.actions[number]
    values = (int(value) for value in events.params[:, row])
    params = {
        name: None if value == UNKNOWN else index.values(layout.header.constants)[value]
        for (name, index), value in zip(layout.vocabulary.protocol.actions[action].params.items(), values, strict=False)
    }
    return TraceEvent(step, action, params, observed)


def trace_of(events: Events, place: int, source: Mapping[str, Json] | None = None) -> Trace:
    """The trace at a place among the events' traces, as one that can be written and replayed alone.

    ``source``: what its header says of where it came from, besides its id.
    """
    low, high = int(events.starts[place]), int(events.ends[place])
    told = {**events.layout.header.source, **(source or {}), "trace": int(events.trace[low])}
    return Trace(events.layout.header.of_trace(told), tuple(event_of(events, row) for row in range(low, high)))
