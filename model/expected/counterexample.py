"""The length of a shortest counterexample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Counterexample:
    """A shortest run that breaks an invariant.

    Args:
        variant: Name of the variant.
        constants: Constants that differ from the protocol's defaults.
        violated: Name of the invariant.
        steps: Number of steps of the run.
        dropped: Guards that are left out, as ``action.guard``. With them all invariants are checked at once, without
            them this one alone.
    """

    variant: str
    constants: Mapping[str, int]
    violated: str
    steps: int
    dropped: tuple[str, ...] = ()
