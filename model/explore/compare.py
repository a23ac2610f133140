"""A variant and a mutant of one of its actions: in which reachable states their steps differ.

The states are those that the variant reaches. Up to the first difference both have the same runs, so that what differs
in none of these states differs nowhere, and the first one found is as near to the initial state as any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from ..core.ground import Instance, Params, System
from ..interpret.batch import Batch, Candidates
from ..interpret.packing import Words
from ..interpret.reference import Reference
from .batch import BLOCK, Search
from .result import Step

Rows = npt.NDArray[np.intp]

OnApart = Callable[[Words, bool], None]
"""Told of states to which the mutant's differing steps lead: their keys, and whether one of them has no key."""


class Change(Enum):
    """How the steps of a mutant differ from those of the variant, over all reachable states."""

    NONE = "the same steps"
    STUTTERS = "more or fewer steps that change nothing"
    MORE = "more steps"
    FEWER = "fewer steps"
    OTHER = "other steps"

    @staticmethod
    def of(*differences: Difference) -> Change:
        """Several differences, at several constants, in one word."""
        more, fewer, other = (sum(getattr(d, name) for d in differences) for name in ("more", "fewer", "other"))
        if other or (more and fewer):
            return Change.OTHER
        if more or fewer:
            return Change.MORE if more else Change.FEWER
        return Change.STUTTERS if any(d.still for d in differences) else Change.NONE


@dataclass(frozen=True)
class Apart:
    """A state, by its number in the search, with a step that one of the two has and the other has not, or otherwise.

    ``of_mutant``: the step is the mutant's; else it is the variant's, and the mutant lacks it.
    """

    state: int
    action: str
    params: Params
    of_mutant: bool


@dataclass(frozen=True)
class Difference:
    """All differences at these constants.

    Counts of pairs of a state and a step, those that change the state alone: ``more`` that only the mutant has,
    ``fewer`` that only the variant has, ``other`` that both have with different states after them. ``still`` counts
    those of either that change nothing. ``added`` is the nearest step of the mutant that the variant refuses or takes
    otherwise, ``removed`` the nearest of the variant that the mutant refuses.
    """

    more: int
    fewer: int
    other: int
    still: int
    added: Apart | None
    removed: Apart | None

    @property
    def change(self) -> Change:
        """The differences in one word."""
        return Change.of(self)


class _Tally:
    """The differences found so far. Blocks come in the order of the states' numbers, so the first found is nearest."""

    def __init__(self, on_apart: OnApart | None) -> None:
        self.on_apart = on_apart
        self.counts = {"more": 0, "fewer": 0, "other": 0, "still": 0}
        self.nearest: dict[bool, Apart] = {}

    def count(self, kind: str, moves: npt.NDArray[np.bool_]) -> None:
        """Some differences, with whether each changes the state."""
        self.counts[kind] += int(np.count_nonzero(moves))
        self.counts["still"] += int(np.count_nonzero(~moves))

    def see(self, rows: Rows, at: int, instance: Instance, of_mutant: bool) -> None:
        """Remember the first of these rows, if it is nearer than what is known."""
        if rows.size:
            known = self.nearest.get(of_mutant)
            state = at + int(rows[0])
            if known is None or state < known.state:
                self.nearest[of_mutant] = Apart(state, instance.action, instance.params, of_mutant)

    def led(self, candidates: Candidates, apart: npt.NDArray[np.bool_]) -> None:
        """Tell where those steps of the mutant lead that are marked."""
        if self.on_apart is not None and apart.any():
            escaped = np.zeros_like(apart)
            escaped[candidates.escaped] = True
            self.on_apart(candidates.keys[:, apart & ~escaped], bool((apart & escaped).any()))

    def difference(self) -> Difference:
        """The whole."""
        return Difference(**self.counts, added=self.nearest.get(True), removed=self.nearest.get(False))


