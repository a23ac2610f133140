"""The checks of metadata logs and their snapshots: each planted fault, beside the clean case."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.checks import FilesReport, check_brokers

from .encoder import (
    Partition,
    batch,
    cache_of,
    checkpoint,
    partition_change,
    partition_record,
    snapshot_file,
    topic_record,
    write_broker,
)

if TYPE_CHECKING:
    from pathlib import Path

    from fencepost.traces.kafka.verdicts import CheckResult

NAME = "__cluster_metadata-0"
TEXT, KAFKA = "boot_rule_of_kip_630", "boot_rule_of_kafka"
IDS, FILES = "snapshot_ids_within_log", "snapshot_files_match_names"
CONTENTS, BETWEEN = "snapshot_contents_match_log", "snapshots_agree_between_replicas"
CREATED = [topic_record("t"), partition_record([1, 2], [1, 2], 1, 6)]
ELECTED = [topic_record("t"), partition_record([1, 2], [1, 2], 2, 7)]
"""The state after another leader was elected, as far as a partition record tells it."""


def read(tmp_path: Path, *nodes: Partition) -> FilesReport:
    place = tmp_path / f"c{len(list(tmp_path.iterdir()))}"
    roots = [write_broker(place / str(i), i, {NAME: files}) for i, files in enumerate(nodes, start=1)]
    return check_brokers([read_broker(root) for root in roots])


def only(report: FilesReport, check: str) -> CheckResult:
    (found,) = (each for each in report.checks if each.check == check and not each.informative)
    assert "\n" not in str(found)
    return found


def plain(*ids: tuple[int, int], start: int = 0, epochs: tuple[int, ...] = (1, 1, 1, 2, 2)) -> Partition:
    """A log of records that say nothing, one a batch, and snapshots with nothing in them."""
    snapshots = {each: snapshot_file([], epoch=each[1]) for each in ids}
    data = _log(start, *epochs)
    return Partition({start: data}, cache_of(epochs, start), None, topic_id=None, snapshots=snapshots)


def _log(start: int, *epochs: int) -> bytes:
    return b"".join(batch(offset, [None], epoch=epoch) for offset, epoch in enumerate(epochs, start))


def deciding(**snapshots: bytes) -> Partition:
    """A log that creates a topic (offsets 0, 1) and elects another leader (offset 2), with snapshots by their ends."""
    data = batch(0, CREATED, epoch=1) + batch(2, [partition_change(leader=2)], epoch=1)
    named = {(int(end[1:]), 1): content for end, content in snapshots.items()}
    return Partition({0: data}, [(1, 0)], None, topic_id=None, snapshots=named)


class TestIds:
    @pytest.mark.parametrize("ids", [(), ((3, 1),), ((4, 2),), ((3, 1), (5, 2))])
    def test_ids_that_hold(self, tmp_path: Path, ids: tuple[tuple[int, int], ...]) -> None:
        assert only(read(tmp_path, plain(*ids)), IDS).verdict == "holds"

    @pytest.mark.parametrize(
        ("named", "message"),
        [
            ((6, 1), "ends above the LEO 5"),
            ((3, 2), "the record before its end has epoch 1 ("),
            ((5, 1), "the record before its end has epoch 2 ("),
        ],
    )
    def test_ids_against_the_log(self, tmp_path: Path, named: tuple[int, int], message: str) -> None:
        found = only(read(tmp_path, plain(named)), IDS)
        assert found.verdict == "violated" and message in found.message
        assert found.where.endswith(f"{named[0]:020d}-{named[1]:010d}.checkpoint, byte 0")

    @pytest.mark.parametrize("named", [(6, 2), (6, 3), (5, 3), (4, 3)])
    def test_a_download_that_the_log_is_behind_or_parts_from(self, tmp_path: Path, named: tuple[int, int]) -> None:
        """``KafkaMetadataLogTest.testTruncateFullyToLatestSnapshot``: Kafka empties the log and boots from it."""
        report = read(tmp_path, plain((3, 1), named))
        assert [only(report, each).verdict for each in (IDS, FILES, KAFKA)] == ["holds"] * 3
        assert report.verdict == "holds"
        assert f"goes on from snapshot {named[0]:020d}" in only(report, IDS).message
        # Beside a node that has records where that log parted from the quorum's: it is gone, and says nothing.
        other = plain(epochs=(1, 1, 1, 3, 3, 3))
        assert read(tmp_path, plain((3, 1), named), other).verdict == "holds"

    def test_half_a_download_is_none(self, tmp_path: Path) -> None:
        files = plain((6, 2))
        for content in (b"", snapshot_file([], epoch=2, footer=False), snapshot_file([], epoch=1)):
            found = only(read(tmp_path, replace(files, snapshots={(6, 2): content})), IDS)
            assert found.verdict == "violated" and "ends above the LEO 5" in found.message

    def test_the_image_is_the_downloads(self, tmp_path: Path) -> None:
        """The log ends at 3, in which leader epoch 7 of the partition is not known; what it was elected with is."""
        tail = {"t-0": Partition({0: batch(0, [b"x"], epoch=9)}, [(9, 0)], 1)}
        later = [topic_record("t"), partition_record([1, 2], [1, 2], 2, 9)]
        for content, verdict in ((snapshot_file(later), "holds"), (snapshot_file(CREATED), "violated")):
            files = deciding(e20=content)
            root = write_broker(tmp_path / verdict, 1, {NAME: files, **tail})
            report = check_brokers([read_broker(root)])
            assert only(report, IDS).verdict == "holds"
            assert only(report, "leader_epochs_known_to_controller").verdict == verdict
            assert [each for each in report.checks if each.check == CONTENTS] == [], "the log is no word against it"

    def test_the_log_is_named_with_its_byte_too(self, tmp_path: Path) -> None:
        found = only(read(tmp_path, plain((4, 1))), IDS)
        assert f"{0:020d}.log, byte {len(_log(0, 1, 1, 1))})" in found.message

    def test_epoch_of_a_name_whose_record_is_gone(self, tmp_path: Path) -> None:
        assert only(read(tmp_path, plain((10, 3), start=10, epochs=(3, 3))), IDS).verdict == "holds"
        found = only(read(tmp_path, plain((10, 4), start=10, epochs=(3, 3))), IDS)
        assert found.verdict == "violated" and "goes on at 10 with the older epoch 3" in found.message

    def test_epochs_of_ids_rise(self, tmp_path: Path) -> None:
        found = only(read(tmp_path, plain((7, 3), (9, 2), start=10, epochs=(3, 3))), IDS)
        assert found.verdict == "violated" and "a lower epoch than" in found.message

    def test_an_end_inside_a_batch(self, tmp_path: Path) -> None:
        found = only(read(tmp_path, deciding(e1=snapshot_file([]))), IDS)
        assert found.verdict == "violated" and "inside the batch of offsets 0 to 1" in found.message

    def test_a_damaged_log(self, tmp_path: Path) -> None:
        damaged = bytearray(_log(0, 1, 1, 1))
        damaged[len(_log(0, 1)) + 40] ^= 1
        files = replace(plain((3, 1)), segments={0: bytes(damaged)})
        assert only(read(tmp_path, files), IDS).verdict == "unknown"


class TestBoot:
    """Log start 10, LEO 13."""

    def at(self, tmp_path: Path, *ids: tuple[int, int], epochs: tuple[int, ...] = (2, 2, 2)) -> FilesReport:
        return read(tmp_path, plain(*ids, start=10, epochs=epochs))

    def test_a_log_that_begins_at_0_needs_no_snapshot(self, tmp_path: Path) -> None:
        report = read(tmp_path, plain())
        assert [only(report, rule).verdict for rule in (TEXT, KAFKA)] == ["holds", "holds"]

    @pytest.mark.parametrize("end", [10, 12, 13])
    def test_a_snapshot_at_the_log_start_or_later(self, tmp_path: Path, end: int) -> None:
        report = self.at(tmp_path, (end, 2))
        assert [only(report, rule).verdict for rule in (TEXT, KAFKA)] == ["holds", "holds"]
        assert f"for any high watermark from {end} on; none is on disk" in only(report, TEXT).message

    def test_a_gap_between_snapshot_and_log(self, tmp_path: Path) -> None:
        """The last included offset is LBO - 2 in the text's count."""
        report = self.at(tmp_path, (9, 2))
        text, kafka = only(report, TEXT), only(report, KAFKA)
        assert text.verdict == kafka.verdict == "violated"
        assert "the log counts as empty" in text.message
        assert "the newest is 00000000000000000009-0000000002: Kafka does not start" in kafka.message
        assert text.where == kafka.where and text.where.endswith(f"{10:020d}.log, byte 0")

    def test_no_snapshot_and_no_batch_at_all(self, tmp_path: Path) -> None:
        empty = replace(plain(start=10), segments={10: b""}, cache=[])
        found = only(read(tmp_path, empty), KAFKA)
        assert found.verdict == "violated" and "there is none" in found.message
        assert found.where.endswith(f"{10:020d}.log, byte 0")

    def test_half_a_snapshot_is_none(self, tmp_path: Path) -> None:
        root = write_broker(tmp_path / "b", 1, {NAME: plain(start=10)})
        part = root / NAME / f"{10:020d}-{2:010d}.checkpoint.part"
        part.write_bytes(snapshot_file([], epoch=2)[:50])
        report = check_brokers([read_broker(root)])
        for rule in (TEXT, KAFKA):
            found = only(report, rule)
            assert found.verdict == "violated"
            assert f"({part.name} was still being written and does not count)" in found.message
        (note,) = (each for each in report.problems if each.kind == "unfinished-file")
        assert (note.path, note.byte, note.severity) == (part, 50, "note") and not report.bad_input
        # The same beside a log that needs no snapshot is what Kafka removes at its next start.
        whole = write_broker(tmp_path / "w", 1, {NAME: plain()})
        (whole / NAME / part.name).write_bytes(b"")
        assert check_brokers([read_broker(whole)]).verdict == "holds"

    def test_the_high_watermark_that_was_last_written(self, tmp_path: Path) -> None:
        """Hole A3: by the text a good log counts as empty; Kafka does not ask."""
        for mark, verdict in ((11, "violated"), (12, "holds")):
            root = write_broker(tmp_path / str(mark), 1, {NAME: plain((12, 2), start=10, epochs=(2, 2, 2))})
            (root / "replication-offset-checkpoint").write_text(checkpoint([f"__cluster_metadata 0 {mark}"]))
            report = check_brokers([read_broker(root)])
            assert (only(report, TEXT).verdict, only(report, KAFKA).verdict) == (verdict, "holds")
            assert f"the high watermark {mark}" in only(report, TEXT).message

    def test_a_log_behind_the_newest_snapshot_is_emptied(self, tmp_path: Path) -> None:
        """What a crash between fetching a snapshot and emptying the log leaves."""
        for newest in ((20, 2), (20, 3), (13, 3)):
            found = only(self.at(tmp_path, (10, 2), newest), KAFKA)
            assert found.verdict == "holds" and "Kafka empties this log, which ends at 13" in found.message
        report = self.at(tmp_path, (20, 3))
        assert only(report, TEXT).verdict == "violated", "above the LEO, and so above the high watermark"

    def test_a_log_of_a_later_epoch_below_the_snapshot_is_not(self, tmp_path: Path) -> None:
        found = only(self.at(tmp_path, (20, 2), epochs=(2, 2, 3)), KAFKA)
        assert found.verdict == "violated" and "offsets 13 to 19 are nowhere" in found.message
        assert found.where.endswith(".checkpoint, byte 0")


