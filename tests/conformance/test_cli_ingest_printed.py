"""``fencepost ingest --kafka-log``: logs of real brokers become a corpus, and what is wrong with them is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fencepost.traces.bundled.unpacked import unpacked_archive
from fencepost.traces.corpus.manifest import SOURCES, read_corpus

Run = Callable[..., Any]
PRINTED = unpacked_archive(Path(__file__).parents[1] / "traces" / "kafka" / "printed.tar.gz")
SERIAL = ("--master", "serial")
pytestmark = pytest.mark.usefixtures("own_registry")


def logs(story: str) -> list[Path]:
    return sorted((PRINTED / story).glob("*.log"))


@pytest.mark.parametrize(("story", "code"), [("k11", 1), ("k11-control", 0)])
def test_logs_become_a_corpus_in_which_a_lost_record_is_found(
    fencepost: Run, tmp_path: Path, story: str, code: int
) -> None:
    said = fencepost("ingest", "--kafka-log", *logs(story), "--out", tmp_path / "c", "--json")
    assert (said.code, said.json["traces"], said.json["problems"]) == (0, 1, [])
    (file,) = read_corpus(tmp_path / "c").files
    assert (file.header.variant, file.header.complete) == ("kip-320-kafka-fences", True)
    (row,) = [json.loads(line) for line in (tmp_path / "c" / SOURCES).read_text().splitlines()]
    assert row["file"] == "k11-0"
    mined = fencepost("mine", tmp_path / "c", "--variant", "kip-320-kafka-fences", *SERIAL)
    assert mined.code == code
    assert ("1. leader_inc_high_watermark against isr_acknowledges" in mined.out) is bool(code)


def test_the_controllers_own_log_becomes_a_corpus_too(fencepost: Run, tmp_path: Path) -> None:
    """Of the variant that Kafka's quorum is held to, which is named by its place."""
    said = fencepost(
        "ingest", "--kafka-log", *logs("quorum"), "--protocol", "snapshots", "--out", tmp_path / "c", "--json"
    )
    assert (said.code, said.json["traces"], said.json["problems"]) == (0, 1, [])
    (file,) = read_corpus(tmp_path / "c").files
    assert (file.header.protocol, file.header.variant, file.header.complete) == ("kafka-quorum", "kip-630-kafka", True)
    place = "fencepost.model.protocols.snapshots.kafka_spec:printed"
    mined = fencepost("mine", tmp_path / "c", "--protocol", place, "--variant", "kip-630-kafka", *SERIAL)
    assert mined.code == 0 and "verdict  holds, held against kip-630-kafka" in mined.out
    less = fencepost("ingest", "--kafka-log", *logs("quorum")[1:], "--protocol", "snapshots", "--out", tmp_path / "d")
    assert less.code == 2 and "__cluster_metadata-0: left out: there is no log of node 1, which votes" in less.err


def test_what_is_told_in_part_is_noted_and_what_is_left_out_is_a_problem(fencepost: Run, tmp_path: Path) -> None:
    brokers, controller = logs("k11-control")[:3], logs("k11-control")[3]
    cut = tmp_path / "controller.log"
    cut.write_text("".join(line for line in controller.open() if "leader: 2 -> 1" not in line))
    said = fencepost("ingest", "--kafka-log", *brokers, cut, "--out", tmp_path / "c")
    assert said.code == 0 and "fencepost: k11-0: partial: what the controller decided in partition" in said.err
    mined = fencepost("mine", tmp_path / "c", "--variant", "kip-320-kafka-fences", *SERIAL)
    assert mined.code == 3 and mined.out.count("the trace is partial: what the controller decided in partition") == 1
    said = fencepost("ingest", "--kafka-log", *brokers, "--out", tmp_path / "d")
    assert said.code == 2 and not (tmp_path / "d").exists()
    assert "fencepost: k11-0: left out: no controller's log tells of its creation; name the logs of all" in said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "SRC: nothing to ingest is named; name traces, brokers' data or Parquet, or --kafka-log"),
        (("runs", "--kafka-log", "a.log"), "--kafka-log: it is what is ingested; leave SRC out"),
        (
            ("--kafka-log", "a.log", "--protocol", "tiering"),
            "--protocol tiering: nothing is read of what its nodes print; name snapshots, or leave it out",
        ),
        (
            ("--kafka-log", "nowhere.log", "--protocol", "snapshots"),
            "nowhere.log: cannot be read: No such file or directory; name a node's server",
        ),
        (
            ("--kafka-log", "nowhere.log"),
            "nowhere.log: cannot be read: No such file or directory; name a node's server",
        ),
        (
            ("--kafka-log", "a.log", "--variant", "kip-320"),
            "--variant kip-320: Apache Kafka's brokers are not held to it; name one of kip-320-kafka",
        ),
    ],
)
def test_bad_input_is_one_line(fencepost: Run, tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    said = fencepost("ingest", *words, "--out", tmp_path / "c")
    assert said.complaint.startswith(says), said.complaint


def test_files_without_a_partition_are_bad_input(fencepost: Run, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-03-04 10:00:00,101] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n")
    said = fencepost("ingest", "--kafka-log", log, "--out", tmp_path / "c")
    assert said.code == 2 and not (tmp_path / "c").exists()
    assert f"{log}: no line reports about a partition; name the logs of all brokers and controllers" in said.err
