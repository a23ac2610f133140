"""The snapshots that a real Kafka 4.4.0 cluster wrote: they pass every check, and what is planted in them is found."""

from __future__ import annotations

import shutil
import struct
from typing import TYPE_CHECKING

import google_crc32c
import pytest
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.capture import bundled_corpus, node_directories
from fencepost.traces.kafka.checks import FilesReport, check_brokers
from fencepost.traces.kafka.directories import read_brokers

if TYPE_CHECKING:
    from pathlib import Path

    from fencepost.traces.kafka.verdicts import CheckResult

LOG = "__cluster_metadata-0"
CHECKS = {
    "boot_rule_of_kip_630",
    "boot_rule_of_kafka",
    "snapshot_ids_within_log",
    "snapshot_files_match_names",
    "snapshot_contents_match_log",
    "snapshots_agree_between_replicas",
}
STATE = 166
"""The byte at which the batch of the state begins, in every snapshot of the corpus that has one."""


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    """A copy of the last stage: brokers 2 and 3 have snapshot 61-1, the controller 0-0, 60-1 and 106-1."""
    for source in node_directories(bundled_corpus(), "7-all-back"):
        shutil.copytree(source, tmp_path / source.name)
    return sorted(tmp_path.iterdir())


def named(folder: Path, end: int, epoch: int = 1) -> Path:
    return folder / LOG / f"{end:020d}-{epoch:010d}.checkpoint"


def check(nodes: list[Path]) -> FilesReport:
    return check_brokers(read_brokers(nodes))


def violated(report: FilesReport) -> dict[str, CheckResult]:
    """What is violated of what is asked of snapshots."""
    return {each.check: each for each in report.checks if each.verdict == "violated" and each.check in CHECKS}


def trimmed(folder: Path, start: int) -> None:
    """What Kafka leaves when it deletes the segments below a snapshot: a log that begins at ``start``."""
    first = folder / LOG / f"{0:020d}.log"
    files = read_broker(folder).partitions["__cluster_metadata", 0]
    byte = int(files.batches.position[files.batches.base_offset.tolist().index(start)])
    (folder / LOG / f"{start:020d}.log").write_bytes(first.read_bytes()[byte:])
    first.unlink()
    named(folder, 0, 0).unlink()
    (folder / LOG / "leader-epoch-checkpoint").write_text(f"0\n1\n1 {start}\n")


def recrc(data: bytearray, position: int) -> None:
    """Make the CRC of the batch at ``position`` right again."""
    length = struct.unpack_from(">i", data, position + 8)[0]
    covered = bytes(data[position + 21 : position + 12 + length])
    struct.pack_into(">I", data, position + 17, google_crc32c.value(covered))


HISTORIC = "unclean_election_losses_known"
"""The unclean election of payments is history here, and the log that held the lost record has been truncated."""


def undecided(report: FilesReport) -> list[str]:
    return [each.check for each in report.checks if each.verdict == "unknown" and not each.informative]


def test_the_recorded_cluster_passes(nodes: list[Path]) -> None:
    report = check(nodes)
    assert violated(report) == {} and undecided(report) == [HISTORIC]
    assert {each.check for each in report.checks} >= CHECKS
    compared = [each.message for each in report.checks if each.check == "snapshot_contents_match_log"]
    assert [message.split(" ")[0] for message in compared] == ["1", "1", "2"], "by brokers 2 and 3 and the controller"


def test_each_broker_writes_its_own_bytes(nodes: list[Path]) -> None:
    """What hole A4 is about: broker 2 and broker 3 have the same records under one name, and other bytes."""
    (note,) = (each for each in check(nodes).checks if each.check == "snapshots_agree_between_replicas" and each.where)
    assert (
        note.informative and "the same records and other bytes on broker 2 (3168) and broker 3 (3168)" in note.message
    )
    assert note.where == f"{named(nodes[1], 61)}, byte 17"


@pytest.mark.parametrize("start", [55, 60])
def test_a_trimmed_log_passes(nodes: list[Path], start: int) -> None:
    """From the oldest snapshot's end on, or with the whole segment around it, as Kafka deletes whole segments only."""
    trimmed(nodes[3], start)
    report = check(nodes)
    assert violated(report) == {} and undecided(report) == [HISTORIC]
    texts = {each.check: each.message for each in report.checks if each.subject == f"broker 100: {LOG}"}
    assert texts["boot_rule_of_kafka"] == f"00000000000000000106-0000000001 reaches the log start {start}"
    assert "for any high watermark from 60 on" in texts["boot_rule_of_kip_630"]
    assert texts["snapshot_contents_match_log"].startswith("1 snapshots"), "106 against 60 and the log between them"


def test_a_log_start_above_the_newest_snapshot(nodes: list[Path]) -> None:
    trimmed(nodes[3], 63)
    named(nodes[3], 106).unlink()
    found = violated(check(nodes))
    assert {"boot_rule_of_kip_630", "boot_rule_of_kafka"} <= set(found)
    rule = found["boot_rule_of_kafka"]
    assert "the newest is 00000000000000000060-0000000001: Kafka does not start" in rule.message
    assert rule.where == f"{nodes[3] / LOG / f'{63:020d}.log'}, byte 0"


