"""A network in one thread that a test can break: seeded, deterministic, and fast.

It is driven in one of two ways, or in both by turns. Free running (``step``, ``run``): the next message or deadline in
the order of simulated time. By hand (``in_flight``, ``deliver``, ``drop``, ``duplicate``, ``hold``): a harness says
which message goes next, whatever its arrival time; time stands still unless the harness moves the clock.

Messages of one moment arrive in the order in which they were sent, and before any endpoint is woken.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

from ..wire.messages import Envelope
from .clock import SimulatedClock
from .faults import Counts, Faults, Flight
from .host import BudgetExceeded, Host, NetworkError

Observer = Callable[[str, int, Envelope], None]
"""Called as ``observer(what, milliseconds, envelope)``; ``what`` is ``sent`` or a field of ``Counts``."""

_STALE = 64
"""Entries of the heap that are let go before it is first made anew."""


class SimulatedNetwork(Host):
    """Transport and host of all endpoints of a simulation.

    ``faults`` may be set anew at any time. ``hold_if`` holds every message for which it is true from the moment that it
    is sent; loss and duplication come before it. ``observer`` is told of everything, in order.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        clock: SimulatedClock | None = None,
        faults: Faults | None = None,
        hold_if: Callable[[Envelope], bool] | None = None,
        observer: Observer | None = None,
    ) -> None:
        super().__init__()
        self.seed = seed
        self.chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self.clock = clock or SimulatedClock()
        self.faults = faults or Faults()
        self.hold_if = hold_if
        self.observer = observer
        self.counts = Counts()
        self._number = 0
        self._flights: dict[int, Flight] = {}
        self._heap: list[tuple[int, int, Flight]] = []
        self._latest: dict[tuple[int, int], int] = {}
        self._cut: set[tuple[int, int]] = set()
        self._deaf: set[int] = set()
        self._mute: set[int] = set()

    @property
    def faults(self) -> Faults:
        """What happens to the messages that are sent from now on."""
        return self._faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._faults = faults
        self._low, high = faults.latency
        self._span = high - self._low + 1

    # -- transport --------------------------------------------------------------------------------------------------

    def send(self, envelope: Envelope) -> None:
        """Take a message on its way, or lose it."""
        counts = self.counts
        counts.sent += 1
        if self.observer is not None:
            self.observer("sent", self.clock.now(), envelope)
        if self.is_cut(envelope.source, envelope.destination):
            counts.cut += 1
            self._tell("cut", envelope)
            return
        faults = self._faults
        if faults.loss and self.chance.random() < faults.loss:
            counts.lost += 1
            self._tell("lost", envelope)
            return
        self._launch(envelope)
        if faults.duplication and self.chance.random() < faults.duplication:
            counts.duplicated += 1
            self._tell("duplicated", envelope)
            self._launch(envelope)

    def _launch(self, envelope: Envelope) -> Flight:
        delay = self._low
        if self._span > 1:
            delay += int(self.chance.random() * self._span)
        number = self._number
        self._number = number + 1
        flight = Flight(envelope, number, self.clock.now() + delay)
        self._flights[number] = flight
        if self.hold_if is not None and self.hold_if(envelope):
            flight.held = True
        else:
            self._schedule(flight)
        return flight

    def _schedule(self, flight: Flight) -> None:
        heap = self._heap
        if len(heap) > _STALE + 2 * len(self._flights):  # those that went by hand are let go all at once
            heap[:] = [entry for entry in heap if self._is_due(entry[2])]
            heapq.heapify(heap)
        heapq.heappush(heap, (flight.arrival, flight.number, flight))

    def _is_due(self, flight: Flight) -> bool:
        return not flight.held and flight.number in self._flights

    def _tell(self, what: str, envelope: Envelope) -> None:
        if self.observer is not None:
            self.observer(what, self.clock.now(), envelope)

    # -- partitions -------------------------------------------------------------------------------------------------

    def cut(self, source: int, destination: int, *, both: bool = True) -> None:
        """Let no message from ``source`` reach ``destination``, and with ``both`` none the other way."""
        self._cut.add((source, destination))
        if both:
            self._cut.add((destination, source))

    def isolate(self, address: int, *, incoming: bool = True, outgoing: bool = True) -> None:
        """Cut an endpoint off from all others: from what they send, from what it sends, or both."""
        if incoming:
            self._deaf.add(address)
        if outgoing:
            self._mute.add(address)

    def heal(self, address: int | None = None) -> None:
        """Undo every cut, or those that touch ``address``. What was lost stays lost."""
        if address is None:
            self._cut.clear()
            self._deaf.clear()
            self._mute.clear()
            return
        self._cut = {pair for pair in self._cut if address not in pair}
        self._deaf.discard(address)
        self._mute.discard(address)

    def is_cut(self, source: int, destination: int) -> bool:
        """Whether a message from ``source`` to ``destination`` would be lost at a partition."""
        if not (self._cut or self._deaf or self._mute) or source == destination:
            return False
        return (source, destination) in self._cut or source in self._mute or destination in self._deaf

    # -- by hand ----------------------------------------------------------------------------------------------------

    def in_flight(self, *, source: int | None = None, destination: int | None = None) -> list[Flight]:
        """The messages on their way, in the order in which they were sent; those of one sender or receiver only."""
        return [
            flight
            for flight in self._flights.values()
            if (source is None or flight.envelope.source == source)
            and (destination is None or flight.envelope.destination == destination)
        ]

    def deliver(self, flight: Flight, *, keep: bool = False) -> bool:
        """Hand the message over now; with ``keep`` as a copy, and the message is held for another time.

        ``False`` where it vanished: no endpoint was up, or the network was cut. Raises ``NetworkError`` for a message
        that is no longer on its way, like everything that takes a handle.
        """
        self._check(flight)
        if not keep:
            return self._arrive(flight)
        flight.held = True
        return self._arrive(self.duplicate(flight))

    def drop(self, flight: Flight) -> None:
        """Lose the message."""
        self._check(flight)
        del self._flights[flight.number]
        self.counts.dropped += 1
        self._tell("dropped", flight.envelope)

    def duplicate(self, flight: Flight) -> Flight:
        """Send a copy on its way, with a latency of its own; gives the copy."""
        self._check(flight)
        self.counts.duplicated += 1
        self._tell("duplicated", flight.envelope)
        return self._launch(flight.envelope)

    def hold(self, flight: Flight) -> None:
        """Let the message wait until ``deliver``, ``drop`` or ``release``."""
        self._check(flight)
        flight.held = True

    def release(self, flight: Flight) -> None:
        """Let a held message arrive by itself: at its time, or at once where that is past."""
        self._check(flight)
        if flight.held:
            flight.held = False
            flight.arrival = max(flight.arrival, self.clock.now())
            self._schedule(flight)

    def exchange(self, flight: Flight) -> Envelope | None:
        """Deliver a request and, where its receiver answers at once, the answer too; gives the answer.

        ``None`` where the request vanished or nobody answered yet. What else was sent meanwhile stays on its way.
        """
        request = flight.envelope
        first = self._number
        if not self.deliver(flight):
            return None
        for number in range(first, self._number):
            answer = self._flights.get(number)
            if answer is None:
                continue
            body = answer.envelope
            back = body.source == request.destination and body.destination == request.source
            if back and body.correlation == request.correlation:
                self._arrive(answer)
                return body
        return None

    def _check(self, flight: Flight) -> None:
        if self._flights.get(flight.number) is not flight:
            way = f"from {flight.envelope.source} to {flight.envelope.destination}"
            raise NetworkError(f"message {flight.number} {way}: no longer on its way; take one of in_flight()")

    def _arrive(self, flight: Flight) -> bool:
        envelope = flight.envelope
        counts = self.counts
        del self._flights[flight.number]
        way = source, destination = envelope.source, envelope.destination
        if self.is_cut(source, destination):
            counts.cut += 1
            self._tell("cut", envelope)
            return False
        endpoint = self._endpoints.get(destination)
        if endpoint is None:
            counts.undeliverable += 1
            self._tell("undeliverable", envelope)
            return False
        if self._latest.get(way, -1) > flight.number:
            counts.reordered += 1
        else:
            self._latest[way] = flight.number
        counts.delivered += 1
        if self.observer is not None:
            self.observer("delivered", self.clock.now(), envelope)
        endpoint.receive(envelope)
        self._asked(destination, endpoint)
        return True

    # -- free running -----------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Let time pass to the next arrival or deadline, and let it happen; ``False`` where there is none."""
        self.refresh()
        return self._step(None)

    def run(self, until: int | Callable[[], bool] | None = None, *, budget: int = 100_000) -> int:
        """Run up to a moment (simulated milliseconds), until a condition holds, or until nothing is left to happen.

        Gives the number of events. The condition is asked before the first and after each; it only looks. Raises
        ``BudgetExceeded`` after ``budget`` events, and where nothing is left to happen and the condition fails.
        """
        self.refresh()
        condition = until if callable(until) else None
        limit = until if isinstance(until, int) else None
        events = 0
        while condition is None or not condition():
            if events >= budget:
                raise BudgetExceeded(
                    f"simulation at {self.clock.now()} ms: not done after {events} events, with "
                    f"{len(self._flights)} messages on their way; look at in_flight() and at the endpoints' deadlines, "
                    "or raise the budget"
                )
            if not self._step(limit):
                if condition is not None:
                    raise BudgetExceeded(
                        f"simulation at {self.clock.now()} ms: nothing is left to happen and the condition fails; "
                        "look at what was lost or is held"
                    )
                break
            events += 1
        if limit is not None:
            self.clock.advance_to(limit)
        return events

    def _step(self, limit: int | None) -> bool:
        heap = self._heap
        while heap and not self._is_due(heap[0][2]):
            heapq.heappop(heap)
        wake = self._next_wake()
        if heap and (wake is None or heap[0][0] <= wake[0]):
            arrival, _, flight = heap[0]
            if limit is not None and arrival > limit:
                return False
            heapq.heappop(heap)
            self.clock.advance_to(arrival)
            self._arrive(flight)
            return True
        if wake is None or (limit is not None and wake[0] > limit):
            return False
        self.clock.advance_to(wake[0])
        self.counts.woken += 1
        self._wake(wake[1])
        return True
