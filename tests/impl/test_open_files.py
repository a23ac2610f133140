"""Nothing stays open of a node that could not start, that went offline, or that was closed, whatever failed."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from fencepost.impl.files import DiskFiles, SimulatedFiles
from fencepost.impl.log import CorruptLog, DataDirectory, LogConfig, LogError, Record, offline_part, recovery
from fencepost.impl.net import LoopbackHost
from fencepost.impl.quorum import KeyValueMachine, NotLeader, QuorumNode
from fencepost.impl.quorum.replica import Replica
from fencepost.impl.quorum.snapshots import PartialSnapshot, SnapshotId
from fencepost.impl.quorum.timers import ELECTION, GENERATE
from fencepost.impl.replica import Broker
from fencepost.impl.wire.messages import FIRST_CLIENT, Envelope, LeaderAndIsrRequest, ProduceRequest

from .brokers import CONFIG, TP, records
from .quorum_rack import SMALL
from .test_quorum_elections import Post

SMALL_SEGMENTS = replace(CONFIG, log=LogConfig(segment_bytes=300))
OPERATIONS = frozenset(("open", "append", "pread", "truncate", "fsync", "rename", "remove", "fsync_dir"))


class Disk(SimulatedFiles):
    """A disk that knows which files are open, and from operation ``fails_at`` on works no more."""

    def __init__(self) -> None:
        super().__init__(1, hook=self._count)
        self.opened: list[Any] = []
        self.operations = 0
        self.fails_at: int | None = None

    def _count(self, operation: str, path: str) -> None:
        if operation in OPERATIONS:
            self.operations += 1
            if self.fails_at is not None and self.operations >= self.fails_at:
                raise OSError(errno.EIO, "injected", path)

    def open(self, path: str, *, create: bool = False) -> Any:
        file = super().open(path, create=create)
        self.opened.append(file)
        return file

    @property
    def still_open(self) -> list[str]:
        """The paths of files that were opened and not closed."""
        return [file.path for file in self.opened if file._boot >= 0]

    def restart(self) -> None:
        """Count from 0 on; every operation works."""
        self.opened.clear()
        self.operations, self.fails_at = 0, None


def work_as_broker(disk: Disk) -> None:
    """Start a broker, lead, write, reopen, and close it."""
    host = LoopbackHost()
    broker = Broker(0, disk, host, host.clock, SMALL_SEGMENTS)
    try:
        epoch = broker.partitions[TP].leader_epoch + 1 if TP in broker.partitions else 0
        lead = LeaderAndIsrRequest(1, TP, 0, epoch, frozenset({0}), (0, 1), frozenset(), epoch)
        broker.receive(Envelope(FIRST_CLIENT, 0, 1, lead))
        for number in range(12):
            broker.receive(Envelope(FIRST_CLIENT, 0, 2, ProduceRequest(TP, 1, records(b"%d" % number))))
        for key in (("high-watermarks",), ("recovery-points",)):
            broker.fire(key)  # type: ignore[arg-type]
        if TP in broker.partitions:
            held = broker.partitions[TP].log
            held.truncate_to(held.end - 5)
            held.delete_before(held.end - 2)
            broker.reopen(TP)
    finally:
        broker.close()


def work_as_quorum(disk: Disk) -> None:
    """Start a quorum of one, lead, write, snapshot, begin to fetch a snapshot, and close it."""
    host = LoopbackHost()
    config = replace(SMALL, voters=(0,))
    node = QuorumNode(0, disk, Post(), host.clock, KeyValueMachine(), config)
    try:
        node.fire(ELECTION)
        for number in range(12):
            node.append([Record(b"%d" % number, b"key %d" % (number % 5))])
        node.fire(GENERATE)
        with node._storage():
            node.replica.start_over(SnapshotId(node.replica.end + 5, node.epoch))
            node.replica.take_chunk(0, b"part", more=True)
    finally:
        if node.failure is None:  # else it has closed everything already
            node.close()


def left_open(work: Callable[[Disk], None]) -> list[str]:
    """Let each operation in turn be the last that works, in a node's first process and in its second; what stays open.

    Ends at the first process that leaves something open.
    """
    whole, counts = Disk(), []
    for _ in range(2):
        whole.restart()
        work(whole)
        counts.append(whole.operations)
        if whole.still_open:
            return whole.still_open
    assert min(counts) > 100
    for start, count in enumerate(counts):
        for operation in range(1, count + 1):
            disk = Disk()
            for _ in range(start):
                work(disk)
            disk.restart()
            disk.fails_at = operation
            with suppress(LogError, OSError, NotLeader):
                work(disk)
            if disk.still_open:
                return disk.still_open
    return []


@pytest.mark.parametrize("work", [work_as_broker, work_as_quorum])
def test_whatever_fails_nothing_stays_open(work: Callable[[Disk], None]) -> None:
    assert left_open(work) == []


@pytest.mark.parametrize(
    ("work", "owner", "name", "path"),
    [
        (work_as_broker, DataDirectory, "abandon", ".log"),
        (work_as_broker, recovery, "close_all", ".log"),
        (work_as_broker, offline_part, "close_all", ".log"),
        (work_as_quorum, DataDirectory, "abandon", ".log"),
        (work_as_quorum, Replica, "abandon", ".part"),
        (work_as_quorum, PartialSnapshot, "abandon", ".part"),
    ],
)
def test_a_part_that_closes_nothing_is_found(
    work: Callable[[Disk], None], owner: Any, name: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, lambda _: None)
    assert any(each.endswith(path) for each in left_open(work))


def test_a_broker_that_cannot_start_gives_its_descriptors_back(tmp_path: Path) -> None:
    directory = DataDirectory(DiskFiles(tmp_path), node_id=1, cluster_id=CONFIG.cluster_id, config=SMALL_SEGMENTS.log)
    for topic in ("a", "b", "c"):
        opened = directory.log(topic, 0)
        for number in range(30):
            opened.append_as_leader([Record(b"%d" % number)], 0)
    directory.close()
    min((tmp_path / "c-0").glob("*.log")).unlink()
    host, process = LoopbackHost(), psutil.Process()
    before = process.num_fds()
    for _ in range(3):
        with pytest.raises(CorruptLog, match="what is between is missing"):
            Broker(1, DiskFiles(tmp_path), host, host.clock, SMALL_SEGMENTS)
        assert process.num_fds() == before
