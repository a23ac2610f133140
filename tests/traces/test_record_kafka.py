"""The recorder, on a real cluster. Needs Maven, Kafka's artifacts, a JVM and py4j; takes one to two minutes."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.jvm import java_binary
from fencepost.traces.kafka.capture import MANIFEST, broker_directories, bundled_corpus, file_list, load_manifest
from fencepost.traces.kafka.maven import fetch_kafka
from fencepost.traces.kafka.record import cluster_id, record

pytestmark = pytest.mark.kafka

SEED = 7
# The release of the committed corpus: a cache that has it makes these tests need no network at all.
VERSION = "4.4.0"


def why_not() -> str | None:
    """The reason that nothing can be recorded here, or None."""
    try:
        java_binary()
        fetch_kafka(VERSION, timeout=120)
    except BadInput as missing:
        return str(missing)
    return None


@pytest.fixture(scope="module")
def kafka() -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(f"absent: Apache Kafka: {reason}")


def batches(corpus: Path, stage: str, partition: str) -> list[list[tuple[int, int, bytes]]]:
    """Per broker, (offset, leader epoch, batch) of each batch of the only segment, read straight from the bytes."""
    found = []
    for home in broker_directories(corpus, stage):
        data = (home / partition / "00000000000000000000.log").read_bytes()
        log = []
        while data:
            offset, length, epoch = struct.unpack_from(">qii", data)
            log.append((offset, epoch, data[: 12 + length]))
            data = data[12 + length :]
        found.append(log)
    return found


def epochs(corpus: Path, stage: str, partition: str) -> list[list[int]]:
    return [[epoch for _, epoch, _ in log] for log in batches(corpus, stage, partition)]


def has_the_manifest_of_its_run(recorded: Path) -> None:
    manifest = load_manifest(recorded)
    assert manifest["files"] == file_list(recorded)
    assert (manifest["seed"], manifest["cluster_id"]) == (SEED, cluster_id(SEED))
    assert manifest["kafka"]["version"] == VERSION
    assert sum(entry["bytes"] for entry in manifest["files"]) + (recorded / MANIFEST).stat().st_size < 2_000_000
    # Nothing else is left beside the corpus: no scratch, no run.
    assert [path.name for path in recorded.parent.iterdir()] == [recorded.name]


def has_two_epochs_at_one_offset_after_the_clean_failover(recorded: Path) -> None:
    assert epochs(recorded, "1-steady", "orders-0") == [[0], [0], [0]]
    assert epochs(recorded, "2-leader-killed", "orders-0") == [[0, 0], [0], [0]]
    assert epochs(recorded, "3-clean-failover", "orders-0") == [[0, 0], [0, 1], [0, 1]]
    assert epochs(recorded, "4-old-leader-back", "orders-0") == [[0, 1]] * 3


def lacks_a_committed_record_after_the_unclean_election(recorded: Path) -> None:
    assert epochs(recorded, "5-lone-leader", "payments-0") == [[0], [0, 0], [0]]
    assert epochs(recorded, "6-unclean-election", "payments-0") == [[0], [0, 0], [0, 2]]
    assert epochs(recorded, "7-all-back", "payments-0") == [[0, 2]] * 3
    stage = next(s for s in load_manifest(recorded)["stages"] if s["name"] == "6-unclean-election")
    assert [stage["nodes"][f"broker-{id_}"]["high_watermarks"]["payments-0"] for id_ in (1, 2, 3)] == [1, 2, 2]
    assert stage["partitions"]["payments-0"]["leader"] == 3
    lost = batches(recorded, "6-unclean-election", "payments-0")[1][1][2]
    for log in batches(recorded, "7-all-back", "payments-0"):
        assert lost not in [batch for *_, batch in log]


def has_the_records_of_its_seed_where_the_bundled_one_has_others(recorded: Path) -> None:
    bundled = load_manifest(bundled_corpus())
    mine = load_manifest(recorded)
    places = [(r["topic"], r["offset"], r["acks"], r["codec"], r.get("epoch")) for r in mine["produced"]]
    assert places == [(r["topic"], r["offset"], r["acks"], r["codec"], r.get("epoch")) for r in bundled["produced"]]
    assert [r["value"] for r in mine["produced"]] != [r["value"] for r in bundled["produced"]]


@pytest.mark.nightly(seconds=60)
@pytest.mark.usefixtures("kafka")
def test_a_recording_is_what_the_bundled_one_is_but_for_its_records(tmp_path: Path) -> None:
    """One run for all that is asked of it: it takes half a minute."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    recorded = record(tmp_path / "corpus", seed=SEED, version=VERSION)
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert left == [], "the recorder left processes behind"
    has_the_manifest_of_its_run(recorded)
    has_two_epochs_at_one_offset_after_the_clean_failover(recorded)
    lacks_a_committed_record_after_the_unclean_election(recorded)
    has_the_records_of_its_seed_where_the_bundled_one_has_others(recorded)


