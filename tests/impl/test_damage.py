"""Bytes that were synced and are not as they were written: none is served, and the line names file and byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from fencepost.impl.files import SimulatedFiles, read_file
from fencepost.impl.log import (
    CorruptCheckpoint,
    CorruptLog,
    DataDirectory,
    Log,
    LogConfig,
    Record,
    StoredRecord,
    read_batches,
)
from fencepost.impl.replica import Broker

from .brokers import contents
from .cluster_crashes import PARTITIONS, Story
from .rack import CHANGES, PowerLoss, Rack
from .twin import open_directory

NODE = 1
KEY = ("orders", 0)


def flip(files: SimulatedFiles, path: str, byte: int, mask: int) -> None:
    """Change bits on the disk, as if they had always been synced so."""
    folder, name = files._parent(path)
    node: Any = folder.live[name]
    for content in (node.live, node.durable):
        content[byte] ^= mask


class Closed:
    """A broker that was closed after some work, and what it held."""

    def __init__(self) -> None:
        story = Story(3)
        for _ in range(100):
            story.tick()
        story.finish()
        self.rack: Rack = story.rack
        broker = self.rack.brokers[NODE]
        self.records = {f"{p.topic}-{p.partition}": list(broker.partitions[p].log.records(0)) for p in PARTITIONS}
        broker.close()
        self.rack.stop(NODE)
        self.rack.looking = True
        self.disk: SimulatedFiles = self.rack.disks[NODE]
        files = contents(self.disk)
        self.logs = {path: data for path, data in files.items() if path.endswith(".log")}
        self.batches = {path: [0] for path in self.logs}
        """Where each file's batches begin, and where the last one ends."""
        for path, data in self.logs.items():
            for batch in read_batches(data):
                self.batches[path].append(self.batches[path][-1] + batch.size)

    def start(self, disk: SimulatedFiles) -> Broker:
        return Broker(NODE, disk, self.rack.net, self.rack.net.clock, self.rack.config)

    def read(self, disk: SimulatedFiles, folder: str) -> Iterator[StoredRecord]:
        """Start the broker and read one of its logs. Raises what the two raise."""
        partition = next(key for key in PARTITIONS if f"{key.topic}-{key.partition}" == folder)
        yield from self.start(disk).partitions[partition].log.records(0)


@pytest.fixture(scope="module")
def closed() -> Closed:
    return Closed()


def test_what_is_whole_is_served(closed: Closed) -> None:
    assert sum(len(ends) - 1 for ends in closed.batches.values()) > 40 and len(closed.logs) > 4
    for folder, records in closed.records.items():
        assert list(closed.read(closed.disk.crashed_copy(1), folder)) == records


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_byte_of_a_log_is_named_and_never_served(closed: Closed, seed: int) -> None:
    """The leader epoch and the base offset too, which no CRC covers; in the last segment and in those before."""
    chance = random.Random(seed)
    for _ in range(150):
        path = chance.choice(sorted(closed.logs))
        folder, _, _ = path.partition("/")
        place = chance.randrange(len(closed.batches[path]) - 1) if closed.logs[path] else -1
        if folder not in closed.records or place < 0:
            continue
        begin, end = closed.batches[path][place : place + 2]
        byte = chance.choice((chance.randrange(begin, begin + 61), chance.randrange(begin, end)))
        disk = closed.disk.crashed_copy(1)
        flip(disk, path, byte, 1 << chance.randrange(8))
        found: list[StoredRecord] = []
        with pytest.raises(CorruptLog) as caught:
            found.extend(closed.read(disk, folder))
        assert (caught.value.path, caught.value.byte) == (path, begin), f"byte {byte}: {caught.value}"
        assert str(caught.value).startswith(f"{path}, byte {begin}: ")
        assert found == closed.records[folder][: len(found)]


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "leader-epoch-seen-checkpoint",
        "orders-0/leader-epoch-checkpoint",
    ],
)
def test_a_checkpoint_that_does_not_parse_is_named_with_its_line(closed: Closed, name: str) -> None:
    text = read_file(closed.disk, name)
    for byte in range(len(text)):
        disk = closed.disk.crashed_copy(1)
        flip(disk, name, byte, 0x80)
        with pytest.raises(CorruptCheckpoint) as caught:
            closed.start(disk)
        assert caught.value.path == name and str(caught.value).startswith(f"{name}, line 1: not UTF-8 text; ")
    disk = closed.disk.crashed_copy(1)
    flip(disk, name, len(text) - 2, 0x40)  # the last digit becomes a letter
    with pytest.raises(CorruptCheckpoint) as caught:
        closed.start(disk)
    assert (caught.value.path, caught.value.line) == (name, text.count(b"\n"))


