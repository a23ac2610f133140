"""One file of a corpus: written whole or not at all, read one row group at a time.

A row group holds whole traces, about ``ROW_GROUP`` events, so that whoever goes through a file needs the memory of one
row group, however large the file is. Integers are written without dictionaries.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...model.core.errors import BadInput
from ...model.core.regular_file import NotRegularFileError
from ..run_report import Json
from .checks import first_fault
from .layout import FORMAT, METADATA_KEY, VERSIONS, CorpusHeader, CorpusLayout, Events
from .output import hidden
from .place import Place, is_utf8, shown_path

ROW_GROUP: Final = 1 << 17
"""Events in a row group, rounded down to whole traces; a longer trace has a row group of its own."""

LONGEST: Final = 1 << 22
"""Events of the longest trace: a row group is in memory whole, about 100 bytes an event at small constants."""

UNREADABLE: Final = (
    OSError,
    pa.ArrowException,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    MemoryError,
    RuntimeError,
)
"""The exceptions of PyArrow on a damaged file: a flipped bit in a footer leads to any of these."""


@contextmanager
def reading_parquet(refused: Callable[[Exception], BadInput]) -> Iterator[None]:
    """Run calls of PyArrow alone: an exception of them means a damaged file, and is raised as ``refused`` makes it."""
    try:
        yield
    except UNREADABLE as error:
        raise refused(error) from error


PART: Final = "part-{:05d}.parquet"
"""The name of a data file, by its number."""


@dataclass(frozen=True)
class Written:
    """What a file holds, as its writer counted it: traces, events, the first and last trace id, bytes."""

    name: str
    header: CorpusHeader
    traces: int
    events: int
    first: int | None
    last: int | None
    size: int

    def to_json(self) -> dict[str, Json]:
        """The file's entry in a manifest."""
        return {
            "name": self.name,
            "traces": self.traces,
            "events": self.events,
            "first": self.first,
            "last": self.last,
            "bytes": self.size,
            "header": self.header.to_json(),
        }


def write_events(
    path: Path | str, layout: CorpusLayout, events: Iterable[Events], *, observed: bool = False
) -> Written:
    """Write a file under a hidden name, flush it to disk, and rename it.

    ``events``: whole traces, sorted by trace and step, in runs of any size; each is held to `checks.py` before it is
    written. ``observed``: every cell of every row is, and the columns cannot hold a null, which makes them a third
    faster to read. Raises BadInput where the file cannot be written, or a trace has more than ``LONGEST`` events,
    ValueError for events that the file may not hold.
    """
    schema = layout.schema_without_nulls if observed else layout.schema
    path = Path(path)
    part = hidden(path)
    counted = _Counted()
    try:
        with ExitStack() as held:
            target = part if is_utf8(part) else held.enter_context(part.open("wb"))
            out = held.enter_context(pq.ParquetWriter(target, schema, **_FORMAT))
            out.add_key_value_metadata({METADATA_KEY: _metadata(layout.header)})
            for group in _grouped(counted.checked(events)):
                out.write_table(_table(group, schema), row_group_size=len(group))
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        size = part.stat().st_size
        part.replace(path)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error).splitlines()[0]
        mend = "name a file in a folder that is there, writable and has room"
        raise BadInput(f"cannot be written: {why}", shown_path(path), mend) from error
    finally:
        part.unlink(missing_ok=True)
    return Written(path.name, layout.header, counted.traces, counted.events, counted.first, counted.last, size)


_FORMAT: Final[dict[str, Any]] = {
    "version": "2.6",
    # Measured on two million events of ``truncation`` (36 cells, no nulls, one thread), in million events a second and
    # in bytes an event: plain 18.9 and 164; with lz4 17.9 and 13.0; delta-packed with lz4 14.5 and 6.6; split by bytes
    # with lz4 16.5 and 17.5. Snappy (6.1 to 12.0) and zstd (6.6 to 8.1; 4.9 bytes at best) are slower. Parquet stores a
    # narrow integer in four bytes, three of them zeros, and lz4 passes over those at the speed of a copy.
    "use_dictionary": False,
    "compression": "lz4",
    # Bounds of the trace ids alone: they show, unread, that no trace is split.
    "write_statistics": ["trace"],
    # A flipped bit in a page of plain integers would be another integer.
    "write_page_checksum": True,
    "store_schema": False,
}


def _metadata(header: CorpusHeader) -> bytes:
    told = {"format": FORMAT, "version": header.version, "header": header.to_json()}
    return json.dumps(told, allow_nan=False).encode()


