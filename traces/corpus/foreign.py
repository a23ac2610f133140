"""Parquet files that hold events in another layout: unsorted, split over files, with dictionaries or wider integers.

What a file must have is a corpus header (its own metadata, its folder's manifest, or given by whoever asks) and the
columns of the layout by name: ``trace`` and ``step``, ``action`` as a number or a name, parameters, cells. A cell that
has no column was not observed. A column without any value may be of any type, and columns may have other names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...model.core.errors import BadInput
from ...model.core.regular_file import NotRegularFileError, read_regular
from .files import reading_parquet, refuse_version
from .layout import FORMAT, LOOK, METADATA_KEY, UNKNOWN, CorpusHeader, CorpusLayout
from .manifest import MANIFEST
from .place import arrow_source, shown_path

BATCH: Final = 1 << 16
"""Rows that are read at once."""

_MEND: Final = "give the columns of the corpus layout by name, integers or null"


class ForeignFile:
    """A file that was opened; its columns can be those of a layout. Raises BadInput where they cannot.

    ``columns``: the file's names of columns, by the layout's, where the two differ.
    """

    def __init__(
        self, path: str, given: CorpusHeader | None = None, columns: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.path = path
        self._columns = columns
        self.name = shown_path(path)
        with reading_parquet(self._unreadable):
            self._file = pq.ParquetFile(arrow_source(path), page_checksum_verification=True)
            raw: bytes | None = (self._file.metadata.metadata or {}).get(METADATA_KEY)
            self._schema: pa.Schema = self._file.schema_arrow
            self._names: list[str] = self._schema.names
        header = None if raw is None else self._read(raw, "header", self.name)
        self.layout = CorpusLayout.of(header or self._listed() or self._given(given))
        self._check_columns()

    def _bad(self, what: str, mend: str = _MEND) -> BadInput:
        return BadInput(what, self.name, mend)

    def _unreadable(self, error: Exception) -> BadInput:
        if isinstance(error, NotRegularFileError):
            return self._bad(f"cannot be read: {error.strerror}", "put the file itself there")
        if isinstance(error, OSError) and error.errno:
            return self._bad(f"cannot be read: {os.strerror(error.errno)}", "name a file that you may read")
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return self._bad(f"no sound Parquet: {first.rstrip('.')}", "write the file anew, it is damaged")

    def _listed(self) -> CorpusHeader | None:
        """That of the manifest beside it: programs that write Parquet anew drop what they do not know."""
        manifest = Path(self.path).with_name(MANIFEST)
        try:
            raw = read_regular(manifest)
        except OSError:
            return None
        return self._read(raw, "files", shown_path(manifest))

    def _read(self, raw: bytes, key: str, where: str) -> CorpusHeader:
        try:
            told = json.loads(raw)
        except ValueError as error:
            raise self._bad(f"the corpus header in {where} is no JSON") from error
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise self._bad(f"the corpus header in {where} names another format")
        refuse_version(told.get("version"), where)
        found = told.get(key)
        if key == "files":
            # A file that is not listed has another name than when it was written: one header must do for all.
            entries = [each for each in found or () if isinstance(each, dict)] if isinstance(found, list) else []
            own = [each.get("header") for each in entries if each.get("name") == Path(self.path).name]
            found = (own or [each.get("header") for each in entries] or [None])[0]
            if not own and any(each.get("header") != found for each in entries):
                raise self._bad(f"{where} does not list it, and lists files of several headers")
        try:
            return CorpusHeader.from_json(found)
        except ValueError as error:
            raise self._bad(f"the corpus header in {where} is wrong: {error}", "name what the model has") from error

    def _given(self, given: CorpusHeader | None) -> CorpusHeader:
        if given is None:
            mend = "give --protocol, and its --variant and constants"
            raise self._bad("it has no corpus header, and there is no manifest beside it", mend)
        return given

    def _check_columns(self) -> None:
        schema, names = self._schema, self._names
        known = {self._own(name): name for name in self.layout.schema.names}
        variant = self.layout.header.variant
        for name, own in self._columns.items():
            if name not in self.layout.schema.names:
                what = f"{variant} has no column {name}, which --column {name}={own} names"
                raise self._bad(what, "write --column COLUMN=NAME with a column of the corpus layout")
            if own not in names:
                raise self._bad(f"it has no column {own}, which --column {name}={own} names", "name one that it has")
        for name in self.layout.fixed_columns:
            if self._own(name) not in names:
                raise self._bad(f"it has no column {self._own(name)}", f"{_MEND}; --column {name}=NAME renames one")
        for field in schema:
            if field.name not in known:
                what = f"its column {field.name} is none of {variant}"
                if field.name in self._columns:
                    what += f", as --column {field.name}={self._columns[field.name]} names another one"
                raise self._bad(what)
            if names.count(field.name) > 1:
                raise self._bad(f"it has the column {field.name} twice")
            kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            named = known[field.name] == "action" and (pa.types.is_string(kind) or pa.types.is_large_string(kind))
            if not named and not _is_number(kind) and not self._is_empty(field.name):
                raise self._bad(f"its column {field.name} is of type {field.type}")

    def _own(self, name: str) -> str:
        """The file's name of a column of the layout."""
        return self._columns.get(name, name)

    def _is_empty(self, own: str) -> bool:
        """Whether a column of the file has no value: programs write one of any type then."""
        return all(batch.column(0).null_count == batch.num_rows for batch in self._batches([own]))

    def traces(self) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
        """The trace ids, a batch at a time. Raises BadInput for a damaged file, or an id that is none."""
        for batch in self._batches([self._own("trace")]):
            yield self._cast(batch.column(0), pa.field("trace", pa.int64(), nullable=False)).to_numpy()

    def events(self) -> Iterator[pa.RecordBatch]:
        """The rows as they are ordered, in the layout's types. Raises BadInput as ``traces``."""
        names = self._names
        for batch in self._batches(names):
            columns = []
            for field in self.layout.schema:
                own = self._own(field.name)
                if own not in names:
                    columns.append(pa.nulls(batch.num_rows, field.type))
                elif field.name == "action":
                    columns.append(self._actions(batch.column(own)))
                else:
                    column = _numbers(batch.column(own))
                    if field.name in self.layout.fixed_columns[3:]:
                        column = pc.fill_null(column, UNKNOWN)
                    columns.append(self._cast(column, field))
            yield pa.RecordBatch.from_arrays(columns, schema=self.layout.schema)

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        with reading_parquet(self._unreadable):
            batches = iter(self._file.iter_batches(BATCH, columns=names, use_threads=False))
        while True:
            # What the caller does with a batch is not reading.
            with reading_parquet(self._unreadable):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _cast(self, column: pa.Array, field: pa.Field) -> pa.Array:
        if column.null_count and not field.nullable:
            raise self._bad(f"{field.name} is null in some row")
        try:
            return _numbers(column).cast(field.type)
        except pa.ArrowInvalid as error:
            raise self._bad(f"{field.name} has a value that it cannot hold") from error

    def _actions(self, column: pa.Array) -> pa.Array:
        """Numbers of actions; null is a look at the state."""
        plain = _plain(column)
        if plain.null_count == len(plain):
            plain = _numbers(plain)
        if not _is_number(plain.type):
            names = pa.array(self.layout.actions)
            found = pc.index_in(plain.cast(pa.string()), value_set=names)
            strange = pc.filter(plain, pc.and_(pc.is_null(found), pc.is_valid(plain)))
            if len(strange):
                raise self._bad(f"{self.layout.header.variant} has no action {strange[0].as_py()!r}")
            plain = found
        return self._cast(pc.fill_null(plain, LOOK), pa.field("action", pa.int8(), nullable=False))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _is_number(kind: pa.DataType) -> bool:
    """Whether values of a type may be integers: programs write integers beside nulls as floats, too."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind))


def _numbers(column: pa.Array) -> pa.Array:
    """A column without its dictionary; one without any value as integers."""
    plain = _plain(column)
    return pa.nulls(len(plain), pa.int64()) if plain.null_count == len(plain) else plain


def _plain(column: pa.Array) -> pa.Array:
    """A column without its dictionary."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