class TestFiles:
    def fault(self, tmp_path: Path, content: bytes) -> CheckResult:
        found = only(read(tmp_path, deciding(e2=content)), FILES)
        assert "snapshot 00000000000000000002-0000000001: " in found.message or found.verdict != "violated"
        return found

    def test_a_whole_file(self, tmp_path: Path) -> None:
        assert self.fault(tmp_path, snapshot_file(CREATED)).verdict == "holds"

    def test_a_file_that_was_cut_between_two_batches(self, tmp_path: Path) -> None:
        half = snapshot_file(CREATED, footer=False)
        found = self.fault(tmp_path, half)
        assert found.verdict == "violated" and "without a footer" in found.message
        assert found.where.endswith(f".checkpoint, byte {len(half)}")

    def test_a_file_that_was_cut_inside_a_batch(self, tmp_path: Path) -> None:
        report = read(tmp_path, deciding(e2=snapshot_file(CREATED)[:-5]))
        found = only(report, FILES)
        assert found.verdict == "unknown" and "could not be read" in found.message
        assert [each.kind for each in report.problems] == ["truncated-segment"] and report.bad_input
        assert found.where == str(report.problems[0].path)

    def test_empty_file_is_unknown(self, tmp_path: Path) -> None:
        report = read(tmp_path, deciding(e2=b""))
        assert [each.kind for each in report.problems] == ["empty-snapshot"]
        assert only(report, FILES).verdict == "unknown"
        assert not any(each.verdict == "violated" for each in report.checks)

    def test_a_file_without_a_header(self, tmp_path: Path) -> None:
        found = self.fault(tmp_path, batch(0, CREATED, epoch=1))
        assert found.verdict == "violated" and "does not begin with a snapshot header" in found.message

    def test_a_file_of_another_epoch(self, tmp_path: Path) -> None:
        found = self.fault(tmp_path, snapshot_file(CREATED, epoch=3))
        assert found.verdict == "violated" and "a batch of epoch 3" in found.message
        assert found.where.endswith(", byte 0")

    def test_a_file_of_another_end(self, tmp_path: Path) -> None:
        """A renamed snapshot: its header knows when the last record that it includes was appended."""
        found = self.fault(tmp_path, snapshot_file(CREATED, append_time=1_700_000_000_006))
        assert found.verdict == "violated" and "append time 1700000000006" in found.message

    def test_a_lost_batch(self, tmp_path: Path) -> None:
        whole = snapshot_file(CREATED)
        head = len(snapshot_file([], footer=False))
        state = len(batch(1, CREATED, epoch=1))
        found = self.fault(tmp_path, whole[:head] + whole[head + state :])
        assert found.verdict == "violated" and "a batch at offset 3 where 1 comes next" in found.message
        assert found.where.endswith(f".checkpoint, byte {head}")

    def test_a_flipped_bit(self, tmp_path: Path) -> None:
        damaged = bytearray(snapshot_file(CREATED))
        damaged[-20] ^= 1
        report = read(tmp_path, deciding(e2=bytes(damaged)))
        assert only(report, FILES).verdict == "unknown" and report.bad_input


