"""The recorded metadata log against each broker's ``partition.metadata`` and logs, clean and with planted faults."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from fencepost.traces.kafka.capture import bundled_corpus, node_directories
from fencepost.traces.kafka.checks import check_brokers
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.history import RULES

from .encoder import batch, metadata_value, partition_change, topic_id_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fencepost.traces.kafka.broker import BrokerFiles
    from fencepost.traces.kafka.checks import FilesReport
    from fencepost.traces.kafka.image import MetadataImage
    from fencepost.traces.kafka.verdicts import CheckResult

METADATA = "__cluster_metadata-0"
FIRST = f"{0:020d}.log"
CHECKS = (
    *("topic_ids_match", "leader_epochs_known_to_controller", "leader_in_isr", "isr_agrees_below_high_watermark"),
    *("replicas_assigned", "isr_members_have_their_logs"),
)
"""What compares the controller's image with brokers' directories, and the image with itself."""


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    """A copy of the last stage: three brokers in each ISR, and the controller."""
    for source in node_directories(bundled_corpus(), "7-all-back"):
        shutil.copytree(source, tmp_path / source.name)
    return tmp_path


def check(stage: Path) -> FilesReport:
    return check_brokers(read_brokers(sorted(stage.iterdir())))


def broken(report: FilesReport) -> dict[str, CheckResult]:
    return {each.check: each for each in report.checks if each.check in CHECKS and each.verdict != "holds"}


def controller(stage: Path) -> tuple[BrokerFiles, MetadataImage]:
    (found,) = (each for each in read_brokers(sorted(stage.iterdir())) if each.node_id == 100)
    assert found.metadata is not None
    return found, found.metadata


def decide(stage: Path, value: bytes) -> int:
    """The controller goes on with one record more; gives the byte at which its batch begins."""
    _, image = controller(stage)
    path = stage / "controller-100" / METADATA / FIRST
    size = path.stat().st_size
    with path.open("ab") as log:
        log.write(batch(image.end_offset, [value], epoch=image.epoch))
    return size


def undecided(report: FilesReport) -> set[str]:
    return {each.check for each in report.checks if each.verdict == "unknown" and not each.informative}


def test_the_recorded_cluster_passes(stage: Path) -> None:
    report = check(stage)
    # The unclean election of payments is history here, and the log that held the lost record has been truncated.
    assert broken(report) == {} and undecided(report) == {"unclean_election_losses_known"}
    of_orders = {each.check for each in report.checks if each.check in CHECKS and "orders-0" in each.subject}
    assert of_orders == set(CHECKS)


def another_id(stage: Path) -> tuple[str, str]:
    path = stage / "broker-2" / "orders-0" / "partition.metadata"
    path.write_text(f"version: 0\ntopic_id: {topic_id_text(UUID(int=9))}")
    return "topic_ids_match", "orders-0"


def an_epoch_of_nobody(stage: Path) -> tuple[str, str]:
    """A batch in broker 1's log of a leader epoch that the controller has not given out."""
    _, image = controller(stage)
    (broker,) = (each for each in read_brokers([stage / "broker-1"]))
    files, epoch = broker.partitions["orders", 0], image.topics["orders"].history[0][-1].leader_epoch + 1
    with (stage / "broker-1" / "orders-0" / FIRST).open("ab") as log:
        log.write(batch(files.log_end, [b"of nobody"], epoch=epoch))
    with (stage / "broker-1" / "orders-0" / "leader-epoch-checkpoint").open() as cache:
        version, count, *lines = cache.read().splitlines()
    lines.append(f"{epoch} {files.log_end}")
    text = "\n".join([version, str(int(count) + 1), *lines])
    (stage / "broker-1" / "orders-0" / "leader-epoch-checkpoint").write_text(text + "\n")
    return "leader_epochs_known_to_controller", "broker 1: orders-0"


def a_leader_outside_the_isr(stage: Path) -> tuple[str, str]:
    _, image = controller(stage)
    topic = image.topics["orders"]
    rest = [each for each in (1, 2, 3) if each != topic.history[0][-1].leader]
    decide(stage, partition_change(isr=rest, topic_id=topic.topic_id))
    return "leader_in_isr", "orders-0"


def a_member_without_a_committed_record(stage: Path) -> tuple[str, str]:
    """Broker 3 was shut down cleanly in the ISR; its log lacks its last batch, and its checkpoints know of none."""
    (stage / "broker-3" / ".kafka_cleanshutdown").write_text("")
    (broker,) = (each for each in read_brokers([stage / "broker-3"]))
    batches = broker.partitions["orders", 0].batches
    path = stage / "broker-3" / "orders-0" / FIRST
    path.write_bytes(path.read_bytes()[: int(batches.position[-1])])
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        lines = (stage / "broker-3" / name).read_text().splitlines()
        cut = [f"orders 0 {batches.base_offset[-1]}" if each.startswith("orders 0 ") else each for each in lines]
        (stage / "broker-3" / name).write_text("\n".join(cut) + "\n")
    return "isr_agrees_below_high_watermark", "orders-0"


def a_log_that_is_gone(stage: Path) -> tuple[str, str]:
    shutil.rmtree(stage / "broker-2" / "payments-0")
    return "isr_members_have_their_logs", "payments-0"


@pytest.mark.parametrize(
    "fault",
    [
        another_id,
        an_epoch_of_nobody,
        a_leader_outside_the_isr,
        a_member_without_a_committed_record,
        a_log_that_is_gone,
    ],
)
def test_what_is_planted_in_a_recorded_cluster_is_found(stage: Path, fault: Callable[[Path], tuple[str, str]]) -> None:
    name, subject = fault(stage)
    report = check(stage)
    assert report.verdict == "violated" and not report.bad_input
    found = broken(report)[name]
    assert (found.verdict, found.subject, found.informative) == ("violated", subject, False)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (metadata_value(5, b"\0\0\0\0" + bytes(10)), "the record is cut off or malformed"),
        (metadata_value(24, b"") + b"\0", "1 bytes are left after a EndTransactionRecord"),
        (partition_change(isr=[1]), "no topic has this id"),
    ],
)
def test_a_record_that_does_not_fit_is_named_with_its_byte(stage: Path, value: bytes, words: str) -> None:
    at = decide(stage, value)
    report = check(stage)
    assert not report.bad_input
    (found,) = (each for each in report.checks if each.verdict == "violated")
    assert found.check == "metadata_log_replays" and words in found.message
    assert found.where == f"{stage / 'controller-100' / METADATA / FIRST}, byte {at}"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (metadata_value(99, b"anything"), "of type 99"),
        (metadata_value(20, b"", version=1), "a NoOpRecord of version 1"),
    ],
)
def test_a_record_of_another_release_leaves_every_rule_open(stage: Path, value: bytes, words: str) -> None:
    """It may have decided anything: nothing is said to hold, and what does not fit is no fault."""
    at = decide(stage, value)
    report = check(stage)
    (note,) = report.problems
    assert (note.kind, note.severity, note.byte) == ("unknown-record", "note", at) and words in note.what
    assert not report.bad_input and report.verdict == "unknown"
    rules = {each.check: each.verdict for each in report.checks if each.subject == f"broker 100: {METADATA}"}
    assert {rules[name] for name in RULES} == {"unknown"}
    an_epoch_of_nobody(stage)
    of_orders = {each.check: each.verdict for each in check(stage).checks if each.subject == "broker 1: orders-0"}
    assert of_orders["leader_epochs_known_to_controller"] == "unknown"
