"""``fencepost record``: a real cluster, polled while it is written to and its leader changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.conformance.kafka.cluster.quorum import Controllers
from fencepost.conformance.kafka.cluster.stage import Stage
from fencepost.model.explore.result import Verdict
from fencepost.traces.kafka.cluster import BROKER_IDS
from fencepost.traces.kafka.polled import Poller
from fencepost.traces.kafka.polled_quorum import TOPIC
from fencepost.traces.kafka.polled_trace import abstracted
from fencepost.traces.read import read_trace
from fencepost.traces.replay import Budget, replay

from .conftest import Fencepost
from .kafka_jvm import needs_kafka

pytestmark = pytest.mark.usefixtures("own_registry")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One cluster for all of these."""
    with needs_kafka():
        made = Stage()
    with made:
        yield made


def servers(stage: Stage) -> list[tuple[str, int]]:
    return [("127.0.0.1", int(stage.cluster.address(broker).rpartition(":")[2])) for broker in BROKER_IDS]


@pytest.mark.kafka
@pytest.mark.parametrize("directories", [False, True], ids=["over the wire", "with directories"])
def test_a_change_of_leader_is_seen_and_explained(stage: Stage, directories: bool) -> None:
    topic = f"polled-{int(directories)}"
    stage.new_topic(topic, (1, 2), 2)
    folders = [stage.cluster.nodes[broker].directory for broker in BROKER_IDS] if directories else []
    with Poller(servers(stage), topic, 0, folders) as poller:
        poller.poll()
        stop = threading.Event()
        # As fast as it goes: of a busy machine more steps are missed.
        polling = threading.Thread(target=lambda: [poller.poll() for _ in iter(stop.is_set, True)], daemon=True)
        polling.start()
        with stage.clients.lone_producer(stage.cluster.address(1), "before") as producer:
            producer.warm_up(topic)
            assert producer.send(topic, "a").offset() == 0
        stage.elect(topic, (2, 1), by=3)
        stage.wait_heard(2, topic, 1)
        with stage.clients.lone_producer(stage.cluster.address(2), "after") as producer:
            producer.warm_up(topic)
            assert producer.send(topic, "b").offset() == 1
        time.sleep(1)
        stop.set()
        polling.join()
    looks = poller.polled.looks
    assert poller.polled.replicas == (1, 2) and poller.polled.failures == 0
    led = [(each.broker, each.epoch) for each in looks if each.leads]
    assert led[0] == (1, 0) and led[-1] == (2, 1)
    assert {each.broker for each in looks if each.high_watermark == 2} == {1, 2}
    last = [each for each in looks if each.of == "end"][-1]
    assert (last.broker, last.end, last.starts) == (2, 2, ((0, 0), (1, 1)))
    read = {each.broker: (each.end, each.starts) for each in looks if each.of == "directory"}
    assert read == (dict.fromkeys((1, 2), (2, ((0, 0), (1, 1)))) if directories else {})
    trace = abstracted(poller.polled, "kip-320-kafka").trace
    found = replay(trace, budget=Budget(max_skipped=8, max_frontier=1_000_000))
    assert found.verdict is Verdict.HOLDS, found.reason
    assert found.skipped > 6


@pytest.mark.kafka
def test_the_command_writes_what_replay_and_ingest_take(stage: Stage, fencepost: Fencepost, tmp_path: Path) -> None:
    stage.new_topic("idle", (1, 2), 2)
    bootstrap = ",".join(f"{host}:{port}" for host, port in servers(stage))
    options = ("--bootstrap", bootstrap, "--topic", "idle", "--every", "50ms", "--for", "1s")
    told = fencepost("record", *options, "--out", tmp_path / "idle.jsonl", "--json")
    assert told.code == 0 and told.json["variant"] == "kip-320-kafka" and told.json["complete"] is False
    trace = read_trace(tmp_path / "idle.jsonl")
    assert len(trace.events) == told.json["events"] >= 4
    assert fencepost("replay", tmp_path / "idle.jsonl", "--max-skipped", "4").code == 0
    assert fencepost("ingest", tmp_path / "idle.jsonl", "--out", tmp_path / "corpus", "--master", "serial").code == 0
    said = fencepost("record", "--bootstrap", bootstrap, "--topic", "none", "--out", tmp_path / "none.jsonl")
    assert "there is no partition 0 of topic 'none'" in said.complaint and not (tmp_path / "none.jsonl").exists()


@pytest.mark.kafka
@pytest.mark.nightly(seconds=40)
def test_of_a_quorum_whose_leader_is_killed_what_it_shows_is_explained(fencepost: Fencepost, tmp_path: Path) -> None:
    """Of the data directory of one node, too."""
    with needs_kafka():
        made = Controllers(tmp_path / "run")
    with made as quorum:
        quorum.start()
        first = quorum.wait_led()
        time.sleep(3)
        servers = {node: f"127.0.0.1:{node.port}" for node in quorum.nodes.values()}
        follower = next(node for node in servers if node is not first)
        asked = ("--topic", TOPIC, "--every", "50ms", "--for", "10s", "--out", tmp_path / "quorum.jsonl")
        alone = fencepost("record", "--bootstrap", servers[follower], *asked)
        assert "none of them leads the quorum; name a broker that runs, or all controllers" in alone.complaint
        killing = threading.Timer(3, first.kill)
        killing.start()
        everybody = ",".join(servers.values())
        told = fencepost("record", "--bootstrap", everybody, *asked, "--data", follower.directory, "--json")
        killing.join()
    assert told.code == 0 and told.json["source"]["brokers"] == {"0": 1, "1": 2, "2": 3}
    trace = read_trace(tmp_path / "quorum.jsonl")
    led = {event.source["broker"] for event in trace.events if event.source["asked"] == "quorum"}
    assert len(led) == 2 and {event.source["asked"] for event in trace.events} == {"quorum", "directory", "state file"}
    place = "fencepost.model.protocols.snapshots.kafka_spec:printed"
    budget = ("--max-skipped", "14", "--max-frontier", "1000000")
    found = fencepost("replay", tmp_path / "quorum.jsonl", "--protocol", place, *budget)
    assert found.code == 0 and "every invariant holds on the way" in found.out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--bootstrap", "localhost"), "'localhost' is no server; write HOST:PORT,HOST:PORT"),
        (("--bootstrap", "127.0.0.1:1"), "127.0.0.1:1: Connection refused; name brokers that run"),
        (("--bootstrap", "127.0.0.1:1", "--variant", "kip-1"), "kip-1"),
    ],
    ids=["no port", "nobody there", "no variant"],
)
def test_bad_input_is_one_line(fencepost: Fencepost, tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    assert says in fencepost("record", *options, "--topic", "t", "--out", tmp_path / "t.jsonl").complaint


def test_the_metadata_log_has_one_partition(fencepost: Fencepost, tmp_path: Path) -> None:
    asked = ("--bootstrap", "127.0.0.1:1", "--topic", TOPIC, "--partition", "3", "--out", tmp_path / "t.jsonl")
    assert fencepost("record", *asked).complaint.endswith(
        "--partition 3: the metadata log has partition 0 alone; leave it out"
    )
