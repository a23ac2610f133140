"""Put what several nodes did in an order that the model explains, if there is one.

Each node's own order is known. Between nodes clocks tell little: a line is printed after what it tells of, by a thread
that may have waited, and machines have clocks of their own. So any order is as good as another, and the model says
which can have been: it is asked step by step, the line with the earliest time first, and where it refuses all that may
come next the search goes back (trace validation with a partial order). That there is no such order is an answer about
all of them; where the budget ends before, there is no answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ....model.core.ground import State
from ...format import TraceEvent
from ...run_report import Json
from ...stepper import Stepper
from .moves import Move

BUDGET: Final = 50_000
"""So many moves are tried at most."""

Positions: TypeAlias = "tuple[int, ...]"


@dataclass(frozen=True)
class Ordered:
    """Events in the order that was found. ``refused``: the line at which there was none; ``tried``: how many moves.

    ``certain`` False: the search ended before it was certain that there is none, or behind a line for which the model
    may have no step.
    """

    events: tuple[TraceEvent, ...]
    refused: Move | None
    tried: int
    certain: bool = True


@dataclass
class _Node:
    positions: Positions
    state: State
    choices: Iterator[tuple[Positions, State, tuple[TraceEvent, ...]]]
    events: tuple[TraceEvent, ...]
    """Those that led here from the node before."""


def in_order(
    stepper: Stepper, moves: Mapping[int, Sequence[Move]], budget: int = BUDGET, cut: Collection[int] = ()
) -> Ordered:
    """Find one. Where there is none the events are those of an order that reaches furthest, up to what is refused.

    ``cut``: whose moves go on behind those that are given.
    """
    nodes = sorted(moves)
    return _Search(stepper, [list(moves[node]) for node in nodes], budget, [node in cut for node in nodes]).run()


class _Search:
    def __init__(self, stepper: Stepper, queues: Sequence[Sequence[Move]], budget: int, cut: Sequence[bool]) -> None:
        self._stepper = stepper
        self._queues = queues
        self._budget = budget
        self._cut = cut
        self._tried = 0

    def run(self) -> Ordered:
        start = self._node(tuple(0 for _ in self._queues), self._stepper.system.initial, ())
        stack = [start]
        seen = {(start.positions, start.state)}
        furthest, refused, reached = list(stack), self._earliest(start), -1
        while stack:
            top = stack[-1]
            if all(at == len(queue) for at, queue in zip(top.positions, self._queues, strict=True)):
                return Ordered(_numbered(stack), None, self._tried)
            found = next(top.choices, None)
            if found is None:
                stack.pop()
                continue
            if self._tried >= self._budget:
                break
            positions, state, events = found
            if (positions, state) not in seen:
                seen.add((positions, state))
                stack.append(self._node(positions, state, events))
                head = self._earliest(stack[-1])
                if head is not None and head.entry.at > reached and not any(self._rows(state, head)):
                    furthest, refused, reached = list(stack), head, head.entry.at
        assert refused is not None
        if stack or self._doubtful(furthest[-1].positions):
            return Ordered(_numbered(furthest), refused, self._tried, certain=False)
        return Ordered(_numbered(furthest, _events(refused, refused.rows[0])), refused, self._tried)

    def _doubtful(self, positions: Positions) -> bool:
        """Whether a line for which the model may have no step has come before, or comes next, or one that was cut."""
        return any(
            (cut and at == len(queue)) or any(move.maybe for move in queue[: at + 1])
            for at, queue, cut in zip(positions, self._queues, self._cut, strict=True)
        )

    def _earliest(self, node: _Node) -> Move | None:
        """The move that was printed first of those that come next; None at the end."""
        return min((move for _, move in self._heads(node.positions)), key=lambda each: each.entry.at, default=None)

    def _node(self, positions: Positions, state: State, events: tuple[TraceEvent, ...]) -> _Node:
        return _Node(positions, state, self._choices(positions, state), events)

    def _heads(self, positions: Positions) -> list[tuple[int, Move]]:
        """By queue, the move that comes next."""
        pairs = enumerate(zip(positions, self._queues, strict=True))
        return [(number, queue[at]) for number, (at, queue) in pairs if at < len(queue)]

    def _choices(self, positions: Positions, state: State) -> Iterator[tuple[Positions, State, tuple[TraceEvent, ...]]]:
        for number, move in sorted(self._heads(positions), key=lambda each: (each[1].entry.at, each[0])):
            after = tuple(at + (place == number) for place, at in enumerate(positions))
            for reached, events in self._rows(state, move):
                yield after, reached, events

    def _rows(self, state: State, move: Move) -> Iterator[tuple[State, tuple[TraceEvent, ...]]]:
        """What a line may be in a state: the states after it, and its events."""
        for row in move.rows:
            self._tried += 1
            events = _events(move, row)
            reached = self._taken(state, events)
            if reached is not None:
                yield reached, events

    def _taken(self, state: State, events: Sequence[TraceEvent]) -> State | None:
        """The state after these; None where the model refuses one, or has something else than was observed."""
        for event in events:
            wanted = self._stepper.translate(0, event)
            if wanted.action is not None:
                found = self._stepper.some(state, wanted.action, wanted.choices)
                if not found:
                    return None
                state = found[0].state
            if not wanted.agrees(state):
                return None
        return state


def _events(move: Move, row: Sequence[tuple[str, Mapping[str, int]]]) -> tuple[TraceEvent, ...]:
    """Not numbered yet; what was observed is of the last."""
    entry = move.entry
    source: dict[str, Json] = {"file": entry.file, "line": entry.line}
    if not row:
        return (TraceEvent(1, observed=move.observed, source=source),)
    last = len(row) - 1
    return tuple(
        TraceEvent(1, action, params, move.observed if place == last else {}, source)
        for place, (action, params) in enumerate(row)
    )


def _numbered(stack: Sequence[_Node], more: Sequence[TraceEvent] = ()) -> tuple[TraceEvent, ...]:
    events = [*(event for node in stack for event in node.events), *more]
    return tuple(
        TraceEvent(number, event.action, event.params, event.observed, event.source)
        for number, event in enumerate(events, 1)
    )
