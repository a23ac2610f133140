"""Lines that a container runtime, a terminal or a mail program has split, put together again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

Numbered = tuple[int, str]

_HEAD: Final = 4000
"""Lines from which the width of the page is learned."""
_NARROWEST: Final = 60
_MOST_PIECES: Final = 40
_QUOTE: Final = re.compile(r"(?:[ \t]*>)+ ?")
_LEVEL: Final = r"(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)"
_BEGINS: Final = re.compile(
    rf".{{0,120}}?\d\d:\d\d:\d\d[^\]]{{0,16}}\]? +(?:\[[^\]]{{1,100}}\] +)?{_LEVEL}\b"
    rf"|\s*{_LEVEL} +\S|\s*[{{\[]\s*\"|==> "
)
_ENDS: Final = re.compile(r"\([A-Za-z_][\w$]*(?:\.[\w$]+)+(?::\d{1,6})?\)(?: \[[^\]]{1,200}\])?[\s\"'`*,]*$")
_NOT_CONTINUED: Final = re.compile(
    r"\s*$|\s+at |\s*\.\.\. \d+ |Caused by: |\s*Suppressed: |```|~~~|\{(?:code|noformat)"
)
_PARTIAL: Final = re.compile(r"(.{0,200}?\d{4}-\d\d-\d\dT\S{1,40} (?:stdout|stderr) )([FP])(?::\S*)? (.*)", re.DOTALL)


def rejoin(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    """Yield whole lines, each with the number of its first part.

    A line of Kafka's layout ends with the logger's name, so one that does not goes on in the next lines. A line that
    was cut off at the width of the page loses its last word: the word may be a part of a number.
    """
    whole = _join_partial(lines)
    head = list(islice(whole, _HEAD))
    groups = list(_groups(head))
    widths = Counter(len(text) for group in groups for _, text in group[:-1])
    glue = "" if len(widths) == 1 and next(iter(widths)) >= _NARROWEST else " "
    longest = Counter(len(text) for _, text in head)
    width = max(longest, default=0)
    cut = width if longest[width] >= 3 and width >= _NARROWEST else None
    for group in _groups(chain(head, whole)):
        if len(group) > 1:
            yield (
                group[0][0],
                glue.join(text if not place else _unquoted(text) for place, (_, text) in enumerate(group)),
            )
            continue
        for number, text in group:
            if len(text) == cut and not _ENDS.search(text) and not text.endswith("}"):
                text = text.rpartition(" ")[0]
            yield number, text


def _join_partial(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    """Join the parts of a line that the container runtime has split: ``P`` for a part, ``F`` for the last one."""
    parts: dict[str, tuple[int, str]] = {}
    for number, text in lines:
        found = _PARTIAL.fullmatch(text) if " P " in text or parts else None
        if found is None:
            yield number, text
            continue
        key = found[1].rpartition("T")[0][:-10] + found[1].rpartition(" ")[0].rpartition(" ")[2]
        first, before = parts.pop(key, (number, found[1] + "F "))
        if found[2] == "P":
            parts[key] = first, before + found[3]
        else:
            yield first, before + found[3]


def _groups(lines: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Each line that begins a record without its end, with the lines up to its end; other lines alone."""
    pending: list[Numbered] = []
    for number, text in lines:
        if pending:
            goes_on = not _NOT_CONTINUED.match(text) and not _BEGINS.match(_unquoted(text))
            if goes_on and len(pending) < _MOST_PIECES:
                pending.append((number, text))
                if _ENDS.search(pending[-2][1] + _unquoted(text)):
                    yield pending
                    pending = []
                continue
            yield from ([each] for each in pending)
            pending = []
        if _BEGINS.match(text) and not _ENDS.search(text):
            pending = [(number, text)]
        else:
            yield [(number, text)]
    yield from ([each] for each in pending)


def _unquoted(text: str) -> str:
    found = _QUOTE.match(text)
    return text if found is None else text[found.end() :]
