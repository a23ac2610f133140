"""Where faults are planted: for each a few walks of the variant that end in a step which only the fault takes so.

A random walk seldom comes by the place where a fault shows. So places are looked for beforehand: in the states nearest
to the start, each reached along a shortest path, and in the states of some random walks. The path and the step after it
are all that a file's writer needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ...model.core.errors import BadInput
from ...model.explore import Limits, Query, Verdict
from ...model.explore.batch import Search, search_batch
from ...model.explore.result import OnProgress
from ...model.interpret.batch import Block, Candidates
from ...model.interpret.packing import Words
from ...model.interpret.reference import Reference
from ..text import counted
from .draws import Draws, Purpose
from .walk import NOTHING, Ids, Walker, Walks, numbered

MAX_STATES: Final = (200_000, 2_000_000)
"""So many states nearest to the start are looked at; more for faults that do not show in those."""
SAMPLED: Final = 1 << 16
"""And so many states of random walks, of at most ``SAMPLED_STEPS`` steps each."""
SAMPLED_STEPS: Final = 256
NEAR: Final = 32
FAR: Final = 32
"""Places that are kept of each fault: on shortest paths, spread over their lengths, and on random walks."""

_BLOCK: Final = 1 << 14
_SAMPLE_IDS: Final = 1 << 40
"""The ids of the random walks, which are no trace's."""


