"""The log by itself: what it takes and refuses, what it reads, what it says of damage and of a failing disk."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from fencepost.impl.files import DiskFiles, Files, SimulatedFiles, read_file
from fencepost.impl.log import (
    Codec,
    CorruptCheckpoint,
    CorruptLog,
    DataDirectory,
    InvalidAppend,
    Log,
    LogConfig,
    LogError,
    LogOffline,
    OffsetOutOfRange,
    Record,
    encode_batch,
)

from .test_log_batches import message
from .twin import CONFIG, KEY, look, open_directory


def filled(files: Files, count: int = 40, *, config: LogConfig = CONFIG) -> tuple[DataDirectory, Log]:
    """``count`` batches of one to three records; epoch 1 for the first ten, then 2, and so on."""
    directory = open_directory(files, config)
    log = directory.log(*KEY)
    for n in range(count):
        log.append_as_leader([Record(b"%d.%d" % (n, m), timestamp=n) for m in range(n % 3 + 1)], 1 + n // 10)
    return directory, log


def put(files: Files, path: str, change: Callable[[bytes], bytes]) -> None:
    """Change a file's bytes, as no crash does."""
    data = change(read_file(files, path))
    file = files.open(path)
    file.truncate(0)
    file.append(data)
    file.fsync()


@pytest.fixture(params=["disk", "simulated"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return DiskFiles(tmp_path) if request.param == "disk" else SimulatedFiles(1)


def test_a_log_is_the_same_after_a_restart(files: Files) -> None:
    directory, log = filled(files)
    assert len(log.segment_bases) > 4
    before = look(log)
    directory.close()
    log = open_directory(files).log(*KEY)
    assert look(log) == before and log.recovered.cut is None and not log.recovered.removed


def test_every_offset_is_found_with_whole_batches_below_a_bound(files: Files) -> None:
    _, log = filled(files)
    for offset in range(log.end):
        for up_to in (offset, offset + 1, offset + 5, log.end):
            found = log.read(offset, 150, up_to)
            assert sum(batch.size for batch in found[1:]) + (found[0].size if found else 0) <= 150 or len(found) == 1
            assert all(batch.next_offset <= up_to for batch in found)
            assert not found or found[0].base_offset <= offset < found[0].next_offset
            assert [b.base_offset for b in found[1:]] == [b.next_offset for b in found[:-1]]
        assert log.read(offset, 1, log.end)
    assert log.read(log.end) == [] and len(log.read(0, 1 << 30)) == 40
    assert [record.offset for record in log.records(7, 18)] == list(range(7, 18))


def test_a_follower_copies_the_bytes() -> None:
    _, leader = filled(SimulatedFiles(1))
    files = SimulatedFiles(2)
    follower = open_directory(files).log(*KEY)
    while follower.end < leader.end:
        follower.append_as_follower(b"".join(batch.data for batch in leader.read(follower.end, 300)))
    assert look(follower) == look(leader)
    assert b"".join(b.data for b in follower.read(0, 1 << 30)) == b"".join(b.data for b in leader.read(0, 1 << 30))


def test_a_follower_takes_only_what_follows() -> None:
    _, log = filled(SimulatedFiles(1))
    before = look(log)
    good = encode_batch([Record(b"a")], base_offset=log.end, leader_epoch=4)
    for data, what in [
        (encode_batch([Record(b"a")], base_offset=log.end + 1, leader_epoch=4), "where 79 follows"),
        (encode_batch([Record(b"a")], base_offset=log.end - 1, leader_epoch=4), "where 79 follows"),
        (encode_batch([Record(b"a")], base_offset=log.end, leader_epoch=3), "after epoch 4"),
        (good + good, "where 80 follows"),
        (good[:-1], "where 68 are left"),
        (good[:-1] + b"\x01", "CRC-32C"),
        (b"", "no batch"),
        (encode_batch([Record(b"x" * 500)], base_offset=log.end, leader_epoch=4), "the limit is 420"),
    ]:
        with pytest.raises(InvalidAppend, match=what):
            log.append_as_follower(data)
        assert look(log) == before
    assert log.append_as_follower(good).last_offset == 79


def test_a_leader_takes_only_its_own_epoch_and_counted_records() -> None:
    _, log = filled(SimulatedFiles(1))
    for call in (
        lambda: log.append_as_leader([Record(b"a")], 3),
        lambda: log.append_as_leader([Record(b"a")], -1),
        lambda: log.assign_epoch(3),
        lambda: log.append_as_leader([], 4),
        lambda: log.append_as_leader([Record(b"x" * 500)], 4),
        lambda: log.append_batches_as_leader(message(0, b"old"), 4),
        lambda: log.append_batches_as_leader(b"\0" * 70, 4),
    ):
        with pytest.raises(InvalidAppend):
            call()
    info = log.append_batches_as_leader(encode_batch([Record(b"a"), Record(b"b")], codec=Codec.ZSTD), 9)
    assert info[:3] == (79, 80, 9)
    assert [(r.offset, r.leader_epoch, r.value) for r in log.records(79)] == [(79, 9, b"a"), (80, 9, b"b")]


def test_an_epoch_led_with_no_record_goes_when_the_log_is_cut_at_its_end() -> None:
    _, log = filled(SimulatedFiles(1), 5)
    log.assign_epoch(7)
    assert log.latest_epoch == 7 and log.end_offset_for(7) == (7, log.end)
    assert log.truncate_to(log.end + 3) == log.end
    assert log.latest_epoch == 1


def test_a_leaders_empty_epoch_gives_way_to_the_records_of_another() -> None:
    _, log = filled(SimulatedFiles(1), 5)
    log.assign_epoch(7)
    log.append_as_follower(encode_batch([Record(b"a")], base_offset=log.end, leader_epoch=1))
    assert [tuple(entry) for entry in log.epochs.entries] == [(1, 0)]


def test_truncation_inside_a_batch_removes_it_whole() -> None:
    _, log = filled(SimulatedFiles(1), 3)  # offsets 0, 1-2, 3-5
    assert log.truncate_to(5) == 3 == log.end
    assert [record.offset for record in log.records(0)] == [0, 1, 2]
    log.append_as_leader([Record(b"again")], 2)
    assert [tuple(entry) for entry in log.epochs.entries] == [(1, 0), (2, 3)]


def test_old_formats_have_no_epoch_and_clear_the_cache(files: Files) -> None:
    directory, log = filled(files, 5)
    end = log.end
    log.append_as_follower(message(end, b"old", b"k") + message(end + 1, b"older"))
    assert log.latest_epoch == -1 and log.end_offset_for(1) == (-1, -1)
    assert [(r.offset, r.leader_epoch, r.value) for r in log.records(end)] == [
        (end, -1, b"old"),
        (end + 1, -1, b"older"),
    ]
    log.append_as_leader([Record(b"new")], 3)
    directory.close()
    log = open_directory(files).log(*KEY)
    assert log.end == end + 3 and [tuple(entry) for entry in log.epochs.entries] == [(3, end + 2)]
    assert log.truncate_to(end + 1) == end + 1 and log.latest_epoch == -1


def test_control_batches_take_offsets_and_are_not_shown() -> None:
    log = open_directory(SimulatedFiles(1)).log(*KEY)
    import google_crc32c

    marker = bytearray(encode_batch([Record(b"\0\0\0\0\0\0", b"\0\0\0\1")], base_offset=0, leader_epoch=1))
    marker[21:23] = struct.pack(">h", 0x30)
    marker[17:21] = struct.pack(">I", google_crc32c.value(bytes(marker[21:])))
    log.append_as_follower(bytes(marker) + encode_batch([Record(b"seen")], base_offset=1, leader_epoch=1))
    assert [batch.is_control for batch in log.read(0)] == [True, False]
    assert [(record.offset, record.value) for record in log.records(0)] == [(1, b"seen")]


def test_offsets_outside_of_the_log() -> None:
    _, log = filled(SimulatedFiles(1))
    log.delete_before(10)
    for offset in (-1, 9, log.end + 1):
        with pytest.raises(OffsetOutOfRange, match="reset to the nearest") as found:
            log.read(offset)
        assert (found.value.log_start, found.value.end) == (10, log.end)
    for call in (
        lambda: log.truncate_to(-1),
        lambda: log.delete_before(80),
        lambda: log.truncate_fully_and_start_at(-1),
    ):
        with pytest.raises(OffsetOutOfRange):
            call()
    log.delete_before(3)
    assert log.log_start == 10


# -- damage -----------------------------------------------------------------------------------------------------------


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_damage_below_the_recovery_point_names_the_file_and_the_byte(files: Files) -> None:
    directory, log = filled(files)
    directory.close()
    path = f"orders-0/{log.segment_bases[-1]:020d}.log"
    put(files, path, lambda data: flip(data, 70))
    with pytest.raises(CorruptLog, match="everything was synced") as found:
        open_directory(files).log(*KEY)
    assert (found.value.path, found.value.byte) == (path, 0) and f"{path}, byte 0: CRC-32C" in str(found.value)
    put(files, path, lambda data: flip(data, 70)[:-9])
    with pytest.raises(CorruptLog, match="are left") as found:
        open_directory(files).log(*KEY)
    assert found.value.path == path and (found.value.byte or 0) > 0


def test_damage_above_the_recovery_point_is_cut_and_nothing_before_it(files: Files) -> None:
    directory, log = filled(files)
    base = log.segment_bases[2]
    second = log.read(base, 1)[0]
    directory.close()
    files.remove("recovery-point-offset-checkpoint")
    put(files, f"orders-0/{base:020d}.log", lambda data: flip(data, second.size + 30))
    log = open_directory(files).log(*KEY)
    assert log.end == second.next_offset and log.recovered.cut is not None
    assert log.recovered.cut[:2] == (f"orders-0/{base:020d}.log", second.size)
    assert len(log.segment_bases) == 3


def test_damage_is_not_served(files: Files) -> None:
    _, log = filled(files)
    path = f"orders-0/{log.segment_bases[1]:020d}.log"
    file = files.open(path)
    data = flip(file.pread(0, 1000), 65)
    file.truncate(0)
    file.append(data)
    with pytest.raises(CorruptLog, match="byte 0: CRC-32C"):
        log.read(log.segment_bases[1])


def test_a_missing_segment_is_said_so(files: Files) -> None:
    directory, log = filled(files)
    directory.close()
    files.remove(f"orders-0/{log.segment_bases[2]:020d}.log")
    with pytest.raises(CorruptLog, match=f"the next begins at {log.segment_bases[3]}"):
        open_directory(files).log(*KEY)
    for base in log.segment_bases:
        if base != log.segment_bases[2]:
            files.remove(f"orders-0/{base:020d}.log")
    with pytest.raises(CorruptLog, match="ends at offset 0, and was synced up to 79"):
        open_directory(files).log(*KEY)


@pytest.mark.parametrize(
    "change", [lambda _: b"", lambda data: data[:-3], lambda data: bytes(len(data)), lambda _: b"\xff" * 64]
)
def test_a_lost_or_broken_index_is_made_anew(files: Files, change: Callable[[bytes], bytes]) -> None:
    config = LogConfig(segment_bytes=3000, index_interval_bytes=100)
    directory, log = filled(files, 80, config=config)
    directory.close()
    path = f"orders-0/{log.segment_bases[0]:020d}.index"
    whole = read_file(files, path)
    assert len(whole) > 80
    put(files, path, change)
    log = open_directory(files, config).log(*KEY)
    assert all(log.read(offset, 1)[0].base_offset <= offset for offset in range(log.end))
    # A short segment with no entry at all is searched from its start; a rebuilt index is the one that was.
    assert read_file(files, path) == (whole if change(whole) else b"")


def test_leftovers_are_removed(files: Files) -> None:
    directory, log = filled(files)
    directory.close()
    names = ["leader-epoch-checkpoint.tmp", "00000000000000000000.log.deleted", "00000000000000009999.index"]
    for name in names:
        files.open(f"orders-0/{name}", create=True)
    files.open("replication-offset-checkpoint.tmp", create=True)
    log = open_directory(files).log(*KEY)
    assert sorted(log.recovered.removed) == sorted(f"orders-0/{name}" for name in names)
    assert not set(names) & set(files.list("orders-0")) and "replication-offset-checkpoint.tmp" not in files.list("")


def test_a_lost_epoch_checkpoint_is_rebuilt_from_the_batches(files: Files) -> None:
    directory, log = filled(files)
    entries = log.epochs.entries
    directory.close()
    files.remove("orders-0/leader-epoch-checkpoint")
    assert open_directory(files).log(*KEY).epochs.entries == entries


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("1\n0\n", 1),
        ("0\n2\n1 0\n", 2),
        ("0\n1\n1 0", 2),
        ("0\n1\n1\n", 3),
        ("0\n2\n1 0\n1 5\n", 4),
        ("0\n1\n1 x\n", 3),
    ],
)
def test_a_broken_epoch_checkpoint_names_its_line(text: str, line: int) -> None:
    files = SimulatedFiles(1)
    directory, _ = filled(files)
    directory.close()
    put(files, "orders-0/leader-epoch-checkpoint", lambda _: text.encode())
    with pytest.raises(CorruptCheckpoint, match="delete the file: opening the log rebuilds it") as found:
        open_directory(files).log(*KEY)
    assert found.value.line == line and "\n" not in str(found.value)


