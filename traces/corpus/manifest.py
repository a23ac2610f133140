"""``manifest.json``: what a corpus' folder holds, so that a missing, added or cut-off file is noticed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeGuard

from ...model.core.errors import BadInput
from ..run_report import Json
from .files import EventsFile, Written, open_events, refuse_version
from .layout import FORMAT, SCHEMA_VERSION, CorpusHeader
from .output import hidden
from .place import Place, shown_path

MANIFEST: Final = "manifest.json"
SOURCES: Final = "sources.jsonl"
"""Beside the data: where each ingested trace came from."""
PLANTED: Final = "planted.jsonl"
"""Beside the data: the ground truth of planted faults."""

LARGEST: Final = (1 << 63) - 1
"""The largest number in a manifest: what an int64 of Parquet holds."""

ANEW: Final = "write the corpus anew by fencepost simulate or ingest"
"""What is to be done about a corpus that is not what it says of itself."""


@dataclass(frozen=True)
class CorpusFile:
    """A data file: its path, and what the manifest (or its own footer) says it holds."""

    path: str
    name: str
    traces: int | None
    events: int
    first: int | None
    last: int | None
    header: CorpusHeader

    def open(self) -> EventsFile:
        """The file, ready to be read. Raises BadInput where it is damaged, or not what was said of it."""
        file = open_events(self.path)
        if file.header != self.header or file.rows != self.events:
            file.close()
            raise BadInput("its header or its count of events is not that of the manifest", file.name, ANEW)
        if file.ends != (self.first, self.last):
            file.close()
            told = f"it has traces {_span(file.ends)}, and by the manifest {_span((self.first, self.last))}"
            raise BadInput(told, file.name, ANEW)
        return file


def _span(ends: tuple[int | None, int | None]) -> str:
    return f"{ends[0]} to {ends[1]}" if ends[0] is not None else "none at all"


@dataclass(frozen=True)
class Corpus:
    """The data files of a folder, sorted by name, and what is wrong with others: those are left out of ``files``."""

    path: str
    files: tuple[CorpusFile, ...]
    problems: tuple[BadInput, ...]

    @property
    def events(self) -> int:
        """Events of all files together."""
        return sum(file.events for file in self.files)


def write_manifest(folder: Path, files: Iterable[Written]) -> None:
    """Write the manifest of files that lie in a folder. Raises BadInput where it cannot be written."""
    entries = sorted(files, key=lambda each: each.name)
    headers = [dict(each.header.to_json()) for each in entries]
    told: dict[str, Json] = {
        "format": FORMAT,
        "version": max((each.header.version for each in entries), default=SCHEMA_VERSION),
        "protocols": list[Json](sorted({each.header.protocol for each in entries})),
        "constants": _distinct([each["constants"] for each in headers]),
        "traces": sum(each.traces for each in entries),
        "events": sum(each.events for each in entries),
        "files": [each.to_json() for each in entries],
    }
    write_whole(folder / MANIFEST, json.dumps(told, indent=1, allow_nan=False) + "\n")


def _distinct(values: list[Json]) -> list[Json]:
    found: list[Json] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def write_whole(path: Path, text: str) -> None:
    """Write a text file whole or not at all, and flush it to disk. Raises BadInput where it cannot be written."""
    part = hidden(path)
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        mend = "name a folder that is there, writable and has room"
        raise BadInput(f"cannot be written: {error.strerror}", shown_path(path), mend) from error
    finally:
        part.unlink(missing_ok=True)


def read_corpus(folder: Path | str) -> Corpus:
    """What a folder holds, by its manifest; where it has none, by the footers of its Parquet files.

    ``folder`` is a path or a URI, see `place.py`. A file that cannot be used is among the problems, one line each; the
    others are as usable as without it. Raises BadInput where there is nothing to read: no such folder, no permission,
    no corpus, an empty one, or one of another schema version.
    """
    place = Place.of(folder)
    names = place.names()
    data = sorted(name for name in names if name.endswith(".parquet") and not name.startswith("."))
    if MANIFEST in names:
        files, problems = _by_manifest(place, data)
    elif data:
        files, problems = files_by_footers(place.where, data)
    else:
        raise _no_corpus(place, names)
    files, doubles = _disjoint(files)
    problems += [*doubles, *traces_beside(place.where, names)]
    if not any(file.events for file in files):
        if problems:
            raise problems[0]
        raise BadInput("the corpus is empty: it has no event", str(place), ANEW)
    return Corpus(place.where, tuple(files), tuple(problems))


def _no_corpus(place: Place, names: list[str]) -> BadInput:
    if not names:
        return BadInput("the folder is empty", str(place), ANEW)
    if any(name.endswith((".jsonl", ".jsonl.gz")) for name in names):
        what = "the folder holds traces, and no corpus"
    elif any((place / name / "meta.properties").size() is not None for name in names) or "meta.properties" in names:
        what = "the folder holds brokers' data, and no corpus"
    else:
        what = "the folder holds no corpus"
    return BadInput(what, str(place), f"lay it out first: fencepost ingest {place} --out CORPUS")


def _by_manifest(folder: Place, data: list[str]) -> tuple[list[CorpusFile], list[BadInput]]:
    if (folder / MANIFEST).leads_out_of(folder):
        raise _link(folder / MANIFEST)
    entries, totals = _read_manifest(folder / MANIFEST)
    listed = {entry.name for entry in entries}
    files, problems = [], []
    for key, total in totals.items():
        sum_ = sum(getattr(entry, key) for entry in entries)
        if total != sum_:
            told = f"it says {total:,} {key} in all, and of its files {sum_:,}"
            problems.append(BadInput(told, str(folder / MANIFEST), "bring back the manifest and the files it had"))
    for entry in entries:
        path = folder / entry.name
        if path.leads_out_of(folder):
            problems.append(_link(path))
            continue
        size = path.size() if entry.name in data else None
        if size is None:
            problems.append(BadInput("the manifest lists it, and it is not there", str(path), "bring the file back"))
            continue
        if size != entry.size:
            told = f"it has {size} bytes, and by the manifest {entry.size}"
            problems.append(BadInput(told, str(path), "bring the whole file back"))
            continue
        files.append(
            CorpusFile(path.where, entry.name, entry.traces, entry.events, entry.first, entry.last, entry.header)
        )
    for name in data:
        if name not in listed:
            mend = "take it away, or ingest the folder anew"
            problems.append(BadInput("it is not in the manifest", str(folder / name), mend))
    return files, problems


def _link(path: Place) -> BadInput:
    """The target of a symbolic link may change, and belong to another corpus."""
    return BadInput("it is a symbolic link out of the corpus", str(path), "put the file itself there")


def _read_manifest(path: Place) -> tuple[list[Written], dict[str, int]]:
    """The files that are listed, and the totals. Raises BadInput for a manifest that is wrong in itself."""
    where = str(path)
    try:
        told = json.loads(path.read())
    except (ValueError, RecursionError) as error:
        raise BadInput("the manifest is no JSON", where, ANEW) from error
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise BadInput("the manifest is not that of a corpus", where, ANEW)
    refuse_version(told.get("version"), where)
    totals = {key: value for key in ("traces", "events") if _is_count(value := told.get(key))}
    if len(totals) < 2:
        raise BadInput("the manifest's traces and events are no counts", where, ANEW)
    found = told.get("files")
    if not isinstance(found, list):
        raise BadInput("the manifest lists no files", where, ANEW)
    return list(_entries(found, where)), totals


def _entries(found: list[Any], where: str) -> Iterator[Written]:
    names: set[str] = set()
    for number, entry in enumerate(found):
        try:
            written = _entry(entry)
            if written.name in names:
                raise ValueError(f"{written.name} is listed twice")
        except ValueError as error:
            raise BadInput(f"entry {number} of the manifest's files is wrong: {error}", where, ANEW) from error
        names.add(written.name)
        yield written


def _is_count(value: object) -> TypeGuard[int]:
    """Whether it is a number from 0 on that Parquet can count to, too."""
    return type(value) is int and 0 <= value <= LARGEST


def _entry(entry: Any) -> Written:
    if not isinstance(entry, dict):
        raise ValueError("it is no object")
    name = entry.get("name")
    if not isinstance(name, str) or Path(name).name != name or not name.endswith(".parquet"):
        raise ValueError("its name is not that of a Parquet file in the same folder")
    counts = {key: entry.get(key) for key in ("traces", "events", "bytes")}
    if not all(_is_count(value) for value in counts.values()):
        raise ValueError("traces, events and bytes are no counts")
    first, last, traces, events = entry.get("first"), entry.get("last"), entry["traces"], entry["events"]
    if traces == 0:
        if (first, last, events) != (None, None, 0):
            raise ValueError("it has no traces, and yet a first or last one, or events")
    elif not (_is_count(first) and _is_count(last)):
        raise ValueError("first and last are no trace ids")
    elif traces > last - first + 1 or traces > events:
        raise ValueError(f"{traces:,} traces do not lie within {first} to {last}, or have {events:,} events")
    header = CorpusHeader.from_json(entry.get("header"))
    return Written(name, header, traces, events, first, last, entry["bytes"])


def files_by_footers(folder: Path | str, data: list[str]) -> tuple[list[CorpusFile], list[BadInput]]:
    """These data files of a folder, by what they say of themselves; and what is wrong with the others."""
    files, problems = [], []
    place = Place.of(folder)
    for name in data:
        if (place / name).leads_out_of(place):
            problems.append(_link(place / name))
            continue
        try:
            with open_events((place / name).where) as found:
                files.append(CorpusFile(found.path, name, None, found.rows, *found.ends, found.header))
        except BadInput as problem:
            problems.append(problem)
    return files, problems


def traces_beside(folder: Path | str, names: Iterable[str]) -> list[BadInput]:
    """Of these names in a folder those of JSON Lines that are no part of a corpus: traces that nobody would mine."""
    place = Place.of(folder)
    return [
        BadInput(
            "it is JSON Lines, and no file of a corpus", str(place / name), "fencepost ingest makes a corpus of it"
        )
        for name in sorted(names)
        if name.endswith((".jsonl", ".jsonl.gz")) and not name.startswith(".") and name not in (SOURCES, PLANTED)
    ]


def _disjoint(files: list[CorpusFile]) -> tuple[list[CorpusFile], list[BadInput]]:
    """Files whose ranges of trace ids do not meet that of a file before them: an id names one trace of a corpus."""
    kept: list[CorpusFile] = []
    problems = []
    last: CorpusFile | None = None
    for file in sorted(files, key=lambda each: (each.first is not None, each.first or 0, each.name)):
        if last is not None and file.first is not None and last.last is not None and file.first <= last.last:
            told = f"it has trace {file.first}, within those of {last.name} (to {last.last})"
            problems.append(BadInput(told, shown_path(file.path), "number the traces anew by fencepost ingest"))
            continue
        kept.append(file)
        last = file if file.first is not None else last
    return sorted(kept, key=lambda each: each.name), problems
