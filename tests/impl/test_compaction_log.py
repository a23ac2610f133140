"""Logs with holes: read, copied, truncated, recovered where ``cleanup.policy=compact``, and refused elsewhere."""

from __future__ import annotations

import random

import pytest
from fencepost.impl.files import DiskFiles, Files, SimulatedFiles
from fencepost.impl.log import CorruptLog, DataDirectory, InvalidAppend, Log, LogConfig, OffsetOutOfRange, Record
from fencepost.impl.log.batch import encode_batch, read_batches
from fencepost.impl.log.checkpoints import CLEANED_OFFSETS, RECOVERY_POINTS

COMPACT = LogConfig(segment_bytes=600, index_interval_bytes=0, cleanup_policy="compact")
DELETE = LogConfig(segment_bytes=600, index_interval_bytes=0)


def directory(files: Files, config: LogConfig = COMPACT) -> DataDirectory:
    return DataDirectory(files, node_id=1, cluster_id="test", topics={"t": config})


def batch(offset: int, count: int = 1, epoch: int = 0) -> bytes:
    return encode_batch([Record(b"v%d" % offset, b"k", offset)] * count, base_offset=offset, leader_epoch=epoch)


def holed(files: Files) -> Log:
    """Offsets 0 and 1, 5, 6 and 7, and then 300 on, one a batch."""
    log = directory(files).log("t", 0)
    for offset, count in ((0, 2), (5, 1), (6, 2)):
        log.append_as_follower(batch(offset, count))
    log.append_as_follower(b"".join(batch(offset) for offset in range(300, 310)))
    return log


OFFSETS = [0, 1, 5, 6, 7, *range(300, 310)]


def offsets(log: Log, start: int = 0) -> list[int]:
    return [record.offset for record in log.records(start)]


def test_a_follower_copies_a_hole_and_serves_what_follows(tmp_path: object) -> None:
    log = holed(SimulatedFiles())
    assert offsets(log) == OFFSETS and log.end == 310 and len(log.segment_bases) > 1
    assert offsets(log, 2) == offsets(log, 5) == OFFSETS[2:] and offsets(log, 8) == OFFSETS[5:]
    assert [each.base_offset for each in log.read(9, 1)] == [300]
    assert log.read(9, up_to=300) == [] and log.read(2, up_to=6)[-1].last_offset == 5
    with pytest.raises(OffsetOutOfRange):
        log.read(311)


def test_a_hole_is_refused_where_the_log_is_not_compacted() -> None:
    log = directory(SimulatedFiles(), DELETE).log("t", 0)
    log.append_as_follower(batch(0))
    with pytest.raises(InvalidAppend, match="where 1 follows"):
        log.append_as_follower(batch(5))
    assert log.end == 1


@pytest.mark.parametrize("offset", [0, 4])
def test_an_offset_that_is_there_is_no_hole(offset: int) -> None:
    log = holed(SimulatedFiles())
    with pytest.raises(InvalidAppend):
        log.append_as_follower(batch(offset))


def test_opening_finds_the_holes_that_were_flushed(tmp_path: object) -> None:
    files = SimulatedFiles(7)
    holed(files).flush()
    for seed in range(20):
        there = directory(files.crashed_copy(seed)).log("t", 0)
        assert offsets(there) == OFFSETS and there.end == 310 and there.recovered.cut is None


def test_a_log_that_was_compacted_may_have_holes_whatever_its_topic_says_now() -> None:
    """Its line in the cleaner's checkpoint says so: a broker hears of its topics' settings after it has opened logs."""
    files = SimulatedFiles()
    holed(files).flush()
    assert b"t 0 0" in files.open(CLEANED_OFFSETS).pread(0, 99)
    there = directory(files, DELETE)
    log = there.log("t", 0)
    assert offsets(log) == OFFSETS and log.config.cleanup_policy == "compact,delete"
    there.configure("t", None)
    assert offsets(log) == OFFSETS


def test_they_are_damage_in_a_log_that_never_was_compacted() -> None:
    files = SimulatedFiles()
    holed(files).flush()
    files.remove(CLEANED_OFFSETS)
    log = directory(files, DELETE).log("t", 0)  # by its index, and what is synced is not looked at
    with pytest.raises(CorruptLog, match="where 2 follows"):
        offsets(log)
    files.remove(RECOVERY_POINTS)
    assert offsets(directory(files, DELETE).log("t", 0)) == [0, 1]


