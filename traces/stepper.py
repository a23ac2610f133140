"""Running one variant step by step: straight from its text, or compiled first.

Writing out a variant's every action at given constants takes time that grows with the third power of the log
size: 0.2 s at 3/2/2/2 (replicas/log size/records/leader epoch), 17 s at 3/20/20/5. After that a state's successors
cost some microseconds, where the reference interpreter takes a tenth of a millisecond for one step. So a short
trace is replayed by the reference, and a corpus, or a search through unobserved steps, by the compiled form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Final

from ..model.core import terms
from ..model.core.domains import Constants
from ..model.core.ground import Layout, Params, State, System, check_initial_state, ground
from ..model.core.protocol import TracedProtocol
from ..model.interpret.conditions import Conditions
from ..model.interpret.reference import Reference
from ..model.interpret.staged import expression, stage
from .event_match import Translator

MAX_COMPILED_CELLS: Final = 100
"""The largest state that is worth compiling for (about 3/8/8/4: two seconds)."""


@dataclass(frozen=True)
class TakenStep:
    """One step of a run: the action with all its parameters, and the state after it."""

    action: str
    params: Params
    state: State

    @property
    def call(self) -> str:
        """``follower_fetch(leader=0, follower=1)``."""
        return f"{self.action}({', '.join(f'{name}={value}' for name, value in self.params)})"


class Stepper(ABC):
    """One variant at finite constants, ready to run. Steps come in the order of the actions and their parameters."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.reference = Reference(system)

    @property
    def layout(self) -> Layout:
        """Which number each cell has."""
        return self.system.layout

    @cached_property
    def translate(self) -> Translator:
        """Turns events of traces into steps and cells of this model."""
        return Translator(self)

    @abstractmethod
    def every(self, state: State) -> list[TakenStep]:
        """Every step that can happen."""

    @abstractmethod
    def some(self, state: State, action: str, choices: Sequence[Params]) -> list[TakenStep]:
        """Of these steps, those that can happen; none for an action that the variant does not have."""

    def repeats(self, state: State, action: str, choices: Sequence[Params]) -> bool:
        """Whether one of these steps is refused only because it changes nothing."""
        return any(self.reference.repeats(state, action, params) for params in choices)

    @abstractmethod
    def broken(self, state: State) -> list[str]:
        """The invariants that do not hold."""

    def choices(self, action: str) -> list[Params]:
        """Every choice of an action's parameters; none for an action that the variant does not have."""
        return list(self.each_choice(action))

    def each_choice(self, action: str, given: Mapping[str, int] | None = None) -> Iterator[Params]:
        """``choices`` one by one, of them those with the values that are given."""
        if action not in self.system.actions:
            return
        params = self.system.traced.action(action).params
        ranges: list[Sequence[int]] = [index.values(self.system.constants) for index in params.values()]
        for place, name in enumerate(params):
            if given is not None and name in given:
                ranges[place] = [value for value in (given[name],) if value in ranges[place]]
        for values in product(*ranges):
            yield tuple(zip(params, values, strict=True))

    def count_choices(self, action: str) -> int:
        """The number of ``choices``."""
        if action not in self.system.actions:
            return 0
        return prod(index.size(self.system.constants) for index in self.system.traced.action(action).params.values())


class DirectStepper(Stepper):
    """Runs the text as it stands, by the reference interpreter."""

    def __init__(self, traced: TracedProtocol, constants: Constants) -> None:
        values = traced.protocol.check_constants(constants)
        layout = Layout(traced.variables, values)
        check_initial_state(traced.protocol.name, layout)
        # The reference reads the text; it needs no grounded actions or invariants.
        super().__init__(System(traced, values, layout, [], {}, {}))

    def every(self, state: State) -> list[TakenStep]:
        return [TakenStep(*found) for found in self.reference.successors(state)]

    def some(self, state: State, action: str, choices: Sequence[Params]) -> list[TakenStep]:
        found = []
        if action in self.system.actions:
            for params in choices:
                after = self.reference.step(state, action, params)
                if after is not None:
                    found.append(TakenStep(action, params, after))
        return found

    def broken(self, state: State) -> list[str]:
        if len(self.layout.cells) <= MAX_COMPILED_CELLS:
            return self.reference.broken(state)
        # The text evaluates both sides of each implication: seconds for one state at constants of 63.
        names = [] if self.reference.type_ok(state) else ["type_ok"]
        return names + self._invariants.broken(state)

    @cached_property
    def _invariants(self) -> Conditions:
        return Conditions(self.system, self.system.traced.invariants)


class CompiledStepper(Stepper):
    """Runs the staged form of a grounded system.

    That form lists steps by the guards that they share; sorting by the instances' numbers restores the order.
    """

    def __init__(self, system: System) -> None:
        super().__init__(system)
        staged = stage(system)
        self._successors = staged.successors
        self._invariants = list(staged.invariants.items())
        self._calls = [(instance.action, instance.params) for instance in system.instances]
        self._repetitions: dict[tuple[str, tuple[Params, ...]], Callable[[State], bool]] = {}
        self._numbers: dict[tuple[str, tuple[Params, ...]], frozenset[int]] = {}

    def every(self, state: State) -> list[TakenStep]:
        calls = self._calls
        return [TakenStep(*calls[number], after) for number, after in sorted(self._successors(state))]

    def some(self, state: State, action: str, choices: Sequence[Params]) -> list[TakenStep]:
        key = (action, tuple(choices))
        wanted = self._numbers.get(key)
        if wanted is None:
            asked = set(choices)
            wanted = self._numbers[key] = frozenset(
                number for number, (name, params) in enumerate(self._calls) if name == action and params in asked
            )
        calls = self._calls
        found = [step for step in self._successors(state) if step[0] in wanted]
        return [TakenStep(*calls[number], after) for number, after in sorted(found)]

    def repeats(self, state: State, action: str, choices: Sequence[Params]) -> bool:
        key = (action, tuple(choices))
        found = self._repetitions.get(key)
        if found is None:
            found = self._repetitions[key] = self._compile_repetition(action, choices)
        return found(state)

    def _compile_repetition(self, action: str, choices: Sequence[Params]) -> Callable[[State], bool]:
        """One function for all these steps, as a search asks about many states."""
        if action not in self.system.actions:
            return _never
        traced = self.system.traced.action(action)
        instances = (self.system.by_step.get((action, params)) for params in choices)
        conditions = [each.repetition(traced) for each in instances if each is not None]
        whole = terms.disjunction(*conditions) if conditions else terms.FALSE
        if whole is terms.FALSE:
            return _never
        names = {leaf: f"s[{leaf.value}]" for leaf in terms.leaves(whole)}
        scope: dict[str, Callable[[State], bool]] = {}
        text = f"def repeats(s):\n    return {expression(whole, names)}\n"
        exec(compile(text, f"<{self.system.name} repetition>", "exec"), scope)  # noqa: S102 - generated above
        return scope["repeats"]

    def broken(self, state: State) -> list[str]:
        return [name for name, holds in self._invariants if not holds(state)]


def _never(_state: State) -> bool:
    return False


def stepper_for(traced: TracedProtocol, constants: Constants, *, often: bool) -> Stepper:
    """The stepper that answers soonest. ``often``: many steps will be asked for, so compiling may pay.

    Raises BadInput for constants that the protocol does not have.
    """
    direct = DirectStepper(traced, constants)
    if often and len(direct.layout.cells) <= MAX_COMPILED_CELLS:
        return CompiledStepper(ground(traced, constants))
    return direct
