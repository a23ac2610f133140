"""The objects of a remote store: a folder, or whatever fsspec knows by its URL.

A segment's parts are ``TOPIC-PARTITION-TOPICID/OFFSET-SEGMENTID.log`` and others beside it. Two layouts are known:
``LocalTieredStorage``, the remote storage manager of Kafka's own tests, has them below ``kafka-tiered-storage``, with
ids as Kafka writes them; ``impl/tiering`` writes ids as UUIDs are written. What is named otherwise is nobody's segment.
A store is listed once, and of its objects only leader epoch checkpoints are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from fsspec.core import url_to_fs

from ...model.core.errors import BadInput
from .statefiles import EpochEntry, decode_uuid

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG, EPOCHS = "log", "leader-epoch-checkpoint"
MAX_OBJECTS = 1 << 21
"""Objects that are looked at."""
MAX_CHECKPOINT = 1 << 20
"""Bytes of a leader epoch checkpoint."""
_OPTION = "--remote"
_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{22}"
_NAME = re.compile(rf"(?:^|/)(.+?)-(\d+)-({_ID})/(\d{{20}})-({_ID})\.([a-z_-]+)$")


class StoredPart(NamedTuple):
    """An object: its name in the store, and its size in bytes."""

    name: str
    size: int


@dataclass(frozen=True)
class StoredSegment:
    """The objects of one copy of a segment, by part (``log``, ``leader-epoch-checkpoint``, ...)."""

    topic: str
    partition: int
    topic_id: UUID
    start: int
    parts: Mapping[str, StoredPart]


@dataclass(frozen=True)
class RemoteStore:
    """What is in a store, by the ids of the copies. ``where`` names it for messages."""

    where: str
    segments: Mapping[UUID, StoredSegment]
    _fs: Any = field(repr=False, compare=False, default=None)

    def epochs(self, segment: UUID) -> tuple[EpochEntry, ...] | None:
        """The leader epoch checkpoint that was stored with a copy; None where it is none that can be read.

        Raises BadInput where the store gives nothing back.
        """
        part = self.segments[segment].parts[EPOCHS]
        try:
            data: bytes = self._fs.cat_file(part.name, start=0, end=MAX_CHECKPOINT)
        except Exception as error:
            raise _unreadable(self.where, error) from error
        return _decoded(data)


def read_store(url: str) -> RemoteStore:
    """List a store. Raises BadInput where there is none, or more in it than can be looked at."""
    try:
        filesystem, root = url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)
        if not filesystem.isdir(root):
            raise BadInput("there is no such folder", f"{_OPTION} {url}", "name the folder, or the URL, of the store")
        listed: dict[str, dict[str, Any]] = filesystem.find(root, detail=True)
    except BadInput:
        raise
    except Exception as error:
        raise _unreadable(url, error) from error
    if len(listed) > MAX_OBJECTS:
        mend = "name the folder of one topic in it"
        raise BadInput(f"it has more than {MAX_OBJECTS:,} objects", f"{_OPTION} {url}", mend)
    found: dict[UUID, StoredSegment] = {}
    for name in sorted(listed):
        known = _NAME.search(name)
        if known is None:
            continue
        topic, partition, topic_id, start, segment, part = known.groups()
        ids = _uuid(topic_id), _uuid(segment)
        if ids[0] is None or ids[1] is None:
            continue
        stored = StoredPart(name, int(listed[name]["size"]))
        before = found[ids[1]].parts if ids[1] in found else {}
        parts = {**before, part.replace("_", "-"): stored}
        found[ids[1]] = StoredSegment(topic.rpartition("/")[2], int(partition), ids[0], int(start), parts)
    return RemoteStore(url, found, filesystem)


def _unreadable(where: str, error: Exception) -> BadInput:
    told = f"{type(error).__name__}: {error}".split("\n")[0]
    mend = "name a folder or a URL that fsspec can open (s3:// needs the extra 's3')"
    return BadInput(f"the store cannot be read: {told}", f"{_OPTION} {where}", mend)


def _uuid(text: str) -> UUID | None:
    return UUID(text) if len(text) == 36 else decode_uuid(text)


def _decoded(data: bytes) -> tuple[EpochEntry, ...] | None:
    """``LeaderEpochCheckpointFile``: a version, a count, and an entry a line."""
    try:
        version, count, *lines = data.decode("ascii").splitlines()
        entries = tuple(EpochEntry(*map(int, line.split(" "))) for line in lines)
        whole = version == "0" and len(entries) == int(count)
    except (UnicodeDecodeError, ValueError, TypeError):
        return None
    return entries if whole else None
