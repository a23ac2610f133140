"""Operators on expressions: each proposes, for one expression, other texts in its place.

What they imitate: a boundary that is off by one, a condition that is forgotten or turned round, two numbers of one kind
that are taken for each other, a member that is left out of a set.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Final

from .sites import dotted
from .text import Edit, Text

OnExpression = Callable[[Text, ast.expr, ast.AST], Iterator[Edit]]
"""Gives the edits that an operator has for an expression with this parent."""

_TOKENS: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_OTHERS: Final[dict[type[ast.cmpop], tuple[str, ...]]] = {
    ast.Lt: ("<=",),
    ast.LtE: ("<",),
    ast.Gt: (">=",),
    ast.GtE: (">",),
    ast.Eq: ("!=", ">=", "<="),
    ast.NotEq: ("==", ">", "<"),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_NUMBERS: Final = frozenset(
    {"begin", "count", "end", "epoch", "generation", "hw", "index", "last", "leo", "length", "limit", "number"}
    | {"offset", "ordinal", "position", "round", "sequence", "size", "start", "term", "timestamp", "version"}
    | {"watermark"}
)
"""Words at whose end a name's value is taken for a number that counts something."""


def put(node: ast.AST, source: Text, new: str) -> Edit:
    """Another text in a node's place."""
    start, end = source.span(node)
    return Edit(start, end, new)


def last_word(node: ast.AST) -> str:
    """``epoch`` of ``self._leader_epoch``; empty for what is no name."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return ""
    name = node.id if isinstance(node, ast.Name) else node.attr
    return name.strip("_").rpartition("_")[2].lower()


def _is_small(node: ast.AST) -> bool:
    """A name or attribute that is written small: neither a class nor a constant."""
    return isinstance(node, ast.Name | ast.Attribute) and not dotted(node).rpartition(".")[2][:1].isupper()


def compared(text: Text, node: ast.expr, _parent: ast.AST) -> Iterator[Edit]:
    """Another comparison: boundaries moved by one, equality loosened to one side, membership turned round."""
    if not isinstance(node, ast.Compare):
        return
    operands = [node.left, *node.comparators]
    for left, kind, right in zip(operands, node.ops, operands[1:], strict=False):
        gap = Edit(text.span(left)[1], text.span(right)[0], "")
        words = text.between(gap.start, gap.end)
        pattern = re.escape(_TOKENS[type(kind)]).replace(r"\ ", r"\s+")
        found = re.search(rf"(?<![\w<>!=]){pattern}(?![\w<>=])", words)
        if found is None:
            continue
        at = gap.start + len(words[: found.start()].encode())
        # What is no number has no order.
        ordered = _may_be_number(left) and _may_be_number(right)
        for other in _OTHERS[type(kind)]:
            if ordered or other not in ("<", ">", "<=", ">="):
                yield Edit(at, at + len(found[0].encode()), other)


def _may_be_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return not (node.attr.isupper() and node.value.id[:1].isupper())  # a member of an enumeration
    return not isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.JoinedStr | ast.Lambda)


def turned_round(text: Text, node: ast.expr, parent: ast.AST) -> Iterator[Edit]:
    """A condition negated."""
    if isinstance(parent, ast.If | ast.While | ast.IfExp) and parent.test is node:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield put(node, text, in_brackets(text, node.operand))
        elif not (isinstance(node, ast.Constant) and node.value is True):
            yield put(node, text, f"not {in_brackets(text, node)}")


def joined(text: Text, node: ast.expr, _parent: ast.AST) -> Iterator[Edit]:
    """``and`` for ``or`` and the other way round, and one of the conditions forgotten."""
    if not isinstance(node, ast.BoolOp):
        return
    word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    parts = [in_brackets(text, each) for each in node.values]
    yield put(node, text, f"({f' {other} '.join(parts)})")
    for number in range(len(parts)):
        left = [*parts[:number], *parts[number + 1 :]]
        yield put(node, text, f"({f' {word} '.join(left)})" if len(left) > 1 else left[0])


def in_brackets(text: Text, node: ast.expr) -> str:
    """An expression as it may stand beside any operator."""
    simple = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Constant)
    return text.of(node) if simple else f"({text.of(node)})"


def smallest_and_largest(text: Text, node: ast.expr, _parent: ast.AST) -> Iterator[Edit]:
    """``max`` for ``min`` and the other way round."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        yield put(node.func, text, "max" if node.func.id == "min" else "min")


