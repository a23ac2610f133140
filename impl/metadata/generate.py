"""Readers and writers as Python source, one of each for every version of a schema, compiled once.

The source of a reader goes from field to field with no look at the schema: neighbours of a fixed size are one call of
``struct``, and small arrays of numbers another, with their length. ``w`` tells where it is, for errors. The source of a
writer hopes for the best: where anything does not fit, ``complain`` looks for it afterwards.

Of a structure, a reader is ``read(data, position) -> (fields, unknown tagged fields, position behind)`` and a writer
``write(fields, unknown tagged fields) -> bytes``. Those of a record are made of these: its ``read(data, position of
the payload) -> MetadataRecord`` asks for the end of the data, too, and its ``write`` has type and version in front.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from . import reading, writing
from .errors import CorruptRecord
from .reading import CODES, Malformed, Reader
from .schema import SIZES, Field, Schema, split
from .shapes import has_shapes, writing_lines
from .values import MetadataRecord, Struct, TaggedField, Value

StructReader: TypeAlias = Callable[[bytes, int], tuple[dict[str, Value], tuple[TaggedField, ...], int]]
StructWriter: TypeAlias = Callable[[Mapping[str, Value], tuple[TaggedField, ...]], bytes]
RecordReader: TypeAlias = Callable[[bytes, int], MetadataRecord]

_ERRORS = (IndexError, struct.error, UnicodeDecodeError, Malformed)


@dataclass
class _Source:
    """Lines of one function, and what its names stand for."""

    names: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def name(self, stem: str, value: Any) -> str:
        """A name for a value."""
        found = f"{stem}{len(self.names)}"
        self.names[found] = value
        return found

    def add(self, *lines: str) -> None:
        """More lines of the body."""
        self.lines += lines

    def compiled(self, head: str, title: str) -> Any:
        """The function."""
        function = head.partition("(")[0]
        text = "\n".join([f"def {head}:", *(f"    {line}" for line in self.lines)])
        namespace = dict(self.names)
        exec(compile(text, f"<{title}>", "exec"), namespace)  # noqa: S102 - our own text, from schemas that were checked
        return namespace[function]


def least_size(item: Field, version: int) -> int:
    """Bytes that one value of a field's type has at least, of which an array's claim is held to."""
    if not item.fields:
        return SIZES.get(item.type, 1)
    untagged, _ = split(item.fields, version)
    return 1 + sum(1 if each.array else least_size(each, version) for each in untagged)


def _runs(fields: Sequence[Field]) -> Iterator[list[Field]]:
    """The fields, neighbours of a fixed size together."""
    run: list[Field] = []
    for each in fields:
        if each.fixed:
            run.append(each)
            continue
        if run:
            yield run
        yield [each]
        run = []
    if run:
        yield run


def struct_reader(fields: Sequence[Field], version: int, name: str) -> StructReader:
    """The reader of a record's or structure's fields. It raises ``CorruptRecord`` with ``name`` and the field's."""
    untagged, tagged = split(fields, version)
    source = _Source({"CorruptRecord": CorruptRecord, "corrupt": reading.corrupt, "uuid_of": reading.uuid_of})
    places: list[tuple[tuple[str, int], ...]] = []
    values: dict[str, str] = {}
    for run in _runs(untagged):
        source.add(f"w = {len(places)}")
        places.append(tuple((each.name, SIZES[each.type] if each.fixed else 0) for each in run))
        for each in run:
            values[each.name] = f"v{len(values)}"
        if run[0].fixed:
            _read_run(source, run, [values[each.name] for each in run])
        else:
            _read_varying(source, run[0], values[run[0].name], version, name)
    source.add(f"w = {len(places)}")
    places.append((("tagged fields", 0),))
    readers = {each.tag: _value_reader(each, version, f"{name}.{each.name}") for each in tagged}
    source.names["read_tags"] = reading.read_tags
    tags, tag_readers = source.name("none", {}), source.name("tags", readers)
    source.add("if data[p]:", f"    known, unknown, p = read_tags(data, p, {tag_readers})")
    source.add("else:", f"    known, unknown = {tags}, ()", "    p += 1")
    for each in tagged:
        values[each.name] = f"known.get({each.tag}, {source.name('default', each.default)})"
    items = ", ".join(f"{each.name!r}: {values[each.name]}" for each in fields if each.name in values)
    source.add(f"return {{{items}}}, unknown, p")
    errors, runs = source.name("errors", _ERRORS), source.name("runs", tuple(places))
    source.lines = [
        "w = 0",
        "try:",
        *(f"    {line}" for line in source.lines),
        f"except {errors} as error:",
        f"    raise corrupt(error, data, p, {name!r}, {runs}[w]) from None",
    ]
    reader: StructReader = source.compiled("read(data, p)", f"reader of {name}")
    return reader


