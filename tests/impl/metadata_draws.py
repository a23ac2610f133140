"""Any record that a schema lets be, drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fencepost.impl.metadata import MetadataRecord, Schema, Struct, TaggedField
from fencepost.impl.metadata.schema import INTEGERS, Field, split
from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]


def a_record(draw: Draw, schemas: Iterable[Schema], *, unknown: bool = True) -> MetadataRecord:
    """A record of one of the schemas, in any version of it, as ``decode`` gives it: with all fields, and tuples."""
    schema = draw(st.sampled_from(list(schemas)))
    version = draw(st.integers(schema.versions.lowest, schema.versions.highest))
    fields, tagged = _fields(draw, schema.fields, version, unknown)
    return MetadataRecord(schema.name, version, fields, tagged)


def _fields(
    draw: Draw, fields: tuple[Field, ...], version: int, unknown: bool
) -> tuple[dict[str, Any], tuple[TaggedField, ...]]:
    untagged, tagged = split(fields, version)
    there = {each.name for each in (*untagged, *tagged)}
    values = {each.name: _value(draw, each, version, unknown) for each in fields if each.name in there}
    if not unknown or draw(st.integers(0, 3)):
        return values, ()
    first = max((each.tag or 0 for each in tagged), default=-1) + 1
    tags = draw(st.lists(st.integers(first, (1 << 31) - 1), max_size=3, unique=True))
    return values, tuple(TaggedField(tag, draw(st.binary(max_size=5))) for tag in sorted(tags))


def _value(draw: Draw, field: Field, version: int, unknown: bool) -> Any:
    if version in field.nullable and not draw(st.integers(0, 3)):
        return None
    if field.tag is not None and version in field.tagged and draw(st.booleans()):
        return field.default
    if not field.array:
        return _one(draw, field, version, unknown)
    most = 3 if field.fields or draw(st.integers(0, 7)) else 130
    return tuple(_one(draw, field, version, unknown) for _ in range(draw(st.integers(0, most))))


def _one(draw: Draw, field: Field, version: int, unknown: bool) -> Any:
    if field.fields:
        return Struct(*_fields(draw, field.fields, version, unknown))
    if field.type in INTEGERS:
        return draw(st.integers(*INTEGERS[field.type]))
    return draw(_OTHERS[field.type])


_OTHERS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.uuids(),
    "string": st.text(max_size=40) | st.text("aé", min_size=120, max_size=140),
    "bytes": st.binary(max_size=40) | st.binary(min_size=120, max_size=140),
}
