"""What a corpus holds: the columns of its files, and a run of whole traces in memory as NumPy columns.

A row is an event. In memory and on disk a state is in the model's own encoding (sets are bit masks, no replica is -1),
one column a cell, so that nothing is translated between a file and the batch interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...model.core.ground import Cell
from ...model.interpret.packing import Packing
from ..format import TraceHeader
from ..run_report import Json
from ..vocabulary import Vocabulary, vocabulary_of

FORMAT: Final = "fencepost-corpus"
SCHEMA_VERSION: Final = 1
PARTIAL_VERSION: Final = 2
"""The version of a file of partial traces: a Fencepost that does not know of these must not read it."""
VERSIONS: Final = (SCHEMA_VERSION, PARTIAL_VERSION)
"""The versions that are read."""
METADATA_KEY: Final = b"fencepost"
"""Where a Parquet file's key-value metadata has format, version and header, as one JSON object."""

LOOK: Final = -1
"""The action of a row that is no step, only a look at the state."""
UNKNOWN: Final = -1
"""A parameter that is not known, or that the action does not have."""

Integers: TypeAlias = npt.NDArray[np.signedinteger[Any]]


@dataclass(frozen=True)
class CorpusHeader:
    """What every trace of one file is a trace of; the same fields as a ``TraceHeader``, and complete by default.

    Where ``complete``, the steps of each trace are numbered 1, 2, 3 ... without a gap. ``partial``: the one reason why
    each trace reports only a part of its run; None: each reports all.
    """

    protocol: str
    variant: str
    constants: Mapping[str, int]
    complete: bool = True
    source: Mapping[str, Json] = field(default_factory=dict)
    partial: str | None = None

    @property
    def version(self) -> int:
        """The schema version of a file with this header."""
        return SCHEMA_VERSION if self.partial is None else PARTIAL_VERSION

    def to_json(self) -> dict[str, Json]:
        """The header as a JSON object; equal headers give equal objects, in the same order."""
        body: dict[str, Json] = {
            "protocol": self.protocol,
            "variant": self.variant,
            "constants": dict(self.constants),
            "complete": self.complete,
            "source": dict(self.source),
        }
        return body if self.partial is None else body | {"partial": self.partial}

    @classmethod
    def from_json(cls, found: object) -> CorpusHeader:
        """The inverse of ``to_json``. Raises ValueError for anything else, names that are not there included."""
        if not isinstance(found, dict):
            raise ValueError("the header is no JSON object")
        constants, source = found.get("constants"), found.get("source", {})
        names = found.get("protocol"), found.get("variant")
        if not all(isinstance(name, str) for name in names) or type(found.get("complete")) is not bool:
            raise ValueError("the header lacks protocol, variant or complete")
        if not isinstance(constants, dict) or any(type(value) is not int for value in constants.values()):
            raise ValueError("the header's constants are no numbers")
        if not isinstance(source, dict):
            raise ValueError("the header's source is no object")
        partial = found.get("partial")
        if "partial" in found and not (isinstance(partial, str) and partial):
            raise ValueError("the header's partial is no reason")
        header = cls(found["protocol"], found["variant"], constants, found["complete"], source, partial)
        vocabulary_of(header.of_trace())
        return header

    def of_trace(self, source: Mapping[str, Json] | None = None) -> TraceHeader:
        """The header of one of the traces, written alone."""
        return TraceHeader(
            self.protocol,
            self.variant,
            self.constants,
            self.complete,
            self.source if source is None else source,
            self.partial,
        )


