"""Random walks of a model, thousands in lockstep: at each step the batch interpreter sees all of them at once.

An action is chosen first among those that are enabled, then an instance among its own: were it one choice among all
instances, an action with many parameters that is always enabled would drown the others (uniform walks of ``snapshots``
are restarts for 97 %). An action that a walk has taken n times has the weight 1 / (1 + n)**2, so that seldom enabled
ones come up. Steps that change nothing are left out, and a walk that can go no further ends early.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from ...model.core.ground import Params, System
from ...model.interpret.batch import Batch, Block
from ...model.interpret.packing import Packing, Words
from .draws import Draws, Purpose
from .files import ROW_GROUP
from .layout import UNKNOWN, CorpusLayout, Events

Rows = npt.NDArray[np.intp]
Ids = npt.NDArray[np.int64]

Counts = npt.NDArray[np.int64]

Call = tuple[str, Params]

_AGAIN: Final = (Purpose.ACTION_AGAIN, Purpose.INSTANCE_AGAIN)

_HEAVIEST: Final = 1 << 20
"""The weight of an action not taken yet. The weights of all actions together stay below 2**31."""

NOTHING: Final = -1
"""The call of a walk at a step that it did not take."""


class Calls:
    """Every action with parameters that a variant has, numbered; what a row of a corpus says of a step."""

    def __init__(self, system: System, layout: CorpusLayout) -> None:
        self.all: tuple[Call, ...] = tuple(system.by_step)
        self.numbers = {call: number for number, call in enumerate(self.all)}
        self.action = np.array([layout.numbers[action] for action, _ in self.all], dtype=np.int8)
        self.params = np.full((layout.params, len(self.all)), UNKNOWN, dtype=layout.param_dtype)
        for number, (_, params) in enumerate(self.all):
            for place, (_, value) in enumerate(params):
                self.params[place, number] = value

    def of(self, batch: Batch) -> npt.NDArray[np.int32]:
        """The number of each of a batch's instances."""
        return np.array([self.numbers[i.action, i.params] for i in batch.system.instances], dtype=np.int32)


@dataclass
class Walks:
    """w walks of at most m steps. ``keys``: shape (words, m, w), the state after each step. ``calls``: shape (m, w).

    ``ids``: the trace ids, shape (w,). ``lengths``: the steps taken, shape (w,).
    """

    ids: Ids
    calls: npt.NDArray[np.int32]
    keys: Words
    lengths: npt.NDArray[np.int32]

    @classmethod
    def of(cls, ids: Ids, steps: int, words: int) -> Walks:
        """Walks that have not begun."""
        return cls(
            ids,
            np.full((steps, ids.size), NOTHING, dtype=np.int32),
            np.zeros((words, steps, ids.size), dtype=np.uint64),
            np.zeros(ids.size, dtype=np.int32),
        )

    def before(self, step: int, rows: Rows, initial: npt.NDArray[np.uint64]) -> Words:
        """The keys of some walks before a step, counted from 1."""
        if step == 1:
            return np.repeat(initial[:, None], rows.size, axis=1)
        return self.keys[:, step - 2, rows]

    def events(self, layout: CorpusLayout, calls: Calls, packing: Packing) -> Iterator[Events]:
        """The walks that took a step, as events in the order of their ids, a row group's worth at a time."""
        ends = np.cumsum(self.lengths)
        at = 0
        while at < self.ids.size:
            # As many walks as fit, and at least one.
            done = int(ends[at - 1]) if at else 0
            to = max(at + 1, int(np.searchsorted(ends, done + ROW_GROUP, side="right")))
            if ends[to - 1] > done:
                yield self._some(at, to, layout, calls, packing)
            at = to

    def _some(self, low: int, high: int, layout: CorpusLayout, calls: Calls, packing: Packing) -> Events:
        lengths = self.lengths[low:high]
        taken = np.arange(1, self.calls.shape[0] + 1)[None, :] <= lengths[:, None]
        call = self.calls[:, low:high].T[taken]
        keys = np.stack([word[:, low:high].T[taken] for word in self.keys])
        steps = np.broadcast_to(np.arange(1, taken.shape[1] + 1, dtype=np.int32), taken.shape)[taken]
        return Events.whole(
            layout,
            np.repeat(self.ids[low:high], lengths),
            steps,
            calls.action.take(call),
            calls.params.take(call, axis=1),
            packing.unpack(keys),
        )