@pytest.mark.parametrize("text", ["0\n1\norders 0\n", "0\n1\norders 0 -5\n", "0\n2\na 0 1\na 0 2\n", "\xff"])
def test_a_broken_offset_checkpoint_is_refused(text: str) -> None:
    files = SimulatedFiles(1)
    directory, _ = filled(files)
    directory.close()
    put(files, "recovery-point-offset-checkpoint", lambda _: text.encode("latin1"))
    with pytest.raises(CorruptCheckpoint, match="recovered as a whole"):
        open_directory(files)


# -- failing disks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["append", "fsync", "rename", "fsync_dir", "truncate"])
def test_a_failed_operation_takes_the_log_offline_and_a_restart_brings_it_back(operation: str) -> None:
    files = SimulatedFiles(1)
    _, log = filled(files, 9)
    log.flush()
    kept = look(log)

    def fail(called: str, path: str) -> None:
        if called == operation:
            raise OSError(errno.EIO, "Input/output error", path)

    files.hook = fail

    def work() -> None:
        log.append_as_leader([Record(b"a")], 1)
        log.append_as_leader([Record(b"b")], 5)  # a new epoch: its checkpoint is written

    with pytest.raises(LogOffline, match="Input/output error"):
        work()
    files.hook = None
    for call in (
        log.flush,
        lambda: log.append_as_leader([Record(b"a")], 9),
        lambda: log.truncate_to(0),
        lambda: log.read(0),
    ):
        with pytest.raises(LogOffline, match="open the log again"):
            call()
    files.crash(3)
    again = look(open_directory(files).log(*KEY))
    assert again.rows[: len(kept.rows)] == kept.rows


