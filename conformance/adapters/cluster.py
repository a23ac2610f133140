"""Brokers, a controller and one partition on a network whose messages go only when they are told to.

Everything here is real but time and network: requests travel as messages, each is delivered, lost, repeated or kept
back by hand. An adapter lays out such schedules, so that a step of the model is a run of the system.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...impl.files.simulated import SimulatedFiles
from ...impl.log.batch import encode_batch
from ...impl.log.records import Record, StoredRecord
from ...impl.replica.broker import Broker, OffsetHandler
from ...impl.replica.partition import PartitionState
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
from ..lockstep.faults import Kind
from .carrier import LIFE, Carrier
from .parts import Parts
from .stores import SegmentReader, Store
from .topic_ids import topic_ids

PARTITION: Final = TopicPartition("t", 0)
ISR_TIMER: Final = ("isr", PARTITION)
FETCH_TIMER: Final = ("fetch", PARTITION)
HIGH_WATERMARK_TIMER: Final = ("high-watermarks",)

_ROUNDS: Final = 8
"""A truncation takes one round for each leader epoch at most, and one for a message that was lost."""

LogRecord = tuple[int, int, int]
"""Offset, leader epoch, and the number that a producer wrote."""


class Cluster(Carrier[Request, Response]):
    """Nodes ``0`` to ``replicas - 1``, and a controller that knows of no partition yet.

    Segments are small enough in every other run that each batch has its own, where ``segment_bytes`` says nothing else.
    ``settings``: others of ``BrokerConfig``.
    """

    def __init__(
        self, parts: Parts, store: Store, replicas: int, seed: int, *, segment_bytes: int | None = None, **settings: Any
    ) -> None:
        super().__init__(seed)
        self._parts = parts
        self._store = store
        self.replicas = range(replicas)
        self._config = parts.broker_config(
            log=parts.log_config(segment_bytes=segment_bytes or (1 << 20 if seed % 2 else 100)),
            replica_lag_time_max_ms=0,
            replica_fetch_max_bytes=1,
            request_timeout_ms=1,
            **settings,
        )
        self.controller = parts.controller(self.network, self.clock, SimulatedFiles(seed), new_id=topic_ids(seed))
        self.network.attach(self.controller)
        self.brokers: dict[int, Broker] = {}
        self._lives = 0
        self._truncations = 0
        self.requests: dict[int, LeaderAndIsrRequest] = {}
        """The controller's LeaderAndIsr request of each leader epoch."""
        self._reader = SegmentReader(PARTITION, _numbered)
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
            first_correlation=self._lives * LIFE,
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
        return self._reader.read(self._store.files(node))

    # -- messages ---------------------------------------------------------------------------------------------------

    def _notice(self, envelope: Envelope) -> None:
        """Keep the first LeaderAndIsr request of each epoch, whoever it is for and whether it can reach them."""
        body = envelope.body
        if envelope.source == CONTROLLER and isinstance(body, LeaderAndIsrRequest):
            self.requests.setdefault(body.leader_epoch, body)  # later ones are repeats, with the ISR of then

    def collect(self) -> None:
        """Take what the controller has sent off the network: it is delivered by hand."""
        for flight in self.network.in_flight(source=CONTROLLER):
            if flight not in self.late:
                self.network.drop(flight)

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


def produce(number: int) -> ProduceRequest:
    """One record with a number in it, from a producer of its own, so that a repeat is known as one."""
    value = str(number).encode()
    data = encode_batch([Record(value, timestamp=0)], producer_id=number, producer_epoch=0, base_sequence=0)
    return ProduceRequest(PARTITION, 1, data)


def _numbered(record: StoredRecord) -> LogRecord:
    return record.offset, record.leader_epoch, int(record.value or b"-1")


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
