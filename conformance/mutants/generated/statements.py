"""Operators on statements: what is forgotten, done in the wrong order, or given up too early."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from .operators import put
from .sites import Function, dotted
from .text import Edit, Text

OnBlock = Callable[[Text, Function, ast.AST, Sequence[ast.stmt]], Iterator[Edit]]
"""Gives the edits that an operator has for a list of statements, with the function and what it is the body of."""

_DURABLE: Final = frozenset({"checkpoint", "commit", "flush", "fsync", "persist", "save", "store", "sync"})
"""Words of a call that makes something survive a crash."""


def forgotten(text: Text, function: Function, owner: ast.AST, block: Sequence[ast.stmt]) -> Iterator[Edit]:
    """An assignment, a call, a refusal, or all that a condition guards."""
    for statement in block:
        if isinstance(statement, ast.Expr | ast.Raise | ast.Delete | ast.AugAssign):
            yield put(statement, text, "pass")
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            if _can_be_forgotten(function, statement):
                yield put(statement, text, "pass")
        elif isinstance(statement, ast.Return) and isinstance(owner, ast.If | ast.ExceptHandler | ast.match_case):
            yield put(statement, text, "pass")
    if isinstance(owner, ast.If) and block[0] in owner.body and len(block) > 1:
        start, end = text.span(block[0])[0], text.span(block[-1])[1]
        yield Edit(start, end, "pass")


def _can_be_forgotten(function: Function, statement: ast.Assign | ast.AnnAssign) -> bool:
    """Whether what it assigns has a value without it: else the mutant falls over at the first use, which is no test."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        for each in ast.walk(target):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                if not function.bound_before(each.id, statement.lineno):
                    return False
            elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and function.is_initial:
                return False
    return True


def unsynced(text: Text, _function: Function, _owner: ast.AST, block: Sequence[ast.stmt]) -> Iterator[Edit]:
    """A call that makes something durable."""
    for statement in block:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            name = dotted(statement.value.func).rpartition(".")[2]
            if _DURABLE & set(name.strip("_").lower().split("_")):
                yield put(statement, text, "pass")


def not_reset(text: Text, function: Function, _owner: ast.AST, block: Sequence[ast.stmt]) -> Iterator[Edit]:
    """One of several attributes that keeps its value, where a method sets it to a constant or to nothing."""
    if function.is_initial:
        return
    for statement in block:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Attribute) and _is_empty(value):
            yield put(statement, text, "pass")
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for number, each in enumerate(target.elts):
                if isinstance(each, ast.Attribute):
                    left = [text.of(e) for e in target.elts if e is not each]
                    right = [text.of(e) for at, e in enumerate(value.elts) if at != number]
                    yield put(statement, text, f"{', '.join(left)} = {', '.join(right)}")


def _is_empty(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant) or (isinstance(value, ast.UnaryOp) and isinstance(value.operand, ast.Constant)):
        return True
    if isinstance(value, ast.Call):
        return not value.args and not value.keywords and isinstance(value.func, ast.Name)
    if isinstance(value, ast.Dict):
        return not value.keys
    return isinstance(value, ast.List | ast.Tuple) and not value.elts


def stale(text: Text, function: Function, _owner: ast.AST, block: Sequence[ast.stmt]) -> Iterator[Edit]:
    """Two statements in the other order: a value is read before it is brought up to date, or after."""
    for first, second in pairwise(block):
        if not _is_simple(first) or isinstance(second, ast.Return | ast.Raise | ast.Continue | ast.Break):
            continue
        depends = _touches(_written(first), _read(second)) or _touches(_written(second), _read(first))
        both_act = _acts(first) and _acts(second)
        if (depends or both_act) and not _unbinds(function, first, second):
            (start, end), (begin, stop) = text.span(first), text.span(second)
            if text.between(end, begin).count("#") == 0:
                yield Edit(start, stop, text.of(second) + text.between(end, begin) + text.of(first))


def _is_simple(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr | ast.Delete)


def _acts(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def _written(statement: ast.stmt) -> set[str]:
    """What a statement may change: attributes, elements, and whatever has a method called."""
    found = set()
    for each in ast.walk(statement):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store | ast.Del):
            found.add(dotted(each))
        elif isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store | ast.Del):
            found.add(dotted(each.value))
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and isinstance(statement, ast.Expr):
            found.add(dotted(each.func.value))
    return found


def _read(statement: ast.stmt) -> set[str]:
    return {
        dotted(each)
        for each in ast.walk(statement)
        if isinstance(each, ast.Attribute | ast.Name) and isinstance(each.ctx, ast.Load) and dotted(each) != "self"
    }


def _touches(written: set[str], read: set[str]) -> bool:
    return any(one == other or other.startswith(f"{one}.") for one in written for other in read)


def _unbinds(function: Function, first: ast.stmt, second: ast.stmt) -> bool:
    """Whether the second needs a local name that only the first gives a value."""
    given = {n.id for n in ast.walk(first) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    needed = {n.id for n in ast.walk(second) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return any(not function.bound_before(name, first.lineno) for name in given & needed)


def too_early(text: Text, function: Function, owner: ast.AST, block: Sequence[ast.stmt]) -> Iterator[Edit]:
    """The rest of what a function or a loop does, given up."""
    inner = [each for _, statements in function.blocks for each in statements]
    gives = any(isinstance(each, ast.Return) and each.value is not None for each in inner)
    yields = any(isinstance(each, ast.Yield | ast.YieldFrom) for each, _ in function.expressions)
    if not gives and not yields and not function.is_initial:
        for statement in block[1:] if owner is function.node else block:
            if not isinstance(statement, ast.Return | ast.Raise):
                yield put(statement, text, "return")
    if isinstance(owner, ast.For | ast.While):
        for statement in block:
            if isinstance(statement, ast.Continue):
                yield put(statement, text, "break")
        if block[0] in owner.body and _is_simple(block[-1]):
            yield put(block[-1], text, f"{text.of(block[-1])}; break")


ON_BLOCKS: Final[dict[str, OnBlock]] = {
    "forgotten": forgotten,
    "unsynced": unsynced,
    "not-reset": not_reset,
    "stale": stale,
    "too-early": too_early,
}
"""By the name that a mutant is told with."""
