"""What lies in a data directory, held to what its process accounts for: nothing is left over, and nothing is missing.

A log that is cut, deleted from below or begun anew, a topic that is gone, a snapshot that was given up: each time files
go, and lines of the checkpoints that all partitions share. What stays behind takes room for good, or comes back: a
partition that is made anew under a name begins at the high watermark that its checkpoint still has for it. Nobody who
reads logs and snapshots by what their process says of them can see that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from ...impl.files.interface import Files
from ...impl.files.simulated import SimulatedFiles
from ...impl.log.checkpoints import EPOCH_CHECKPOINT, read_offsets
from ...impl.log.directory import META
from ...impl.log.log import Log
from ...impl.log.topic_id import PARTITION_METADATA
from ...impl.quorum.replica import Replica
from ...impl.quorum.snapshots import PART_SUFFIX
from ...impl.quorum.state_file import QUORUM_STATE
from ..adapters.nodes import RunningNodes
from ..lockstep.adapter import Contradiction
from ..simulation.system import StepResult

_OFFSETS: Final = re.compile(r"[a-z-]+-checkpoint")
"""A checkpoint that has a line for each partition."""
_OF_SEGMENT: Final = re.compile(r"(\d{20})\.(log|index)")
_PRODUCERS: Final = re.compile(r"\d{20}\.snapshot")
_MOST_PRODUCERS: Final = 2
"""So many are kept of what is known of producers: that of the local log start, and of the one before."""
_LOG: Final = "log"
_OPEN_OF_SEGMENT: Final = 2
"""A segment that is open has so many files open: its records, and its index."""


class Unaccounted(Contradiction):
    """Files that no process accounts for lie in its data directory, or some are gone that should be there."""


class Folder(NamedTuple):
    """What a process accounts for in a partition's folder.

    ``bases``: the base offsets of the log's segments; ``begin``: where what it has begins; ``beside``: the names of
    other files that must be there, ``allowed``: of those that may be; ``writing``: so many of them are being written.
    """

    bases: tuple[int, ...]
    begin: int
    beside: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()
    writing: int = 0

    @property
    def open_files(self) -> int:
        """So many files its process has open."""
        return _OPEN_OF_SEGMENT * len(self.bases) + self.writing


def folder_of(log: Log, beside: Collection[str] = (), allowed: Collection[str] = ()) -> Folder:
    """Of a log that is open."""
    return Folder(log.segment_bases, log.local_start, frozenset(beside), frozenset(allowed) | {EPOCH_CHECKPOINT})


def folder_of_quorum(replica: Replica) -> Folder:
    """Of a replica of a quorum's log: its snapshots, whole ones and the one that it fetches, lie beside the log."""
    there = {each.file_name for each in replica.snapshots.ids}
    if replica.fetching is not None:
        there.add(replica.fetching.id.file_name + PART_SUFFIX)
    writing = int(replica.fetching is not None)
    return folder_of(replica.log, there, (QUORUM_STATE,))._replace(writing=writing)


def folders_of(broker: Any) -> Mapping[str, Folder] | None:
    """Of a broker's replicas, by the names of their folders; None while one of them is offline."""
    logs = {str(key): replica.log for key, replica in broker.partitions.items()}
    if any(log.offline is not None for log in logs.values()):
        return None
    return {name: folder_of(log, allowed=(PARTITION_METADATA,)) for name, log in logs.items()}


def check_accounted(files: Files, folders: Mapping[str, Folder]) -> None:
    """Hold a directory to what its process accounts for; ``folders``: by name, one for each partition.

    Raises ``Unaccounted``. Of a process whose disk fails it may not be asked: it could not finish what it had begun.
    """
    for name in files.list(""):
        if name == META or name in folders:
            continue
        if not _OFFSETS.fullmatch(name):
            raise Unaccounted(f"{name} lies in the data directory, and nobody accounts for it")
        for topic, partition in read_offsets(files, name, ""):
            if f"{topic}-{partition}" not in folders:
                raise Unaccounted(f"{name} has a line of {topic}-{partition}, which is not there")
    for name, folder in folders.items():
        if not files.exists(name):
            raise Unaccounted(f"{name} is not in the data directory")
        _check_folder(name, files.list(name), folder)


def check_open(files: SimulatedFiles, folders: Mapping[str, Folder]) -> None:
    """Hold the files that a process has open to what it accounts for: one that is forgotten is a descriptor less.

    Raises ``Unaccounted``. Of a process whose disk fails it may not be asked.
    """
    wanted = sum(each.open_files for each in folders.values())
    if files.open_files != wanted:
        raise Unaccounted(f"{files.open_files} files are open, and there are {wanted} to be open")


def _check_folder(folder: str, names: Collection[str], accounts: Folder) -> None:
    there: set[int] = set()
    producers = sorted(name for name in names if _PRODUCERS.fullmatch(name))
    if len(producers) > _MOST_PRODUCERS:
        raise Unaccounted(f"{folder} has {', '.join(producers)}: what is known of producers, {len(producers)} times")
    for name in sorted(set(names).difference(producers)):
        match = _OF_SEGMENT.fullmatch(name)
        if match is None:
            if name not in accounts.beside and name not in accounts.allowed:
                raise Unaccounted(f"{folder}/{name} is left over")
        elif int(match[1]) not in accounts.bases:
            raise Unaccounted(f"{folder}/{name} is left over: the log has the segments {list(accounts.bases)}")
        elif match[2] == _LOG:
            there.add(int(match[1]))
    missing = [f"the segment at {base}" for base in accounts.bases if base not in there]
    missing += sorted(accounts.beside - set(names))
    if missing:
        raise Unaccounted(f"{folder} has {sorted(names)}, and {missing[0]} is missing")
    for base, following in zip(accounts.bases, accounts.bases[1:], strict=False):
        # One that ends just there may have been the last one when the log came to begin there.
        if following < accounts.begin:
            raise Unaccounted(f"{folder} has the segment from {base} to {following}, and begins at {accounts.begin}")


class AccountedNodes(RunningNodes):
    """Nodes whose directories are held to what they account for, after events in which these change."""

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes."""
        self._failed: set[int] = set()
        """Whose disk has failed or was full in the life of the present process."""
        self._accounted: dict[SimulatedFiles, int] = {}
        """By disk, after how many changes it was looked at last."""
        return super().reset(constants, seed)

    def _change_disk(self, node: int, name: str) -> None:
        super()._change_disk(node, name)
        self._failed.add(node)

    def _start(self, node: int) -> None:
        if node not in self.bad:
            self._failed.discard(node)
        super()._start(node)

    def _account_broker(self, node: int) -> None:
        """Of a broker that is up, whose replicas are all that is on its disk. Raises ``Unaccounted``."""
        self._account(node, self.store.files(node), lambda: folders_of(self.nodes[node]))

    def _account(self, node: int, files: Files, folders: Callable[[], Mapping[str, Folder] | None]) -> None:
        """Of a node that is up, where anything on its disk has changed. Raises ``Unaccounted``.

        ``folders`` gives None where nobody can say now.
        """
        if node in self._failed or not isinstance(files, SimulatedFiles) or self._accounted.get(files) == files.changes:
            return
        there = folders()
        if there is not None:
            self._accounted[files] = files.changes
            check_accounted(files, there)
            check_open(files, there)
