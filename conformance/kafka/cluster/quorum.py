"""A quorum of three real controllers, of which a follower and then the leader is killed, and what they print of it.

There are no brokers: the controllers write a record of their own now and then, and a snapshot every few of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from ....traces.jvm import java_binary
from ....traces.kafka.cluster import Node, RecordingError, free_port, wait_until
from ....traces.kafka.maven import fetch_kafka
from ....traces.kafka.server_log.lines import logger_options
from ....traces.kafka.server_log.quorum_lines import QUORUM_LOGGERS
from ..jars import RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable
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


def record_quorum(home: Path, *, say: Callable[[str], None] = print, release: str = RELEASE) -> list[Path]:
    """Run the story in a new folder; gives what the nodes have printed.

    Raises RecordingError where they do something else, and BadInput where Maven, the release or a JVM is out of reach.
    """
    jars, java = fetch_kafka(release), str(java_binary())
    home.mkdir(parents=True)
    nodes = {id_: Node(id_, home / f"controller-{id_}", home / f"controller-{id_}.log") for id_ in VOTERS}
    for node in nodes.values():
        node.port = free_port()
    voters = ",".join(f"{id_}@127.0.0.1:{node.port}" for id_, node in nodes.items())
    wrapper = shutil.which("setpriv")
    prefix = [wrapper, "--pdeathsig", "KILL", "--"] if wrapper else []
    options = ["-XX:TieredStopAtLevel=1", "-Xmx256m", *logger_options(QUORUM_LOGGERS)]
    simple = "-Dorg.slf4j.simpleLogger"
    options += [f"{simple}.showDateTime=true", f"{simple}.dateTimeFormat=HH:mm:ss.SSS", f"-Dkafka.logs.dir={home}"]
    begin = [*prefix, java, *options, "-cp", jars.classpath]

    def start(node: Node) -> None:
        node.spawn([*begin, "kafka.Kafka", str(node.config)], {"PATH": os.environ.get("PATH", "")})

    def leader(*but: Node) -> Node | None:
        for node in nodes.values():
            if node not in but and node.running and node.log.exists():
                told = re.findall(r"Completed transition to (\w+)", node.log.read_text(errors="replace"))
                if told and told[-1] == "Leader":
                    return node
        return None

    with ExitStack() as stack:
        for node in nodes.values():
            own = {
                **_SETTINGS,
                "node.id": node.node_id,
                "controller.quorum.voters": voters,
                "listeners": f"CONTROLLER://127.0.0.1:{node.port}",
                "log.dirs": node.directory,
            }
            node.config.write_text("".join(f"{name}={value}\n" for name, value in own.items()), encoding="utf-8")
            words = ["kafka.tools.StorageTool", "format", "--config", str(node.config), "--cluster-id", _CLUSTER]
            done = subprocess.run([*begin, *words], capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
            if done.returncode:
                raise RecordingError(f"StorageTool could not format {node.name}: {done.stderr[-200:]}")
        for node in nodes.values():
            stack.callback(node.kill)
            start(node)
        wait_until("somebody to lead", lambda: leader() is not None)
        first = leader()
        assert first is not None
        say(f"node {first.node_id} leads")
        time.sleep(6)
        other = next(node for node in nodes.values() if node is not first)
        other.kill()
        say(f"node {other.node_id}, which follows, is killed, and started again")
        time.sleep(4)
        start(other)
        time.sleep(8)
        first = leader() or first
        first.kill()
        say(f"node {first.node_id}, which leads, is killed")
        wait_until("another to lead", lambda: leader(first) is not None)
        time.sleep(4)
        start(first)
        say("it is started again")
        time.sleep(9)
    return [node.log for node in nodes.values()]
