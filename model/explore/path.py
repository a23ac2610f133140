"""From the chain of states that a search remembers to a path of named steps."""

from __future__ import annotations

from collections.abc import Callable

from ..core.ground import State, System
from ..interpret.reference import Reference
from ..interpret.staged import Staged
from .result import Step


def rebuild(
    system: System,
    staged: Staged,
    chain: list[State],
    representative: Callable[[State], State] | None = None,
) -> list[Step]:
    """The steps along a chain of states from the initial one; with symmetry, of representatives of their orbits.

    Every step is re-run by the reference interpreter before anyone sees it.
    """
    reference = Reference(system)
    state = system.initial
    path: list[Step] = []
    for wanted in chain[1:]:
        for number, after in staged.successors(state):
            if (representative(after) if representative else after) == wanted:
                instance = system.instances[number]
                if reference.step(state, instance.action, instance.params) != after:
                    raise AssertionError(f"the reference disagrees about {instance} in {state}")
                path.append(Step(instance, after))
                state = after
                break
        else:
            raise AssertionError(f"no step leads from {state} to {wanted}")
    return path