def _read_run(source: _Source, run: list[Field], values: list[str]) -> None:
    form = struct.Struct(">" + "".join(CODES[each.type] for each in run))
    source.add(f"{', '.join(values)}, = {source.name('unpack', form.unpack_from)}(data, p)")
    for each, value in zip(run, values, strict=True):
        if each.type == "uuid":
            source.add(f"{value} = uuid_of({value})")
    source.add(f"p += {form.size}")


def _read_varying(source: _Source, item: Field, value: str, version: int, name: str) -> None:
    nullable = version in item.nullable
    slow = source.name("read", _value_reader(item, version, f"{name}.{item.name}"))
    if item.array and item.type in CODES and item.type != "uuid":
        code, size = CODES[item.type], SIZES[item.type]
        small = source.name("small", reading.unpackers(code))
        step = f"p += {size} * n - {size - 1}" if size > 1 else "p += n"
        source.add("n = data[p]", "if 0 < n < 64:", f"    {value} = {small}[n](data, p + 1)", f"    {step}")
    elif not item.array and item.type == "string":
        # One byte of length, itself counted: a string of at most 126 bytes ends at p + n.
        source.add("n = data[p]", "if 0 < n < 128 and p + n <= len(data):")
        source.add(f"    {value} = data[p + 1 : p + n].decode()", "    p += n")
    elif nullable:
        source.add("if data[p] == 0:", f"    {value} = None", "    p += 1")
    else:
        source.add(f"{value}, p = {slow}(data, p)")
        return
    source.add("else:", f"    {value}, p = {slow}(data, p)")


def _value_reader(item: Field, version: int, name: str) -> Reader:
    """Reads one value of a field, whatever its type."""
    nullable = version in item.nullable
    kind = item.type
    if item.array and kind in CODES and kind != "uuid":
        code, size = CODES[kind], SIZES[kind]
        return lambda data, position: reading.read_numbers(data, position, nullable, code, size)
    if item.array:
        one, least = _item_reader(item, version, name), least_size(item, version)
        return lambda data, position: reading.read_items(data, position, nullable, one, least)
    return _item_reader(item, version, name)


def _item_reader(item: Field, version: int, name: str) -> Reader:
    nullable = version in item.nullable and not item.array
    if item.fields:
        inner = struct_reader(item.fields, version, name)

        def structure(data: bytes, position: int) -> tuple[Value, int]:
            fields, unknown, after = inner(data, position)
            return Struct(fields, unknown), after

        return structure
    if item.type == "uuid":
        return reading.read_uuid
    if item.type == "string":
        return lambda data, position: reading.read_string(data, position, nullable)
    if item.type == "bytes":
        return lambda data, position: reading.read_bytes(data, position, nullable)
    form = struct.Struct(">" + CODES[item.type])

    def number(data: bytes, position: int) -> tuple[Value, int]:
        return form.unpack_from(data, position)[0], position + form.size

    return number


def struct_writer(fields: Sequence[Field], version: int, name: str) -> StructWriter:
    """The writer of a record's or structure's fields. It raises whatever Python raises where something does not fit."""
    untagged, tagged = split(fields, version)
    source = _Source({"BOOLS": writing.BOOLS, "sequence": writing.sequence, "write_tags": writing.write_tags})
    names = frozenset(each.name for each in (*untagged, *tagged))
    defaults = {each.name: each.default for each in (*untagged, *tagged) if not each.required}
    source.names["complete"] = writing.complete
    source.add(f"if len(f) != {len(names)}:")
    source.add(f"    f = complete(f, {source.name('defaults', defaults)}, {source.name('names', names)})")
    parts: list[str] = []
    for run in _runs(untagged):
        if run[0].fixed:
            form = struct.Struct(">" + "".join(CODES[each.type] for each in run))
            given = ", ".join(_fixed(each) for each in run)
            parts.append(f"{source.name('pack', form.pack)}({given})")
        else:
            parts.append(_write_varying(source, run[0], len(parts), version, name))
    if tagged:
        source.add("tags = []")
        for each in tagged:
            source.add(f"x = f[{each.name!r}]")
            if each.array:
                source.add("if x is not None: x = tuple(sequence(x))")
            source.add(f"if x != {source.name('default', each.default)}:")
            write = source.name("write", _value_writer(each, version, f"{name}.{each.name}"))
            source.add(f"    tags.append(({each.tag}, {write}(x)))")
    known = source.name("tags", frozenset(each.tag for each in tagged))
    there = "tags or u" if tagged else "u"
    parts.append(f"(write_tags({'tags' if tagged else '()'}, u, {known}) if {there} else b'\\0')")
    source.add(f"return b''.join(({', '.join(parts)},))")
    writer: StructWriter = source.compiled("write(f, u)", f"writer of {name}")
    return writer


