"""Where the nodes under test keep their files: on simulated disks, or in a real folder. What reads their logs there."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from ...impl.files.disk import DiskFile, DiskFiles
from ...impl.files.interface import Files, read_file
from ...impl.files.simulated import SimulatedFiles
from ...impl.log.batch import read_batches
from ...impl.log.errors import CorruptBatch
from ...impl.log.records import StoredRecord
from ...impl.wire.messages import TopicPartition
from ...model.core.temporary_folder import TemporaryFolder

Row_ = TypeVar("Row_")


class Store(Protocol):
    """One disk for each node. A node's process holds its files until ``crash``.

    ``fill`` and ``fail`` are for disks that can be made to: an adapter on others draws no such fault.
    """

    def files(self, node: int) -> Files:
        """The disk of a node."""

    def crash(self, node: int, seed: int) -> None:
        """End the node's process; where the store can, the machine with it, and ``seed`` says what survives."""

    def replace(self, node: int) -> None:
        """Give a node whose process has ended an empty disk."""

    def fill(self, node: int) -> None:
        """Leave no room on the disk, until ``mend``."""

    def fail(self, node: int) -> None:
        """Let every write and sync fail, until ``mend``."""

    def mend(self, node: int) -> None:
        """Let the disk work again."""

    def close(self) -> None:
        """Give everything back."""


class MemoryStore:
    """Simulated disks, which lose what was not synced, and tear what they lose in part."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._disks: dict[int, SimulatedFiles] = {}

    def files(self, node: int) -> SimulatedFiles:
        """The disk of a node."""
        if node not in self._disks:
            self._disks[node] = SimulatedFiles(self._seed + node)
        return self._disks[node]

    def crash(self, node: int, seed: int) -> None:
        """Power off and on."""
        self._disks[node].crash(seed)

    def replace(self, node: int) -> None:
        """Another disk."""
        self._disks.pop(node, None)

    def fill(self, node: int) -> None:
        """No byte more."""
        disk = self._disks[node]
        disk.capacity = disk.used

    def fail(self, node: int) -> None:
        """``EIO`` for whatever changes the disk."""
        self._disks[node].hook = _fail

    def mend(self, node: int) -> None:
        """As new."""
        self._disks[node].capacity = None
        self._disks[node].hook = None

    def close(self) -> None:
        """Forget it all."""
        self._disks.clear()


def _fail(operation: str, path: str) -> None:
    if operation in ("append", "truncate", "fsync", "fsync_dir", "rename"):
        raise OSError(errno.EIO, "Input/output error", path)


class _Process(DiskFiles):
    """The files that one process has open: the operating system closes them when it is killed."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._open: list[DiskFile] = []

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        file = super().open(path, create=create)
        self._open.append(file)
        return file

    def kill(self) -> None:
        for file in self._open:
            file.close()
        self._open.clear()


class DiskStore:
    """A folder for each node below a temporary one. A crash is that of the process: what was written is there.

    The folder goes with ``close``, and with the store if nobody closes it.
    """

    def __init__(self) -> None:
        self._folder = TemporaryFolder("fencepost-")
        self._root = self._folder.path
        self._processes: dict[int, _Process] = {}

    def files(self, node: int) -> DiskFiles:
        """The folder of a node."""
        if node not in self._processes:
            self._processes[node] = _Process(self._root / str(node))
        return self._processes[node]

    def crash(self, node: int, seed: int) -> None:  # noqa: ARG002 - the operating system loses nothing by chance
        """Kill the process."""
        self._processes.pop(node).kill()

    def replace(self, node: int) -> None:
        """Remove the folder."""
        process = self._processes.pop(node, None)
        if process is not None:
            process.kill()
        shutil.rmtree(self._root / str(node), ignore_errors=True)

    def fill(self, node: int) -> None:
        """No real disk is filled for a test. Raises ``OSError``."""
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), str(self._root / str(node)))

    def fail(self, node: int) -> None:
        """No real disk is broken for a test. Raises ``OSError``."""
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), str(self._root / str(node)))

    def mend(self, node: int) -> None:
        """Nothing to mend."""

    def close(self) -> None:
        """Remove the folder."""
        for process in self._processes.values():
            process.kill()
        self._processes.clear()
        self._folder.cleanup()


class OncePerChange(Generic[Row_]):
    """What ``read`` finds on a disk. One that counts its changes (a simulated one) is read again only after one."""

    def __init__(self, read: Callable[[Files], Row_]) -> None:
        self._read = read
        self._last: dict[SimulatedFiles, tuple[int, Row_]] = {}
        """By disk: after how many changes it was read, and what was found."""

    def __call__(self, files: Files) -> Row_:
        """What is there now. Raises what reading raises."""
        if not isinstance(files, SimulatedFiles):
            return self._read(files)
        last = self._last.get(files)
        if last is None or last[0] != files.changes:
            last = self._last[files] = files.changes, self._read(files)
        return last[1]


class SegmentReader(Generic[Row_]):
    """Reads a partition's records past the nodes, each as ``row`` makes it. The same bytes are decoded once.

    ``torn``: a segment may end in a batch that is torn, which a crash leaves and recovery will cut off; the records up
    to there are read. Raises CorruptBatch for one otherwise.
    """

    def __init__(self, partition: TopicPartition, row: Callable[[StoredRecord], Row_], *, torn: bool = False) -> None:
        self._folder = str(partition)
        self._row = row
        self._torn = torn
        self._decoded: dict[bytes, tuple[Row_, ...]] = {}
        self.read = OncePerChange(self._read)
        """What is in a node's segment files, in their order; nothing where there is no partition."""

    def _read(self, files: Files) -> tuple[Row_, ...]:
        if not files.exists(self._folder):
            return ()
        found: tuple[Row_, ...] = ()
        for name in files.list(self._folder):
            if name.endswith(".log"):
                found += self.decode(read_file(files, f"{self._folder}/{name}"))
        return found

    def decode(self, data: bytes) -> tuple[Row_, ...]:
        """The records of encoded batches."""
        found = self._decoded.get(data)
        if found is None:
            rows: list[Row_] = []
            try:
                for batch in read_batches(data):
                    rows += map(self._row, batch.records())
            except CorruptBatch:
                if not self._torn:
                    raise
            found = self._decoded[data] = tuple(rows)
        return found
