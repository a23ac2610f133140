"""A tear that fills a hole: the batch behind it would begin where the log ended. Tried at each effect on the disk.

No CRC covers a base offset, so that nothing in the batch tells. What tells is on disk before the batch is
(``CompactedPart``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.files.interface import read_file
from fencepost.impl.log import CorruptCheckpoint, DataDirectory, Log, LogConfig, Record
from fencepost.impl.log.batch import LENGTH_END, encode_batch
from fencepost.impl.log.checkpoints import HOLES, RECOVERY_POINTS, read_offsets
from fencepost.impl.log.compacted_part import CompactedPart

COMPACT = LogConfig(segment_bytes=500, index_interval_bytes=0, cleanup_policy="compact")
KEY = "t", 0
BASE = 8
"""Bytes of a base offset."""
_EFFECTS = frozenset(("append", "truncate", "fsync", "rename", "remove", "fsync_dir", "make_dir"))

# With a byte of it zero each base offset behind a hole is where the log ended: 258 is 0x102, and the log ended at 2.
STORIES = (
    "0 f 1 f 258 f 259,260 f 65797 f 65798 f 65799",
    "0 1 258 259,260 65797 f 65798 65799 f",
    "1 2 f 3 259,65796 f 65797 o 65798 f",
    "1 f 257 f c1 257 f 258 c1 2 f 258 o 259 f",
    "0 1 f 258,65795 f c258 258 f c2 2 f 3 f 260",
)
"""What a follower does: batches are appended by one write, flushed, cut (c), the log is opened again (o)."""


def directory(files: SimulatedFiles) -> DataDirectory:
    return DataDirectory(files, node_id=1, cluster_id="test", topics={"t": COMPACT})


def batch(offset: int) -> bytes:
    return encode_batch([Record(b"v%d" % offset, b"k", offset)], base_offset=offset, leader_epoch=0)


def heads(data: bytes, start: int) -> Iterator[int]:
    """The bytes from ``start`` on at which a whole batch begins."""
    while start + LENGTH_END <= len(data):
        yield start
        start += LENGTH_END + int.from_bytes(data[start + BASE : start + LENGTH_END], "big")


def common(a: bytes, b: bytes) -> int:
    """How many bytes both begin with."""
    return next((at for at, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))


def torn(files: SimulatedFiles) -> Iterator[tuple[str, SimulatedFiles]]:
    """What a loss of power may leave: all, but that bytes of a base offset that was not synced are zeros."""
    synced = {path: common(live, durable) for path, live, durable, _ in files.image()}
    for folder in ("", "t-0"):
        for name in files.list(folder) if files.exists(folder) else ():
            path = f"{folder}/{name}"
            if not name.endswith(".log"):
                continue
            data = read_file(files, path)
            for head in heads(data, synced.get(f"/{path}", 0)):
                for begin, end in combinations(range(BASE + 1), 2):
                    zeros = data[: head + begin] + bytes(end - begin) + data[head + end :]
                    if zeros != data:
                        copy = whole(files)
                        file = copy.open(path)
                        file.truncate(0)
                        file.append(zeros)
                        file.fsync()
                        yield f"{path}, byte {head}, {begin} to {end}", copy


def whole(files: SimulatedFiles) -> SimulatedFiles:
    """All of a disk, as where a process is killed."""
    copy = SimulatedFiles()
    for folder in ("", *(name for name in files.list("") if name == "t-0")):
        if folder:
            copy.make_dir(folder)
        for name in files.list(folder):
            path = f"{folder}/{name}".removeprefix("/")
            if name != "t-0":
                file = copy.open(path, create=True)
                file.append(read_file(files, path))
                file.fsync()
        copy.fsync_dir(folder)
    return copy


def run(story: str) -> int:
    """Runs a story with a loss of power at each of its effects; how many were looked at. Raises ``AssertionError``."""
    files = SimulatedFiles(3)
    has: list[int] = []
    coming: list[int] = []
    looked = synced = 0

    def look(operation: str, path: str) -> None:
        nonlocal looked
        if operation not in _EFFECTS:
            return
        files.hook = None
        crashed = ((f"crash {seed}", files.crashed_copy(seed)) for seed in range(3))
        for how, copy in (*crashed, *torn(files)):
            looked += 1
            log = directory(copy).log(*KEY)
            found = [record.offset for record in log.records(0)]
            told = f"{story}, {operation} {path}, {how}: {found} of {has} and {coming}, {synced} synced"
            assert found == [*has, *coming][: len(found)] and len(found) >= synced, told
            assert [record.value for record in log.records(0)] == [b"v%d" % offset for offset in found], told
            log.append_as_follower(batch(log.end + 256))
            log.flush()
            found.append(log.end - 1)
            after = directory(copy.crashed_copy(looked)).log(*KEY)
            assert [record.offset for record in after.records(0)] == found, told
        files.hook = look

    def opened() -> Log:
        log = directory(files).log(*KEY)
        files.hook = look
        return log

    log = opened()
    for word in story.split():
        if word == "f":
            log.flush()
            synced = len(has)
        elif word == "o":
            files.hook = None
            log.close()
            synced = len(has)
            log = opened()
        elif word.startswith("c"):
            kept = [offset for offset in has if offset < int(word[1:])]
            has, coming, synced = kept, has[len(kept) :], min(synced, len(kept))
            log.truncate_to(int(word[1:]))
            synced, coming = len(has), []
        else:
            coming = [int(offset) for offset in word.split(",")]
            log.append_as_follower(b"".join(map(batch, coming)))
            has, coming = has + coming, []
        assert [record.offset for record in log.records(0)] == has
    return looked


@pytest.mark.parametrize("story", STORIES)
def test_a_tear_that_fills_a_hole_is_found(story: str) -> None:
    assert run(story) > 300


@pytest.mark.parametrize("story", STORIES)
def test_it_would_be_believed_where_nothing_tells(story: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log as it was: the record at an offset too low, or, in the fifth, what was flushed behind a cut not there."""
    monkeypatch.setattr(CompactedPart, "_begin_holes", lambda log: setattr(log, "_copies_holes", True))
    with pytest.raises(AssertionError, match=" of "):
        run(story)


