"""Remove what differs between two runs of the same command: times, paths, versions, memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fencepost

MEASURED = ("seconds", "per_second", "memory_bytes", "resident", "cpu", "elapsed", "z3", "python")
"""Keys, or their last words, whose value depends on the machine or its libraries."""
_MEASURED_KEY = re.compile(rf"(^|_)({'|'.join(MEASURED)})$")
_TIMES = re.compile(r"\b\d[\d,]*\.\d+ ?(s|ms|min|MiB|KiB|GiB|seconds?)\b|\d[\d,]* (states|events|steps) a second")
_VERSION = re.compile(rf"(?<![\d.]){re.escape(fencepost.__version__)}(?![\d.])")


def normalise(value: Any, folders: Iterable[tuple[Path, str]]) -> Any:
    """Return ``value`` without measured keys, and with a name in place of each folder."""
    names = sorted(((str(folder), name) for folder, name in folders), key=lambda each: -len(each[0]))
    return _normalised(value, names)


def _normalised(value: Any, names: list[tuple[str, str]]) -> Any:
    if isinstance(value, dict):
        return {_text(k, names): _normalised(v, names) for k, v in value.items() if not _MEASURED_KEY.search(k)}
    if isinstance(value, list):
        return [_normalised(each, names) for each in value]
    return _text(value, names) if isinstance(value, str) else value


def _text(text: str, names: list[tuple[str, str]]) -> str:
    for folder, name in names:
        text = text.replace(folder, name).replace(folder.lstrip("/"), name)
    return _TIMES.sub("<measured>", _VERSION.sub("<version>", text))
