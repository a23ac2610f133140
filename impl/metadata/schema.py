"""Schemas of metadata records, read from the JSON form of Kafka's message generator and checked.

KIP-631, "Record Formats", gives records in this form. What is checked is what the generator checks (``MessageSpec``,
``StructSpec``, ``FieldSpec``, ``Versions`` in Kafka). The generator's form is ``"type": "metadata"`` and ``"bool"``;
the page has ``"metadataRecord"`` and ``"boolean"``, which mean the same. Lines that begin with ``//`` are comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any
from uuid import UUID

from .errors import InvalidSchema
from .values import Value

MAX_VERSION = 0x7FFF
INTEGERS = {
    "int8": (-1 << 7, (1 << 7) - 1),
    "int16": (-1 << 15, (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-1 << 31, (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-1 << 63, (1 << 63) - 1),
}
"""Least and greatest value of each type of integer."""
SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}
"""Bytes of the types that have a fixed size."""
_NAMED = frozenset({*SIZES, "string", "bytes"})
_ALIASES = {"boolean": "bool"}
_KINDS = ("metadata", "metadataRecord")
_VERSIONS = re.compile(r"(\d{1,5})(?:(\+)|-(\d{1,5}))?")
_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_SCHEMA_KEYS = frozenset({"apiKey", "type", "name", "validVersions", "flexibleVersions", "fields"})
_FIELD_KEYS = frozenset(
    {"name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "default", "mapKey", "fields"}
    | {"ignorable", "entityType", "about"}
)


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions from ``lowest`` to ``highest``, both included; none where the lowest is the higher one."""

    lowest: int
    highest: int

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def covers(self, other: Versions) -> bool:
        """Whether all versions of another range are of this one."""
        return not other or (self.lowest <= other.lowest and other.highest <= self.highest)


NO_VERSIONS = Versions(1, 0)


@dataclass(frozen=True, slots=True)
class Field:
    """A field. ``type`` is that of an item where ``array`` is set, and the structure's name where it has ``fields``.

    ``default`` is what stands for a field that is left out, ``None`` too; ``required`` tells that it may not be: an
    untagged field to which the schema gives no default. ``tag`` is ``None`` where the field is never tagged.
    """

    name: str
    type: str
    array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    default: Value
    required: bool
    map_key: bool = False
    fields: tuple[Field, ...] = ()
    about: str = ""

    @property
    def fixed(self) -> bool:
        """Whether it is one value of a fixed size."""
        return not self.array and self.type in SIZES


@dataclass(frozen=True, slots=True)
class Schema:
    """One type of record: ``api_key`` is what is written for its name."""

    name: str
    api_key: int
    versions: Versions
    fields: tuple[Field, ...] = field(default=())

    def of(self, version: int) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
        """The untagged fields of a version, in order, and the tagged ones, by their tags."""
        return split(self.fields, version)


def split(fields: Iterable[Field], version: int) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """The untagged of some fields that a version has, in order, and the tagged ones, by their tags."""
    there = [each for each in fields if version in each.versions]
    tagged = sorted((each for each in there if version in each.tagged), key=lambda each: each.tag or 0)
    return tuple(each for each in there if version not in each.tagged), tuple(tagged)


def parse_schema(text: str, path: str) -> Schema:
    """A schema from its JSON. ``path`` stands in errors. Raises ``InvalidSchema``."""
    # A comment becomes an empty line, so that the decoder's line numbers are the file's.
    plain = re.sub(r"(?m)^[ \t]*//.*$", "", text)
    try:
        tree = json.loads(plain, object_pairs_hook=_no_duplicates)
    except ValueError as error:  # JSONDecodeError is one
        raise InvalidSchema(f"not JSON: {error}", path) from None
    except RecursionError:
        raise InvalidSchema("nested too deep", path) from None
    return _Reader(path).schema(tree)


@cache
def load_schemas() -> tuple[Schema, ...]:
    """The schemas of KIP-631's records and of those that we add to them, by their API keys."""
    folder = files(__package__) / "schemas"
    found = [
        parse_schema(each.read_text(encoding="utf-8"), each.name)
        for each in folder.iterdir()
        if each.name.endswith(".json")
    ]
    return check_schemas(sorted(found, key=lambda each: each.api_key))


def check_schemas(schemas: Iterable[Schema]) -> tuple[Schema, ...]:
    """The schemas, no two of one name or API key. Raises ``InvalidSchema``."""
    found = tuple(schemas)
    for what in ("name", "api_key"):
        seen: dict[Any, Schema] = {}
        for each in found:
            other = seen.setdefault(getattr(each, what), each)
            if other is not each:
                raise InvalidSchema(f"{what} {getattr(each, what)} is that of {other.name} too", each.name)
    return found


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a key stands twice among {', '.join(name for name, _ in pairs)}")
    return found


