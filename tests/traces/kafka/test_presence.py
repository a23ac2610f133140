"""Who is in an ISR has the partition's log: folders taken away from a recorded cluster."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from fencepost.traces.kafka.capture import bundled_corpus, node_directories
from fencepost.traces.kafka.checks import check_brokers
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.presence import NAME

from .encoder import metadata_partition, partition, partition_record, topic_record, write_broker

if TYPE_CHECKING:
    from pathlib import Path

    from fencepost.traces.kafka.checks import FilesReport
    from fencepost.traces.kafka.verdicts import CheckResult

STAGES = ["1-steady", "6-unclean-election", "7-all-back"]
"""Of the others ``tests/conformance/test_cli_check.py`` asks, as part of all checks."""


def stage_of(tmp_path: Path, stage: str) -> list[Path]:
    """A copy of a stage."""
    for source in node_directories(bundled_corpus(), stage):
        shutil.copytree(source, tmp_path / source.name)
    return sorted(tmp_path.iterdir())


def check(paths: list[Path]) -> FilesReport:
    return check_brokers(read_brokers(paths))


def found(report: FilesReport) -> list[CheckResult]:
    """What does not hold of this check."""
    return [each for each in report.checks if each.check == NAME and each.verdict != "holds"]


@pytest.mark.parametrize("stage", STAGES)
def test_the_recorded_cluster_passes(stage: str) -> None:
    report = check(sorted(node_directories(bundled_corpus(), stage)))
    assert found(report) == []
    held = {each.subject: each.message for each in report.checks if each.check == NAME}
    topics = {"orders-0", "payments-0", "mixed-compression-0", "__transaction_state-0"}
    # While one broker alone is alive, those that have gone are eligible, and in no ISR.
    assert set(held) == ({"payments-0"} if stage == "6-unclean-election" else topics)


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_a_folder_that_is_gone_is_found(tmp_path: Path, broker: int) -> None:
    """All brokers have been started again since the topic was made, or were taken back into its ISR."""
    nodes = stage_of(tmp_path, "7-all-back")
    shutil.rmtree(tmp_path / f"broker-{broker}" / "orders-0")
    report = check(nodes)
    (result,) = found(report)
    assert (result.verdict, result.informative, result.subject) == ("violated", False, "orders-0")
    assert result.message == (
        f"broker {broker} is in the ISR [1, 2, 3], and has no folder of it; "
        "its replication-offset-checkpoint still has the high watermark"
    )
    assert result.where == str(tmp_path / f"broker-{broker}")
    assert report.verdict == "violated"
    others = [each for each in report.checks if (each.check, each.subject) == (NAME, "orders-0") and each != result]
    assert [(each.verdict, each.message) for each in others] == [("holds", "2 of 3 members")]


def test_a_leader_that_took_a_broker_back_has_seen_it_fetch(tmp_path: Path) -> None:
    """Broker 1 was killed, left the ISR, and came back by its leader's word."""
    nodes = stage_of(tmp_path, "4-old-leader-back")
    shutil.rmtree(tmp_path / "broker-1" / "payments-0")
    (result,) = found(check(nodes))
    assert result.verdict == "violated" and result.message.startswith("broker 1 is in the ISR [1, 2, 3]")


def test_who_is_not_in_the_isr_may_have_none(tmp_path: Path) -> None:
    nodes = stage_of(tmp_path, "5-lone-leader")
    shutil.rmtree(tmp_path / "broker-3" / "payments-0")
    assert found(check(nodes)) == []


def forget(root: Path, topic: str) -> None:
    """Remove a partition's folder, and its line in the checkpoint of high watermarks."""
    shutil.rmtree(root / f"{topic}-0")
    path = root / "replication-offset-checkpoint"
    lines = path.read_text().splitlines()
    rows = [line for line in lines[2:] if not line.startswith(f"{topic} ")]
    path.write_text("\n".join([lines[0], str(len(rows)), *rows]) + "\n")


def unsure(report: FilesReport) -> str:
    """The message of the one result, which tells something and takes no part in the verdict."""
    (result,) = found(report)
    assert (result.verdict, result.informative) == ("unknown", True)
    return result.message


def test_a_partition_that_was_just_made(tmp_path: Path) -> None:
    """Its record is in the broker's metadata log; whether it was applied when the broker was stopped nobody knows."""
    nodes = stage_of(tmp_path, "1-steady")
    forget(tmp_path / "broker-1", "orders")
    assert unsure(check(nodes)).endswith("it need not have applied the record that made it")


def test_only_member_without_a_folder_is_undecided(tmp_path: Path) -> None:
    """It has the only copy of all committed records, unless it had not made the folder yet."""
    for mark in (None, 3):
        place = tmp_path / str(mark)
        log = metadata_partition([topic_record("t"), partition_record([1], [1], 1)])
        root = write_broker(place, 1, {"__cluster_metadata-0": log, "t-0": partition(0, hw=mark)})
        if mark is None:
            forget(root, "t")
        else:
            shutil.rmtree(root / "t-0")
        (result,) = found(check([root]))
        assert (result.verdict, result.informative) == ("unknown" if mark is None else "violated", False)


def test_another_of_its_log_dirs_may_have_it(tmp_path: Path) -> None:
    nodes = stage_of(tmp_path, "7-all-back")
    shutil.rmtree(tmp_path / "broker-1" / "orders-0")
    meta = tmp_path / "broker-1" / "meta.properties"
    text = meta.read_text()
    name = next(line for line in text.splitlines() if line.startswith("directory.id="))
    meta.write_text(text.replace(name, "directory.id=AAAAAAAAAAAAAAAAAAAAAA"))
    assert unsure(check(nodes)).endswith(f"of its log.dirs, {name.partition('=')[2]} is not here")


def test_an_older_copy_may_be_of_before(tmp_path: Path) -> None:
    nodes = stage_of(tmp_path, "7-all-back")
    shutil.rmtree(tmp_path / "broker-1")
    (source,) = (each for each in node_directories(bundled_corpus(), "2-leader-killed") if each.name == "broker-1")
    shutil.copytree(source, tmp_path / "broker-1")
    shutil.rmtree(tmp_path / "broker-1" / "orders-0")
    assert "its copy is not of the others' time" in unsure(check(nodes))


def test_a_broker_without_a_metadata_log_of_its_own(tmp_path: Path) -> None:
    nodes = stage_of(tmp_path, "7-all-back")
    forget(tmp_path / "broker-1", "orders")
    shutil.rmtree(tmp_path / "broker-1" / "__cluster_metadata-0")
    assert unsure(check(nodes)).endswith("its own metadata log has no such partition")


def test_a_controller_that_does_not_name_log_dirs(tmp_path: Path) -> None:
    """As before Kafka 3.7."""
    log = metadata_partition([topic_record("t"), partition_record([1, 2], [1, 2], 1)])
    one = write_broker(tmp_path / "1", 1, {"__cluster_metadata-0": log, "t-0": partition(0, 0)})
    two = write_broker(tmp_path / "2", 2, {"__cluster_metadata-0": log})
    assert unsure(check([one, two])).endswith("no record says which log.dirs it has")
