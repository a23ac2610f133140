"""When a log is cleaned and up to where; tombstones, transactions, producers, old formats, damage and failing disks."""

from __future__ import annotations

import errno
import random
import struct

import pytest
from fencepost.impl.compaction import Strategy, Table
from fencepost.impl.compaction.headers import ABORT, COMMIT
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import Codec, LogConfig, LogOffline, Record, encode_batch, read_batches
from fencepost.impl.log.checkpoints import CLEANED_OFFSETS
from fencepost.impl.log.legacy import encode_message
from fencepost.impl.log.records import StoredRecord
from fencepost.impl.log.segment import RELATIVE_OFFSETS

from .compacted import KEY, STRATEGIES, Place, fill, settings, stored

TIMESTAMP = STRATEGIES[1]
WIDE = LogConfig(segment_bytes=1 << 20, index_interval_bytes=0, cleanup_policy="compact")


def place(strategy: Strategy = STRATEGIES[0], log: LogConfig = WIDE, **more: int | float) -> Place:
    return Place(SimulatedFiles(1), settings(strategy, **more), log=log)


def put(here: Place, key: bytes, value: bytes | None, timestamp: int = 0) -> int:
    return here.log.append_as_leader([Record(value, key, timestamp)], 0).first_offset


def offsets(here: Place) -> list[int]:
    return [each.offset for each in stored(here.log)]


# -- tombstones ----------------------------------------------------------------------------------------------------


def test_a_tombstone_stays_until_its_delete_horizon() -> None:
    here = place(delete_retention_ms=100)
    put(here, b"a", b"1")
    put(here, b"a", None)
    here.now = 1000
    here.clean()
    (batch,) = here.log.read(1)
    assert batch.delete_horizon == 1100 and batch.records()[0].timestamp == 0
    for now, left in ((1099, [1]), (1100, [])):
        here.now = now
        put(here, b"b%d" % now, b"x")
        here.clean()
        assert [each for each in offsets(here) if each < 2] == left


def test_under_a_rank_it_stays_while_what_it_beats_is_there() -> None:
    """The beaten record is behind what is cleaned, then dirty, and then gone; a reader never sees it come back."""
    here = place(TIMESTAMP, delete_retention_ms=0)
    put(here, b"a", None, 9)
    put(here, b"b", b"1", 9)
    here.clean()
    put(here, b"a", b"late", 5)  # in the active segment
    put(here, b"c", b"1", 9)
    here.now = 1 << 40
    assert here.table(TIMESTAMP) == {b"b": b"1", b"c": b"1"}
    here.directory.store_cleaned(*KEY, 1)
    here.clean(roll=False)
    assert offsets(here) == [0, 1, 2, 3]
    here.clean()
    assert offsets(here) == [0, 1, 3]
    put(here, b"d", b"1", 9)
    here.clean()
    assert offsets(here) == [1, 3, 4]
    assert here.table(TIMESTAMP) == {b"b": b"1", b"c": b"1", b"d": b"1"}


def test_one_that_is_dirty_stays_past_its_horizon_under_a_rank() -> None:
    """As a follower copies it, with the horizon that its leader has set; what it beats may be behind it."""
    for strategy, left in ((STRATEGIES[0], False), (TIMESTAMP, True)):
        source = place(strategy, delete_retention_ms=0)
        put(source, b"a", None, 9)
        source.clean()
        here = place(strategy, delete_retention_ms=0)
        here.log.append_as_follower(source.log.read(0)[0].data)
        here.now = 1
        put(here, b"b", b"1", 9)
        here.clean()
        assert (0 in offsets(here)) is left


