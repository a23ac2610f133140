"""The size of a proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ObligationCount:
    """How many obligations a variant's proof has.

    Args:
        variant: Name of the variant.
        obligations: Number of pairs of an action and a conjunct of the inductive invariant.
        at: Values of the constants that the proof fixes.
    """

    variant: str
    obligations: int
    at: Mapping[str, int] = field(default_factory=dict)
