"""Where a text can be mutated: what its functions do, and not what they say.

Left out by rule: docstrings, annotations, decorators, assertions, the arguments of what is raised (error texts), calls
that log or count, string literals, and methods that only show an object. What stands outside of functions, and the
default values of parameters, are names, types and settings, and are left out too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

_SHOWS: Final = frozenset({"__repr__", "__str__", "__format__", "__hash__", "to_json"})
_LOGGERS: Final = frozenset({"logging", "logger", "warnings", "metrics", "metric"})
_LOGS: Final = frozenset({"debug", "info", "warning", "error", "exception", "critical", "warn"})
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Function:
    """A function or method. ``blocks``: its lists of statements, each with what it belongs to.

    ``expressions``: those that may be changed, each with its parent. Nested functions are functions of their own;
    lambdas belong to the function that they stand in.
    """

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    blocks: list[tuple[ast.AST, Sequence[ast.stmt]]] = field(default_factory=list)
    expressions: list[tuple[ast.expr, ast.AST]] = field(default_factory=list)
    filters: list[ast.expr] = field(default_factory=list)
    """The conditions of its comprehensions."""

    @property
    def is_initial(self) -> bool:
        """Whether what it assigns was not there before."""
        return self.name.endswith("__init__")

    def bound_before(self, name: str, line: int) -> bool:
        """Whether a local name has a value before a line, as far as one can tell from the order of the lines."""
        arguments = self.node.args
        given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        if any(each.arg == name for each in given):
            return True
        found = (
            each
            for _, block in self.blocks
            for statement in block
            for each in ast.walk(statement)
            if isinstance(each, ast.Name)
        )
        return any(each.id == name and isinstance(each.ctx, ast.Store) and each.lineno < line for each in found)


def functions_of(tree: ast.Module) -> list[Function]:
    """The functions of a text that may be mutated, in their order."""
    return list(_functions(tree, ""))


def _functions(node: ast.AST, inside: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{inside}{child.name}.")
        elif isinstance(child, _FUNCTIONS):
            if child.name not in _SHOWS:
                found = Function(f"{inside}{child.name}", child)
                _collect_block(found, child, _without_docstring(child.body))
                yield found
            yield from _functions(child, f"{inside}{child.name}.")
        else:
            yield from _functions(child, inside)


def _without_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    first = body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if is_text else body


def _collect_block(into: Function, owner: ast.AST, block: Sequence[ast.stmt]) -> None:
    """Take in a list of statements, without those that are left out by rule."""
    kept = [each for each in block if not is_left_out(each)]
    if kept:
        into.blocks.append((owner, kept))
    for statement in kept:
        _collect(into, statement, owner)


def _collect(into: Function, node: ast.AST, parent: ast.AST) -> None:
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.JoinedStr, ast.pattern, ast.Raise)):
        return
    if isinstance(node, ast.expr):
        if says_only(node):
            return
        into.expressions.append((node, parent))
    if isinstance(node, ast.comprehension):
        into.filters += node.ifs
    for name, value in ast.iter_fields(node):
        if name == "annotation":
            continue
        if isinstance(value, list):
            if value and isinstance(value[0], ast.stmt):
                _collect_block(into, node, value)
            else:
                for each in value:
                    if isinstance(each, ast.AST):
                        _collect(into, each, node)
        elif isinstance(value, ast.AST):
            _collect(into, value, node)


def is_left_out(statement: ast.stmt) -> bool:
    """Whether a statement does nothing to the system: an assertion, an import, a log line, a string, ``pass``."""
    if isinstance(statement, ast.Assert | ast.Import | ast.ImportFrom | ast.Pass | ast.Global | ast.Nonlocal):
        return True
    if not isinstance(statement, ast.Expr):
        return False
    return isinstance(statement.value, ast.Constant) or says_only(statement.value)


def says_only(node: ast.expr) -> bool:
    """Whether it is a call that logs, counts or prints."""
    if not isinstance(node, ast.Call):
        return False
    words = dotted(node.func).lstrip("_").split(".")
    if words == ["print"]:
        return True
    # A partition's log is called ``log`` too: of such a name only the verbs of logging are left out.
    bare = {word.strip("_").lower() for word in words[:-1]}
    return bool(bare & _LOGGERS) or ("log" in bare and words[-1] in _LOGS)


def dotted(node: ast.AST) -> str:
    """``self._log.end`` of a name or attributes of one; of anything else its text."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ast.unparse(node)
