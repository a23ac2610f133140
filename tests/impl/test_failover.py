"""The real controller and real brokers on one bad network: brokers crash, come back, and all agree again."""

from __future__ import annotations

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.net import Faults, SimulatedNetwork
from fencepost.impl.replica.broker import Broker
from fencepost.impl.replica.config import BrokerConfig
from fencepost.impl.wire.messages import CONTROLLER, NO_LEADER, TopicPartition
from fencepost.impl.zk_controller import Controller

TP = TopicPartition("t", 0)
CONFIG = BrokerConfig(
    isr_interval_ms=500, replica_lag_time_max_ms=1000, replica_fetch_backoff_ms=100, request_timeout_ms=500
)


class Cluster:
    """Three brokers and a controller, each with a disk of its own."""

    def __init__(self, seed: int) -> None:
        self.net = SimulatedNetwork(seed, faults=Faults((1, 30), loss=0.05, duplication=0.05))
        self.disks = {address: SimulatedFiles(seed + address) for address in (CONTROLLER, 0, 1, 2)}
        self.incarnations = [0, 0, 0]
        self.brokers: dict[int, Broker] = {}
        self.start_controller()
        for broker in range(3):
            self.start(broker)
        self.controller.create_partition(TP, (0, 1, 2))

    def start_controller(self) -> None:
        self.controller = Controller(self.net, self.net.clock.at(CONTROLLER), self.disks[CONTROLLER])
        self.net.attach(self.controller)

    def start(self, broker: int) -> None:
        self.incarnations[broker] += 1
        incarnation = self.incarnations[broker]
        self.brokers[broker] = Broker(
            broker,
            self.disks[broker],
            self.net,
            self.net.clock.at(broker),
            CONFIG,
            first_correlation=incarnation << 32,
        )
        self.net.attach(self.brokers[broker])
        self.controller.broker_started(broker, incarnation)

    def crash(self, address: int, seed: int) -> None:
        self.net.detach(address)
        self.disks[address].crash(seed)

    def settle(self) -> None:
        """Time enough for every request to be sent again, and for followers to be back in the ISR."""
        self.net.run(until=self.net.clock.now() + 6000)
        state = self.controller.partition(TP)
        assert state.leader != NO_LEADER and state.isr == {0, 1, 2} and state.offline == frozenset()
        for broker in self.brokers.values():
            seen = broker.partitions[TP].state()
            assert (seen.leader, seen.leader_epoch) == (state.leader, state.leader_epoch)
            assert broker.metadata[TP].leader == state.leader
        assert self.brokers[state.leader].partitions[TP].state().isr == state.isr


@pytest.mark.parametrize("noticed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_after_each_crash_brokers_and_controller_agree_again(seed: int, noticed: bool) -> None:
    """Fails where the controller sends nothing again, and where a broker that bounced is told to lead its old epoch."""
    cluster = Cluster(seed)
    cluster.settle()
    epochs = []
    for round_ in range(4):
        victim = cluster.controller.partition(TP).leader if round_ % 2 else round_ % 3
        epochs.append(cluster.controller.partition(TP).leader_epoch)
        cluster.crash(victim, seed + round_)
        if noticed:
            cluster.controller.mark_offline(victim)
        cluster.net.run(until=cluster.net.clock.now() + 1500)
        cluster.start(victim)
        cluster.settle()
    assert epochs == sorted(epochs) and epochs[-1] >= 2


def test_a_controller_that_crashed_goes_on_where_it_was() -> None:
    cluster = Cluster(7)
    cluster.settle()
    before = cluster.controller.partition(TP)
    cluster.crash(CONTROLLER, 7)
    cluster.net.run(until=cluster.net.clock.now() + 3000)
    cluster.start_controller()
    assert cluster.controller.partition(TP) == before
    cluster.settle()
    assert {broker.controller_epoch for broker in cluster.brokers.values()} == {2}
