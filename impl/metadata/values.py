"""What a metadata record is to Python: its type, its version, its fields by the schema's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

Value: TypeAlias = Any
"""``int``, ``float``, ``bool``, ``str``, ``bytes``, ``uuid.UUID``, ``None`` where the schema lets it, a tuple of these
for an array, and a ``Struct`` for each item of an array of structures. A list does for a tuple, and a mapping for a
``Struct``, where a record is written."""


class TaggedField(NamedTuple):
    """A tagged field (KIP-482) that the schema has no name for, as it was read: it is written back as it is."""

    tag: int
    data: bytes


class Struct(NamedTuple):
    """A structure inside a record, with its own tagged fields that have no name."""

    fields: Mapping[str, Value]
    unknown: tuple[TaggedField, ...] = ()


class MetadataRecord(NamedTuple):
    """One record of the metadata log.

    ``type`` is the schema's name and ``version`` the version that it is written in. ``fields`` has all fields of that
    version where it was read; where it is to be written, those that have a default may be left out. ``unknown`` are
    tagged fields of newer software, in rising order of their tags.
    """

    type: str
    version: int
    fields: Mapping[str, Value]
    unknown: tuple[TaggedField, ...] = ()
