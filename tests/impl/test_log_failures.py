"""A log that a failing disk took offline, brought back in the same process: what it then says is synced must be."""

from __future__ import annotations

import errno

import pytest
from fencepost.impl.files.simulated import SimulatedFiles
from fencepost.impl.log import DataDirectory, LogConfig, LogOffline, Record
from fencepost.impl.log.checkpoints import HIGH_WATERMARKS, LEADER_EPOCHS, RECOVERY_POINTS, read_offsets

KEY = ("t", 0)


def failing(*operations: str):
    def hook(operation: str, path: str) -> None:
        if operation in operations:
            raise OSError(errno.EIO, "Input/output error", path)

    return hook


def open_directory(files: SimulatedFiles, segment_bytes: int = 1 << 20) -> DataDirectory:
    return DataDirectory(files, node_id=0, cluster_id="c", config=LogConfig(segment_bytes=segment_bytes))


@pytest.mark.parametrize("seed", range(20))
def test_a_folder_whose_name_could_not_be_synced_is_made_anew(seed: int) -> None:
    files = SimulatedFiles(seed)
    directory = open_directory(files)
    files.hook = failing("fsync_dir")
    with pytest.raises(OSError, match="Input"):
        directory.log(*KEY)
    files.hook = None
    log = directory.log(*KEY)
    log.append_as_leader([Record(b"kept")], 0)
    log.flush()
    files.crash(seed)
    assert open_directory(files).log(*KEY).end == 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("segment_bytes", [100, 1 << 20])
def test_what_a_failed_sync_lost_is_there_after_a_reopened_log_was_flushed(seed: int, segment_bytes: int) -> None:
    files = SimulatedFiles(seed)
    directory = open_directory(files, segment_bytes)
    log = directory.log(*KEY)
    log.append_as_leader([Record(b"first")], 0)
    files.hook = failing("fsync", "fsync_dir")
    with pytest.raises(LogOffline):  # the epoch is synced before its first batch
        log.append_as_leader([Record(b"second")], 1)
    files.hook = None
    log = directory.reopen(*KEY)
    log.append_as_leader([Record(b"third")], 2)
    synced = log.flush()
    before = [record.value for record in log.records(0)]
    files.crash(seed)
    log = open_directory(files, segment_bytes).log(*KEY)
    assert log.end == synced and [record.value for record in log.records(0)] == before


@pytest.mark.parametrize("seed", range(20))
def test_records_that_a_failed_sync_lost_are_written_anew(seed: int) -> None:
    files = SimulatedFiles(seed)
    directory = open_directory(files)
    log = directory.log(*KEY)
    log.append_as_leader([Record(b"first")], 0)
    files.hook = failing("fsync")
    with pytest.raises(LogOffline):
        log.flush()
    files.hook = None
    log = directory.reopen(*KEY)
    assert log.end == log.flush() == 1
    files.crash(seed)
    assert open_directory(files).log(*KEY).end == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_segment_whose_removal_could_not_be_synced_does_not_come_back(seed: int) -> None:
    files = SimulatedFiles(seed)
    directory = open_directory(files, 100)
    log = directory.log(*KEY)
    for number in range(4):
        log.append_as_leader([Record(b"%d" % number)], 0)
    log.flush()
    files.hook = failing("fsync_dir")
    with pytest.raises(LogOffline):
        log.truncate_to(1)
    files.hook = None
    log = directory.reopen(*KEY)
    end = log.truncate_to(1)
    files.crash(seed)
    assert open_directory(files, 100).log(*KEY).end == end == 1


@pytest.mark.parametrize("operation", ["append", "fsync", "rename", "fsync_dir"])
def test_a_checkpoint_that_could_not_be_written_is_written_anew_when_a_log_is_reopened(operation: str) -> None:
    """Else a crash brings back what was never acted on: a leader epoch, or a high watermark above what was cut."""
    for seed in range(20):
        files = SimulatedFiles(seed)
        directory = open_directory(files)
        directory.log(*KEY).append_as_leader([Record(b"first")], 0)
        directory.store_leader_epoch(*KEY, 1)
        directory.store_high_watermarks({KEY: 0})
        files.hook = failing(operation)
        with pytest.raises(OSError, match="Input"):
            directory.store_leader_epoch(*KEY, 2)
        with pytest.raises(OSError, match="Input"):
            directory.store_high_watermarks({KEY: 1})
        files.hook = None
        directory.reopen(*KEY)
        files.crash(seed)
        directory = open_directory(files)
        assert (directory.leader_epoch(*KEY), directory.high_watermark(*KEY)) == (1, 0)


def test_a_crash_in_the_midst_of_a_deletion_leaves_no_line_of_the_partition() -> None:
    """Its folder went first: the lines would stay for good, as nobody deletes it again."""
    files = SimulatedFiles(1)
    directory = open_directory(files)
    for key in (KEY, ("u", 0)):
        directory.log(*key)
        directory.store_leader_epoch(*key, 3)
        directory.store_high_watermarks({key: 0})
    directory.store_recovery_points()
    names = (LEADER_EPOCHS, HIGH_WATERMARKS, RECOVERY_POINTS)

    def fails(operation: str, path: str) -> None:
        if "checkpoint" in path:
            raise OSError(errno.EIO, "Input/output error", path)

    files.hook = fails
    with pytest.raises(OSError, match="Input"):
        directory.delete(*KEY)
    files.hook = None
    files.crash(1)
    assert not files.exists("t-0") and all(KEY in read_offsets(files, name, "") for name in names)
    opened = open_directory(files)
    assert all(read_offsets(files, name, "").keys() == {("u", 0)} for name in names)
    assert opened.leader_epoch("u", 0) == 3 and opened.leader_epoch(*KEY) == -1
