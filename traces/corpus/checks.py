"""What every run of events must be, before anything is computed from it: sorted, whole, and within its domains.

One pass of NumPy comparisons over narrow columns; a fault is named by its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .layout import LOOK, UNKNOWN, Events


@dataclass(frozen=True)
class RowFault:
    """Something wrong with a row (counted from 0), and how to mend it."""

    row: int
    what: str
    mend: str


_MEND_ORDER = "sort by trace and step, as fencepost ingest does"
_MEND_VALUES = "record the model's own values, or ingest what they were taken from"


def first_fault(events: Events) -> RowFault | None:
    """The fault of the lowest row; None where all is well."""
    return min(_faults(events), key=lambda fault: fault.row, default=None)


def _faults(events: Events) -> Iterator[RowFault]:
    if not len(events):
        return
    yield from _order(events)
    yield from _calls(events)
    yield from _values(events)


def _order(events: Events) -> Iterator[RowFault]:
    trace, step = events.trace, events.step
    back = trace[1:] < trace[:-1]
    if (row := _first(back)) is not None:
        yield RowFault(row + 1, f"trace {trace[row + 1]} comes after trace {trace[row]}", _MEND_ORDER)
    if trace[0] < 0:
        yield RowFault(0, f"the trace's id is {trace[0]}", "number traces from 0")
    if (row := _first(step < 0)) is not None:
        yield RowFault(row, f"the step number is {step[row]}", "number steps from 1")
    same = trace[1:] == trace[:-1]
    if events.layout.header.complete:
        firsts = step[events.starts]
        if (place := _first(firsts != 1)) is not None:
            row = int(events.starts[place])
            yield RowFault(
                row, f"trace {trace[row]} begins with step {step[row]}, and is said to be complete", _MEND_GAP
            )
        wrong = same & (step[1:] != step[:-1] + 1)
    else:
        wrong = same & (step[1:] <= step[:-1])
    if (row := _first(wrong)) is not None:
        yield _step_fault(events, row)


_MEND_GAP = "ingest traces that lack events with a header that does not call them complete"


def _step_fault(events: Events, row: int) -> RowFault:
    before, after = int(events.step[row]), int(events.step[row + 1])
    whose = f"in trace {events.trace[row]} step {after}"
    if after == before:
        return RowFault(row + 1, f"{whose} stands twice", "keep one of the two")
    if after < before:
        return RowFault(row + 1, f"{whose} comes after step {before}", _MEND_ORDER)
    return RowFault(row + 1, f"{whose} comes after step {before}, and the trace is said to be complete", _MEND_GAP)


def _calls(events: Events) -> Iterator[RowFault]:
    layout, action = events.layout, events.action
    wrong = (action < LOOK) | (action >= len(layout.actions))
    if (row := _first(wrong)) is not None:
        known = f"{len(layout.actions)} actions"
        yield RowFault(
            row, f"the action's number is {action[row]}, and {layout.header.variant} has {known}", _MEND_VALUES
        )
        return
    for place, values in enumerate(events.params):
        sizes = layout.param_sizes[place].astype(layout.param_dtype).take(action, mode="wrap")
        if (row := _first((values < UNKNOWN) | (values >= np.maximum(sizes, 0)))) is not None:
            name = "a look" if action[row] == LOOK else layout.actions[action[row]]
            yield RowFault(row, f"parameter {place} of {name} is {values[row]}", _MEND_VALUES)


def _values(events: Events) -> Iterator[RowFault]:
    cells = [events.layout.cells[number] for number in events.numbers]
    if not cells:
        return
    low, high = events.cells.min(axis=1), events.cells.max(axis=1)
    for place, cell in enumerate(cells):
        if low[place] < cell.low or high[place] > cell.high:
            column = events.cells[place]
            row = _first((column < cell.low) | (column > cell.high))
            assert row is not None
            yield RowFault(row, f"{cell.name} is {column[row]}, and holds {cell.low} to {cell.high}", _MEND_VALUES)


def _first(mask: npt.NDArray[np.bool_]) -> int | None:
    """The first place where it is true."""
    return int(mask.argmax()) if mask.any() else None
