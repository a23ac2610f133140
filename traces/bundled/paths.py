"""Find the files of a bundled recording that a path names, as if its archive were a folder."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Final

from .unpacked import NAMES, unpacked

_PACKAGE: Final = Path(__file__).parents[2]
_PLACES: Final = {f"traces/bundled/{name}": name for name in NAMES} | {
    # Documents of earlier releases name these.
    "traces/kafka/corpus": "failover",
    "traces/kafka/corpus_compacted": "compacted",
    "traces/kafka/corpus_tiered": "tiered",
    "traces/mine/bundled": "mining",
}
"""Paths below the package's folder, and the recording that each names."""


def find_bundled(path: Path) -> list[Path]:
    """Return the unpacked files or folders that a path names; none if it names no bundled recording.

    ``traces/bundled/NAME`` and paths below it name a recording, from any folder; so do their absolute paths in the
    package. Patterns such as ``broker-*`` are expanded, because a shell finds no folder there. A file that exists is
    never a bundled one.
    """
    if os.path.lexists(path):
        return []
    for inside in _below_package(path):
        for place, name in _PLACES.items():
            if inside.is_relative_to(place):
                return _matches(unpacked(name), inside.relative_to(place))
    return []


def _below_package(path: Path) -> list[PurePath]:
    """The paths below the package's folder that a typed path may stand for."""
    found = [] if path.is_absolute() else [PurePath(os.path.normpath(path))]
    try:
        absolute = PurePath(os.path.normpath(path.absolute()))
    except OSError:  # the current folder was removed
        return found
    if absolute.is_relative_to(_PACKAGE):
        found.append(absolute.relative_to(_PACKAGE))
    return found


def _matches(folder: Path, inside: PurePath) -> list[Path]:
    exact = folder / inside
    if exact.exists():
        return [exact]
    return sorted(folder.glob(str(inside)))
