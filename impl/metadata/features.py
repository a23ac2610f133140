"""Which records may be written: the feature ``metadata.format`` (KIP-631, "Record Format Versions"; KIP-584).

Whoever reads knows all versions that its software has. Whoever writes keeps to those that each node of the cluster can
read, and the level of ``metadata.format`` says which: it rises when all nodes have been updated. A level of 0 would
mean that the feature is off; a quorum always has one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .codec import CODEC, encode
from .errors import InvalidRecord
from .values import MetadataRecord

METADATA_FORMAT = "metadata.format"
"""The feature's name."""
NEWEST_AT: tuple[dict[str, int], ...] = (
    # Level 1: what the page of KIP-631 writes out, and the least of what it only names.
    {
        "BrokerRecord": 0,
        "TopicRecord": 0,
        "PartitionRecord": 0,
        "ConfigRecord": 0,
        "IsrChangeRecord": 0,
        "UnregisterBrokerRecord": 0,
        "FenceBrokerRecord": 0,
        "UnfenceBrokerRecord": 0,
        "RemoveTopicRecord": 0,
        "FeatureLevelRecord": 0,
    },
    # Level 2: epochs of partitions, and what fences a broker by its registration.
    {
        "BrokerRecord": 1,
        "PartitionRecord": 1,
        "ConfigRecord": 1,
        "IsrChangeRecord": 1,
        "FenceBrokerRecord": 1,
        "UnfenceBrokerRecord": 1,
    },
)
"""Of each level, from 1 on, the newest version of the types that change with it."""
OLDEST_LEVEL = 1
NEWEST_LEVEL = len(NEWEST_AT)


@dataclass(frozen=True, slots=True)
class MetadataFormat:
    """A level of ``metadata.format``, from ``OLDEST_LEVEL`` to ``NEWEST_LEVEL``. Raises ``InvalidRecord`` beyond."""

    level: int
    newest: dict[str, int] = field(init=False, repr=False, compare=False)
    """The newest version of each type of record that may be written at this level."""

    def __post_init__(self) -> None:
        if not OLDEST_LEVEL <= self.level <= NEWEST_LEVEL:
            what = f"level {self.level}, known are {OLDEST_LEVEL} to {NEWEST_LEVEL}"
            raise InvalidRecord(what, METADATA_FORMAT, "update this node, or give a level that it knows")
        merged: dict[str, int] = {}
        for each in NEWEST_AT[: self.level]:
            merged |= each
        object.__setattr__(self, "newest", merged)

    def allows(self, record_type: str, version: int) -> bool:
        """Whether records of that type and version may be written."""
        return 0 <= version <= self.newest.get(record_type, -1)

    def check(self, record: MetadataRecord) -> None:
        """Raises ``InvalidRecord`` for a record that may not be written at this level."""
        if self.allows(record.type, record.version) or record.type not in CODEC.schemas:
            return  # a type that there is not is refused where it is written
        newest = self.newest.get(record.type)
        what = f"version {record.version} at {METADATA_FORMAT} {self.level}, which lets "
        what += "no such record be" if newest is None else f"version {newest} be"
        raise InvalidRecord(f"{what} written", record.type, f"raise {METADATA_FORMAT}, or write an older version")

    def encode(self, record: MetadataRecord) -> bytes:
        """The value of a record that may be written. Raises ``InvalidRecord``."""
        self.check(record)
        return encode(record)