@dataclass(frozen=True)
class Place:
    """A walk of the variant and, last, the fault's step: calls by number, and the key after each, (words, calls).

    ``guard``: the first guard by which the variant refuses that step; None where it takes it to another state, which
    differs in ``variables``.
    """

    calls: tuple[int, ...]
    keys: Words
    guard: str | None
    variables: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """Exactly ``planted`` of ``traces`` traces go by a fault, each fault equally often, but for one at most.

    ``asked``: all faults that were asked for, whose rules a walker has. ``faults``: those that are planted, ``rules``
    the numbers of their rules, ``places`` their places. ``skipped``: faults that cannot be planted, and why.
    """

    asked: tuple[str, ...]
    faults: tuple[str, ...]
    rules: tuple[int, ...]
    places: tuple[tuple[Place, ...], ...]
    traces: int
    planted: int
    skipped: Mapping[str, str]

    def among(self, draws: Draws, low: int, high: int) -> tuple[Ids, npt.NDArray[np.int64]]:
        """The trace ids from ``low`` below ``high`` that are planted, and the number of the fault of each.

        The n-th planted trace is one at random of the n-th share of all traces.
        """
        first = max(0, low * self.planted // self.traces - 1)
        last = min(self.planted, high * self.planted // self.traces + 2)
        number = np.arange(first, last, dtype=np.int64)
        begin = number * self.traces // self.planted
        size = (number + 1) * self.traces // self.planted - begin
        chosen = begin + draws.below(size, number, 0, Purpose.PLANTED)
        inside = (chosen >= low) & (chosen < high)
        return chosen[inside], number[inside] % len(self.faults)


def make_plan(
    who: Walker,
    faults: Sequence[str],
    named: Sequence[str],
    traces: int,
    planted: int,
    steps: int,
    told: OnProgress | None = None,
) -> Plan:
    """Look for places of each fault: rules 1, 2, ... of the walker, of these names.

    ``named``: faults that were asked for by name, the others are skipped where they cannot be planted. Raises BadInput
    for one of those that cannot, and where there are fewer traces to plant than faults.
    """
    found: dict[int, tuple[Place, ...]] = {}
    why: dict[int, str] = {}
    for most in MAX_STATES:
        missing = [number for number in range(1, len(faults) + 1) if number not in found]
        search = search_batch(Query.of(who.system, ("type_ok",), limits=Limits(most)), told)
        seeker = _Seeker(who, search, steps, missing)
        found |= {number: seeker.places(number) for number in missing if number in seeker.seen}
        why = {number: seeker.why(number) for number in missing if number not in seeker.seen}
        if not why or seeker.whole:
            break
    for number, reason in why.items():
        if (name := faults[number - 1]) in named:
            mend = "leave it out, or give larger constants or longer traces"
            raise BadInput(f"{name} cannot be planted: {reason}", "--faults", mend)
    kept = [name for number, name in enumerate(faults, 1) if number in found]
    if not kept:
        raise BadInput("none of the faults can be planted", "--faults", "give larger constants, or longer traces")
    if planted < len(kept):
        raise too_few(planted, traces, len(kept))
    skipped = {faults[number - 1]: reason for number, reason in why.items()}
    rules = tuple(sorted(found))
    return Plan(tuple(faults), tuple(kept), rules, tuple(found[number] for number in rules), traces, planted, skipped)


def too_few(planted: int, traces: int, faults: int) -> BadInput:
    """The error of a plan in which some fault would be in no trace."""
    what = f"{planted} of {counted(traces, 'trace')} are too few for {counted(faults, 'fault')}"
    return BadInput(what, "--rate", "raise the rate or the number of traces")


@dataclass
class _Found:
    """Steps that only a fault takes so: number of the state, its distance, call, key after it, a random number."""

    state: npt.NDArray[np.int64]
    depth: npt.NDArray[np.int64]
    call: npt.NDArray[np.int64]
    after: Words
    lot: npt.NDArray[np.uint64]

    def best(self, each: int) -> _Found:
        """Of each distance those with the lowest lots, in the order of distances and lots."""
        order = np.lexsort((self.lot, self.depth))
        depth = self.depth[order]
        starts = np.flatnonzero(np.append(True, depth[1:] != depth[:-1])) if depth.size else np.empty(0, dtype=np.intp)
        rank = np.arange(depth.size) - np.repeat(starts, np.diff(np.append(starts, depth.size)))
        return self.take(order[rank < each])

    def take(self, at: npt.NDArray[np.intp]) -> _Found:
        """Some of them."""
        return _Found(self.state[at], self.depth[at], self.call[at], self.after[:, at], self.lot[at])

    @classmethod
    def joined(cls, parts: Sequence[_Found]) -> _Found:
        """Several in one."""
        return cls(
            np.concatenate([each.state for each in parts]),
            np.concatenate([each.depth for each in parts]),
            np.concatenate([each.call for each in parts]),
            np.concatenate([each.after for each in parts], axis=1),
            np.concatenate([each.lot for each in parts]),
        )


class _Seeker:
    """The states in which places are looked for: those of a search, then those of random walks."""

    def __init__(self, who: Walker, search: Search, steps: int, rules: Sequence[int]) -> None:
        self.who = who
        self.whole = search.answer.verdict is not Verdict.UNKNOWN
        self.reached = search.table.count
        self.steps = steps
        self._parents = search.parents.copy()
        self._reference = Reference(who.system)
        length = min(steps, SAMPLED_STEPS)
        count = max(1, SAMPLED // length)
        self._walks = Walks.of(numbered(range(_SAMPLE_IDS, _SAMPLE_IDS + count)), length, who.batch.packing.words)
        who.walk(self._walks, np.arange(count))
        # States of walks are numbered on: the state before step s of walk w is number s * count + w.
        firsts = np.repeat(who.initial[:, None], count, axis=1)
        walked = np.concatenate((firsts[:, None, :], self._walks.keys[:, :-1]), axis=1)
        self._keys = np.concatenate((search.table.keys, walked.reshape(walked.shape[0], -1)), axis=1)
        self._depth = np.concatenate((_depths(self._parents), np.repeat(np.arange(length), count)))
        ended = np.arange(length)[:, None] > self._walks.lengths[None, :]
        self._real = np.concatenate((np.ones(self.reached, dtype=np.bool_), ~ended.ravel()))
        self._rules = rules
        self.seen: dict[int, list[_Found]] = {}
        self._too_far: dict[int, int] = {}
        self._escaped: set[int] = set()
        for at in range(0, self._keys.shape[1], _BLOCK):
            self._look_at(at)

    def _look_at(self, at: int) -> None:
        who = self.who
        keys = self._keys[:, at : at + _BLOCK].copy()
        block = who.batch.block(keys)
        own = {int(who.rules[0].calls[c.instance]): c for c in who.batch.successors(block, keys)}
        for number in self._rules:
            parts = list(self._apart(number, own, who.rules[number].batch.successors(block, keys), at, block, keys))
            if parts:
                # Kept in the two kinds apart, as many of each as may be needed.
                found = _Found.joined(parts)
                near = found.state < self.reached
                for kind in (near, ~near):
                    if kind.any():
                        self.seen.setdefault(number, []).append(found.take(np.flatnonzero(kind)).best(NEAR))

    def _apart(
        self,
        number: int,
        own: Mapping[int, Candidates],
        theirs: Sequence[Candidates],
        at: int,
        block: Block,
        keys: Words,
    ) -> Iterator[_Found]:
        """The steps of one fault, in one block, that the variant refuses or takes to another state."""
        for each in theirs:
            call = int(self.who.rules[number].calls[each.instance])
            apart = np.ones(each.rows.size, dtype=np.bool_)
            ours = own.get(call)
            if ours is not None:
                place = np.full(_BLOCK, NOTHING, dtype=np.intp)
                place[ours.rows] = np.arange(ours.rows.size)
                both = np.flatnonzero(place[each.rows] != NOTHING)
                apart[both] = (each.keys[:, both] != ours.keys[:, place[each.rows[both]]]).any(axis=0)
            apart &= self._real[at + each.rows]
            apart &= ~self._repeats(call, block, each, keys)
            if apart[each.escaped].any():
                self._escaped.add(number)
            apart[each.escaped] = False
            state = at + each.rows[apart]
            depth = self._depth[state]
            far = depth >= self.steps
            if far.any():
                self._too_far[number] = min(int(depth[far].min()) + 1, self._too_far.get(number, 1 << 30))
            state, depth, after = state[~far], depth[~far], each.keys[:, apart][:, ~far]
            if state.size:
                lot = self.who.draws.bits(state, call, Purpose.KEPT)
                yield _Found(state, depth, np.full(state.size, call), after, lot)

    def _repeats(self, call: int, block: Block, each: Candidates, keys: Words) -> npt.NDArray[np.bool_]:
        """Which steps of a fault change nothing, so that the variant takes them for observations."""
        action, params = self.who.calls.all[call]
        instance = self.who.system.by_step.get((action, params))
        same: npt.NDArray[np.bool_] = (each.keys == keys[:, each.rows]).all(axis=0)
        if instance is None or not same.any():
            return np.zeros(each.rows.size, dtype=np.bool_)
        condition = instance.repetition(self.who.system.traced.action(action))
        repeats: npt.NDArray[np.bool_] = np.broadcast_to(block(condition), (keys.shape[1],))[each.rows]
        return same & repeats

    def places(self, number: int) -> tuple[Place, ...]:
        """The places of one fault that was seen."""
        found = _Found.joined(self.seen[number])
        near, far = found.state < self.reached, found.state >= self.reached
        chosen = []
        for kind, most in ((near, NEAR), (far, FAR)):
            kept = found.take(np.flatnonzero(kind))
            # A few of each distance, the nearest ones first of all.
            levels = max(1, np.unique(kept.depth).size)
            kept = kept.best(max(1, most // levels))
            chosen.append(kept.take(np.arange(min(most, kept.state.size))))
        both = _Found.joined(chosen)
        return tuple(self._place(both, n) for n in range(both.state.size))

    def why(self, number: int) -> str:
        """Why a fault was not seen, in words."""
        if number in self._too_far:
            return f"its nearest step is the {self._too_far[number]}th, and a trace has {self.steps}"
        if number in self._escaped:
            return "its steps lead outside the declared domains, which no trace can tell"
        if self.whole:
            return f"it has no step of its own in any of the {self.reached:,} states"
        return f"it has no step of its own in {self.reached:,} states and {self._walks.ids.size:,} walks"

    def _place(self, found: _Found, n: int) -> Place:
        state, call = int(found.state[n]), int(found.call[n])
        if state < self.reached:
            calls, keys = self._shortest(state)
        else:
            step, walk = divmod(state - self.reached, self._walks.ids.size)
            calls = tuple(map(int, self._walks.calls[:step, walk]))
            keys = self._walks.keys[:, :step, walk]
        guard, variables = self._refusal(state, call, found.after[:, n])
        return Place((*calls, call), np.concatenate((keys, found.after[:, n : n + 1]), axis=1), guard, variables)

    def _shortest(self, state: int) -> tuple[tuple[int, ...], Words]:
        """The calls of a shortest run to a state, and the key after each."""
        chain = [state]
        while self._parents[chain[-1]] >= 0:
            chain.append(int(self._parents[chain[-1]]))
        keys = self._keys[:, chain[::-1]]
        before = keys[:, :-1].copy()
        calls = np.full(before.shape[1], NOTHING)
        who = self.who
        for each in who.batch.successors(who.batch.block(before), before) if before.size else []:
            hit = each.rows[(each.keys == keys[:, each.rows + 1]).all(axis=0)]
            calls[hit[calls[hit] == NOTHING]] = who.rules[0].calls[each.instance]
        return tuple(map(int, calls)), keys[:, 1:]

    def _refusal(self, state: int, call: int, after: npt.NDArray[np.uint64]) -> tuple[str | None, tuple[str, ...]]:
        """Why the variant does not take a step so: by the reference's word."""
        packing = self.who.batch.packing
        before = packing.state(self._keys[:, state])
        action, params = self.who.calls.all[call]
        ours = self._reference.step(before, action, params)
        if ours is None:
            return self._reference.refused_by(before, action, params), ()
        theirs = packing.state(after)
        cells = self.who.layout.cells
        differing = (cell.variable.name for cell in cells if ours[cell.number] != theirs[cell.number])
        return None, tuple(dict.fromkeys(differing))


def _depths(parents: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The distance of each state from the start."""
    depth = np.zeros(parents.size, dtype=np.int64)
    at = parents.astype(np.int64)
    while (on := at >= 0).any():
        depth[on] += 1
        at = np.where(on, parents[at], -1)
    return depth
