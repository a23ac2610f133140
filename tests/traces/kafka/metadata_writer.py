"""Writes records of the metadata log by the reader's table of schemas: Kafka itself reads the result in tests."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

from fencepost.traces.kafka.metadata import SCHEMAS, Field, Schema

from .encoder import uvarint

_CODES = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q", "float64": ">d"}
_KEYS = {each.name: key for key, each in SCHEMAS.items()}
_ZEROS: dict[str, Any] = {"bool": False, "uuid": UUID(int=0), "string": "", "bytes": b"", "float64": 0.0}


def written(name: str, version: int = 0, **fields: Any) -> bytes:
    """The value of a record; fields that are left out have their defaults."""
    key = _KEYS[name]
    schema = SCHEMAS[key]
    known = {each.name for each in (*schema.fields, *schema.tagged.values())}
    assert fields.keys() <= known, fields.keys() - known
    body = b"".join(
        _value(each, fields.get(each.name, _default(each)), version) for each in schema.fields if version >= each.since
    )
    return uvarint(1) + uvarint(key) + uvarint(version) + body + _tags(schema, version, fields)


def _tags(schema: Schema, version: int, fields: dict[str, Any]) -> bytes:
    tags = [
        (tag, _value(each, fields[each.name], version))
        for tag, each in sorted(schema.tagged.items())
        if each.name in fields and fields[each.name] != schema.defaults[each.name] and version >= each.since
    ]
    return uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in tags)


def _default(field: Field) -> Any:
    if field.nullable:
        return None
    return [] if field.type.startswith("[]") else _ZEROS.get(field.type, 0)


def _value(field: Field, value: Any, version: int) -> bytes:
    if field.type in _CODES:
        return struct.pack(_CODES[field.type], value)
    if field.type == "bool":
        return bytes([value])
    if field.type == "uuid":
        return bytes(value.bytes)
    if value is None:
        return uvarint(0)
    if field.type in ("string", "bytes"):
        raw = value.encode() if field.type == "string" else value
        return uvarint(len(raw) + 1) + raw
    items = b""
    for item in value:
        if field.items:
            fields = (each for each in field.items if version >= each.since)
            items += b"".join(_value(each, item.get(each.name, _default(each)), version) for each in fields) + b"\0"
        else:
            items += _value(Field("", field.type[2:]), item, version)
    return uvarint(len(value) + 1) + items
