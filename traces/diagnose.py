"""Why no state of a frontier explains an event: for each state, what refuses each action."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ..model.core.enum_value import plain_params
from ..model.core.ground import Params, State
from ..model.core.terms import Sort
from ..model.interpret.explain import Refusal, refusal
from .event_match import Wanted
from .format import TraceEvent, Value, value_json
from .frontier import Node
from .observe import decode, observe
from .run_report import Json
from .stepper import Stepper

MAX_STATES: Final = 5
MAX_CHOICES: Final = 6
MAX_RANKED: Final = 2000
MAX_TRIED: Final = 2000
"""Choices of an action's parameters that a report tries; at constants of 63 some actions have a million."""


def value_words(value: Value) -> str:
    """A cell's value as a person reads it: ``{0, 2}``, ``NONE``, ``3``."""
    if value is None:
        return "NONE"
    if isinstance(value, tuple):
        return "{" + ", ".join(map(str, value)) + "}"
    return str(value)


@dataclass(frozen=True)
class Difference:
    """A cell that the trace observed otherwise than the model has it after the step."""

    cell: str
    expected: Value
    observed: Value

    def __str__(self) -> str:
        return f"{self.cell} is {value_words(self.expected)} in the model, {value_words(self.observed)} in the trace"


@dataclass(frozen=True)
class Denial:
    """Why one step does not explain the event: a guard refuses it, or what was observed after it differs.

    ``action`` None: the event is a look at the state, and the state itself differs.
    """

    action: str | None
    params: Params
    refusal: Refusal | None
    differences: tuple[Difference, ...]

    @property
    def call(self) -> str:
        """``follower_fetch(leader=0, follower=1)``."""
        if self.action is None:
            return "the state itself"
        return f"{self.action}({', '.join(f'{name}={value}' for name, value in self.params)})"

    def __str__(self) -> str:
        if self.refusal is not None:
            return str(self.refusal)
        return f"{self.call}: " + "; ".join(map(str, self.differences))

    def to_json(self) -> dict[str, Json]:
        """``guard``, ``condition`` and ``operands`` are null where the step was enabled."""
        return {
            "action": self.action,
            "params": plain_params(self.params),
            **_refusal_json(self.refusal),
            "differences": [
                {"cell": d.cell, "expected": value_json(d.expected), "observed": value_json(d.observed)}
                for d in self.differences
            ],
        }


@dataclass(frozen=True)
class ActionReport:
    """What one action could do in a state: the parameters with which it can happen, or what refuses it.

    ``refusal`` is that of the parameters which pass the most guards, None where some can happen; ``refused`` counts
    the choices of parameters that are refused, ``untried`` those after the first ``MAX_TRIED``.
    """

    action: str
    enabled: tuple[Params, ...]
    refusal: Refusal | None
    refused: int
    untried: int = 0

    def to_json(self) -> dict[str, Json]:
        """As a JSON object; ``params`` are those of the refusal."""
        params: Json = None if self.refusal is None else {**plain_params(self.refusal.params)}
        return {
            "action": self.action,
            "enabled": [plain_params(each) for each in self.enabled],
            "refused": self.refused,
            "untried": self.untried,
            "params": params,
            **_refusal_json(self.refusal),
        }


def _refusal_json(found: Refusal | None) -> dict[str, Json]:
    if found is None:
        return {"guard": None, "condition": None, "operands": None}
    return {"guard": found.guard, "condition": found.condition, "operands": dict(found.operands)}


@dataclass(frozen=True)
class FrontierState:
    """One state before the event that nothing explains.

    ``cells`` is the whole state. ``skipped`` counts the unobserved steps since the event before. ``denials`` are the
    steps that the event may have been, nearest to happening first, ``denials_left_out`` how many more there were.
    ``actions`` has one report for each action of the variant.
    """

    state: State
    cells: dict[str, Value]
    skipped: int
    broken: tuple[str, ...]
    denials: tuple[Denial, ...]
    denials_left_out: int
    actions: tuple[ActionReport, ...]

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {
            "state": {cell: value_json(value) for cell, value in self.cells.items()},
            "skipped": self.skipped,
            "broken": list(self.broken),
            "event": [denial.to_json() for denial in self.denials],
            "event_left_out": self.denials_left_out,
            "actions": [report.to_json() for report in self.actions],
        }


