"""The model's side of a lockstep run: successors, refusals and expected observations, remembered for each state.

Successors come from the staged engine. Which guards refuse an instance is compiled alike, one small function for each
instance, when it is first asked for; the reference interpreter has the word only where something is told to a person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final, TypeAlias

from ...model.core.ground import Params, State, System
from ...model.core.terms import Sort, Term
from ...model.interpret.explain import Refusal, refusal
from ...model.interpret.reference import Reference
from ...model.interpret.staged import expression, shared, stage
from ...traces.format import Value
from ...traces.observe import decode
from .binding import Answer, Binding, Sight

MAX_REMEMBERED: Final = 200_000
"""States; about a kilobyte each."""

Call: TypeAlias = tuple[str, Params]
"""An instance of an action: its name and parameters, in the order of its text."""

Pair: TypeAlias = tuple[str, str]
"""An action and one of its guards."""

Refusing: TypeAlias = Callable[[State], tuple[str, ...]]
FirstRefusing: TypeAlias = Callable[[State], list[int]]
"""For each of a space's ``tries``, the place of the first guard that refuses it; -1 where it is enabled."""


class Node:
    """One state of the model, with what was found out about it."""

    __slots__ = ("_expected", "_space", "after", "broken", "refused", "state")

    def __init__(self, space: Space, state: State) -> None:
        self._space = space
        self.state = state
        self.after: dict[Call, State] = {space.calls[number]: after for number, after in space.successors(state)}
        """Every enabled step, crashes too, with the state that it leads to."""
        self.broken: tuple[str, ...] = tuple(name for name, holds in space.invariants.items() if not holds(state))
        self.refused: dict[Call, tuple[tuple[str, ...], Answer]] = {}
        self._expected: dict[str, Value] | None = None

    @property
    def expected(self) -> dict[str, Value]:
        """Every cell by its name, as a trace shows it."""
        if self._expected is None:
            self._expected = self._space.show_all(self.state)
        return self._expected