def test_without_room_for_the_tail_no_tombstone_goes() -> None:
    here = Place(SimulatedFiles(1), settings(TIMESTAMP, delete_retention_ms=0), log=WIDE, memory=96)
    put(here, b"a", None, 9)
    here.clean()
    put(here, b"b", b"1", 9)
    for number in range(4):
        put(here, b"tail%d" % number, b"1", 9)
    here.now = 1
    here.log.roll()
    what = here.cleaner.cleanable(KEY, 2)
    assert what is not None
    here.cleaner.clean(what)
    assert 0 in offsets(here)
    here.clean()
    put(here, b"c", b"1", 9)
    here.clean()
    put(here, b"e", b"1", 9)
    here.clean()
    assert 0 not in offsets(here)


# -- when, and up to where -----------------------------------------------------------------------------------------


def test_nothing_at_or_above_the_high_watermark_or_in_the_active_segment_is_cleaned() -> None:
    here = place()
    for _ in range(6):
        put(here, b"a", b"x")
    assert here.clean(roll=False) == []
    here.log.roll()
    here.clean(4, roll=False)
    assert offsets(here) == [3, 4, 5] and here.directory.cleaned(*KEY) == 4
    put(here, b"a", b"x")
    here.clean(7, roll=False)
    assert offsets(here) == [5, 6] and here.directory.cleaned(*KEY) == 6


def test_a_high_watermark_inside_of_a_batch_splits_nothing() -> None:
    here = place()
    here.log.append_as_leader([Record(b"%d" % n, b"a") for n in range(6)], 0)
    here.clean(4)
    assert offsets(here) == [3, 4, 5]
    here.clean(6)
    assert offsets(here) == [5] and here.log.read(0)[0].base_offset == 0


def test_the_dirty_ratio_decides_whether() -> None:
    here = place(min_cleanable_dirty_ratio=0.5)
    for number in range(10):
        put(here, b"k%d" % number, b"x")
    here.clean()
    for number, due in ((9, False), (2, True)):
        for each in range(number):
            put(here, b"k%d" % each, b"y")
        here.log.roll()
        assert bool(here.cleaner.due({KEY: here.log.end})) is due
    (what,) = here.cleaner.due({KEY: here.log.end, ("other", 0): 5})
    assert what.ratio > 0.5 and what.first_dirty == 10 and not what.overdue


def test_the_lags_decide_too() -> None:
    here = place(min_cleanable_dirty_ratio=1.0, min_compaction_lag_ms=50, max_compaction_lag_ms=100)
    put(here, b"a", b"x", 1000)
    put(here, b"a", b"x", 1040)
    here.now = 1060
    assert here.cleaner.due({KEY: 2}) == [] and here.log.roll()
    assert here.cleanable() is None  # 1040 is too young
    put(here, b"a", b"x", 1045)
    here.log.roll()
    here.now = 1092
    what = here.cleanable()
    assert what is not None and what.bound == 2 and not here.cleaner.due({KEY: 3})
    here.now = 1101
    (what,) = here.cleaner.due({KEY: 3})
    assert what.overdue and what.bound == 3


def test_an_old_active_segment_is_closed() -> None:
    for more in ({"segment_ms": 100}, {"max_compaction_lag_ms": 100}):
        here = place(**more)  # type: ignore[arg-type]
        put(here, b"a", b"x", 1000)
        put(here, b"a", b"y", 1090)
        here.now = 1100
        assert here.cleaner.due({KEY: 2}) == [] and here.log.segment_bases == (0,)
        here.now = 1101
        (what,) = here.cleaner.due({KEY: 2})
        assert here.log.segment_bases == (0, 2) and what.bound == 2
        assert not here.cleaner.roll(KEY)  # nothing is in it


def test_the_log_with_the_most_dirt_comes_first() -> None:
    here = place()
    here.cleaner.topics["u"] = settings(STRATEGIES[0])
    here.directory.configure("u", WIDE)
    other = here.directory.log("u", 0)
    for log, clean in ((here.log, 5), (other, 2)):
        for number in range(10):
            log.append_as_leader([Record(b"x", b"k%d" % number)], 0)
            if number == clean:
                log.roll()
        log.roll()
    here.directory.store_cleaned("t", 0, 6)
    here.directory.store_cleaned("u", 0, 3)
    assert [each.key for each in here.cleaner.due({KEY: 10, ("u", 0): 10})] == [("u", 0), KEY]
    done = here.cleaner.run({KEY: 10, ("u", 0): 10})
    assert done is not None and here.directory.cleaned("u", 0) == 10 and here.directory.cleaned(*KEY) == 6


