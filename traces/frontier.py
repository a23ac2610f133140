"""The frontier: every state of the model that still explains a trace, each with one run that leads to it.

A frontier keeps clean states (some explaining run broke no invariant) apart from dirty ones (every explaining run that
was found did). A state is in one of the two, and clean wins: what can follow a state depends on the state alone.
Nodes point at their parents only, so a run that explains no longer is freed with its last node.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from ..model.core.ground import State
from ..model.interpret.conditions import WorkSpentError
from .event_match import Wanted
from .stepper import Stepper, TakenStep


class BudgetSpent(Exception):
    """A budget ran out. ``budget`` is its name, ``told`` says it in words."""

    def __init__(self, budget: str, told: str) -> None:
        super().__init__(told)
        self.budget = budget
        self.told = told


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A state with a run that leads to it.

    ``event`` is the index of the event that the last step explains, None for an unobserved step. ``skipped`` counts
    the run's unobserved steps, ``gap`` those since the event before. ``breach`` is where the run first broke
    invariants: that node's depth, and their names.
    """

    state: State
    parent: Node | None = None
    step: TakenStep | None = None
    event: int | None = None
    depth: int = 0
    skipped: int = 0
    gap: int = 0
    breach: tuple[int, tuple[str, ...]] | None = None

    def run(self) -> list[tuple[TakenStep, int | None]]:
        """The steps from the initial state to this one, each with the index of the event that it explains."""
        found: list[tuple[TakenStep, int | None]] = []
        node: Node | None = self
        while node is not None and node.step is not None:
            found.append((node.step, node.event))
            node = node.parent
        return found[::-1]


@dataclass
class Frontier:
    """Nodes by state, in the order in which they were found: the same on every machine."""

    clean: dict[State, Node] = field(default_factory=dict)
    dirty: dict[State, Node] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.clean) + len(self.dirty)

    def __iter__(self) -> Iterator[Node]:
        return chain(self.clean.values(), self.dirty.values())

    def add(self, node: Node) -> bool:
        """Take a node in, unless its state is known already at least as well. Says whether there is more to explore.

        Of two runs to one state that are equally clean, the one with fewer unobserved steps is kept.
        """
        state = node.state
        known = self.clean.get(state)
        if known is None and node.breach is None:
            self.dirty.pop(state, None)
            self.clean[state] = node
            return True
        side = self.dirty if known is None else self.clean
        known = side.get(state)
        if known is None:
            side[state] = node
            return True
        if node.skipped < known.skipped and (node.breach is None) is (known.breach is None):
            side[state] = node
        return False


class Explorer:
    """Moves frontiers along a trace and counts what it costs.

    ``max_frontier`` bounds the states of one frontier, unobserved ones included; ``deadline`` is on the clock of
    ``time.monotonic``. Both raise ``BudgetSpent``.
    """

    def __init__(
        self, stepper: Stepper, invariants: Sequence[str], max_frontier: int, max_seconds: float | None
    ) -> None:
        self._stepper = stepper
        self._invariants = frozenset(invariants)
        self._max_frontier = max_frontier
        self._max_seconds = max_seconds
        self._deadline = None if max_seconds is None else time.monotonic() + max_seconds
        self._broken: dict[State, tuple[str, ...]] = {}
        self.states_visited = 0

    def start(self) -> Frontier:
        """The initial state."""
        frontier = Frontier()
        frontier.add(self._node(self._stepper.system.initial, None, None, None))
        return frontier

    def broken(self, state: State) -> tuple[str, ...]:
        """The invariants, of those asked for, that a state breaks."""
        found = self._broken.get(state)
        if found is None:
            try:
                broken = self._stepper.broken(state)
            except WorkSpentError as spent:
                raise BudgetSpent("max_work", f"checking the invariants of one state takes {spent}") from spent
            found = tuple(name for name in broken if name in self._invariants)
            self._broken[state] = found
        return found

    def widen(self, frontier: Frontier, steps: int) -> tuple[Frontier, bool]:
        """The frontier with the states that up to ``steps`` unobserved steps lead to, nearest first.

        Also whether that is every state that any number of unobserved steps leads to.
        """
        wide = Frontier(dict(frontier.clean), dict(frontier.dirty))
        level = list(frontier)
        for _ in range(steps):
            found: list[Node] = []
            for node in level:
                for step in self._stepper.every(node.state):
                    after = self._node(step.state, node, step, None)
                    if wide.add(after):
                        found.append(after)
                self._check(wide)
            if not found:
                return wide, True
            level = found
        return wide, False

    def advance(self, frontier: Frontier, event: Wanted) -> Frontier:
        """The states after an event."""
        after = Frontier()
        for node in frontier:
            for step_node in self._steps(node, event):
                after.add(step_node)
            self._check(after)
        return after

    def _steps(self, node: Node, event: Wanted) -> Iterator[Node]:
        if event.action is None:
            if event.agrees(node.state):
                yield replace(node, gap=0)
            return
        for step in self._stepper.some(node.state, event.action, event.choices):
            if event.agrees(step.state):
                yield self._node(step.state, node, step, event.index)
        if event.agrees(node.state) and self._stepper.repeats(node.state, event.action, event.choices):
            # Nothing changes, so the event is an observation.
            yield replace(node, gap=0)

    def _node(self, state: State, parent: Node | None, step: TakenStep | None, event: int | None) -> Node:
        self.states_visited += 1
        depth, skipped, gap, breach = 0, 0, 0, None
        if parent is not None:
            depth = parent.depth + 1
            if event is None:
                skipped, gap = parent.skipped + 1, parent.gap + 1
            else:
                skipped = parent.skipped
            breach = parent.breach
        if breach is None:
            names = self.broken(state)
            if names:
                breach = (depth, names)
        return Node(state, parent, step, event, depth, skipped, gap, breach)

    def _check(self, frontier: Frontier) -> None:
        if len(frontier) > self._max_frontier:
            raise BudgetSpent("max_frontier", f"more than {self._max_frontier:,} states explain the trace at once")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise BudgetSpent("max_seconds", f"{self._max_seconds:g} s were not enough")
