"""Laying out anew: events of Parquet files in any order, into files of whole and sorted traces.

Four passes, each over files or parts of the result that know nothing of each other, so that memory is bounded by one
part and the work can be spread: which ids there are, how they are distributed, every row into the bucket of its part,
every bucket sorted and checked. It is the shuffle that mining then does without.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...model.core.errors import BadInput
from .checks import first_fault
from .files import Written, write_events
from .foreign import ForeignFile
from .ingest import Ingested, NothingIngested, finish
from .layout import CorpusHeader, CorpusLayout, Events
from .manifest import PLANTED, SOURCES
from .output import new_folder
from .place import is_utf8, shown_path
from .spread import SERIAL, OnDone, spread

PART_EVENTS: Final = 1 << 20
"""About so many events go into one part of the result."""
MAX_PARTS: Final = 512
"""And into so many parts at most: a file's rows may belong to all of them, and each is an open file then."""
BINS: Final = 1 << 14
"""So finely the trace ids are counted. Ids of one bin are not parted."""
MAX_BAD_TRACES: Final = 1000
"""Of one part; more than so many, and what is wrong is not this or that trace."""

_BUCKETS: Final = ".buckets"
_MEND: Final = "mend what wrote them; traces of this part are left out"


@dataclass(frozen=True)
class _Source:
    """A file, the header of its traces, its lowest and highest id, and its names of columns by the layout's."""

    path: str
    header: CorpusHeader
    low: int
    high: int
    columns: Mapping[str, str]

    def opened(self) -> ForeignFile:
        """Open the file. Raises BadInput as ``ForeignFile`` does."""
        return ForeignFile(self.path, self.header, self.columns)


