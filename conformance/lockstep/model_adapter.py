"""The model itself behind the adapter: the harness held against something that is known to be right.

With guards dropped it is a system with a known defect, and the harness must find it. It brings about every fault, as a
system of perfect nodes would.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from ...model.core.ground import State, System, ground
from ...model.core.registry import REGISTRY
from ...traces.format import Value
from ..harness import in_lockstep
from .adapter import ModelStep, Outcome
from .binding import Effect, Sight
from .faults import STORAGE, STORAGE_ERROR, TIMED_OUT, Fault, Kind
from .space import Call, Space


class ModelAdapter:
    """A protocol's variant, run by the staged engine. ``drop`` takes guards away from it, written ``action.guard``.

    The variant with restarts is the default where there is one, as only that can be crashed.
    """

    name = "model"
    faults = frozenset(Kind)

    def __init__(self, protocol: str | None = None, variant: str | None = None, drop: Sequence[str] = ()) -> None:
        self.protocol = protocol or REGISTRY.of_brokers_logs.name
        text, self._binding = in_lockstep(self.protocol, "--protocol")
        traced = text.traced(variant)
        self.variant = traced.variant.name
        self._traced = traced.drop(*drop)
        self._constants: dict[str, int] | None = None

    def reset(self, constants: Mapping[str, int], seed: int) -> None:  # noqa: ARG002 - nothing here is random
        """Start anew."""
        if self._constants != dict(constants):
            self._constants = dict(constants)
            self.system: System = ground(self._traced, constants)
            self.space = Space(self.system, self._binding)
        self.state: State = self.system.initial
        self._isolated: set[int] = set()
        self._offline: set[int] = set()
        self._late: list[Call] = []

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """Do what the model does, and what the fault makes of it."""
        call = self.space.call(action, params)
        node = self.space.node(self.state)
        bound = self._binding.actions[action]
        sight = Sight(self.system, self.state, params)
        exchange = bound.exchange
        cut = exchange is not None and not self._isolated.isdisjoint(exchange.replicas(sight))
        if call not in node.after:
            answer = self.space.refused(node, call)[1]
            if not answer.unasked and (cut or (fault is not None and _loses(fault.kind))):
                return Outcome(error=TIMED_OUT)
            return Outcome(error=self.refusal(call, sorted(answer.errors, key=str)))
        if cut:
            return Outcome(error=TIMED_OUT)
        for param, told in bound.offline.items():
            if params[param] in self._offline:
                return Outcome(error=self.refusal(call, sorted(told.errors, key=str)))
        if fault is None:
            return Outcome(self.take(call))
        if fault.kind in STORAGE:
            return Outcome(error=STORAGE_ERROR)
        if not _loses(fault.kind):
            return Outcome(self.take(call))
        if fault.kind is Kind.DELAY_RESPONSE:
            self._late.append(call)
        happens = fault.kind is not Kind.LOSE_REQUEST and exchange is not None and exchange.effect is Effect.ASKED
        return Outcome(self.take(call) if happens else (), TIMED_OUT)

    def take(self, call: Call) -> tuple[ModelStep, ...]:
        """Take an enabled step, and report it."""
        self.state = self.space.node(self.state).after[call]
        return ((call[0], dict(call[1])),)

    def refusal(self, call: Call, errors: Sequence[str | None]) -> str | None:  # noqa: ARG002 - for those who lie
        """The code to answer a refused step with, of those that are right."""
        return next((error for error in errors if error is not None), None)

    def late(self, call: Call) -> tuple[ModelStep, ...]:  # noqa: ARG002 - for those who act on it
        """A response that was given up arrives; whoever asked no longer wants it."""
        return ()

    def observe(self) -> Mapping[str, Value]:
        """Every cell."""
        return self.space.show_all(self.state)

    def inject(self, fault: Fault) -> Outcome:
        """A fault on its own."""
        match fault.kind, fault.replica:
            case Kind.ISOLATE, int(replica):
                self._isolated.add(replica)
            case Kind.HEAL, int(replica):
                self._isolated.discard(replica)
            case Kind.MARK_OFFLINE, int(replica):
                self._offline.add(replica)
            case Kind.MARK_ONLINE, int(replica):
                self._offline.discard(replica)
            case Kind.DELIVER_LATE, _:
                return Outcome(self.late(self._late.pop(0)) if self._late else ())
            case Kind.CRASH, int(replica):
                return self._crash(replica, fault.seed)
        return Outcome()

    def _crash(self, replica: int, seed: int) -> Outcome:
        """Of the ways to come back that the model allows, one that the seed chooses; none where nothing is lost."""
        ways = [
            call
            for call in self.space.node(self.state).after
            if call[0] in self.space.crashes and dict(call[1])["replica"] == replica
        ]
        if not ways:
            return Outcome()
        return Outcome(self.take(random.Random(seed).choice(ways)))  # noqa: S311 - nothing secret

    def close(self) -> None:
        """There is nothing to release."""


def _loses(kind: Kind) -> bool:
    return kind in (Kind.LOSE_REQUEST, Kind.LOSE_RESPONSE, Kind.DELAY_RESPONSE)
