"""Brokers, a controller and one partition on a network whose messages go only when they are told to.

Everything here is real but time and network: requests travel as messages, each is delivered, lost, repeated or kept
back by hand. An adapter lays out such schedules, so that a step of the model is a run of the system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ...impl.files.interface import read_file
from ...impl.files.simulated import SimulatedFiles
from ...impl.log.batch import encode_batch, read_batches
from ...impl.log.records import Record
from ...impl.net.clock import SimulatedClock
from ...impl.net.faults import Faults, Flight
from ...impl.net.simulated import SimulatedNetwork
from ...impl.replica.broker import Broker, OffsetHandler
from ...impl.replica.partition import PartitionState
from ...impl.wire.errors import ErrorCode
from ...impl.wire.messages import (
    CONTROLLER,
    NO_LEADER,
    Envelope,
    LeaderAndIsrRequest,
    ProduceRequest,
    Request,
    Response,
    TopicPartition,
)
from ..lockstep.faults import TIMED_OUT, Kind
from .parts import Parts
from .stores import Store

PARTITION: Final = TopicPartition("t", 0)
CLIENT: Final = -100
ISR_TIMER: Final = ("isr", PARTITION)
FETCH_TIMER: Final = ("fetch", PARTITION)
HIGH_WATERMARK_TIMER: Final = ("high-watermarks",)

LOSES: Final = frozenset({Kind.LOSE_REQUEST, Kind.LOSE_RESPONSE, Kind.DELAY_RESPONSE})
"""The faults after which the asker has no answer."""

_ROUNDS: Final = 8
"""A truncation takes one round for each leader epoch at most, and one for a message that was lost."""

_LIFE: Final = 1 << 48
"""Correlation ids of one process of a broker; the controller's are below all of them."""

LogRecord = tuple[int, int, int]
"""Offset, leader epoch, and the number that a producer wrote."""