@pytest.mark.parametrize("capacity", range(0, 900, 37))
def test_a_disk_that_fills_up_loses_nothing_that_was_synced(capacity: int) -> None:
    files = SimulatedFiles(capacity)
    directory = open_directory(files)
    log = directory.log(*KEY)
    files.capacity = files.used + capacity
    synced = 0

    def work() -> None:
        nonlocal synced
        for n in range(100):
            log.append_as_leader([Record(b"%d" % n)], n // 5)
            synced = log.flush()

    with pytest.raises(LogOffline, match="No space left"):
        work()
    files.capacity = None
    if capacity % 2:
        assert directory.reopen(*KEY).end >= synced
    files.crash(capacity)
    assert [r.value for r in open_directory(files).log(*KEY).records(0)][:synced] == [b"%d" % n for n in range(synced)]


# -- the data directory -----------------------------------------------------------------------------------------------


def test_a_directory_is_of_one_node(files: Files) -> None:
    open_directory(files)
    with pytest.raises(LogError, match=r"node\.id is '1', this node has '2'"):
        DataDirectory(files, node_id=2, cluster_id="Rj_brD27af2db7ETxjjJIw")
    for topic in ("", "a/b", "..", "a" * 250):
        with pytest.raises(LogError, match="names no partition"):
            open_directory(files).log(topic, 0)


def test_partitions_are_listed_and_deleted(files: Files) -> None:
    directory, _ = filled(files, 3)
    directory.log("other-topic", 12).append_as_leader([Record(b"1")], 0)
    directory.flush()
    directory.store_high_watermarks({KEY: 2, ("other-topic", 12): 1})
    assert directory.partitions() == [KEY, ("other-topic", 12)]
    directory.delete(*KEY)
    directory.close()
    directory = open_directory(files)
    assert directory.partitions() == [("other-topic", 12)] and not [n for n in files.list("") if "delete" in n]
    assert directory.high_watermark("other-topic", 12) == 1 and directory.high_watermark(*KEY) == 0
    assert directory.log(*KEY).end == 0
