"""What the model can do, compiled for following a system: single steps, halves of exchanges, what a node does within.

``lockstep/space.py`` looks at whole states: which steps are enabled, which guards refuse. Here a step is asked for
alone, in states that are put together of two: as one party is now, and as another was when it sent a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, count
from operator import ne
from typing import Final, TypeAlias

from ...model.core.ground import Cell, Grounder, Instance, State, System
from ...model.core.terms import Sort, Term
from ...model.interpret.staged import expression, shared, stage
from ..lockstep.adapter import ModelStep
from ..lockstep.binding import Answer, Binding, Sight, Who
from ..lockstep.space import Call, Space

Party: TypeAlias = int | None
"""Whose a cell is, or a side of an exchange: a replica's, or None: the controller's or a client's."""

Doing: TypeAlias = Callable[[State], State | None]
"""What a step makes of a state; None where a guard refuses it."""

MAX_REMEMBERED: Final = 100_000
"""States of which it is remembered what a node may do within itself; some hundred bytes each."""


_CELL: Final = re.compile(r"\bc(\d+)\b")
"""The name of a cell in the source of a step."""


def differing(state: Sequence[int | None], other: Sequence[int | None]) -> Iterator[int]:
    """The numbers of the cells in which two states are not alike."""
    return compress(count(), map(ne, state, other))


