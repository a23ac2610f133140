"""Unclean elections in the metadata log: which are unclean, and when the directories show their cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fencepost.conformance.check.files import bundled_clusters
from fencepost.traces.kafka.checks import check_brokers
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.unclean_elections import NAME

from .encoder import (
    Partition,
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

    from fencepost.traces.kafka.checks import FilesReport

UNCLEAN = [
    topic_record("t"),
    partition_record([1, 2, 3], [1, 2, 3], 1),
    partition_change(isr=[1]),
    partition_change(leader=-1),
    partition_change(leader=2, isr=[2]),
]
"""Broker 1 leads epoch 0 alone; broker 2, outside the ISR, leads epoch 2 (metadata offset 5)."""
SENTENCE = "broker 2 was elected uncleanly in leader epoch 2 (metadata offset 5); the last ISR was [1]"


def report(tmp_path: Path, replicas: dict[int, Partition], decided: Sequence[bytes] = UNCLEAN) -> FilesReport:
    roots = []
    for node, files in replicas.items():
        held = {"t-0": files, "__cluster_metadata-0": metadata_partition(decided)}
        roots.append(write_broker(tmp_path / f"b{node}", node, held))
    return check_brokers(read_brokers(roots))


def known(found: FilesReport) -> list[tuple[str, str]]:
    return [(c.verdict, c.message) for c in found.checks if c.check == NAME]


def test_missing_directory_of_the_last_isr_is_unknown(tmp_path: Path) -> None:
    found = report(tmp_path, {2: partition(0, 2), 3: partition(0, 2)})
    assert known(found) == [("unknown", f"{SENTENCE}; broker 1's directory is missing, so the loss is unknown")]
    assert found.verdict == "unknown"
    assert [str(each) for each in found.unclean_elections] == [SENTENCE]
    assert found.to_json()["unclean_elections"][0]["last_isr"] == [1]


def test_present_directory_of_the_last_isr_names_the_loss(tmp_path: Path) -> None:
    found = report(tmp_path, {1: partition(0, 0, 0, hw=3), 2: partition(0, 2)})
    assert [verdict for verdict, _ in known(found)] == ["holds"]
    (loss,) = (c for c in found.checks if c.check == "committed_records_kept")
    assert loss.verdict == "violated" and loss.message.startswith(SENTENCE)
    assert loss.message.endswith("committed and lost: offsets 1 to 2")


def test_unclean_election_without_a_loss_holds(tmp_path: Path) -> None:
    found = report(tmp_path, {1: partition(0, 0), 2: partition(0, 0, 2)})
    assert [verdict for verdict, _ in known(found)] == ["holds"] and found.verdict == "holds"


def test_truncated_evidence_is_unknown(tmp_path: Path) -> None:
    ((verdict, message),) = known(report(tmp_path, {1: partition(0, 2), 2: partition(0, 2)}))
    assert verdict == "unknown" and "broker 1 has followed a later leader and may have truncated" in message


def test_doubt_of_several_brokers_names_them_once(tmp_path: Path) -> None:
    decided = [topic_record("t"), partition_record([1, 2, 3], [1, 2], 1), partition_change(leader=-1)]
    decided.append(partition_change(leader=3, isr=[3]))
    logs = {1: partition(0, 2), 2: partition(0, 2), 3: partition(0, 2)}
    ((_, message),) = known(report(tmp_path / "followed", logs, decided))
    assert message.endswith(
        "brokers 1 and 2 have followed a later leader and may have truncated, so the loss is unknown"
    )
    ((_, message),) = known(report(tmp_path / "missing", {3: partition(0, 2)}, decided))
    assert message.endswith("the directories of brokers 1 and 2 are missing, so the loss is unknown")


def test_records_above_the_high_watermark_are_unknown(tmp_path: Path) -> None:
    """The checkpoint of the high watermark lags by up to 5 seconds."""
    ((verdict, message),) = known(report(tmp_path, {1: partition(0, 0, hw=1), 2: partition(0, 2)}))
    assert verdict == "unknown" and "1 record above its checkpointed high watermark 1" in message


def test_damaged_log_of_the_last_isr_is_unknown(tmp_path: Path) -> None:
    data = bytearray(log(0, 0))
    data[-1] ^= 1
    damaged = Partition({0: bytes(data)}, [(0, 0)], 2)
    ((verdict, message),) = known(report(tmp_path, {1: damaged, 2: partition(0, 2)}))
    assert verdict == "unknown" and "part of broker 1's log could not be read" in message


@pytest.mark.parametrize(
    "changes",
    [
        [partition_change(leader=2)],
        [partition_change(isr=[1]), partition_change(leader=-1, isr=[]), partition_change(leader=1, isr=[1])],
        [partition_change(isr=[1, 2]), partition_change(leader=-1), partition_change(leader=2, isr=[2])],
    ],
    ids=["clean", "the last ISR member returns", "an ISR member after a time without a leader"],
)
def test_clean_elections_have_no_result(tmp_path: Path, changes: list[bytes]) -> None:
    decided = [topic_record("t"), partition_record([1, 2, 3], [1, 2, 3], 1), *changes]
    found = report(tmp_path, {1: partition(0), 2: partition(0)}, decided)
    assert known(found) == [] and found.unclean_elections == ()


def test_bundled_unclean_election_is_found_in_each_view() -> None:
    by_stage = {cluster.label: cluster.report for cluster in bundled_clusters()}
    (stage,) = (found for label, found in by_stage.items() if label.endswith("6-unclean-election: "))
    (later,) = (found for label, found in by_stage.items() if label.endswith("7-all-back: "))
    assert [each.metadata_offset for each in stage.unclean_elections] == [85]
    assert [each.last_isr for each in later.unclean_elections] == [(2,)], "not the elections of orders"
    assert (stage.verdict, later.verdict) == ("violated", "unknown")
    without = [broker for broker in stage.brokers if broker.node_id in (1, 3)]
    ((verdict, message),) = known(check_brokers(without))
    assert verdict == "unknown" and message == (
        "broker 3 was elected uncleanly in leader epoch 2 (metadata offset 85); the last ISR was [2]; "
        "broker 2's directory is missing, so the loss is unknown"
    )
