"""The reference interpreter: the text of the protocol run as it stands, on plain ints and bools.

Nothing lies between the text and its meaning here: no terms, no grounding, no packing. Every faster engine is
held against it. ``explain.py`` says in words why it refuses a step.

A mutant has no text. A guard that was dropped is passed over; an action in which a bound was shifted is read from its
terms, by ``reader.py``, which grounds and compiles nothing either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from ..core.algebra import EVERY, Algebra, Update, Value, View
from ..core.domains import Index, Variable
from ..core.errors import ProtocolError
from ..core.ground import Params, State, System
from ..core.protocol import ActionSpec, TracedAction
from ..core.terms import NONE
from .reader import Reader, bound


class Ints(Algebra):
    """The algebra of Python ints and bools; a replica set is a bit mask."""

    NONE = NONE
    EMPTY = 0

    def __init__(self, rules: object, constants: Mapping[str, int]) -> None:
        super().__init__(rules, constants.__getitem__)
        self._constants = constants

    def all(self, *conditions: Value) -> bool:
        return all(conditions)

    def any(self, *conditions: Value) -> bool:
        return any(conditions)

    def negate(self, condition: Value) -> bool:
        return not condition

    def ite(self, condition: Value, then: Value, otherwise: Value) -> Value:
        return then if condition else otherwise

    def min(self, left: Value, right: Value) -> int:
        return min(int(left), int(right))

    def max(self, left: Value, right: Value) -> int:
        return max(int(left), int(right))

    def member(self, replica: Value, replicas: Value) -> bool:
        return bool(replica >= 0 and replicas >> replica & 1)

    def with_member(self, replicas: Value, replica: Value) -> int:
        return int(replicas | self.only(replica))

    def without_member(self, replicas: Value, replica: Value) -> int:
        return int(replicas & ~self.only(replica))

    def only(self, replica: Value) -> int:
        return 1 << int(replica) if replica >= 0 else 0

    def majority(self, replicas: Value, of: Value) -> bool:
        return bool(2 * (replicas & of).bit_count() > of.bit_count())

    def forall(self, index: Index, body: Callable[[Value], Value]) -> bool:
        return all(body(i) for i in range(index.size(self._constants)))

    def exists(self, index: Index, body: Callable[[Value], Value]) -> bool:
        return any(body(i) for i in range(index.size(self._constants)))

    def first(self, index: Index, body: Callable[[Value], Value], default: Value) -> int:
        return next((i for i in range(index.size(self._constants)) if body(i)), int(default))

    def last(self, index: Index, body: Callable[[Value], Value], default: Value) -> int:
        return next((i for i in reversed(range(index.size(self._constants))) if body(i)), int(default))


class _Cells:
    """An indexed variable of a concrete state. Reads are total: an index out of range gives the dead value."""

    def __init__(self, variable: Variable, numbers: Mapping[tuple[int, ...], int], state: State | list[int]) -> None:
        self._variable = variable
        self._numbers = numbers
        self._state = state

    def __getitem__(self, index: Value) -> int:
        number = self._numbers.get(index if isinstance(index, tuple) else (index,))
        return self._variable.dead if number is None else self._state[number]


class IntState(View):
    """A concrete state as the text sees it."""

    def __init__(self, system: System, state: State | list[int]) -> None:
        object.__setattr__(self, "_system", system)
        object.__setattr__(self, "_state", state)

    def __getattr__(self, name: str) -> Value:
        system: System = object.__getattribute__(self, "_system")
        state: State = object.__getattribute__(self, "_state")
        variable = system.traced.variables[name]
        numbers = system.layout.by_variable[name]
        return _Cells(variable, numbers, state) if variable.per else state[numbers[()]]


class Reference:
    """The reference interpreter of a system (its protocol, variant and constants; a mutant stays a mutant)."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.protocol = system.traced.protocol
        self.k = Ints(system.traced.variant.rules, system.constants)
        self._specs: dict[str, ActionSpec] = {a.name: self.protocol.actions[a.name] for a in system.traced.actions}
        # A guard that a mutant dropped is not among the traced ones, and is passed over here too.
        self._guards = {a.name: {name for name, _ in a.guards} for a in system.traced.actions}
        self._change_guards = {a.name: a.change_guards for a in system.traced.actions}
        self._shifted = {a.name: a for a in system.traced.actions if self._is_shifted(a)}

    def refused_by(self, state: State, action: str, params: Params) -> str | None:
        """The first guard that refuses this step, or None. KeyError for an action that the variant does not have."""
        outcome = self._run(state, action, params)
        return outcome if isinstance(outcome, str) else None

    def step(self, state: State, action: str, params: Params) -> State | None:
        """The state after the step, or None where a guard refuses it."""
        outcome = self._run(state, action, params)
        return None if isinstance(outcome, str) else outcome

    def repeats(self, state: State, action: str, params: Params) -> bool:
        """Whether the step is refused only because it changes nothing: see ``core/change_guards.py``.

        False for an action that the variant does not have.
        """
        passed = self._change_guards.get(action)
        if not passed or self.refused_by(state, action, params) not in passed:
            return False
        return self._run(state, action, params, passed) == state

    def successors(self, state: State) -> list[tuple[str, Params, State]]:
        """Every step that is enabled, in the order of the actions and of their parameters."""
        found = []
        for name, spec in self._specs.items():
            for values in product(*(i.values(self.system.constants) for i in spec.params.values())):
                params = tuple(zip(spec.params, values, strict=True))
                after = self.step(state, name, params)
                if after is not None:
                    found.append((name, params, after))
        return found

    def broken(self, state: State) -> list[str]:
        """The invariants that do not hold in a state."""
        s = IntState(self.system, state)
        names = [] if self.type_ok(state) else ["type_ok"]
        present = [p for p in self.protocol.invariants.values() if p.present(self.k.rules)]
        return names + [p.name for p in present if not p.text(self.k, s)]

    def _is_shifted(self, action: TracedAction) -> bool:
        """Whether the terms of an action are not those of its text, but for guards that were dropped."""
        written = self.protocol.traced(self.system.traced.variant.name).action(action.name)
        kept = (guard for guard in written.guards if guard[0] in self._guards[action.name])
        pairs = [*zip(kept, action.guards, strict=True), *zip(written.writes, action.writes, strict=True)]
        # Equal terms are one object.
        return any(text[1] is not term[1] for text, term in pairs)

    def _run_terms(
        self, state: State, action: TracedAction, params: Params, passed: frozenset[str] = frozenset()
    ) -> State | str:
        reader = Reader(self.system, state, bound(action, params))
        for name, condition in action.guards:
            if name not in passed and not reader(condition):
                return name
        return self._update(state, Update([reader.written(target, value) for target, value in action.writes]))

    def _run(self, state: State, action: str, params: Params, passed: frozenset[str] = frozenset()) -> State | str:
        """The state after a step, or the first guard that refuses it, of those that are not ``passed``."""
        if action in self._shifted:
            return self._run_terms(state, self._shifted[action], params, passed)
        s = IntState(self.system, state)
        for item in self._specs[action].text(self.k, s, **dict(params)):
            if isinstance(item, Update):
                return self._update(state, item)
            name, holds = item
            if not holds and name in self._guards[action] and name not in passed:
                return name
        raise ProtocolError(f"{action} yields no update")

    def _update(self, state: State, update: Update) -> State:
        layout = self.system.layout
        after = list(state)
        for name, index, value in update.writes:
            numbers = layout.by_variable[name]
            if index in numbers:
                after[numbers[index]] = int(value)
            elif EVERY in index:
                for at, number in numbers.items():
                    if all(i in (EVERY, j) for i, j in zip(index, at, strict=True)):
                        along = [j for i, j in zip(index, at, strict=True) if i is EVERY]
                        after[number] = int(value(*along) if callable(value) else value)
        s = IntState(self.system, after)
        # Liveness is read in the state after the step, so the dead cells are found before any is cleared.
        dead = [c for c in layout.cells if c.variable.live is not None and not self._live(c.variable, s, c.index)]
        for cell in dead:
            after[cell.number] = cell.variable.dead
        return tuple(after)

    def _live(self, variable: Variable, s: View, index: tuple[int, ...]) -> bool:
        live: Any = variable.live
        return bool(live(self.k, s, *index))

    def type_ok(self, state: State) -> bool:
        """Check that every cell holds a value of its domain, and a dead cell its dead value."""
        s = IntState(self.system, state)
        for cell in self.system.layout.cells:
            value = state[cell.number]
            if not cell.low <= value <= cell.high:
                return False
            variable = cell.variable
            if variable.live is None:
                continue
            is_dead = value == variable.dead
            if not self._live(variable, s, cell.index):
                if not is_dead:
                    return False
            elif is_dead and variable.values.sort.value == "int" and not variable.unset:
                return False
        return True