def test_without_the_recovery_point_the_holes_are_believed_and_one_is_stored() -> None:
    files = SimulatedFiles()
    holed(files).flush()
    files.remove(RECOVERY_POINTS)
    assert offsets(directory(files).log("t", 0)) == OFFSETS
    assert directory(files).log("t", 0).recovered.cut is None
    assert files.exists(RECOVERY_POINTS)


def test_a_tear_in_a_base_offset_is_not_taken_for_a_hole() -> None:
    """767 is 0x02ff: with its last byte torn off it would be 512, and no CRC says so."""
    for flushed in (False, True):
        files = SimulatedFiles()
        log = directory(files).log("t", 0)
        log.append_as_follower(batch(0))
        log.flush()
        log.append_as_follower(batch(767))
        if flushed:
            log.flush()
        name = "t-0/" + "0" * 20 + ".log"
        file = files.open(name)
        data = bytearray(file.pread(0, file.size))
        if not flushed:
            data[len(batch(0)) + 7] = 0
        file.truncate(0)
        file.append(bytes(data))
        there = directory(files).log("t", 0)
        assert offsets(there) == ([0, 767] if flushed else [0])


@pytest.mark.parametrize(
    ("cut", "end"), [(310, 310), (305, 305), (300, 8), (200, 8), (8, 8), (7, 6), (6, 6), (5, 2), (3, 2), (1, 0)]
)
def test_truncation_ends_where_a_restart_would(cut: int, end: int) -> None:
    """In a hole: at the end of the batch before it, for offsets in it may have records on another leader."""
    files = SimulatedFiles(cut)
    config = LogConfig(index_interval_bytes=0, cleanup_policy="compact")
    log = directory(files, config).log("t", 0)
    for offset, count in ((0, 2), (5, 1), (6, 2)):
        log.append_as_follower(batch(offset, count))
    log.append_as_follower(b"".join(batch(offset) for offset in range(300, 310)))
    log.flush()
    assert log.truncate_to(cut) == log.end == end
    assert directory(files.crashed_copy(cut), config).log("t", 0).end == end
    log.append_as_follower(batch(end, epoch=1))
    log.flush()
    assert offsets(log)[-1] == end


def test_truncation_lowers_how_far_the_log_is_cleaned_before_it_cuts() -> None:
    files = SimulatedFiles()
    place = directory(files)
    log = place.log("t", 0)
    log.append_as_follower(b"".join(batch(offset) for offset in range(10)))
    log.flush()
    place.store_cleaned("t", 0, 8)
    log.truncate_to(9)
    assert place.cleaned("t", 0) == 8
    cuts: list[int] = []

    def hook(operation: str, path: str) -> None:
        if operation in ("truncate", "remove") and path.startswith("t-0/"):
            cuts.append(directory(files.crashed_copy(0)).cleaned("t", 0))

    files.hook = hook
    log.truncate_to(4)
    files.hook = None
    assert cuts and set(cuts) == {4} and place.cleaned("t", 0) == 4
    log.truncate_fully_and_start_at(2)
    assert place.cleaned("t", 0) == 0
    assert directory(files).log("t", 0).end == 2
    place.delete("t", 0)
    assert files.exists(CLEANED_OFFSETS) and "t 0" not in files.open(CLEANED_OFFSETS).pread(0, 99).decode()


def test_a_random_follower_is_a_copy_after_any_crash() -> None:
    """Batches with random holes, flushed now and then: what was flushed is there, and nothing else but what came."""
    chance = random.Random(280)
    for seed in range(150):
        files = SimulatedFiles(seed)
        log = directory(files).log("t", 0)
        sent: list[bytes] = []
        flushed = end = 0
        for _ in range(chance.randrange(1, 25)):
            if chance.random() < 0.5:
                end += chance.choice((1, 2, 255, 256, 600, 70_000))
            count = chance.randint(1, 3)
            sent.append(batch(end, count))
            log.append_as_follower(sent[-1])
            end += count
            if chance.random() < 0.3:
                log.flush()
                flushed = len(sent)
        there = directory(files.crashed_copy(seed)).log("t", 0)
        found = [each.data for each in there.read(0, 1 << 20)] if there.end else []
        assert found == sent[: len(found)] and len(found) >= flushed, seed


def test_on_a_real_disk(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("holes")
    log = holed(DiskFiles(root))
    log.close()
    there = directory(DiskFiles(root)).log("t", 0)
    assert offsets(there) == OFFSETS
    assert sum(len(list(read_batches(each.data))) for each in there.read(0)) == 13
    there.close()