def _fixed(item: Field) -> str:
    value = f"f[{item.name!r}]"
    if item.type == "bool":
        return f"BOOLS[{value}]"
    return f"{value}.int.to_bytes(16, 'big')" if item.type == "uuid" else value


def _write_varying(source: _Source, item: Field, number: int, version: int, name: str) -> str:
    """The expression for a field's bytes; what has to be known for it goes before."""
    value = f"x{number}"
    source.add(f"{value} = f[{item.name!r}]")
    writer = source.name("write", _value_writer(item, version, f"{name}.{item.name}"))
    if item.array and item.type in CODES and item.type not in ("uuid", "bool"):
        packs = source.name("packs", writing.packers(CODES[item.type]))
        null = f"if {value} is None else " if version in item.nullable else ""
        source.add(f"if type({value}) is not tuple{f' and {value} is not None' if null else ''}:")
        source.add(f"    {value} = sequence({value})")
        small = f"{packs}[len({value}) + 1](len({value}) + 1, *{value})"
        null = f"b'\\0' {null}" if null else ""
        return f"({null}{small} if len({value}) < 63 else {writer}({value}))"
    return f"{writer}({value})"


def _value_writer(item: Field, version: int, name: str) -> Callable[[Any], bytes]:
    """Writes one value of a field, whatever its type."""
    one = _item_writer(item, version, name)
    if not item.array:
        return one
    nullable = version in item.nullable
    numbers = CODES.get(item.type) if item.type not in ("uuid", "bool") else None

    def array(value: Any) -> bytes:
        if value is None and nullable:
            return b"\0"
        items = writing.sequence(value)
        return writing.write_numbers(items, numbers) if numbers else writing.write_items(items, one)

    return array


def _item_writer(item: Field, version: int, name: str) -> Callable[[Any], bytes]:
    nullable = version in item.nullable and not item.array
    if item.fields:
        inner = struct_writer(item.fields, version, name)

        def structure(value: Any) -> bytes:
            fields, unknown = writing.structure(value)
            return inner(fields, unknown)

        return structure
    if item.type in ("string", "bytes"):
        write = writing.write_string if item.type == "string" else writing.write_bytes

        def text(value: Any) -> bytes:
            if value is None and not nullable:
                raise writing.Unwritable
            return write(value)

        return text
    if item.type == "uuid":
        return lambda value: value.int.to_bytes(16, "big")
    form = struct.Struct(">" + CODES[item.type])
    if item.type == "bool":
        return lambda value: form.pack(writing.BOOLS[value])
    return form.pack


def record_reader(schema: Schema, version: int) -> RecordReader:
    """The reader of a version of a record. It raises ``CorruptRecord``."""
    name, new = schema.name, tuple.__new__  # the named tuple's own takes twice as long
    steps = struct_reader(schema.fields, version, f"{name} {version}")

    def read(data: bytes, position: int) -> MetadataRecord:
        fields, unknown, end = steps(data, position)
        if end != len(data):
            raise CorruptRecord(f"{len(data) - end} bytes are left after a {name} of version {version}", end)
        return new(MetadataRecord, (name, version, fields, unknown))

    return read


def record_writer(schema: Schema, version: int, head: bytes) -> StructWriter:
    """The writer of a version of a record, with ``head`` in front. It raises as ``struct_writer``'s does."""
    steps = struct_writer(schema.fields, version, f"{schema.name} {version}")
    if not has_shapes(schema.fields, version):
        return lambda fields, unknown: head + steps(fields, unknown)
    lines, call, shapes = writing_lines(schema.fields, version, head)
    source = _Source({"steps": steps, "shapes": shapes, "BOOLS": writing.BOOLS})
    count = len(split(schema.fields, version)[0])
    source.add(f"if not u and len(f) == {count}:", *(f"    {line}" for line in lines))
    source.add("    if pack is not None:", f"        return {call}")
    source.add(f"return {head!r} + steps(f, u)")
    writer: StructWriter = source.compiled("write(f, u)", f"writer of {schema.name} {version}")
    return writer