def test_the_checkpoint_is_in_kafkas_format() -> None:
    here = place()
    put(here, b"a", b"x")
    here.clean()
    file = here.files.open(CLEANED_OFFSETS)
    assert file.pread(0, 99) == b"0\n1\nt 0 1\n"


def test_what_is_deleted_from_the_front_wins_against_nothing() -> None:
    """DeleteRecords up to offset 1 takes the winner away; the log's first segment still holds it."""
    here = place(TIMESTAMP)
    put(here, b"a", b"best", 9)
    put(here, b"a", b"other", 5)
    here.log.delete_before(1)
    here.clean()
    assert here.table(TIMESTAMP) == {b"a": b"other"} and offsets(here) == [1]


def test_a_change_of_strategy_counts_for_what_is_cleaned_from_then_on() -> None:
    here = place()
    put(here, b"a", b"late", 5)
    put(here, b"a", b"later", 4)
    here.clean()
    here.cleaner.topics[KEY[0]] = settings(TIMESTAMP)
    put(here, b"a", b"old", 3)
    here.clean()
    assert here.table(TIMESTAMP) == {b"a": b"later"} and offsets(here) == [1]


# -- batches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_keeps_its_offsets_and_the_last_of_a_round_stays(codec: Codec) -> None:
    here = place(TIMESTAMP)
    put(here, b"a", b"first", 100)
    here.log.append_as_leader([Record(b"%d" % n, b"b" if n % 2 else b"a", 10 + n) for n in range(5)], 0, codec=codec)
    here.log.append_as_leader([Record(b"loses", b"a", 1)], 0, codec=codec)
    here.clean()
    batches = here.log.read(0)
    found = [(each.base_offset, each.last_offset, each.record_count) for each in batches]
    assert found == [(0, 0, 1), (1, 5, 1), (6, 6, 0)] and offsets(here) == [0, 4]
    assert stored(here.log)[1].timestamp == 13 and batches[1].codec == codec and batches[1].max_timestamp == 13
    put(here, b"c", b"x", 1)
    here.clean()
    assert [each.base_offset for each in here.log.read(0)] == [0, 1, 7]  # it is not the last any more


def test_segments_are_grouped_up_to_their_size() -> None:
    here = place(log=LogConfig(segment_bytes=300, index_interval_bytes=0, cleanup_policy="compact"))
    for number in range(40):
        put(here, b"k%d" % (number % 2), b"x" * 20)
    many = len(here.log.segment_bases)
    here.clean()
    while here.cleanable() is None and len(here.log.segment_bases) > 3:
        put(here, b"k0", b"y")
        here.clean()
    assert many > 10 and len(here.log.segment_bases) <= 3 and here.log.size < 400
    assert here.table(STRATEGIES[0])[b"k1"] == b"x" * 20


def test_a_group_fits_the_index() -> None:
    """Positions in an index are relative to the segment's base, in 32 bits."""
    here = place()
    for offset in (0, RELATIVE_OFFSETS - 5, RELATIVE_OFFSETS + 5):
        here.log.append_as_follower(encode_batch([Record(b"x", b"k%d" % offset)], base_offset=offset, leader_epoch=0))
        here.log.flush()
        here.log.roll()
    (done,) = here.clean(roll=False)
    assert done.groups == 2 and here.log.segment_bases[:2] == (0, RELATIVE_OFFSETS - 4)


def marker(kind: int, producer: int, timestamp: int = 0) -> bytes:
    record = Record(struct.pack(">hi", 0, 0), struct.pack(">hh", 0, kind), timestamp)
    return encode_batch([record], producer_id=producer, producer_epoch=0, control=True, transactional=True)


