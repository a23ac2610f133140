"""Folders of another topic of the same name: one that was deleted while their broker was down.

A broker that is down keeps the folder until it starts again. Its records are in no replica of the topic that has the
name now, and that is no loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .partition import METADATA_TOPIC
from .statefiles import encode_uuid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .broker import BrokerFiles
    from .image import MetadataImage
    from .partition import PartitionFiles, RecordColumns

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class OtherTopic:
    """The reason why a folder is of another topic. ``sure``: the metadata log proves it; else it is only possible."""

    reason: str
    sure: bool


def find_other_topics(
    brokers: Sequence[BrokerFiles], image: MetadataImage | None
) -> Mapping[tuple[str, Key], OtherTopic]:
    """Return the folders of other topics by broker label and partition.

    ``image``: the newest metadata log. Without one, topic ids or else the records tell topics apart.
    """
    found: dict[tuple[str, Key], OtherTopic] = {}
    for key in sorted({key for broker in brokers for key in broker.partitions if key[0] != METADATA_TOPIC}):
        holders = [broker for broker in brokers if key in broker.partitions]
        found |= {
            (label, key): other
            for label, other in (_possible(holders, key) if image is None else _removed(holders, key, image)).items()
        }
    return found


def _removed(holders: Sequence[BrokerFiles], key: Key, image: MetadataImage) -> dict[str, OtherTopic]:
    """The folders of a topic that the metadata log has removed, or that an older copy of it still has."""
    if not image.complete:
        return {}
    now = image.topics.get(key[0])
    found = {}
    for broker in holders:
        own = broker.metadata.topics.get(key[0]) if broker.metadata is not None else None
        topic_id = broker.partitions[key].topic_id or (None if own is None else own.topic_id)
        if topic_id is None or (now is not None and now.topic_id == topic_id):
            continue
        removed = image.removed.get(topic_id)
        if removed is not None:
            when = f"at metadata offset {removed}"
        elif own is not None and own.topic_id == topic_id and broker.metadata is not None:
            when = f"between metadata offsets {broker.metadata.end_offset} and {image.end_offset}"
        else:
            continue
        found[broker.label] = OtherTopic(f"topic id {encode_uuid(topic_id)} was removed {when}", sure=True)
    return found


def _possible(holders: Sequence[BrokerFiles], key: Key) -> dict[str, OtherTopic]:
    """The folders whose records contradict the newest replica's from the first one on, where no folder has an id."""
    logs = {broker.label: broker.partitions[key] for broker in holders}
    if any(files.topic_id is not None for files in logs.values()):
        return {}
    written = [label for label, files in logs.items() if len(files.records)]
    if len(written) < 2:
        return {}
    apart = {label: [other for other in written if _contradict(logs[label], logs[other])] for label in written}
    newest = max(written, key=lambda label: (_last_time(logs[label]), -len(apart[label])))
    return {
        label: OtherTopic(
            f"its log shares no record with that of {newest}; without topic ids it may be of an older topic of that "
            "name, deleted while the broker was down",
            sure=False,
        )
        for label in apart[newest]
    }


def _contradict(a: PartitionFiles, b: PartitionFiles) -> bool:
    """Whether two logs look like those of two topics.

    They have no record in common, and an election does not explain it: the first offset of both has one leader epoch,
    or the log with the smaller epoch there is the newer one throughout.
    """
    if a is b:
        return False
    low, high = max(a.log_start, b.log_start), min(a.log_end, b.log_end)
    ours, theirs = a.records.between(low, high), b.records.between(low, high)
    if not len(ours) or not len(theirs) or _same_record(ours, theirs):
        return False
    _, i, j = np.intersect1d(ours.offset, theirs.offset, assume_unique=True, return_indices=True)
    if not len(i):
        return False
    ours, theirs = ours.take(i), theirs.take(j)
    if bool(np.any((ours.leader_epoch == theirs.leader_epoch) & (ours.payload_hash == theirs.payload_hash))):
        return False
    first, second = int(ours.leader_epoch[0]), int(theirs.leader_epoch[0])
    if first == second:
        return True
    if bool(len(np.intersect1d(a.records.payload_hash, b.records.payload_hash))):
        return False
    smaller, larger = (a, b) if first < second else (b, a)
    return _last_time(larger) < int(smaller.batches.max_timestamp.min())


def _same_record(ours: RecordColumns, theirs: RecordColumns) -> bool:
    """Whether the first records are the same one, as in all healthy replicas."""
    return (
        bool(ours.offset[0] == theirs.offset[0])
        and bool(ours.leader_epoch[0] == theirs.leader_epoch[0])
        and bool(ours.payload_hash[0] == theirs.payload_hash[0])
    )


def _last_time(files: PartitionFiles) -> int:
    return int(files.batches.max_timestamp.max())