@dataclass(frozen=True)
class _Cut:
    """How the ids of one header are cut: bins of ``width`` ids from ``low``, and the part of each bin."""

    header: CorpusHeader
    low: int
    width: int
    parts: tuple[int, ...]

    def part_of(self, traces: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The part of each trace."""
        return np.array(self.parts, dtype=np.int64)[(traces - self.low) // self.width]


def relay(
    paths: Sequence[Path],
    out: Path,
    given: CorpusHeader | None = None,
    master: str = SERIAL,
    on_done: OnDone | None = None,
    beside: Path | None = None,
    columns: Mapping[str, str] | None = None,
) -> Ingested:
    """Lay out Parquet files anew. Trace ids stay; rows of one id in several files are one trace.

    ``given``: the header of files that do not say theirs. ``columns``: the files' names of columns, by the layout's,
    where the two differ. ``beside``: a folder whose ``sources.jsonl`` and
    ``planted.jsonl`` go along, if it has any, as they name traces by id. A file that cannot be read is named and left
    out, and so is a trace with a gap or a repeated step. Raises BadInput where ``out`` cannot be written, or two
    headers share ids.
    """
    problems: list[BadInput] = []
    sources = _kept(spread([str(path) for path in paths], partial(_look, given, columns or {}), master), problems)
    if not is_utf8(out.absolute()):
        # Arrow opens the files between the passes by their path.
        raise BadInput("its path is not UTF-8", shown_path(out), "name a folder by characters of UTF-8")
    with new_folder(out) as part:
        cuts = _cuts(sources, master, problems)
        buckets = part / _BUCKETS
        buckets.mkdir()
        pieces = [(number, each) for number, each in enumerate(sources)]
        _kept(spread(pieces, partial(_scatter, cuts, str(buckets)), master), problems)
        numbers = sorted(int(each.name) for each in buckets.iterdir())
        headers = {number: cut.header for cut in cuts for number in cut.parts}
        gathering = [(number, headers[number]) for number in numbers]
        files: list[Written] = []
        for written, bad in _kept(spread(gathering, partial(_gather, str(part)), master, on_done), problems):
            files += [written] if written.events else []
            problems += bad
        shutil.rmtree(buckets)
        for name in (SOURCES, PLANTED) if beside else ():
            if beside and (beside / name).is_file():
                shutil.copyfile(beside / name, part / name)
        ingested = finish(part, files, (), problems)
        if ingested.files:
            return ingested
        raise NothingIngested(ingested)


def _kept(results: Sequence[Any], problems: list[BadInput]) -> list[Any]:
    """The results that are none of the problems, which are noted."""
    problems += [each for each in results if isinstance(each, BadInput)]
    return [each for each in results if not isinstance(each, BadInput) and each is not None]


def _look(given: CorpusHeader | None, columns: Mapping[str, str], path: str) -> _Source | None:
    file = ForeignFile(path, given, columns)
    low, high = 1 << 62, -1
    for traces in file.traces():
        if traces.size:
            low, high = min(low, int(traces.min())), max(high, int(traces.max()))
    file.close()
    if low < 0:
        raise BadInput(f"the trace's id is {low}", shown_path(path), "number traces from 0")
    return _Source(path, file.layout.header, low, high, columns) if high >= 0 else None


def _cuts(sources: Sequence[_Source], master: str, problems: list[BadInput]) -> list[_Cut]:
    """The parts of each header, numbered on."""
    cuts: list[_Cut] = []
    number = 0
    for key in sorted({_key(each.header) for each in sources}):
        mine = [each for each in sources if _key(each.header) == key]
        low, high = min(each.low for each in mine), max(each.high for each in mine)
        for each in sources:
            if _key(each.header) != key and each.low <= high and low <= each.high:
                what = f"its traces {each.low} to {each.high} have ids that {shown_path(mine[0].path)} has too"
                raise BadInput(what, shown_path(each.path), "lay out one header's files at a time")
        width = (high - low) // BINS + 1
        counts = sum(_kept(spread(mine, partial(_count, low, width), master), problems), np.zeros(BINS, dtype=np.int64))
        most = max(PART_EVENTS, int(counts.sum()) // MAX_PARTS)
        parts, held = [], 0
        for count in counts.tolist():
            if held and held + count > most:
                number, held = number + 1, 0
            parts.append(number)
            held += count
        number += 1
        cuts.append(_Cut(mine[0].header, low, width, tuple(parts)))
    return cuts


def _key(header: CorpusHeader) -> str:
    return json.dumps(header.to_json(), sort_keys=True)


def _count(low: int, width: int, source: _Source) -> npt.NDArray[np.int64]:
    file = source.opened()
    counts = np.zeros(BINS, dtype=np.int64)
    for traces in file.traces():
        counts += np.bincount((traces - low) // width, minlength=BINS)
    file.close()
    return counts


def _scatter(cuts: Sequence[_Cut], buckets: str, piece: tuple[int, _Source]) -> None:
    """Every row of a file into the bucket of its part. A file that turns out to be damaged leaves nothing there."""
    number, source = piece
    cut = next(each for each in cuts if _key(each.header) == _key(source.header))
    file = source.opened()
    writers: dict[int, pa.RecordBatchFileWriter] = {}
    paths: list[Path] = []
    try:
        for batch in file.events():
            part = cut.part_of(batch.column("trace").to_numpy())
            for each in np.unique(part).tolist():
                if each not in writers:
                    folder = Path(buckets) / str(each)
                    folder.mkdir(exist_ok=True)
                    paths.append(folder / f"{number}.arrow")
                    writers[each] = pa.ipc.new_file(paths[-1], batch.schema)
                writers[each].write_batch(batch.filter(pa.array(part == each)))
        for writer in writers.values():
            writer.close()
    except (BadInput, OSError) as error:
        for writer in writers.values():
            writer.close()
        for path in paths:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            where = shown_path(error.filename or buckets)
            raise BadInput(f"cannot be written: {error.strerror or error}", where, "make room") from error
        raise
    finally:
        file.close()


def _gather(part: str, piece: tuple[int, CorpusHeader]) -> tuple[Written, list[BadInput]]:
    """Sort one bucket, leave out traces that are wrong, and write the rest."""
    number, header = piece
    layout = CorpusLayout.of(header)
    folder = Path(part) / _BUCKETS / str(number)
    tables = []
    for path in sorted(folder.iterdir(), key=lambda each: int(each.stem)):
        with pa.OSFile(str(path)) as source:
            tables.append(pa.ipc.open_file(source).read_all())
    table = pa.concat_tables(tables) if tables else layout.schema.empty_table()
    events = _events(layout, table.combine_chunks())
    order = np.lexsort((events.step, events.trace))
    events = _chosen(events, order)
    problems: list[BadInput] = []
    while (fault := first_fault(events)) is not None:
        trace = int(events.trace[fault.row])
        problems.append(BadInput(fault.what, f"trace {trace}", f"{fault.mend}; it is left out"))
        if len(problems) > MAX_BAD_TRACES:
            what = f"more than {MAX_BAD_TRACES} traces of {events.starts.size} are wrong, such as {trace}"
            raise BadInput(f"{what}: {fault.what}", f"traces {events.trace[0]} to {events.trace[-1]}", _MEND)
        events = _chosen(events, np.flatnonzero(events.trace != trace))
    shutil.rmtree(folder)
    name = f"part-of-{number}.parquet"
    return write_events(Path(part) / name, layout, [events], observed=events.seen is None), problems


def _events(layout: CorpusLayout, table: pa.Table) -> Events:
    fixed = [table.column(name).to_numpy() for name in layout.fixed_columns]
    cells = np.empty((len(layout.cells), table.num_rows), dtype=layout.dtype)
    seen = np.ones(cells.shape, dtype=np.bool_)
    for place, cell in enumerate(layout.cells):
        column = table.column(cell.name)
        seen[place] = column.is_valid().to_numpy()
        cells[place] = column.fill_null(cell.low).to_numpy()
    params = np.empty((layout.params, table.num_rows), dtype=layout.param_dtype)
    for place, values in enumerate(fixed[3:]):
        params[place] = values
    return Events.whole(layout, fixed[0], fixed[1], fixed[2], params, cells, None if seen.all() else seen)


def _chosen(events: Events, rows: npt.NDArray[np.intp]) -> Events:
    """Some rows, in that order."""
    return Events.whole(
        events.layout,
        events.trace[rows],
        events.step[rows],
        events.action[rows],
        events.params[:, rows],
        events.cells[:, rows],
        None if events.seen is None else events.seen[:, rows],
    )