def compare(search: Search, mutant: System, action: str, on_apart: OnApart | None = None) -> Difference:
    """The differences of a mutant from the system of a search that found all reachable states.

    Both have the same cells; ``action`` is the one in which they differ. A step of the mutant to a state that no key
    can hold counts as one that moves. ``on_apart`` is told where the steps lead that the mutant has more, or otherwise.
    """
    system = search.system
    ours, theirs = (_only(each, action) for each in (system, mutant))
    tally = _Tally(on_apart)
    somewhere = any(each.system.instances for each in (ours, theirs))
    for at in range(0, search.table.count if somewhere else 0, BLOCK):
        keys = search.table.keys[:, at : min(at + BLOCK, search.table.count)].copy()
        block = search.batch.block(keys)
        before, after = (_by_params(b, b.successors(block, keys)) for b in (ours, theirs))
        for params in {**before, **after}:
            instance = system.by_step[action, params]
            _tell(tally, instance, at, keys, before.get(params), after.get(params))
    return tally.difference()


def _only(system: System, action: str) -> Batch:
    return Batch(replace(system, instances=[i for i in system.instances if i.action == action]))


def _by_params(batch: Batch, found: list[Candidates]) -> Mapping[Params, Candidates]:
    return {batch.system.instances[each.instance].params: each for each in found}


def _tell(
    tally: _Tally, instance: Instance, at: int, keys: Words, ours: Candidates | None, theirs: Candidates | None
) -> None:
    """Count how one instance differs over one block of keys, the first of which has the number ``at``."""
    none = np.empty(0, dtype=np.intp)
    our_rows, their_rows = (none if c is None else c.rows for c in (ours, theirs))
    # Rows come in ascending order.
    lost, gained = ~np.isin(our_rows, their_rows), ~np.isin(their_rows, our_rows)
    both_ours, both_theirs = np.flatnonzero(~lost), np.flatnonzero(~gained)
    if ours is not None and lost.any():
        tally.count("fewer", _moves(ours, keys)[lost])
        tally.see(our_rows[lost], at, instance, of_mutant=False)
    if theirs is not None:
        apart = gained
        if gained.any():
            tally.count("more", _moves(theirs, keys)[gained])
        if ours is not None and both_theirs.size:
            differ = (ours.keys[:, both_ours] != theirs.keys[:, both_theirs]).any(axis=0)
            differ |= np.isin(both_theirs, theirs.escaped)
            tally.count("other", np.ones(int(np.count_nonzero(differ)), dtype=np.bool_))
            apart = gained.copy()
            apart[both_theirs[differ]] = True
        tally.led(theirs, apart)
        tally.see(their_rows[apart], at, instance, of_mutant=True)


def _moves(candidates: Candidates, keys: Words) -> npt.NDArray[np.bool_]:
    """Which of the candidates differ from the state that they come from."""
    moves: npt.NDArray[np.bool_] = (candidates.keys != keys[:, candidates.rows]).any(axis=0)
    moves[candidates.escaped] = True
    return moves


def run_to(search: Search, mutant: System, apart: Apart) -> list[Step]:
    """A shortest run of the one that has the differing step, which is the last; by the reference's word.

    Raises ValueError where the reference finds no difference there.
    """
    system, other = (mutant, search.system) if apart.of_mutant else (search.system, mutant)
    path = search.path(apart.state)
    state = path[-1].state if path else system.initial
    reference, lacking = Reference(system), Reference(other)
    renamed = [params for action, params in system.by_step if action == apart.action]
    # With symmetry the path ends in a renamed state: there the step has other parameters.
    for params in [apart.params] if search.symmetry is None else renamed:
        after = reference.step(state, apart.action, params)
        if after is not None and after != lacking.step(state, apart.action, params):
            return [*path, Step(system.by_step[apart.action, params], after)]
    raise ValueError(f"the reference finds no difference of {apart.action} in the state {apart.state}")