def test_it_is_on_disk_while_holes_are_copied_and_no_longer() -> None:
    files = SimulatedFiles()
    log = directory(files).log(*KEY)

    def told() -> tuple[int | None, int]:
        holes = read_offsets(files, HOLES, "") if files.exists(HOLES) else {}
        return holes.get(KEY), read_offsets(files, RECOVERY_POINTS, "")[KEY]

    log.append_as_follower(batch(0))
    assert told() == (None, 0)
    written: list[str] = []
    files.hook = lambda operation, path: written.append(path) if operation == "rename" else None
    for offset, then in ((5, (1, 6)), (9, (1, 10)), (300, (1, 301))):
        log.append_as_follower(batch(offset))
        log.flush()
        assert told() == then
    assert written.count(HOLES + ".tmp") == 1  # a log that is copied stores its recovery point alone
    log.append_as_follower(batch(301))
    assert told() == (1, 301)
    log.flush()
    assert told() == (None, 302)
    log.append_as_follower(batch(302))
    log.flush()
    assert told() == (None, 302) and written.count(HOLES + ".tmp") == 2
    assert [record.offset for record in directory(files).log(*KEY).records(0)] == [0, 5, 9, 300, 301, 302]


def test_what_was_copied_among_holes_and_not_flushed_goes() -> None:
    files = SimulatedFiles()
    log = directory(files).log(*KEY)
    for offset in (0, 5, 6):
        log.append_as_follower(batch(offset))
    log = directory(files).log(*KEY)  # the process was killed
    assert log.end == 1 and log.recovered.cut is not None
    assert "a batch above offset 1, copied among holes and not flushed" in log.recovered.cut[2]


def test_without_a_recovery_point_nothing_tells_what_was_flushed() -> None:
    files = SimulatedFiles()
    log = directory(files).log(*KEY)
    for offset in (0, 5, 6):
        log.append_as_follower(batch(offset))
    log.flush()
    files.remove(RECOVERY_POINTS)
    assert directory(files).log(*KEY).end == 7 and not read_offsets(files, HOLES, "")


def test_its_checkpoint_is_refused_where_it_is_damaged() -> None:
    files = SimulatedFiles()
    directory(files).log(*KEY)
    files.open(HOLES, create=True).append(b"0\n1\nt 0\n")
    with pytest.raises(CorruptCheckpoint, match=f"^{HOLES}, line 3: 't 0' has not 3 fields; delete the file"):
        directory(files)
