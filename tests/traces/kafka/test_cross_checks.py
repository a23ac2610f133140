"""Replicas against each other and against the controller: each planted fault beside the clean case."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.checks import FilesReport, check_brokers
from fencepost.traces.kafka.verdicts import CheckResult, Verdict, overall

from .encoder import (
    Partition,
    batch,
    log,
    metadata_partition,
    partition,
    partition_change,
    partition_record,
    topic_record,
    write_broker,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def report(
    tmp_path: Path,
    *replicas: Partition,
    metadata: Sequence[bytes] | None = None,
    name: str = "t-0",
    clean: bool = False,
) -> FilesReport:
    """The report over brokers 1, 2, … with one replica each; broker 1 has the metadata log, if there is one."""
    roots = []
    folder = tmp_path / f"case{len(list(tmp_path.iterdir()))}"
    for node, files in enumerate(replicas, start=1):
        partitions = {name: files}
        if node == 1 and metadata is not None:
            partitions["__cluster_metadata-0"] = metadata_partition(metadata)
        roots.append(write_broker(folder / f"b{node}", node, partitions, clean=clean))
    found = check_brokers([read_broker(root) for root in roots])
    json.dumps(found.to_json(), allow_nan=False)
    backwards = check_brokers([read_broker(root) for root in reversed(roots)])
    assert backwards.to_json() == found.to_json(), "the order of the directories must not matter"
    return found


def only(found: FilesReport, check: str) -> CheckResult:
    (result,) = (c for c in found.checks if c.check == check)
    return result


AGREE = "replicas_agree_below_high_watermark"


def test_equal_replicas_agree(tmp_path: Path) -> None:
    found = report(tmp_path, partition(0, 0, 1), partition(0, 0, 1), partition(0, 0, hw=2))
    assert only(found, AGREE).verdict == "holds"
    (comparison,) = found.comparisons
    assert comparison.committed_below == 2
    assert comparison.divergences == () and comparison.truncations == ()


def test_recompressed_replica_agrees(tmp_path: Path) -> None:
    values = [b"a" * 100, b"b" * 100]
    replicas = [Partition({0: batch(0, values, codec=codec)}, [(0, 0)], 2) for codec in (0, 1, 2, 3, 4)]
    assert only(report(tmp_path, *replicas), AGREE).verdict == "holds"


def test_divergence_above_the_high_watermark_is_no_fault(tmp_path: Path) -> None:
    found = report(tmp_path, partition(0, 0, 1, hw=1), partition(0, 2, 2, hw=1))
    assert only(found, AGREE).verdict == "holds"
    (comparison,) = found.comparisons
    (divergence,) = comparison.divergences
    assert divergence.difference.to_json() == {"offset": 1, "kind": "epoch", "epochs": [0, 2]}
    assert divergence.committed is False
    assert [span.to_json() for span in divergence.epochs] == [
        {"epoch": 0, "a": [1, 1, 1], "b": None, "common": 0},
        {"epoch": 1, "a": [2, 2, 1], "b": None, "common": 0},
        {"epoch": 2, "a": None, "b": [1, 2, 2], "common": 0},
    ]
    cuts = {(t.leader, t.follower): (t.offset, t.records_lost) for t in comparison.truncations}
    assert cuts == {("broker 2", "broker 1"): (1, 2)}, "towards the newer epoch alone"
    assert only(found, "truncation_restores_agreement").verdict == "holds"
    assert only(found, "truncation_keeps_committed").verdict == "holds"
    assert found.verdict == "holds"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (partition(0, 2, 2), "leader epoch 0 against 2"),
        (partition(0, 0, 1, tag="other"), "another payload under the same leader epoch 0"),
    ],
)
def test_divergence_below_the_high_watermark(tmp_path: Path, other: Partition, words: str) -> None:
    found = report(tmp_path, partition(0, 0, 1, hw=2), replace(other, high_watermark=3))
    result = only(found, AGREE)
    assert result.verdict == "violated"
    assert words in result.message and "below the smallest high watermark 2" in result.message
    assert ".log, byte" in result.where
    assert found.comparisons[0].divergences[0].committed is True
    assert found.verdict == "violated"


def test_truncation_below_the_high_watermark(tmp_path: Path) -> None:
    found = report(tmp_path, partition(0, 0, 1, hw=2), partition(0, 2, 2, hw=2))
    assert only(found, "truncation_keeps_committed").verdict == "violated"


def test_epoch_of_two_leaders_cannot_be_truncated_away(tmp_path: Path) -> None:
    found = report(
        tmp_path, partition(0, 1, 1, hw=1), Partition({0: log(0) + log(1, 1, start=1, tag="x")}, [(0, 0), (1, 1)], 1)
    )
    assert only(found, AGREE).verdict == "holds"
    result = only(found, "truncation_restores_agreement")
    assert result.verdict == "violated" and "records of two leaders" in result.message


def test_unknown_without_high_watermarks(tmp_path: Path) -> None:
    a, b = partition(0, 1), partition(0, 2)
    a.high_watermark = None
    assert only(report(tmp_path, a, b), AGREE).verdict == "unknown"
    assert only(report(tmp_path, a, partition(0, 1)), AGREE).verdict == "holds", "no difference at all"


def test_compacted_pair_does_not_hide_a_divergence(tmp_path: Path) -> None:
    whole = Partition({0: batch(0, [b"a", b"b", b"c"]) + batch(3, [b"d"])}, [(0, 0)], 4)
    left = Partition({0: batch(0, [b"c"], deltas=[2]) + batch(3, [b"d"])}, [(0, 0)], 4)
    other = Partition({0: batch(0, [b"a", b"b", b"c"]) + batch(3, [b"x"])}, [(0, 0)], None)
    assert only(report(tmp_path, whole, left, other), AGREE).verdict == "unknown"


def test_damage_makes_agreement_unknown(tmp_path: Path) -> None:
    data = bytearray(log(0, 0, 0))
    data[len(log(0)) + 40] ^= 1
    found = report(tmp_path, partition(0, 0, 0), Partition({0: bytes(data)}, [(0, 0)], 3))
    assert only(found, AGREE).verdict == "unknown"
    assert found.bad_input


def test_replicas_that_compact_at_different_times(tmp_path: Path) -> None:
    whole = Partition({0: batch(0, [b"a", b"b", b"c"]) + batch(3, [b"d"])}, [(0, 0)], 4)
    left = Partition({0: batch(0, [b"c"], deltas=[2]) + batch(3, [b"d"])}, [(0, 0)], 4)
    assert only(report(tmp_path, whole, left), AGREE).verdict == "holds"
    wrong = Partition({0: batch(0, [b"X"], deltas=[2]) + batch(3, [b"d"])}, [(0, 0)], 4)
    result = only(report(tmp_path, whole, wrong), AGREE)
    assert result.verdict == "violated" and "differ at offset 2" in result.message


def test_different_topic_ids(tmp_path: Path) -> None:
    other = replace(partition(0), topic_id=UUID(int=9))
    found = report(tmp_path, partition(0), other)
    assert only(found, "topic_ids_match").verdict == "violated"
    assert found.comparisons == (), "two topics of one name are not compared"
    assert only(report(tmp_path, partition(0), partition(0)), "topic_ids_match").verdict == "holds"


# -- against the controller -----------------------------------------------------------------------------------------


def decided(*changes: bytes, isr: Sequence[int] = (1, 2), epoch: int = 0) -> list[bytes]:
    return [topic_record("t"), partition_record([1, 2], isr, 1, epoch), *changes]


def verdicts(found: FilesReport, check: str) -> list[str]:
    return [c.verdict for c in found.checks if c.check == check]


def test_controller_checks_hold_on_a_consistent_cluster(tmp_path: Path) -> None:
    found = report(tmp_path, partition(0, 0, 1), partition(0, 0, 1), metadata=decided(partition_change(leader=1)))
    assert found.controller == "broker 1"
    for check in ("leader_epochs_known_to_controller", "leader_in_isr", "isr_agrees_below_high_watermark",
                  "topic_ids_match", "replicas_assigned"):  # fmt: skip
        assert set(verdicts(found, check)) == {"holds"}, check
    assert found.verdict == "holds"


def test_leader_epoch_above_the_controllers(tmp_path: Path) -> None:
    found = report(tmp_path, partition(0, 0, 1), partition(0, 0), metadata=decided())
    assert verdicts(found, "leader_epochs_known_to_controller") == ["violated", "holds"]
    assert "leader epoch 1 at offset 2, the controller's is 0" in str(found.checks)


def test_partition_that_the_controller_does_not_know(tmp_path: Path) -> None:
    found = report(tmp_path, partition(0), metadata=[])
    assert verdicts(found, "leader_epochs_known_to_controller") == ["unknown"]


def test_leader_outside_the_isr(tmp_path: Path) -> None:
    found = report(tmp_path, partition(0), partition(0), metadata=decided(isr=[2]))
    assert verdicts(found, "leader_in_isr") == ["violated"]
    past = decided(partition_change(isr=[2]), partition_change(isr=[1, 2]))
    assert verdicts(report(tmp_path, partition(0), partition(0), metadata=past), "leader_in_isr") == ["violated"]
    none = decided(partition_change(leader=-1, isr=[2]))
    assert verdicts(report(tmp_path, partition(0), partition(0), metadata=none), "leader_in_isr") == ["holds"]
    stranger = decided(partition_change(isr=[1, 9]))
    assert verdicts(report(tmp_path, partition(0), partition(0), metadata=stranger), "leader_in_isr") == ["violated"]


def test_isr_member_without_a_committed_record(tmp_path: Path) -> None:
    check = "isr_agrees_below_high_watermark"
    replicas = partition(0, 0, hw=2), partition(0, hw=1)
    found = only(report(tmp_path, *replicas, metadata=decided()), check)
    assert found.verdict == "unknown" and "broker 2 is in the ISR [1, 2] with LEO 1" in found.message
    found = only(report(tmp_path, *replicas, metadata=decided(), clean=True), check)
    assert found.verdict == "violated" and "broker 2 is in the ISR [1, 2] with LEO 1" in found.message
    shrunk = decided(partition_change(isr=[1]))
    assert only(report(tmp_path, *replicas, metadata=shrunk), check).verdict == "holds"


def test_isr_members_that_differ_below_the_larger_watermark(tmp_path: Path) -> None:
    check = "isr_agrees_below_high_watermark"
    replicas = partition(0, 0, hw=2), partition(0, 1, hw=1)
    metadata = decided(partition_change(leader=1))
    found = report(tmp_path, *replicas, metadata=metadata)
    assert only(found, AGREE).verdict == "holds", "above the smallest high watermark"
    assert only(found, check).verdict == "violated"


def test_stray_folder_is_informative(tmp_path: Path) -> None:
    found = report(tmp_path, partition(0), partition(0), partition(0), metadata=decided())
    result = only(found, "replicas_assigned")
    assert (result.verdict, result.informative) == ("violated", True)
    assert "broker 3 hold a folder" in result.message


def test_no_metadata_log_means_no_controller_checks(tmp_path: Path) -> None:
    found = report(tmp_path, partition(0), partition(0))
    assert found.controller is None
    assert verdicts(found, "leader_in_isr") == []


def test_metadata_logs_of_two_nodes_are_compared(tmp_path: Path) -> None:
    name = "__cluster_metadata-0"
    same = metadata_partition(decided())
    found = report(tmp_path, same, same, name=name)
    assert only(found, AGREE).verdict == "holds"
    other = metadata_partition([topic_record("u")], epoch=2)
    assert only(report(tmp_path, same, other, name=name), AGREE).verdict == "unknown", "no snapshot, no bound"
    with_snapshot = replace(same, snapshots={(1, 1): b""})
    result = only(report(tmp_path, with_snapshot, other, name=name), AGREE)
    assert result.verdict == "violated", "who led in epoch 2 had not what epoch 1 had committed"
    assert "below the end of a snapshot" in result.message
    both = replace(other, snapshots={(1, 2): b""})
    assert only(report(tmp_path, with_snapshot, both, name=name), AGREE).verdict == "violated"


def test_what_a_deposed_controller_had_not_committed_is_no_fault(tmp_path: Path) -> None:
    """A snapshot commits records of its own lineage: another node's older tail below its end is truncated."""
    name = "__cluster_metadata-0"
    deposed = metadata_partition([topic_record("t"), topic_record("u")], epoch=1)
    elected = replace(metadata_partition([topic_record("t"), topic_record("v")], epoch=2), snapshots={(3, 2): b""})
    found = report(tmp_path, deposed, elected, name=name)
    assert only(found, AGREE).verdict == "holds"
    assert [each.committed for each in found.comparisons[0].divergences] == [False]
    reused = metadata_partition([topic_record("t"), topic_record("w")], epoch=2)
    assert only(report(tmp_path, reused, elected, name=name), AGREE).verdict == "violated", "one epoch, two records"


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        ((), "unknown"),
        (("holds",), "holds"),
        (("holds", "unknown"), "unknown"),
        (("holds", "violated"), "violated"),
        (("violated", "unknown"), "violated"),
    ],
)
def test_overall_verdict(verdicts: tuple[Verdict, ...], whole: Verdict) -> None:
    results = [CheckResult("check", verdict, "orders-0", "message") for verdict in verdicts]
    notes = [CheckResult("note", each, "orders-0", "message", informative=True) for each in ("violated", "unknown")]
    assert overall([*results, *notes]) == whole
