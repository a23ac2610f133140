"""What the generated writers are made of, and what says which field of a record does not fit its schema."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from typing import Any
from uuid import UUID

from ..log.varint import uvarint
from .errors import InvalidRecord
from .reading import MAX_STRING, MAX_TAG
from .schema import INTEGERS, Field, split
from .values import Struct, TaggedField, Value

MAX_BYTES = 0x7FFF_FFFF
"""Kafka's length of an array or of bytes is an int32."""
BOOLS = {True: True, False: False}
"""So that nothing is taken for a boolean that is none."""


class Unwritable(Exception):
    """A value does not fit; ``complain`` says which one."""


def sequence(value: Any) -> Sequence[Any]:
    """A list or tuple; anything else that can be gone through, such as a set or a string, is none."""
    if not isinstance(value, (list, tuple)):
        raise Unwritable
    return value


def structure(value: Any) -> Struct:
    """A ``Struct``, or the fields of one."""
    if isinstance(value, Struct):
        return value
    if not isinstance(value, Mapping):
        raise Unwritable
    return Struct(value)


def write_bytes(value: bytes | None) -> bytes:
    """Compact bytes."""
    if value is None:
        return b"\0"
    if not isinstance(value, bytes):
        raise Unwritable
    return uvarint(len(value) + 1) + value


def write_string(value: str | None) -> bytes:
    """A compact string."""
    if value is None:
        return b"\0"
    raw = value.encode()
    if len(raw) > MAX_STRING:
        raise Unwritable
    return uvarint(len(raw) + 1) + raw


def write_numbers(items: Sequence[Any], code: str) -> bytes:
    """A compact array of values of a fixed size, UUIDs excepted."""
    return uvarint(len(items) + 1) + struct.pack(f">{len(items)}{code}", *items)


def packers(code: str) -> list[Any]:
    """What packs small arrays with their length, by the compact length, from 1 (no item) to 63."""
    return [None, *(struct.Struct(f">B{count}{code}").pack for count in range(63))]


def write_items(items: Sequence[Any], item: Callable[[Any], bytes]) -> bytes:
    """A compact array of anything else."""
    return uvarint(len(items) + 1) + b"".join([item(each) for each in items])


def write_tags(known: Iterable[tuple[int, bytes]], unknown: Iterable[TaggedField], names: frozenset[int]) -> bytes:
    """The section of tagged fields. ``names``: tags that the schema has; none of the unknown may have one."""
    found = list(known)
    for each in unknown:
        tag, data = each
        if type(tag) is not int or tag in names or not isinstance(data, bytes) or not 0 <= tag <= MAX_TAG:
            raise Unwritable
        found.append((tag, data))
    found.sort(key=lambda pair: pair[0])
    out = [uvarint(len(found))]
    last = -1
    for tag, data in found:
        if tag == last:
            raise Unwritable
        last = tag
        out += uvarint(tag), uvarint(len(data)), data
    return b"".join(out)


def complete(fields: Mapping[str, Value], defaults: Mapping[str, Value], names: frozenset[str]) -> Mapping[str, Value]:
    """The fields with the defaults of those that were left out. A name that the version does not have is refused."""
    found = {**defaults, **fields}
    if found.keys() != names:
        raise Unwritable
    return found


def complain(fields: Sequence[Field], version: int, given: Any, unknown: Any, where: str) -> InvalidRecord | None:
    """The first thing of a record, or structure, that does not fit; ``None`` where all does."""
    if not isinstance(given, Mapping):
        return InvalidRecord(f"fields are {type(given).__name__}, not a mapping", where)
    untagged, tagged = split(fields, version)
    there = {each.name: each for each in (*untagged, *tagged)}
    for name in given:
        if name not in there:
            known = sorted(each.name for each in fields)
            what = f"version {version} has no such field" if name in known else "there is no such field"
            return InvalidRecord(what, f"{where}.{name}", f"give {', '.join(there) or 'no field'}")
    for name, each in there.items():
        if name not in given:
            if each.required:
                return InvalidRecord("it is missing, and has no default", f"{where}.{name}")
            continue
        found = _complain_of(each, version, given[name], f"{where}.{name}")
        if found is not None:
            return found
    return _complain_of_tags(unknown, {each.tag for each in tagged}, where)


def _complain_of_tags(unknown: Any, known: set[int | None], where: str) -> InvalidRecord | None:
    seen: set[int] = set()
    try:
        for tag, data in unknown:
            if type(tag) is not int or not isinstance(data, bytes) or not 0 <= tag <= MAX_TAG:
                return InvalidRecord(f"{tag!r} with {type(data).__name__} is no tagged field", where)
            if tag in known or tag in seen:
                what = "is a field of the schema" if tag in known else "stands twice"
                return InvalidRecord(f"unknown tag {tag} {what}", where)
            seen.add(tag)
    except (TypeError, ValueError):
        return InvalidRecord("unknown tagged fields are pairs of a tag and bytes", where)
    return None


def _complain_of(field: Field, version: int, value: Value, where: str) -> InvalidRecord | None:
    if value is None and version in field.nullable:
        return None
    if not field.array:
        return _complain_of_one(field, version, value, where)
    if not isinstance(value, (list, tuple)):
        return InvalidRecord(f"{_shown(value)} is no tuple", where)
    for n, item in enumerate(value):
        found = _complain_of_one(field, version, item, f"{where}[{n}]")
        if found is not None:
            return found
    return None


def _complain_of_one(field: Field, version: int, value: Value, where: str) -> InvalidRecord | None:
    kind = field.type
    if field.fields:
        if isinstance(value, Struct):
            return complain(field.fields, version, value.fields, value.unknown, where)
        return complain(field.fields, version, value, (), where)
    if kind in INTEGERS:
        least, most = INTEGERS[kind]
        fits = hasattr(value, "__index__") and least <= index(value) <= most
    elif kind == "string":
        try:
            fits = len(value.encode()) <= MAX_STRING if isinstance(value, str) else False
        except UnicodeEncodeError:
            fits = False
    elif kind == "bool":
        fits = isinstance(value, (int, float)) and value in BOOLS  # 1 and 0 are equal to them
    else:
        types = {"float64": (float, int), "uuid": (UUID,), "bytes": (bytes,)}[kind]
        fits = isinstance(value, types)
    return None if fits else InvalidRecord(f"{_shown(value)} is no {kind}", where)


def _shown(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
