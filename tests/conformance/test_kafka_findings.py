"""The findings of docs/findings/, on Apache Kafka's own brokers as real processes, each beside its control run.

One cluster for all of them, in a dozen seconds; a broker that has ended is started again, which takes as long.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import pytest
from fencepost.conformance.kafka.cluster.h1 import PROTOCOLS, h1
from fencepost.conformance.kafka.cluster.k11 import A, B, C, k11
from fencepost.conformance.kafka.cluster.k12 import LAG_MS, k12
from fencepost.conformance.kafka.cluster.stage import PATIENCE_MS, Stage, Stored
from fencepost.conformance.kafka.cluster.v6 import v6
from fencepost.conformance.kafka.cluster.v7 import v7
from fencepost.traces.kafka.cluster import NODE_NAMES

from .conftest import Fencepost
from .kafka_jvm import commands_below, needs_kafka

pytestmark = pytest.mark.kafka
FINDINGS = Path(__file__).resolve().parents[2] / "docs" / "findings"


def staged(lag_ms: int = PATIENCE_MS) -> Iterator[Stage]:
    """A cluster, for a fixture to yield from."""
    with needs_kafka():
        made = Stage(lag_ms=lag_ms)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with made:
        yield made
        assert made.gate.faults == [], "the proxies must understand all that is said"
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert left == [] and not made.home.exists(), "a stage leaves no process and no file behind"


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One cluster for all of these."""
    yield from staged()


@pytest.fixture
def impatient() -> Iterator[Stage]:
    """A cluster in which a replica that does not fetch is waited for a few seconds."""
    yield from staged(LAG_MS)


def in_the_docs(said: list[str], topic: str, as_told: str) -> bool:
    """Whether the finding's page has these lines, under the page's name of the topic."""
    story = "\n".join(said).replace(topic, as_told)
    return f"\n{story}\n" in (FINDINGS / f"{as_told}.md").read_text(encoding="utf-8")


def written(logs: Mapping[int, Sequence[Stored]]) -> dict[int, list[str]]:
    """By broker, its records as ``VALUE@EPOCH``."""
    return {broker: [str(record) for record in log] for broker, log in logs.items()}


# It asks the command line as well, which other tests of Kafka's classes do not.
def test_k11_an_acknowledged_record_is_lost(stage: Stage, tmp_path: Path, fencepost: Fencepost) -> None:
    """Two elections in one metadata update; and what ``fencepost check`` says of the brokers' directories."""
    said: list[str] = []
    found = k11(stage, "k11", held=True, say=said.append, copies=tmp_path)
    assert in_the_docs(said, "k11", "k11")
    assert (found.acknowledged, found.error) == (0, None)
    assert [(each.offset, each.value) for each in found.read] == [(0, "r")]
    assert written(found.before) == {A: ["r@0"], B: [], C: []}
    assert found.after == {A: [], B: [], C: []} and found.lost
    assert found.thrown == "LogTruncationException"
    # One update brought both: it went from leading in epoch 0 to leading in epoch 2.
    second = found.roles[A][1]
    assert "starts at leader epoch 2" in second and "Previous leader Some(1) and previous leader epoch was 0" in second
    then, now = ([tmp_path / name / NODE_NAMES[id_] for id_ in (A, B, C)] for name in ("acknowledged", "lost"))
    report = ("--report", tmp_path / "report")
    told = fencepost("check", *then, *report)
    assert told.code == 3, "files alone do not tell that all copies are of one moment"
    assert "broker 3 is in the ISR [1, 3] with LEO 0, below the high watermark 1" in " ".join(told.out.split())
    told = fencepost("check", then[0], *now[1:], *report)
    assert told.code == 1 and "committed and lost: offset 0" in told.out
    # In the end the logs agree, and nothing is left that could tell.
    assert fencepost("check", *now, *report).code == 0


@pytest.mark.nightly(seconds=20)
def test_k11_not_where_each_election_is_heard_of_by_itself(stage: Stage) -> None:
    """The control run: the same steps, but for the metadata that is held."""
    said: list[str] = []
    found = k11(stage, "k11-control", held=False, say=said.append)
    assert in_the_docs(said, "k11-control", "k11")
    assert (found.acknowledged, found.error) == (None, "NotLeaderOrFollowerException")
    assert found.read == found.read_after == [] and found.thrown is None and not found.lost
    assert ["Leader" in line for line in found.roles[A]] == [True, False, True, False]


@pytest.mark.nightly(seconds=30)
def test_h1_a_consumer_passes_over_a_record_in_silence(stage: Stage) -> None:
    """One unclean election, and nothing is thrown; beside it the two topics in which all is well."""
    said: list[str] = []
    found = h1(stage, "h1", say=said.append)
    assert in_the_docs(said, "h1", "h1")
    assert set(found.gap.read) == set(PROTOCOLS)
    for read in found.gap.read.values():
        assert [(each.offset, each.leader_epoch, each.value) for each in read] == [(0, 1, "r"), (1, 3, "y")]
    assert found.gap.thrown == {}
    assert written(found.gap.before) == {A: ["x@0"], B: ["r@1"], C: []}
    assert written(found.gap.after) == {A: ["x@0", "y@3"], B: ["r@1"], C: []}
    assert [str(each) for each in found.gap.skipped(A)] == ["x@0"] * len(PROTOCOLS) and found.lost
    # A replica that follows names the epoch of its last record, and so notices.
    assert written(found.gap.last) == {A: ["x@0", "y@3"], B: ["x@0", "y@3"], C: []}
    # Where the end is smaller, the consumer notices too.
    assert found.shorter.thrown == dict.fromkeys(PROTOCOLS, "LogTruncationException")
    # A clean election: what was read stays, and nothing is left out.
    for read in found.clean.read.values():
        assert [(each.offset, each.value) for each in read] == [(0, "r"), (1, "y")]
    assert found.clean.thrown == {} and found.clean.skipped(C) == []
    assert written(found.clean.last) == {broker: ["r@1", "y@2"] for broker in (A, B, C)}


