"""The size of a variant's state graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class StateCount:
    """Distinct states and depth of a variant, explored to the end.

    Args:
        variant: Name of the variant.
        constants: Constants that differ from the protocol's defaults.
        states: Number of distinct states; of orbits under renaming of replicas with ``symmetry``.
        depth: Length of the longest shortest run, in levels; None if it is not pinned.
        dropped: Guards that are left out, as ``action.guard``.
        symmetry: Whether replicas are renamed.
    """

    variant: str
    constants: Mapping[str, int]
    states: int
    depth: int | None
    dropped: tuple[str, ...] = ()
    symmetry: bool = False
