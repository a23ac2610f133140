"""Generated mutants of which somebody says, in words, that they do the same as the text: data, one line each.

A mutant is found by what it changes, not by the number of a line: the file, the qualified function, and the old and the
new text of the lines that its diff changes, each on one line with single spaces. One that is killed after all refutes
its argument.
"""

from __future__ import annotations

from dataclasses import dataclass

from .drawing import Mutant


@dataclass(frozen=True)
class Equivalent:
    """An argument. ``reason``: why no run can show a difference."""

    file: str
    function: str
    old: str
    new: str
    reason: str

    def is_for(self, mutant: Mutant) -> bool:
        """Whether it speaks of this mutant."""
        return (self.file, self.function, self.old, self.new) == (mutant.file, mutant.function, *mutant.words)
