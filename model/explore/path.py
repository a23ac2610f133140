"""From the chain of states that a search remembers to a path of named steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..core.ground import State, System
from ..interpret.reference import Reference
from .result import Step

Link = TypeVar("Link")

Taken = Callable[[State, Link], tuple[int, State] | None]
"""A step from a state to the next link of a chain: the instance's number, and the state after it. None: there is none.

With symmetry the links are orbits, and the step leads to some state of the next one.
"""


def rebuild(system: System, chain: Sequence[Link], taken: Taken[Link]) -> list[Step]:
    """The steps along a chain from the initial state.

    Every step is re-run by the reference interpreter before anyone sees it.
    """
    reference = Reference(system)
    state = system.initial
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