class _Counted:
    """Events as they pass, counted, and held to what a file may hold."""

    def __init__(self) -> None:
        self.traces = self.events = 0
        self.first: int | None = None
        self.last: int | None = None

    def checked(self, runs: Iterable[Events]) -> Iterator[Events]:
        for events in runs:
            if not len(events):
                continue
            fault = first_fault(events)
            if fault is not None:
                raise ValueError(f"row {self.events + fault.row}: {fault.what}")
            if self.last is not None and events.trace[0] <= self.last:
                raise ValueError(f"trace {events.trace[0]} comes after trace {self.last}")
            if self.first is None:
                self.first = int(events.trace[0])
            self.last = int(events.trace[-1])
            longest = int((events.ends - events.starts).argmax())
            if events.ends[longest] - events.starts[longest] > LONGEST:
                told = f"it has {events.ends[longest] - events.starts[longest]:,} events"
                mend = f"cut it into traces of up to {LONGEST:,}"
                raise BadInput(told, f"trace {events.trace[events.starts[longest]]}", mend)
            self.traces += events.starts.size
            self.events += len(events)
            yield events


def _grouped(runs: Iterable[Events]) -> Iterator[Events]:
    """The same events in row groups."""
    kept: list[Events] = []
    for run in runs:
        kept.append(run)
        if sum(map(len, kept)) < ROW_GROUP:
            continue
        whole, at = Events.joined(kept), 0
        while len(whole) - at >= ROW_GROUP:
            # The last start of a trace within the row group, but at least one trace.
            inside = int(np.searchsorted(whole.starts, at + ROW_GROUP, side="right")) - 1
            cut = int(whole.starts[inside])
            if cut <= at or int(whole.ends[inside]) == at + ROW_GROUP:
                cut = int(whole.ends[inside])
            yield whole.rows(at, cut)
            at = cut
        kept = [whole.rows(at, len(whole))] if at < len(whole) else []
    if kept:
        yield Events.joined(kept)


def _table(events: Events, schema: pa.Schema) -> pa.Table:
    layout = events.layout
    if events.seen is not None and not schema.field(len(schema) - 1).nullable:
        raise ValueError("a cell was not observed, and the file is said to have all")
    fixed = [events.trace, events.step, events.action, *events.params]
    masks = [None] * len(layout.cells) if events.seen is None else list(~events.seen)
    cells = [
        pa.array(column, mask=None if mask is None or not mask.any() else mask)
        for column, mask in zip(events.cells, masks, strict=True)
    ]
    return pa.Table.from_arrays([*map(pa.array, fixed), *cells], schema=schema)


