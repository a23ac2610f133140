"""``partition.metadata`` beside a replica's log: the id of the topic that it is of (``PartitionMetadataFile``).

A topic that is deleted and made anew under its name is another one; by this file a broker that was away can tell.
"""

from __future__ import annotations

from uuid import UUID

from ..files.interface import Files, read_file
from ..log.checkpoints import write_atomically
from ..wire.messages import TopicPartition

PARTITION_METADATA = "partition.metadata"


def _path(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}/{PARTITION_METADATA}"


def store_topic_id(files: Files, partition: TopicPartition, topic: UUID) -> None:
    """Write and sync it. Raises ``OSError``."""
    write_atomically(files, _path(partition), f"version: 0\ntopic_id: {topic}\n".encode())


def read_topic_id(files: Files, partition: TopicPartition) -> UUID | None:
    """The id; ``None`` where there is none that can be read. Raises ``OSError``.

    It is synced before anything is appended to the log, so a log without one holds nothing that was acknowledged.
    """
    path = _path(partition)
    if not files.exists(path):
        return None
    lines = read_file(files, path).decode(errors="replace").splitlines()
    if len(lines) != 2 or lines[0] != "version: 0" or not lines[1].startswith("topic_id: "):
        return None
    try:
        return UUID(lines[1].removeprefix("topic_id: "))
    except ValueError:
        return None
