"""Metadata records as bytes (KIP-631, "Record Formats"): a null key, and a value of

    record type unsigned varint, record version unsigned varint, the payload in Kafka's flexible RPC format

compact strings and arrays, and tagged fields behind the others. Shipped Kafka has a frame version before that, an
unsigned varint that is 1 (``AbstractApiMessageSerde``); a codec that is ``framed`` writes and asks for it.

The module's own ``encode`` and ``decode`` are those of the schemas in ``schemas/``. Whether a version may be written
yet is another matter: see ``features``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from ..log.varint import read_uvarint, uvarint
from .errors import CorruptRecord, InvalidRecord
from .generate import RecordReader, StructWriter, record_reader, record_writer
from .schema import Schema, check_schemas, load_schemas
from .values import MetadataRecord, Struct, TaggedField, Value
from .writing import Unwritable, complain

__all__ = ["MetadataCodec", "MetadataRecord", "Struct", "TaggedField", "Value", "decode", "encode", "size_of"]

FRAME_VERSION = 1
MAX_RECORD = (1 << 31) - 1
"""Bytes of a record's value: its length is an int32 (a varint in a batch)."""
_UPDATE = "update this node, or keep metadata.format at a level that it knows"
_MISFITS = (struct.error, AttributeError, KeyError, OverflowError, TypeError, UnicodeEncodeError, Unwritable)


class MetadataCodec:
    """Writes and reads the records of some schemas, all versions of them."""

    def __init__(self, schemas: Iterable[Schema], *, framed: bool = False) -> None:
        self.schemas = {each.name: each for each in check_schemas(schemas)}
        self.framed = framed
        self._by_key = {each.api_key: each for each in self.schemas.values()}
        self._readers: dict[bytes, RecordReader] = {}
        self._writers: dict[str, dict[int, StructWriter]] = {each: {} for each in self.schemas}
        for each in self.schemas.values():
            for version in range(each.versions.lowest, each.versions.highest + 1):
                head = self._head_of(each.api_key, version)
                self._readers[head] = record_reader(each, version)
                self._writers[each.name][version] = record_writer(each, version, head)
        self._usual = 3 if framed else 2  # one byte each

    def encode(self, record: MetadataRecord) -> bytes:
        """The value of a record. Raises ``InvalidRecord`` that names the field that does not fit."""
        name, version, fields, unknown = record
        try:
            write = self._writers[name][version]
        except (KeyError, TypeError):
            raise self._no_such(record) from None
        try:
            return write(fields, unknown)
        except _MISFITS as error:
            found = complain(self.schemas[name].fields, version, fields, unknown, f"{name} {version}")
            if found is None:
                raise AssertionError(f"a {name} that fits its schema could not be written: {error!r}") from error
            raise found from None

    def decode(self, data: bytes, *, at: int = 0) -> MetadataRecord:
        """The record that ``data`` are, to their last byte.

        ``at`` is added to the byte in errors: where ``data`` begin in the file or log that they are from. Raises
        ``CorruptRecord``.
        """
        start = self._usual
        try:
            read = self._readers.get(data[:start])
            if read is None:
                read, start = self._unusual(data)
            return read(data, start)
        except CorruptRecord as error:
            raise (CorruptRecord(error.what, error.byte + at, error.mend) if at else error) from None

    def size_of(self, record: MetadataRecord) -> int:
        """Bytes of the value of a record, without the batch and record headers. Raises as ``encode`` does."""
        return len(self.encode(record))

    def _no_such(self, record: MetadataRecord) -> InvalidRecord:
        schema = self.schemas.get(record.type)
        if schema is None:
            return InvalidRecord("there is no such type of record", str(record.type), f"give {', '.join(self.schemas)}")
        versions = f"{schema.versions.lowest} to {schema.versions.highest}"
        return InvalidRecord(f"version {record.version}, known are {versions}", record.type, "give one of these")

    def _head(self, data: bytes) -> tuple[list[int], int]:
        """The numbers before the payload, and where it begins."""
        found: list[int] = []
        position = 0
        for what in (["frame version"] if self.framed else []) + ["record type", "record version"]:
            try:
                value, after = read_uvarint(data, position)
            except IndexError:
                raise CorruptRecord(f"the record ends inside the {what}", position) from None
            except ValueError as error:
                raise CorruptRecord(f"{what}: {error}", position) from None
            if what == "frame version" and value != FRAME_VERSION:
                raise CorruptRecord(f"frame version {value}, only {FRAME_VERSION} is known", position)
            if what == "record type" and value not in self._by_key:
                raise CorruptRecord(f"record type {value} is not known", position, _UPDATE)
            if what == "record version" and value not in self._by_key[found[-1]].versions:
                schema = self._by_key[found[-1]]
                known = f"{schema.versions.lowest} to {schema.versions.highest}"
                raise CorruptRecord(f"{schema.name} of version {value}, known are {known}", position, _UPDATE)
            found.append(value)
            position = after
        return found, position

    def _head_of(self, api_key: int, version: int) -> bytes:
        head = uvarint(api_key) + uvarint(version)
        return uvarint(FRAME_VERSION) + head if self.framed else head

    def _unusual(self, data: bytes) -> tuple[RecordReader, int]:
        """The reader, and where it begins, where the numbers take more bytes than usual; or what is wrong with them."""
        (*_, api_key, version), start = self._head(data)
        return self._readers[self._head_of(api_key, version)], start


CODEC = MetadataCodec(load_schemas())
"""Of the schemas of KIP-631's records."""

encode = CODEC.encode
decode = CODEC.decode
size_of = CODEC.size_of
