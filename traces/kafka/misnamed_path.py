"""Hints for a path that is no broker's data directory: what it is, and what to name instead."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from .partition import SEGMENT_NAME

NOT_KAFKA_MEND: Final = "name a broker's log.dirs folder: it holds meta.properties and folders such as topic-0"

_META: Final = "meta.properties"
_PARTITION: Final = re.compile(r".+-[0-9]+")
_ARCHIVE: Final = re.compile(r".+\.(tar|tgz|tbz2?|txz|tzst|tar\.(gz|bz2|xz|zst)|zip)", re.IGNORECASE)
_SERVER_LOG: Final = re.compile(r".+\.(log|out)(\.[0-9-]+)*(\.gz)?", re.IGNORECASE)
_DEPTH: Final = 3
"""So many levels below a folder are searched for data directories."""
_ENTRIES: Final = 20_000
"""And so many entries: a hint is not worth more."""
_SHOWN: Final = 6


def how_to_name(path: Path) -> str:
    """Return how to mend a path that is no data directory: the ``mend`` of a ``BadInput``."""
    if path.is_dir():
        return _of_folder(path)
    if path.name == _META or SEGMENT_NAME.fullmatch(path.name):
        folder = path.parent if path.name == _META else path.parent.parent
        return f"name the folder that it is in: {_quoted(folder)}"
    if _ARCHIVE.fullmatch(path.name) and path.is_file():
        program = "unzip" if path.name.lower().endswith("zip") else "tar -xf"
        return f"unpack it first ({program} {_quoted(path)}), and name the brokers' data directories in it"
    if _SERVER_LOG.fullmatch(path.name) and path.is_file():
        return f"fencepost timeline {_quoted(path)} reads what brokers print; {NOT_KAFKA_MEND}"
    return NOT_KAFKA_MEND


def _of_folder(folder: Path) -> str:
    names = _names(folder)
    if _PARTITION.fullmatch(folder.absolute().name) and any(map(SEGMENT_NAME.fullmatch, names)):
        alone = f"fencepost timeline {_quoted(folder)} reads it alone"
        return f"it is the folder of a partition: name its parent, {_quoted(folder.parent)}; {alone}"
    found = list(islice(_data_directories(folder), _SHOWN + 1))
    if found:
        more = " ..." if len(found) > _SHOWN else ""
        return f"name the data directories below it: {' '.join(map(_quoted, found[:_SHOWN]))}{more}"
    if any(_ARCHIVE.fullmatch(name) for name in names):
        return f"unpack the archives in it first; {NOT_KAFKA_MEND}"
    return NOT_KAFKA_MEND


def _data_directories(folder: Path) -> Iterator[Path]:
    """Find the data directories below a folder, in the order of their names; links are not followed."""
    seen = 0
    level = [folder]
    for _ in range(_DEPTH):
        below: list[Path] = []
        for each in level:
            try:
                entries = sorted(os.scandir(each), key=lambda entry: entry.name)
            except OSError:
                continue
            seen += len(entries)
            if seen > _ENTRIES:
                return
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    continue
                path = each / entry.name
                if (path / _META).is_file():
                    yield path
                else:
                    below.append(path)
        level = below


def _names(folder: Path) -> list[str]:
    try:
        return sorted(each.name for each in islice(folder.iterdir(), _ENTRIES))
    except OSError:
        return []


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
