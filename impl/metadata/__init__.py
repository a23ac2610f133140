"""The metadata log of KIP-631: its records, their schemas, and which of them may be written."""

from __future__ import annotations

from .codec import CODEC, MetadataCodec, decode, encode, size_of
from .errors import CorruptRecord, InvalidRecord, InvalidSchema
from .features import METADATA_FORMAT, NEWEST_LEVEL, OLDEST_LEVEL, MetadataFormat
from .schema import Schema, load_schemas, parse_schema
from .values import MetadataRecord, Struct, TaggedField, Value

__all__ = [
    "CODEC",
    "METADATA_FORMAT",
    "NEWEST_LEVEL",
    "OLDEST_LEVEL",
    "CorruptRecord",
    "InvalidRecord",
    "InvalidSchema",
    "MetadataCodec",
    "MetadataFormat",
    "MetadataRecord",
    "Schema",
    "Struct",
    "TaggedField",
    "Value",
    "decode",
    "encode",
    "load_schemas",
    "parse_schema",
    "size_of",
]
