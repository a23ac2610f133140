"""A cluster of real processes on loopback: three brokers and one coordinator, each a JVM of its own.

The coordinator (`Deployment`: a KRaft controller, or ZooKeeper) is a process apart, so that any broker can be killed
and the cluster still elects. Every process leads a process group, is killed with the `Cluster`, and, where ``setpriv``
is there, dies with this one even if that is killed with SIGKILL. No port is fixed: a broker takes a free one at each
start, which Kafka allows since clients and the controller learn addresses from the metadata.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Self

from ...model.core.errors import FencepostError
from .deployment import COORDINATOR_ID, Deployment, KRaft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from .maven import KafkaJars

CONTROLLER_ID = COORDINATOR_ID
BROKER_IDS = (1, 2, 3)

#: How a node's data directory is named, in a run and in a corpus.
NODE_NAMES = {CONTROLLER_ID: f"controller-{CONTROLLER_ID}", **{id_: f"broker-{id_}" for id_ in BROKER_IDS}}

# Small and quick to start: these JVMs live for a minute and share two cores.
_JAVA_OPTIONS = (
    "-Xmx192m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)  # fmt: skip

# Settings of every broker. It flushes its checkpoints often (Kafka's default is 5 s, and 60 s for log starts), so that
# a copy taken in between has them fresh.
_BROKER: Mapping[str, object] = {
    "inter.broker.listener.name": "BROKER",
    "auto.create.topics.enable": False,
    "auto.leader.rebalance.enable": False,
    "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
    "log.flush.start.offset.checkpoint.interval.ms": 100,
    "log.flush.offset.checkpoint.interval.ms": 1000,
    "log.initial.task.delay.ms": 500,
    "log.retention.check.interval.ms": 500,
    "log.segment.delete.delay.ms": 0,
    "num.io.threads": 2,
    "num.network.threads": 2,
    "offsets.topic.num.partitions": 1,
    "replica.fetch.wait.max.ms": 200,
    "replica.high.watermark.checkpoint.interval.ms": 100,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 3,
}


class RecordingError(FencepostError):
    """The cluster did not do what the recording needs: which step, and what was waited for."""


def wait_until(what: str, holds: Callable[[], bool], seconds: float = 60.0, pause: float = 0.1) -> None:
    """Poll `holds` every `pause` seconds. Raises `RecordingError` naming `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise RecordingError(f"waited {seconds:g} s in vain for: {what}")
        time.sleep(pause)


def free_port() -> int:
    """A TCP port that nothing on loopback listens at just now.

    It is below the range from which Linux takes the ports of outgoing connections (32768 and up), so that none takes
    it before the node listens there. Raises `RecordingError` when a hundred tries find none.
    """
    for _ in range(100):
        port = 20000 + secrets.randbelow(12000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RecordingError("found no free TCP port on 127.0.0.1 between 20000 and 32000")


class Node:
    """One Kafka process: the broker or controller `node_id`, its data directory and its state."""

    def __init__(self, node_id: int, directory: Path, log: Path) -> None:
        self.node_id = node_id
        self.name = directory.name
        self.directory = directory  #: its ``log.dirs``
        self.log = log  #: what the process printed
        self.config = directory.parent / f"{self.name}.properties"
        self.port = 0
        self.paused = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the process lives, paused or not."""
        return self._process is not None and self._process.poll() is None

    def spawn(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start `command` in a process group of its own, its output appended to `log`."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own JVM with our own configuration
                list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True, env=dict(environment),
            )  # fmt: skip
        self.paused = False

    def signal(self, number: signal.Signals) -> None:
        """Send `number` to the whole process group, if it is there."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def stop(self, seconds: float = 60.0) -> None:
        """SIGTERM: the process shuts down in order. It is killed if it takes longer than `seconds`."""
        self.signal(signal.SIGTERM)
        if self._process is not None:
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """SIGKILL: the process has no say, writes nothing more, and is gone when this returns."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        self.paused = False

    def pause(self) -> None:
        """SIGSTOP, until `resume`: sockets stay open, nothing answers."""
        self.signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """SIGCONT."""
        self.signal(signal.SIGCONT)
        self.paused = False

    def last_words(self, lines: int = 5) -> str:
        """The end of what the process printed, on one line, for an error's text."""
        text = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return " | ".join(line.strip() for line in text[-lines:]) or "(nothing printed)"


class Cluster:
    """Three brokers and one coordinator in `home`; a context manager that leaves no process behind."""

    def __init__(
        self,
        jars: KafkaJars,
        java: Path,
        home: Path,
        cluster_id: str,
        settings: Mapping[str, object] | None = None,
        controller_settings: Mapping[str, object] | None = None,
        fronts: Mapping[int, int] | None = None,
        options: Sequence[str] = (),
        deployment: Deployment | None = None,
    ) -> None:
        """``settings``: what the brokers are told beside the usual; ``{home}`` in a value is `home`.

        ``fronts``: by node id, the port at which others are to reach it, where that is not its own. ``options``: what
        the JVMs are told beside the usual. ``deployment``: KRaft with a dynamic quorum, if None.
        """
        self.deployment = KRaft() if deployment is None else deployment
        self.jars = jars
        self.home = home
        self._settings = {
            name: value.replace("{home}", str(home)) if isinstance(value, str) else value
            for name, value in (settings or {}).items()
        }
        self._controller_settings = dict(controller_settings or {})
        self._fronts = dict(fronts or {})
        self._options = (*_JAVA_OPTIONS, *self.deployment.options, *options)
        self.java = java
        self.cluster_id = cluster_id
        self.nodes: dict[int, Node] = {}
        for node_id, name in {**NODE_NAMES, CONTROLLER_ID: self.deployment.coordinator}.items():
            (home / name).mkdir(parents=True)
            self.nodes[node_id] = Node(node_id, home / name, home / f"{name}.out")
        wrapper = shutil.which("setpriv")
        self._prefix = [wrapper, "--pdeathsig", "KILL", "--"] if wrapper else []

    def __enter__(self) -> Self:
        atexit.register(self.close)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill every node that lives. Safe to call twice."""
        for node in self.nodes.values():
            node.kill()
        atexit.unregister(self.close)

    @property
    def live_brokers(self) -> list[Node]:
        """The brokers whose process runs and is not paused, by id."""
        return [self.nodes[id_] for id_ in BROKER_IDS if self.nodes[id_].running and not self.nodes[id_].paused]

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers`` of the live brokers."""
        return ",".join(self.address(broker.node_id) for broker in self.live_brokers)

    def address(self, node_id: int) -> str:
        """``HOST:PORT`` at which others reach a node."""
        return f"127.0.0.1:{self._fronts.get(node_id, self.nodes[node_id].port)}"

    def format(self) -> None:
        """Choose the coordinator's port, and format every node's directory if the deployment needs it."""
        self.nodes[CONTROLLER_ID].port = free_port()
        # All at once: each of them waits more than it works.
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            for _ in pool.map(self._format, self.nodes.values()):
                pass

    def _format(self, node: Node) -> None:
        self._write_config(node)
        more = self.deployment.format(node.node_id)
        if more is None:
            return
        arguments = ["format", "--config", str(node.config), "--cluster-id", self.cluster_id, *more]
        done = subprocess.run(  # noqa: S603 - our own JVM with our own configuration
            [*self._prefix, *self._command(node), "kafka.tools.StorageTool", *arguments],
            capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
            env=self._environment(),
        )  # fmt: skip
        if done.returncode != 0:
            said = " | ".join((done.stdout + done.stderr).split("\n")[-5:])
            raise RecordingError(f"StorageTool could not format {node.name}: {said}")

    def start(self, *node_ids: int, seconds: float = 90.0) -> None:
        """Start nodes, and wait until each says that it has started. Raises `RecordingError` if one does not."""
        nodes = [self.nodes[id_] for id_ in node_ids]
        marks = {}
        for node in nodes:
            if node.node_id != CONTROLLER_ID:
                node.port = free_port()
                self._write_config(node)
            marks[node.node_id] = node.log.stat().st_size if node.log.exists() else 0
            main = self.deployment.main(node.node_id)
            node.spawn([*self._prefix, *self._command(node), main, str(node.config)], self._environment())

        def started(node: Node) -> bool:
            if not node.running:
                raise RecordingError(f"{node.name} ended while it started: {node.last_words()}")
            with node.log.open("rb") as output:
                output.seek(marks[node.node_id])
                return self.deployment.has_started(node.node_id, output.read(), node.port)

        for node in nodes:
            wait_until(f"{node.name} to start", partial(started, node), seconds)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Every process stopped with SIGSTOP, so that what is on disk is one instant of the whole cluster."""
        awake = [node for node in self.nodes.values() if node.running and not node.paused]
        for node in awake:
            node.pause()
        try:
            yield
        finally:
            for node in awake:
                node.resume()

    def _command(self, node: Node) -> list[str]:
        return [str(self.java), *self._options, f"-Dkafka.logs.dir={self.logs(node)}", "-cp", self.jars.classpath]

    def logs(self, node: Node) -> Path:
        """Where a node writes its log files, if its log4j configuration has any."""
        return self.home / "logs" / node.name

    def _environment(self) -> dict[str, str]:
        # A person's CLASSPATH or JVM options must not reach the cluster: the corpus would depend on them.
        dropped = {"CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}
        return {name: value for name, value in os.environ.items() if name not in dropped}

    def _write_config(self, node: Node) -> None:
        coordinator = self.address(CONTROLLER_ID)
        if node.node_id == CONTROLLER_ID:
            own = {**self.deployment.controller(coordinator, node.directory), **self._controller_settings}
            if node.node_id in self._fronts:
                listens = f"CONTROLLER://127.0.0.1:{node.port}"
                own |= {"advertised.listeners": own["listeners"], "listeners": listens}
        else:
            own = {**self.deployment.broker(node.node_id, coordinator), **_BROKER, **self._settings}
            own |= {"log.dirs": node.directory, "listeners": f"BROKER://127.0.0.1:{node.port}"}
            if node.node_id in self._fronts:
                own["advertised.listeners"] = f"BROKER://{self.address(node.node_id)}"
        lines = (f"{k}={str(v).lower() if isinstance(v, bool) else v}\n" for k, v in own.items())
        node.config.write_text("".join(lines), encoding="utf-8")
