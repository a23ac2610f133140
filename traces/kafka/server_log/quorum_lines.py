"""Read what a quorum's nodes have printed of the metadata log: files of several nodes, several of one node in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ....model.core.errors import BadInput
from .line import Line
from .lines import by_node, read_streams
from .quorum_words import Becomes, Said, Starts, node_of, said_of_quorum
from .streams import merge_streams

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
_CLASSES: Final = frozenset(name.rpartition(".")[2] for name in QUORUM_LOGGERS)
_MEND: Final = "set the loggers to the levels that docs/how-to/read-server-logs.md has, and record anew"


@dataclass(frozen=True, slots=True)
class QuorumEntry:
    """A line that says something. ``at``: milliseconds, of whichever day; ``line``: from 1 on."""

    at: int
    file: str
    line: int
    said: Said


def read_quorum_logs(paths: Sequence[Path]) -> dict[int, list[QuorumEntry]]:
    """By node, what it reported of the metadata log, in its order.

    Raises:
        BadInput: A file is no server log, or a node lacks a logger or its level.
    """
    printed: dict[int, list[QuorumEntry]] = {}
    for node, streams in by_node(read_streams(paths, _is_read, node_of)).items():
        entries: list[QuorumEntry] = []
        latest = 0
        for line, stream in merge_streams(streams, lambda each: each, lambda _: ""):
            latest = latest if line.time is None else max(latest, line.time)
            try:
                said = said_of_quorum(line.logger_class, line.message)
            except ValueError as wrong:
                where = f"{stream.file}, line {line.number}"
                raise BadInput(str(wrong), where, "name a log that a node of Kafka's printed") from wrong
            if said is not None:
                entries.append(QuorumEntry(latest, stream.file, line.number, said))
        where = streams[0].file if len(streams) == 1 else f"node {node}"
        traced = any(("UnifiedLog", "TRACE") in stream.levels for stream in streams)
        _refuse(where, entries, traced=traced)
        printed[node] = entries
    return printed


def _is_read(line: Line) -> bool:
    return line.logger_class in _CLASSES


def _refuse(where: str, entries: Sequence[QuorumEntry], *, traced: bool) -> None:
    """Refuse what nothing can be learned from, or less than one would think."""
    if not any(isinstance(each.said, Becomes | Starts) for each in entries):
        raise BadInput("no line of it is a quorum node's", where, "name the log of a controller, or its output")
    if not traced:
        raise BadInput("UnifiedLog says nothing at TRACE in it", where, _MEND)
