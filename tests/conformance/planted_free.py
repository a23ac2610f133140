"""Freely running systems with a known defect, each the model with one thing wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencepost.conformance.harness import binding_of
from fencepost.conformance.lockstep.binding import Binding
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.model_system import ModelSystem
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, simulate
from fencepost.conformance.simulation.system import CannotDrive, EnabledEvent, RequestOutcome, StepResult
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.traces.format import Value

SMALL = {"replicas": 3, "log_size": 3, "max_records": 6, "max_leader_epoch": 5}


def ways_of(protocol: str, variant: str | None, binding: Binding | None = None, **constants: int) -> Transitions:
    """The ways of a variant; at 3/3/6/5 unless told otherwise."""
    system = ground(PROTOCOLS[protocol].traced(variant), constants or SMALL)
    return Transitions(system, binding or binding_of(protocol, "--protocol"))


def followed(
    system: ModelSystem, plan: SimulationPlan | None = None, binding: Binding | None = None
) -> SimulationResult:
    """A system run freely against its own variant."""
    ways = ways_of(system.protocol, system.variant, binding)
    return simulate(system, [ways], plan or SimulationPlan(runs=100, events=150, seed=3))


class ShowsLess(ModelSystem):
    """Shows replica 1's log end offset one too low, once it has two records."""

    def observe(self) -> Mapping[str, Value]:
        seen = dict(super().observe())
        return seen | {"leo[1]": 1} if seen["leo[1]"] == 2 else seen


class TakesWhatIsLate(ModelSystem):
    """Takes an answer as if nothing had happened since it was sent."""

    def _arrive(self, event: Event) -> StepResult:
        if event.what is not EventKind.LOSE and event.name == "follower_fetch answered":
            flight = next(each for each in self._flights if each.message.name == event.name)
            follower = dict(flight.call[1])["follower"]
            took = self._ways.doing(flight.call)(self._ways.as_of(flight.then, self._state, follower))
            after = self._ways.doing(flight.call)(flight.then)
            if took is None and after is not None:
                self._flights.remove(flight)
                self._state = self._ways.as_of(self._state, after, follower)
                return StepResult()
        return super()._arrive(event)


class AnswersWrongly(ModelSystem):
    """Says NOT_LEADER_OR_FOLLOWER where it should fence."""

    def step(self, event: Event) -> StepResult:
        happened = super().step(event)
        wrong = tuple(
            RequestOutcome(each.steps, "NOT_LEADER_OR_FOLLOWER", each.message)
            if each.error == "FENCED_REPLICA"
            else each
            for each in happened.judged
        )
        return StepResult(happened.sent, wrong, happened.steps, happened.crashed, happened.started)


class WritesNothing(ModelSystem):
    """Answers a producer, and has written nothing."""

    def step(self, event: Event) -> StepResult:
        before = self._state
        happened = super().step(event)
        if event.name == "leader_write":
            self._state = before
        return happened


class ForgetsOnCrash(ModelSystem):
    """Comes back from a crash with its last record gone."""

    def step(self, event: Event) -> StepResult:
        happened = super().step(event)
        for node in happened.started:
            number = self._ways.system.layout.by_name[f"leo[{node}]"]
            if self._state[number]:
                self._state = (*self._state[:number], self._state[number] - 1, *self._state[number + 1 :])
        return happened


class FallsOver(ModelSystem):
    """Raises when the third record is written."""

    def step(self, event: Event) -> StepResult:
        happened = super().step(event)
        if self.observe()["next_record_id"] == 3:
            raise ZeroDivisionError("offset / 0")
        return happened


class Stuck(ModelSystem):
    """Cannot be driven any further when the third record is written, or when it is asked for one thing: ``where``."""

    where = "happen"

    def _stuck(self, where: str) -> None:
        if self.where == where and super().observe()["next_record_id"] == 3:
            raise CannotDrive("broker 1 did not come up in 60 s")

    def step(self, event: Event) -> StepResult:
        happened = super().step(event)
        self._stuck("happen")
        return happened

    def pending(self) -> Sequence[EnabledEvent]:
        self._stuck("pending")
        return super().pending()

    def observe(self) -> Mapping[str, Value]:
        self._stuck("observe")
        return super().observe()


class SpeaksNonsense(ModelSystem):
    """Tells of a step that the model does not have."""

    def step(self, event: Event) -> StepResult:
        happened = super().step(event)
        return StepResult(happened.sent, steps=(("leader_resign", {"leader": 0}),)) if happened.sent else happened


class ShowsTooMuch(ModelSystem):
    """Shows a cell that the model does not have."""

    def observe(self) -> Mapping[str, Value]:
        return {**super().observe(), "mood[0]": 1}


class Hides(ModelSystem):
    """Does what the model does, and shows no high watermark and no controller."""

    def observe(self) -> Mapping[str, Value]:
        return {name: value for name, value in super().observe().items() if not name.startswith(("hw[", "quorum_isr"))}


class NeverFetches(ModelSystem):
    """Its followers do all that is asked of them, and never fetch."""

    def pending(self) -> Sequence[EnabledEvent]:
        return [each for each in super().pending() if each.event.name != "follower_fetch"]


class ShowsWhatIsThere(ModelSystem):
    """Does what the model does, and shows nothing of records, requests and followers that are not there."""

    def observe(self) -> Mapping[str, Value]:
        layout, live = self._ways.system.layout, self._ways.live(self._state)
        there = {cell.name for cell in layout.cells if cell.variable.live is None or cell.number in live}
        return {name: value for name, value in super().observe().items() if name in there}


class Idle(ModelSystem):
    """Nothing is ever pending."""

    def pending(self) -> Sequence[EnabledEvent]:
        return ()
