"""Where runs are led first: to a state of the model in which a drawn step can happen, or is refused by a drawn guard.

A random run seldom gets to what takes eight particular steps. The model is executable, so it is explored beforehand, up
to a bound. Its steps fall into classes by what they change, so that a truncation that cuts a record is as likely to be
drawn as the thousand that cut nothing; a run is led along a shortest path to a state in which such a step is enabled,
takes it, and goes on at random. With refusals it is the same: of each guard that can be asked for, states are kept in
which it is the first to refuse.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from ...model.core.ground import Instance, System
from ...model.core.terms import Term, conjunction, disjunction, negate
from ...model.explore import Limits, Query
from ...model.explore.batch import BLOCK, Search, search_batch
from .space import Call, Pair, Space

MAX_STATES: Final = 300_000
"""So many states are explored, in the order of their distance from the start: a second."""
_KEPT: Final = 16
"""States that are remembered of each guard of an instance, in each block of states."""
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)

Place = tuple[int, Call]
"""A state's number, and the step to try there."""


class Goals:
    """Places are in the order of their distance from the start.

    ``steps``: by action, and by the variables that it changes there, where it can happen. ``refusals``: by action and
    guard, where that refuses it first.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        search = search_batch(Query.of(_prompt(space), ("type_ok",), limits=Limits(MAX_STATES)))
        self._packing = search.batch.packing
        self._keys = search.table.keys[:, : search.table.count].copy()
        by_variable: dict[str, dict[int, int]] = {}
        for cell, field in zip(space.system.layout.cells, self._packing.fields, strict=True):
            masks = by_variable.setdefault(cell.variable.name, {})
            masks[field.word] = masks.get(field.word, 0) | ((1 << field.bits) - 1) << field.shift
        self._masks = list(by_variable.values())
        self._parents = search.parents.copy()
        self._paths: dict[int, tuple[Call, ...]] = {}
        self.steps: dict[str, dict[int, list[Place]]] = {}
        self.refusals: dict[Pair, list[Place]] = {}
        for at in range(0, self._keys.shape[1], BLOCK):
            self._look_at(search, at)
        for kept in (*self.refusals.values(), *(each for kinds in self.steps.values() for each in kinds.values())):
            kept.sort()

    def _look_at(self, search: Search, at: int) -> None:
        """Keep places of one block of states, the first of which has the number ``at``."""
        space, batch = self.space, search.batch
        keys = self._keys[:, at : at + BLOCK].copy()
        block = batch.block(keys)
        for found in batch.successors(block, keys):
            instance = space.system.instances[found.instance]
            if instance.action not in space.crashes:
                truths = np.stack([batch.holds(block, each, keys.shape[1])[found.rows] for each in _atoms(instance)])
                changes = found.keys ^ keys[:, found.rows]
                chosen = _one_of_each(_mixed(np.concatenate((changes, truths.astype(np.uint64)))))
                call = (instance.action, instance.params)
                places = self.steps.setdefault(instance.action, {})
                for row, what in zip(found.rows[chosen], self._changed(changes[:, chosen]), strict=True):
                    places.setdefault(int(what), []).append((at + int(row), call))
        for call in space.tries:
            passed = np.ones(keys.shape[1], dtype=np.bool_)
            for name, guard in space.system.by_step[call].guards:
                holds = batch.holds(block, guard, keys.shape[1])
                if (call[0], name) in space.askable:
                    rows = np.flatnonzero(passed & ~holds)
                    kept = rows[:: max(1, rows.size // _KEPT)]
                    self.refusals.setdefault((call[0], name), []).extend((at + int(row), call) for row in kept)
                passed &= holds

    def _changed(self, changes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """For each column of changed bits a number with a bit for each variable that has one of them."""
        whole = np.zeros(changes.shape[1], dtype=np.uint64)
        for bit, masks in enumerate(self._masks):
            touched = np.zeros(changes.shape[1], dtype=np.bool_)
            for word, mask in masks.items():
                touched |= (changes[word] & np.uint64(mask)) != 0
            whole |= touched.astype(np.uint64) << np.uint64(bit)
        return whole

    def path(self, number: int) -> tuple[Call, ...]:
        """The steps of a shortest path to a state. A system may take some of them by itself on the way."""
        found = self._paths.get(number)
        if found is None:
            chain = [number]
            while self._parents[chain[-1]] >= 0:
                chain.append(int(self._parents[chain[-1]]))
            states = [self._packing.state(self._keys[:, n]) for n in reversed(chain)]
            found = self._paths[number] = tuple(
                next(self.space.calls[n] for n, to in self.space.successors(state) if to == after)
                for state, after in pairwise(states)
            )
        return found


def _prompt(space: Space) -> System:
    """The system in which whatever is done promptly comes before anything else."""
    system, prompt = space.system, space.binding.prompt
    first = [each for each in system.instances if each.action in prompt]
    if not first:
        return system
    settled = negate(disjunction(*(conjunction(*(guard for _, guard in each.guards)) for each in first)))
    return replace(
        system,
        instances=[
            each if each.action in prompt else replace(each, guards=(("settled", settled), *each.guards))
            for each in system.instances
        ],
    )


def _atoms(instance: Instance) -> list[Term]:
    """The comparisons that the step depends on: in its guards, and in the conditions of what it writes."""
    found: dict[Term, None] = {}

    def walk(term: Term) -> None:
        if term.op in ("and", "or", "not", "ite"):
            for part in term.args:
                walk(part)
        elif term.op in ("lt", "le", "eq", "member") and term not in found:
            found[term] = None
            for part in term.args:
                walk(part)
        else:
            for part in term.args:
                walk(part)

    for _, guard in instance.guards:
        walk(guard)
    for value in instance.effect.values():
        walk(value)
    return list(found)


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """One number for each column; columns that are equal have equal ones."""
    mixed = np.zeros(words.shape[1], dtype=np.uint64)
    for word in words:
        mixed = (mixed ^ word) * _MIX
    return mixed


def _one_of_each(kinds: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
    """Where each number stands first, and where last."""
    first = np.unique(kinds, return_index=True)[1]
    last = kinds.size - 1 - np.unique(kinds[::-1], return_index=True)[1]
    return np.unique(np.concatenate((first, last)))