def off_by_one(text: Text, node: ast.expr, parent: ast.AST) -> Iterator[Edit]:
    """An integer one more or less; what is added or taken away forgotten; a number of one's own one more or less."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield put(node, text, str(node.value + 1))
        yield put(node, text, str(node.value - 1) if node.value else "(-1)")
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        if isinstance(node.right, ast.Constant):
            if type(node.right.value) is int:
                yield put(node, text, f"({text.of(node.left)})")
        elif _may_be_number(node.left) and _may_be_number(node.right):
            yield put(node, text, f"({text.of(node)} + 1)")
            yield put(node, text, f"({text.of(node)} - 1)")
    elif last_word(node) in _NUMBERS and _is_small(node) and _is_value(node, parent):
        yield put(node, text, f"{text.of(node)} + 1")
        yield put(node, text, f"{text.of(node)} - 1")


def _is_value(node: ast.expr, parent: ast.AST) -> bool:
    """Whether it is given on as it is: an argument, a returned value, an assigned one."""
    match parent:
        case ast.Call():
            return node in parent.args
        case ast.keyword() | ast.Return() | ast.Assign() | ast.AugAssign() | ast.AnnAssign():
            return parent.value is node
        case _:
            return False


def swapped(text: Text, node: ast.expr, _parent: ast.AST) -> Iterator[Edit]:
    """Two arguments of a call, or two values of a tuple, that look alike, for each other."""
    if isinstance(node, ast.Call):
        # Whose order makes no difference is not worth a mutant.
        given = [] if dotted(node.func) in ("min", "max") else node.args
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        given = node.elts
    else:
        return
    for number, first in enumerate(given):
        for second in given[number + 1 :]:
            if _alike(first, second):
                (start, end), (begin, stop) = text.span(first), text.span(second)
                yield Edit(start, stop, text.of(second) + text.between(end, begin) + text.of(first))


def _alike(first: ast.expr, second: ast.expr) -> bool:
    if not (_is_small(first) and _is_small(second)) or dotted(first) == dotted(second):
        return False
    both = {last_word(first), last_word(second)}
    return len(both) == 1 or both <= _NUMBERS


def left_out(text: Text, node: ast.expr, _parent: ast.AST) -> Iterator[Edit]:
    """An element left out of a set, a side of a union, what is taken away from a set."""
    if isinstance(node, ast.Set) and len(node.elts) > 1:
        for number in range(len(node.elts)):
            kept = [text.of(each) for each in (*node.elts[:number], *node.elts[number + 1 :])]
            yield put(node, text, f"{{{', '.join(kept)}}}")
    elif isinstance(node, ast.Call) and dotted(node.func) in ("set", "frozenset") and node.args:
        yield put(node, text, f"{dotted(node.func)}()")
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield put(node, text, f"({text.of(node.left)})")
        yield put(node, text, f"({text.of(node.right)})")
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_set(node.right):
        yield put(node, text, f"({text.of(node.left)})")


def _is_set(node: ast.expr) -> bool:
    return isinstance(node, ast.Set) or (isinstance(node, ast.Call) and dotted(node.func) in ("set", "frozenset"))


def flag(text: Text, node: ast.expr, parent: ast.AST) -> Iterator[Edit]:
    """True for False and the other way round."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool) and not isinstance(parent, ast.While):
        yield put(node, text, str(not node.value))


ON_EXPRESSIONS: Final[dict[str, OnExpression]] = {
    "comparison": compared,
    "negation": turned_round,
    "and-or": joined,
    "min-max": smallest_and_largest,
    "off-by-one": off_by_one,
    "swapped": swapped,
    "left-out": left_out,
    "flag": flag,
}
"""By the name that a mutant is told with."""
