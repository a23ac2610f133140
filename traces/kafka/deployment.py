"""The ways in which releases of Apache Kafka form a cluster: settings, formatting, main classes, signs of a start.

Three brokers need one coordinator: a KRaft controller, or a ZooKeeper server. `Cluster` runs the processes; a
`Deployment` says what differs between the ways.
"""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

COORDINATOR_ID = 100


class Deployment(Protocol):
    """One way to form a cluster. ``coordinator`` in an argument is the ``HOST:PORT`` of the coordinator."""

    @property
    def coordinator(self) -> str:
        """Name of the coordinator: of its data directory and its output."""

    @property
    def options(self) -> Sequence[str]:
        """Options of every JVM."""

    def broker(self, node_id: int, coordinator: str) -> Mapping[str, object]:
        """A broker's settings, apart from listeners and ``log.dirs``."""

    def controller(self, coordinator: str, directory: Path) -> Mapping[str, object]:
        """The coordinator's settings."""

    def format(self, node_id: int) -> Sequence[str] | None:
        """Arguments of ``StorageTool format`` for a node, beside its configuration and the cluster's id, or None."""

    def main(self, node_id: int) -> str:
        """The class that runs a node; its one argument is the configuration file."""

    def has_started(self, node_id: int, output: bytes, port: int) -> bool:
        """Whether a node that printed `output` since its start serves requests."""


# The controller writes no idle records, so that a metadata log holds only what happened; a dead broker is fenced after
# 6 s and not after 9.
_KRAFT: Mapping[str, object] = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,BROKER:PLAINTEXT",
    "metadata.log.max.record.bytes.between.snapshots": 4000,
    "metadata.max.idle.interval.ms": 0,
    "initial.broker.registration.timeout.ms": 60000,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 6000,
}


class KRaft:
    """An isolated controller (KIP-500). ``dynamic``: its quorum is a dynamic one (KIP-853; since 4.0 here)."""

    coordinator = f"controller-{COORDINATOR_ID}"
    options: ClassVar[Sequence[str]] = ()

    def __init__(self, *, dynamic: bool = True) -> None:
        self._dynamic = dynamic

    def _common(self, node_id: int, coordinator: str) -> Mapping[str, object]:
        quorum = (
            {"controller.quorum.bootstrap.servers": coordinator}
            if self._dynamic
            else {"controller.quorum.voters": f"{COORDINATOR_ID}@{coordinator}"}
        )
        return {**_KRAFT, **quorum, "node.id": node_id}

    def broker(self, node_id: int, coordinator: str) -> Mapping[str, object]:
        """See `Deployment`."""
        return {**self._common(node_id, coordinator), "process.roles": "broker"}

    def controller(self, coordinator: str, directory: Path) -> Mapping[str, object]:
        """See `Deployment`."""
        listeners = f"CONTROLLER://{coordinator}"
        own = {"process.roles": "controller", "log.dirs": directory, "listeners": listeners}
        return {**self._common(COORDINATOR_ID, coordinator), **own}

    def format(self, node_id: int) -> Sequence[str] | None:
        """See `Deployment`."""
        if not self._dynamic:
            return ()
        return ("--standalone",) if node_id == COORDINATOR_ID else ("--no-initial-controllers",)

    def main(self, node_id: int) -> str:
        """See `Deployment`."""
        del node_id
        return "kafka.Kafka"

    def has_started(self, node_id: int, output: bytes, port: int) -> bool:
        """See `Deployment`."""
        del node_id, port
        return b"Kafka Server started" in output


class ZooKeeper:
    """One ZooKeeper server, of the version that the release brings; for releases before 4.0."""

    coordinator = "zookeeper"
    #: No SASL, no JMX beans of log4j (both need classes that Java 17 lacks), and small transaction logs.
    options: ClassVar[Sequence[str]] = (
        "-Dzookeeper.sasl.client=false",
        "-Dzookeeper.jmx.log4j.disable=true",
        "-Dzookeeper.preAllocSize=64",
    )
    _STARTED = re.compile(rb"\[KafkaServer id=\d+\] started|\[Kafka Server \d+\], started")

    def broker(self, node_id: int, coordinator: str) -> Mapping[str, object]:
        """See `Deployment`."""
        return {
            "broker.id": node_id,
            "zookeeper.connect": coordinator,
            "zookeeper.session.timeout.ms": 6000,
            "zookeeper.connection.timeout.ms": 30000,
            "listener.security.protocol.map": "BROKER:PLAINTEXT",
        }

    def controller(self, coordinator: str, directory: Path) -> Mapping[str, object]:
        """See `Deployment`."""
        host, _, port = coordinator.rpartition(":")
        return {
            "dataDir": directory,
            "clientPort": port,
            "clientPortAddress": host,
            "maxClientCnxns": 0,
            "tickTime": 1000,
            "admin.enableServer": False,
        }

    def format(self, node_id: int) -> Sequence[str] | None:
        """See `Deployment`."""
        del node_id
        return None

    def main(self, node_id: int) -> str:
        """See `Deployment`."""
        return "org.apache.zookeeper.server.ZooKeeperServerMain" if node_id == COORDINATOR_ID else "kafka.Kafka"

    def has_started(self, node_id: int, output: bytes, port: int) -> bool:
        """See `Deployment`."""
        if node_id != COORDINATOR_ID:
            return self._STARTED.search(output) is not None
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", port)) == 0