class _Reader:
    """Reads the tree of one file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def bad(self, what: str) -> InvalidSchema:
        return InvalidSchema(what, self._path)

    def schema(self, tree: Any) -> Schema:
        given = self._object(tree, "the schema", _SCHEMA_KEYS)
        name = self._name(given, "the schema")
        if given.get("type") not in _KINDS:
            raise self.bad(f"{name}: type is {given.get('type')!r}, not one of {', '.join(_KINDS)}")
        key = given.get("apiKey")
        if type(key) is not int or not 0 <= key <= MAX_VERSION:
            raise self.bad(f"{name}: apiKey is {key!r}, not a number from 0 to {MAX_VERSION}")
        valid = self._versions(given, "validVersions", name)
        if valid.highest == MAX_VERSION:
            raise self.bad(f"{name}: validVersions has no end")
        flexible = self._versions(given, "flexibleVersions", name)
        if not flexible.covers(valid):
            raise self.bad(f"{name}: flexibleVersions lack some of validVersions: only the flexible format is written")
        return Schema(name, key, valid, self._fields(given, name, top=True))

    def _object(self, tree: Any, where: str, keys: frozenset[str]) -> Mapping[str, Any]:
        if not isinstance(tree, dict):
            raise self.bad(f"{where} is no object")
        for key in tree:
            if key not in keys:
                raise self.bad(f"{where}: no such key as {key!r}")
        return tree

    def _name(self, given: Mapping[str, Any], where: str) -> str:
        name = given.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self.bad(f"{where}: name is {name!r}, not a word that begins with a capital")
        return name

    def _versions(self, given: Mapping[str, Any], key: str, where: str, default: Versions | None = None) -> Versions:
        text = given.get(key)
        if text is None and default is not None:
            return default
        if text == "none":
            return NO_VERSIONS
        match = _VERSIONS.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise self.bad(f"{where}: {key} is {text!r}, not like 0, 0-2, 1+ or none")
        lowest = int(match[1])
        highest = MAX_VERSION if match[2] else int(match[3] or lowest)
        if not lowest <= highest <= MAX_VERSION:
            raise self.bad(f"{where}: {key} is {text!r}, from {lowest} to {highest}")
        return Versions(lowest, highest)

    def _fields(self, given: Mapping[str, Any], where: str, *, top: bool = False) -> tuple[Field, ...]:
        rows = given.get("fields", [])
        if not isinstance(rows, list):
            raise self.bad(f"{where}: fields is no list")
        found = tuple(self._field(row, where, top) for row in rows)
        names = [each.name for each in found]
        for name in names:
            if names.count(name) > 1:
                raise self.bad(f"{where}: two fields are named {name}")
        tags = sorted(each.tag for each in found if each.tag is not None)
        if tags != list(range(len(tags))):
            raise self.bad(f"{where}: tags are {', '.join(map(str, tags))}, not each number from 0 on once")
        return found

    def _field(self, tree: Any, within: str, top: bool) -> Field:
        given = self._object(tree, f"a field of {within}", _FIELD_KEYS)
        name = self._name(given, f"a field of {within}")
        where = f"{within}.{name}"
        kind, array = given.get("type"), False
        if isinstance(kind, str) and kind.startswith("[]"):
            kind, array = kind[2:], True
        kind = _ALIASES.get(str(kind), str(kind))
        inner = self._fields(given, where)
        if kind not in _NAMED:
            if not array or not _NAME.fullmatch(kind):
                raise self.bad(f"{where}: no such type as {given.get('type')!r}")
            if not inner:
                raise self.bad(f"{where}: the structure {kind} has no fields")
        elif inner:
            raise self.bad(f"{where}: a field of type {kind} has fields")
        versions = self._versions(given, "versions", where)
        nullable = self._versions(given, "nullableVersions", where, NO_VERSIONS)
        if nullable and not array and kind not in ("string", "bytes"):
            raise self.bad(f"{where}: a value of type {kind} cannot be null")
        tagged = self._versions(given, "taggedVersions", where, NO_VERSIONS)
        tag = self._tag(given, where, versions, nullable, tagged)
        map_key = given.get("mapKey", False)
        if type(map_key) is not bool or (map_key and (top or tag is not None)):
            raise self.bad(f"{where}: mapKey is {map_key!r}; untagged fields of structures alone can be keys")
        default = self._default(given.get("default"), kind, array, nullable, where)
        required = "default" not in given and not tagged.covers(versions)
        about = str(given.get("about", ""))
        return Field(name, kind, array, versions, nullable, tagged, tag, default, required, map_key, inner, about)

    def _tag(
        self, given: Mapping[str, Any], where: str, versions: Versions, nullable: Versions, tagged: Versions
    ) -> int | None:
        tag = given.get("tag")
        if isinstance(tag, str) and tag.isdecimal():
            tag = int(tag)  # some of Kafka's own schemas quote it
        if tag is None and not tagged:
            return None
        if type(tag) is not int or not 0 <= tag <= MAX_VERSION or not tagged:
            raise self.bad(f"{where}: a tag needs taggedVersions, and they a tag from 0 on; it is {tag!r}")
        if tagged.highest != MAX_VERSION:
            raise self.bad(f"{where}: taggedVersions end, and must not")
        if not versions.covers(tagged):
            raise self.bad(f"{where}: taggedVersions has some that versions lack")
        if nullable and nullable.lowest <= tagged.highest and not nullable.covers(tagged):
            raise self.bad(f"{where}: null in some tagged versions, and not in others")
        return tag

    def _default(self, text: Any, kind: str, array: bool, nullable: Versions, where: str) -> Value:
        if text == "null":
            if not nullable:
                raise self.bad(f"{where}: the default is null, and no version lets it be")
            return None
        if array:
            if text not in (None, ""):
                raise self.bad(f"{where}: the default of an array can be null or nothing, not {text!r}")
            return ()
        word = "" if text is None else str(text).lower() if isinstance(text, bool) else str(text)
        try:
            if kind in INTEGERS:
                value = int(word or "0", 16 if word.lower().startswith("0x") else 10)
                if not INTEGERS[kind][0] <= value <= INTEGERS[kind][1]:
                    raise ValueError
                return value
            if kind == "float64":
                return float(word or "0")
            if kind == "bool":
                return {"": False, "false": False, "true": True}[word.lower()]
            if kind == "uuid":
                return UUID(int=0) if not word else UUID(word)
            if kind == "bytes":
                if word:
                    raise ValueError
                return b""
        except (ValueError, KeyError):
            raise self.bad(f"{where}: {text!r} is no default for a field of type {kind}") from None
        return word