def logs(disk: SimulatedFiles) -> dict[str, bytes]:
    return {path: data for path, data in contents(disk).items() if path.endswith(".log")}


def written(count: int = 30) -> tuple[SimulatedFiles, DataDirectory, Log]:
    """A log of several segments, all of it synced."""
    disk = SimulatedFiles(5)
    directory = open_directory(disk, LogConfig(segment_bytes=300))
    log = directory.log(*KEY)
    for n in range(count):
        log.append_as_leader([Record(b"%d" % n)], n // 10)
    log.flush()
    return disk, directory, log


@pytest.mark.parametrize("missing", [1, 2, -1])
@pytest.mark.parametrize("checkpoints", ["all", "no recovery point", "no epochs", "neither"])
def test_segments_that_are_missing_from_the_front_are_said_so(missing: int, checkpoints: str) -> None:
    disk, directory, log = written()
    directory.close()
    bases = log.segment_bases
    for path in sorted(logs(disk))[:missing]:
        disk.remove(path)
    if checkpoints in ("no recovery point", "neither"):
        disk.remove("recovery-point-offset-checkpoint")
    if checkpoints in ("no epochs", "neither"):
        disk.remove("orders-0/leader-epoch-checkpoint")
    first = bases[missing]
    before = logs(disk)
    with pytest.raises(CorruptLog, match=f"first segment begins at offset {first}, the log starts at 0") as caught:
        open_directory(disk).log(*KEY)
    assert caught.value.path == f"orders-0/{first:020d}.log" and caught.value.byte is None
    assert logs(disk) == before, "nothing is touched"


def test_the_first_segment_is_missing_and_the_last_one_is_empty() -> None:
    disk, directory, log = written(1)
    log._roll(log.end)
    directory.close()
    assert log.segment_bases == (0, 1)
    disk.remove(min(logs(disk)))
    for lost in ("", "recovery-point-offset-checkpoint"):
        if lost:
            disk.remove(lost)
        with pytest.raises(CorruptLog, match="first segment begins at offset 1, the log starts at 0"):
            open_directory(disk).log(*KEY)


@pytest.mark.parametrize("seed", range(3))
def test_segments_that_were_deleted_from_the_front_are_not_missed(seed: int) -> None:
    """Each crash of ``delete_before``, and of a truncation below the first segment, opens; the latter begins anew."""
    disk, directory, log = written()
    directory.close()
    whole, opened = disk, 0
    for operations in range(1, 100):
        disk = whole.crashed_copy(1)
        left = operations

        def hook(operation: str, path: str) -> None:
            nonlocal left
            if operation in CHANGES:
                left -= 1
                if left < 0:
                    raise PowerLoss([NODE])

        log = open_directory(disk, LogConfig(segment_bytes=300)).log(*KEY)
        disk.hook = hook
        try:
            log.delete_before(22)
            first = log.segment_bases[0]
            assert first > 10
            log.truncate_to(10)
        except PowerLoss:
            pass
        disk.hook = None
        disk.crash(seed)
        log = open_directory(disk, LogConfig(segment_bytes=300)).log(*KEY)
        opened += 1
        begun_anew = (log.log_start, log.end) == (10, 10)
        assert begun_anew or (log.log_start in (0, 22) and 22 <= log.end <= 30)
        if left > 0:
            assert (log.log_start, log.end, log.segment_bases) == (10, 10, (10,))
            break
    assert opened > 15


def test_a_damaged_index_is_named_or_made_anew_and_the_log_is_not_blamed() -> None:
    files = SimulatedFiles()
    directory = open_directory(files, LogConfig(segment_bytes=3000, index_interval_bytes=150))
    log = directory.log(*KEY)
    for n in range(60):
        log.append_as_leader([Record(b"%d" % n, timestamp=n)] * (n % 3 + 1), n // 20)
    directory.close()
    records = list(open_directory(files).log(*KEY).records(0))
    path = f"orders-0/{log.segment_bases[0]:020d}.index"
    size = len(read_file(files, path))
    assert size > 60 and len(log.segment_bases) > 1
    named = 0
    for byte in range(size):
        for bit in range(8):
            damaged = files.crashed_copy(1)
            flip(damaged, path, byte, 1 << bit)
            log = open_directory(damaged).log(*KEY)
            blamed = None
            for offset in range(0, log.end, 2):
                try:
                    batches = log.read(offset, 1)
                except CorruptLog as error:
                    blamed = error.path, error.byte, error.mend
                    break
                found = [record for batch in batches for record in batch.records()]
                assert found == records[found[0].offset : found[-1].offset + 1] and offset in [r.offset for r in found]
            if blamed is not None:
                named += 1
                assert blamed == (path, byte // 8 * 8, "remove the file: it is made anew")
    assert named > 100
