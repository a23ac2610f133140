"""The controller's records: decoding of those that say who leads what, at which epoch, with which ISR.

A value in ``__cluster_metadata-0`` is: frame version (unsigned varint, 1), record type, record version (unsigned
varints), then the message (``MetadataRecordSerde``). All messages are flexible: compact strings and arrays, and tagged
fields at the end. The schemas below are the parts of Kafka's ``metadata/src/main/resources/common/metadata/*.json``
that matter here; other record types are counted and skipped.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from .records import read_uvarint

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


class MetadataError(Exception):
    """A metadata record does not decode; ``str()`` says why."""


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One decoded record: its type's name, its version, and its fields by their schema names."""

    type: str
    version: int
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    type: str
    """int8, int16, uint16, int32, int64, bool, uuid, string, []TYPE, or []( a tuple of fields )."""
    since: int = 0
    items: tuple[_Field, ...] = ()


@dataclass(frozen=True, slots=True)
class _Schema:
    name: str
    max_version: int
    fields: tuple[_Field, ...]
    tagged: dict[int, _Field]
    defaults: dict[str, Any]


def _schema(
    name: str,
    max_version: int,
    fields: list[_Field],
    tagged: dict[int, tuple[_Field, Any]] | None = None,
) -> _Schema:
    tagged = tagged or {}
    return _Schema(
        name,
        max_version,
        tuple(fields),
        {tag: field for tag, (field, _) in tagged.items()},
        {field.name: default for field, default in tagged.values()},
    )


_ENDPOINT = (
    _Field("Name", "string"),
    _Field("Host", "string"),
    _Field("Port", "uint16"),
    _Field("SecurityProtocol", "int16"),
)
_FEATURE = (
    _Field("Name", "string"),
    _Field("MinSupportedVersion", "int16"),
    _Field("MaxSupportedVersion", "int16"),
)
_PARTITION = [_Field("PartitionId", "int32"), _Field("TopicId", "uuid")]
_BROKER_EPOCH = [_Field("Id", "int32"), _Field("Epoch", "int64")]

SCHEMAS: dict[int, _Schema] = {
    0: _schema(
        "RegisterBrokerRecord",
        3,
        [
            _Field("BrokerId", "int32"),
            _Field("IsMigratingZkBroker", "bool", since=2),
            _Field("IncarnationId", "uuid"),
            _Field("BrokerEpoch", "int64"),
            _Field("EndPoints", "[]", items=_ENDPOINT),
            _Field("Features", "[]", items=_FEATURE),
            _Field("Rack", "string"),
            _Field("Fenced", "bool"),
            _Field("InControlledShutdown", "bool", since=1),
        ],
        {0: (_Field("LogDirs", "[]uuid"), [])},
    ),
    1: _schema("UnregisterBrokerRecord", 0, [_Field("BrokerId", "int32"), _Field("BrokerEpoch", "int64")]),
    2: _schema("TopicRecord", 0, [_Field("Name", "string"), _Field("TopicId", "uuid")]),
    3: _schema(
        "PartitionRecord",
        2,
        [
            *_PARTITION,
            _Field("Replicas", "[]int32"),
            _Field("Isr", "[]int32"),
            _Field("RemovingReplicas", "[]int32"),
            _Field("AddingReplicas", "[]int32"),
            _Field("Leader", "int32"),
            _Field("LeaderEpoch", "int32"),
            _Field("PartitionEpoch", "int32"),
            _Field("Directories", "[]uuid", since=1),
        ],
        {
            0: (_Field("LeaderRecoveryState", "int8"), 0),
            1: (_Field("EligibleLeaderReplicas", "[]int32"), None),
            2: (_Field("LastKnownElr", "[]int32"), None),
        },
    ),
    4: _schema(
        "ConfigRecord",
        0,
        [
            _Field("ResourceType", "int8"),
            _Field("ResourceName", "string"),
            _Field("Name", "string"),
            _Field("Value", "string"),
        ],
    ),
    5: _schema(
        "PartitionChangeRecord",
        2,
        _PARTITION,
        {
            0: (_Field("Isr", "[]int32"), None),
            1: (_Field("Leader", "int32"), -2),
            2: (_Field("Replicas", "[]int32"), None),
            3: (_Field("RemovingReplicas", "[]int32"), None),
            4: (_Field("AddingReplicas", "[]int32"), None),
            5: (_Field("LeaderRecoveryState", "int8"), -1),
            6: (_Field("EligibleLeaderReplicas", "[]int32"), None),
            7: (_Field("LastKnownElr", "[]int32"), None),
            8: (_Field("Directories", "[]uuid"), None),
        },
    ),
    7: _schema("FenceBrokerRecord", 0, _BROKER_EPOCH),
    8: _schema("UnfenceBrokerRecord", 0, _BROKER_EPOCH),
    9: _schema("RemoveTopicRecord", 0, [_Field("TopicId", "uuid")]),
    12: _schema("FeatureLevelRecord", 0, [_Field("Name", "string"), _Field("FeatureLevel", "int16")]),
    17: _schema(
        "BrokerRegistrationChangeRecord",
        2,
        [_Field("BrokerId", "int32"), _Field("BrokerEpoch", "int64")],
        {
            0: (_Field("Fenced", "int8"), 0),
            1: (_Field("InControlledShutdown", "int8"), 0),
            2: (_Field("LogDirs", "[]uuid"), None),
        },
    ),
    23: _schema("BeginTransactionRecord", 0, [], {0: (_Field("Name", "string"), None)}),
    24: _schema("EndTransactionRecord", 0, []),
    25: _schema("AbortTransactionRecord", 0, [], {0: (_Field("Reason", "string"), None)}),
}

