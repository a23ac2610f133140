"""Brokers, the controller and a bad network, all by themselves: nothing that was committed is lost or told twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import LogConfig
from fencepost.impl.net import Faults, SimulatedNetwork
from fencepost.impl.replica import Broker, BrokerConfig, Role
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import BROKER_PRINCIPAL, FIRST_CLIENT, Envelope, ProduceRequest, ProduceResponse
from fencepost.impl.zk_controller import Controller

from .brokers import TP, records

CONFIG = BrokerConfig(
    log=LogConfig(segment_bytes=2000),
    replica_lag_time_max_ms=200,
    isr_interval_ms=60,
    replica_fetch_wait_ms=5,
    replica_fetch_backoff_ms=20,
    request_timeout_ms=60,
    high_watermark_interval_ms=150,
    recovery_point_interval_ms=400,
)


@dataclass
class Producer:
    """An idempotent producer with one batch on its way at a time, which it sends until it is acknowledged."""

    network: SimulatedNetwork
    address: int = FIRST_CLIENT
    brokers: int = 3
    limit: int = 1 << 30
    sequence: int = 0
    target: int = 0
    next_at: int = 0
    correlation: int = 0
    acknowledged: dict[int, int] = field(default_factory=dict)
    """Sequence numbers and the offsets that they were said to have."""
    errors: set[ErrorCode] = field(default_factory=set)

    def deadline(self) -> int | None:
        return self.next_at if self.sequence < self.limit else None

    def wake(self) -> None:
        if self.sequence >= self.limit or self.network.clock.now() < self.next_at:
            return
        self.correlation += 1
        data = records(b"%d" % self.sequence, producer_id=1, producer_epoch=0, base_sequence=self.sequence)
        body = ProduceRequest(TP, -1, data)
        self.network.send(Envelope(self.address, self.target, self.correlation, body, BROKER_PRINCIPAL))
        self.next_at = self.network.clock.now() + 100

    def receive(self, envelope: Envelope) -> None:
        body: Any = envelope.body
        if not isinstance(body, ProduceResponse) or envelope.correlation != self.correlation:
            return
        self.correlation += 1  # the network may bring the same answer again
        if body.error is ErrorCode.NONE:
            self.acknowledged[self.sequence] = body.base_offset
            self.sequence += 1
            self.next_at = self.network.clock.now()
        else:
            self.errors.add(body.error)
            if body.error is not ErrorCode.REQUEST_TIMED_OUT:
                self.target = (self.target + 1) % self.brokers
            self.next_at = self.network.clock.now() + 5


class Machines:
    """Three brokers that the controller knows, and what a test does to them."""

    def __init__(self, seed: int) -> None:
        self.network = SimulatedNetwork(seed)
        self.clock = self.network.clock
        self.controller = Controller(self.network, self.clock, SimulatedFiles(seed), retry=40)
        self.network.attach(self.controller)
        self.disks = [SimulatedFiles(seed * 10 + node) for node in range(3)]
        self.starts = [0, 0, 0]
        for node in range(3):
            self.start(node)
        self.controller.create_partition(TP, [0, 1, 2])
        self.producer = Producer(self.network)
        self.network.attach(self.producer)

    def start(self, node: int) -> None:
        self.starts[node] += 1
        broker = Broker(
            node, self.disks[node], self.network, self.clock, CONFIG, first_correlation=self.starts[node] << 32
        )
        self.network.attach(broker)
        self.controller.broker_started(node, self.starts[node])

    def stop(self, node: int, seed: int) -> None:
        self.network.detach(node)
        self.disks[node].crash(seed)

    def broker(self, node: int) -> Broker:
        broker = self.network.endpoint(node)
        assert isinstance(broker, Broker)
        return broker

    def rows(self, node: int) -> list[tuple[int, int, bytes]]:
        log = self.broker(node).partitions[TP].log
        return [(record.offset, record.leader_epoch, record.value or b"") for record in log.records(log.log_start)]

    def committed(self) -> list[tuple[int, int, bytes]]:
        """What any broker that leads counts as committed."""
        found: list[tuple[int, int, bytes]] = []
        for node in range(3):
            if self.network.is_up(node) and TP in self.broker(node).partitions:
                state = self.broker(node).state(TP)
                if state.role is Role.LEADER:
                    found = max(found, self.rows(node)[: state.high_watermark], key=len)
        return found


@pytest.mark.parametrize("seed", range(12))
def test_no_committed_record_is_lost_or_doubled(seed: int) -> None:
    machines = Machines(seed)
    network, controller, producer = machines.network, machines.controller, machines.producer
    chance = network.chance
    committed: list[tuple[int, int, bytes]] = []
    down: set[int] = set()
    for step in range(120):
        network.run(network.clock.now() + 40)
        now = machines.committed()
        shared = min(len(now), len(committed))
        assert now[:shared] == committed[:shared], f"step {step}"
        committed = max(committed, now, key=len)
        move = chance.random()
        if move < 0.3:
            network.faults = Faults((0, chance.choice((1, 5, 30))), chance.choice((0, 0.1)), chance.choice((0, 0.2)))
        elif move < 0.4:
            network.isolate(chance.randrange(3))
        elif move < 0.6:
            network.heal()
        elif move < 0.7 and not down:
            node = chance.randrange(3)
            machines.stop(node, seed * 1000 + step)
            down.add(node)
            if chance.random() < 0.7:
                controller.mark_offline(node)
        elif move < 0.85 and down:
            machines.start(down.pop())
        elif move < 0.9:
            controller.elect_preferred(TP)
    network.heal()
    network.faults = Faults()
    for node in sorted(down):
        machines.start(node)
    producer.limit = producer.sequence + 20
    network.run(lambda: producer.sequence >= producer.limit, budget=200_000)
    network.run(network.clock.now() + 2000)
    assert controller.partition(TP).isr == {0, 1, 2}, "everyone is back"
    everything = machines.rows(0)
    assert machines.rows(1) == machines.rows(2) == everything
    assert everything[: len(committed)] == committed
    assert [value for _, _, value in everything] == [b"%d" % n for n in range(producer.sequence)], "in order, and once"
    assert all(everything[offset][2] == b"%d" % n for n, offset in producer.acknowledged.items())
    assert {machines.broker(node).state(TP).high_watermark for node in range(3)} == {len(everything)}
    allowed = {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert producer.errors <= allowed, producer.errors
