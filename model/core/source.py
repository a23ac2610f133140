"""What only the source of a text can tell: a cell that a dict of writes names twice, and what Python decides by itself.

Python keeps one value of two that have the same key, and says nothing; terms that are equal are the same key. And it
asks nobody what ``is`` gives, nor, of most terms, whether one is in a set or a key of a dict: a term is never the same
object as a number, so the answer is a constant, and the condition around it says nothing.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Collection, Mapping
from functools import cache
from types import FrameType
from typing import Any, TypeAlias

from .errors import BadText, ProtocolError
from .places import place

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
    parsed = _parsed(text)
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


def python_decides_nothing(text: Callable[..., Any]) -> None:
    """Refuse a text that compares what it reads of the state by ``is`` or ``in``, or does nothing with a condition.

    What ``k.rules`` say is Python's, and may be asked so. Raises BadText.
    """
    found = _decided(text)
    if found is not None:
        what, where, mend = found
        raise BadText(what, where, mend)


@cache
def _decided(text: Callable[..., Any]) -> tuple[str, str, str] | None:
    parsed = _parsed(text)
    if parsed is None:
        return None
    tree, file, first = parsed
    function = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), None)
    if function is None:
        return None
    terms = _names_of_terms(function)
    # Not its decorators: what they ask of the rules is Python's.
    for node in (part for statement in function.body for part in ast.walk(statement)):
        where = place(file, first + getattr(node, "lineno", 1) - 1)
        if isinstance(node, ast.Compare) and _reads(node, terms):
            for operator in node.ops:
                if isinstance(operator, ast.Is | ast.IsNot):
                    return f"{ast.unparse(node)} is decided by Python, once and for all", where, "write == or !="
                if isinstance(operator, ast.In | ast.NotIn):
                    mend = "write k.member for a set of replicas, and else k.any(x == a, x == b)"
                    return f"{ast.unparse(node)} is decided by Python, once and for all", where, mend
        if isinstance(node, ast.Call) and _looks_up(node, terms):
            return f"{ast.unparse(node)} is looked up by Python, which knows no values", where, "write k.ite"
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare) and _reads(node.value, terms):
            mend = "join it to the others by k.all, or take it out"
            return f"nothing is done with {ast.unparse(node)}", where, mend
    return None


def _looks_up(call: ast.Call, names: Collection[str]) -> bool:
    """Whether this asks a dict for a key that is a term, and has a value ready where it is not there."""
    method = isinstance(call.func, ast.Attribute) and call.func.attr == "get"
    return method and any(_reads(each, names) for each in call.args[:1])


def _names_of_terms(function: ast.FunctionDef) -> frozenset[str]:
    """The names, in a text, of what depends on the state: it, the parameters, and what is made of them.

    The algebra is none: ``k.rules`` and what is made of them alone are Python's.
    """
    found = {each.arg for each in (*function.args.args[1:], *function.args.kwonlyargs)}
    body = [part for statement in function.body for part in ast.walk(statement)]
    found |= {each.arg for node in body if isinstance(node, ast.Lambda) for each in node.args.args}
    while True:
        more = {
            name.id
            for node in body
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value and _reads(node.value, found)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        }
        if more <= found:
            return frozenset(found)
        found |= more


def _reads(node: ast.AST, names: Collection[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))


def _parsed(text: Callable[..., Any]) -> tuple[ast.AST, str, int] | None:
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
