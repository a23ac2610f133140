"""Breadth-first search over the compiled interpreter: levels and budgets here, everything of a state in C."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..core.errors import BadInput
from ..core.ground import System
from ..interpret.batch import Batch
from ..interpret.compiled import FEWEST, LARGEST, PARTS, Compiled, Outcome, Part, room_in
from ..interpret.compiled_text import text_of
from ..interpret.compiler import Compiler, find_compiler, kept
from ..interpret.packing import Packing
from . import memory
from .batch import Search, Spent
from .path import rebuild, report_escape, taken
from .result import Coverage, Exploration, OnProgress, Query, Step, Verdict, Watch, conclude

SLICE = 0.1
"""Seconds between two looks at the memory, and after which Ctrl-C is heard."""

ALONE = 1 << 13
"""A level of fewer states is expanded by one thread."""

WORTH = 20_000
"""States from which on what is compiled already is quicker than NumPy: printing its text, by whose hash it is known,
and loading it take one or two hundredths of a second."""

WORTH_COMPILING = 1_500_000
"""States from which on compiling, too, is likely to pay: NumPy takes half a second for so many, as a compiler does."""

_GROWTH = ((1 << 18, 4.0), (LARGEST, 1.5))
"""By how much a part with fewer slots than these becomes larger; by less where memory is short."""

_CAUTIOUS = 1.15

_LEAST = 1.03
"""By no less than this: each growth moves all slots, and one for a few states at a time took minutes for the last tenth
of a budget."""

_SPARE = 4 << 20
"""Bytes for what Python and the loader take meanwhile."""


def threads_there() -> int:
    """As many threads as this process has cores, and as can be of use."""
    return min(PARTS, len(os.sched_getaffinity(0)))


class CompiledSearch:
    """One breadth-first search; ``answer`` has what is known so far.

    Raises Spent where there is no memory to begin with.
    """

    def __init__(self, query: Query, watch: Watch, answer: Exploration, compiler: Compiler, text: str) -> None:
        self.query = query
        self.watch = watch
        self.answer = answer
        self.system = query.system
        if not watch.grants(_SPARE + 2 * len(text)):
            raise Spent(watch.too_much)
        self.compiled = Compiled(self.system, compiler, text)
        slots = PARTS * (4 * FEWEST + room_in(FEWEST) * self.compiled.member_bytes)
        if not watch.grants(_SPARE + self.compiled.fixed_bytes + slots):
            raise Spent(watch.too_much)
        self._taking(self.compiled.start, query.limits.max_states, query.invariants)

    def _taking(self, function: object, *arguments: object) -> None:
        """A call that takes pages: where the system has none for it, memory is spent whatever the budget."""
        assert callable(function)
        try:
            function(*arguments)
        except MemoryError as error:
            raise Spent(self.watch.too_much) from error

    def seed(self, keys: npt.NDArray[np.uint64], parents: npt.NDArray[np.int32], begins: int) -> None:
        """Begin with these members, of which those from ``begins`` on are to be expanded next. Raises Spent."""
        count = parents.size
        if count > room_in(FEWEST):
            self._grow(self.compiled.parts(), [count + count // 8] * PARTS, (1.0,))
        if not self.watch.grants(count * (8 * self.compiled.packing.words + 8)):
            raise Spent(self.watch.too_much)
        self.compiled.seed(keys, parents, begins)

    def run(self, threads: int) -> Exploration:
        """Search on until nothing is new, a promise breaks or a budget runs out."""
        answer = self.answer
        try:
            self._levels(threads)
        except Spent as spent:
            answer.verdict, answer.reason = Verdict.UNKNOWN, str(spent)
        finally:
            self.compiled.close()
        answer.seconds = self.watch.seconds
        answer.memory = self.watch.peak
        return conclude(answer) if answer.verdict is Verdict.HOLDS else answer

    def _levels(self, threads: int) -> None:
        while self._level(threads):
            parts = self.compiled.parts()
            if all(part.count == part.end for part in parts):
                return
            reason = self.watch.too_deep(self.answer.depth)
            if reason:
                raise Spent(reason)
            self.compiled.next_level()

    def _level(self, threads: int) -> bool:
        """Check and expand a level. False where the search is over."""
        answer = self.answer
        parts = self.compiled.parts()
        answer.depth += 1
        answer.distinct = sum(part.end for part in parts)
        while True:
            left = sum(part.end - part.at for part in parts)
            self.watch.report(answer.depth, sum(part.count for part in parts), left)
            outcome = self.compiled.advance(threads if left >= ALONE else 1, SLICE)
            parts = self.compiled.parts()
            if outcome is Outcome.BROKEN:
                self._report_broken()
                return False
            reason = self.watch.exhausted(sum(part.count for part in parts))
            if reason:
                raise Spent(reason)
            if outcome is Outcome.ROOM:
                self._make_room(parts)
            elif outcome is Outcome.LEVEL:
                break
        counted = self.compiled.counted()
        for name, count in zip(answer.witnesses, counted.witnesses, strict=True):
            answer.witnesses[name] += count
        escape = self.compiled.escaped()
        if escape:
            report_escape(answer, self.path(escape[0]), escape[1])
            return False
        for instance, seen, new in zip(self.system.instances, counted.transitions, counted.discoveries, strict=True):
            before = answer.coverage[instance.action]
            answer.coverage[instance.action] = Coverage(before.transitions + seen, before.discoveries + new)
        return True

    def _report_broken(self) -> None:
        broken = self.compiled.broken()
        assert broken is not None
        self.answer.verdict = Verdict.VIOLATED
        self.answer.violated = list(self.system.invariants)[broken[1]]
        self.answer.path = self.path(broken[0])

    def path(self, number: int) -> list[Step]:
        """The steps of a shortest run to the member of that number; each has been re-run by the reference."""
        batch = Batch(self.system)
        return rebuild(self.system, self.compiled.chain(number), lambda before, key: taken(batch, before, key))

    def _make_room(self, parts: Sequence[Part]) -> None:
        """Give more slots to the parts that cannot take in what waits for them, and to those that soon could not."""
        wanted = []
        for part in parts:
            needed = part.count + part.incoming
            wanted.append(needed if needed > part.room * 7 // 8 else 0)
        factors = [factor for slots, factor in _GROWTH if max(part.slots for part in parts) < slots]
        self._grow(parts, wanted, (factors[0] if factors else _CAUTIOUS, _CAUTIOUS, _LEAST))

    def _grow(self, parts: Sequence[Part], wanted: Sequence[int], factors: Sequence[float]) -> None:
        """Room for so many members in each part (0: as there is), and by one of these factors more slots than now."""
        each = self.compiled.member_bytes
        for factor in factors:
            slots = [
                min(LARGEST, max(-(-count * 4 // 3) + 4, int(factor * part.slots))) if count else part.slots
                for part, count in zip(parts, wanted, strict=True)
            ]
            if any(room_in(many) < count for many, count in zip(slots, wanted, strict=True)):
                raise Spent(f"more than {PARTS * room_in(LARGEST):,} states, which the compiled engine cannot number")
            # What there is room for already may not have been written to, so that it is not resident yet.
            more = sum(
                4 * (many - part.slots) + each * (room_in(many) - part.count)
                for many, part in zip(slots, parts, strict=True)
            )
            if self.watch.grants(more + _SPARE):
                for number, (many, part) in enumerate(zip(slots, parts, strict=True)):
                    if many > part.slots:
                        self._taking(self.compiled.grow, number, many)
                return
        raise Spent(self.watch.too_much)


def _blank(query: Query) -> Exploration:
    answer = Exploration(query, "compiled", Verdict.HOLDS, 0, 0, 0.0)
    answer.witnesses = dict.fromkeys(query.system.witnesses, 0)
    answer.coverage = {name: Coverage() for name in query.system.actions}
    return answer


def _by(compiler: Compiler, threads: int) -> str:
    return f"compiled by {compiler.version}, {threads} thread{'s' if threads > 1 else ''}"


def explore_compiled(query: Query, on_progress: OnProgress | None = None, threads: int | None = None) -> Exploration:
    """Explore with a compiled search; memory is 25 to 30 bytes a state at two-word keys.

    Raises BadInput where there is no compiler, or for orbits, which it does not count.
    """
    if query.symmetry:
        raise BadInput("the compiled engine counts states, no orbits", "--symmetry", "leave it out, or take batch")
    watch, answer = Watch(query.limits, on_progress), _blank(query)
    compiler = find_compiler()
    if compiler is None:
        mend = "install gcc, clang or fencepost's extra [compiler], or take batch"
        raise BadInput("there is no C compiler (CC, cc, gcc, clang, ziglang)", "--engine", mend)
    threads = min(threads or threads_there(), PARTS)
    try:
        search = CompiledSearch(query, watch, answer, compiler, text_of(query.system))
        search.seed(_initial(query.system), np.array([-1], dtype=np.int32), 0)
    except Spent as spent:
        answer.verdict, answer.reason = Verdict.UNKNOWN, str(spent)
        answer.seconds, answer.memory = watch.seconds, watch.peak
        return answer
    answer.engine_note = _by(compiler, threads)
    return search.run(threads)


def _initial(system: System) -> npt.NDArray[np.uint64]:
    return Packing(system.layout).key(system.initial)[:, None]


def explore_by_size(query: Query, on_progress: OnProgress | None = None, threads: int | None = None) -> Exploration:
    """Explore with NumPy, and go on compiled from where that is quicker, if there is a compiler.

    The answer says which engine ended it. What was found is kept: the compiled search begins with it.
    """
    memory.keep_pages()
    watch = Watch(query.limits, on_progress)
    search = Search(query, watch)
    answer, compiler, text = by_size(query, search)
    if compiler is None:
        return answer
    try:
        going_on = CompiledSearch(query, watch, answer, compiler, text)
        going_on.seed(search.table.keys, search.parents, search.begins)
    except (BadInput, Spent):
        # NumPy goes on with what it has: it halves its blocks where memory is short.
        return search.run()
    threads, answer.engine_note = compiler_note(compiler, threads, search.table.count)
    answer.engine = "compiled"
    del search
    memory.give_back()
    return going_on.run(threads)


def by_size(query: Query, search: Search) -> tuple[Exploration, Compiler | None, str]:
    """Run NumPy's search until it ends, or until the compiled one is quicker: then the compiler and its text."""
    answer = search.run(None if query.symmetry else WORTH)
    if not _unfinished(search):
        return answer, None, ""
    try:
        compiler = find_compiler()
        text = text_of(query.system)
    except BadInput:
        compiler = None
    if compiler is None:
        return search.run(), None, ""
    if not kept(compiler, text):
        answer = search.run(WORTH_COMPILING)
        if not _unfinished(search):
            return answer, None, ""
    return answer, compiler, text


def compiler_note(compiler: Compiler, threads: int | None, states: int) -> tuple[int, str]:
    """How many threads there are, and by which compiler and from when on the compiled engine runs."""
    count = min(threads or threads_there(), PARTS)
    return count, f"{_by(compiler, count)}, from {states:,} states on"


def _unfinished(search: Search) -> bool:
    return search.answer.verdict is Verdict.HOLDS and search.waits
