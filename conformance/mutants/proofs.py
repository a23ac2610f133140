"""The column of proof: does the proof of the model, for all constants at once, still go through for a mutant?

A prover judges the mutants of the variants that it has a proof of; of others it says ``NO_JUDGE``.
"""

from __future__ import annotations

from typing import Protocol

from ...model.core.mutants import Mutant
from .matrix import NO_JUDGE, Cell


class Prover(Protocol):
    """Whoever has a proof of some variant."""

    def judge(self, mutant: Mutant) -> Cell:
        """``survived``: proved, so the mutant keeps its promises at all constants. ``killed``: no longer proved."""
        ...


class NoProof:
    """There is no proof."""

    def judge(self, mutant: Mutant) -> Cell:  # noqa: ARG002 - the interface
        """No judge."""
        return NO_JUDGE
