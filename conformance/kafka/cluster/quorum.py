"""A quorum of three real controllers, and what they print: of two that are killed, and of one that comes late.

There are no brokers: the controllers write a record of their own now and then, and a snapshot every few of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self

from ....traces.jvm import java_binary
from ....traces.kafka.cluster import Node, RecordingError, free_port, wait_until
from ....traces.kafka.maven import fetch_kafka
from ....traces.kafka.server_log.lines import logger_options
from ....traces.kafka.server_log.quorum_lines import QUORUM_LOGGERS
from ..jars import RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

VOTERS: Final = (1, 2, 3)
_CLUSTER: Final = "RmVuY2Vwb3N0R2F0ZWQ"
_SETTINGS: Final = {
    "process.roles": "controller",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
    "metadata.max.idle.interval.ms": 1500,
    "metadata.log.max.record.bytes.between.snapshots": 600,
}
_CLEANED: Final = {"metadata.max.retention.bytes": 1}
"""A log begins at the end of its latest snapshot, at the next look that its node takes at it."""
_LOOKS: Final = 60.0
"""Seconds between two looks (``KafkaRaftClient``, ``RaftMetadataLogCleanerManager``)."""


_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


class Controllers:
    """Three real controllers in a new folder, none of which is started; a context manager that leaves no process.

    ``settings``: of their configuration, beside those of all. Raises RecordingError where they cannot be formatted, and
    BadInput where Maven, the release or a JVM is out of reach.
    """

    def __init__(self, home: Path, release: str = RELEASE, settings: Mapping[str, object] = _NOTHING) -> None:
        jars, java = fetch_kafka(release), str(java_binary())
        home.mkdir(parents=True)
        self.nodes = {id_: Node(id_, home / f"controller-{id_}", home / f"controller-{id_}.log") for id_ in VOTERS}
        for node in self.nodes.values():
            node.port = free_port()
        voters = ",".join(f"{id_}@127.0.0.1:{node.port}" for id_, node in self.nodes.items())
        wrapper = shutil.which("setpriv")
        prefix = [wrapper, "--pdeathsig", "KILL", "--"] if wrapper else []
        options = ["-XX:TieredStopAtLevel=1", "-Xmx256m", *logger_options(QUORUM_LOGGERS)]
        simple = "-Dorg.slf4j.simpleLogger"
        options += [f"{simple}.showDateTime=true", f"{simple}.dateTimeFormat=HH:mm:ss.SSS", f"-Dkafka.logs.dir={home}"]
        self._begin = [*prefix, java, *options, "-cp", jars.classpath]
        for node in self.nodes.values():
            self._format(node, {**_SETTINGS, **settings, "controller.quorum.voters": voters})

    def _format(self, node: Node, settings: Mapping[str, object]) -> None:
        own = {
            **settings,
            "node.id": node.node_id,
            "listeners": f"CONTROLLER://127.0.0.1:{node.port}",
            "log.dirs": node.directory,
        }
        node.config.write_text("".join(f"{name}={value}\n" for name, value in own.items()), encoding="utf-8")
        words = ["kafka.tools.StorageTool", "format", "--config", str(node.config), "--cluster-id", _CLUSTER]
        done = subprocess.run([*self._begin, *words], capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
        if done.returncode:
            raise RecordingError(f"StorageTool could not format {node.name}: {done.stderr[-200:]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            node.kill()

    def start(self, *nodes: Node) -> None:
        """Start some, or all."""
        for node in nodes or self.nodes.values():
            node.spawn([*self._begin, "kafka.Kafka", str(node.config)], {"PATH": os.environ.get("PATH", "")})

    def leader(self, *but: Node) -> Node | None:
        """Who leads, as far as it has printed, and runs."""
        for node in self.nodes.values():
            if node not in but and node.running and node.log.exists():
                told = re.findall(r"Completed transition to (\w+)", node.log.read_text(errors="replace"))
                if told and told[-1] == "Leader":
                    return node
        return None

    def wait_led(self, *but: Node) -> Node:
        """Wait until somebody leads, of whom not these. Raises RecordingError."""
        wait_until("somebody to lead", lambda: self.leader(*but) is not None)
        found = self.leader(*but)
        assert found is not None
        return found


def record_quorum(home: Path, *, say: Callable[[str], None] = print, release: str = RELEASE) -> list[Path]:
    """Run the story in a new folder; gives what the nodes have printed.

    Raises RecordingError where they do something else, and BadInput where Maven, the release or a JVM is out of reach.
    """
    with Controllers(home, release) as quorum:
        quorum.start()
        first = quorum.wait_led()
        say(f"node {first.node_id} leads")
        time.sleep(6)
        other = next(node for node in quorum.nodes.values() if node is not first)
        other.kill()
        say(f"node {other.node_id}, which follows, is killed, and started again")
        time.sleep(4)
        quorum.start(other)
        time.sleep(8)
        first = quorum.leader() or first
        first.kill()
        say(f"node {first.node_id}, which leads, is killed")
        quorum.wait_led(first)
        time.sleep(4)
        quorum.start(first)
        say("it is started again")
        time.sleep(9)
    return [node.log for node in quorum.nodes.values()]


def record_late_voter(home: Path, *, say: Callable[[str], None] = print, release: str = RELEASE) -> list[Path]:
    """Two of three voters write records and snapshots, and clean their logs; the third starts then, and fetches one.

    It is killed and started again. Gives what the nodes have printed; raises like ``record_quorum``.
    """
    with Controllers(home, release, _CLEANED) as quorum:
        *two, late = quorum.nodes.values()
        quorum.start(*two)
        leader = quorum.wait_led()
        say(f"node {leader.node_id} leads; node {late.node_id} has not been started")
        wait_until("a log to begin later", lambda: _says(leader, "Incremented log start offset"), seconds=2 * _LOOKS)
        quorum.start(late)
        wait_until("the snapshot", lambda: _says(late, "Fully truncated the log"))
        say(f"node {late.node_id} has fetched a snapshot")
        time.sleep(4)
        late.kill()
        say("it is killed, and started again")
        quorum.start(late)
        time.sleep(6)
    return [node.log for node in quorum.nodes.values()]


def _says(node: Node, words: str) -> bool:
    return node.log.exists() and words in node.log.read_text(errors="replace")
