"""Breadth-first search whose states lie on disk: levels are files, and what is known is struck out by reading it again.

A level is read in its order and expanded; its successors are kept once each, in memory, and go to disk in their order
where memory is full. Then all levels are read once, and what they have is struck out; what is left is the next level.
So memory is what was granted, whatever the number of states, and disk takes a state's key once. A state that leads to
another lies in the level before: a shortest path is found from its end by expanding level after level once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from ...core.errors import BadInput
from ...interpret.batch import Batch
from ...interpret.compiler import find_compiler, kept
from .. import memory
from ..batch import Spent
from ..compiled import WORTH, WORTH_COMPILING
from ..path import rebuild, report_escape, taken
from ..result import Coverage, Exploration, OnProgress, Query, Step, Verdict, Watch, conclude
from .compiled_kernel import CompiledKernel, kernel_text
from .files import DiskFull, Spill, Writer, spill
from .kernel import Kernel, Tally
from .known import Known
from .manifest import Directory, Ending, LevelFile, level_path
from .numpy_kernel import NumpyKernel
from .order import Rows
from .steps import Discoveries, expand, lay, merge

GROWTH: Final = 4
"""A level has at most so many candidates for each state, in a guess before the first one."""


class DiskSearch:
    """One search in a directory; ``answer`` has what is known so far."""

    def __init__(self, query: Query, directory: Directory, watch: Watch, engine: str | None) -> None:
        self.query = query
        self.system = query.system
        self.directory = directory
        self.content = directory.content
        self.watch = watch
        self.engine = engine
        self.answer = Exploration(query, engine or "batch", Verdict.HOLDS, 0, 0, 0.0)
        self._before = self.content.seconds
        self._growth = float(GROWTH)
        self._known = Known(directory, watch)
        self._numpy = NumpyKernel(query, watch)
        self._compiled: CompiledKernel | None = None
        self._text: str | None = None

    def run(self) -> Exploration:
        """Go on from the last finished level until nothing is new, a promise breaks or a budget runs out."""
        answer = self.answer
        began = len(self.content.levels)
        try:
            self._levels()
            self._told()
        except Spent as spent:
            answer.verdict, answer.reason = Verdict.UNKNOWN, str(spent)
        except DiskFull as full:
            answer.verdict, answer.reason = Verdict.UNKNOWN, f"{full} (--dir)"
        finally:
            self.directory.clear()
        self._count()
        answer.seconds = self._before + self.watch.seconds
        answer.memory = self.watch.peak
        files = f"{self.directory.bytes / (1 << 20):,.0f} MiB in {self.directory.folder}"
        answer.engine_note = files if not began else f"{files}, from level {began} on, of which a run before has ended"
        return conclude(answer) if answer.verdict is Verdict.HOLDS else answer

    def _count(self) -> None:
        """What the expanded levels came to; those are all but the last, unless the search has ended."""
        self.answer.coverage = {name: Coverage(*counts) for name, counts in self._coverage().items()}
        self.answer.witnesses = self._witnesses()

    def _coverage(self) -> dict[str, tuple[int, int]]:
        return {name: self.content.coverage.get(name, (0, 0)) for name in self.system.actions}

    def _witnesses(self) -> dict[str, int]:
        return {name: self.content.witnesses.get(name, 0) for name in self.system.witnesses}

    def _levels(self) -> None:
        levels = self.content.levels
        if not levels:
            self._first()
        while self.content.ending is None:
            # Before it is looked at, as a search in memory counts the levels that it has looked at.
            self.answer.depth, self.answer.distinct = len(levels) - 1, self.content.states - levels[-1].states
            reason = self.watch.exhausted(self.content.states) or self.watch.too_deep(len(levels) - 1)
            if reason:
                raise Spent(reason)
            self.answer.depth, self.answer.distinct = len(levels), self.content.states
            self._level()
        self.answer.depth = len(levels)
        self.answer.distinct = self.content.states

    def _first(self) -> None:
        key = self._numpy.batch.packing.key(self.system.initial)[:, None]
        if self._numpy.canonical is not None:
            key = self._numpy.canonical(key)
        with writing(self.directory.folder, 0) as writer:
            writer.write(key.T)
            self._finish(writer)

    def _finish(self, writer: Writer) -> None:
        """A level is whole: it gets its name, and the manifest says so."""
        number = len(self.content.levels)
        digest = writer.finish(level_path(self.directory.folder, number))
        self.content.levels.append(LevelFile(writer.count, digest))
        self._write()

    def _write(self) -> None:
        self.content.seconds = self._before + self.watch.seconds
        self.directory.write()

    def _kernel(self) -> Kernel:
        """Who expands the next level: NumPy, and the compiled engine from where that is quicker."""
        if self.engine == "batch" or self.query.symmetry:
            return self._numpy
        if self._compiled is None:
            try:
                compiler = find_compiler()
            except BadInput:
                # CC names none: whoever did not ask for it is not bothered.
                compiler = None
            if compiler is None:
                return self._numpy
            if self.engine is None and self.content.states < WORTH:
                return self._numpy
            self._text = self._text or kernel_text(self.query)
            if self.engine is None and self.content.states < WORTH_COMPILING and not kept(compiler, self._text):
                return self._numpy
            try:
                self._compiled = CompiledKernel(self.query, self.watch, compiler, self._text)
            except (BadInput, Spent):
                if self.engine == "compiled":
                    raise
                self.engine = "batch"
                return self._numpy
        return self._compiled

    def _level(self) -> None:
        """Check and expand the last level, and find the next one."""
        kernel = self._kernel()
        self.answer.engine = kernel.name
        try:
            spills = self._expanded(kernel)
            tally = kernel.tally()
            if not self._ended(tally):
                self._next(kernel, spills, tally)
        finally:
            kernel.clear()
            self.directory.clear(runs=False)

    def _ended(self, tally: Tally) -> bool:
        """Whether the level that was expanded ends the search; the manifest says how then."""
        number = len(self.content.levels) - 1
        if tally.broken is not None:
            row, invariant = tally.broken
            self._ends(number, row, violated=list(self.system.invariants)[invariant])
        elif tally.escaped is not None:
            self._ends(number, tally.escaped[0], instance=tally.escaped[1])
        return tally.broken is not None or tally.escaped is not None

    def _expanded(self, kernel: Kernel) -> list[Spill]:
        """Expand the last level; the candidates are in files, or all in the kernel where there are no files."""
        level = self.directory.level(len(self.content.levels) - 1)
        kernel.begin(int(self._growth * level.count) + 1)
        spills = expand(kernel, self.watch, level, 0, level.count, self._spilled, self._report)
        candidates = sum(each.keys.count for each in spills) + kernel.count
        # Successors of the next level will be about as many for each of its states.
        self._growth = max(1.0, 1.5 * candidates / level.count)
        if spills and kernel.count:
            spills.append(self._spilled(kernel, len(spills)))
        return spills

    def _report(self, frontier: int) -> None:
        self.watch.report(len(self.content.levels), self.content.states, frontier)

    def _spilled(self, kernel: Kernel, number: int) -> Spill:
        kernel.settle()
        return spill(self.directory.folder, f"{number:05}", self.directory.words, kernel.fresh())

    def _next(self, kernel: Kernel, spills: Sequence[Spill], tally: Tally) -> None:
        """Strike out what is known, write what is left as the next level, and count the one that was expanded."""
        known = self._known.files()
        discoveries = np.zeros(len(self.system.actions) + 1, dtype=np.int64)
        with writing(self.directory.folder, len(self.content.levels)) as writer:
            if spills:
                merge(kernel, self.watch, spills, known, lambda: lay(kernel, writer, discoveries))
            else:
                kernel.settle()
                for level in known:
                    for keys in level.chunks():
                        kernel.strike(keys)
                lay(kernel, writer, discoveries)
            self._counted(tally, discoveries)
            self._found(writer)

    def _found(self, writer: Writer) -> None:
        """The next level is written; an empty one is the end."""
        if writer.count:
            self._finish(writer)
        else:
            self.content.ending = Ending()
            self._write()

    def _counted(self, tally: Tally, discoveries: Discoveries) -> None:
        transitions = dict.fromkeys(self.system.actions, 0)
        for instance, count in zip(self.system.instances, tally.transitions, strict=True):
            transitions[instance.action] += count
        before = self._coverage()
        self.content.coverage = {
            name: (before[name][0] + transitions[name], before[name][1] + int(discoveries[number + 1]))
            for number, name in enumerate(self.system.actions)
        }
        met = self._witnesses()
        self.content.witnesses = {
            name: met[name] + count for name, count in zip(self.system.witnesses, tally.witnesses, strict=True)
        }

    def _ends(self, number: int, row: int, violated: str | None = None, instance: int | None = None) -> None:
        """The search is over at that state of a level: find how it is reached, and write it down."""
        (key,) = (keys[0].copy() for keys in self.directory.level(number).chunks(row, row + 1))
        chain = [key]
        for before in range(number - 1, -1, -1):
            chain.append(self._predecessor(before, chain[-1]))
        told = [[f"{int(word):016x}" for word in each] for each in chain[::-1]]
        self.content.ending = Ending(violated, instance, told)
        self._write()

    def _predecessor(self, number: int, key: Rows) -> Rows:
        """The first state of a level that has a step to the key."""
        kernel = self._kernel()
        for keys in self.directory.level(number).chunks():
            row = kernel.leads(keys, key)
            if row is not None:
                found: Rows = keys[row].copy()
                return found
        raise AssertionError(f"no state of level {number} leads to {key}")

    def _told(self) -> None:
        """The answer that the manifest's ending stands for."""
        ending = self.content.ending
        assert ending is not None
        if ending.chain is None:
            return
        path = self._path([np.array([int(word, 16) for word in key], dtype=np.uint64) for key in ending.chain])
        if ending.instance is not None:
            report_escape(self.answer, path, ending.instance)
            return
        self.answer.verdict, self.answer.violated, self.answer.path = Verdict.VIOLATED, ending.violated, path

    def _path(self, chain: Sequence[Rows]) -> list[Step]:
        batch = Batch(self.system)
        canonical = self._numpy.canonical
        return rebuild(self.system, chain, lambda before, key: taken(batch, before, key, canonical))


