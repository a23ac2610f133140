"""The model itself as a system that runs freely, with messages in flight: what any protocol with a binding has.

A request carries the state in which it was sent and a response that in which it was served, as ``transitions.py`` reads
them. With a guard taken away (``drop``) it is a system with a known fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...model.core.ground import State, ground
from ...model.core.registry import REGISTRY
from ...traces.format import Value
from ..harness import binding_of, held_to
from ..lockstep.adapter import ModelStep
from ..lockstep.binding import Effect
from ..lockstep.space import Call
from .events import Event, EventKind
from .system import EnabledEvent, Message, RequestOutcome, StepResult
from .transitions import Transitions

MAX_FLIGHTS = 6
"""So many messages are in flight at most: no more is asked then."""


@dataclass(frozen=True)
class _Flight:
    message: Message
    call: Call
    then: State


class ModelSystem:
    """A variant run by the engine itself. Guards in ``drop``, written ``action.guard``, are not there."""

    name = "model"

    def __init__(self, protocol: str | None = None, variant: str | None = None, drop: Sequence[str] = ()) -> None:
        self.protocol = protocol or REGISTRY.of_brokers_logs.name
        self._binding = binding_of(self.protocol, "--protocol")
        traced = held_to(self.protocol).traced(variant)
        self.variant = traced.variant.name
        self._traced = traced.drop(*drop)
        self._at: dict[tuple[tuple[str, int], ...], Transitions] = {}
        """By the constants; runs go through several by turns."""

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:  # noqa: ARG002 - nothing here is random
        """Start anew."""
        key = tuple(sorted(constants.items()))
        ways = self._at.get(key)
        if ways is None:
            ways = self._at[key] = Transitions(ground(self._traced, constants), self._binding)
        self._ways = ways
        self._state: State = self._ways.system.initial
        self._flights: list[_Flight] = []
        self._number = 0
        self._down: set[int] = set()
        return StepResult()

    def _exchanged(self, call: Call) -> bool:
        """Whether a step is sent for. What changes both sides is one step here: late answers to it would break it."""
        exchange = self._binding.actions[call[0]].exchange
        return exchange is not None and exchange.effect is not Effect.BOTH

    def pending(self) -> Sequence[EnabledEvent]:
        """Messages that may arrive, requests that may be sent, what happens within, crashes."""
        found = []
        alike: dict[Event, int] = {}
        for flight in self._flights:
            message = flight.message
            plain = Event(EventKind.DELIVER, message.name, message.destination, message.source, args=flight.call[1])
            number = alike.get(plain, 0)
            alike[plain] = number + 1
            event = Event(EventKind.DELIVER, message.name, plain.node, plain.source, number, plain.args)
            found.append(EnabledEvent(event, message.number))
        node = self._ways.space.node(self._state)
        for action, params in node.after:
            if self._involves_the_down(params) or self._binding.actions[action].torn:
                continue
            if action in self._binding.restarts:
                found.append(EnabledEvent(Event(EventKind.START, action, dict(params)["replica"], args=params)))
            elif not self._exchanged((action, params)):
                due = action in self._binding.prompt
                found.append(
                    EnabledEvent(Event(EventKind.TIMER if due else EventKind.CALL, action, args=params), due=due)
                )
            elif len(self._flights) < MAX_FLIGHTS:
                found.append(EnabledEvent(Event(EventKind.TIMER, action, args=params), due=True))
        return found

    def _involves_the_down(self, params: Sequence[tuple[str, int]]) -> bool:
        return any(value in self._down for _, value in params)

    def step(self, event: Event) -> StepResult:
        """One event."""
        if event.what in (EventKind.DELIVER, EventKind.LOSE, EventKind.REPEAT):
            return self._arrive(event)
        call = self._ways.matching((event.name, {name: int(value) for name, value in event.args}))[0]
        if self._exchanged(call):
            return StepResult(sent=(self._send(call, None),))
        after = self._ways.doing(call)(self._state)
        assert after is not None
        self._state = after
        if event.what is EventKind.START:
            assert event.node is not None
            return StepResult(started=frozenset({event.node}))
        return StepResult(steps=(_step(call),))

    def _send(self, call: Call, answers: int | None) -> Message:
        exchange = self._binding.actions[call[0]].exchange
        assert exchange is not None
        sides = [self._ways.side(who, call, self._state) for who in (exchange.asker, exchange.asked)]
        source, destination = sides if answers is None else reversed(sides)
        self._number += 1
        name = call[0] if answers is None else f"{call[0]} answered"
        message = Message(self._number, name, source, destination, (_step(call),), answers)
        self._flights.append(_Flight(message, call, self._state))
        return message

    def _arrive(self, event: Event) -> StepResult:
        alike = [
            flight
            for flight in self._flights
            if (flight.message.name, flight.message.destination, flight.message.source, flight.call[1])
            == (event.name, event.node, event.source, event.args)
        ]
        flight = alike[event.number]
        if event.what is not EventKind.REPEAT:
            self._flights.remove(flight)
        if event.what is EventKind.LOSE:
            return StepResult()
        message, call = flight.message, flight.call
        if message.answers is not None:
            after = self._ways.answered(self._state, flight.then, call)[1]
            self._state = self._state if after is None else after
            return StepResult()
        sight, after = self._ways.asked(self._state, flight.then, call)
        error = self._error(sight, call)
        if error is not None or after is None:
            return StepResult(judged=(RequestOutcome((_step(call),), error, message.number),))
        exchange = self._binding.actions[call[0]].exchange
        assert exchange is not None
        if exchange.effect is not Effect.ASKER:
            self._state = after
        sent = () if exchange.effect is Effect.ASKED else (self._send(call, message.number),)
        return StepResult(sent=sent, judged=(RequestOutcome((_step(call),), None, message.number),))

    def _error(self, sight: State, call: Call) -> str | None:
        """The code for a request that is refused; None where there is none, or where it is not refused."""
        guards = self._ways.space.refusing(sight, call)
        if not guards:
            return None
        answer = self._ways.answer(sight, call, guards)
        return next((code for code in sorted(answer.errors, key=str) if code is not None), None)

    def observe(self) -> Mapping[str, Value]:
        """Every cell."""
        return self._ways.space.show_all(self._state)

    def close(self) -> None:
        """There is nothing to release."""


def _step(call: Call) -> ModelStep:
    return call[0], dict(call[1])