_INTS = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
}


def decode_metadata_record(value: bytes) -> MetadataRecord | None:
    """Decode a record's value; ``None`` for a record type that is not in ``SCHEMAS``.

    A version newer than the schemas is read by the newest one known: new fields are tagged, so they are skipped.
    Raises ``MetadataError`` for a record that does not fit.
    """
    try:
        frame, pos = read_uvarint(value, 0)
        if frame != 1:
            raise MetadataError(f"frame version {frame}, only 1 is known")
        api_key, pos = read_uvarint(value, pos)
        version, pos = read_uvarint(value, pos)
        schema = SCHEMAS.get(api_key)
        if schema is None:
            return None
        fields, pos = _fields(value, pos, schema.fields, version)
        tagged, pos = _tagged(value, pos, schema)
    except (IndexError, ValueError, struct.error) as error:
        raise MetadataError(f"the record is cut off or malformed: {error}") from None
    if pos != len(value):
        raise MetadataError(f"{len(value) - pos} bytes are left after a {schema.name} of version {version}")
    return MetadataRecord(schema.name, version, {**schema.defaults, **fields, **tagged})


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


def _fields(data: bytes, pos: int, fields: tuple[_Field, ...], version: int) -> tuple[dict[str, Any], int]:
    result: dict[str, Any] = {}
    for item in fields:
        if version >= item.since:
            result[item.name], pos = _value(data, pos, item, version)
    return result, pos


def _value(data: bytes, pos: int, field: _Field, version: int) -> tuple[Any, int]:
    kind = field.type
    if kind in _INTS:
        form = _INTS[kind]
        return form.unpack_from(data, pos)[0], pos + form.size
    if kind == "bool":
        return data[pos] != 0, pos + 1
    if kind == "uuid":
        return UUID(bytes=_bytes(data, pos, 16)), pos + 16
    length, pos = read_uvarint(data, pos)
    if length == 0:
        return None, pos
    length -= 1
    if kind == "string":
        return _bytes(data, pos, length).decode("utf-8"), pos + length
    if length > len(data) - pos:
        raise ValueError(f"an array of {length} items in {len(data) - pos} bytes")
    items: list[Any] = []
    for _ in range(length):
        if field.items:
            item, pos = _fields(data, pos, field.items, version)
            pos = _skip_tagged(data, pos)
        else:
            item, pos = _value(data, pos, _Field("", kind[2:]), version)
        items.append(item)
    return items, pos


def _bytes(data: bytes, pos: int, length: int) -> bytes:
    if length > len(data) - pos:
        raise ValueError(f"a field of {length} bytes where {len(data) - pos} are left")
    return data[pos : pos + length]


def _tagged(data: bytes, pos: int, schema: _Schema) -> tuple[dict[str, Any], int]:
    result: dict[str, Any] = {}
    count, pos = read_uvarint(data, pos)
    for _ in range(count):
        tag, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        body = _bytes(data, pos, size)
        pos += size
        if tag in schema.tagged:
            result[schema.tagged[tag].name], end = _value(body, 0, schema.tagged[tag], schema.max_version)
            if end != size:
                raise ValueError(f"tag {tag} of {size} bytes holds a value of {end}")
    return result, pos


def _skip_tagged(data: bytes, pos: int) -> int:
    count, pos = read_uvarint(data, pos)
    for _ in range(count):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        _bytes(data, pos, size)
        pos += size
    return pos