class Transitions:
    """The steps of a system, for its binding. Made once, and used for all runs at these constants."""

    def __init__(self, system: System, binding: Binding, invariants: frozenset[str] | None = None) -> None:
        self.system = system
        self.binding = binding
        self.space = Space(system, binding, invariants)
        self.owner: tuple[Party, ...] = tuple(self._owner(cell) for cell in system.layout.cells)
        """By number of the cell: whose it is."""
        self._numbers: dict[Party, tuple[int, ...]] = {}
        for number, party in enumerate(self.owner):
            self._numbers[party] = (*self._numbers.get(party, ()), number)
        self._steps: dict[Call, Doing] = {}
        self._matching: dict[tuple[str, tuple[tuple[str, int], ...]], tuple[Call, ...]] = {}
        inner = [each for each in system.instances if self._within(each)]
        staged = stage(replace(system, instances=inner, by_step={}, grounder=None))
        self._inner_calls: list[Call] = [(each.action, each.params) for each in inner]
        self._inner_successors = staged.successors
        self._inner: dict[State, list[tuple[Call, State]]] = {}
        self._broken: dict[State, tuple[str, ...]] = {}
        self._live_cells = self._compile_live()
        self._live: dict[State, frozenset[int]] = {}

    def _owner(self, cell: Cell) -> Party:
        """Whose a cell is: the party's that the binding names, its replica's, else the controller's or a client's."""
        variable = cell.variable
        of = self.binding.parties.get(self.system.traced.variant.name, {}).get(variable.name)
        if of is not None:
            return of(self.system.constants)
        return cell.index[0] if variable.per and variable.per[0].sort is Sort.REPLICA else None

    def _within(self, instance: Instance) -> bool:
        """Whether it may happen within a node at any time: without an exchange, not named, and no crash."""
        bound = self.binding.actions[instance.action]
        return bound.exchange is None and not bound.named and instance.action not in self.binding.restarts

    def within(self, state: State) -> list[tuple[Call, State]]:
        """What may happen in a state without any message."""
        found = self._inner.get(state)
        if found is None:
            if len(self._inner) >= MAX_REMEMBERED:
                self._inner.clear()
            found = [(self._inner_calls[number], after) for number, after in self._inner_successors(state)]
            self._inner[state] = found
        return found

    def broken(self, state: State) -> tuple[str, ...]:
        """The promises that do not hold in a state."""
        found = self._broken.get(state)
        if found is None:
            if len(self._broken) >= MAX_REMEMBERED:
                self._broken.clear()
            found = tuple(name for name, holds in self.space.invariants.items() if not holds(state))
            self._broken[state] = found
        return found

    def live(self, state: State) -> frozenset[int]:
        """The numbers of the cells that are live in a state, of those that can be dead."""
        found = self._live.get(state)
        if found is None:
            if len(self._live) >= MAX_REMEMBERED:
                self._live.clear()
            found = self._live[state] = self._live_cells(state)
        return found

    def _compile_live(self) -> Callable[[State], frozenset[int]]:
        system = self.system
        when = Grounder(system.traced, system.constants, system.layout).live()
        lines = [f"def live(state):\n    ({''.join(f'c{cell.number}, ' for cell in system.layout.cells)}) = state"]
        pairs = "".join(f"({number}, {expression(term)}), " for number, term in when.items())
        lines.append(f"    return frozenset(number for number, is_live in ({pairs}) if is_live)")
        scope: dict[str, Callable[[State], frozenset[int]]] = {}
        exec(compile("\n".join(lines), "<live cells>", "exec"), scope)  # noqa: S102 - our own text
        return scope["live"]

    def doing(self, call: Call) -> Doing:
        """One step, compiled when it is first asked for."""
        found = self._steps.get(call)
        if found is None:
            found = self._steps[call] = self._compile(call)
        return found

    def _compile(self, call: Call) -> Doing:
        """Source that reads a cell where it is first needed: most steps are refused by their first guards."""
        instance = self.system.by_step[call]
        lines: list[str] = []
        read: set[str] = set()
        known: dict[Term, str] = {}

        def put(*more: str) -> None:
            for line in more:
                for number in _CELL.findall(line):
                    if number not in read:
                        read.add(number)
                        lines.append(f"    c{number} = state[{number}]")
                lines.append(line)

        for _, guard in instance.guards:
            put(*shared([guard], "    ", known))
            put(f"    if not {expression(guard, known)}: return None")
        put(*shared(instance.effect.values(), "    ", known))
        lines.append("    cells = list(state)")
        for number, value in instance.effect.items():
            put(f"    cells[{number}] = {expression(value, known)}")
        lines.append("    return tuple(cells)")
        scope: dict[str, Doing] = {}
        text = "\n".join(["def doing(state):", *lines])
        exec(compile(text, f"<{call[0]} doing>", "exec"), scope)  # noqa: S102 - our own text
        return scope["doing"]

    def matching(self, step: ModelStep) -> tuple[Call, ...]:
        """The instances of an action that have these parameters; those that are not given may be any.

        Raises KeyError for an action, or a parameter, that the variant does not have.
        """
        action, params = step
        indices = self.system.traced.action(action).params
        wanted = {name: indices[name].number(value) for name, value in params.items()}
        key = (action, tuple(sorted(wanted.items())))
        found = self._matching.get(key)  # type: ignore[arg-type]
        if found is None:
            found = tuple(
                call
                for call in self.system.by_step
                if call[0] == action and all(dict(call[1])[name] == value for name, value in wanted.items())
            )
            self._matching[key] = found  # type: ignore[index]
        return found

    def side(self, who: Who, call: Call, state: State) -> Party:
        """The party on one side of an exchange."""
        if who is None:
            return None
        if isinstance(who, str):
            return dict(call[1])[who]
        return who(Sight(self.system, state, dict(call[1])))

    def as_of(self, state: State, then: State, party: Party) -> State:
        """A state, but for the cells of one party, which are as they were in another."""
        if state is then:
            return state
        cells = list(state)
        for number in self._numbers.get(party, ()):
            cells[number] = then[number]
        return tuple(cells)

    def asked(self, state: State, sent: State, call: Call) -> tuple[State, State | None]:
        """A request arrives: what its receiver sees, and what comes of it, as far as it is not the asker's.

        ``sent``: a state in which the request was sent. None where a guard refuses it.
        """
        exchange = self.binding.actions[call[0]].exchange
        assert exchange is not None
        asker = self.side(exchange.asker, call, state)
        sight = state if asker is None else self.as_of(state, sent, asker)
        after = self.doing(call)(sight)
        if after is None:
            return sight, None
        if asker is None:
            return sight, after
        return sight, self._taken(state, sight, after, lambda owner: owner != asker)

    def answered(self, state: State, served: State, call: Call) -> tuple[State, State | None]:
        """A response arrives: what its receiver goes by, and what comes of it for itself.

        ``served``: a state in which the response was sent.
        """
        exchange = self.binding.actions[call[0]].exchange
        assert exchange is not None
        asker, asked = self.side(exchange.asker, call, state), self.side(exchange.asked, call, state)
        sight = self.as_of(state, served, asked)
        after = self.doing(call)(sight)
        return sight, None if after is None else self._taken(state, sight, after, lambda owner: owner == asker)

    def _taken(self, state: State, sight: State, after: State, takes: Callable[[Party], bool]) -> State:
        """A state with those changes of a step that are to be taken."""
        cells = list(state)
        owner = self.owner
        for number in differing(sight, after):
            if takes(owner[number]):
                cells[number] = after[number]
        return tuple(cells)

    def answer(self, sight: State, call: Call, refusing: tuple[str, ...]) -> Answer:
        """How a system answers a request that these guards refuse in this state."""
        fixed = self.binding.fixed_answer(call[0], refusing)
        return fixed or self.binding.answer(Sight(self.system, sight, dict(call[1])), call[0], refusing)

    def calls(self, steps: Iterable[ModelStep]) -> tuple[Call, ...]:
        """All instances that any of these steps may be."""
        return tuple(call for step in steps for call in self.matching(step))

    def restarts(self, nodes: Iterable[int]) -> tuple[Call, ...]:
        """What the model has for the return of nodes from a crash."""
        known: Mapping[str, object] = self.space.params
        return self.calls(
            (name, {"replica": node}) for node in nodes for name in self.binding.restarts if name in known
        )
