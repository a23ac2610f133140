"""Which lines of a system were executed while it was driven: what never was, no run has tested.

It is asked of ``sys.settrace``, which slows a system down several times; so a sample of the runs is watched, and only
while the system's own calls last. (``sys.monitoring``, from Python 3.12 on, is no cheaper here: to turn it on and off
around each call has every function made ready afresh, and to leave it on slows the engine, which nobody asks about.)
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from ..model.core.errors import BadInput
from ..traces.run_report import Json
from ..traces.text import counted

EVERY: Final = 8
"""One run of so many is watched, the first of them."""

_FILES: Final = 12
_FUNCTIONS_OF_A_FILE: Final = 8
"""So much is told in a text; all of it as JSON."""


@dataclass(frozen=True)
class Function:
    """A function of the source: where it is, what it is called, the lines that it executes."""

    file: Path
    name: str
    lines: frozenset[int]


@dataclass(frozen=True)
class Unexecuted:
    """Lines of a function that were never executed. ``whole``: none of its lines was."""

    function: Function
    lines: tuple[int, ...]

    @property
    def whole(self) -> bool:
        """Whether the function was never called."""
        return len(self.lines) == len(self.function.lines)

    def __str__(self) -> str:
        if self.whole:
            return f"{self.function.name} (never called)"
        return f"{self.function.name} {', '.join(_ranges(self.lines))}"

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {"file": shown(self.function.file), "function": self.function.name, "lines": list(self.lines)}


def shown(file: Path) -> str:
    """A file as its author names it: from the working folder on, or from Fencepost's."""
    for root in (Path.cwd(), Path(__file__).resolve().parents[1]):
        if file.is_relative_to(root):
            return str(file.relative_to(root))
    return str(file)


def _ranges(lines: Iterable[int]) -> Iterator[str]:
    """``12-14``, ``20``: neighbours are taken together."""
    first = last = None
    for line in (*lines, None):
        if last is not None and line == last + 1:
            last = line
            continue
        if first is not None:
            yield str(first) if first == last else f"{first}-{last}"
        first = last = line


def files_of(place: Path, option: str) -> list[Path]:
    """The Python files of a folder, or the file itself. Raises BadInput where there are none."""
    found = [place] if place.is_file() else sorted(place.rglob("*.py"))
    if not found:
        raise BadInput(f"there is no Python file in {place}", option, "name the folder of your system's source")
    return [path.resolve() for path in found]


def told(executed: Executed, every: int) -> list[str]:
    """What was never executed, in a few lines: the files of which most is missing first."""
    never = executed.never()
    if not never:
        return []
    by_file: dict[Path, list[Unexecuted]] = {}
    for each in never:
        by_file.setdefault(each.function.file, []).append(each)
    files = sorted(by_file, key=lambda path: -sum(len(each.lines) for each in by_file[path]))
    watched = "" if every == 1 else f" (measured in one run of {every})"
    missing = executed.total - executed.done
    lines = [f"lines of the system that were never executed{watched}: {missing:,} of {executed.total:,}"]
    for path in files[:_FILES]:
        most = sorted(by_file[path], key=lambda each: -len(each.lines))
        kept = [each for each in by_file[path] if each in most[:_FUNCTIONS_OF_A_FILE]]
        rest = counted(len(most) - len(kept), "other function")
        lines.append(f"  {shown(path)}: {'; '.join(map(str, kept))}" + (f"; {rest}" if len(kept) < len(most) else ""))
    if len(files) > _FILES:
        lines.append(f"  and {counted(len(files) - _FILES, 'other file')}; --json lists all")
    return lines


