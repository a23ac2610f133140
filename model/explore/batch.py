"""Breadth-first search over the batch interpreter: a level is a run of packed keys, expanded block by block."""

from __future__ import annotations

import ctypes
from collections import Counter
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..core.ground import State, System
from ..core.terms import TRUE
from ..interpret.batch import Batch, Block, Candidates
from ..interpret.packing import Words
from ..interpret.reference import Reference
from ..interpret.symmetry import Symmetry
from ..interpret.table import Numbers, StateTable
from .path import rebuild
from .result import Coverage, Exploration, OnProgress, Query, Step, Verdict, Watch, conclude

BLOCK = 1 << 16
"""States expanded at once: enough to amortise NumPy's cost per call, few enough to stay in the caches."""


class Search:
    """One breadth-first search. States are numbered in the order of their discovery, level after level.

    After ``run`` the table has the key of each state that was found: all that are reachable, where the answer holds.
    """

    def __init__(self, query: Query, watch: Watch) -> None:
        self.query = query
        self.watch = watch
        self.system = query.system
        self.batch = Batch(self.system)
        self.symmetry = Symmetry(self.system) if query.symmetry else None
        self.canonical = self.symmetry.representatives(self.batch.packing) if self.symmetry else None
        self.rows = block_rows(self.system, self.batch.packing.words, query.limits.max_memory)
        self.table = StateTable(self.batch.packing.words)
        self.parents: list[npt.NDArray[np.int32]] = []
        self.answer = Exploration(query, "batch", Verdict.HOLDS, 0, 0, 0.0)
        self.answer.witnesses = dict.fromkeys(self.system.witnesses, 0)
        self.coverage = {name: Coverage() for name in self.system.actions}

    def run(self) -> Exploration:
        """Search until nothing is new, a promise breaks or a budget runs out."""
        self._add(self.batch.packing.key(self.system.initial)[:, None], np.array([-1], dtype=np.int32))
        start, end = 0, 1
        while start < end and self._level(start, end):
            start, end = end, self.table.count
            reason = self.watch.too_deep(self.answer.depth)
            if start < end and reason:
                self.answer.verdict, self.answer.reason = Verdict.UNKNOWN, reason
                break
        answer = self.answer
        answer.coverage = self.coverage
        answer.seconds = self.watch.seconds
        answer.memory = self.watch.peak
        return conclude(answer) if answer.verdict is Verdict.HOLDS else answer

    def _add(self, keys: Words, parents: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        fresh = self.table.insert(self.canonical(keys) if self.canonical else keys)
        self.parents.append(parents[fresh])
        return fresh

    def _level(self, start: int, end: int) -> bool:
        """Check and expand the states ``start .. end - 1``. False where the search is over."""
        answer = self.answer
        answer.depth += 1
        answer.distinct = end
        transitions: Counter[int] = Counter()
        discoveries: Counter[int] = Counter()
        escape: tuple[int, int] | None = None
        broken: tuple[int, str] | None = None
        for at in range(start, end, self.rows):
            self.watch.report(answer.depth, self.table.count, end - at)
            keys = self.table.keys[:, at : min(at + self.rows, end)].copy()
            block = self.batch.block(keys)
            broken = self._broken(block, keys.shape[1], at)
            if broken:
                break
            numbers = np.arange(at, at + keys.shape[1], dtype=np.int32)
            if self.system.constraint is not TRUE:
                inside = self.batch.holds(block, self.system.constraint, keys.shape[1])
                numbers, keys = numbers[inside], keys[:, inside]
                block = self.batch.block(keys)
            found = self.batch.successors(block, keys) if numbers.size else []
            escape = escape or self._escape(found, numbers)
            if found and not escape:
                self._discover(found, numbers, transitions, discoveries)
            answer.reason = self.watch.exhausted(self.table.count)
            if answer.reason:
                answer.verdict = Verdict.UNKNOWN
                return False
        if broken:
            answer.verdict = Verdict.VIOLATED
            answer.violated = broken[1]
            answer.path = self.path(broken[0])
            return False
        if escape:
            self._report_escape(*escape)
            return False
        for number, count in transitions.items():
            action = self.system.instances[number].action
            seen = self.coverage[action]
            self.coverage[action] = Coverage(seen.transitions + count, seen.discoveries + discoveries[number])
        return True

    def _broken(self, block: Block, count: int, at: int) -> tuple[int, str] | None:
        """The first state of a block that breaks an invariant, and the first invariant that it breaks."""
        first: tuple[int, str] | None = None
        for name in self.query.invariants:
            holds = self.batch.holds(block, self.system.invariants[name], count)
            if not holds.all():
                row = at + int(np.argmin(holds))
                if first is None or row < first[0]:
                    first = row, name
        if first is None:
            for name, term in self.system.witnesses.items():
                self.answer.witnesses[name] += int(np.count_nonzero(self.batch.holds(block, term, count)))
        return first

    def _discover(
        self, found: list[Candidates], numbers: Numbers, transitions: Counter[int], discoveries: Counter[int]
    ) -> None:
        keys = np.concatenate([c.keys for c in found], axis=1)
        rows = np.concatenate([c.rows for c in found])
        fresh = self._add(keys, numbers[rows])
        bounds = np.cumsum([0, *(c.rows.size for c in found)])
        new = np.searchsorted(fresh, bounds)
        for candidates, (low, high) in zip(found, pairwise(new), strict=True):
            transitions[candidates.instance] += candidates.rows.size
            discoveries[candidates.instance] += int(high - low)

    def _escape(self, found: list[Candidates], numbers: Numbers) -> tuple[int, int] | None:
        """A state and an instance whose successor holds a value outside its domain, if there is one."""
        for candidates in found:
            if candidates.escaped.size:
                return int(numbers[candidates.rows[candidates.escaped[0]]]), candidates.instance
        return None

    def _report_escape(self, number: int, instance_number: int) -> None:
        """A successor that no key can hold is one level further down, and breaks ``type_ok``."""
        answer = self.answer
        instance = self.system.instances[instance_number]
        path = self.path(number)
        before = path[-1].state if path else self.system.initial
        # With symmetry the path ends in a renamed state: there the instance has other parameters.
        reference = Reference(self.system)
        for action, params, after in reference.successors(before):
            if action == instance.action and "type_ok" in reference.broken(after):
                path.append(Step(self.system.by_step[action, params], after))
                break
        else:
            raise AssertionError(f"the reference finds no value outside its domain after {instance}")
        answer.verdict = Verdict.VIOLATED
        answer.violated = "type_ok"
        answer.path = path
        answer.depth += 1
        answer.reason = "a step leads outside the declared domains; states on that level are not counted"

    def path(self, number: int) -> list[Step]:
        """The steps of a shortest run to the state of that number; each has been re-run by the reference."""
        parents = np.concatenate(self.parents)
        chain = [number]
        while parents[chain[-1]] >= 0:
            chain.append(int(parents[chain[-1]]))
        return rebuild(self.system, chain[::-1], self._taken)

    def _taken(self, before: State, number: int) -> tuple[int, State] | None:
        """A step from a state to the one of that number, or to a renamed one; of several the first, as instances come.

        Nothing is compiled for a path: a block of one state is soon expanded.
        """
        packing = self.batch.packing
        key = packing.key(before)[:, None]
        wanted = self.table.keys[:, number]
        # A successor that no key can hold is on no chain.
        found = [each for each in self.batch.successors(self.batch.block(key), key) if not each.escaped.size]
        keys = np.concatenate([each.keys for each in found], axis=1)
        same = np.flatnonzero(((self.canonical(keys) if self.canonical else keys) == wanted[:, None]).all(axis=0))
        return (found[same[0]].instance, packing.state(keys[:, same[0]])) if same.size else None


def block_rows(system: System, words: int, max_memory: int) -> int:
    """How many states are expanded at once: their successors by every instance take at most a quarter of the budget.

    A successor is its key and the row that it comes from; a state is a column a cell. With few replicas it is
    ``BLOCK``.
    """
    each = len(system.instances) * (8 * words + 16) + 8 * len(system.layout.cells)
    return max(1, min(BLOCK, max_memory // 4 // each))


def explore_batch(query: Query, on_progress: OnProgress | None = None) -> Exploration:
    """Explore with NumPy; memory is about 50 bytes a state at two-word keys."""
    return search_batch(query, on_progress).answer


def search_batch(query: Query, on_progress: OnProgress | None = None) -> Search:
    """The same, for whoever wants the states too."""
    _keep_pages()
    search = Search(query, Watch(query.limits, on_progress))
    search.run()
    return search


def _keep_pages() -> None:
    """Have glibc keep freed arrays of up to 32 MiB for the next block, instead of giving their pages back.

    The temporary arrays of a block are a few MiB each; taking fresh pages for them cost a tenth of a short search.
    Elsewhere than on glibc nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    m_trim_threshold, m_mmap_threshold = -1, -3
    mallopt(m_mmap_threshold, 32 << 20)
    mallopt(m_trim_threshold, 256 << 20)
