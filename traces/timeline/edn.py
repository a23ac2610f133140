"""A reader of EDN, the notation of Jepsen's histories.

It reads values one by one, keeps the line of each, and takes tagged values such as ``#jepsen.history.Op`` as they are.
``edn_format``, the reader on PyPI, holds a whole file, rejects unknown tags, and takes minutes for a usual history.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

_TOKEN: Final = re.compile(
    r"""(?P<space>[\s,]+|;[^\n]*)
      | (?P<open>\#\{|[(\[{]) | (?P<close>[)\]}])
      | "(?P<string>(?:[^"\\]|\\.)*)"
      | (?P<discard>\#_) | \#(?P<tag>[A-Za-z][^\s,;"()\[\]{}]*)
      | \\(?P<char>newline|return|space|tab|formfeed|backspace|u[0-9a-fA-F]{4}|.)
      | (?P<atom>[^\s,;"()\[\]{}\\]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSES: Final = {"(": ")", "[": "]", "{": "}", "#{": "}"}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,4000}N?")
_FLOAT: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?M?")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CHARS: Final = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t", "formfeed": "\f", "backspace": "\b"}
_WORDS: Final[dict[str, Any]] = {"nil": None, "true": True, "false": False}


class Keyword(str):
    """A keyword without its colon: ``ok`` of ``:ok``."""

    __slots__ = ()


class EdnError(ValueError):
    """What is wrong with a text, and the line."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


def read_edn(text: str) -> Iterator[tuple[int, Any]]:
    """Read the values of a text, each with its line; of a vector or list at the top, its members.

    Vectors and lists become tuples, sets frozensets, maps dicts, keywords ``Keyword``; a tag is left out.

    Raises:
        EdnError: The text is no EDN. Values before the error have been returned.
    """
    reader = _Reader()
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise EdnError(f"{text[at : at + 10]!r} is no EDN", line)
        kind = match.lastgroup
        if kind != "space":
            yield from reader.take(str(kind), match, line)
        line += text.count("\n", at, match.end())
        at = match.end()
    if reader.stack:
        raise EdnError(f"the {reader.stack[-1].bracket} is not closed", reader.stack[-1].line)


class _Open:
    """A collection that is not closed yet. ``discards``: values to leave out next."""

    __slots__ = ("bracket", "discards", "items", "line")

    def __init__(self, bracket: str, line: int) -> None:
        self.bracket = bracket
        self.line = line
        self.items: list[Any] = []
        self.discards = 0


class _Reader:
    def __init__(self) -> None:
        self.stack: list[_Open] = []
        self._discards = 0

    def take(self, kind: str, match: re.Match[str], line: int) -> Iterator[tuple[int, Any]]:
        if kind == "open":
            self.stack.append(_Open(match["open"], line))
        elif kind == "close":
            if not self.stack or _CLOSES[self.stack[-1].bracket] != match["close"]:
                raise EdnError(f"a {match['close']} closes nothing", line)
            opened = self.stack.pop()
            if not self.stack and opened.bracket in "([":
                return
            yield from self._put(_collection(opened), opened.line)
        elif kind == "discard":
            if self.stack:
                self.stack[-1].discards += 1
            else:
                self._discards += 1
        elif kind != "tag":
            yield from self._put(_scalar(kind, match, line), line)

    def _put(self, value: Any, line: int) -> Iterator[tuple[int, Any]]:
        if self.stack:
            top = self.stack[-1]
            if top.discards:
                top.discards -= 1
            elif len(self.stack) == 1 and top.bracket in "([":
                yield line, value
            else:
                top.items.append(value)
        elif self._discards:
            self._discards -= 1
        else:
            yield line, value


def _collection(opened: _Open) -> Any:
    items = opened.items
    if opened.bracket in "([":
        return tuple(items)
    try:
        if opened.bracket == "#{":
            return frozenset(items)
        if len(items) % 2:
            raise EdnError("a map has a key without a value", opened.line)
        return dict(zip(items[::2], items[1::2], strict=True))
    except TypeError as error:
        raise EdnError("a map is the key of a map, or a member of a set", opened.line) from error


def _scalar(kind: str, match: re.Match[str], line: int) -> Any:
    if kind == "string":
        return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescape, match["string"], flags=re.DOTALL)
    if kind == "char":
        char = match["char"]
        return _CHARS.get(char) or (chr(int(char[1:], 16)) if len(char) == 5 else char)
    atom = match["atom"]
    if atom[0] == ":":
        return Keyword(atom[1:])
    if atom in _WORDS:
        return _WORDS[atom]
    if _INTEGER.fullmatch(atom):
        return int(atom.rstrip("N"))
    if _FLOAT.fullmatch(atom):
        return float(atom.rstrip("M"))
    if atom[0] == "#":
        raise EdnError(f"{atom!r} is no EDN", line)
    return atom


def _unescape(match: re.Match[str]) -> str:
    found = match[1]
    return chr(int(found[1:], 16)) if len(found) == 5 else _ESCAPES.get(found, found)