def append(here: Place, data: bytes) -> None:
    (batch,) = read_batches(data)
    here.log.append_as_follower(struct.pack(">q", here.log.end) + data[8:12] + struct.pack(">i", 0) + data[16:])
    assert batch.magic == 2


def transactional(key: bytes, value: bytes, producer: int, sequence: int = 0) -> bytes:
    more = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
    return encode_batch([Record(value, key)], transactional=True, **more)


def test_aborted_records_win_against_nothing_and_go() -> None:
    here = place(delete_retention_ms=100)
    put(here, b"a", b"good")
    append(here, transactional(b"a", b"aborted", 5))
    append(here, marker(ABORT, 5))
    append(here, transactional(b"b", b"kept", 6))
    append(here, marker(COMMIT, 6))
    put(here, b"z", b"end")
    here.clean()
    assert {each.key: each.value for each in stored(here.log)} == {b"a": b"good", b"b": b"kept", b"z": b"end"}
    markers = {each.producer_id: each for each in here.log.read(0) if each.is_control}
    assert set(markers) == {5, 6} and markers[5].delete_horizon is None
    for now, horizon in ((1000, 1100), (1099, 1100), (1100, None)):
        here.now = now
        put(here, b"z", b"%d" % now)
        here.clean()
        left = {each.producer_id: each for each in here.log.read(0) if each.is_control and each.record_count}
        assert (left[5].delete_horizon if 5 in left else None) == horizon
        assert left[6].delete_horizon is None  # its transaction has a record


def test_nothing_is_cleaned_above_the_last_stable_offset() -> None:
    here = place()
    put(here, b"a", b"1")
    put(here, b"a", b"2")
    append(here, transactional(b"a", b"open", 5))
    put(here, b"a", b"3")
    here.clean()
    assert offsets(here) == [1, 2, 3] and here.directory.cleaned(*KEY) == 2
    append(here, marker(COMMIT, 5))
    here.clean(4)  # the marker is not committed yet
    assert here.directory.cleaned(*KEY) == 2
    here.clean()
    assert offsets(here) == [3] and here.directory.cleaned(*KEY) == 5


def test_the_last_five_batches_of_a_producer_stay() -> None:
    here = place()
    for number in range(9):
        append(here, encode_batch([Record(b"x", b"a")], producer_id=7, producer_epoch=1, base_sequence=number))
    put(here, b"b", b"x")
    here.clean()
    found = [(each.base_offset, each.base_sequence, each.record_count) for each in here.log.read(0)]
    assert found == [(4, 4, 0), (5, 5, 0), (6, 6, 0), (7, 7, 0), (8, 8, 1), (9, -1, 1)]


