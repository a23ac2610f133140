"""The interface of a reader that turns files of one kind into observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ...model.core.errors import BadInput
from .observation import Observation


@dataclass(frozen=True, slots=True)
class SourceResult:
    """What a reader made of some files.

    Args:
        observations: In any order; ``sequence`` orders each process.
        problems: Files, or parts of them, that could not be read, with the reason.
        notes: Facts about the input that the user should know, one sentence each.
    """

    observations: tuple[Observation, ...]
    problems: tuple[BadInput, ...] = ()
    notes: tuple[str, ...] = ()


class Source(Protocol):
    """Read one kind of file, for example server logs or Jepsen histories.

    ``fencepost timeline`` gives each file to the first source of ``sources.all_sources`` that accepts it, and then
    calls ``read`` once per source with all of its files. Server logs are the last source, which accepts every file.
    """

    @property
    def name(self) -> str:
        """Noun for messages: ``server log``."""
        ...

    def accepts(self, path: Path) -> bool:
        """Whether the file or folder is of this kind, judged by its name and its first lines."""
        ...

    def read(self, paths: Sequence[Path]) -> SourceResult:
        """Read all files of this kind. A file that cannot be read is a problem, not an exception."""
        ...