class EventsFile:
    """A file that was opened: its header is right and its columns are those of its layout.

    ``groups``: the number of row groups. ``rows``: events. ``bounds``: of each row group the first and last trace id.
    """

    def __init__(self, path: Path | str) -> None:
        place = Place.of(path)
        self.path = place.where
        self.name = str(place)
        with reading_parquet(self._refused):
            # Plain reads, not a memory map: a file that is cut off meanwhile is then an error, and no signal.
            self._file = pq.ParquetFile(**place.source(), memory_map=False, page_checksum_verification=True)
            raw: bytes | None = (self._file.metadata.metadata or {}).get(METADATA_KEY)
            # The names of an Arrow schema are a new list at each access, and there may be a hundred thousand.
            names: list[str] = self._file.schema_arrow.names
            types: list[pa.DataType] = self._file.schema_arrow.types
            self.groups: int = self._file.metadata.num_row_groups
            self.rows: int = self._file.metadata.num_rows
        self.header = self._header(raw)
        self.layout = CorpusLayout.of(self.header)
        self._check_columns(names, types)
        self.bounds = self._bounds(names.index("trace"))

    def _bad(self, what: str, mend: str, where: str = "") -> BadInput:
        return BadInput(what, self.name + where, mend)

    def _refused(self, error: Exception, where: str = "") -> BadInput:
        if isinstance(error, NotRegularFileError):
            return self._bad(f"cannot be read: {error.strerror}", "put the file itself there", where)
        if isinstance(error, OSError) and error.errno:
            return self._bad(f"cannot be read: {os.strerror(error.errno)}", "name a file that you may read", where)
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return self._bad(f"no sound Parquet: {first.rstrip('.')}", "write the file anew, it is damaged", where)

    def _header(self, raw: bytes | None) -> CorpusHeader:
        anew = "lay it out by fencepost ingest"
        if raw is None:
            raise self._bad("a Parquet file of another kind: it has no corpus header", anew)
        try:
            told = json.loads(raw)
        except ValueError as error:
            raise self._bad("its corpus header is no JSON", anew) from error
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise self._bad("its corpus header names another format", anew)
        refuse_version(told.get("version"), self.name)
        try:
            return CorpusHeader.from_json(told.get("header"))
        except ValueError as error:
            raise self._bad(f"its corpus header is wrong: {error}", "name what the model has") from error

    def _check_columns(self, names: Sequence[str], types: Sequence[pa.DataType]) -> None:
        found = dict(zip(names, types, strict=True))
        for field in self.layout.schema:
            if field.name not in found:
                raise self._bad(f"it has no column {field.name}", _MEND_SCHEMA)
            if found[field.name] != field.type:
                told = f"its column {field.name} is of type {found[field.name]}, not {field.type}"
                raise self._bad(told, _MEND_SCHEMA)
        known = set(self.layout.schema.names)
        extra = [name for name in names if name not in known]
        extra += [f"{name} twice" for name, count in Counter(names).items() if count > 1]
        if extra:
            raise self._bad(f"it has columns that its header does not give, {extra[0]}", _MEND_SCHEMA)

    def _bounds(self, at: int) -> list[tuple[int, int]]:
        """Raises BadInput where a trace is split, traces are not in order, or a row group is too large to be read.

        ``at``: the number of the column of traces.
        """
        bounds: list[tuple[int, int]] = []
        for group in range(self.groups):
            where = f", row group {group}"
            with reading_parquet(self._refused):
                # Where a flipped bit gave the column another type, ``column`` ends the process. Reading a row raises.
                next(self._file.iter_batches(1, row_groups=[group], columns=["trace"], use_threads=False), None)
                found = self._file.metadata.row_group(group).column(at).statistics
                ends = (found.min, found.max) if found is not None and found.has_min_max else None
                rows: int = self._file.metadata.row_group(group).num_rows
            if ends is None or not all(type(end) is int for end in ends):
                raise self._bad("it does not say which traces it has", _MEND_SCHEMA, where)
            first, last = ends
            if bounds and first <= bounds[-1][1]:
                told = f"trace {first} begins in an earlier row group, or traces are not sorted"
                raise self._bad(told, _MEND_SCHEMA, where)
            bounds.append((first, last))
            if rows > (ROW_GROUP if first != last else LONGEST):
                # It would be read whole, and may be a few bytes of a run length on disk.
                told = f"it has {rows:,} rows, and those of a corpus {ROW_GROUP:,}, or one trace of up to {LONGEST:,}"
                raise self._bad(told, _MEND_SCHEMA, where)
        return bounds

    @property
    def ends(self) -> tuple[int | None, int | None]:
        """The first and last trace id; None in a file without rows."""
        return (self.bounds[0][0], self.bounds[-1][1]) if self.bounds else (None, None)

    def read(self, group: int, cells: Collection[int] | None = None) -> Events:
        """The events of one row group, held to `checks.py`.

        ``cells``: the numbers of the cells to read (None: all); trace, step, action and parameters are always read.
        Raises BadInput for a damaged row group, or the first row that is wrong.
        """
        layout = self.layout
        numbers = tuple(range(len(layout.cells))) if cells is None else tuple(sorted(set(cells)))
        fixed = layout.fixed_columns
        names = [*fixed, *(layout.cell_columns[number] for number in numbers)]
        where = f", row group {group}"
        with reading_parquet(lambda error: self._refused(error, where)):
            table = self._file.read_row_group(group, columns=names, use_threads=False).combine_chunks()
        columns = [table.column(name) for name in names]
        for name, column in zip(fixed, columns, strict=False):
            if column.null_count:
                raise self._bad(f"{name} is null in some row", _MEND_SCHEMA, where)
        trace, step, action, *params = (_plain(column) for column in columns[: len(fixed)])
        rows = trace.size
        matrix = np.empty((len(numbers), rows), dtype=layout.dtype)
        seen: np.ndarray[Any, np.dtype[np.bool_]] | None = None
        for place, column in enumerate(columns[len(fixed) :]):
            if column.null_count:
                if seen is None:
                    seen = np.ones(matrix.shape, dtype=np.bool_)
                seen[place] = column.is_valid().to_numpy(zero_copy_only=False)
                column = column.fill_null(layout.cells[numbers[place]].low)
            matrix[place] = _plain(column)
        block = np.empty((layout.params, rows), dtype=layout.param_dtype)
        for place, values in enumerate(params):
            block[place] = values
        events = Events(layout, trace, step, action, block, matrix, seen, numbers)
        fault = first_fault(events)
        if fault is not None:
            raise self._bad(fault.what, fault.mend, f"{where}, row {fault.row}")
        if rows and (int(trace[0]), int(trace[-1])) != self.bounds[group]:
            raise self._bad("its statistics give other traces than it has", "write the file anew", where)
        return events

    def __iter__(self) -> Iterator[Events]:
        """The row groups, one after the other."""
        return (self.read(group) for group in range(self.groups))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> EventsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_MEND_SCHEMA = "lay the corpus out anew by fencepost ingest"


def _plain(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """A column without nulls, as it lies in Arrow's buffer where it is in one piece."""
    values: np.ndarray[Any, Any] = (
        column.chunk(0).to_numpy(zero_copy_only=False) if column.num_chunks == 1 else column.to_numpy()
    )
    return values


def open_events(path: Path | str) -> EventsFile:
    """Open a file of a corpus, by path or URI. Raises BadInput where it cannot be read, or is of another schema."""
    return EventsFile(path)


def refuse_version(version: object, where: str) -> None:
    """Raises BadInput, naming the version, for any but those that are read: what it means is not known here."""
    if type(version) is int and version in VERSIONS:
        return
    told = "missing" if version is None else json.dumps(version)
    if type(version) is int and version < VERSIONS[0]:
        mend = "ingest what the corpus was made of anew"
    else:
        mend = "read it with a newer Fencepost"
    known = " and ".join(map(str, VERSIONS))
    raise BadInput(f"the corpus' schema version is {told}, and only {known} are read here", where, mend)
