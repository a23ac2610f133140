"""Records of numbers and short arrays of numbers, written by one call of ``struct`` each.

PartitionRecord and IsrChangeRecord, which a metadata log has most of, are such. The lengths of a record's arrays are
its shape; a log has few shapes, and each is one format. What has none (arrays of more than 62 items, tagged fields,
whatever does not fit) is written field by field. That way a PartitionRecord takes two thirds of the time. Reading by
shapes was tried, too, and takes as long as reading field by field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .reading import CODES
from .schema import Field, split

Format: TypeAlias = Callable[..., Any]

MOST = 63
"""The greatest compact length of an array in a shape: one more than its items."""
_KEPT = 1 << 12


class Shapes(dict[tuple[int, ...], "Format | None"]):
    """What packs a record, by the compact lengths of its arrays; ``None`` where these are no shape."""

    def __init__(self, make: Callable[[tuple[int, ...]], Format]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, lengths: tuple[int, ...]) -> Format | None:
        if not all(0 < each <= MOST for each in lengths):
            return None
        if len(self) >= _KEPT:
            self.clear()
        made = self[lengths] = self._make(lengths)
        return made


def has_shapes(fields: Sequence[Field], version: int) -> bool:
    """Whether a version of a record is made of numbers and arrays of numbers alone, one array at least."""
    untagged, tagged = split(fields, version)
    numbers = all(each.type in CODES and version not in each.nullable for each in untagged)
    arrays = [each.type for each in untagged if each.array]
    return numbers and not tagged and bool(arrays) and "uuid" not in arrays and "bool" not in arrays


def writing_lines(fields: Sequence[Field], version: int, head: bytes) -> tuple[list[str], str, Shapes]:
    """Lines of Python that write the fields ``f`` behind ``head``, the call that does it, and ``shapes``.

    The lines find ``pack``, ``None`` where there is no shape.
    """
    untagged, _ = split(fields, version)
    lines, given, lengths = [], [repr(head)], []
    for number, each in enumerate(untagged):
        value = f"f[{each.name!r}]"
        if each.array:
            lines.append(f"x{number} = {value}")
            lines.append(f"n{number} = len(x{number}) + 1 if type(x{number}) is tuple else 0")
            lengths.append(f"n{number}")
            given += [f"n{number}", f"*x{number}"]
        elif each.type == "uuid":
            given.append(f"{value}.int.to_bytes(16, 'big')")
        else:
            given.append(f"BOOLS[{value}]" if each.type == "bool" else value)
    lines.append(f"pack = shapes[{', '.join(lengths)},]")
    start = f">{len(head)}s"

    def made(lengths: tuple[int, ...]) -> Format:
        left = iter(lengths)
        codes = [f"B{next(left) - 1}{CODES[each.type]}" if each.array else CODES[each.type] for each in untagged]
        return struct.Struct(f"{start}{''.join(codes)}B").pack

    return lines, f"pack({', '.join(given)}, 0)", Shapes(made)
