"""The controller's records, all that Apache Kafka 4.4 ships.

A value in ``__cluster_metadata-0`` is: frame version (unsigned varint, 1), record type, record version (unsigned
varints), then the message (``MetadataRecordSerde``). All messages are flexible: compact strings and arrays, and tagged
fields at the end. The schemas below are Kafka's ``metadata/src/main/resources/common/metadata/*.json``. Record types of
other releases are skipped, and whoever replays the log says so (``image.py``).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from .records import read_uvarint

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTROL_TYPES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
"""Types of control records (``ControlRecordType``): the second int16 of the key."""


NEWEST = "4.4"
"""The release whose schemas these are."""


class MetadataError(Exception):
    """A metadata record does not decode; ``str()`` says why."""


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One decoded record: its type's name, its version, and its fields by their schema names."""

    type: str
    version: int
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a schema, there from version ``since`` on."""

    name: str
    type: str
    """int8, int16, uint16, int32, uint32, int64, float64, bool, uuid, string, bytes, []TYPE, or []( ``items`` ).

    A structure's fields stand among those around it, and ``tagged`` where its tagged fields are, which are skipped.
    """
    since: int = 0
    items: tuple[Field, ...] = ()
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """A record type: its fields, the tagged ones by their tags, and what those are where they are not there."""

    name: str
    max_version: int
    fields: tuple[Field, ...]
    tagged: dict[int, Field]
    defaults: dict[str, Any]


def schema(
    name: str,
    max_version: int,
    fields: list[Field],
    tagged: dict[int, tuple[Field, Any]] | None = None,
) -> Schema:
    """A schema; each tagged field with its default."""
    tagged = tagged or {}
    return Schema(
        name,
        max_version,
        tuple(fields),
        {tag: field for tag, (field, _) in tagged.items()},
        {field.name: default for field, default in tagged.values()},
    )


_ENDPOINT = (
    Field("Name", "string"),
    Field("Host", "string"),
    Field("Port", "uint16"),
    Field("SecurityProtocol", "int16"),
)
_FEATURE = (
    Field("Name", "string"),
    Field("MinSupportedVersion", "int16"),
    Field("MaxSupportedVersion", "int16"),
)
_PARTITION = [Field("PartitionId", "int32"), Field("TopicId", "uuid")]
_SCRAM = (Field("Name", "string"), Field("Mechanism", "int8"))
_BROKER_EPOCH = [Field("Id", "int32"), Field("Epoch", "int64")]

SCHEMAS: dict[int, Schema] = {
    0: schema(
        "RegisterBrokerRecord",
        4,
        [
            Field("BrokerId", "int32"),
            Field("IsMigratingZkBroker", "bool", since=2),
            Field("IncarnationId", "uuid"),
            Field("BrokerEpoch", "int64"),
            Field("EndPoints", "[]", items=_ENDPOINT),
            Field("Features", "[]", items=_FEATURE),
            Field("Rack", "string", nullable=True),
            Field("Fenced", "bool"),
            Field("InControlledShutdown", "bool", since=1),
        ],
        {
            0: (Field("LogDirs", "[]uuid", since=3), []),
            1: (Field("CordonedLogDirs", "[]uuid", since=4, nullable=True), None),
        },
    ),
    1: schema("UnregisterBrokerRecord", 0, [Field("BrokerId", "int32"), Field("BrokerEpoch", "int64")]),
    2: schema("TopicRecord", 0, [Field("Name", "string"), Field("TopicId", "uuid")]),
    3: schema(
        "PartitionRecord",
        2,
        [
            *_PARTITION,
            Field("Replicas", "[]int32"),
            Field("Isr", "[]int32"),
            Field("RemovingReplicas", "[]int32"),
            Field("AddingReplicas", "[]int32"),
            Field("Leader", "int32"),
            Field("LeaderEpoch", "int32"),
            Field("PartitionEpoch", "int32"),
            Field("Directories", "[]uuid", since=1),
        ],
        {
            0: (Field("LeaderRecoveryState", "int8"), 0),
            1: (Field("EligibleLeaderReplicas", "[]int32", since=2, nullable=True), None),
            2: (Field("LastKnownElr", "[]int32", since=2, nullable=True), None),
        },
    ),
    4: schema(
        "ConfigRecord",
        0,
        [
            Field("ResourceType", "int8"),
            Field("ResourceName", "string"),
            Field("Name", "string"),
            Field("Value", "string", nullable=True),
        ],
    ),
    5: schema(
        "PartitionChangeRecord",
        2,
        _PARTITION,
        {
            0: (Field("Isr", "[]int32", nullable=True), None),
            1: (Field("Leader", "int32"), -2),
            2: (Field("Replicas", "[]int32", nullable=True), None),
            3: (Field("RemovingReplicas", "[]int32", nullable=True), None),
            4: (Field("AddingReplicas", "[]int32", nullable=True), None),
            5: (Field("LeaderRecoveryState", "int8"), -1),
            6: (Field("EligibleLeaderReplicas", "[]int32", since=2, nullable=True), None),
            7: (Field("LastKnownElr", "[]int32", since=2, nullable=True), None),
            8: (Field("Directories", "[]uuid", since=1, nullable=True), None),
        },
    ),
    7: schema("FenceBrokerRecord", 0, _BROKER_EPOCH),
    8: schema("UnfenceBrokerRecord", 0, _BROKER_EPOCH),
    9: schema("RemoveTopicRecord", 0, [Field("TopicId", "uuid")]),
    10: schema(
        "DelegationTokenRecord",
        0,
        [
            Field("Owner", "string"),
            Field("Requester", "string"),
            Field("Renewers", "[]string"),
            *(Field(name, "int64") for name in ("IssueTimestamp", "MaxTimestamp", "ExpirationTimestamp")),
            Field("TokenId", "string"),
        ],
    ),
    11: schema(
        "UserScramCredentialRecord",
        0,
        [
            *_SCRAM,
            *(Field(name, "bytes") for name in ("Salt", "StoredKey", "ServerKey")),
            Field("Iterations", "int32"),
        ],
    ),
    12: schema("FeatureLevelRecord", 0, [Field("Name", "string"), Field("FeatureLevel", "int16")]),
    14: schema(
        "ClientQuotaRecord",
        0,
        [
            Field("Entity", "[]", items=(Field("EntityType", "string"), Field("EntityName", "string", nullable=True))),
            Field("Key", "string"),
            Field("Value", "float64"),
            Field("Remove", "bool"),
        ],
    ),
    15: schema(
        "ProducerIdsRecord",
        0,
        [Field("BrokerId", "int32"), Field("BrokerEpoch", "int64"), Field("NextProducerId", "int64")],
    ),
    17: schema(
        "BrokerRegistrationChangeRecord",
        3,
        [Field("BrokerId", "int32"), Field("BrokerEpoch", "int64")],
        {
            0: (Field("Fenced", "int8"), 0),
            1: (Field("InControlledShutdown", "int8", since=1), 0),
            2: (Field("LogDirs", "[]uuid", since=2), None),
            3: (Field("CordonedLogDirs", "[]uuid", since=3, nullable=True), None),
        },
    ),
    18: schema(
        "AccessControlEntryRecord",
        0,
        [
            Field("Id", "uuid"),
            Field("ResourceType", "int8"),
            Field("ResourceName", "string"),
            Field("PatternType", "int8"),
            Field("Principal", "string"),
            Field("Host", "string"),
            Field("Operation", "int8"),
            Field("PermissionType", "int8"),
        ],
    ),
    19: schema("RemoveAccessControlEntryRecord", 0, [Field("Id", "uuid")]),
    20: schema("NoOpRecord", 0, []),
    21: schema("ZkMigrationStateRecord", 0, [Field("ZkMigrationState", "int8")]),
    22: schema("RemoveUserScramCredentialRecord", 0, list(_SCRAM)),
    23: schema("BeginTransactionRecord", 0, [], {0: (Field("Name", "string", nullable=True), None)}),
    24: schema("EndTransactionRecord", 0, []),
    25: schema("AbortTransactionRecord", 0, [], {0: (Field("Reason", "string", nullable=True), None)}),
    26: schema("RemoveDelegationTokenRecord", 0, [Field("TokenId", "string")]),
    27: schema(
        "RegisterControllerRecord",
        0,
        [
            Field("ControllerId", "int32"),
            Field("IncarnationId", "uuid"),
            Field("ZkMigrationReady", "bool"),
            Field("EndPoints", "[]", items=_ENDPOINT),
            Field("Features", "[]", items=_FEATURE),
        ],
    ),
    28: schema("ClearElrRecord", 0, [Field("TopicName", "string")]),
    29: schema("UnregisterControllerRecord", 0, [Field("ControllerId", "int32")]),
}

_MAX_VERSIONS = {each.name: each.max_version for each in SCHEMAS.values()}
_INTS = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
}


def decode_metadata_record(value: bytes, schemas: Mapping[int, Schema] = SCHEMAS) -> MetadataRecord | None:
    """Decode a record's value; ``None`` for a record type that is not in ``schemas``.

    A version newer than the schemas is read by the newest one known: new fields are tagged, so they are skipped.
    Raises ``MetadataError`` for a record that does not fit.
    """
    try:
        frame, pos = read_uvarint(value, 0)
    except (IndexError, ValueError) as error:
        raise MetadataError(f"the record is cut off or malformed: {error}") from None
    if frame != 1:
        raise MetadataError(f"frame version {frame}, only 1 is known")
    return decode_unframed(value, pos, schemas)


def decode_unframed(value: bytes, pos: int, schemas: Mapping[int, Schema]) -> MetadataRecord | None:
    """The same from the record type on, which begins at byte ``pos``."""
    try:
        api_key, pos = read_uvarint(value, pos)
        version, pos = read_uvarint(value, pos)
        found = schemas.get(api_key)
        if found is None:
            return None
        fields, pos = _fields(value, pos, found.fields, version)
        tagged, pos = _tagged(value, pos, found, version)
    except (IndexError, ValueError, struct.error) as error:
        raise MetadataError(f"the record is cut off or malformed: {error}") from None
    if pos != len(value):
        raise MetadataError(f"{len(value) - pos} bytes are left after a {found.name} of version {version}")
    return MetadataRecord(found.name, version, {**found.defaults, **fields, **tagged})


def is_newer(record: MetadataRecord) -> bool:
    """Whether a record of Kafka's has a version that the schemas here do not."""
    return record.version > _MAX_VERSIONS.get(record.type, record.version)