@pytest.mark.parametrize(
    ("end", "epoch", "checks", "message"),
    [
        (62, 1, {"snapshot_files_match_names"}, "append time"),
        (64, 1, {"snapshot_ids_within_log"}, "ends inside the batch of offsets 63 to 64"),
        (77, 1, {"snapshot_files_match_names", "snapshot_contents_match_log"}, "append time"),
        (61, 2, {"snapshot_ids_within_log", "snapshot_files_match_names"}, "a batch of epoch 1"),
    ],
)
def test_a_renamed_snapshot(nodes: list[Path], end: int, epoch: int, checks: set[str], message: str) -> None:
    named(nodes[1], 61).rename(named(nodes[1], end, epoch))
    found = violated(check(nodes))
    assert checks <= set(found)
    assert any(message in each.message for each in found.values())
    for name in checks:
        assert found[name].subject == f"broker 2: {LOG}"
        byte = STATE if name == "snapshot_contents_match_log" else 0
        assert found[name].where == f"{named(nodes[1], end, epoch)}, byte {byte}"


def test_a_snapshot_renamed_beyond_the_log(nodes: list[Path]) -> None:
    """By its name it could be a download; by its header it is another one's file, unless a clock went back."""
    named(nodes[1], 61).rename(named(nodes[1], 200))
    report = check(nodes)
    assert violated(report) == {} and report.verdict == "unknown"
    assert {"snapshot_ids_within_log", HISTORIC} < set(undecided(report)), (
        "and the rules over that broker's own history"
    )
    found = next(each for each in report.checks if each.verdict == "unknown" and not each.informative)
    assert (found.check, found.subject) == ("snapshot_ids_within_log", f"broker 2: {LOG}")
    assert "ends above the LEO 106, and its header says append time 1795227636445, the log's last" in found.message
    assert found.where == f"{named(nodes[1], 200)}, byte 0"
    assert report.brokers[1].boots_from is None, "the image is the log's"


def test_a_crash_between_download_and_truncation(nodes: list[Path]) -> None:
    """The controller has fallen behind, downloads broker 2's snapshot and crashes before it empties its log.

    What the log has lost, leader epoch 1 of payments among it, is in the snapshot, and the node starts from that.
    """
    folder = nodes[3] / LOG
    log = folder / f"{0:020d}.log"
    files = read_broker(nodes[3]).partitions["__cluster_metadata", 0]
    log.write_bytes(log.read_bytes()[: int(files.batches.position[files.batches.base_offset.tolist().index(20)])])
    for end in (60, 106):
        named(nodes[3], end).unlink()
    shutil.copyfile(named(nodes[1], 61), named(nodes[3], 61))
    report = check([nodes[3]])
    assert violated(report) == {} and report.verdict == "holds"
    image = report.brokers[0].metadata
    assert image is not None and image.end_offset == 61 and report.brokers[0].to_json()["boots_from"]
    (rule,) = (each for each in report.checks if each.check == "snapshot_ids_within_log")
    assert "which Kafka empties at its next start" in rule.message
    named(nodes[3], 61).unlink()
    alone = check([nodes[3]]).brokers[0]
    assert alone.boots_from is None and alone.metadata is not None and alone.metadata.end_offset == 20


def test_two_replicas_snapshots_of_one_name_that_differ(nodes: list[Path]) -> None:
    path = named(nodes[2], 61)
    data = bytearray(path.read_bytes())
    byte = data.index(b"min.insync.replicas")
    data[byte] = ord("M")
    recrc(data, STATE)
    path.write_bytes(data)
    report = check(nodes)
    assert report.problems == ()
    found = violated(report)
    assert set(found) == {"snapshots_agree_between_replicas", "snapshot_contents_match_log"}
    assert "43" not in found["snapshots_agree_between_replicas"].message
    assert found["snapshots_agree_between_replicas"].where == f"{named(nodes[1], 61)}, byte {STATE}"
    assert "config Min.insync.replicas of" in found["snapshot_contents_match_log"].message
    assert found["snapshot_contents_match_log"].where == f"{path}, byte {STATE}"


def test_snapshot_without_its_last_batch_was_written_in_part(nodes: list[Path]) -> None:
    path = named(nodes[1], 61)
    path.write_bytes(path.read_bytes()[:3093])
    rule = violated(check(nodes))["snapshot_files_match_names"]
    assert rule.where == f"{path}, byte 3093" and "footer" in rule.message


@pytest.mark.parametrize("size", [0, 3000])
def test_damaged_snapshot_is_unknown(nodes: list[Path], size: int) -> None:
    path = named(nodes[1], 61)
    path.write_bytes(path.read_bytes()[:size])
    report = check(nodes)
    assert not violated(report)
    rule = next(each for each in report.checks if each.check == "snapshot_files_match_names" and each.where)
    assert (rule.verdict, rule.where) == ("unknown", str(path))
    assert path in {each.path for each in report.problems}


def test_half_a_snapshot_under_another_name(nodes: list[Path]) -> None:
    trimmed(nodes[3], 60)
    named(nodes[3], 60).unlink()
    whole = named(nodes[3], 106)
    part = whole.with_name(whole.name + ".part")
    part.write_bytes(whole.read_bytes()[:1000])
    whole.unlink()
    report = check(nodes)
    found = violated(report)
    assert {"boot_rule_of_kip_630", "boot_rule_of_kafka"} <= set(found)
    assert part.name in found["boot_rule_of_kafka"].message
    assert [each.where for each in report.problems] == [f"{part}, byte 1000"] and not report.bad_input
