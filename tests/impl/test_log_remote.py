"""A log whose earlier records are in remote storage: the local log start, and what a crash leaves of the two starts."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import CorruptLog, EpochEntry, Log, LogConfig, OffsetOutOfRange, Record, encode_batch
from fencepost.impl.log.checkpoints import EPOCH_CHECKPOINT

from .twin import KEY, open_directory

CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=100)
CHANGES = frozenset(("append", "truncate", "fsync", "rename", "remove", "fsync_dir", "make_dir"))


class Starts(NamedTuple):
    """What a log says of where it begins and ends, and of its epochs."""

    log_start: int
    local_start: int
    end: int
    epochs: tuple[tuple[int, int], ...]


def starts(log: Log) -> Starts:
    epochs = tuple((entry.epoch, entry.start_offset) for entry in log.epochs.entries)
    return Starts(log.log_start, log.local_start, log.end, epochs)


def grown(files: SimulatedFiles | None = None, records: int = 12) -> tuple[SimulatedFiles, Log]:
    """Epochs 0, 1, ... of four records each, in segments of three records, synced."""
    files = files or SimulatedFiles(1)
    log = open_directory(files, CONFIG).log(*KEY)
    for offset in range(log.end, records):
        log.append_as_leader([Record(b"%d" % offset + b"x" * 20)], offset // 4)
    log.flush()
    return files, log


def opened(files: SimulatedFiles) -> Log:
    return open_directory(files, CONFIG).log(*KEY)


def test_local_segments_go_and_their_offsets_and_epochs_stay() -> None:
    files, log = grown()
    bases = log.segment_bases
    assert len(bases) > 3 and [each.base_offset for each in log.sealed] == list(bases[:-1])
    log.delete_local_before(bases[2] + 1)
    expected = Starts(0, bases[2], 12, ((0, 0), (1, 4), (2, 8)))
    assert starts(log) == expected
    assert log.read(bases[2])[0].base_offset == bases[2]
    with pytest.raises(OffsetOutOfRange):
        log.read(bases[2] - 1)
    assert starts(opened(files.crashed_copy(3))) == expected
    log.delete_local_before(bases[1])
    assert starts(log) == expected, "it never goes back"


def test_the_active_segment_stays_and_the_end_is_a_limit() -> None:
    _, log = grown()
    log.delete_local_before(log.end)
    assert log.local_start == log.segment_bases[-1] < log.end
    with pytest.raises(OffsetOutOfRange):
        log.delete_local_before(log.end + 1)


def test_records_are_deleted_within_the_remote_part_and_past_it() -> None:
    files, log = grown()
    local = log.segment_bases[2]
    log.delete_local_before(local)
    log.delete_before(5)
    assert starts(log) == (5, local, 12, ((1, 5), (2, 8)))
    assert starts(opened(files.crashed_copy(1))) == starts(log)
    log.delete_before(local + 2)
    assert starts(log)[:3] == (local + 2, local + 2, 12)
    assert starts(opened(files.crashed_copy(1))) == starts(log)


def test_a_replica_starts_after_what_is_remote() -> None:
    files = SimulatedFiles(1)
    log = opened(files)
    log.start_after_remote(0, 6, [EpochEntry(0, 0), EpochEntry(1, 3), EpochEntry(2, 5)])
    assert starts(log) == (0, 6, 6, ((0, 0), (1, 3), (2, 5)))
    assert log.end_offset_for(1) == (1, 5)
    log.append_as_follower(encode_batch([Record(b"6")], base_offset=6, leader_epoch=2))
    log.flush()
    again = opened(files.crashed_copy(5))
    assert starts(again) == (0, 6, 7, ((0, 0), (1, 3), (2, 5)))
    assert [record.offset for record in again.records(6)] == [6]


def test_a_crash_while_it_is_put_before_the_log_leaves_all_of_it_or_a_log_that_begins_at_0() -> None:
    """One that began at 6, with nothing in it, would say that all before it was deleted."""
    files, log = grown()
    left: list[Starts] = []
    files.hook = lambda _operation, _path: left.append(starts(opened(files.crashed_copy(len(left)))))
    before = starts(log)
    log.start_after_remote(0, 6, [EpochEntry(0, 0), EpochEntry(1, 3), EpochEntry(2, 5)])
    files.hook = None
    whole = Starts(0, 6, 6, ((0, 0), (1, 3), (2, 5)))
    assert set(left) - {whole} == {before, Starts(0, 0, 0, ())}
    assert starts(opened(files.crashed_copy(9))) == whole


def test_the_first_epoch_begins_at_the_log_start() -> None:
    log = opened(SimulatedFiles(1))
    log.start_after_remote(4, 6, [EpochEntry(0, 0), EpochEntry(1, 3), EpochEntry(2, 5)])
    assert starts(log) == (4, 6, 6, ((1, 4), (2, 5)))


@pytest.mark.parametrize(
    ("log_start", "epochs"),
    [
        (0, []),
        (0, [EpochEntry(1, 3)]),
        (6, [EpochEntry(0, 0)]),
        (0, [EpochEntry(0, 0), EpochEntry(3, 6)]),
        (0, [EpochEntry(1, 0), EpochEntry(0, 3)]),
    ],
)
def test_epochs_that_do_not_cover_the_remote_part_are_refused(log_start: int, epochs: list[EpochEntry]) -> None:
    files, log = grown()
    before = starts(log), files.changes
    with pytest.raises(ValueError, match="do not say that of each offset"):
        log.start_after_remote(log_start, 6, epochs)
    assert (starts(log), files.changes) == before


def test_a_cut_below_the_local_start_leaves_what_is_remote_below_the_cut() -> None:
    files, log = grown()
    log.delete_local_before(log.segment_bases[2])
    log.truncate_to(5)
    assert starts(log) == (0, 5, 5, ((0, 0), (1, 4)))
    assert starts(opened(files.crashed_copy(1))) == starts(log)
    log.delete_before(3)
    log.truncate_to(2)
    assert starts(log) == (2, 2, 2, ())
    assert starts(opened(files.crashed_copy(1))) == (2, 2, 2, ())


def test_a_lost_epoch_checkpoint_is_damage_where_something_is_remote() -> None:
    files, log = grown()
    log.delete_local_before(log.segment_bases[2])
    log.abandon()
    files.remove(f"{log.folder}/{EPOCH_CHECKPOINT}")
    with pytest.raises(CorruptLog, match="no epoch is known of offset 0"):
        opened(files)


def test_a_lost_first_segment_is_damage_and_not_a_later_local_start() -> None:
    files, log = grown()
    log.delete_local_before(log.segment_bases[1])
    log.abandon()
    files.remove(f"{log.folder}/{log.segment_bases[0]:020d}.log")
    with pytest.raises(CorruptLog, match="what is between is missing"):
        opened(files)


def story(files: SimulatedFiles, chance: random.Random, seen: list[Starts]) -> None:
    """Random operations; ``seen`` gets the states between them."""
    epoch = 0
    for _ in range(30):
        log = opened(files)
        epoch = max(epoch, log.latest_epoch)
        for _ in range(4):
            step = chance.random()
            seen.append(starts(log))
            if step < 0.45:
                epoch += chance.random() < 0.3
                for _ in range(chance.randint(1, 5)):
                    log.append_as_leader([Record(b"x" * 30)], epoch)
                    log.flush()
                    seen.append(starts(log))
            elif step < 0.65 and log.end > log.local_start:
                log.delete_local_before(chance.randint(log.local_start, log.end))
            elif step < 0.75:
                log.delete_before(chance.randint(log.log_start, log.end))
            elif step < 0.87:
                log.truncate_to(chance.randint(max(0, log.local_start - 2), log.end))
            else:
                offset = chance.randint(1, log.end + 9)
                cuts = sorted(chance.sample(range(offset), min(offset, 3)))
                epochs = [EpochEntry(n, start) for n, start in enumerate(cuts)]
                log.start_after_remote(chance.randint(cuts[0], offset - 1), offset, epochs)
                epoch = max(epoch, len(cuts))
            seen.append(starts(log))
        log.abandon()


def crash_through(seed: int) -> tuple[int, int]:
    """Crash before changes of files of a story; gives how many crashes were looked at, and of logs with a remote part.

    What an opened log says of offsets below its local start was so before or after some operation, and only an empty
    log gives that up.
    """
    files, crashes = SimulatedFiles(seed), random.Random(seed)
    checked = 0
    states: list[Starts] = []
    claims: list[Starts] = []
    whole: list[Starts] = []

    def hook(operation: str, path: str) -> None:
        nonlocal checked
        if operation in CHANGES and states and crashes.random() < 0.4:
            found = starts(opened(files.crashed_copy(crashes.randrange(1 << 30))))
            checked += 1
            if found.log_start < found.local_start:
                claims.append(found)
            elif found.end > found.log_start:
                whole.append(found)

    files.hook = hook
    story(files, random.Random(seed), states)
    true = {(state.local_start, lineage(state)) for state in states}
    for found in claims:
        said = [trimmed(epochs, found.log_start) for local, epochs in true if local == found.local_start]
        assert lineage(found) in said, (seed, found)
    begins = {state.log_start for state in states}
    assert not [found for found in whole if found.log_start not in begins], seed
    return checked, len(claims)


def lineage(state: Starts) -> tuple[tuple[int, int], ...]:
    """The epochs of the remote part."""
    return tuple(entry for entry in state.epochs if entry[1] < state.local_start)


def trimmed(epochs: tuple[tuple[int, int], ...], log_start: int) -> tuple[tuple[int, int], ...]:
    """The entries after records below ``log_start`` were deleted."""
    kept = [(epoch, max(start, log_start)) for epoch, start in epochs]
    return tuple(entry for entry, after in zip(kept, [*kept[1:], (0, 1 << 62)], strict=False) if after[1] > log_start)


@pytest.mark.parametrize("seed", range(6))
def test_a_crash_leaves_no_remote_part_without_its_epochs(seed: int) -> None:
    checked, claims = crash_through(seed)
    assert checked > 150 and claims > 30


def test_a_log_start_that_is_stored_before_the_epochs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def claimed_first(log: Log, log_start: int, offset: int, epochs: list[EpochEntry]) -> None:
        log._start_at(offset)
        log._store.store_log_start(log_start)
        log._store.store_local_start(offset)
        log._epochs.replace(epochs)
        log._epochs.truncate_from_start(log_start)
        log._local_start, log._log_start = offset, log_start

    crash_through(0)
    monkeypatch.setattr(Log, "start_after_remote", claimed_first)
    with pytest.raises((AssertionError, CorruptLog)):
        crash_through(0)
