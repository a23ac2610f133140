"""Every deployment in the table of releases, started and broken: each command does what the table says.

One cluster a test: healthy, after a clean failover, after an unclean election that loses committed records, and with
every broker back. The scenario knows the truth; `check` must find it, and claim nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from fencepost.traces.kafka.cluster import BROKER_IDS, CONTROLLER_ID, Cluster
from fencepost.traces.kafka.polled_quorum import TOPIC
from fencepost.traces.kafka.releases.archive import STAGES
from fencepost.traces.kafka.releases.recording import record_release
from fencepost.traces.kafka.releases.release import Release, releases
from fencepost.traces.kafka.scenario_loss import Loss
from fencepost.traces.read import read_trace

from .conftest import Fencepost
from .kafka_jvm import needs_kafka

STACK_TRACE = re.compile(r"\s+at [\w.$/]+\(|.*\b\w+(Exception|Error)\b")
RECORDED = ("1-healthy", "2-clean-failover")
"""Stages after which the running cluster is polled: with all brokers, and with one dead."""


class Observer:
    """Polls the running cluster after some stages, and notes what the brokers log meanwhile."""

    def __init__(self, release: Release, fencepost: Fencepost, home: Path) -> None:
        self._release = release
        self._fencepost = fencepost
        self._home = home
        self.problems: list[str] = []

    def __call__(self, stage: str, cluster: Cluster) -> None:
        if stage == STAGES[-1]:
            self._ingest(cluster)
        if stage not in RECORDED:
            return
        before = {path: path.stat().st_size for path in detailed_logs(cluster)}
        folders = [cluster.nodes[broker].directory for broker in BROKER_IDS]
        self._record(stage, "payments", cluster.bootstrap, folders)
        if self._release.coordinator == "kraft":
            self._record(stage, TOPIC, cluster.bootstrap)
            self._record(stage, TOPIC, cluster.address(CONTROLLER_ID))
        # Requests to a dead broker's address and its own session are the cluster's business; so only stage 1 is quiet.
        if stage == "1-healthy":
            for path, size in before.items():
                with path.open(encoding="utf-8") as log:
                    log.seek(size)
                    self.problems += [f"{path}: {line.strip()}" for line in log if STACK_TRACE.match(line)]

    def _ingest(self, cluster: Cluster) -> None:
        """Make a corpus of the logs, and mine it: a trace may end at an unclean election, and nowhere else."""
        logs = [path for path in detailed_logs(cluster) if path.parent.name != "zookeeper"]
        corpus = self._home / "corpus"
        said = self._fencepost("ingest", "--kafka-log", *logs, "--out", corpus)
        partial = [line for line in said.err.splitlines() if ": partial: " in line]
        cut = [line for line in partial if "uncleanly" not in line]
        if self._release.ingest:
            if said.code != 0:
                self.problems.append(f"ingest ends with {said.code}: {said.err}")
                return
            self.problems += [f"ingest stops early: {line}" for line in cut]
        elif said.code != 0:
            return
        elif len(cut) != len(Loss.TOPICS):
            # Each trace must say that it lacks a decision of the controller, or the table is wrong.
            self.problems.append(f"ingest reads what the table denies: {said.err}")
        mining = ("--variant", "kip-320-kafka-fences", "--out", self._home / "mined")
        mined = self._fencepost("mine", corpus, *mining)
        # The trace of the unclean election is partial.
        if mined.code != 3 or "the trace is partial: " not in mined.out:
            self.problems.append(f"mine ends with {mined.code}: {mined.out} {mined.err}")

    def _record(self, stage: str, topic: str, bootstrap: str, folders: Sequence[Path] = ()) -> None:
        out = self._home / f"{stage}-{topic}.jsonl"
        polling = ("--bootstrap", bootstrap, "--topic", topic, "--every", "100ms", "--for", "2s", "--out", out)
        data = [option for folder in folders for option in ("--data", folder)]
        said = self._fencepost("record", *polling, *data, "--json")
        if said.code != 0:
            self.problems.append(f"{stage}: record of {topic} ends with {said.code}: {said.err}")
            return
        if topic == TOPIC:
            return
        lines = said.json["source"].get("missing", [])
        lacks = {line.removeprefix("not recorded: ").partition(" of node")[0] for line in lines}
        if lacks != set(self._release.record_lacks):
            self.problems.append(f"{stage}: record lacks {sorted(lacks)}, not {list(self._release.record_lacks)}")
        asked = {(event.source["broker"], event.source["asked"]) for event in read_trace(out).events}
        wanted = {(broker, "directory") for broker in BROKER_IDS} | {(2, "offsets")}
        if not wanted <= asked:
            self.problems.append(f"{stage}: record shows {sorted(asked)}, and lacks some of {sorted(wanted)}")
        replayed = self._fencepost("replay", out, "--max-skipped", "4")
        if replayed.code not in (0, 3):
            self.problems.append(f"{stage}: replay ends with {replayed.code}: {replayed.out} {replayed.err}")


def detailed_logs(cluster: Cluster) -> list[Path]:
    """The logs of every node at the levels that ``ingest`` needs."""
    return sorted(path for node in cluster.nodes.values() for path in cluster.logs(node).glob("detailed.log"))


def expected_code(release: Release, stage: str) -> int:
    """Exit code of ``check``: only KRaft's metadata log still shows an unclean election when all brokers are back."""
    if stage == "3-unclean-election":
        return 1
    return 3 if stage == "4-all-back" and release.coordinator == "kraft" else 0


def check_stages(release: Release, out: Path, lost: list[int], fencepost: Fencepost) -> list[str]:
    """The wrong answers of ``fencepost check``."""
    problems = []
    for stage in STAGES:
        directories = sorted((out / stage).iterdir())
        said = fencepost("check", *directories, "--no-search", "--report", out / "report")
        if said.code != expected_code(release, stage):
            problems.append(f"{stage}: check ends with {said.code}: {said.out} {said.err}")
        named = f"offsets {lost[0]} to {lost[-1]}" in " ".join(said.out.split())
        if named != (stage == "3-unclean-election"):
            problems.append(f"{stage}: check names the lost offsets: {named}: {said.out}")
    return problems


@pytest.mark.kafka
@pytest.mark.nightly(seconds=240)
@pytest.mark.parametrize("release", releases(), ids=lambda release: release.name)
def test_release_is_supported_as_the_table_says(release: Release, process: Fencepost, tmp_path: Path) -> None:
    out = tmp_path / release.name
    observer = Observer(release, process, tmp_path)
    with needs_kafka():
        facts = record_release(release, out, observe=observer)
    lost = facts["lost"]["payments-0"]
    problems = [
        *observer.problems,
        *check_stages(release, out, lost, process),
    ]
    assert len(lost) == 3, json.dumps(facts["lost"])
    assert problems == []
