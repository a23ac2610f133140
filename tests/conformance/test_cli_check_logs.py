"""``fencepost check`` on compacted and tiered logs of a real cluster: as they are, and with a planted fault."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fencepost.conformance.check.files import bundled_clusters
from fencepost.traces.kafka.capture import bundled_corpus, load_manifest, node_directories

from .conftest import Fencepost

STAGES = [
    (scenario, each["name"])
    for scenario in ("compacted", "tiered")
    for each in load_manifest(bundled_corpus(scenario))["stages"]
]


@pytest.mark.parametrize(("scenario", "stage"), STAGES)
def test_what_a_real_cluster_cleaned_and_uploaded_holds(
    fencepost: Fencepost, tmp_path: Path, scenario: str, stage: str
) -> None:
    nodes = node_directories(bundled_corpus(scenario), stage)
    said = fencepost("check", *nodes, "--report", tmp_path / "report", "--json")
    answer = json.loads(said.out)
    assert (said.code, answer["verdict"]) == (0, "holds")
    names = {each["name"] for each in answer["obligations"]}
    if scenario == "compacted":
        wanted = {"cleaner_offset_within_log", "cleaned_part_has_one_record_a_key", "cleaned_part_keeps_the_winners"}
    else:
        wanted = {"remote_segments_well_formed", "remote_segments_follow_the_lineage", "remote_and_local_leave_no_gap"}
        wanted.add("remote_below_high_watermark")
    assert wanted <= names


FAULTS = {
    "compacted": ("3-failover", "broker-2/cleaner-offset-checkpoint", "accounts 0 492", "accounts 0 600",
                  "cleaner_offset_within_log", "broker 2: accounts-0: clean below 600, and the LEO is 493"),
    "tiered": ("4-empty-follower", "broker-3/archive-0/leader-epoch-checkpoint", "1 150", "1 155",
               "remote_segments_follow_the_lineage", "has leader epoch 1 at 150, the replica's cache 0"),
}  # fmt: skip


@pytest.mark.parametrize("scenario", FAULTS)
def test_a_planted_fault_is_told_everywhere_alike(fencepost: Fencepost, tmp_path: Path, scenario: str) -> None:
    """On the terminal, in the object, in the page and in JUnit XML: where it is, and what; and nothing of it else."""
    stage, name, before, after, check, words = FAULTS[scenario]
    home = shutil.copytree(bundled_corpus(scenario) / stage, tmp_path / stage)
    text = (home / name).read_text()
    assert before in text
    (home / name).write_text(text.replace(before, after))
    nodes = [home / each.name for each in node_directories(bundled_corpus(scenario), stage)]
    report = tmp_path / "report"
    said = fencepost("check", *nodes, "--report", report)
    assert said.code == 1
    assert "".join(words.split()) in "".join(said.out.split())
    told = json.loads(fencepost("check", *nodes, "--report", report, "--json").out)
    (found,) = (each for each in told["obligations"] if each["name"] == check)
    assert found["verdict"] == "violated" and words in found["detail"] and name in found["detail"]
    assert json.loads((report / "report.json").read_text())["obligations"] == told["obligations"]
    page = (report / "index.html").read_text()
    junit = (report / "junit.xml").read_text()
    for each in (page, junit):
        assert check in each and words.split(", ")[0] in each and name.rsplit("/", 1)[1] in each


def test_the_bundled_corpora_are_among_what_is_checked_without_a_path() -> None:
    clusters = {cluster.label: cluster.report for cluster in bundled_clusters()}
    for scenario, stage in STAGES:
        assert clusters[f"{scenario}, {stage}: "].verdict == "holds"
    assert "7-all-back: " in clusters and len(clusters) == 7 + len(STAGES)


def test_a_store_is_held_against_what_the_metadata_say(fencepost: Fencepost, tmp_path: Path) -> None:
    home = shutil.copytree(bundled_corpus("tiered") / "4-empty-follower", tmp_path / "home")
    nodes = [home / each.name for each in node_directories(bundled_corpus("tiered"), "4-empty-follower")]
    asked = ("check", *nodes, "--report", tmp_path / "report", "--remote", home / "remote")
    assert fencepost(*asked).code == 0
    (lost,) = (home / "remote").rglob("00000000000000000080-*.log")
    lost.unlink()
    said = fencepost(*asked, "--json")
    assert said.code == 1
    broken = [each for each in json.loads(said.out)["obligations"] if each["verdict"] == "violated"]
    assert [each["name"] for each in broken] == ["remote_segments_are_stored"]
    assert "the remote segment of offsets 80 to 99, of broker 1, is not in the store" in broken[0]["detail"]


def test_a_store_that_is_not_there_is_one_line_on_stderr(fencepost: Fencepost, tmp_path: Path) -> None:
    nodes = node_directories(bundled_corpus("tiered"), "4-empty-follower")
    said = fencepost("check", *nodes, "--report", tmp_path / "report", "--remote", tmp_path / "none")
    assert said.code == 2 and said.err.strip().count("\n") == 0 and "there is no such folder" in said.err
    assert not (tmp_path / "report").exists()
    alone = fencepost("check", "--report", tmp_path / "report", "--remote", tmp_path)
    assert alone.code == 2 and "there are no directories to read" in alone.err