class Cluster:
    """Nodes ``0`` to ``replicas - 1``, and a controller that knows of no partition yet.

    Segments are small enough in every other run that each batch has its own.
    """

    def __init__(self, parts: Parts, store: Store, replicas: int, seed: int) -> None:
        self._parts = parts
        self._store = store
        self.replicas = range(replicas)
        self.clock = SimulatedClock()
        self.network = SimulatedNetwork(
            seed,
            clock=self.clock,
            faults=Faults(latency=(0, 0)),
            hold_if=lambda _envelope: True,
            observer=self._notice,
        )
        self._config = parts.broker_config(
            log=parts.log_config(segment_bytes=1 << 20 if seed % 2 else 100),
            replica_lag_time_max_ms=0,
            replica_fetch_max_bytes=1,
            request_timeout_ms=1,
        )
        self.controller = parts.controller(self.network, self.clock, SimulatedFiles(seed))
        self.network.attach(self.controller)
        self.brokers: dict[int, Broker] = {}
        self._lives = 0
        self._correlation = 0
        self._truncations = 0
        self.requests: dict[int, LeaderAndIsrRequest] = {}
        """The controller's LeaderAndIsr request of each leader epoch."""
        self.late: list[Flight] = []
        """Responses that were kept back, the oldest first."""
        self._decoded: dict[bytes, tuple[LogRecord, ...]] = {}
        for node in self.replicas:
            self.start(node)

    def create_partition(self) -> None:
        """Let the controller make the partition, without a leader yet and with everybody in the ISR."""
        for node in self.replicas:
            self.controller.broker_started(node, 1)
        self.controller.create_partition(PARTITION, list(self.replicas), elect=False)
        self.collect()

    # -- processes --------------------------------------------------------------------------------------------------

    def start(self, node: int, coordinator: OffsetHandler | None = None) -> Broker:
        """Start a broker on the files that are there."""
        self._lives += 1
        broker = self._parts.broker(
            node,
            self._store.files(node),
            self.network,
            self.clock.at(node),
            self._config,
            coordinator=coordinator,
            first_correlation=self._lives * _LIFE,
        )
        self.brokers[node] = broker
        self.network.attach(broker)
        return broker

    def crash(self, node: int, seed: int) -> Broker:
        """Kill a broker, crash its disk, and start it again."""
        self.network.detach(node)
        self._store.crash(node, seed)
        return self.start(node)

    # -- looking ----------------------------------------------------------------------------------------------------

    def state(self, node: int) -> PartitionState | None:
        """What a broker's replica goes by; None before it was told of the partition."""
        broker = self.brokers[node]
        return broker.state(PARTITION) if PARTITION in broker.partitions else None

    def records(self, node: int) -> tuple[LogRecord, ...]:
        """What is in a replica's segment files, read past the broker."""
        files, folder = self._store.files(node), str(PARTITION)
        if not files.exists(folder):
            return ()
        found: tuple[LogRecord, ...] = ()
        for name in files.list(folder):
            if name.endswith(".log"):
                found += self._decode(read_file(files, f"{folder}/{name}"))
        return found

    def _decode(self, data: bytes) -> tuple[LogRecord, ...]:
        found = self._decoded.get(data)
        if found is None:
            found = self._decoded[data] = tuple(
                (record.offset, record.leader_epoch, int(record.value or b"-1"))
                for batch in read_batches(data)
                for record in batch.records()
            )
        return found

    # -- messages ---------------------------------------------------------------------------------------------------

    def _notice(self, what: str, _moment: int, envelope: Envelope) -> None:
        """Keep the first LeaderAndIsr request of each epoch, whoever it is for and whether it can reach them."""
        body = envelope.body
        if what == "sent" and envelope.source == CONTROLLER and isinstance(body, LeaderAndIsrRequest):
            self.requests.setdefault(body.leader_epoch, body)  # later ones are repeats, with the ISR of then

    def collect(self) -> None:
        """Take what the controller has sent off the network: it is delivered by hand."""
        for flight in self.network.in_flight(source=CONTROLLER):
            if flight not in self.late:
                self.network.drop(flight)

    def sent(self, source: int, destination: int) -> Flight | None:
        """The message that was sent last on this way, and is not kept back."""
        flights = [f for f in self.network.in_flight(source=source, destination=destination) if f not in self.late]
        return flights[-1] if flights else None

    def ask(self, source: int, destination: int, body: Request, principal: str) -> Flight | None:
        """Send a request in somebody's name; None where the way is cut."""
        self._correlation -= 1  # brokers' own count up
        self.network.send(Envelope(source, destination, self._correlation, body, principal))
        return self.sent(source, destination)

    def carry(
        self, flight: Flight | None, fault: Kind | None = None, wanted: Callable[[Response], bool] = lambda _: True
    ) -> Response | None:
        """Carry a request to its receiver and the answer back, with a fault on the way; the answer unless it was lost.

        An answer that is not ``wanted`` is seen, but does not arrive.
        """
        if flight is None:
            return None
        if fault is Kind.LOSE_REQUEST:
            self.network.drop(flight)
            return None
        request = flight.envelope
        if fault is Kind.DUPLICATE_REQUEST:
            self.network.deliver(flight, keep=True)
        self.network.deliver(flight)
        answers = [
            each
            for each in self.network.in_flight(source=request.destination, destination=request.source)
            if each.envelope.correlation == request.correlation and each not in self.late
        ]
        if not answers:
            return None
        if fault is Kind.LOSE_RESPONSE:
            for answer in answers:
                self.network.drop(answer)
            return None
        if fault is Kind.DELAY_RESPONSE:
            self.late += answers
            return None
        body = answers[0].envelope.body
        if not wanted(body):  # type: ignore[arg-type]  # an answer carries a response
            for answer in answers:
                self.network.drop(answer)
            return body  # type: ignore[return-value]
        if fault is Kind.DUPLICATE_RESPONSE:
            self.network.deliver(answers[0], keep=True)
        for answer in answers:
            self.network.deliver(answer)
        return body  # type: ignore[return-value]

    def truncate(self, follower: int, leader: int, fault: Kind | None = None) -> None:
        """Carry a new follower's truncation to its end: it asks until it knows where to cut.

        Each loses another of its first messages, by turns: none, the request, the response.
        """
        self._truncations += 1
        first = fault or (None, Kind.LOSE_REQUEST, Kind.LOSE_RESPONSE)[self._truncations % 3]
        for number in range(_ROUNDS):
            state = self.state(follower)
            if state is None or state.role.value != "truncating":
                break
            self.clock.advance(1)
            self.brokers[follower].fire(FETCH_TIMER)
            self.carry(self.sent(follower, leader), first if number == 0 else None)
        self.give_up(follower)

    def give_up(self, follower: int) -> None:
        """Let a follower send its next request, and lose it: it waits for no earlier answer any more."""
        state = self.state(follower)
        if state is not None and state.role.value in ("follower", "truncating"):
            self.brokers[follower].fire(FETCH_TIMER)
            self.lose(follower, state.leader)

    def deliver_late(self) -> None:
        """Let the oldest response that was kept back arrive."""
        if self.late:
            self.network.deliver(self.late.pop(0))

    def lose(self, source: int, destination: int) -> None:
        """Lose what was sent last on this way, if anything was."""
        flight = self.sent(source, destination)
        if flight is not None:
            self.network.drop(flight)


def error_name(answer: Response | None) -> str | None:
    """The error of an answer as the models name it; one that did not come is a timeout."""
    if answer is None:
        return TIMED_OUT
    if answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER.name  # the broker was told of no leader epoch of the partition yet
    return None if answer.error is ErrorCode.NONE else answer.error.name


def produce(number: int) -> ProduceRequest:
    """One record with a number in it, from a producer of its own, so that a repeat is known as one."""
    value = str(number).encode()
    data = encode_batch([Record(value, timestamp=0)], producer_id=number, producer_epoch=0, base_sequence=0)
    return ProduceRequest(PARTITION, 1, data)


def leads(state: PartitionState | None, node: int) -> bool:
    """Whether a replica presumes leadership."""
    return state is not None and state.leader == node


def remote_leo(state: PartitionState | None, follower: int) -> int:
    """A follower's LEO as its leader knows it, -1 if it does not."""
    return -1 if state is None else dict(state.progress).get(follower, -1)


def shown_set(members: Sequence[int] | frozenset[int]) -> tuple[int, ...]:
    """A set of replicas as traces have it."""
    return tuple(sorted(members))


def shown_leader(leader: int) -> int | None:
    """A leader as traces have it."""
    return None if leader == NO_LEADER else leader