@pytest.mark.nightly(seconds=60)
def test_v6_a_consumer_takes_a_late_answer_and_passes_over_a_record(stage: Stage) -> None:
    """Of a leader that it has left; and the control run, in which the answer is not late, and the consumer is told."""
    said: list[str] = []
    found = v6(stage, "v6-control", held=False, say=said.append)
    assert in_the_docs(said, "v6-control", "v6")
    assert found.thrown == dict.fromkeys(PROTOCOLS, "LogTruncationException") and not found.lost
    said.clear()
    found = v6(stage, "v6", held=True, say=said.append)
    assert in_the_docs(said, "v6", "v6")
    assert set(found.read) == set(PROTOCOLS) and found.thrown == {}
    for read in found.read.values():
        assert [(each.offset, each.leader_epoch, each.value) for each in read] == [(0, 0, "x"), (1, 2, "z")]
    assert written(found.before) == {A: ["x@0"], B: [], C: []}
    assert [str(each) for each in found.skipped(B)] == ["y@2"] * len(PROTOCOLS) and found.lost
    assert written(found.last) == {A: ["y@2", "z@2"], B: ["y@2", "z@2"], C: []}


@pytest.mark.nightly(seconds=60)
def test_v7_a_consumer_is_told_of_a_truncation_that_never_was(impatient: Stage) -> None:
    """It has asked a broker that does not know the topic yet; and the control run, in which it has not."""
    said: list[str] = []
    found = v7(impatient, "v7-control", held=False, say=said.append)
    assert in_the_docs(said, "v7-control", "v7")
    assert found.thrown == {} and not found.lost
    for read in found.read.values():
        assert [(each.offset, each.leader_epoch, each.value) for each in read] == [
            (0, 0, "r"),
            (1, 1, "s"),
            (2, 1, "t"),
        ]
    said.clear()
    found = v7(impatient, "v7", held=True, say=said.append)
    assert in_the_docs(said, "v7", "v7")
    assert found.thrown == dict.fromkeys(PROTOCOLS, "LogTruncationException") and found.lost
    for read in found.read.values():
        assert [(each.offset, each.leader_epoch, each.value) for each in read] == [(0, 0, "r"), (1, 1, "s")]
    assert written(found.last) == {A: ["r@0", "s@1", "t@1"], B: ["r@0", "s@1", "t@1"], C: []}


@pytest.mark.nightly(seconds=60)
def test_k12_an_acknowledged_record_is_lost(impatient: Stage, tmp_path: Path, fencepost: Fencepost) -> None:
    """A leader forgets whom it has proposed for the ISR; and the control run, in which it does not."""
    said: list[str] = []
    found = k12(impatient, "k12-control", held=False, say=said.append)
    assert in_the_docs(said, "k12-control", "k12")
    said.clear()
    assert (found.acknowledged, found.error, found.lost) == (0, None, False)
    assert written(found.after) == {broker: ["s@0"] for broker in (A, B, C)} and found.thrown is None
    found = k12(impatient, "k12", held=True, say=said.append, copies=tmp_path)
    assert in_the_docs(said, "k12", "k12")
    assert (found.acknowledged, found.error) == (0, None)
    assert [(each.offset, each.value) for each in found.read] == [(0, "s")]
    assert written(found.before) == {A: ["s@0"], B: ["s@0"], C: []}
    assert found.after == {A: [], B: [], C: []} and found.lost
    assert found.thrown == "LogTruncationException"
    then, now = ([tmp_path / name / NODE_NAMES[id_] for id_ in (A, B, C)] for name in ("acknowledged", "lost"))
    told = fencepost("check", *then, "--report", tmp_path / "report")
    assert told.code == 3 and "? k12-0: broker 3" in told.out
    told = fencepost("check", then[0], *now[1:], "--report", tmp_path / "report")
    assert told.code == 1 and "committed and lost: offset 0" in told.out


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_finding_that_is_broken_off_leaves_no_process(stage: Stage, tmp_path: Path, how: signal.Signals) -> None:
    if how == signal.SIGKILL and shutil.which("setpriv") is None:
        pytest.skip("absent: setpriv (util-linux) is not installed: nothing ends the nodes of one killed with SIGKILL")
    command = [sys.executable, "-m", "fencepost.conformance.kafka.cluster", "k11"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    running = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        # Whoever runs the tests in the background has SIGINT ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        jvms: dict[psutil.Process, str] = {}
        deadline = time.monotonic() + 120
        while sum("kafka.Kafka" in command for command in jvms.values()) < 4:
            assert running.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
            jvms = commands_below(running.pid)
        running.send_signal(how)
        code = running.wait(60)
    finally:
        running.kill()
    assert code == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}[how]
    _, alive = psutil.wait_procs(list(jvms), timeout=10)
    assert alive == []
    if how != signal.SIGKILL:
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fencepost.conformance.kafka.cluster", "k11", "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == f"fencepost: {tmp_path}: it exists already; name a new folder with --keep, or remove that one\n"
    )