def diagnose(
    stepper: Stepper, nodes: Iterable[Node], event: TraceEvent, wanted: Wanted, limit: int = MAX_STATES
) -> tuple[FrontierState, ...]:
    """The states of a frontier that come nearest to explaining an event.

    Nearest is where the step can happen with the fewest cells observed otherwise, then where it can not; then with
    the fewest unobserved steps, then as found; of a vast frontier, the first ``MAX_RANKED`` states are compared.
    ``limit`` bounds the number of states.
    """
    ranked = sorted(islice(nodes, MAX_RANKED), key=lambda node: (_distance(stepper, node.state, wanted), node.gap))
    return tuple(_report(stepper, node, event, wanted) for node in ranked[:limit])


def can_happen(stepper: Stepper, nodes: Iterable[Node], wanted: Wanted) -> bool:
    """Whether some state allows the event's step, whatever was observed after it."""
    return any(_after(stepper, node.state, wanted) for node in nodes)


def _after(stepper: Stepper, state: State, wanted: Wanted) -> list[State]:
    if wanted.action is None:
        return [state]
    after = [step.state for step in stepper.some(state, wanted.action, wanted.choices)]
    return [*after, state] if stepper.repeats(state, wanted.action, wanted.choices) else after


def _distance(stepper: Stepper, state: State, wanted: Wanted) -> int:
    apart = [sum(after[n] != value for n, value in wanted.cells) for after in _after(stepper, state, wanted)]
    return min(apart, default=len(stepper.layout.cells) + 1)


def _report(stepper: Stepper, node: Node, event: TraceEvent, wanted: Wanted) -> FrontierState:
    state = node.state
    denials = _denials(stepper, state, event, wanted)
    return FrontierState(
        state=state,
        cells=observe(stepper.layout, state),
        skipped=node.gap,
        broken=() if node.breach is None else node.breach[1],
        denials=tuple(denials[:MAX_CHOICES]),
        denials_left_out=max(0, len(wanted.choices) - MAX_CHOICES),
        actions=tuple(_action(stepper, state, name) for name in stepper.system.actions),
    )


def _denials(stepper: Stepper, state: State, event: TraceEvent, wanted: Wanted) -> list[Denial]:
    if wanted.action is None:
        return [Denial(None, (), None, _differences(stepper, state, event))]
    found: list[tuple[int, Denial]] = []
    for params in wanted.choices[:MAX_RANKED]:
        refused = refusal(stepper.reference, state, wanted.action, params)
        repeats = refused is not None and stepper.reference.repeats(state, wanted.action, params)
        if refused is not None and not repeats:
            rank = len(stepper.layout.cells) + 1 - _passed(stepper, refused.action, refused.guard)
            found.append((rank, Denial(wanted.action, params, refused, ())))
            continue
        after = state if repeats else stepper.reference.step(state, wanted.action, params)
        assert after is not None
        apart = _differences(stepper, after, event)
        # Enabled steps first, the fewest differences first; then refusals, the most guards passed first.
        found.append((len(apart) - len(stepper.layout.cells), Denial(wanted.action, params, None, apart)))
    return [denial for _, denial in sorted(found, key=lambda pair: pair[0])]


def _differences(stepper: Stepper, state: State, event: TraceEvent) -> tuple[Difference, ...]:
    layout = stepper.layout
    found = []
    for name, seen in event.observed.items():
        number = layout.by_name[name]
        expected = decode(layout.cells[number], state[number])
        if expected != seen:
            found.append(Difference(name, expected, seen))
    return tuple(found)


def _passed(stepper: Stepper, action: str, guard: str) -> int:
    """How many guards a step passed before the one that refused it."""
    return [name for name, _ in stepper.system.traced.action(action).guards].index(guard)


def _nearness(stepper: Stepper, action: str, guard: str, values: Params) -> tuple[int, int]:
    """More guards passed is nearer to happening; then, a replica that talks to another says more than to itself."""
    params = stepper.system.traced.action(action).params
    replicas = [value for name, value in values if params[name].sort is Sort.REPLICA]
    return _passed(stepper, action, guard), len(set(replicas)) - len(replicas)


def _action(stepper: Stepper, state: State, action: str) -> ActionReport:
    enabled: list[Params] = []
    closest: tuple[tuple[int, int], Params] | None = None
    refused = 0
    for params in islice(stepper.each_choice(action), MAX_TRIED):
        guard = stepper.reference.refused_by(state, action, params)
        if guard is None:
            enabled.append(params)
            continue
        refused += 1
        nearness = _nearness(stepper, action, guard, params)
        if closest is None or nearness > closest[0]:
            closest = nearness, params
    found = None if enabled or closest is None else refusal(stepper.reference, state, action, closest[1])
    untried = stepper.count_choices(action) - refused - len(enabled)
    return ActionReport(action, tuple(enabled), found, refused, untried)
