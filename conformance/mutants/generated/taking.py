"""Systems that write down what is asked of them and what can be seen after it, and that do it again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....traces.format import Value
from ....traces.run_report import Json
from ...lockstep.adapter import Adapter, Outcome
from ...lockstep.expect import Try
from ...lockstep.faults import Fault, Kind
from ...simulation.events import Event, event_of
from ...simulation.system import EnabledEvent, SimulatedSystem, StepResult, SupportsLiveness, SupportsQuiescence
from .witness import World

_PEACE: Final = "peace"
"""Whether a step is that peace has begun, or is over."""


@dataclass(frozen=True)
class Taken:
    """One run: what it was reset with, its steps as JSON, and what was seen at the start and after each."""

    constants: Mapping[str, int]
    seed: int
    steps: tuple[Json, ...]
    seen: tuple[tuple[str, ...], ...]

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        seen: list[Json] = [list(each) for each in self.seen]
        return {"constants": dict(self.constants), "seed": self.seed, "steps": list(self.steps), "seen": seen}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Taken:
        """From its JSON object, which ``to_json`` made."""
        return cls(told["constants"], told["seed"], tuple(told["steps"]), tuple(tuple(each) for each in told["seen"]))


class _Runs:
    """The runs so far, the last one growing. ``last``: what was seen last."""

    def __init__(self, system: object, world: World) -> None:
        self._system = system
        self._world = world
        self._runs: list[tuple[Mapping[str, int], int, list[Json], list[tuple[str, ...]]]] = []
        self.last: tuple[str, ...] = ()

    def begin(self, constants: Mapping[str, int], seed: int) -> None:
        """A run begins."""
        self._world.forget()
        self._runs.append((dict(constants), seed, [], []))

    def saw(self, step: Json | None, answer: object, observed: Mapping[str, object]) -> None:
        """A step is over; None for the start."""
        self.last = self._world.seen(answer, observed, self._system)
        _, _, steps, seen = self._runs[-1]
        if step is not None:
            steps.append(step)
        seen.append(self.last)

    def taken(self) -> tuple[Taken, ...]:
        """All runs, without those that did not come to a start."""
        return tuple(Taken(c, seed, tuple(steps), tuple(seen)) for c, seed, steps, seen in self._runs if seen)


class Taker(_Runs):
    """An adapter."""

    def __init__(self, adapter: Adapter, world: World) -> None:
        super().__init__(adapter, world)
        self._adapter = adapter
        self.name = adapter.name
        self.protocol = adapter.protocol
        self.variant = adapter.variant
        self.faults: Collection[Kind] = adapter.faults

    def reset(self, constants: Mapping[str, int], seed: int) -> None:
        """As the adapter's."""
        self.begin(constants, seed)
        self._adapter.reset(constants, seed)
        self.saw(None, None, self._adapter.observe())

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """As the adapter's."""
        outcome = self._adapter.apply(action, params, fault)
        told: dict[str, Json] = {"action": action, "params": {name: int(value) for name, value in params.items()}}
        if fault is not None:
            told["fault"] = fault.to_json()
        self.saw(told, outcome, self._adapter.observe())
        return outcome

    def inject(self, fault: Fault) -> Outcome:
        """As the adapter's."""
        outcome = self._adapter.inject(fault)
        self.saw({"fault": fault.to_json()}, outcome, self._adapter.observe())
        return outcome

    def observe(self) -> Mapping[str, Value]:
        """As the adapter's."""
        return self._adapter.observe()

    def again(self, step: Any) -> None:
        """What was written down of a step."""
        asked = try_of(step)
        if asked.call is not None:
            self.apply(asked.call[0], dict(asked.call[1]), asked.fault)
        else:
            assert asked.fault is not None
            self.inject(asked.fault)

    def words(self, step: Any) -> str:
        """A step for a person."""
        return str(try_of(step))

    def close(self) -> None:
        """As the adapter's."""
        self._adapter.close()


def try_of(step: Any) -> Try:
    """A try from its JSON object."""
    told, action = step.get("fault"), step.get("action")
    fault = None if told is None else Fault.from_json(told, "the recording")
    return Try(None if action is None else (action, tuple(step["params"].items())), fault)


class FreeTaker(_Runs):
    """A system that runs freely."""

    def __init__(self, system: SimulatedSystem, world: World) -> None:
        super().__init__(system, world)
        self._free = system
        self.name = system.name
        self.protocol = system.protocol
        self.variant = system.variant

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """As the system's."""
        self.begin(constants, seed)
        happened = self._free.reset(constants, seed)
        self._note(None, happened)
        return happened

    def pending(self) -> Sequence[EnabledEvent]:
        """As the system's."""
        return self._free.pending()

    def step(self, event: Event) -> StepResult:
        """As the system's."""
        happened = self._free.step(event)
        self._note(event.to_json(), happened)
        return happened

    def _note(self, step: Json | None, happened: StepResult) -> None:
        # Crashed and started are sets: their order is no difference.
        answer = (
            happened.sent,
            happened.judged,
            happened.steps,
            sorted(happened.crashed),
            sorted(happened.started),
            list(self._free.pending()),
        )
        self.saw(step, answer, self._free.observe())

    def observe(self) -> Mapping[str, Value]:
        """As the system's."""
        return self._free.observe()

    def again(self, step: Any) -> None:
        """What was written down of an event, or that there is peace."""
        if _PEACE in step:
            self.peace(on=bool(step[_PEACE]))
        else:
            self.step(event_of(step, "the recording"))

    def words(self, step: Any) -> str:
        """An event for a person."""
        if _PEACE in step:
            return "peace" if step[_PEACE] else "the end of peace"
        return str(event_of(step, "the recording"))

    def peace(self, *, on: bool) -> None:
        """As the system's, where it has that: what may happen next depends on it, so it is a step of its own."""
        if isinstance(self._free, SupportsQuiescence):
            self._free.peace(on=on)
            self._note({_PEACE: on}, StepResult())

    def unsettled(self, but: int | None) -> str | None:
        """As the system's, where it has that."""
        return self._free.unsettled(but) if isinstance(self._free, SupportsLiveness) else None

    def close(self) -> None:
        """As the system's."""
        self._free.close()
