"""What is wrong with a trace first, for all traces of a run of events at once.

That is the finding of a trace: a guard refuses the step, its outcome is another, or a promise breaks though every step
was allowed. Promises that break at a refused step or later are kept as what followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ...model.core.ground import Instance
from ...model.interpret.batch import Block
from ..corpus.layout import Events, Integers
from ..replay import Budget
from .against import Against, Codes
from .answer import Bug
from .lockstep import Stops, by_code, carried_steps, first_of_traces, whole_steps
from .partial import Mask, Rows
from .signature import differing
from .slow_replay import Fallback


@dataclass(frozen=True)
class Finding:
    """What is wrong with the trace at a place among the events' traces, at a row of them.

    ``then``: promises that break at that row or later, each with how many steps later.
    """

    place: int
    row: int
    bug: Bug
    then: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """What came of a run of events.

    ``findings`` in the order of the traces. ``unknown``: places of traces of which nothing is certain, with the reason.
    ``states``: the model's state after each row, shape (cells, n), where ``known``: the trace was explained so far.
    ``repeated``: rows of steps that change nothing and are observations.
    """

    findings: tuple[Finding, ...]
    unknown: tuple[tuple[int, str], ...]
    states: Integers
    known: Mask
    repeated: Rows


class Judge:
    """Holds events to a variant; made once for a file."""

    def __init__(self, against: Against, budget: Budget) -> None:
        self.against = against
        self.fallback = Fallback(against, budget)

    def __call__(self, events: Events, codes: Codes) -> Judged:
        """Both passes over a run of events, and the reference replay for what they leave open."""
        if events.seen is None:
            stops = whole_steps(self.against, events, codes)
            states, known = events.cells, _explained(events, stops)
            broken = self.against.promises.broken(events)
        else:
            carried = carried_steps(self.against, events, codes)
            stops, states, known = carried.stops, carried.states, carried.known
            # Where a trace was explained, the model's state is the trace's, whatever was observed of it.
            told = replace(events, cells=np.where(known, states, events.cells), seen=events.seen | known)
            broken = self.against.promises.broken(told)
        findings: list[Finding] = []
        unknown: list[tuple[int, str]] = []
        for place, stop, breaches in self._wrong(events, codes, stops, broken):
            found = self._finding(events, place, stop, breaches)
            if isinstance(found, Finding):
                findings.append(found)
            elif found is not None:
                unknown.append((place, found))
        return Judged(tuple(findings), tuple(unknown), states, known, stops.repeated)

    def _wrong(
        self, events: Events, codes: Codes, stops: Stops, broken: Mapping[str, Rows]
    ) -> Iterator[tuple[int, tuple[int, Bug | None] | None, Mapping[str, int]]]:
        """Traces with anything wrong: the place, where it stops with the bug (None: open), the promises' rows."""
        breaches: dict[int, dict[str, int]] = {}
        for name, rows in broken.items():
            firsts = first_of_traces(events, rows)
            for place, row in zip(_places(events, firsts), firsts.tolist(), strict=True):
                breaches.setdefault(place, {})[name] = row
        bugs: list[Bug | None] = [None] * stops.rows.size
        if events.layout.header.complete:
            for number, bug in self._refusals(events, codes, stops):
                bugs[number] = bug
        stopped = dict(zip(_places(events, stops.rows), zip(stops.rows.tolist(), bugs, strict=True), strict=True))
        for place in sorted({*stopped, *breaches}):
            yield place, stopped.get(place), breaches.get(place, {})

    def _finding(
        self, events: Events, place: int, stop: tuple[int, Bug | None] | None, breaches: Mapping[str, int]
    ) -> Finding | str | None:
        """What is wrong first; the reason where nothing is certain; None where nothing is wrong."""
        at = min(breaches.values(), default=None)
        row, bug, reason = None, None, None
        if stop is not None and (at is None or stop[0] <= at):
            row, bug = stop
            if bug is None:
                row, bug, reason = self.fallback(events, place)
        if at is not None and (bug is None or row is None or at < row):
            # An observed state breaks a promise, whatever else is known of the trace.
            name = next(name for name, first in breaches.items() if first == at)
            row, bug = at, Bug(self.against.system.name, "promise", invariant=name)
        if bug is None or row is None:
            return reason
        then = {name: first - row for name, first in breaches.items() if name != bug.invariant and first >= row}
        return Finding(place, row, bug, then)

    def _refusals(self, events: Events, codes: Codes, stops: Stops) -> Iterator[tuple[int, Bug]]:
        """Which guard refuses the step at each stop, or how its outcome differs; by the stop's number."""
        observed = events.cells.take(stops.rows, axis=1)
        seen = None if events.seen is None else events.seen.take(stops.rows, axis=1)
        protocol = self.against.system.name
        for code, at in by_code(codes.take(stops.rows)):
            if code == self.against.unknown:
                continue
            before = stops.before.take(at, axis=1)
            action, instance = None, None
            if code != self.against.look:
                action, instance = self.against.steps[code][0], self.against.instances[code]
                if instance is None:
                    yield from ((int(number), Bug(protocol, "guard", action)) for number in at)
                    continue
            block = Block(before)
            left = at
            # A step that changes nothing is wrong by what was observed after it alone.
            open_ = np.broadcast_to(~block(self.against.repetition(code)) if instance is not None else True, at.shape)
            for guard, refused in _refused(instance, block, open_):
                yield from ((int(number), Bug(protocol, "guard", action, guard)) for number in at[refused])
                left = left[~np.isin(left, at[refused])]
            rest = np.flatnonzero(np.isin(at, left))
            if not rest.size:
                continue
            expected = before.copy()
            for number, term in ({} if instance is None else instance.effect).items():
                expected[number] = block(term)
            looked = np.ones(expected.shape, dtype=np.bool_) if seen is None else seen[:, at]
            apart = np.where(looked, observed[:, at].astype(np.int64) - expected, 0)
            patterns = differing(self.against.system.layout, apart[:, rest])
            changes = self._explaining(code, before[:, rest], observed[:, at[rest]], looked[:, rest])
            for number, variables, names in zip(at[rest].tolist(), patterns, changes, strict=True):
                yield number, Bug(protocol, "effect", action, variables=variables, changes=names)

    def _explaining(self, code: int, before: Integers, observed: Integers, seen: Mask) -> list[tuple[str, ...]]:
        """For each of these states the mutants of the action that allow the step, with what was observed after it.

        `bad_step.explaining` says the same of one state, by the reference, and asks other variants too.
        """
        found: list[tuple[str, ...]] = [()] * before.shape[1]
        if code == self.against.look:
            return found
        step = self.against.steps[code]
        block = Block(before)
        for name, instances in self.against.changes_of(step[0]).items():
            instance = instances[step]
            fits = np.ones(before.shape[1], dtype=np.bool_)
            for _, guard in instance.guards:
                fits &= block(guard)
            after = before.copy()
            for number, term in instance.effect.items():
                after[number] = block(term)
            fits &= ((after == observed) | ~seen).all(axis=0)
            for place in np.flatnonzero(fits).tolist():
                found[place] = (*found[place], name)
        return found


def _refused(instance: Instance | None, block: Block, open_: Mask) -> Iterator[tuple[str, Mask]]:
    """For each guard the states, of those that are open, in which it is the first, in the order written, to refuse."""
    for name, condition in () if instance is None else instance.guards:
        refuses = open_ & ~block(condition)
        if refuses.any():
            yield name, refuses
            open_ = open_ & ~refuses


def _explained(events: Events, stops: Stops) -> Mask:
    """The rows before the stop of their trace."""
    known = np.ones(len(events), dtype=np.bool_)
    ends = events.ends[_places(events, stops.rows)] if stops.rows.size else stops.rows
    for low, high in zip(stops.rows.tolist(), ends.tolist(), strict=True):
        known[low:high] = False
    return known


def _places(events: Events, rows: Rows) -> list[int]:
    """The place of each row's trace."""
    found: list[int] = (np.searchsorted(events.starts, rows, side="right") - 1).tolist()
    return found