def type_of(value: bytes) -> str:
    """The number of a record's type, in words, of a value that has been decoded so far."""
    _, pos = read_uvarint(value, 0)
    return f"of type {read_uvarint(value, pos)[0]}"


def decode_leader_change(value: bytes) -> int:
    """The leader id of a ``LeaderChangeMessage``. Raises ``MetadataError``."""
    try:
        return int(struct.unpack_from(">hi", value)[1])
    except struct.error:
        raise MetadataError("a leader change message is cut off") from None


def decode_snapshot_header(value: bytes) -> int:
    """The append time, in milliseconds, that a ``SnapshotHeaderRecord`` has. Raises ``MetadataError``."""
    try:
        return int(struct.unpack_from(">hq", value)[1])
    except struct.error:
        raise MetadataError("a snapshot header is cut off") from None


def control_type(key: bytes | None) -> str | None:
    """The name of a control record's type; ``None`` for a key that is none or a type that is not known."""
    if key is None or len(key) < 4:
        return None
    return CONTROL_TYPES.get(int.from_bytes(key[2:4], "big", signed=True))


def _fields(data: bytes, pos: int, fields: tuple[Field, ...], version: int) -> tuple[dict[str, Any], int]:
    result: dict[str, Any] = {}
    for item in fields:
        if item.type == "tagged":
            pos = _skip_tagged(data, pos)
        elif version >= item.since:
            result[item.name], pos = _value(data, pos, item, version)
    return result, pos


