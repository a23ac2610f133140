"""Systems with a known defect for the harness to find, each the model with one thing wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencepost.conformance.harness import binding_of
from fencepost.conformance.lockstep.adapter import Contradiction, ModelStep, Outcome
from fencepost.conformance.lockstep.faults import Fault, Kind
from fencepost.conformance.lockstep.model_adapter import ModelAdapter
from fencepost.conformance.lockstep.runner import Conformance, Plan, conform
from fencepost.conformance.lockstep.space import Call
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.traces.format import Value

SMALL = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}


def held(adapter: ModelAdapter, plan: Plan | None = None, **constants: int) -> Conformance:
    """An adapter held against its own variant, at 2/2/2/2 unless told otherwise."""
    system = ground(PROTOCOLS[adapter.protocol].traced(adapter.variant), constants or SMALL)
    return conform(adapter, system, binding_of(adapter.protocol, "--protocol"), plan or Plan(examples=300, seed=1))


class Lying(ModelAdapter):
    """Shows replica 1's log end offset one too low, once it has two records."""

    def observe(self) -> Mapping[str, Value]:
        seen = dict(super().observe())
        return seen | {"leo[1]": 1} if seen["leo[1]"] == 2 else seen


class StartsElsewhere(ModelAdapter):
    """The first look at it shows a state that is not the initial one."""

    def observe(self) -> Mapping[str, Value]:
        return {**super().observe(), "leo[0]": 1}


class WrongCode(ModelAdapter):
    """Says NOT_LEADER_OR_FOLLOWER where it should fence."""

    def refusal(self, call: Call, errors: Sequence[str | None]) -> str | None:
        code = super().refusal(call, errors)
        return "NOT_LEADER_OR_FOLLOWER" if code == "FENCED_REPLICA" else code


class ChangesOnRefusal(ModelAdapter):
    """Forgets a replica's ISR while it refuses a stale LeaderAndIsr."""

    def refusal(self, call: Call, errors: Sequence[str | None]) -> str | None:
        if call[0] == "become_leader":
            number = self.system.layout.by_name[f"isr[{dict(call[1])['leader']}]"]
            self.state = (*self.state[:number], 0, *self.state[number + 1 :])
        return super().refusal(call, errors)


class ActsLate(ModelAdapter):
    """Applies a fetch response that comes after it was given up."""

    def late(self, call: Call) -> tuple[ModelStep, ...]:
        return self.take(call) if call in self.space.node(self.state).after else ()


class HidesWhatIsLate(ActsLate):
    """The same, and does not tell."""

    def late(self, call: Call) -> tuple[ModelStep, ...]:
        super().late(call)
        return ()


class ActsTwice(ModelAdapter):
    """Appends a record for each copy of a request."""

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        outcome = super().apply(action, params, fault)
        if fault is not None and fault.kind is Kind.DUPLICATE_REQUEST and action == "leader_write":
            again = self.space.call(action, params)
            if again in self.space.node(self.state).after:
                self.take(again)
        return outcome


class ActsThoughLost(ModelAdapter):
    """Writes the record of a request that was lost."""

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        enabled = self.space.call(action, params) in self.space.node(self.state).after
        if fault is not None and fault.kind is Kind.LOSE_REQUEST and action == "leader_write" and enabled:
            return super().apply(action, params)
        return super().apply(action, params, fault)


class WritesToAFullDisk(ModelAdapter):
    """Takes a producer's record and answers that the disk is full."""

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        if action == "leader_write" and fault is not None and fault.kind is Kind.DISK_FULL:
            super().apply(action, params)
        return super().apply(action, params, fault)


class ReachesTheIsolated(ModelAdapter):
    """Goes on talking with a replica that is cut off."""

    def inject(self, fault: Fault) -> Outcome:
        return Outcome() if fault.kind is Kind.ISOLATE else super().inject(fault)


class LetsTheOfflineJoin(ModelAdapter):
    """Takes a replica into the ISR that the controller has marked offline."""

    def inject(self, fault: Fault) -> Outcome:
        return Outcome() if fault.kind is Kind.MARK_OFFLINE else super().inject(fault)


class FallsOver(ModelAdapter):
    """Raises when a follower fetches a second record."""

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        if action == "follower_fetch" and self.observe()[f"leo[{params['follower']}]"] == 1:
            raise ZeroDivisionError("offset / 0")
        return super().apply(action, params, fault)


class Contradicts(ModelAdapter):
    """Knows more than the model: of a second record that somebody has, it is seen to be another than was written."""

    def observe(self) -> Mapping[str, Value]:
        seen = super().observe()
        if any(seen[f"leo[{replica}]"] == 2 for replica in range(2)):
            raise Contradiction("the record at offset 1 is not what was written there")
        return seen


class SpeaksNonsense(ModelAdapter):
    """Reports a step that the protocol does not have."""

    def take(self, call: Call) -> tuple[ModelStep, ...]:
        steps = super().take(call)
        return (*steps, ("leader_resign", {"leader": 0})) if call[0] == "leader_write" else steps


class LosesOnCrash(ModelAdapter):
    """Comes back from a crash without its last record, and reports a restart all the same."""

    def inject(self, fault: Fault) -> Outcome:
        outcome = super().inject(fault)
        if fault.kind is Kind.CRASH and outcome.run:
            number = self.system.layout.by_name[f"leo[{fault.replica}]"]
            self.state = (*self.state[:number], max(0, self.state[number] - 1), *self.state[number + 1 :])
        return outcome


class AnswersAtRandom(ModelAdapter):
    """Fails once, and never again."""

    failed = False

    def observe(self) -> Mapping[str, Value]:
        seen = dict(super().observe())
        if seen["leo[0]"] == 1 and not AnswersAtRandom.failed:
            AnswersAtRandom.failed = True
            return seen | {"leo[0]": 0}
        return seen


class ShowsAnotherEachTime(ModelAdapter):
    """Fails at the same place always; what it shows there is one of two in turn."""

    shown = 0

    def observe(self) -> Mapping[str, Value]:
        seen = dict(super().observe())
        if seen["leo[1]"] == 2:
            ShowsAnotherEachTime.shown = 1 - ShowsAnotherEachTime.shown
            return seen | {"leo[1]": ShowsAnotherEachTime.shown}
        return seen


class NamesAnObject(ModelAdapter):
    """Raises always at the same place, with the address of an object in its words."""

    def observe(self) -> Mapping[str, Value]:
        seen = super().observe()
        if seen["leo[1]"] == 2:
            raise ValueError(f"{object()!r} is full")
        return seen


class SeesLittle(ModelAdapter):
    """Shows log end offsets alone."""

    def observe(self) -> Mapping[str, Value]:
        return {cell: value for cell, value in super().observe().items() if cell.startswith("leo")}


class SeesNothing(ModelAdapter):
    """Shows no cell at all."""

    def observe(self) -> Mapping[str, Value]:
        return {}
