"""What only the source of a text can tell, and a cell that a dict of writes names twice.

Python keeps one value of two that have the same key, and says nothing; terms that are equal are the same key. What else
Python does by itself is in ``lint.py``.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from types import FrameType
from typing import Any, TypeAlias

from .errors import BadText, ProtocolError
from .source_location import place

MEND = "write it once; k.ite chooses between two values"

_Position: TypeAlias = tuple[int | None, int | None, int | None, int | None]


def one_key_once(text: Callable[..., Any]) -> None:
    """Refuse a text in which a dict display has one key twice, letter for letter. Raises BadText."""
    twice = _key_twice(text)
    if twice is not None:
        key, where = twice
        raise BadText(f"the cell {key} is written twice", where, MEND)


@cache
def _key_twice(text: Callable[..., Any]) -> tuple[str, str] | None:
    parsed = parsed_source(text)
    if parsed is None:
        return None
    tree, file, first = parsed
    for found in ast.walk(tree):
        keys: set[str] = set()
        for key in found.keys if isinstance(found, ast.Dict) else ():
            if key is None or any(isinstance(part, ast.Call) for part in ast.walk(key)):
                continue
            written = ast.unparse(key)
            if written in keys:
                return written, place(file, first + key.lineno - 1)
            keys.add(written)
    return None


def parsed_source(text: Callable[..., Any]) -> tuple[ast.AST, str, int] | None:
    """The text's syntax tree, its file and its first line; None where the source is not to be had."""
    try:
        lines, first = inspect.getsourcelines(text)
        return ast.parse(textwrap.dedent("".join(lines))), inspect.getsourcefile(text) or "the protocol", first
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def as_many_cells_as_keys(caller: FrameType, writes: Mapping[str, object]) -> None:
    """Refuse an update, called in this frame, whose dicts have fewer keys than stand in its text. Raises ProtocolError.

    A text whose source is not to be had is let pass.
    """
    positions = list(caller.f_code.co_positions())
    file = caller.f_code.co_filename
    linecache.checkcache(file)
    written = _dicts("".join(linecache.getlines(file))).get(positions[caller.f_lasti // 2], {})
    for name, keys in written.items():
        what = writes.get(name)
        if isinstance(what, Mapping) and len(what) < len(keys):
            raise ProtocolError(f"two of the cells of {name} in {{{', '.join(keys)}}} are the same", MEND)


@cache
def _dicts(source: str) -> dict[_Position, dict[str, list[str]]]:
    """For each call of a file, by its place: of each keyword that is a dict display its keys, as they are written."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    found: dict[_Position, dict[str, list[str]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            place = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            for each in node.keywords:
                if each.arg and isinstance(each.value, ast.Dict) and None not in each.value.keys:
                    found.setdefault(place, {})[each.arg] = [ast.unparse(key) for key in each.value.keys if key]
    return found