class Executed:
    """The lines of the functions in some files, and which of them were executed within ``watching``."""

    def __init__(self, files: Iterable[Path], but: Collection[str] = ()) -> None:
        """``but``: functions that nobody asks about."""
        found = [each for path in dict.fromkeys(files) for each in _functions(path)]
        self.functions = [each for each in found if each.name not in but]
        self._lines: dict[str, set[int]] = {}
        """By file, the lines that are asked about."""
        self._done: dict[str, set[int]] = {}
        for each in self.functions:
            self._lines.setdefault(str(each.file), set()).update(each.lines)
            self._done.setdefault(str(each.file), set())
        self._left: dict[int, tuple[CodeType, set[int]]] = {}
        """By the id of a code object, which is kept so that the id stays its own: its lines that are asked about."""
        self._paths: dict[str, str] = {}
        self.order: list[tuple[str, int]] = []
        """Files and lines in the order in which they were first executed."""

    @property
    def total(self) -> int:
        """How many lines there are."""
        return sum(map(len, self._lines.values()))

    @property
    def done(self) -> int:
        """How many lines were executed."""
        return sum(len(lines & self._lines[path]) for path, lines in self._done.items())

    def never(self) -> list[Unexecuted]:
        """What was never executed, in the order of the source."""
        found = []
        for function in self.functions:
            lines = function.lines - self._done[str(function.file)]
            if lines:
                found.append(Unexecuted(function, tuple(sorted(lines))))
        return found

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Take note of what is executed inside, in this thread."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _path(self, name: str) -> str:
        """The real path of a code object's file."""
        found = self._paths.get(name)
        if found is None:
            found = self._paths[name] = name if name.startswith("<") else str(Path(name).resolve())
        return found

    def _called(self, frame: FrameType, _event: str, _argument: object) -> Any:
        code = frame.f_code
        known = self._left.get(id(code))
        if known is None:
            path = self._path(code.co_filename)
            left = _lines_of(code) & self._lines.get(path, set()) - self._done.get(path, set())
            known = self._left[id(code)] = (code, left)
        left = known[1]
        if not left:
            # Nothing of it is to be learned any more: it runs as fast as ever.
            return None
        self._execute(code, frame.f_lineno, left)
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, _argument: object) -> Any:
        left = self._left[id(frame.f_code)][1]
        if event == "line" and frame.f_lineno in left:
            self._execute(frame.f_code, frame.f_lineno, left)
        return self._stepped if left else None

    def _execute(self, code: CodeType, line: int, left: set[int]) -> None:
        left.discard(line)
        self._note(self._path(code.co_filename), line)

    def take(self, lines: Iterable[tuple[str, int]]) -> None:
        """Take note of files and lines that were executed in another process."""
        for path, line in lines:
            self._note(path, line)

    def _note(self, path: str, line: int) -> None:
        if line not in self._done[path]:
            self._done[path].add(line)
            if line in self._lines[path]:
                self.order.append((path, line))


def _functions(path: Path) -> Iterator[Function]:
    """The functions of a file, but for those that have nothing to execute. Raises BadInput where it is no Python."""
    try:
        text = path.read_bytes()
        tree = ast.parse(text, str(path))
        code = compile(tree, str(path), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError) as error:
        raise BadInput(
            f"it cannot be read as Python: {error}", str(path), "mend it, or leave its folder out"
        ) from error
    stubs = {_begin(node) for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and _is_stub(node)}
    yield from _functions_of(code, path.resolve(), stubs)


def _functions_of(code: CodeType, path: Path, stubs: set[int]) -> Iterator[Function]:
    for each in code.co_consts:
        if not isinstance(each, CodeType):
            continue
        # A comprehension's lines are those of the function around it.
        if each.co_flags & CO_OPTIMIZED and not each.co_name.startswith("<") and each.co_firstlineno not in stubs:
            lines = _lines_of(each)
            if lines:
                yield Function(path, each.co_qualname.replace("<locals>.", ""), frozenset(lines))
        yield from _functions_of(each, path, stubs)


def _lines_of(code: CodeType) -> set[int]:
    """The lines of a function's body; that of its head only where it has no other."""
    if code.co_name.startswith("<"):
        return set()
    lines = {line for _, _, line in code.co_lines() if line is not None}
    return lines - {code.co_firstlineno} or lines


_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


def _begin(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line at which a function's code object begins."""
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _is_stub(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a body says only what the function is for: no more than a docstring, ``...`` or NotImplementedError."""
    return all(
        isinstance(each, ast.Pass)
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        or (isinstance(each, ast.Raise) and "NotImplementedError" in ast.dump(each))
        for each in node.body
    )
