"""A story that was found in process, carried out on a cluster: the model goes along, step by step.

A `Hands` has a cluster do what a step of the model stands for, and looks at it. After each step what can be seen must
become what the model has; what a system does by itself (raise a high watermark) the model may do beside the story's
steps. A step that nobody can have a cluster do ends the story as ``unknown``: it is told, and nothing comes after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ....model.core.errors import BadInput
from ....model.core.ground import Params, State
from ....model.explore.result import Verdict
from ....traces.format import Trace, Value
from ....traces.observe import decode
from ....traces.replay import traced_of
from ....traces.run_report import Json
from ....traces.stepper import DirectStepper, Stepper, TakenStep

Call = tuple[str, Params]
SETTLES: Final = 10.0
"""So many seconds a cluster has to come to where the model is: what it stores it stores now and then."""
_PAUSE: Final = 0.05
_BESIDES: Final = 3
"""So many steps that a system takes by itself may lie beside one of the story."""


class CannotDo(Exception):
    """A step that a cluster cannot be made to do: why."""


class Hands(Protocol):
    """Who has a cluster do what the steps of one protocol stand for."""

    by_itself: Sequence[str]
    """Actions that the system takes without being asked."""
    quiet: float
    """After so many seconds what the system has done can be seen, if nothing hinders it."""

    def do(self, action: str, params: Mapping[str, int]) -> str:
        """Have it happen, and wait for it; gives what was done, in words. Raises CannotDo."""

    def observe(self) -> Mapping[str, Value]:
        """What can be seen, by the names of the model's cells; what cannot is left out."""

    def seen(self) -> Sequence[str]:
        """What there is to tell after a step: logs, and what clients were told."""


@dataclass
class Carried:
    """One step of the story, as it was carried out."""

    call: str
    done: str
    besides: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {"step": self.call, "done": self.done, "besides": list(self.besides), "seen": list(self.seen)}


@dataclass
class CarriedOut:
    """What came of a story. ``reason``: the promise that breaks, how the two part, or what cannot be done."""

    verdict: Verdict = Verdict.HOLDS
    reason: str = ""
    steps: list[Carried] = field(default_factory=list)


def calls_of(trace: Trace, where: str) -> list[Call]:
    """The steps of a story. Raises BadInput for a trace that does not have all of them."""
    mend = "give what fencepost explore --trace-out wrote"
    if not trace.header.complete:
        raise BadInput("steps may be missing from it", where, mend)
    calls: list[Call] = []
    for event in trace.events:
        if event.action is not None:
            params: list[tuple[str, int]] = []
            for name, value in event.params.items():
                if value is None:
                    raise BadInput(f"the parameter {name} of {event.call} is not known", where, mend)
                params.append((name, value))
            calls.append((event.action, tuple(params)))
    if not calls:
        raise BadInput("it has no steps, so nothing would be carried out", where, mend)
    return calls


def states_of(trace: Trace, where: str) -> list[State]:
    """The model's states along a story, the initial one first. Raises BadInput where it is no run of its variant."""
    stepper = DirectStepper(traced_of(trace), trace.header.constants)
    states = [stepper.layout.initial]
    for call in calls_of(trace, where):
        states.append(_stepped(stepper, states[-1], call, where).state)
    return states


def _stepped(stepper: Stepper, state: State, call: Call, where: str) -> TakenStep:
    found = stepper.some(state, call[0], [call[1]])
    if not found:
        told = f"{call[0]}({', '.join(f'{name}={value}' for name, value in call[1])})"
        variant = stepper.system.traced.variant.name
        mend = f"hold it against the model by fencepost replay {where}"
        raise BadInput(f"{told} cannot happen there in {variant}", where, mend)
    return found[0]


class _Model:
    """The model beside the cluster."""

    def __init__(self, stepper: Stepper, hands: Hands) -> None:
        self.stepper = stepper
        self.state = stepper.layout.initial
        self._hands = hands

    def apart(self, state: State, observed: Mapping[str, Value]) -> list[str]:
        """Where what is seen is not what the state has."""
        layout, found = self.stepper.layout, []
        for name, value in observed.items():
            number = layout.by_name[name]
            wanted = decode(layout.cells[number], state[number])
            if value != wanted:
                found.append(f"{name} is {wanted} in the model, {value} on the cluster")
        return found

    def followed(self, observed: Mapping[str, Value]) -> list[TakenStep] | None:
        """Steps that the system takes by itself, after which the model is where the cluster is; None without any."""
        ends: list[tuple[State, list[TakenStep]]] = [(self.state, [])]
        for _ in range(_BESIDES + 1):
            for state, path in ends:
                if not self.apart(state, observed):
                    return path
            ends = [
                (step.state, [*path, step])
                for state, path in ends
                for action in self._hands.by_itself
                for step in self.stepper.some(state, action, self.stepper.choices(action))
            ]
        return None


def carry_out(
    trace: Trace,
    where: str,
    hands: Hands,
    say: Callable[[int, Carried], None],
    settles: float = SETTLES,
) -> CarriedOut:
    """Carry a story out up to its end, a promise that breaks, a difference, or a step that cannot be done.

    ``say`` gets each step as it is over, with its number from 1 on. Raises BadInput where the trace is no run.
    """
    states_of(trace, where)
    model = _Model(DirectStepper(traced_of(trace), trace.header.constants), hands)
    found = CarriedOut()
    taken: set[str] = set()
    for number, call in enumerate(calls_of(trace, where), 1):
        told = Carried(f"{call[0]}({', '.join(f'{name}={value}' for name, value in call[1])})", "")
        found.steps.append(told)
        steps = model.stepper.some(model.state, call[0], [call[1]])
        try:
            if told.call in taken:
                told.done = "it has happened, by itself"
            elif not steps:
                raise CannotDo("what the cluster did by itself has left no room for it")
            else:
                told.done = hands.do(call[0], dict(call[1]))
                model.state = steps[0].state
        except CannotDo as cannot:
            told.done = f"cannot be done: {cannot}"
            found.verdict, found.reason = Verdict.UNKNOWN, f"{told.call} cannot be done on a cluster: {cannot}"
            told.seen = list(hands.seen())
            say(number, told)
            return found
        apart = _settled(model, hands, settles, told)
        taken |= set(told.besides)
        told.seen = list(hands.seen())
        say(number, told)
        if apart:
            found.verdict, found.reason = Verdict.VIOLATED, f"the cluster does otherwise: {'; '.join(apart[:3])}"
            return found
        broken = model.stepper.broken(model.state)
        if broken:
            found.verdict = Verdict.VIOLATED
            found.reason = f"{', '.join(broken)} broken after step {number}, in the model as on the cluster"
            return found
    return found


def _settled(model: _Model, hands: Hands, settles: float, told: Carried) -> list[str]:
    """Wait until what is seen is what the model has, with what the system does by itself; else where they part."""
    deadline = time.monotonic() + settles
    time.sleep(hands.quiet)
    while True:
        observed = hands.observe()
        path = model.followed(observed)
        if path is not None:
            for step in path:
                told.besides.append(step.call)
                model.state = step.state
            return []
        if time.monotonic() > deadline:
            return model.apart(model.state, observed)
        time.sleep(_PAUSE)


def member_counts(trace: Trace, where: str, variable: str) -> list[int]:
    """How many members a set of the state has, in each state of a story."""
    layout = DirectStepper(traced_of(trace), trace.header.constants).layout
    number = layout.by_name[variable]
    shown: list[Any] = [decode(layout.cells[number], state[number]) for state in states_of(trace, where)]
    return [len(members) for members in shown]