@contextmanager
def writing(folder: Path, number: int) -> Iterator[Writer]:
    """A level's file while it is written; what has not got its name in the end is removed."""
    writer = Writer(folder / f"level-{number:05}.part")
    try:
        yield writer
    finally:
        writer.discard()


def refuse_engine(query: Query, engine: str | None) -> None:
    """Raise BadInput for an engine that has no states on disk, or none of this query, or that is not there."""
    if query.symmetry and engine == "compiled":
        raise BadInput("the compiled engine counts states, no orbits", "--symmetry", "leave it out, or take batch")
    if engine not in (None, "batch", "compiled"):
        raise BadInput(f"the {engine} engine keeps its states in memory", "--dir", "leave it out, or take batch")
    if engine == "compiled" and find_compiler() is None:
        mend = "install gcc, clang or fencepost's extra [compiler], or take batch"
        raise BadInput("there is no C compiler (CC, cc, gcc, clang, ziglang)", "--engine", mend)


def in_directory(
    query: Query,
    folder: Path,
    on_progress: OnProgress | None,
    search: Callable[[Directory, Watch], DiskSearch],
) -> Exploration:
    """Run a search in a directory that nobody else has meanwhile. Raises BadInput."""
    memory.keep_pages()
    watch = Watch(query.limits, on_progress)
    directory = Directory(folder, query)
    try:
        return search(directory, watch).run()
    finally:
        directory.release()


def explore_on_disk(
    query: Query, folder: Path, engine: str | None = None, on_progress: OnProgress | None = None
) -> Exploration:
    """Explore with the states in a directory, or go on with what is there; ``engine``: batch or compiled.

    Which one it is changes nothing in what is found, and a directory that one has begun the other goes on with. By
    default NumPy begins, and the compiled one goes on where there is a compiler and there are many states. A budget of
    states is looked at between levels: ``distinct`` and ``depth`` are those of a search in memory, which breaks the
    level off whose successors are too many; here it is finished, so that coverage and witnesses count it, too. Raises
    BadInput for a directory that is another's, or changed.
    """
    refuse_engine(query, engine)
    return in_directory(query, folder, on_progress, lambda at, watch: DiskSearch(query, at, watch, engine))
