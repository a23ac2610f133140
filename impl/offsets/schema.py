"""Keys and values of the offsets log ``__consumer_offsets``, in Kafka's encoding (big-endian).

A key is ``version int16, group STRING, topic STRING, partition int32``; version 1 is written, 0 is the same. A value is
a version (int16) and (``OffsetCommitValue.json``)::

    0, 2: offset int64, metadata STRING, commitTimestamp int64
    1:    offset int64, metadata STRING, commitTimestamp int64, expireTimestamp int64
    3:    offset int64, leaderEpoch int32, metadata STRING, commitTimestamp int64
    4:    offset int64, leaderEpoch int32, metadata COMPACT_STRING, commitTimestamp int64, tagged fields

STRING is a length (int16) and so many bytes of UTF-8. Version 3 is KIP-320's. Version 4 is what Apache Kafka 4.4
writes, and is read here and not written: lengths are unsigned varints there, that of COMPACT_STRING one more than the
string's (KIP-482). Behind them stand the tagged fields, of which 0 is the topic's id, 16 bytes; others are passed over.

**The serving epoch**, that of the leader which served the position, has no field of Kafka's. Where it is known, it
stands as int32 behind the fields of version 3. Kafka reads a value from a buffer and never asks whether bytes are left
(``CoordinatorRecordSerde.readMessage``, ``GroupMetadataManager.readOffsetMessageValue``), so that it reads what is
written here; and what Kafka writes is read here, with a serving epoch of -1.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from ..log.varint import read_uvarint
from ..wire.messages import NO_EPOCH, TopicPartition

KEY_VERSION = 1
EPOCH_VERSION = 3
"""The first value version that has the leader epoch."""
TOPIC_ID_VERSION = 4
"""The first value version that has the topic's id, and the last that is read."""
PLAIN_VERSION = 2
"""What is written until every broker reads ``EPOCH_VERSION``."""
MAX_STRING = 0x7FFF

_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


class OffsetKey(NamedTuple):
    """Whose commit, and of what."""

    group: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A commit. ``leader_epoch`` is that of the record before ``offset``; -1 where an epoch is not known.

    ``commit_timestamp`` is in milliseconds since 1970. ``topic_id`` is that of a value that has one, and not written.
    """

    offset: int
    leader_epoch: int = NO_EPOCH
    serving_epoch: int = NO_EPOCH
    metadata: str = ""
    commit_timestamp: int = -1
    topic_id: UUID | None = None


def encode_key(key: OffsetKey) -> bytes:
    """The key of a commit. Raises ``ValueError`` for a string that is too long or no Unicode."""
    topic, partition = key.partition
    return _SHORT.pack(KEY_VERSION) + _string(key.group) + _string(topic) + _INT.pack(partition)


def encode_value(value: CommittedOffset, version: int = EPOCH_VERSION) -> bytes:
    """The value of a commit, of ``EPOCH_VERSION`` or, without any epoch, of ``PLAIN_VERSION``.

    Raises ``ValueError`` for another version, and for a string that is too long or no Unicode.
    """
    metadata, timestamp = _string(value.metadata), _LONG.pack(value.commit_timestamp)
    head = _SHORT.pack(version) + _LONG.pack(value.offset)
    if version == PLAIN_VERSION:
        return head + metadata + timestamp
    if version != EPOCH_VERSION:
        raise ValueError(f"version {version} is not written")
    served = b"" if value.serving_epoch == NO_EPOCH else _INT.pack(value.serving_epoch)
    return head + _INT.pack(value.leader_epoch) + metadata + timestamp + served


def decode_key(data: bytes) -> OffsetKey | None:
    """The key of a commit; ``None`` for one of another kind (version 2 and up: groups and their members).

    Raises ``ValueError`` for bytes that are no key.
    """
    reader = _Reader(data)
    if reader.take(_SHORT) not in (0, KEY_VERSION):
        return None
    group, topic, partition = reader.string(), reader.string(), reader.take(_INT)
    reader.finish()
    return OffsetKey(group, TopicPartition(topic, partition))


def decode_value(data: bytes) -> CommittedOffset:
    """The value of a commit, of any version. Raises ``ValueError`` for bytes that are none."""
    reader = _Reader(data)
    version = reader.take(_SHORT)
    if not 0 <= version <= TOPIC_ID_VERSION:
        raise ValueError(f"a value of version {version}, known are 0 to {TOPIC_ID_VERSION}")
    offset = reader.take(_LONG)
    epoch = reader.take(_INT) if version >= EPOCH_VERSION else NO_EPOCH
    metadata = reader.string() if version < TOPIC_ID_VERSION else reader.compact_string()
    timestamp = reader.take(_LONG)
    serving, topic_id = NO_EPOCH, None
    if version == 1:
        reader.take(_LONG)  # when to forget it: since Kafka 2.1 a group's last member decides that
    elif version == EPOCH_VERSION and reader.left:
        serving = reader.take(_INT)
    elif version == TOPIC_ID_VERSION:
        topic_id = _topic_id(reader.tagged_fields())
    reader.finish()
    if offset < 0 or epoch < NO_EPOCH or serving < NO_EPOCH:
        raise ValueError(f"offset {offset}, leader epoch {epoch}, serving epoch {serving}")
    return CommittedOffset(offset, epoch, serving, metadata, timestamp, topic_id)


def _topic_id(tagged: dict[int, bytes]) -> UUID | None:
    if 0 not in tagged:
        return None
    if len(tagged[0]) != 16:
        raise ValueError(f"a topic id of {len(tagged[0])} bytes")
    found = UUID(bytes=tagged[0])
    return found if found.int else None  # Uuid.ZERO_UUID stands for none


def _string(text: str) -> bytes:
    data = text.encode()  # UnicodeEncodeError is a ValueError
    if len(data) > MAX_STRING:
        raise ValueError(f"a string of {len(data)} bytes, the limit is {MAX_STRING}")
    return _SHORT.pack(len(data)) + data


class _Reader:
    """Fields one after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def take(self, field: struct.Struct) -> int:
        if self.left < field.size:
            raise ValueError(f"{self.left} bytes are left at byte {self._position}, a field has {field.size}")
        value: int = field.unpack_from(self._data, self._position)[0]
        self._position += field.size
        return value

    def string(self) -> str:
        return self._bytes(self.take(_SHORT), "a string").decode()  # UnicodeDecodeError is a ValueError

    def compact_string(self) -> str:
        return self._bytes(self._varint() - 1, "a string").decode()

    def tagged_fields(self) -> dict[int, bytes]:
        """By their tags, which ascend."""
        found: dict[int, bytes] = {}
        for _ in range(self._varint()):
            tag = self._varint()
            if found and tag <= max(found):
                raise ValueError(f"the tagged field {tag} at byte {self._position} does not ascend")
            found[tag] = self._bytes(self._varint(), "a tagged field")
        return found

    def _bytes(self, length: int, what: str) -> bytes:
        if not 0 <= length <= self.left:
            raise ValueError(f"{what} of {length} bytes at byte {self._position}, where {self.left} are left")
        start = self._position
        self._position += length
        return self._data[start : self._position]

    def _varint(self) -> int:
        try:
            value, self._position = read_uvarint(self._data, self._position)
        except IndexError:
            raise ValueError(f"{self.left} bytes are left at byte {self._position}, no whole varint") from None
        return value

    def finish(self) -> None:
        if self.left:
            raise ValueError(f"{self.left} bytes are left behind the last field")