class Space:
    """A system and its binding. ``invariants`` (None: all) are those that every state must keep."""

    def __init__(self, system: System, binding: Binding, invariants: frozenset[str] | None = None) -> None:
        self.system = system
        self.binding = binding
        promised = stage(replace(system, instances=[], by_step={}, witnesses={}, grounder=None)).invariants
        self.invariants = {name: holds for name, holds in promised.items() if invariants is None or name in invariants}
        self.calls: list[Call] = [(each.action, each.params) for each in system.instances]
        self.params = {action.name: tuple(action.params) for action in system.traced.actions}
        self.crashes = self.binding.restarts & self.params.keys()
        """The actions that a crash may be; none where nothing crashes."""
        self.tries: list[Call] = [call for call in system.by_step if self._makes_sense(call)]
        """Every instance that a system can be asked for, those that can never happen too."""
        self.reference = Reference(system)
        cells = system.layout.cells
        self._names = [cell.name for cell in cells]
        remembered: dict[int, Value] = {}
        self._decoded = [
            (cell, remembered.copy())
            for cell in cells
            if cell.variable.values.sort is not Sort.INT or cell.variable.values.names
        ]
        self._answers: dict[tuple[str, tuple[str, ...]], Answer | None] = {}
        self.pairs: list[tuple[Pair, ...]] = [
            tuple((action, guard) for guard, _ in system.by_step[action, params].guards)
            for action, params in self.tries
        ]
        """For each of ``tries`` its guards."""
        self.askable: frozenset[Pair] = frozenset(pair for each in self.pairs for pair in each if self._drawn(pair))
        """The guards whose refusal a system can be asked about."""
        self._refusing: dict[Call, Refusing] = {}
        self._nodes: dict[State, Node] = {}

    @cached_property
    def successors(self) -> Callable[[State], list[tuple[int, State]]]:
        """All that may happen in a state: the number of each enabled instance, and where it leads."""
        return stage(self.system).successors

    @cached_property
    def first_refusing(self) -> FirstRefusing:
        """For each of ``tries`` the number of the first guard that refuses it, -1 where it is enabled."""
        return self._compile_first()

    def _makes_sense(self, call: Call) -> bool:
        action, params = call
        values = dict(params)
        distinct = self.binding.actions[action].distinct
        return action not in self.crashes and all(values[a] != values[b] for a, b in distinct)

    def _drawn(self, pair: Pair) -> bool:
        rule = self.binding.actions[pair[0]].guards[pair[1]]
        return not isinstance(rule, Answer) or rule.drawn

    def node(self, state: State) -> Node:
        """What is known of a state."""
        found = self._nodes.get(state)
        if found is None:
            if len(self._nodes) >= MAX_REMEMBERED:
                self._nodes.clear()
            found = self._nodes[state] = Node(self, state)
        return found

    def refused(self, node: Node, call: Call) -> tuple[tuple[str, ...], Answer]:
        """The guards that refuse a step in the order of the text, and how a system answers; the step is not enabled."""
        found = node.refused.get(call)
        if found is None:
            guards = self._guards(call)(node.state)
            key = (call[0], guards)
            if key not in self._answers:
                self._answers[key] = self.binding.fixed_answer(*key)
            answer = self._answers[key] or self.binding.answer(self.sight(node, call), *key)
            found = node.refused[call] = (guards, answer)
        return found

    def refusing(self, state: State, call: Call) -> tuple[str, ...]:
        """The guards that refuse a step, in the order of the text; none where it is enabled."""
        return self._guards(call)(state)

    def sight(self, node: Node, call: Call) -> Sight:
        """An instance in a state, for the rules of the binding."""
        return Sight(self.system, node.state, dict(call[1]))

    def call(self, action: str, params: Mapping[str, int]) -> Call:
        """An instance by its name and parameters. Raises KeyError for one that the model does not have."""
        indices = self.system.traced.action(action).params
        found = (action, tuple([(name, index.number(params[name])) for name, index in indices.items()]))
        instance = self.system.by_step.get(found) if len(params) == len(indices) else None  # type: ignore[arg-type]
        if instance is None:
            raise KeyError(action)
        return instance.action, instance.params

    def explain(self, state: State, call: Call) -> Refusal:
        """The first guard that refuses a step, with its operands, by the reference interpreter's word."""
        found = refusal(self.reference, state, *call)
        assert found is not None, f"the engines disagree on {call}"
        return found

    def show_all(self, state: State) -> dict[str, Value]:
        """Every cell by its name, as ``observe`` shows a state, in a tenth of the time."""
        shown: dict[str, Value] = dict(zip(self._names, state, strict=True))
        for cell, remembered in self._decoded:
            value = state[cell.number]
            if value not in remembered:
                remembered[value] = decode(cell, value)
            shown[cell.name] = remembered[value]
        return shown

    def _guards(self, call: Call) -> Refusing:
        found = self._refusing.get(call)
        if found is None:
            found = self._refusing[call] = self._compile(call)
        return found

    def _compile(self, call: Call) -> Refusing:
        lines = ["def refusing(state):", self._unpack(), "    out = []"]
        names: dict[Term, str] = {}
        for name, guard in self.system.by_step[call].guards:
            lines += shared([guard], "    ", names)
            lines += [f"    if not {expression(guard, names)}:", f"        out.append({name!r})"]
        lines.append("    return tuple(out)")
        scope: dict[str, Refusing] = {}
        exec(compile("\n".join(lines), f"<{call[0]} refusing>", "exec"), scope)  # noqa: S102 - our own text
        return scope["refusing"]

    def _compile_first(self) -> FirstRefusing:
        """One function for all instances: only few of them are looked at closer."""
        choices = []
        for call in self.tries:
            guards = enumerate(self.system.by_step[call].guards)
            choices.append(
                "".join(f"{number} if not {expression(guard)} else " for number, (_, guard) in guards) + "-1"
            )
        lines = ["def first_refusing(state):", self._unpack(), f"    return [{', '.join(choices)}]"]
        scope: dict[str, FirstRefusing] = {}
        exec(compile("\n".join(lines), f"<{self.system.name} refusing>", "exec"), scope)  # noqa: S102 - our own text
        return scope["first_refusing"]

    def _unpack(self) -> str:
        return "    (" + ", ".join(f"c{cell.number}" for cell in self.system.layout.cells) + ",) = state"
