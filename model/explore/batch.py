"""Breadth-first search over the batch interpreter: a level is a run of packed keys, expanded block by block."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..core.ground import State
from ..core.terms import TRUE
from ..interpret.batch import Batch, Block, Candidates
from ..interpret.packing import Words
from ..interpret.symmetry import Symmetry
from ..interpret.table import INSERTED, Numbers, StateTable, grown
from .background_insert import Beside
from .memory import keep_pages
from .path import rebuild, report_escape, taken
from .result import TYPE_OK, Coverage, Exploration, Finding, OnProgress, Query, Step, Verdict, Watch, conclude

BLOCK = 1 << 16
"""States expanded at once: enough to amortise NumPy's cost per call, few enough to stay in the caches."""

LEAST = 256
"""A block is halved down to so many states where memory is short, before the search is given up."""

WAITING = 4
"""So many successors for each state of a block are kept, and then go into the table together."""

ASIDE = 1 << 14
"""So many successors go into the table in a second thread while the next are computed; fewer are put in at once."""


class Spent(Exception):
    """A budget has run out; the text says which."""


class Search:
    """One breadth-first search. States are numbered in the order of their discovery, level after level.

    After ``run`` the table has the key of each state that was found: all that are reachable, where the answer holds.

    ``every``: a violated invariant does not end the search. It goes into ``findings`` and is not checked any more;
    ``remaining`` has the others. Only ``type_ok`` ends it, which the packing of states relies on.
    """

    def __init__(self, query: Query, watch: Watch, *, every: bool = False) -> None:
        self.query = query
        self.remaining = list(query.invariants)
        self.findings: list[Finding] = []
        self._every = every
        self._broke: list[tuple[int, str]] = []
        self.watch = watch
        self.system = query.system
        self.batch = Batch(self.system)
        self.symmetry = Symmetry(self.system) if query.symmetry else None
        self.canonical = self.symmetry.representatives(self.batch.packing) if self.symmetry else None
        self.rows = BLOCK
        words, cells = self.batch.packing.words, len(self.system.layout.cells)
        self._of_state = self.batch.state_bytes(
            [
                self.system.constraint,
                *self.system.witnesses.values(),
                *(self.system.invariants[n] for n in query.invariants),
            ]
        )
        # A successor is a key and the row that it comes from; then both once more, in one array for all instances. With
        # symmetry it is unpacked and renamed, and two more keys are compared.
        self._of_successor = 8 * words + 8
        self._of_taken = 8 * words + 16 + (2 * self.batch.width * cells + 24 * words if self.symmetry else 0)
        # A member is a key, a parent and two slots at least.
        self._most = min(query.limits.max_states + (WAITING + 1) * BLOCK, query.limits.max_memory // (8 * words + 12))
        self.table = StateTable(words, self._most)
        self.begins = 0
        self._beside = Beside()
        self._bound = 0
        self._aside = ASIDE if self._beside.worth() else None
        self._parents = np.empty(1 << 10, dtype=np.int32)
        self.answer = Exploration(query, "batch", Verdict.HOLDS, 0, 0, 0.0)
        self.answer.witnesses = dict.fromkeys(self.system.witnesses, 0)
        self.coverage = {name: Coverage() for name in self.system.actions}

    @property
    def parents(self) -> npt.NDArray[np.int32]:
        """For each state the number of one that leads to it, -1 for the initial one. A view, as ``table.keys`` is."""
        return self._parents[: self.table.count]

    def run(self, until: int | None = None) -> Exploration:
        """Search until nothing is new, a promise breaks or a budget runs out.

        ``until``: where a level ends with so many states or more, and there is another, the search stands still there
        (``waits``); to run it again goes on.
        """
        if not self.table.count:
            self._add(self.batch.packing.key(self.system.initial)[:, None], np.array([-1], dtype=np.int32))
        try:
            self._levels(until)
        except Spent as spent:
            self.answer.verdict, self.answer.reason = Verdict.UNKNOWN, str(spent)
        finally:
            self._beside.close()
        answer = self.answer
        answer.coverage = self.coverage
        answer.seconds = self.watch.seconds
        answer.memory = self.watch.peak
        return conclude(answer) if answer.verdict is Verdict.HOLDS and not self.waits else answer

    @property
    def waits(self) -> bool:
        """Whether a level is still to be expanded: the states from ``begins`` on."""
        return self.begins < self.table.count

    def _levels(self, until: int | None) -> None:
        while self.waits and self._level(self.begins, end := self.table.count):
            self.begins = end
            reason = self.watch.too_deep(self.answer.depth)
            if self.waits and reason:
                raise Spent(reason)
            if until is not None and self.table.count >= until:
                return

    def _taken_by(self, rows: int) -> int:
        """Bytes that a block of so many states takes at most, its successors and their insertion included."""
        return rows * (self._of_state + (WAITING + 1) * (self._of_successor + self._of_taken + INSERTED))

    def _room(self, wanted: int) -> int:
        """How many states to expand next: ``wanted``, or as many as there is memory for. Raises Spent for too few."""
        # What made it small may be gone: a table that was larger for a moment.
        self.rows = min(2 * self.rows, BLOCK)
        while not self.watch.grants(self._taken_by(min(self.rows, wanted)) + self._beside.bytes):
            if self._beside.busy:
                self._beside.wait()
            elif min(self.rows, wanted) <= LEAST:
                raise Spent(self.watch.too_much)
            else:
                self.rows //= 2
        return min(self.rows, wanted)

    def _add(self, keys: Words, parents: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        known = self.table.count
        fresh = self.table.insert(self.canonical(keys) if self.canonical else keys)
        self._parents = grown(self._parents, known, self.table.count, self._most)
        self._parents[known : self.table.count] = parents[fresh]
        return fresh

    def _level(self, start: int, end: int) -> bool:
        """Check and expand the states ``start .. end - 1``. False where the search is over."""
        answer = self.answer
        answer.depth += 1
        answer.distinct = end
        transitions: Counter[int] = Counter()
        discoveries: Counter[int] = Counter()
        try:
            broken, escape = self._blocks(start, end, transitions, discoveries)
        finally:
            self._beside.wait()
        self.findings += [Finding(name, self.path(number)) for number, name in sorted(self._broke)]
        self._broke.clear()
        if broken:
            answer.verdict = Verdict.VIOLATED
            answer.violated = broken[1]
            answer.path = self.path(broken[0])
            return False
        if escape:
            report_escape(answer, self.path(escape[0]), escape[1])
            return False
        for number, count in transitions.items():
            action = self.system.instances[number].action
            seen = self.coverage[action]
            self.coverage[action] = Coverage(seen.transitions + count, seen.discoveries + discoveries[number])
        return True

    def _blocks(
        self, start: int, end: int, transitions: Counter[int], discoveries: Counter[int]
    ) -> tuple[tuple[int, str] | None, tuple[int, int] | None]:
        """Block by block: the first state that breaks an invariant, and which; and whose successor is none, by what."""
        escape: tuple[int, int] | None = None
        at = start
        while at < end:
            self.watch.report(self.answer.depth, self.table.count, end - at)
            count = self._room(end - at)
            keys = self.table.keys[:, at : at + count].copy()
            block = self.batch.block(keys)
            broken = self._broken(block, count, at)
            if broken:
                return broken, escape
            numbers = np.arange(at, at + count, dtype=np.int32)
            if self.system.constraint is not TRUE:
                inside = self.batch.holds(block, self.system.constraint, count)
                numbers, keys = numbers[inside], keys[:, inside]
                block = self.batch.block(keys)
            if numbers.size:
                escape = self._expand(block, keys, numbers, transitions, discoveries) or escape
            at += count
            if self._bound > self.query.limits.max_states:
                # Where it ends is not to depend on how far the second thread has come.
                self._beside.wait()
            reason = self.watch.exhausted(self.table.count)
            if reason:
                raise Spent(reason)
        return None, escape

    def _broken(self, block: Block, count: int, at: int) -> tuple[int, str] | None:
        """The first state of a block that breaks an invariant, and the first invariant that it breaks."""
        first: tuple[int, str] | None = None
        for name in tuple(self.remaining):
            holds = self.batch.holds(block, self.system.invariants[name], count)
            if not holds.all():
                row = at + int(np.argmin(holds))
                if self._every and name != TYPE_OK:
                    self._broke.append((row, name))
                    self.remaining.remove(name)
                    continue
                if first is None or row < first[0]:
                    first = row, name
        if first is None:
            for name, term in self.system.witnesses.items():
                self.answer.witnesses[name] += int(np.count_nonzero(self.batch.holds(block, term, count)))
        return first

    def _expand(
        self, block: Block, keys: Words, numbers: Numbers, transitions: Counter[int], discoveries: Counter[int]
    ) -> tuple[int, int] | None:
        """Put the successors of a block into the table. Where one holds a value outside its domain: whose, and by what.

        The first such state and instance; the search then ends with this level, and what is found no more matters.
        """
        found: list[Candidates] = []
        kept = 0
        for candidates in self.batch.expand(block, keys):
            if candidates.escaped.size:
                return int(numbers[candidates.rows[candidates.escaped[0]]]), candidates.instance
            found.append(candidates)
            kept += candidates.rows.size
            if kept >= WAITING * keys.shape[1]:
                self._discover(found, kept, numbers, transitions, discoveries)
                found, kept = [], 0
        if found:
            self._discover(found, kept, numbers, transitions, discoveries)
        return None

    def _discover(
        self,
        found: list[Candidates],
        count: int,
        numbers: Numbers,
        transitions: Counter[int],
        discoveries: Counter[int],
    ) -> None:
        self._beside.wait()
        self._bound = self.table.count + count
        needed = count * self._of_taken + self.table.needs(count)
        while not self.watch.grants(needed):
            if self.table.dense:
                raise Spent(self.watch.too_much)
            self.table.dense = True
            needed = count * self._of_taken + self.table.needs(count)

        def take() -> None:
            keys = np.concatenate([c.keys for c in found], axis=1)
            rows = np.concatenate([c.rows for c in found])
            fresh = self._add(keys, numbers[rows])
            bounds = np.cumsum([0, *(c.rows.size for c in found)])
            new = np.searchsorted(fresh, bounds)
            for candidates, (low, high) in zip(found, pairwise(new), strict=True):
                discoveries[candidates.instance] += int(high - low)

        for candidates in found:
            transitions[candidates.instance] += candidates.rows.size
        # Not where the successors of another block would be too much beside it.
        if self._aside is not None and count >= self._aside and self.watch.grants(needed + self._taken_by(self.rows)):
            self._beside.begin(take, needed)
        else:
            take()

    def path(self, number: int) -> list[Step]:
        """The steps of a shortest run to the state of that number; each has been re-run by the reference."""
        chain = [number]
        while self.parents[chain[-1]] >= 0:
            chain.append(int(self.parents[chain[-1]]))
        return rebuild(self.system, chain[::-1], self._taken)

    def _taken(self, before: State, number: int) -> tuple[int, State] | None:
        """A step from a state to the one of that number, or to a renamed one."""
        return taken(self.batch, before, self.table.keys[:, number], self.canonical)


def explore_batch(query: Query, on_progress: OnProgress | None = None) -> Exploration:
    """Explore with NumPy; memory is about 50 bytes a state at two-word keys."""
    return search_batch(query, on_progress).answer


def search_batch(query: Query, on_progress: OnProgress | None = None) -> Search:
    """The same, for whoever wants the states too."""
    keep_pages()
    search = Search(query, Watch(query.limits, on_progress))
    search.run()
    return search