class TestContents:
    def test_what_the_log_decides(self, tmp_path: Path) -> None:
        found = only(read(tmp_path, deciding(e2=snapshot_file(CREATED))), CONTENTS)
        assert found.verdict == "holds" and found.message.startswith("1 snapshots")

    def test_something_else(self, tmp_path: Path) -> None:
        found = only(read(tmp_path, deciding(e2=snapshot_file(ELECTED))), CONTENTS)
        assert found.verdict == "violated" and "has t-0: " in found.message
        assert found.where.endswith(f".checkpoint, byte {len(snapshot_file([], footer=False))}")

    def test_a_record_too_few(self, tmp_path: Path) -> None:
        found = only(read(tmp_path, deciding(e2=snapshot_file(CREATED[:1]))), CONTENTS)
        assert found.verdict == "violated" and "has no t-0, the log up to its end t-0: " in found.message

    def test_a_later_snapshot_against_an_older_one_and_the_log(self, tmp_path: Path) -> None:
        tail = batch(20, [partition_change(leader=2)], epoch=1)
        wrong = partition_record([1, 2], [1, 2], 2, 6)
        for state, verdict in ((ELECTED, "violated"), ([CREATED[0], wrong], "violated")):
            snapshots = {(20, 1): snapshot_file(CREATED), (21, 1): snapshot_file(state)}
            files = Partition({20: tail}, [(1, 20)], None, topic_id=None, snapshots=snapshots)
            # Neither counts the partition's epoch as the change does.
            assert only(read(tmp_path, files), CONTENTS).verdict == verdict

    def test_nothing_to_compare_with(self, tmp_path: Path) -> None:
        report = read(tmp_path, plain((10, 1), start=10, epochs=(1,)))
        assert [each for each in report.checks if each.check == CONTENTS] == []


