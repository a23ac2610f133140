"""Directories made after public bug reports, each with its right answer."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from fencepost.conformance.check.files import Cluster, read_cluster

ARCHIVE = Path(__file__).parent / "reports" / "reports.tar.gz"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def check(reports: Path, name: str) -> Cluster:
    return read_cluster("", sorted((reports / name).iterdir()))


def found(cluster: Cluster, verdict: str) -> list[tuple[str, str, str]]:
    return [
        (each.check, each.subject, each.message)
        for each in cluster.report.checks
        if each.verdict == verdict and not each.informative
    ]


def test_new_leader_without_records_loses_committed_ones(reports: Path) -> None:
    because = "leader epoch 6 starts at 2 on broker 3; committed and lost"
    cluster = check(reports, "r04-before")
    assert found(cluster, "violated") == [
        (
            "committed_records_kept",
            "orders-0",
            f"broker {broker} truncates to 2 and loses {count} records: {because}: {offsets}",
        )
        for broker, count, offsets in ((1, 8, "offsets 2 to 9"), (2, 3, "offsets 2 to 3"))
    ]
    assert cluster.report.verdict == "violated"


def test_stuck_follower_of_a_leader_without_its_epoch(reports: Path) -> None:
    cluster = check(reports, "r02n")
    messages = {name: message for name, subject, message in found(cluster, "violated") if subject == "orders-0"}
    assert messages["leader_epoch_in_cache"] == (
        "broker 2 leads in epoch 3, and its epoch cache ends with epoch 1; broker 1, whose last epoch is 2, is stuck: "
        "the leader answers each fetch with OFFSET_OUT_OF_RANGE"
    )


def test_overlapping_batches_violate_contiguity(reports: Path) -> None:
    ((name, subject, message),) = found(check(reports, "r14"), "violated")
    assert (name, subject) == ("offsets_contiguous", "broker 1: orders-0")
    assert message == "the batch of offsets 6 to 11 overlaps the one before it, which ends at 7"


def test_unread_batches_violate_nothing(reports: Path) -> None:
    cluster = check(reports, "flip2")
    assert found(cluster, "violated") == [] and cluster.report.verdict == "unknown"
    assert "replicas_agree_below_high_watermark" in {name for name, _, _ in found(cluster, "unknown")}


@pytest.mark.parametrize("name", ["zk", "no-topic-ids-2.4.1", "compacted-zk-3.9.1"])
def test_healthy_zookeeper_clusters_hold(reports: Path, name: str) -> None:
    cluster = check(reports, name)
    assert cluster.report.verdict == "holds"
    (note,) = (each for each in cluster.report.checks if each.check == "controller_log_present")
    assert note.informative and "as in a ZooKeeper cluster; not checked: elections" in note.message


def test_empty_directory_is_never_holds(reports: Path) -> None:
    assert check(reports, "vacuous").report.verdict == "unknown"
