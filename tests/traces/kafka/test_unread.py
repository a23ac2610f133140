"""Unreadable is not empty: each comparison that needs an unread log is unknown, and the rest keeps its verdict."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fencepost.conformance.check.files import Cluster, read_cluster

from .encoder import (
    Partition,
    log,
    metadata_partition,
    old_message,
    partition,
    partition_record,
    topic_record,
    write_broker,
)

NOBODY = 65534


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Run without root's right to read everything; as the same user where this is not root."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def brokers(place: Path, *replicas: Partition, other: bool = True) -> list[Path]:
    """Brokers 1, 2, … with one replica of t-0 each, and of u-0, which is healthy."""
    more = {"u-0": partition(0, 0, 1)} if other else {}
    return [
        write_broker(place / f"b{node}", node, {"t-0": files, **more}) for node, files in enumerate(replicas, start=1)
    ]


def verdicts(cluster: Cluster, topic: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in cluster.report.checks:
        if not each.informative and each.subject.endswith(f"{topic}-0"):
            found.setdefault(each.check, set()).add(each.verdict)
    return found


def test_folder_without_permission_is_unknown(open_folder: Path) -> None:
    roots = brokers(open_folder, partition(0, 0), partition(0, 0))
    (roots[1] / "t-0").chmod(0)
    with unprivileged():
        cluster = read_cluster("", roots)
    (roots[1] / "t-0").chmod(0o755)
    assert [problem.kind for problem in cluster.report.problems] == ["unreadable"]
    of_t = verdicts(cluster, "t")
    assert not any("violated" in each for each in of_t.values())
    assert of_t["replicas_agree_below_high_watermark"] == {"unknown"} == of_t["committed_records_kept"]
    assert of_t["offsets_contiguous"] == {"holds", "unknown"}
    assert all(each == {"holds"} for each in verdicts(cluster, "u").values())
    assert cluster.report.verdict == "unknown"


def test_directory_without_permission_leaves_comparisons_unknown(open_folder: Path) -> None:
    roots = brokers(open_folder, partition(0, 0), partition(0, 0), partition(0, 0))
    roots[2].chmod(0)
    with unprivileged():
        cluster = read_cluster("", roots)
    roots[2].chmod(0o755)
    assert [fault.what for fault in cluster.refused] == ["Permission denied"]
    for topic in ("t", "u"):
        of_topic = verdicts(cluster, topic)
        assert of_topic["replicas_agree_below_high_watermark"] == {"unknown"}
        assert of_topic["epochs_monotone"] == {"holds"}
    agreement = next(c for c in cluster.report.checks if c.check == "replicas_agree_below_high_watermark")
    assert agreement.message.endswith(f"{roots[2]} was skipped (Permission denied)")


def test_skipped_directory_matters_if_a_replica_is_missing(tmp_path: Path) -> None:
    decided = metadata_partition([topic_record("t"), partition_record([1, 2], [1, 2], 1)])
    roots = [
        write_broker(tmp_path / f"b{node}", node, {"t-0": partition(0), "__cluster_metadata-0": decided})
        for node in (1, 2)
    ]
    absent = tmp_path / "absent"
    assert read_cluster("", [*roots, absent]).report.verdict == "holds", "both replicas are here"
    alone = read_cluster("", [roots[0], absent])
    assert alone.report.verdict == "unknown"
    (result,) = (c for c in alone.report.checks if c.check == "replicas_agree_below_high_watermark")
    assert result.message == f"only broker 1's log was compared: {absent} was skipped (no such directory)"


def test_loss_stays_violated_beside_a_skipped_directory(tmp_path: Path) -> None:
    leader = Partition({0: log(0)}, [(0, 0), (1, 1)], 1)
    roots = brokers(tmp_path, partition(0, 0), leader, other=False)
    assert read_cluster("", [*roots, tmp_path / "absent"]).report.verdict == "violated"


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_format_is_one_line_per_file(tmp_path: Path, magic: int) -> None:
    data = b"".join(old_message(offset, b"value", magic) for offset in range(50))
    old = Partition({0: data}, None, 50)
    cluster = read_cluster("", brokers(tmp_path, old, old))
    assert [problem.kind for problem in cluster.report.problems] == ["old-magic"] * 2
    assert f"messages up to offset 49 are in message format {magic}" in cluster.report.problems[0].what
    of_t = verdicts(cluster, "t")
    assert not any("violated" in each for each in of_t.values())
    assert of_t["replicas_agree_below_high_watermark"] == {"unknown"}
    assert all(each == {"holds"} for each in verdicts(cluster, "u").values())


def test_metadata_log_below_its_snapshot_decides_nothing(tmp_path: Path) -> None:
    """The snapshot ends where records were committed; the log here has lost them."""
    decided = metadata_partition([topic_record("t"), partition_record([1], [1], 1)])
    whole = write_broker(tmp_path / "whole", 1, {"t-0": partition(0), "__cluster_metadata-0": decided})
    assert read_cluster("", [whole]).report.verdict == "holds"
    decided.snapshots = {(90, 1): b""}
    cut = write_broker(tmp_path / "cut", 1, {"t-0": partition(0), "__cluster_metadata-0": decided})
    found = {c.check: c.verdict for c in read_cluster("", [cut]).report.checks if c.subject.endswith("t-0")}
    assert found["leader_in_isr"] == "unknown" == found["isr_agrees_below_high_watermark"]


def test_preview_of_kraft_is_named(tmp_path: Path) -> None:
    (root,) = brokers(tmp_path, partition(0, 0))
    (root / "@metadata-0").mkdir()
    (problem,) = read_cluster("", [root]).report.problems
    assert (problem.kind, problem.severity) == ("preview-metadata", "note")
    assert "Kafka 2.8's KRaft preview" in problem.what


@pytest.mark.parametrize(("cleaned", "verdict"), [(2, "holds"), (1, "unknown"), (None, "unknown")])
def test_compaction_without_a_controller_log(tmp_path: Path, cleaned: int | None, verdict: str) -> None:
    """A ZooKeeper cluster: the cleaner's checkpoint is the only sign of compaction."""
    holes = Partition({0: log(0) + log(0, start=2)}, [(0, 0)], 3, cleaned=cleaned)
    cluster = read_cluster("", brokers(tmp_path, holes, other=False))
    assert verdicts(cluster, "t")["offsets_contiguous"] == {verdict}