class TestBetween:
    def test_each_by_itself_with_the_same_records(self, tmp_path: Path) -> None:
        mine, theirs = deciding(e2=snapshot_file(CREATED)), deciding(e2=snapshot_file(list(CREATED)))
        report = read(tmp_path, mine, theirs)
        assert only(report, BETWEEN).verdict == "holds"
        assert not [each for each in report.checks if each.informative and each.check == BETWEEN], "the same bytes"

    def test_the_same_records_in_other_bytes(self, tmp_path: Path) -> None:
        other = topic_record("u", UUID(int=1))
        one = snapshot_file([*CREATED, other])
        head = snapshot_file([], footer=False)
        footer = one[len(head) + len(batch(1, [*CREATED, other], epoch=1)) :]
        two = head + batch(1, [other], epoch=1) + batch(2, CREATED, epoch=1) + footer
        report = read(tmp_path, deciding(e2=one), deciding(e2=two))
        assert only(report, BETWEEN).verdict == "holds", "in another order, in other batches"
        (note,) = (each for each in report.checks if each.check == BETWEEN and each.informative)
        assert "the same records and other bytes" in note.message
        byte = next(i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
        assert note.where.endswith(f".checkpoint, byte {byte}")

    def test_another_record(self, tmp_path: Path) -> None:
        report = read(tmp_path, deciding(e2=snapshot_file(CREATED)), deciding(e2=snapshot_file(ELECTED)))
        found = only(report, BETWEEN)
        assert found.verdict == "violated" and "broker 1 has a record that broker 2 has not" in found.message
        assert found.where.endswith(f".checkpoint, byte {len(snapshot_file([], footer=False))}")

    def test_a_record_twice(self, tmp_path: Path) -> None:
        twice = snapshot_file([*CREATED, CREATED[1]])
        found = only(read(tmp_path, deciding(e2=snapshot_file(CREATED)), deciding(e2=twice)), BETWEEN)
        assert found.verdict == "violated" and "broker 2 has a record that broker 1 has not" in found.message

    def test_another_append_time(self, tmp_path: Path) -> None:
        late = snapshot_file([], epoch=2, append_time=7)
        files = plain((10, 2), start=10, epochs=(2,))
        found = only(read(tmp_path, files, replace(files, snapshots={(10, 2): late})), BETWEEN)
        assert found.verdict == "violated" and "append time" in found.message

    def test_two_epochs_before_one_end(self, tmp_path: Path) -> None:
        report = read(tmp_path, plain((10, 2), start=10, epochs=(3,)), plain((10, 3), start=10, epochs=(3,)))
        found = only(report, BETWEEN)
        assert found.verdict == "violated" and "two epochs before one end" in found.message

    def test_a_name_against_another_log(self, tmp_path: Path) -> None:
        behind = plain((3, 2), start=3, epochs=(2, 2))
        found = only(read(tmp_path, behind, plain((4, 2))), BETWEEN)
        assert found.verdict == "violated" and "broker 2's log epoch 1 before that end" in found.message
        right = plain((3, 1), start=3, epochs=(2, 2))
        assert only(read(tmp_path, right, plain((4, 2))), BETWEEN).verdict == "holds"

    def test_a_log_that_is_yet_to_be_truncated(self, tmp_path: Path) -> None:
        """Nothing of its own says that what it has there is committed."""
        behind = plain((3, 2), start=3, epochs=(2, 2))
        report = read(tmp_path, behind, plain())
        assert [each for each in report.checks if each.check == BETWEEN] == []

    def test_a_damaged_snapshot(self, tmp_path: Path) -> None:
        damaged = bytearray(snapshot_file(CREATED))
        damaged[-20] ^= 1
        report = read(tmp_path, deciding(e2=snapshot_file(CREATED)), deciding(e2=bytes(damaged)))
        assert only(report, BETWEEN).verdict == "unknown"
