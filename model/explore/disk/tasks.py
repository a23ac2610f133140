"""The parts of a level as tasks of other processes: what they are told, and what they leave in files.

A task is told which search it is of, and names of files: states never travel with it. Its own files have names that
nobody else has, so that one that is run twice, or goes on after its driver has ended, is in nobody's way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

import numpy as np

from ...core.errors import BadInput
from ...core.ground import ground
from ...core.registry import REGISTRY
from ...interpret.compiler import find_compiler
from ...interpret.packing import Packing
from .. import memory
from ..batch import Spent
from ..result import Limits, Query, Watch
from .compiled_kernel import CompiledKernel, kernel_text
from .files import DiskFull, Keys, Spill, Writer, spill
from .kernel import Kernel, Tally
from .manifest import text_digest
from .numpy_kernel import NumpyKernel
from .steps import expand, lay, merge


@dataclass(frozen=True)
class Asked:
    """Which search a task is of: everything that a query is made of, by name.

    ``dropped``: guards, as ACTION.GUARD. ``max_memory``: bytes that a process may have resident. ``text``: the digest
    of what the driver reads of the protocol.
    """

    protocol: str
    variant: str
    dropped: tuple[str, ...]
    constants: tuple[tuple[str, int], ...]
    invariants: tuple[str, ...]
    symmetry: bool
    max_memory: int
    text: str

    @classmethod
    def of(cls, query: Query, dropped: tuple[str, ...]) -> Asked:
        """What stands for a query, whose protocol's text is its own less these guards."""
        traced = query.system.traced
        return cls(
            traced.protocol.name,
            traced.variant.name,
            dropped,
            tuple(query.system.constants.items()),
            query.invariants,
            query.symmetry,
            query.limits.max_memory,
            text_digest(query.system),
        )


@dataclass(frozen=True)
class Expand:
    """Expand the states of a level from one place to another. ``engine``: batch or compiled."""

    asked: Asked
    engine: str
    folder: Path
    level: Keys
    begins: int
    ends: int


@dataclass(frozen=True)
class Merge:
    """Hold candidates against what is known, of all keys those whose order begins with these bits."""

    asked: Asked
    engine: str
    folder: Path
    spills: tuple[Spill, ...]
    known: tuple[Keys, ...]
    shared: int
    part: int


@dataclass(frozen=True)
class Expanded:
    """What a slice has come to, by the places in the level; its candidates; the most that was resident.

    ``unknown``: why it was given up, and nothing else means anything.
    """

    tally: Tally
    spills: tuple[Spill, ...] = ()
    memory: int = 0
    unknown: str | None = None


@dataclass(frozen=True)
class Merged:
    """The new states of a range, in order, and who has found them (``steps.Discoveries``); else as ``Expanded``."""

    found: Keys | None = None
    discoveries: tuple[int, ...] = ()
    memory: int = 0
    unknown: str | None = None


@lru_cache(maxsize=1)
def _query(asked: Asked) -> Query:
    """The query, in this process. Raises BadInput where the protocol's text is another here."""
    traced = REGISTRY.named(asked.protocol, "a task's protocol").protocol.traced(asked.variant).drop(*asked.dropped)
    system = ground(traced, dict(asked.constants))
    if text_digest(system) != asked.text:
        raise BadInput(
            f"a worker reads another text of {asked.protocol} than this process",
            "--master",
            "install the same package for the workers, and restart them",
        )
    return Query(system, asked.invariants, asked.symmetry, Limits(max_memory=asked.max_memory))


@lru_cache(maxsize=1)
def _kernel(asked: Asked, engine: str) -> tuple[Kernel, Watch]:
    """What this process expands with; kept for the next task. Without a compiler here NumPy does the same."""
    memory.keep_pages()
    query = _query(asked)
    watch = Watch(query.limits, None)
    compiler = find_compiler() if engine == "compiled" else None
    if compiler is None:
        return NumpyKernel(query, watch), watch
    return CompiledKernel(query, watch, compiler, kernel_text(query)), watch


def _name() -> str:
    """Of a file that is nobody else's."""
    return f"00000-{uuid4().hex[:12]}"


def _words(asked: Asked) -> int:
    return Packing(_query(asked).system.layout).words


def expand_slice(task: Expand) -> Expanded:
    """Expand a slice; all of its candidates go to files."""

    def spilled(kernel: Kernel, _: int) -> Spill:
        kernel.settle()
        return spill(task.folder, _name(), _words(task.asked), kernel.fresh())

    try:
        kernel, watch = _kernel(task.asked, task.engine)
        try:
            kernel.begin(2 * (task.ends - task.begins))
            spills = expand(kernel, watch, task.level, task.begins, task.ends, spilled, lambda _: None)
            tally = kernel.tally()
            if kernel.count and tally.broken is None:
                spills.append(spilled(kernel, 0))
            return Expanded(tally, tuple(spills), watch.peak)
        finally:
            kernel.clear()
    except Spent as spent:
        return Expanded(Tally([], []), unknown=str(spent))
    except DiskFull as full:
        return Expanded(Tally([], []), unknown=f"{full} (--dir)")


def merge_range(task: Merge) -> Merged:
    """Write the new states of a range to a file."""
    try:
        kernel, watch = _kernel(task.asked, task.engine)
        discoveries = np.zeros(len(_query(task.asked).system.actions) + 1, dtype=np.int64)
        writer = Writer(task.folder / f"level-{_name()}.part")
        try:
            merge(
                kernel,
                watch,
                task.spills,
                task.known,
                lambda: lay(kernel, writer, discoveries),
                task.shared,
                task.part,
            )
        finally:
            writer.close()
            kernel.clear()
        found = Keys(writer.part, writer.count, _words(task.asked))
        return Merged(found, tuple(discoveries.tolist()), watch.peak)
    except Spent as spent:
        return Merged(unknown=str(spent))
    except DiskFull as full:
        return Merged(unknown=f"{full} (--dir)")


def summed(tallies: list[Tally], instances: int, witnesses: int) -> Tally:
    """Of all slices: the sums, and the first of what is found."""
    whole = Tally([0] * instances, [0] * witnesses)
    for tally in tallies:
        whole.transitions = [one + other for one, other in zip(whole.transitions, tally.transitions, strict=True)]
        whole.witnesses = [one + other for one, other in zip(whole.witnesses, tally.witnesses, strict=True)]
    whole.broken = min((each.broken for each in tallies if each.broken is not None), default=None)
    whole.escaped = min((each.escaped for each in tallies if each.escaped is not None), default=None)
    return whole
