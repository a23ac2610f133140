"""Paths on the command line that name a bundled recording."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...traces.bundled.paths import find_bundled
from .output import note


def resolve_bundled(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Replace each path into a bundled recording by those of its unpacked files, and note that on standard error."""
    resolved: list[Path] = []
    for path in paths:
        found = find_bundled(path)
        if found:
            note(f"{path}: bundled recording, read from {found[0].parent}")
        resolved += found or [path]
    return tuple(resolved)


def resolve_bundled_one(path: Path) -> Path:
    """The same for an argument that is one file or folder."""
    return resolve_bundled([path])[0] if len(find_bundled(path)) == 1 else path


def resolve_bundled_store(url: str) -> str:
    """The same for a store that may be a URL."""
    resolved = resolve_bundled_one(Path(url))
    return url if resolved == Path(url) else str(resolved)