class CorpusLayout:
    """The columns of a file with a header, in the file's order: trace, step, action, parameters, cells.

    ``actions``: an action's number is its place. ``params``: the most parameters that any action has. ``dtype`` and
    ``param_dtype``: the narrowest in which every cell and every parameter fits, int8 at small constants.
    """

    def __init__(self, header: CorpusHeader, vocabulary: Vocabulary) -> None:
        self.header = header
        self.vocabulary = vocabulary
        self.actions = tuple(vocabulary.actions)
        self.params = max((len(each) for each in vocabulary.actions.values()), default=0)
        self.cells: list[Cell] = vocabulary.layout.cells
        # The batch interpreter's own: columns go from a file into it as they are.
        self.dtype: np.dtype[Any] = np.dtype(Packing(vocabulary.layout).dtype)
        largest = max((size for each in vocabulary.actions.values() for size in each.values()), default=1)
        self.param_dtype: np.dtype[Any] = np.min_scalar_type(-largest)

    @classmethod
    def of(cls, header: CorpusHeader) -> CorpusLayout:
        """The layout of a header. Raises ValueError where that names what is not there."""
        return cls(header, vocabulary_of(header.of_trace()))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each action."""
        return {name: number for number, name in enumerate(self.actions)}

    @cached_property
    def param_names(self) -> tuple[tuple[str, ...], ...]:
        """For each action its parameters, in the order of its text."""
        return tuple(tuple(each) for each in self.vocabulary.actions.values())

    @cached_property
    def param_sizes(self) -> npt.NDArray[np.int64]:
        """How many values each parameter has: shape (params, actions + 1), 0 where there is none.

        The last column is that of ``LOOK``, which is index -1 in Python's way of counting.
        """
        sizes = np.zeros((self.params, len(self.actions) + 1), dtype=np.int64)
        for number, each in enumerate(self.vocabulary.actions.values()):
            sizes[: len(each), number] = list(each.values())
        return sizes

    @cached_property
    def fixed_columns(self) -> tuple[str, ...]:
        """The columns before those of the cells."""
        return ("trace", "step", "action", *(f"p{number}" for number in range(self.params)))

    @cached_property
    def cell_columns(self) -> tuple[str, ...]:
        """The columns of the cells: their names, such as ``leo[1]``."""
        return tuple(cell.name for cell in self.cells)

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of a file, without metadata. Only cells may be null: those that were not observed."""
        cell, param = pa.from_numpy_dtype(self.dtype), pa.from_numpy_dtype(self.param_dtype)
        types = [pa.int64(), pa.int32(), pa.int8(), *[param] * self.params]
        fixed = [pa.field(n, t, nullable=False) for n, t in zip(self.fixed_columns, types, strict=True)]
        return pa.schema([*fixed, *(pa.field(name, cell) for name in self.cell_columns)])

    @cached_property
    def schema_without_nulls(self) -> pa.Schema:
        """The same of a file whose every cell was observed."""
        return pa.schema([field.with_nullable(False) for field in self.schema])

    def unobserved(self) -> npt.NDArray[Any]:
        """What stands in memory for a cell that was not observed: its lowest value. Shape (cells, 1)."""
        return np.array([[cell.low] for cell in self.cells], dtype=self.dtype)


@dataclass(eq=False)
class Events:
    """n rows: whole traces only, sorted by trace and step.

    ``trace``: int64, shape (n,). ``step``: int32, shape (n,). ``action``: int8, shape (n,), the number of the action or
    ``LOOK``. ``params``: shape (params, n), in the order of the action's text, or ``UNKNOWN``. ``cells``: shape
    (len(numbers), n), C order. ``seen``: bool of the same shape, or None: every cell of every row was observed.
    ``numbers``: the numbers of the cells that were read; all of the layout's, unless fewer were asked for.
    """

    layout: CorpusLayout
    trace: npt.NDArray[np.int64]
    step: npt.NDArray[np.int32]
    action: npt.NDArray[np.int8]
    params: Integers
    cells: Integers
    seen: npt.NDArray[np.bool_] | None
    numbers: tuple[int, ...]

    @classmethod
    def whole(
        cls,
        layout: CorpusLayout,
        trace: npt.NDArray[np.int64],
        step: npt.NDArray[np.int32],
        action: npt.NDArray[np.int8],
        params: Integers,
        cells: Integers,
        seen: npt.NDArray[np.bool_] | None = None,
    ) -> Events:
        """Events with all cells of the layout."""
        return cls(layout, trace, step, action, params, cells, seen, tuple(range(len(layout.cells))))

    def __len__(self) -> int:
        return self.trace.size

    @cached_property
    def starts(self) -> npt.NDArray[np.intp]:
        """The row at which each trace begins, shape (traces,)."""
        if not self.trace.size:
            return np.empty(0, dtype=np.intp)
        return np.concatenate(([0], np.flatnonzero(self.trace[1:] != self.trace[:-1]) + 1)).astype(np.intp)

    @cached_property
    def ends(self) -> npt.NDArray[np.intp]:
        """The row after the last of each trace, shape (traces,)."""
        return np.append(self.starts[1:], self.trace.size).astype(np.intp)

    def rows(self, low: int, high: int) -> Events:
        """The rows ``low .. high - 1`` as views; whole traces, if the bounds are starts of traces."""
        seen = None if self.seen is None else self.seen[:, low:high]
        return Events(
            self.layout,
            self.trace[low:high],
            self.step[low:high],
            self.action[low:high],
            self.params[:, low:high],
            self.cells[:, low:high],
            seen,
            self.numbers,
        )

    @classmethod
    def joined(cls, parts: Sequence[Events]) -> Events:
        """Several, one after the other. They are of one layout and have the same cells."""
        first = parts[0]
        if len(parts) == 1:
            return first
        seen = None
        if any(each.seen is not None for each in parts):
            masks: Iterable[npt.NDArray[np.bool_]] = (
                np.ones(each.cells.shape, dtype=np.bool_) if each.seen is None else each.seen for each in parts
            )
            seen = np.concatenate(list(masks), axis=1)
        return cls(
            first.layout,
            np.concatenate([each.trace for each in parts]),
            np.concatenate([each.step for each in parts]),
            np.concatenate([each.action for each in parts]),
            np.concatenate([each.params for each in parts], axis=1),
            np.concatenate([each.cells for each in parts], axis=1),
            seen,
            first.numbers,
        )
