"""Pass two: every event against the model's guards and effects, thousands of traces at once.

Where every cell of every row was observed, the state before each step is known: all rows of a run are checked at once,
sorted by action and parameters (`whole_steps`). Where cells are missing, but each step with its parameters is known,
traces go forward in lockstep, their states carried (`carried_steps`): a step of the model has one outcome, so that a
trace which lacks no event has one run at most.

Either way a trace is followed up to its first bad step, and no further: from there on there is no run to follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...model.core import terms
from ...model.core.ground import Instance
from ...model.interpret.batch import Block
from ..corpus.layout import Events, Integers
from .against import Against, Codes
from .partial import Mask, Rows

Counts = npt.NDArray[np.unsignedinteger[Any]]

BLOCK: Final = 1 << 15
"""Rows of which all cells are compared at once."""


@dataclass(frozen=True)
class Stops:
    """Rows at which traces end to be explained, one for a trace at most, ascending.

    ``before``: the states before them, shape (cells, m). ``undecided``: the row's parameters are not known, so that
    nothing follows; elsewhere the row is no step of the model. ``repeated``: all rows of steps that change nothing and
    are observations, also of rows after a stop.
    """

    rows: Rows
    before: Integers
    undecided: Mask
    repeated: Rows


def by_code(codes: Codes) -> Iterator[tuple[int, Rows]]:
    """The positions of each code that occurs, ascending."""
    order = np.argsort(codes, kind="stable")
    found = codes.take(order)
    cuts = np.flatnonzero(found[1:] != found[:-1]) + 1
    for low, high in zip([0, *cuts.tolist()], [*cuts.tolist(), codes.size], strict=True):
        if high > low:
            yield int(found[low]), order[low:high]


def whole_steps(against: Against, events: Events, codes: Codes) -> Stops:
    """Every step of events whose every cell was observed."""
    rows = len(events)
    # Column 0 is the initial state, column i + 1 row i: what precedes row i is column i, but where a trace begins.
    states = np.empty((events.cells.shape[0], rows + 1), dtype=events.cells.dtype)
    states[:, 0] = against.initial
    states[:, 1:] = events.cells
    before = np.arange(rows)
    before[events.starts] = 0
    changed = _changed(states, events.starts)
    bad = np.zeros(rows, dtype=np.bool_)
    repeated: list[Rows] = []
    block = Block(states)
    for code, at in by_code(codes):
        if code == against.look:
            bad[at] = changed[at] > 0
            continue
        instance = against.instances.get(code)
        if instance is None:
            bad[at] = True
            continue
        bad[at] = _wrong(instance, block, states, before.take(at), at, changed.take(at))
        repetition = against.repetition(code)
        left = at[bad[at] & (changed[at] == 0)]
        if repetition is not terms.FALSE and left.size:
            same = left[np.broadcast_to(block.select(before.take(left))(repetition), left.shape)]
            bad[same] = False
            repeated.append(same)
    stops = first_of_traces(events, np.flatnonzero(bad))
    return Stops(stops, states[:, before[stops]], codes[stops] == against.unknown, _joined(repeated))


def _joined(parts: Sequence[Rows]) -> Rows:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)


def _changed(states: Integers, starts: Rows) -> Counts:
    """How many cells each row has otherwise than the row before, in its trace."""
    rows = states.shape[1] - 1
    changed = np.zeros(rows, dtype=np.min_scalar_type(len(states)))
    for low in range(0, rows, BLOCK):
        high = min(low + BLOCK, rows)
        for column in states:
            changed[low:high] += column[low + 1 : high + 1] != column[low:high]
    changed[starts] = (states[:, starts + 1] != states[:, :1]).sum(axis=0)
    return changed


def _wrong(instance: Instance, block: Block, states: Integers, before: Rows, at: Rows, changed: Counts) -> Mask:
    """Which rows of an instance a guard refuses, or have another outcome."""
    chosen = block.select(before)
    wrong = np.zeros(at.size, dtype=np.bool_)
    for _, guard in instance.guards:
        wrong |= ~chosen(guard)
    written = np.zeros(at.size, dtype=changed.dtype)
    for number, term in instance.effect.items():
        column = states[number]
        after = column.take(at + 1)
        wrong |= after != chosen(term)
        written += after != column.take(before)
    # A cell that the step does not write has changed, where more have changed than were written.
    wrong |= written != changed
    return wrong


def first_of_traces(events: Events, rows: Rows) -> Rows:
    """Of ascending rows, the first of each trace."""
    if not rows.size:
        return rows
    trace = events.trace.take(rows)
    return rows[np.concatenate(([True], trace[1:] != trace[:-1]))]


@dataclass(frozen=True)
class Carried:
    """What came of traces in lockstep: where they stop, and the states that they went through.

    ``states``: shape (cells, n); column i is the state after row i, where the trace was explained so far (``known``).
    """

    stops: Stops
    states: Integers
    known: Mask


def carried_steps(against: Against, events: Events, codes: Codes) -> Carried:
    """Every step of events some of whose cells were not observed."""
    count = events.starts.size
    seen = events.seen
    assert seen is not None
    states = np.empty(events.cells.shape, dtype=events.cells.dtype)
    known = np.zeros(len(events), dtype=np.bool_)
    now = np.repeat(against.initial[:, None], count, axis=1)
    lengths = events.ends - events.starts
    # Longest first, so that the traces that still go on are always the first ones.
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = events.starts[order], lengths[order]
    going = np.arange(count)
    stopped: list[tuple[Rows, Integers]] = []
    repeated: list[Rows] = []
    for step in range(int(lengths.max(initial=0))):
        going = going[: np.searchsorted(-lengths[going], -step)]
        if not going.size:
            break
        rows = starts[going] + step
        wrong = np.zeros(going.size, dtype=np.bool_)
        block = Block(now)
        after = now.take(going, axis=1)
        for code, at in by_code(codes.take(rows)):
            if code == against.look:
                continue
            instance = against.instances.get(code)
            if instance is None:
                wrong[at] = True
                continue
            chosen = block.select(going.take(at))
            for _, guard in instance.guards:
                wrong[at] |= ~chosen(guard)
            for number, term in instance.effect.items():
                after[number, at] = chosen(term)
            repetition = against.repetition(code)
            if repetition is not terms.FALSE and wrong[at].any():
                same = at[np.broadcast_to(chosen(repetition), at.shape)]
                wrong[same] = False
                repeated.append(rows[same])
        wrong |= (seen.take(rows, axis=1) & (events.cells.take(rows, axis=1) != after)).any(axis=0)
        if wrong.any():
            stopped.append((rows[wrong], now[:, going[wrong]]))
            going, rows, after = going[~wrong], rows[~wrong], after[:, ~wrong]
        now[:, going] = after
        states[:, rows] = after
        known[rows] = True
    return Carried(_stops(against, codes, stopped, now, _joined(repeated)), states, known)


def _stops(
    against: Against, codes: Codes, stopped: Sequence[tuple[Rows, Integers]], like: Integers, repeated: Rows
) -> Stops:
    if not stopped:
        none: Any = np.empty(0, dtype=np.intp)
        return Stops(none, like[:, :0], np.empty(0, dtype=np.bool_), repeated)
    rows = np.concatenate([each for each, _ in stopped])
    before = np.concatenate([each for _, each in stopped], axis=1)
    order = np.argsort(rows)
    rows = rows[order]
    return Stops(rows, before[:, order], codes[rows] == against.unknown, repeated)
