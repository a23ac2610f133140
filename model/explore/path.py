"""From the chain of states that a search remembers to a path of named steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..core.ground import State, System
from ..interpret.batch import Batch
from ..interpret.packing import Words
from ..interpret.reference import Reference
from ..interpret.staged import Successors
from .result import Exploration, Step, Verdict

Link = TypeVar("Link")

Taken = Callable[[State, Link], tuple[int, State] | None]
"""A step from a state to the next link of a chain: the instance's number, and the state after it. None: there is none.

With symmetry the links are orbits, and the step leads to some state of the next one.
"""


def rebuild(system: System, chain: Sequence[Link], taken: Taken[Link], start: State | None = None) -> list[Step]:
    """The steps along a chain from the initial state, or from ``start``.

    Every step is re-run by the reference interpreter before anyone sees it.
    """
    reference = Reference(system)
    state = system.initial if start is None else start
    path: list[Step] = []
    for wanted in chain[1:]:
        found = taken(state, wanted)
        if found is None:
            raise AssertionError(f"no step leads from {state} to {wanted}")
        number, after = found
        instance = system.instances[number]
        if reference.step(state, instance.action, instance.params) != after:
            raise AssertionError(f"the reference disagrees about {instance} in {state}")
        path.append(Step(instance, after))
        state = after
    return path


def ancestry(parent: Mapping[State, State | None], state: State) -> list[State]:
    """The states from the first one of a search to this one, by the state that was found before each."""
    chain = [state]
    while (before := parent[chain[-1]]) is not None:
        chain.append(before)
    return chain[::-1]


def path_to(system: System, successors: Successors, parent: Mapping[State, State | None], state: State) -> list[Step]:
    """The steps to a state from the first one of a search that remembers the state before each."""
    chain = ancestry(parent, state)

    def link(before: State, wanted: State) -> tuple[int, State] | None:
        return next(((number, after) for number, after in successors(before) if after == wanted), None)

    return rebuild(system, chain, link, chain[0])


def taken(
    batch: Batch, before: State, wanted: npt.NDArray[np.uint64], canonical: Callable[[Words], Words] | None = None
) -> tuple[int, State] | None:
    """A step from a state to the one of this key, shape (words,); of several the first, as instances come.

    With ``canonical``, to one whose orbit it is. Nothing is compiled for a path: a block of one state is soon expanded.
    """
    packing = batch.packing
    key = packing.key(before)[:, None]
    # A successor that no key can hold is on no chain.
    found = [each for each in batch.successors(batch.block(key), key) if not each.escaped.size]
    keys = np.concatenate([each.keys for each in found], axis=1)
    same = np.flatnonzero(((canonical(keys) if canonical else keys) == wanted[:, None]).all(axis=0))
    return (found[same[0]].instance, packing.state(keys[:, same[0]])) if same.size else None


def report_escape(answer: Exploration, path: list[Step], number: int) -> None:
    """A successor that no key can hold is one level further down, and breaks ``type_ok``: by the reference's word.

    ``path`` leads to the state before; ``number`` is that of the instance by which an engine left the domains.
    """
    system = answer.query.system
    instance = system.instances[number]
    before = path[-1].state if path else system.initial
    # With symmetry the path ends in a renamed state: there the instance has other parameters.
    reference = Reference(system)
    for action, params, after in reference.successors(before):
        if action == instance.action and "type_ok" in reference.broken(after):
            path.append(Step(system.by_step[action, params], after))
            break
    else:
        raise AssertionError(f"the reference finds no value outside its domain after {instance}")
    answer.verdict = Verdict.VIOLATED
    answer.violated = "type_ok"
    answer.path = path
    answer.depth += 1
    answer.reason = "a step leads outside the declared domains; states on that level are not counted"
