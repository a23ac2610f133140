"""The file of a record: JSON Lines, one item a line, in the order in which they were measured.

Several processes may append to one file, and ``cat`` joins the files of several shards.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Parts = dict[str, dict[str, Any]]
"""By part and key, the value of an item."""


class Record:
    """The items in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _drop_unfinished_line(path)
        self.parts: Parts = {}
        for part, key, value in read_items(path):
            self.parts.setdefault(part, {})[key] = value

    def has(self, part: str, key: str) -> bool:
        """Whether the file has the item."""
        return key in self.parts.get(part, {})

    def add(self, part: str, key: str, value: Any, about: Mapping[str, Any]) -> None:
        """Append an item. ``about`` describes the machine and the checkout; ``compare`` ignores it."""
        line = json.dumps({"part": part, "key": key, "value": value, "about": about}, sort_keys=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        with os.fdopen(descriptor, "a", encoding="utf-8") as out:
            out.write(line + "\n")
        self.parts.setdefault(part, {})[key] = json.loads(line)["value"]


def read_items(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Read part, key and value of each item in a file; none if there is no file."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            item = json.loads(line)
            yield item["part"], item["key"], item["value"]


def _drop_unfinished_line(path: Path) -> None:
    """Remove the line that a killed recorder has left half written."""
    if not path.exists():
        return
    text = path.read_bytes()
    whole = text.rfind(b"\n") + 1
    if whole < len(text):
        with path.open("r+b") as out:
            out.truncate(whole)