@dataclass
class _Rules:
    """Another batch whose instances stand in place of some of the variant's own.

    ``replaced``: which of the variant's own instances do not count, shape (instances,).
    """

    batch: Batch
    calls: npt.NDArray[np.int32]
    replaced: npt.NDArray[np.bool_]


@dataclass
class _Choice:
    """Where an instance is enabled: in the states at these rows of a block, which are the walks at ``walks``."""

    rules: int
    number: int
    action: int
    rows: Rows
    walks: Rows


@dataclass
class Walker:
    """A variant, ready for walks. Rules 0 are its own; others stand for a fault, see ``add``."""

    system: System
    layout: CorpusLayout
    draws: Draws
    calls: Calls = field(init=False)
    batch: Batch = field(init=False)

    def __post_init__(self) -> None:
        self.calls = Calls(self.system, self.layout)
        self.batch = Batch(self.system)
        nothing = np.zeros(len(self.system.instances), dtype=np.bool_)
        self.rules = [_Rules(self.batch, self.calls.of(self.batch), nothing)]

    @property
    def initial(self) -> npt.NDArray[np.uint64]:
        """The key of the initial state, shape (words,)."""
        return self.batch.packing.key(self.system.initial)

    def add(self, batch: Batch, actions: Collection[str]) -> int:
        """Rules under which these actions have the batch's instances, and the others their own. Returns their number.

        The batch has no other actions, no call that the variant does not have, and the same cells.
        """
        replaced = np.array([instance.action in actions for instance in self.system.instances], dtype=np.bool_)
        self.rules.append(_Rules(batch, self.calls.of(batch), replaced))
        return len(self.rules) - 1

    def walk(self, walks: Walks, rows: Rows, rules: npt.NDArray[np.intp] | None = None) -> None:
        """Take these walks on from where they are to the last step, or as far as they can go.

        ``rules``: by which each goes, shape (rows,); None: by the variant's own.
        """
        steps = walks.calls.shape[0]
        begin = walks.lengths[rows]
        stopped = np.zeros(rows.size, dtype=np.bool_)
        taken = self._taken(walks, rows)
        for step in range(1, steps + 1):
            active = np.flatnonzero((begin < step) & ~stopped)
            if not active.size:
                continue
            here = rows[active]
            keys = walks.before(step, here, self.initial)
            given = None if rules is None else rules[active]
            call, after = self._step(keys, walks.ids[here], step, given, taken[:, active])
            moved = call != NOTHING
            stopped[active[~moved]] = True
            walks.calls[step - 1, here] = call
            walks.keys[:, step - 1, here] = after
            walks.lengths[here[moved]] = step
            taken[self.calls.action[call[moved]], active[moved]] += 1

    def _taken(self, walks: Walks, rows: Rows) -> Counts:
        """How often each walk has taken each action so far: shape (actions, rows)."""
        taken = np.zeros((len(self.layout.actions), rows.size), dtype=np.int64)
        for calls in walks.calls[: walks.lengths[rows].max(initial=0)]:
            made = np.flatnonzero(calls[rows] != NOTHING)
            taken[self.calls.action[calls[rows[made]]], made] += 1
        return taken

    def _step(
        self, keys: Words, ids: Ids, step: int, rules: npt.NDArray[np.intp] | None, taken: Counts
    ) -> tuple[npt.NDArray[np.int32], Words]:
        """One step of each walk: its call, or ``NOTHING``, and the key after it.

        Most steps change the state. Only where the one that was drawn does not, or leads out of the domains, what each
        of the others does is computed, and one that will do is drawn.
        """
        call, after = self._drawn(keys, ids, step, rules, taken, Purpose.ACTION, Purpose.INSTANCE)
        still = np.flatnonzero((after == keys).all(axis=0))
        if still.size:
            given = None if rules is None else rules[still]
            again = self._drawn(keys[:, still], ids[still], step, given, taken[:, still], *_AGAIN)
            call[still], after[:, still] = again
        return call, after

    def _drawn(
        self,
        keys: Words,
        ids: Ids,
        step: int,
        rules: npt.NDArray[np.intp] | None,
        taken: Counts,
        for_action: Purpose,
        for_instance: Purpose,
    ) -> tuple[npt.NDArray[np.int32], Words]:
        blocks, choices = self._choices(keys, rules, for_action in _AGAIN)
        count = keys.shape[1]
        enabled = np.zeros((len(self.layout.actions), count), dtype=np.int32)
        for each in choices:
            enabled[each.action, each.walks] += 1
        weights = np.maximum(_HEAVIEST // (1 + taken) ** 2, 1)
        sums = np.cumsum(np.where(enabled > 0, weights, 0), axis=0)
        drawn = self.draws.below(sums[-1], ids, step, for_action)
        action = np.argmax(sums > drawn, axis=0)
        left = self.draws.below(enabled[action, np.arange(count)], ids, step, for_instance)
        call = np.full(count, NOTHING, dtype=np.int32)
        after = keys.copy()
        for each in choices:
            asked = np.flatnonzero(action[each.walks] == each.action)
            chosen = asked[left[each.walks[asked]] == 0]
            left[each.walks[asked]] -= 1
            if not chosen.size:
                continue
            block, inside = blocks[each.rules]
            own = self.rules[each.rules]
            found = own.batch.apply(each.number, block, each.rows[chosen], inside)
            ok = np.ones(chosen.size, dtype=np.bool_)
            ok[found.escaped] = False
            walks = each.walks[chosen[ok]]
            call[walks] = own.calls[each.number]
            after[:, walks] = found.keys[:, ok]
        return call, after

    def _choices(
        self, keys: Words, rules: npt.NDArray[np.intp] | None, moving: bool
    ) -> tuple[dict[int, tuple[Block, Words]], list[_Choice]]:
        """Every instance that some walk may take, in an order that does not depend on the other walks.

        ``moving``: only where it changes the state, within its domains.
        """
        blocks: dict[int, tuple[Block, Words]] = {}
        choices: list[_Choice] = []
        for number, own in enumerate(self.rules):
            if number and (rules is None or not (rules == number).any()):
                continue
            here = np.arange(keys.shape[1]) if not number else np.flatnonzero(np.asarray(rules) == number)
            inside = keys if not number else keys[:, here]
            block = own.batch.block(inside)
            blocks[number] = block, inside
            for instance, rows in own.batch.enabled(block, inside.shape[1]):
                if not number and rules is not None:
                    rows = rows[~self._replaced(instance)[rules[rows]]]
                if moving and rows.size:
                    found = own.batch.apply(instance, block, rows, inside)
                    moves = (found.keys != inside[:, rows]).any(axis=0)
                    moves[found.escaped] = False
                    rows = rows[moves]
                if rows.size:
                    action = int(self.calls.action[own.calls[instance]])
                    choices.append(_Choice(number, instance, action, rows, here[rows]))
        return blocks, choices

    def _replaced(self, instance: int) -> npt.NDArray[np.bool_]:
        """For each of the rules whether they replace one of the variant's own instances."""
        return np.array([each.replaced[instance] for each in self.rules], dtype=np.bool_)


def numbered(ids: Sequence[int] | range) -> Ids:
    """Trace ids as an array."""
    return np.array(ids, dtype=np.int64)