def test_records_of_old_formats_are_cleaned() -> None:
    here = place()
    for offset, (key, value) in enumerate([(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", None), (b"b", None)]):
        here.log.append_as_follower(encode_message(StoredRecord(offset, -1, value, key, 7, ()), 1, 0))
    put(here, b"c", b"3")
    here.clean()
    assert [(each.offset, each.key, each.value) for each in stored(here.log)] == [
        (2, b"a", b"2"), (4, b"b", None), (5, b"c", b"3"),
    ]  # fmt: skip
    assert {each.magic for each in here.log.read(0, 1)} == {1}


def test_what_is_beaten_of_an_old_format_does_not_come_back_once_the_tombstone_is_gone() -> None:
    here = place(TIMESTAMP, delete_retention_ms=100)
    put(here, b"a", None, 9)
    here.log.append_as_follower(encode_message(StoredRecord(1, -1, b"late", b"a", 5, ()), 1, 0))
    here.clean()  # the log is clean up to 2, and the last record has to tell that
    assert [(each.offset, each.key, each.value) for each in stored(here.log)] == [(0, b"a", None), (1, None, None)]
    here.now = 200
    put(here, b"b", b"1", 10)
    here.clean()
    assert [(each.offset, each.key, each.value) for each in stored(here.log)] == [(2, b"b", b"1")]


# -- damage and failing disks --------------------------------------------------------------------------------------


def test_a_damaged_batch_stops_the_cleaning_of_its_log_alone() -> None:
    here = place()
    for number in range(4):
        put(here, b"a", b"%d" % number)
    here.log.roll()
    path = "t-0/" + "0" * 20 + ".log"
    file = here.files.open(path)
    data = bytearray(file.pread(0, file.size))
    data[-2] ^= 1
    file.truncate(0)
    file.append(bytes(data))
    (what,) = here.cleaner.due({KEY: 4})
    assert here.cleaner.clean(what) is None
    assert "CRC-32C" in here.cleaner.uncleanable[KEY] and path in here.cleaner.uncleanable[KEY]
    assert here.cleaner.due({KEY: 4}) == [] and here.directory.cleaned(*KEY) == 0
    assert bytes(file.pread(0, file.size)) == bytes(data)


@pytest.mark.parametrize("seed", range(40))
def test_a_disk_that_fails_amid_a_cleaning_loses_nothing(seed: int) -> None:
    """One operation fails, a sync so that it loses what it was asked for; the log is opened again, and crashes."""
    chance = random.Random(seed)
    here = Place(SimulatedFiles(seed), settings(chance.choice(STRATEGIES)))
    strategy = here.cleaner.topics[KEY[0]].strategy
    fill(here.log, chance, 25, 0)
    here.log.roll()
    table, end = here.table(strategy), here.log.end
    left = chance.randrange(120)

    def hook(operation: str, path: str) -> None:
        nonlocal left
        if operation in ("append", "fsync", "fsync_dir", "rename", "remove"):
            left -= 1
            if left == 0:
                raise OSError(errno.EIO, "the disk fails", path)

    here.files.hook = hook
    try:
        here.clean(roll=False)
        failed = False
    except (LogOffline, OSError):
        failed = True
    here.files.hook = None
    if failed:
        here.log = here.directory.reopen(*KEY)
        assert here.table(strategy) == table and here.log.end == end
    for crash in range(5):
        copy = Place(here.files.crashed_copy(crash), settings(strategy))
        assert copy.table(strategy) == table and copy.log.end == end
        copy.clean()
        assert copy.table(strategy) == table
    here.clean()
    assert here.table(strategy) == table
    here.files.crash(seed)
    assert Place(here.files, settings(strategy)).table(strategy) == table


def test_the_same_table_after_every_step_for_who_reads_late() -> None:
    """A reader that stopped amid the log and goes on after a cleaning ends where one from the start does."""
    for seed in range(30):
        chance = random.Random(seed)
        here = Place(SimulatedFiles(seed), settings(chance.choice(STRATEGIES), delete_retention_ms=1 << 40))
        strategy = here.cleaner.topics[KEY[0]].strategy
        late, position = Table(strategy), 0
        for _ in range(6):
            fill(here.log, chance, 6, here.now)
            here.clean()
            ends = [each.next_offset for each in here.log.read(0, 1 << 30) if each.next_offset >= position]
            stop = chance.choice([position, *ends])
            late.apply_all(here.log.records(position, stop))
            position = stop
        late.apply_all(here.log.records(position))
        assert dict(late) == here.table(strategy)


def test_headers_alone_are_read_to_find_what_is_due() -> None:
    here = place(min_cleanable_dirty_ratio=1.0)
    for _ in range(20):
        here.log.append_as_leader([Record(b"x" * 10_000, b"a")], 0)
    here.log.roll()
    read = 0

    class Counting:
        def __init__(self, inner: object) -> None:
            self.inner = inner

        def pread(self, position: int, length: int) -> bytes:
            nonlocal read
            data: bytes = self.inner.pread(position, length)  # type: ignore[attr-defined]
            read += len(data)
            return data

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    for segment in here.log.segments:
        segment._file = Counting(segment._file)  # type: ignore[assignment]
    here.cleaner.due({KEY: 20})
    assert 0 < read < 5000 < here.log.size
