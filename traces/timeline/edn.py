"""A reader of EDN, the notation of Jepsen's histories.

It reads values one by one, keeps the line of each, and takes tagged values such as ``#jepsen.history.Op`` as they are.
``edn_format``, the reader on PyPI, holds a whole file, rejects unknown tags, and takes minutes for a usual history.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

_TOKEN: Final = re.compile(
    r"""[\s,]*(?:
        (?P<atom>[^\s,;"()\[\]{}\\\#][^\s,;"()\[\]{}\\]*)
      | (?P<open>\#\{|[(\[{])
      | (?P<close>[)\]}])
      | "(?P<string>(?:[^"\\]|\\.)*)"
      | (?P<comment>;[^\n]*)
      | (?P<discard>\#_)
      | \#(?P<tag>[A-Za-z][^\s,;"()\[\]{}]*)
      | \\(?P<char>newline|return|space|tab|formfeed|backspace|u[0-9a-fA-F]{4}|.)
      | (?P<end>\Z))
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
    match_token = _TOKEN.match
    stack: list[_Open] = []
    at = counted = 0
    line = 1
    skips = 0
    while True:
        match = match_token(text, at)
        start = at if match is None else match.start(match.lastgroup or 0)
        if len(stack) < 2:
            line += text.count("\n", counted, start)
            counted = start
        if match is None:
            line += text.count("\n", counted, at)
            raise EdnError(f"{text[at : at + 10]!r} is no EDN", line)
        at = match.end()
        kind = match.lastgroup
        if kind == "open":
            stack.append(_Open(match["open"], line))
            continue
        if kind == "close":
            if not stack or _CLOSES[stack[-1].bracket] != match["close"]:
                raise EdnError(f"a {match['close']} closes nothing", line + text.count("\n", counted, start))
            opened = stack.pop()
            if not stack and opened.bracket in "([":
                continue
            value, begins = _collection(opened), opened.line
        elif kind == "end":
            break
        elif kind == "discard":
            if stack:
                stack[-1].discards += 1
            else:
                skips += 1
            continue
        elif kind in ("tag", "comment"):
            continue
        else:
            value, begins = _scalar(str(kind), match[kind or 0]), line
        if not stack:
            if skips:
                skips -= 1
            else:
                yield begins, value
            continue
        top = stack[-1]
        if top.discards:
            top.discards -= 1
        elif len(stack) == 1 and top.bracket in "([":
            yield begins, value
        else:
            top.items.append(value)
    if stack:
        raise EdnError(f"the {stack[-1].bracket} is not closed", stack[-1].line)


class _Open:
    """A collection that is not closed yet. ``discards``: values to leave out next."""

    __slots__ = ("bracket", "discards", "items", "line")

    def __init__(self, bracket: str, line: int) -> None:
        self.bracket = bracket
        self.line = line
        self.items: list[Any] = []
        self.discards = 0


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


def _scalar(kind: str, text: str) -> Any:
    if kind == "atom":
        return _atom(text)
    if kind == "string":
        return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescape, text, flags=re.DOTALL) if "\\" in text else text
    return _CHARS.get(text) or (chr(int(text[1:], 16)) if len(text) == 5 else text)


@lru_cache(maxsize=1 << 16)
def _atom(text: str) -> Any:
    if text[0] == ":":
        return Keyword(text[1:])
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text.rstrip("N"))
    if _FLOAT.fullmatch(text):
        return float(text.rstrip("M"))
    return text


def _unescape(match: re.Match[str]) -> str:
    found = match[1]
    return chr(int(found[1:], 16)) if len(found) == 5 else _ESCAPES.get(found, found)
