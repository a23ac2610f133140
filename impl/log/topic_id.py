"""``partition.metadata`` beside a log: the id of the topic that it is of (``PartitionMetadataFile``, KIP-516).

A topic that is deleted and made anew under its name is another one; by this file a broker that was away can tell.
"""

from __future__ import annotations

import base64
import binascii
from uuid import UUID

from ..files.interface import Files, read_file
from .checkpoints import write_atomically

PARTITION_METADATA = "partition.metadata"

_KEY = "topic_id: "


def write_topic_id(files: Files, folder: str, topic_id: UUID) -> None:
    """Write and sync it, as Kafka does: a line with the version (0), one with the id in base64. Raises ``OSError``."""
    text = base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
    write_atomically(files, f"{folder}/{PARTITION_METADATA}", f"version: 0\n{_KEY}{text}\n".encode())


def read_topic_id(files: Files, folder: str) -> UUID | None:
    """The id; ``None`` where there is none that can be read. Raises ``OSError``.

    It is synced before the replica takes up any role, so a log without one holds nothing that was acknowledged.
    """
    path = f"{folder}/{PARTITION_METADATA}"
    if not files.exists(path):
        return None
    lines = read_file(files, path).decode(errors="replace").splitlines()
    if len(lines) != 2 or lines[0] != "version: 0" or not lines[1].startswith(_KEY):
        return None
    text = lines[1].removeprefix(_KEY)
    try:
        return UUID(bytes=base64.b64decode(f"{text}==", altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        return None
