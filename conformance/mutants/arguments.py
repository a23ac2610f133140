"""Why a mutant that nobody kills is none the worse: one argument in words for each, by its name.

An argument says how the mutant's steps differ from the model's, and why no promise breaks. The matrix holds what it
says against what it finds: a mutant that is killed after all, one that differs otherwise than is argued, an argument
for a mutant that is not there, a survivor without one: each fails. Where other guards are the reason (``beside``), the
matrix drops those too and demands that the mutant then does make a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...model.core.errors import ProtocolError
from ...model.explore.compare import Change


@dataclass(frozen=True)
class Argument:
    """``beside``: guards of the same action that say as much; only for mutants with the same steps."""

    change: Change
    text: str
    beside: tuple[str, ...] = ()


Arguments = Mapping[str, Argument]
"""By the mutant's name."""


class Collected:
    """The arguments of one variant while they are written down; one text may serve several mutants."""

    def __init__(self) -> None:
        self.arguments: dict[str, Argument] = {}

    def same(self, text: str, *mutants: str, beside: str = "") -> None:
        """These have exactly the model's steps. ``beside``: guards, separated by spaces."""
        self._add(Change.NONE, text, mutants, tuple(beside.split()))

    def stutters(self, text: str, *mutants: str) -> None:
        """These differ only in steps that change nothing."""
        self._add(Change.STUTTERS, text, mutants)

    def more(self, text: str, *mutants: str) -> None:
        """These have more runs, and no promise breaks in them."""
        self._add(Change.MORE, text, mutants)

    def fewer(self, text: str, *mutants: str) -> None:
        """Each run of these is a run of the model."""
        self._add(Change.FEWER, text, mutants)

    def other(self, text: str, *mutants: str) -> None:
        """These have other runs, and no promise breaks in them."""
        self._add(Change.OTHER, text, mutants)

    def _add(self, change: Change, text: str, mutants: tuple[str, ...], beside: tuple[str, ...] = ()) -> None:
        for name in mutants:
            if name in self.arguments:
                raise ProtocolError(f"there are two arguments for {name}")
            self.arguments[name] = Argument(change, text, beside)