def commands_below(pid: int) -> dict[psutil.Process, str]:
    """The living processes that one has started, and their command lines."""
    found = {}
    for process in psutil.Process(pid).children(recursive=True):
        # Whoever ends meanwhile is none.
        with suppress(psutil.NoSuchProcess):
            found[process] = " ".join(process.cmdline())
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_a_recorder_that_is_killed_leaves_no_process(kafka: None, tmp_path: Path, how: signal.Signals) -> None:
    if how == signal.SIGKILL and shutil.which("setpriv") is None:
        pytest.skip(
            "absent: setpriv (util-linux) is not installed: nothing ends the nodes of a recorder killed with SIGKILL"
        )
    command = [sys.executable, "-m", "fencepost.traces.kafka.record", "--version", VERSION, "--out"]
    recorder = subprocess.Popen([*command, str(tmp_path / "out")], stderr=subprocess.DEVNULL)
    try:
        jvms: dict[psutil.Process, str] = {}
        deadline = time.monotonic() + 60
        # Four nodes and the client: the cluster is up or coming up.
        while sum("kafka.Kafka" in command for command in jvms.values()) < 4:
            assert recorder.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
            jvms = commands_below(recorder.pid)
        assert len(jvms) >= 5
        recorder.send_signal(how)
        code = recorder.wait(30)
    finally:
        recorder.kill()
    assert code == (143 if how == signal.SIGTERM else -signal.SIGKILL)
    _, alive = psutil.wait_procs(list(jvms), timeout=10)
    assert alive == []
    assert not (tmp_path / "out").exists()
    if how == signal.SIGTERM:
        assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("scenario", ["compacted", "tiered"])
def test_the_other_scenarios_come_to_what_is_bundled(kafka: None, tmp_path: Path, scenario: str) -> None:
    """Another seed gives other records, and the same logs: which stages, how far cleaned, where a log starts."""
    bundled = load_manifest(bundled_corpus(scenario))
    out = record(tmp_path / "corpus", seed=SEED, version=bundled["kafka"]["version"], scenario=scenario)
    mine = load_manifest(out)
    assert mine["files"] == file_list(out)
    assert [r["value"] for r in mine["produced"]] != [r["value"] for r in bundled["produced"]]
    told = {"compacted": "accounts", "tiered": "archive"}[scenario]
    for ours, theirs in zip(mine["stages"], bundled["stages"], strict=True):
        assert ours["name"] == theirs["name"]
        for node, state in theirs["nodes"].items():
            bounds, again = state.get(told), ours["nodes"][node].get(told)
            # How many records stay depends on the order of keys; how far all is clean, and where logs end, does not.
            shown = 2 if scenario == "compacted" else 3
            assert (bounds or [])[:shown] == (again or [])[:shown]


def hollow_jvm(tmp_path: Path) -> Path:
    """A JAVA_HOME whose java says a version and runs nothing."""
    java = tmp_path / "jvm" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"0\"' >&2\n")
    java.chmod(0o755)
    return tmp_path / "jvm"


def test_a_failed_recording_leaves_no_corpus_and_says_where_its_output_is(kafka: None, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "fencepost.traces.kafka.record", "--version", VERSION, "--out", str(out)]
    environment = {**os.environ, "JAVA_HOME": str(hollow_jvm(tmp_path))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert done.returncode == 3
    error = done.stderr.splitlines()[-1]
    (kept,) = tmp_path.glob("out.failed-*")
    assert "the client's JVM did not start" in error
    assert error.endswith(f"(the nodes' output is in {kept / 'run'})")
    assert (kept / "run" / "client.out").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jvm", kept.name]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"taken": True}, "it exists already; name a new directory with --out"),
        ({"JAVA_HOME": "/nowhere"}, "JAVA_HOME=/nowhere: no executable bin/java there"),
        ({"version": "newest"}, "--version: 'newest' is not a version of Kafka"),
        ({"scenario": "compact"}, "--scenario: 'compact' is no scenario; name one of failover, compacted, tiered"),
        ({"scenario": "tiered"}, "--version: no checksum of kafka-storage:4.4.0:test is known; name 4.3.1"),
    ],
    ids=["taken", "no-jvm", "no-version", "no-scenario", "no-test-jar"],
)
def test_bad_input_is_one_line_and_exit_2(tmp_path: Path, change: dict[str, object], says: str) -> None:
    out = tmp_path / "out"
    if change.get("taken"):
        out.mkdir()
    # None of these comes to running Kafka: a JVM that can say its version is enough.
    environment = {**os.environ, "JAVA_HOME": str(change.get("JAVA_HOME", hollow_jvm(tmp_path)))}
    command = [sys.executable, "-m", "fencepost.traces.kafka.record", "--out", str(out)]
    command += ["--version", str(change.get("version", VERSION)), "--scenario", str(change.get("scenario", "failover"))]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
