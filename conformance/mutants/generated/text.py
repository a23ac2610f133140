"""A source text with its syntax tree, and small changes to it that keep every other line where it was."""

from __future__ import annotations

import ast
import difflib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

Fingerprint = tuple[object, ...]
"""Of a code object: all that running it depends on, without names of files and numbers of lines."""


@dataclass(frozen=True)
class Edit:
    """The bytes from ``start`` to before ``end`` of a text become ``new``."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, order=True)
class Candidate:
    """A change that an operator proposes. ``line``: where what it changes begins; ``function``: qualified."""

    line: int
    operator: str
    start: int
    end: int
    new: str
    function: str

    @property
    def edit(self) -> Edit:
        """The change itself."""
        return Edit(self.start, self.end, self.new)


class Text:
    """A file of Python. ``file`` is how it is called, with ``/``. Raises SyntaxError for what is none."""

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.source = source
        self.tree = ast.parse(source, file)
        self._data = source.encode()
        self._starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First byte of a node, and the one after its last."""
        assert isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword)
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def of(self, node: ast.AST) -> str:
        """A node as it is written."""
        start, end = self.span(node)
        return self.between(start, end)

    def between(self, start: int, end: int) -> str:
        """A part of the text."""
        return self._data[start:end].decode()

    def line_at(self, position: int) -> int:
        """The number of the line, from 1 on, in which a byte is."""
        return bisect_right(self._starts, position)

    def lines_of(self, edit: Edit) -> range:
        """The lines that an edit touches."""
        return range(self.line_at(edit.start), self.line_at(max(edit.start, edit.end - 1)) + 1)

    def applied(self, edit: Edit) -> str:
        """The text after an edit; where it has lost lines there are empty ones, so that all others keep their number.

        They come after the line in which the edit ends: within brackets, or behind a whole statement.
        """
        data = self._data[: edit.start] + edit.new.encode() + self._data[edit.end :]
        lost = self._data[edit.start : edit.end].count(b"\n") - edit.new.count("\n")
        if lost > 0:
            behind = data.find(b"\n", edit.start + len(edit.new.encode())) + 1
            at = behind or len(data)
            data = data[:at] + b"\n" * lost + data[at:]
        return data.decode()

    def diff(self, edit: Edit) -> str:
        """The edit as a unified diff, without the empty lines."""
        after = (self._data[: edit.start] + edit.new.encode() + self._data[edit.end :]).decode()
        before, behind = self.source.splitlines(keepends=True), after.splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, behind, f"a/{self.file}", f"b/{self.file}", n=2))

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Of the text as it is."""
        return fingerprint(compiled(self.source, self.file))


def compiled(source: str, file: str) -> CodeType:
    """Compile a text. Raises SyntaxError, and ValueError for what no compiler takes."""
    return compile(source, file, "exec", dont_inherit=True)


def fingerprint(code: CodeType) -> Fingerprint:
    """Two code objects with the same one do the same: lines and files alone may differ."""
    return (
        code.co_code,
        code.co_exceptiontable,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        tuple(_constants(code)),
    )


def _constants(code: CodeType) -> Iterator[object]:
    for value in code.co_consts:
        # 1, 1.0 and True are equal, and not the same.
        yield fingerprint(value) if isinstance(value, CodeType) else (type(value).__name__, repr(value))


def changed_words(diff: str) -> tuple[str, str]:
    """What a unified diff takes away and what it brings, each on one line with single spaces."""
    old, new = [], []
    for line in diff.splitlines():
        if line.startswith("-") and not line.startswith("---"):
            old.append(line[1:])
        elif line.startswith("+") and not line.startswith("+++"):
            new.append(line[1:])
    return " ".join(" ".join(old).split()), " ".join(" ".join(new).split())
