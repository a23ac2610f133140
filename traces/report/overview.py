"""A table that stands on the first page of a report, before what was asked: what there is to ask of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup, escape

from ..text import printable

_NAME = re.compile(r"`([^`]*)`")


@dataclass(frozen=True)
class Overview:
    """``columns`` and ``rows`` are texts, in which a name stands in backticks; each row has a cell for each column."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows)

    def to_json(self) -> dict[str, object]:
        """As a JSON object; texts as they are."""
        return {"title": self.title, "columns": list(self.columns), "rows": [list(row) for row in self.rows]}

    def to_html(self) -> dict[str, object]:
        """What the page shows, escaped, with names as code."""
        return {
            "title": printable(self.title),
            "columns": [_html(each) for each in self.columns],
            "rows": [[_html(each) for each in row] for row in self.rows],
        }


def _html(text: str) -> Markup:
    return Markup("").join(_pieces(printable(text)))


def _pieces(text: str) -> Iterator[Markup]:
    end = 0
    for found in _NAME.finditer(text):
        yield escape(text[end : found.start()])
        yield Markup("<code>{}</code>").format(found[1])
        end = found.end()
    yield escape(text[end:])
