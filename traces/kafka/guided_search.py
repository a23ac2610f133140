"""A greedy search for some run that ends in brokers' logs, guided by how many conditions on the logs a state misses.

It finds a run of many steps after few states, where a search level by level takes millions. The run is not a shortest
one, and not finding one says nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count

from ...model.core.ground import State, System
from ...model.explore.path import path_to
from ...model.explore.result import Step
from ...model.interpret.staged import stage
from .log_conditions import Condition


def guided_run(system: System, conditions: Sequence[Condition], most: int) -> tuple[list[Step] | None, int]:
    """Search for a run to a state in which all conditions hold.

    Args:
        system: The model at its constants; states outside ``system.constraint`` are not expanded.
        conditions: What must hold of the last state.
        most: Give up after so many distinct states.

    Returns:
        The run, or None; and the number of states that were found.
    """
    staged = stage(system)
    missed = _missed(system, conditions)
    first = system.initial
    parent: dict[State, State | None] = {first: None}
    order = count()
    waiting = [(missed(first), 0, next(order), first)]
    while waiting and len(parent) <= most:
        far, depth, _, state = heapq.heappop(waiting)
        if not far:
            return path_to(system, staged.successors, parent, state), len(parent)
        if not staged.expandable(state):
            continue
        for _, after in staged.successors(state):
            if after not in parent:
                parent[after] = state
                heapq.heappush(waiting, (missed(after), depth + 1, next(order), after))
    return None, len(parent)


def _missed(system: System, conditions: Sequence[Condition]) -> Callable[[State], int]:
    """How many of the conditions a state misses."""
    cells = system.layout.by_name
    compiled = [
        [(cells[left], op, cells[right] if isinstance(right, str) else None, right) for left, op, right in condition]
        for condition in conditions
    ]

    def count_missed(state: State) -> int:
        missed = 0
        for condition in compiled:
            for left, op, cell, value in condition:
                other = value if cell is None else state[cell]
                assert isinstance(other, int)
                here = state[left]
                if here == other if op == "==" else here != other if op == "!=" else here >= other:
                    break
            else:
                missed += 1
        return missed

    return count_missed
