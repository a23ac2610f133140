"""Symmetry over replicas: the representative of a state's orbit under renaming of replicas.

Sound because the text cannot tell replicas apart: a REPLICA term can be compared and used as an index, and that
is all (``core/terms.py``). The representative is the least of the renamed states, as a tuple of cells in the
reference engine and as a packed key in the batch engine; either way an orbit has exactly one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from ..core.domains import REPLICA
from ..core.ground import State, System
from ..core.terms import Sort
from .packing import Packing, Words


@dataclass(frozen=True)
class _Renaming:
    """One permutation of the replicas: for each cell where its value comes from, and how values are renamed."""

    source: tuple[int, ...]
    replica: tuple[int, ...]
    """The new name of each replica; the last entry is for NONE (-1)."""
    members: tuple[int, ...]
    """The renamed set for each bit mask."""


def _renamings(system: System) -> list[_Renaming]:
    count = system.constants["replicas"]
    found = []
    for new_name in permutations(range(count)):
        old_name = {new: old for old, new in enumerate(new_name)}
        source = []
        for cell in system.layout.cells:
            index = tuple(
                old_name[i] if per is REPLICA else i for i, per in zip(cell.index, cell.variable.per, strict=True)
            )
            source.append(system.layout.by_variable[cell.variable.name][index])
        members = tuple(sum(1 << new_name[i] for i in range(count) if mask >> i & 1) for mask in range(1 << count))
        found.append(_Renaming(tuple(source), (*new_name, -1), members))
    return found


class Symmetry:
    """The orbits of a system's states."""

    def __init__(self, system: System) -> None:
        self._sorts = [cell.variable.values.sort for cell in system.layout.cells]
        self._renamings = _renamings(system)

    def renamed(self, state: State) -> list[State]:
        """The state under every permutation of the replicas."""
        found = []
        for renaming in self._renamings:
            values = []
            for source, sort in zip(renaming.source, self._sorts, strict=True):
                value = state[source]
                if sort is Sort.REPLICA:
                    value = renaming.replica[value]
                elif sort is Sort.SET:
                    value = renaming.members[value]
                values.append(value)
            found.append(tuple(values))
        return found

    def representative(self, state: State) -> State:
        """The least of the renamed states."""
        return min(self.renamed(state))

    def representatives(self, packing: Packing) -> Callable[[Words], Words]:
        """The same for keys, shape (words, n): the least renamed key, words compared from the first on."""

        def apply(keys: Words) -> Words:
            columns = packing.unpack(keys)
            least = keys
            for renaming in self._renamings[1:]:
                moved = np.empty_like(columns)
                for row, (source, sort) in enumerate(zip(renaming.source, self._sorts, strict=True)):
                    value = columns[source]
                    if sort is Sort.REPLICA:
                        moved[row] = np.array(renaming.replica, dtype=columns.dtype)[value]
                    elif sort is Sort.SET:
                        moved[row] = np.array(renaming.members, dtype=columns.dtype)[value]
                    else:
                        moved[row] = value
                other = packing.pack(moved)
                least = np.where(_less(other, least), other, least)
            return least

        return apply


def interchangeable(system: System) -> list[int]:
    """Each replica that can change names with the next one in the initial state, and leave it as it is."""
    count = system.constants["replicas"]
    renamed = dict(zip(permutations(range(count)), Symmetry(system).renamed(system.initial), strict=True))
    swaps = [(*range(low), low + 1, low, *range(low + 2, count)) for low in range(count - 1)]
    return [low for low, swap in enumerate(swaps) if renamed[swap] == system.initial]


def _less(left: Words, right: Words) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    less = np.zeros(left.shape[1], dtype=bool)
    tied = np.ones(left.shape[1], dtype=bool)
    for mine, theirs in zip(left, right, strict=True):
        less |= tied & (mine < theirs)
        tied &= mine == theirs
    return less
