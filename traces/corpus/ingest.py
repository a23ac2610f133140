"""Traces as JSON Lines, one file each, into a corpus: file by file, in pieces of bounded size.

A trace's id is its place among those of its piece, sorted by header and name; where it came from is kept in
``sources.jsonl``. What a piece is depends on the files alone, so the corpus does not depend on who reads which.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ..format import Trace
from ..read import read_trace
from ..run_report import Json
from .convert import events_of
from .files import LONGEST, PART, Written, write_events
from .layout import CorpusHeader, CorpusLayout, Events
from .manifest import SOURCES, write_manifest, write_whole
from .output import new_folder
from .place import shown_path
from .spread import SERIAL, OnDone, spread

PIECE_BYTES: Final = 64 << 20
"""The size of the files that one task reads."""
PIECE_FILES: Final = 5_000
"""And how many of them it reads at most."""


@dataclass(frozen=True)
class Ingested:
    """What came out, and what did not go in, one line each. Without files there is no corpus."""

    files: tuple[Written, ...]
    problems: tuple[BadInput, ...]

    @property
    def traces(self) -> int:
        """Traces of all files."""
        return sum(file.traces for file in self.files)

    @property
    def events(self) -> int:
        """Events of all files."""
        return sum(file.events for file in self.files)


@dataclass(frozen=True)
class Named:
    """A trace, and what ``sources.jsonl`` calls it."""

    name: str
    trace: Trace


@dataclass(frozen=True)
class _Piece:
    """Files of one task, and the id of its first trace."""

    paths: tuple[str, ...]
    first: int


@dataclass
class _Done:
    """What a task has written: files under names of its own, where its traces came from, and problems."""

    files: list[Written] = field(default_factory=list)
    sources: list[dict[str, Json]] = field(default_factory=list)
    problems: list[BadInput] = field(default_factory=list)


def files_below(folder: Path, pattern: str) -> list[Path]:
    """The files of such names in a folder and below it, sorted; hidden ones are left out. Raises BadInput."""
    try:
        found = [path for path in folder.rglob(pattern) if path.is_file()]
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise BadInput(what, shown_path(error.filename or folder), "name a folder that you may read") from error
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def ingest_files(
    root: Path, paths: Sequence[Path], out: Path, master: str = SERIAL, on_done: OnDone | None = None
) -> Ingested:
    """Lay out traces, one of each file. A file with anything wrong in it is left out whole, and named.

    ``root``: names in ``sources.jsonl`` are relative to it. Raises BadInput where ``out`` cannot be written.
    """
    pieces = list(_pieces(paths))
    with new_folder(out) as part:
        done = spread(pieces, partial(_ingest_piece, str(root), str(part)), master, on_done)
        results: list[_Done] = []
        for each in done:
            if isinstance(each, BadInput):
                raise each
            results.append(each)
        ingested = _finish(part, results)
        if ingested.files:
            return ingested
        raise _NothingError(ingested)


def ingest_traces(
    named: Iterable[Named], problems: Sequence[BadInput], out: Path, why_none: BadInput | None = None
) -> Ingested:
    """Lay out traces that are in memory. ``problems`` are passed on to what is returned.

    ``why_none``: the problem of an input that has neither a trace nor a problem.
    """
    with new_folder(out) as part:
        done = _lay_out(list(named), part, "0", 0)
        done.problems[:0] = problems
        ingested = _finish(part, [done])
        if ingested.files:
            return ingested
        raise _NothingError(ingested, why_none)


class _NothingError(BadInput):
    """Nothing could be ingested; leaves the block that makes the folder.

    ``ingested`` has at least one problem, which says why.
    """

    def __init__(self, ingested: Ingested, why: BadInput | None = None) -> None:
        super().__init__("nothing in it can be ingested", "SRC", "correct what is named above")
        problems = ingested.problems or ((why,) if why is not None else (self,))
        self.ingested = replace(ingested, problems=problems)


NothingIngested = _NothingError
"""Raised where there is nothing to make a corpus of; its ``ingested`` has the problems."""


def _pieces(paths: Sequence[Path]) -> Iterator[_Piece]:
    kept: list[str] = []
    size = first = 0
    for number, path in enumerate(paths):
        try:
            length = path.stat().st_size
        except OSError:
            length = 0  # It is named when it is read.
        if kept and (size + length > PIECE_BYTES or len(kept) >= PIECE_FILES):
            yield _Piece(tuple(kept), first)
            kept, size, first = [], 0, number
        kept.append(str(path))
        size += length
    if kept:
        yield _Piece(tuple(kept), first)


def _ingest_piece(root: str, part: str, piece: _Piece) -> _Done:
    named: list[Named] = []
    problems: list[BadInput] = []
    for path in piece.paths:
        try:
            trace = read_trace(path)
            refuse_odd_steps(trace, shown_path(path))
        except BadInput as problem:
            problems.append(problem)
            continue
        relative = Path(path).relative_to(root).as_posix() if Path(path).is_relative_to(root) else path
        named.append(Named(relative, trace))
    done = _lay_out(named, Path(part), f"{piece.first}", piece.first)
    done.problems += problems
    return done


def refuse_odd_steps(trace: Trace, where: str) -> None:
    """Raises BadInput for a trace without events or with too many, and for one said to be complete that lacks steps."""
    if not trace.events:
        raise BadInput("the trace has no event", where, "leave the file out")
    if len(trace.events) > LONGEST:
        mend = f"cut it into traces of up to {LONGEST:,}"
        raise BadInput(f"the trace has {len(trace.events):,} events", where, mend)
    if not trace.header.complete:
        return
    for number, event in enumerate(trace.events, 1):
        if event.step != number:
            line = where if event.line is None else f"{where}, line {event.line}"
            what = f"step {event.step} stands where step {number} should, and the trace is said to be complete"
            raise BadInput(what, line, "number the steps 1, 2, 3 ..., or do not call the trace complete")


def _lay_out(named: Sequence[Named], part: Path, label: str, first: int) -> _Done:
    """Write traces, a file for each header and kind of observation, numbered on from ``first`` in that order."""
    groups: dict[tuple[str, bool], list[tuple[Named, Events]]] = {}
    layouts: dict[str, CorpusLayout] = {}
    for each in named:
        header = each.trace.header
        constants = dict(header.constants)
        plain = CorpusHeader(header.protocol, header.variant, constants, header.complete, partial=header.partial)
        key = json.dumps(plain.to_json(), sort_keys=True)
        if key not in layouts:
            layouts[key] = CorpusLayout.of(plain)
        # As columns at once: as objects, events would take a hundred times the memory.
        events = events_of(layouts[key], [(0, each.trace)])
        bare = Named(each.name, replace(each.trace, events=()))
        groups.setdefault((key, events.seen is None), []).append((bare, events))
    done = _Done()
    trace = first
    for number, (key, whole) in enumerate(sorted(groups)):
        runs = []
        for bare, events in groups[key, whole]:
            events.trace[:] = trace
            runs.append(events)
            done.sources.append(_source(trace, bare))
            trace += 1
        path = part / f"piece-{label}-{number}.parquet"
        done.files.append(write_events(path, layouts[key], runs, observed=whole))
    return done


def _source(trace: int, named: Named) -> dict[str, Json]:
    told: dict[str, Json] = {"trace": trace, "file": named.name}
    source: Mapping[str, Json] = named.trace.header.source
    return told | ({"source": dict(source)} if source else {})


def _finish(part: Path, results: Sequence[_Done]) -> Ingested:
    files = [each for done in results for each in done.files]
    sources = [row for done in results for row in done.sources]
    return finish(part, files, sources, [problem for done in results for problem in done.problems])


def finish(
    part: Path, files: Sequence[Written], sources: Sequence[dict[str, Json]], problems: Sequence[BadInput]
) -> Ingested:
    """Give the files their names, in the order of their traces, and write what stands beside them."""
    named = []
    for number, each in enumerate(sorted(files, key=lambda each: each.first or 0)):
        name = PART.format(number)
        (part / each.name).rename(part / name)
        named.append(replace(each, name=name))
    if sources:
        rows = sorted(sources, key=lambda row: int(str(row["trace"])))
        write_whole(part / SOURCES, "".join(json.dumps(row) + "\n" for row in rows))
    write_manifest(part, named)
    return Ingested(tuple(named), tuple(sorted(problems, key=lambda each: each.where)))
