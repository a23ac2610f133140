"""Read what a quorum's nodes have printed of the metadata log: files of several nodes, several of one node in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ....model.core.errors import BadInput
from .lines import MOST, Line, lines_of
from .quorum_words import Becomes, Said, Starts, node_of, said_of_quorum

QUORUM_LOGGERS: Final = {
    "org.apache.kafka.raft.KafkaRaftClient": "INFO",
    "org.apache.kafka.raft.QuorumState": "INFO",
    "org.apache.kafka.raft.LeaderState": "DEBUG",
    "org.apache.kafka.raft.FollowerState": "TRACE",
    "org.apache.kafka.raft.internals.KafkaRaftLog": "INFO",
    "org.apache.kafka.image.publisher.SnapshotEmitter": "INFO",
    "org.apache.kafka.image.loader.MetadataLoader": "DEBUG",
    "org.apache.kafka.storage.internals.log.UnifiedLog": "TRACE",
}
"""What is read, and how much of it must be printed."""
_MEND: Final = "set the loggers to the levels that docs/mining.md has, and record anew"


@dataclass(frozen=True, slots=True)
class QuorumEntry:
    """A line that says something. ``at``: milliseconds, of whichever day; ``line``: from 1 on."""

    at: int
    file: str
    line: int
    said: Said


def read_quorum_logs(paths: Sequence[Path]) -> dict[int, list[QuorumEntry]]:
    """By node, what it printed of the metadata log, in its order. Raises BadInput for what is no such log."""
    files: list[tuple[int, list[QuorumEntry]]] = []
    left = MOST
    for path in paths:
        node, entries = _read(path, left)
        left -= len(entries)
        files.append((node, entries))
    printed: dict[int, list[QuorumEntry]] = defaultdict(list)
    for node, entries in sorted(files, key=lambda each: each[1][0].at):
        printed[node] += entries
    return dict(printed)


def _read(path: Path, left: int) -> tuple[int, list[QuorumEntry]]:
    node: int | None = None
    entries: list[QuorumEntry] = []
    traced = False
    for line in lines_of(path):
        where = f"{path}, line {line.number}"
        told = node_of(line.message)
        if told is not None and node not in (None, told):
            raise BadInput(f"it is of node {node} and of node {told}", where, "name files of one node each")
        node = node if told is None else told
        traced = traced or (line.logger == "UnifiedLog" and line.level == "TRACE")
        try:
            said = said_of_quorum(line.logger, line.message)
        except ValueError as wrong:
            raise BadInput(str(wrong), where, "name a log that a node of Kafka's printed") from wrong
        if said is not None:
            if len(entries) >= left:
                raise BadInput(f"the files say more than {MOST:,} things", where, "name a shorter piece of them")
            entries.append(QuorumEntry(line.at, str(path), line.number, said))
    _refuse(path, node, entries, traced=traced)
    assert node is not None
    return node, entries


def _refuse(path: Path, node: int | None, entries: Sequence[QuorumEntry], *, traced: bool) -> None:
    """Refuse what nothing can be learned from, or less than one would think."""
    if node is None or not any(isinstance(each.said, Becomes | Starts) for each in entries):
        raise BadInput("no line of it is a quorum node's", str(path), "name the log of a controller, or its output")
    if not traced:
        raise BadInput("UnifiedLog says nothing at TRACE in it", str(path), _MEND)


__all__ = ["QUORUM_LOGGERS", "Line", "QuorumEntry", "read_quorum_logs"]
