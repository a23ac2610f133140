"""A shortest run to a state that meets a goal, from any state on: for stories, where no invariant breaks."""

from __future__ import annotations

from collections.abc import Callable

from ..core.ground import State, System
from ..interpret.staged import stage
from .path import path_to
from .result import Limits, Step


def run_to(
    system: System, goal: Callable[[State], bool], start: State | None = None, limits: Limits | None = None
) -> list[Step] | None:
    """Steps from ``start`` (the initial state) to a first state that meets the goal, the fewest there are.

    ``None`` where no reachable state meets it. Raises ``ValueError`` where ``limits.max_states`` are visited before.
    """
    most = (limits or Limits()).max_states
    staged = stage(system)
    first = system.initial if start is None else start
    parent: dict[State, State | None] = {first: None}
    level = [first]
    while level:
        for state in level:
            if goal(state):
                return path_to(system, staged.successors, parent, state)
        following: list[State] = []
        for state in filter(staged.expandable, level):
            for _, after in staged.successors(state):
                if after not in parent:
                    parent[after] = state
                    following.append(after)
        if len(parent) > most:
            raise ValueError(f"more than {most:,} states, and none of them meets the goal")
        level = following
    return None
