"""Brokers on simulated disks and a network that a test drives by hand, with a controller that is the test itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import Record, encode_batch
from fencepost.impl.net import Flight, SimulatedNetwork
from fencepost.impl.replica import Authorizer, Broker, BrokerConfig, PartitionState, Role
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONTROLLER,
    FIRST_CLIENT,
    Envelope,
    LeaderAndIsrRequest,
    ProduceRequest,
    Request,
    Response,
    TopicPartition,
)

TP = TopicPartition("orders", 0)
CONFIG = BrokerConfig(replica_lag_time_max_ms=100, isr_interval_ms=50, replica_fetch_max_bytes=1)


class Asker:
    """An endpoint that keeps the answers it gets."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.answers: list[Envelope] = []

    def receive(self, envelope: Envelope) -> None:
        self.answers.append(envelope)

    def deadline(self) -> int | None:
        return None

    def wake(self) -> None:
        raise AssertionError("nobody sets it a deadline")


def records(*values: bytes, timestamp: int = 0, **producer: int) -> bytes:
    """One batch, as a producer sends it."""
    return encode_batch([Record(value, timestamp=timestamp) for value in values], **producer)


class Cluster:
    """Brokers 0, 1, ... ; nothing is sent by itself unless the test runs the network."""

    def __init__(self, count: int = 3, config: BrokerConfig = CONFIG, authorizer: Authorizer | None = None) -> None:
        self.config = config
        self.authorizer = authorizer
        self.network = SimulatedNetwork(1)
        self.client = Asker(FIRST_CLIENT)
        self.controller = Asker(CONTROLLER)
        self.network.attach(self.client)
        self.network.attach(self.controller)
        self.disks = [SimulatedFiles(node) for node in range(count)]
        self.starts = [0] * count
        self.brokers: dict[int, Broker] = {}
        self._correlation = 0
        self.partition_epoch = 0
        for node in range(count):
            self.start(node)

    # -- processes --------------------------------------------------------------------------------------------------

    def start(self, node: int) -> Broker:
        self.starts[node] += 1
        broker = Broker(
            node,
            self.disks[node],
            self.network,
            self.network.clock,
            self.config,
            authorizer=self.authorizer,
            first_correlation=self.starts[node] << 32,
        )
        self.brokers[node] = broker
        self.network.attach(broker)
        return broker

    def crash(self, node: int, seed: int = 0) -> Broker:
        """The machine goes down and comes up again; what it sent stays on its way."""
        self.network.detach(node)
        self.disks[node].crash(seed)
        return self.start(node)

    # -- messages ---------------------------------------------------------------------------------------------------

    def ask(self, node: int, body: Request, principal: str = BROKER_PRINCIPAL) -> Any:
        """Send a request from a client, and give the answer; ``None`` where there is none yet."""
        self._correlation += 1
        envelope = Envelope(self.client.address, node, self._correlation, body, principal)
        self.brokers[node].receive(envelope)
        return self.answer_to(self._correlation)

    def answer_to(self, correlation: int) -> Response | None:
        """The answer to the client's request with this number, once it has been sent."""
        for flight in self.network.in_flight(destination=self.client.address):
            self.network.deliver(flight)
        for envelope in self.client.answers:
            if envelope.correlation == correlation:
                body: Response = envelope.body  # type: ignore[assignment]
                return body
        return None

    @property
    def last(self) -> int:
        """The number of the client's last request."""
        return self._correlation

    def sent(self, node: int) -> Flight:
        """The one message that a broker has on its way to another broker or the controller."""
        found = [
            flight
            for flight in self.network.in_flight(source=node)
            if flight.envelope.destination != self.client.address
        ]
        assert len(found) == 1, found
        return found[0]

    def nothing_sent(self, node: int) -> bool:
        return not [f for f in self.network.in_flight(source=node) if f.envelope.destination != self.client.address]

    def exchange(self, node: int, key: str = "fetch") -> Response:
        """Let a broker send what its timer is for, and bring the answer back."""
        self.brokers[node].fire((key, TP))
        answer = self.network.exchange(self.sent(node))
        assert answer is not None
        body: Response = answer.body  # type: ignore[assignment]
        return body

    # -- roles ------------------------------------------------------------------------------------------------------

    def request(self, leader: int, epoch: int, isr: Iterable[int] | None = None, **changes: Any) -> LeaderAndIsrRequest:
        everyone = tuple(range(len(self.disks)))
        members = frozenset(everyone if isr is None else isr)
        request = LeaderAndIsrRequest(1, TP, leader, epoch, members, everyone, frozenset(), epoch * 10)
        return replace(request, **changes)

    def tell(self, node: int, request: LeaderAndIsrRequest) -> ErrorCode:
        error: ErrorCode = self.ask(node, request).error
        return error

    def elect(
        self, leader: int, epoch: int, isr: Iterable[int] | None = None, nodes: Iterable[int] | None = None
    ) -> None:
        """Tell the brokers (all, or ``nodes``), and let those that follow truncate."""
        request = self.request(leader, epoch, isr)
        for node in sorted(self.brokers if nodes is None else nodes, key=lambda node: node != leader):
            assert self.tell(node, request) is ErrorCode.NONE
            if node != leader:
                self.truncate(node)

    def truncate(self, node: int) -> None:
        """Let a follower truncate, in as many rounds as it takes."""
        for _ in range(20):
            if self.state(node).role is not Role.TRUNCATING:
                return
            self.exchange(node)
        raise AssertionError("no end to the truncation")

    def fetch_all(self, *nodes: int) -> None:
        """Let followers fetch until all is copied, acknowledged, and known to be committed."""
        for _ in range(3):
            for node in nodes:
                end = -1
                while self.state(node).end != end:
                    end = self.state(node).end
                    self.exchange(node)

    # -- clients ----------------------------------------------------------------------------------------------------

    def produce(self, node: int, *values: bytes, acks: int = 1, **producer: int) -> Any:
        """One batch; the answer."""
        return self.ask(node, ProduceRequest(TP, acks, records(*values, **producer)))

    # -- looking ----------------------------------------------------------------------------------------------------

    def state(self, node: int) -> PartitionState:
        return self.brokers[node].state(TP)

    def rows(self, node: int) -> list[tuple[int, int, bytes]]:
        """Offset, leader epoch and value of every record."""
        log = self.brokers[node].partitions[TP].log
        return [(record.offset, record.leader_epoch, record.value or b"") for record in log.records(log.log_start)]

    def values(self, node: int) -> bytes:
        """The values of all records, one after another."""
        return b"".join(value for _, _, value in self.rows(node))

    def snapshot(self, node: int) -> Any:
        """All that a request could change: state, timers, other partitions, and every byte of the disk."""
        broker = self.brokers[node]
        states = {key: each.state() for key, each in sorted(broker.partitions.items())}
        timers = [(key, broker._runtime.timers.get(key)) for key in broker.timers()]
        return states, timers, broker.controller_epoch, dict(broker.metadata), contents(self.disks[node])


def contents(files: SimulatedFiles, folder: str = "") -> dict[str, bytes]:
    """Every file's bytes, by path."""
    found: dict[str, bytes] = {}
    for name in files.list(folder):
        path = f"{folder}/{name}" if folder else name
        try:
            found.update(contents(files, path))
        except NotADirectoryError:
            file = files.open(path)
            found[path] = file.pread(0, file.size)
    return found
