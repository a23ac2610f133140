"""Two small bundled corpora, one with planted bugs and one without; traces/bundled/README.md says how they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..bundled.unpacked import unpacked

if TYPE_CHECKING:
    from pathlib import Path

PLANTED: Final = "planted"
CLEAN: Final = "clean"
CORPORA: Final = {
    PLANTED: "Corpus of 100 traces; ten have one of two planted bugs, which planted.jsonl lists.",
    CLEAN: "Corpus of 60 traces without a bug.",
}
"""The corpora by name, with a description of each."""


def folder() -> Path:
    """Folder of the two corpora, each in a folder of its name."""
    return unpacked("mining")
