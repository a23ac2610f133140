"""Each check on one replica's files: the planted fault that it finds, beside the clean case that it passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.checks import check_brokers

from .encoder import (
    Partition,
    batch,
    config_record,
    log,
    metadata_partition,
    partition,
    partition_record,
    topic_record,
    write_broker,
)

if TYPE_CHECKING:
    from pathlib import Path

    from fencepost.traces.kafka.checks import FilesReport
    from fencepost.traces.kafka.verdicts import CheckResult


def result(
    tmp_path: Path,
    check: str,
    files: Partition,
    *,
    clean: bool = False,
    name: str = "t-0",
    metadata: Partition | None = None,
) -> CheckResult:
    partitions = {name: files}
    if metadata is not None:
        partitions["__cluster_metadata-0"] = metadata
    root = tmp_path / f"b{len(list(tmp_path.iterdir()))}"
    report = check_brokers([read_broker(write_broker(root, 1, partitions, clean=clean))])
    (found,) = (c for c in report.checks if c.check == check and c.subject == f"broker 1: {name}")
    assert "\n" not in str(found)
    return found


def verdict(tmp_path: Path, check: str, files: Partition, *, clean: bool = False) -> str:
    return result(tmp_path, check, files, clean=clean).verdict


def test_clean_partition_passes_every_check(tmp_path: Path) -> None:
    root = write_broker(tmp_path / "b", 1, {"t-0": partition(0, 0, 2, 5, hw=3)})
    report = check_brokers([read_broker(root)])
    assert [(c.check, c.verdict) for c in report.checks if not c.informative] == [
        ("epochs_monotone", "holds"),
        ("epoch_cache_matches_batches", "holds"),
        ("offsets_contiguous", "holds"),
        ("log_start_hw_leo_ordered", "holds"),
        ("topic_ids_match", "holds"),
    ]
    assert report.verdict == "holds" and not report.bad_input


def test_a_checkpoint_that_was_never_written_to(tmp_path: Path) -> None:
    """Kafka makes the file of no bytes: an empty replica holds, of a killed one with records nothing is known."""

    def found(*epochs: int) -> FilesReport:
        root = write_broker(tmp_path / str(len(epochs)), 1, {"t-0": partition(*epochs)})
        (root / "t-0" / "leader-epoch-checkpoint").write_bytes(b"")
        (root / "log-start-offset-checkpoint").write_bytes(b"")
        return check_brokers([read_broker(root)])

    report = found()
    assert (report.verdict, report.problems) == ("holds", ())
    report = found(0, 0)
    assert report.problems == ()
    assert {c.check: c.verdict for c in report.checks}["epoch_cache_matches_batches"] == "unknown"


def test_epoch_going_backwards(tmp_path: Path) -> None:
    found = result(tmp_path, "epochs_monotone", Partition({0: log(0, 2, 1)}, [(0, 0), (2, 1)], 3))
    assert found.verdict == "violated"
    assert found.message == "leader epoch 1 at offset 2 after epoch 2 before it"
    assert found.where.endswith(f".log, byte {len(log(0, 2))}")


def test_epoch_going_backwards_across_segments(tmp_path: Path) -> None:
    files = Partition({0: log(0, 2), 2: log(1, start=2)}, [(0, 0), (2, 1)], 3)
    found = result(tmp_path, "epochs_monotone", files)
    assert found.verdict == "violated" and f"{2:020d}.log, byte 0" in found.where


class TestEpochCache:
    check = "epoch_cache_matches_batches"
    epochs = (0, 0, 1, 3, 3)

    def cached(self, *cache: tuple[int, int], **more: int) -> Partition:
        return Partition({0: log(*self.epochs)}, list(cache), 5, **more)

    def test_same_as_the_batches(self, tmp_path: Path) -> None:
        assert verdict(tmp_path, self.check, self.cached((0, 0), (1, 2), (3, 3)), clean=True) == "holds"

    def test_epoch_at_the_leo_with_no_record_yet(self, tmp_path: Path) -> None:
        assert verdict(tmp_path, self.check, self.cached((0, 0), (1, 2), (3, 3), (4, 5)), clean=True) == "holds"

    def test_entry_above_the_leo(self, tmp_path: Path) -> None:
        stale = self.cached((0, 0), (1, 2), (3, 3), (4, 7))
        assert verdict(tmp_path, self.check, stale) == "unknown"
        assert verdict(tmp_path, self.check, stale, clean=True) == "violated"

    def test_missing_entry(self, tmp_path: Path) -> None:
        found = result(tmp_path, self.check, self.cached((0, 0), (3, 3)))
        assert found.verdict == "violated"
        assert "epoch 1 from offset 2" in found.message and found.where.endswith("leader-epoch-checkpoint")

    @pytest.mark.parametrize("start", [1, 2])
    def test_entry_at_another_offset(self, tmp_path: Path, start: int) -> None:
        files = Partition({0: log(0, 0, 0, 1)}, [(0, 0), (1, start)], 4)
        found = result(tmp_path, self.check, files)
        assert found.verdict == "violated"
        assert found.message == f"epoch 1 begins at 3 in the batches and at {start} in the cache"

    def test_entry_with_no_batch_in_the_middle(self, tmp_path: Path) -> None:
        files = Partition({0: log(0, 0, 0, 3)}, [(0, 0), (1, 2), (3, 3)], 4)
        found = result(tmp_path, self.check, files)
        assert found.verdict == "violated" and "cache has epoch 1 from offset 2" in found.message

    @pytest.mark.parametrize("cache", [[(0, 0), (3, 3), (1, 2)], [(0, 0), (0, 1)], [(0, 2), (1, 2), (3, 3)]])
    def test_entries_that_do_not_rise(self, tmp_path: Path, cache: list[tuple[int, int]]) -> None:
        found = result(tmp_path, self.check, self.cached(*cache))
        assert found.verdict == "violated" and "does not rise" in found.message

    def test_entries_clamped_to_the_log_start(self, tmp_path: Path) -> None:
        clamped = self.cached((1, 2), (3, 3), log_start=2)
        assert verdict(tmp_path, self.check, clamped, clean=True) == "holds"
        inside = self.cached((3, 4), log_start=4)
        assert verdict(tmp_path, self.check, inside, clean=True) == "holds"
        not_flushed = self.cached((0, 0), (1, 2), (3, 3), log_start=4)
        assert verdict(tmp_path, self.check, not_flushed) == "holds"
        wrong = self.cached((1, 4), log_start=4)
        assert verdict(tmp_path, self.check, wrong) == "violated"

    def test_start_below_what_compaction_left(self, tmp_path: Path) -> None:
        data = batch(0, [b"a"], epoch=0) + batch(5, [b"b"], epoch=2) + batch(9, [b"c"], epoch=3)
        kept = Partition({0: data}, [(0, 0), (1, 2), (2, 4), (3, 7)], 10)
        assert verdict(tmp_path, self.check, kept) == "holds"
        over = Partition({0: data}, [(0, 0), (2, 6), (3, 7)], 10)
        assert verdict(tmp_path, self.check, over) == "violated"

    def test_no_cache_or_a_broken_one(self, tmp_path: Path) -> None:
        assert verdict(tmp_path, self.check, Partition({0: log(0)}, None, 1)) == "unknown"
        assert verdict(tmp_path, self.check, Partition({0: b""}, None, 0)) == "holds"
        assert verdict(tmp_path, self.check, Partition({0: b""}, [], 0)) == "holds"
        root = write_broker(tmp_path / "broken", 1, {"t-0": partition(0, 1)})
        (root / "t-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 x\n")
        (found,) = (c for c in check_brokers([read_broker(root)]).checks if c.check == self.check)
        assert found.verdict == "unknown"


class TestOffsetsOrdered:
    check = "log_start_hw_leo_ordered"

    def test_equal_ends_hold(self, tmp_path: Path) -> None:
        assert verdict(tmp_path, self.check, partition(0, 0, hw=2), clean=True) == "holds"
        assert verdict(tmp_path, self.check, partition(0, 0, hw=0), clean=True) == "holds"

    def test_high_watermark_above_the_leo(self, tmp_path: Path) -> None:
        found = result(tmp_path, self.check, partition(0, 0, hw=3), clean=True)
        assert found.verdict == "violated"
        assert found.message == "checkpointed high watermark 3 is above the LEO 2, after a clean shutdown"
        assert found.where.endswith("replication-offset-checkpoint")

    def test_torn_tail_below_the_high_watermark(self, tmp_path: Path) -> None:
        """A power loss takes unsynced records, and Kafka lowers the high watermark at the next start."""
        files = Partition({0: log(0, 0)[:-3]}, [(0, 0)], 2)
        assert verdict(tmp_path, self.check, files) == "unknown"
        assert verdict(tmp_path, self.check, files, clean=True) == "violated"

    def test_high_watermark_below_the_log_start(self, tmp_path: Path) -> None:
        files = partition(0, 0, 0, hw=1)
        files.log_start = 2
        assert verdict(tmp_path, self.check, files) == "unknown"
        assert verdict(tmp_path, self.check, files, clean=True) == "violated"

    def test_log_start_above_the_leo(self, tmp_path: Path) -> None:
        files = partition(0, 0, hw=2)
        files.log_start = 3
        assert verdict(tmp_path, self.check, files) == "violated"

    def test_no_high_watermark(self, tmp_path: Path) -> None:
        files = partition(0, 0)
        files.high_watermark = None
        assert verdict(tmp_path, self.check, files) == "unknown"


class TestContiguous:
    check = "offsets_contiguous"
    holed = Partition({0: log(0, 0) + log(0, start=5)}, [(0, 0)], 6)

    def with_policy(self, policy: str | None) -> Partition:
        configs = [config_record("t", "cleanup.policy", policy)] if policy else []
        return metadata_partition([topic_record("t"), *configs, partition_record([1], [1], 1)])

    def test_policy_that_was_set_later_proves_nothing(self, tmp_path: Path) -> None:
        later = config_record("t", "cleanup.policy", "delete")
        metadata = metadata_partition([topic_record("t"), partition_record([1], [1], 1), later])
        assert result(tmp_path, self.check, self.holed, metadata=metadata).verdict == "unknown"

    def test_gap_by_cleanup_policy(self, tmp_path: Path) -> None:
        expected = {None: "unknown", "compact": "holds", "compact,delete": "holds", "delete": "violated"}
        for policy, wanted in expected.items():
            found = result(tmp_path, self.check, self.holed, metadata=self.with_policy(policy))
            assert found.verdict == wanted, policy
            assert "offsets 2 to 4" in found.message

    def test_records_missing_inside_a_batch(self, tmp_path: Path) -> None:
        files = Partition({0: batch(0, [b"a", b"b"], deltas=[0, 3])}, [(0, 0)], 4)
        assert verdict(tmp_path, self.check, files) == "unknown"

    def test_gap_in_the_metadata_log(self, tmp_path: Path) -> None:
        files = Partition({0: log(1, 1) + log(1, start=5)}, [(1, 0)], None)
        name = "__cluster_metadata-0"
        assert result(tmp_path, self.check, files, name=name).verdict == "violated"

    def test_missing_segment(self, tmp_path: Path) -> None:
        files = Partition({0: log(0, 0), 5: log(0, start=5)}, [(0, 0)], 6)
        metadata = self.with_policy("delete")
        assert result(tmp_path, self.check, files, metadata=metadata).verdict == "violated"


def test_crc_damage_makes_clean_verdicts_unknown(tmp_path: Path) -> None:
    data = bytearray(log(0, 0, 1, 1))
    data[len(log(0)) + 40] ^= 1
    files = Partition({0: bytes(data)}, [(0, 0), (1, 2)], 4)
    for check in ("epochs_monotone", "epoch_cache_matches_batches", "offsets_contiguous"):
        assert verdict(tmp_path, check, files) == "unknown", check


def test_metadata_log_as_a_plain_log(tmp_path: Path) -> None:
    found = result(tmp_path, "log_start_hw_leo_ordered", metadata_partition([]), name="__cluster_metadata-0")
    assert found.verdict == "holds" and "no high watermark" in found.message
