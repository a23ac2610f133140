"""A rack: three real brokers, the real controller and a network, and the power that may fail at any operation on files.

Everything of ``impl`` that is run comes from ``Parts``, so that a patched copy can be put in its place.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.impl.files import Files, SimulatedFiles
from fencepost.impl.net import Faults, SimulatedNetwork
from fencepost.impl.wire.messages import CONTROLLER, NO_LEADER, TopicPartition

from .brokers import TP

NODES = (0, 1, 2)
COORDINATOR = 0
"""The broker that keeps the groups' offsets."""
CHANGES = frozenset(("append", "truncate", "fsync", "rename", "remove", "fsync_dir", "make_dir"))
"""The operations that change what a crash leaves. One before any other leaves what it would after the last of these."""
SETTINGS: dict[str, Any] = {
    "replica_lag_time_max_ms": 200,
    "isr_interval_ms": 60,
    "replica_fetch_wait_ms": 10,
    "replica_fetch_backoff_ms": 20,
    "request_timeout_ms": 60,
    "high_watermark_interval_ms": 150,
    "recovery_point_interval_ms": 400,
}
SEGMENT_BYTES = 2000

Row = tuple[int, bytes]
"""Leader epoch and value of a record."""


class PowerLoss(BaseException):
    """The machines that go down now. No part of ``impl`` may catch it, so it is no ``Exception``."""

    def __init__(self, nodes: Sequence[int]) -> None:
        super().__init__(nodes)
        self.nodes = nodes


@dataclass(frozen=True)
class Parts:
    """What is run, of ``impl`` or of a patched copy of it."""

    replica: Any
    zk_controller: Any
    log: Any
    offsets: Any
    producer: Any
    consumer: Any

    @staticmethod
    def of(package: str = "fencepost.impl") -> Parts:
        """The parts in a package."""
        return Parts(*(importlib.import_module(f"{package}.{name}") for name in Parts.__dataclass_fields__))