def _value(data: bytes, pos: int, field: Field, version: int) -> tuple[Any, int]:
    kind = field.type
    if kind in _INTS:
        form = _INTS[kind]
        return form.unpack_from(data, pos)[0], pos + form.size
    if kind == "bool":
        return data[pos] != 0, pos + 1
    if kind == "uuid":
        return _uuid(_bytes(data, pos, 16)), pos + 16
    length, pos = read_uvarint(data, pos)
    if length == 0:
        if not field.nullable:
            raise ValueError(f"{field.name or 'an item'} is null")
        return None, pos
    length -= 1
    if kind == "bytes":
        return _bytes(data, pos, length), pos + length
    if kind == "string":
        return _bytes(data, pos, length).decode("utf-8", "replace"), pos + length  # as Java does
    if length > len(data) - pos:
        raise ValueError(f"an array of {length} items in {len(data) - pos} bytes")
    items: list[Any] = []
    for _ in range(length):
        if field.items:
            item, pos = _fields(data, pos, field.items, version)
            pos = _skip_tagged(data, pos)
        else:
            item, pos = _value(data, pos, Field("", kind[2:]), version)
        items.append(item)
    return items, pos


@lru_cache(maxsize=1 << 14)
def _uuid(data: bytes) -> UUID:
    """Build each id once: most records of a log name the same topics."""
    return UUID(bytes=data)


def _bytes(data: bytes, pos: int, length: int) -> bytes:
    if length > len(data) - pos:
        raise ValueError(f"a field of {length} bytes where {len(data) - pos} are left")
    return data[pos : pos + length]


def _tagged(data: bytes, pos: int, schema: Schema, version: int) -> tuple[dict[str, Any], int]:
    result: dict[str, Any] = {}
    count, pos = read_uvarint(data, pos)
    for _ in range(count):
        tag, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        if tag in schema.tagged:
            if version < schema.tagged[tag].since:
                raise ValueError(f"tag {tag} is not valid in version {version}")
            # Kafka does not look at the size of a tag that it knows.
            result[schema.tagged[tag].name], pos = _value(data, pos, schema.tagged[tag], schema.max_version)
        else:
            _bytes(data, pos, size)
            pos += size
    return result, pos


def _skip_tagged(data: bytes, pos: int) -> int:
    count, pos = read_uvarint(data, pos)
    for _ in range(count):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        _bytes(data, pos, size)
        pos += size
    return pos
