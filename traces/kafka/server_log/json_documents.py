"""JSON documents that span several lines: answers of search engines, and pretty-printed exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from ...compressed import open_decompressed

MAX_BYTES: Final = 256 << 20


def read_document(head: str, path: Path) -> Any | None:
    """The value of a file that is one JSON document of several lines; ``None`` for any other file.

    Args:
        head: The first line of the file that is not empty.
    """
    first = head.lstrip("\ufeff \t")
    if first.rstrip() not in ("{", "[", "[{") and not first.startswith(('{"', '[{"')):
        return None
    if _is_whole(first) or path.stat().st_size > MAX_BYTES:
        return None
    try:
        with open_decompressed(path) as file:
            return json.loads(file.read(MAX_BYTES))
    except (ValueError, RecursionError):
        return None


def _is_whole(line: str) -> bool:
    try:
        json.loads(line.rstrip().rstrip(","))
    except (ValueError, RecursionError):
        return False
    return True