class Rack:
    """Nothing is up before ``start_all``. Disks are in memory but for those that ``disk`` makes, by address."""

    def __init__(
        self,
        seed: int,
        *,
        parts: Parts | None = None,
        faults: Faults | None = None,
        partitions: Sequence[TopicPartition] = (TP,),
        settings: dict[str, Any] | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        disk: Callable[[int], Files] | None = None,
    ) -> None:
        self.parts = parts or Parts.of()
        self.net = SimulatedNetwork(seed, faults=faults or Faults((0, 8), loss=0.02, duplication=0.05))
        self.partitions = partitions
        self.disks: dict[int, Any] = {}
        for address in (CONTROLLER, *NODES):
            if disk is None:
                self.disks[address] = SimulatedFiles(seed * 100 + address % 100, hook=self._hook(address))
            else:
                self.disks[address] = disk(address)
        replica = self.parts.replica
        log = self.parts.log.LogConfig(segment_bytes=segment_bytes)
        self.config = replica.BrokerConfig(log=log, **{**SETTINGS, **(settings or {})})
        self.controller: Any = None
        self.brokers: dict[int, Any] = {}
        """Those that are up."""
        self.lives = dict.fromkeys((CONTROLLER, *NODES), 0)
        self.unregistered: set[int] = set()
        """Brokers that are up and that no controller has been told of."""
        self.fuse: dict[int, int] = {}
        """After how many more changes of files a machine's power fails."""
        self.falls: dict[int, Sequence[int]] = {}
        """Which machines go down with it."""
        self.looking = False
        """Whether it is the test that reads files."""
        self.operations = 0
        self.last_operation = ""

    # -- power ------------------------------------------------------------------------------------------------------

    def _hook(self, address: int) -> Callable[[str, str], None]:
        def hook(operation: str, path: str) -> None:
            if self.looking or operation not in CHANGES:
                return
            self.operations += 1
            if address not in self.fuse:
                return
            self.fuse[address] -= 1
            if self.fuse[address] <= 0:
                self.last_operation = f"{operation} {path} at {address}"
                del self.fuse[address]
                raise PowerLoss(self.falls.pop(address))

        return hook

    def arm(self, address: int, changes: int, falls: Sequence[int]) -> None:
        """Let the power of ``falls`` fail before this machine's next change of files but ``changes - 1``."""
        self.fuse[address] = changes
        self.falls[address] = falls

    def disarm(self) -> None:
        """Let no power fail."""
        self.fuse.clear()
        self.falls.clear()

    def stop(self, address: int) -> None:
        """The process is gone; its disk is left as it is."""
        if self.net.is_up(address):
            self.net.detach(address)
        self.brokers.pop(address, None)
        self.unregistered.discard(address)
        if address == CONTROLLER:
            self.controller = None

    def crash(self, address: int, seed: int) -> None:
        """The machine is down, and what was not synced survives as the seed has it."""
        self.stop(address)
        self.disks[address].crash(seed)

    # -- starting ---------------------------------------------------------------------------------------------------

    def start_all(self) -> None:
        """Start everything and create the partitions."""
        self.start(CONTROLLER)
        for node in NODES:
            self.start(node)
        self.register()
        for place, partition in enumerate(self.partitions):
            self.controller.create_partition(partition, NODES[place % 3 :] + NODES[: place % 3])

    def start(self, address: int) -> None:
        """Start the controller, or a broker, which is still to register then."""
        net = self.net
        clock = net.clock.at(address)
        self.lives[address] += 1
        if address == CONTROLLER:
            self.controller = self.parts.zk_controller.Controller(net, clock, self.disks[address], retry=50)
            net.attach(self.controller)
        else:
            first = self.lives[address] << 32
            broker = self.parts.replica.Broker(
                address, self.disks[address], net, clock, self.config, first_correlation=first
            )
            if address == COORDINATOR:
                self.parts.offsets.coordinate(broker, clock)
            net.attach(broker)
            self.brokers[address] = broker
            self.unregistered.add(address)

    def register(self) -> None:
        """Let brokers that are up register, where there is a controller."""
        for node in sorted(self.unregistered):
            if self.controller is not None:
                self.controller.broker_started(node, self.lives[node])
                self.unregistered.discard(node)

    # -- looking ----------------------------------------------------------------------------------------------------

    def rows(self, node: int, partition: TopicPartition, start: int = 0, end: int | None = None) -> list[Row]:
        """Epoch and value of a replica's records from ``start`` on."""
        log = self.brokers[node].partitions[partition].log
        self.looking = True
        try:
            return [(record.leader_epoch, record.value or b"") for record in log.records(start, end)]
        finally:
            self.looking = False

    def leader(self, partition: TopicPartition) -> Any:
        """The replica that leads by the controller's word and by its own; ``None`` where there is none."""
        if self.controller is None:
            return None
        state = self.controller.partition(partition)
        broker = self.brokers.get(state.leader)
        there = None if broker is None else broker.partitions.get(partition)
        if there is None or there.leader is None or there.leader_epoch != state.leader_epoch:
            return None
        return there

    def whole(self) -> bool:
        """Whether all is as it should be: everyone is up and in every ISR, and knows it."""
        if self.controller is None or set(self.brokers) != set(NODES) or self.unregistered:
            return False
        for partition in self.partitions:
            state = self.controller.partition(partition)
            leader = self.leader(partition)
            if state.leader == NO_LEADER or state.isr != set(NODES) or state.offline or leader is None:
                return False
            if leader.leader.isr.members != state.isr or leader.leader.isr.maximal != state.isr:
                return False
        return True

    def failures(self) -> list[str]:
        """What has gone offline, and why."""
        found = [
            f"broker {node}, {partition}: {there.failure}"
            for node, broker in sorted(self.brokers.items())
            for partition, there in sorted(broker.partitions.items())
            if there.failure is not None
        ]
        if self.controller is not None and self.controller.stopped is not None:
            found.append(f"controller: {self.controller.stopped}")
        return found
