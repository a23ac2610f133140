"""What a run of events visits: actions, guards that decide, abstract states and moves, and states as fingerprints.

All of it is merged by sums, minima and unions, so that it does not matter how a corpus is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from ...model.interpret.packing import Packing, Words
from ..corpus.layout import Events, Integers
from .abstract import Marks, true_of
from .against import Against, Codes
from .findings import Judged
from .partial import Rows
from .promises import BLOCK

_Key = TypeVar("_Key")

Prints = npt.NDArray[np.uint64]
"""Fingerprints of states or of steps in a state, 64 bits each, ascending and distinct."""

KEPT: Final = 1 << 20
"""So many fingerprints are kept of states, and of steps in a state: 8 MiB each. Of more, the smallest ones: those are
the same whoever counted them first, and a fair sample."""

_ODD: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


def fingerprints(keys: Words) -> Prints:
    """A fingerprint of each packed key, shape (n,). Two keys have the same one by a chance of 2**-64."""
    mixed = np.zeros(keys.shape[1], dtype=np.uint64)
    for number, word in enumerate(keys):
        mixed ^= word
        mixed *= np.uint64(_ODD[number % len(_ODD)])
        mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(_ODD[-1])
    mixed ^= mixed >> np.uint64(29)
    return mixed


def step_prints(states: Prints, step: npt.NDArray[np.uint64] | np.uint64) -> Prints:
    """Fingerprints of steps (by their numbers in the model) in states with these fingerprints."""
    mixed = (states ^ (step + np.uint64(1))) * np.uint64(_ODD[0])
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(_ODD[1])
    mixed ^= mixed >> np.uint64(29)
    return mixed


def told_apart(prints: Prints) -> tuple[Prints, Rows, Rows]:
    """Distinct values, where each stands first, and for each value the number of the distinct one: as ``np.unique``.

    Five times as fast for values whose upper bits are well mixed: they are sorted with their positions in place of the
    lower bits. Should two values differ in their lower bits alone, and only then, a value may be told more than once.
    """
    mask = np.uint64((1 << max(prints.size - 1, 1).bit_length()) - 1)
    order = np.sort((prints & ~mask) | np.arange(prints.size, dtype=np.uint64))
    at = (order & mask).astype(np.intp)
    sorted_ = prints[at]
    new = np.ones(prints.size, dtype=np.bool_)
    np.not_equal(sorted_[1:], sorted_[:-1], out=new[1:])
    inverse = np.empty(prints.size, dtype=np.intp)
    inverse[at] = np.cumsum(new) - 1
    return sorted_[new], at[new], inverse


@dataclass
class Seen:
    """What was visited. By name, mark or (mark, action): how many events, and the smallest trace id.

    ``guards``: those that decide in some visited state. ``marks``: abstract states. ``moves``: actions in them.
    ``states`` and ``steps``: fingerprints, where wanted; ``capped``: only the smallest ones were kept.
    """

    events: int = 0
    actions: dict[str, int] = field(default_factory=dict)
    guards: dict[str, int] = field(default_factory=dict)
    marks: dict[int, int] = field(default_factory=dict)
    moves: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    states: Prints = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    steps: Prints = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    capped: bool = False

    def merge(self, other: Seen) -> None:
        """Take in what another part of the corpus visits."""
        self.events += other.events
        for action, count in other.actions.items():
            self.actions[action] = self.actions.get(action, 0) + count
        _least(self.guards, other.guards)
        _least(self.marks, other.marks)
        for move, (count, first) in other.moves.items():
            known = self.moves.get(move)
            self.moves[move] = (count, first) if known is None else (known[0] + count, min(known[1], first))
        self.states = self._kept(self.states, other.states)
        self.steps = self._kept(self.steps, other.steps)
        self.capped |= other.capped

    def _kept(self, mine: Prints, theirs: Prints) -> Prints:
        if not theirs.size:
            return mine
        both: Prints = np.union1d(mine, theirs)
        self.capped |= both.size > KEPT
        return both[:KEPT]


def _least(mine: dict[_Key, int], theirs: Mapping[_Key, int]) -> None:
    for key, value in theirs.items():
        mine[key] = min(mine.get(key, value), value)


def _firsts(marks: Marks, trace: npt.NDArray[np.int64]) -> dict[int, int]:
    """By abstract state the smallest trace id."""
    order = np.argsort(trace, kind="stable")
    distinct, first = np.unique(marks[order], return_index=True)
    return dict(zip(distinct.tolist(), trace[order[first]].tolist(), strict=True))


class Watcher:
    """Watches the events of one file or part of a file, in ascending order of their traces; ``finish`` it at the end.

    ``prints``: states and steps are to be told apart and kept, since the whole graph is known.
    """

    def __init__(self, against: Against, prints: bool) -> None:
        self.seen = Seen()
        self._against = against
        self._prints = prints
        self._abstraction = against.abstraction
        self._packing = Packing(against.system.layout)
        self._undecided = dict(self._abstraction.deciding)
        # What is known of states met before: fingerprints, ascending, with the abstract states.
        self._met: Prints = np.empty(0, dtype=np.uint64)
        self._marks: Marks = np.empty(0, dtype=np.int64)
        # The moves so far: what, how often, first in which trace; shape (3, n).
        self._moves = np.empty((3, 0), dtype=np.int64)
        self._numbers = self._step_numbers()
        self.seen.actions = dict.fromkeys(against.system.actions, 0)

    def _step_numbers(self) -> npt.NDArray[np.uint64]:
        """By code, the number of the step among all of the variant's."""
        by_step = {step: number for number, step in enumerate(self._against.system.by_step)}
        numbers = np.zeros(self._against.unknown + 1, dtype=np.uint64)
        for code, step in self._against.steps.items():
            numbers[code] = by_step.get(step, 0)
        return numbers

    def watch(self, events: Events, codes: Codes, judged: Judged) -> None:
        """Take in a run of events, as far as their traces were explained."""
        if not len(events):
            return
        rows = np.flatnonzero(judged.known)
        columns = np.empty((judged.states.shape[0], len(events) + 1), dtype=judged.states.dtype)
        columns[:, 0], columns[:, 1:] = self._against.initial, judged.states
        before = rows.copy()
        # Where a trace begins, the state before is the initial one.
        firsts = np.searchsorted(rows, events.starts)
        inside = firsts < rows.size
        inside[inside] = rows[firsts[inside]] == events.starts[inside]
        before[firsts[inside]] = 0
        prints = self._fingerprints(columns)
        trace = np.concatenate((events.trace[:1], events.trace))
        visited = np.concatenate(([0], rows + 1))
        marks = np.zeros(len(events) + 1, dtype=np.int64)
        marks[visited] = self._mark(columns, visited, prints, trace)
        stepping = (codes[rows] != self._against.look) & ~np.isin(rows, judged.repeated)
        rows, before = rows[stepping], before[stepping]
        self.seen.events += len(events)
        self._count(events, rows, marks[before])
        if self._prints:
            found = Seen(states=np.unique(prints[visited]))
            found.steps = np.unique(step_prints(prints[before], self._numbers.take(codes[rows])))
            self.seen.merge(found)

    def _fingerprints(self, columns: Integers) -> Prints:
        found = np.empty(columns.shape[1], dtype=np.uint64)
        for low in range(0, found.size, BLOCK):
            found[low : low + BLOCK] = fingerprints(self._packing.pack(columns[:, low : low + BLOCK]))
        return found

    def _mark(self, columns: Integers, visited: Rows, prints: Prints, trace: npt.NDArray[np.int64]) -> Marks:
        """The abstract state of each visited column; each state is looked at once."""
        distinct, first, inverse = told_apart(prints[visited])
        at = np.searchsorted(self._met, distinct)
        known = at < self._met.size
        known[known] = self._met[at[known]] == distinct[known]
        marks = np.empty(distinct.size, dtype=np.int64)
        marks[known] = self._marks[at[known]]
        fresh = np.flatnonzero(~known)
        for low in range(0, fresh.size, BLOCK):
            chosen = fresh[low : low + BLOCK]
            rows = visited[first[chosen]]
            marks[chosen] = self._look(columns.take(rows, axis=1), trace[rows])
        self._met = np.insert(self._met, at[fresh], distinct[fresh])
        self._marks = np.insert(self._marks, at[fresh], marks[fresh])
        # Traces come in ascending order, so what has been found now was found first.
        self._undecided = {name: each for name, each in self._undecided.items() if name not in self.seen.guards}
        return marks[inverse]

    def _look(self, columns: Integers, trace: npt.NDArray[np.int64]) -> Marks:
        """Look at states that were not met before; ``trace``: the ids of traces that visit them."""
        marks, block = self._abstraction(columns)
        _least(self.seen.marks, _firsts(marks, trace))
        for name, condition in self._undecided.items():
            here = true_of(block, condition, marks.size)
            if here.any():
                _least(self.seen.guards, {name: int(trace[here].min())})
        return marks

    def _count(self, events: Events, rows: Rows, marks: Marks) -> None:
        """Count the moves of a run of events. Abstract states are less than 2**48, actions less than 2**7."""
        moves = (marks << 7) | events.action[rows]
        # An odd factor mixes the bits, and loses none.
        _, at, inverse = told_apart(moves.astype(np.uint64) * np.uint64(_ODD[0]))
        here = np.stack([moves[at], np.bincount(inverse, minlength=at.size), events.trace[rows[at]]])
        both = np.concatenate([self._moves, here], axis=1)
        distinct, at, inverse = np.unique(both[0], return_index=True, return_inverse=True)
        counts = np.zeros(distinct.size, dtype=np.int64)
        np.add.at(counts, inverse, both[1])
        # Traces come in ascending order: where a move stands first, its first trace stands too.
        self._moves = np.stack([distinct, counts, both[2][at]])

    def finish(self) -> None:
        """Put the moves that were counted so far into what was seen."""
        names = self._against.layout.actions
        found = Seen()
        for move, count, first in self._moves.T.tolist():
            action = names[move & 127]
            found.moves[move >> 7, action] = (count, first)
            found.actions[action] = found.actions.get(action, 0) + count
        self.seen.merge(found)
        self._moves = self._moves[:, :0]
