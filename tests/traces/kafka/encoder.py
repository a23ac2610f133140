"""Writes the files of a Kafka broker byte by byte, for tests: valid ones, to plant faults in."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import cramjam
import google_crc32c
from fencepost.traces.kafka.metadata import SCHEMAS, Field, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

CLUSTER = "Rj_brD27af2db7ETxjjJIw"
TOPIC_ID = UUID("12345678-1234-4678-9234-567812345678")

Headers = tuple[tuple[bytes, bytes | None], ...]


def uvarint(value: int) -> bytes:
    """Unsigned LEB128."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """Zig-zag LEB128."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def nullable(value: bytes | None) -> bytes:
    """A field with its varint length, -1 for null."""
    return varint(-1) if value is None else varint(len(value)) + value


def record(
    delta: int, key: bytes | None, value: bytes | None, headers: Headers = (), timestamp_delta: int = 0
) -> bytes:
    """One record of a v2 batch."""
    body = b"\x00" + varint(timestamp_delta) + varint(delta) + nullable(key) + nullable(value)
    body += varint(len(headers)) + b"".join(nullable(k) + nullable(v) for k, v in headers)
    return varint(len(body)) + body


def xerial(data: bytes, block: int = 32 << 10) -> bytes:
    """Snappy in the framing of ``SnappyOutputStream``."""
    out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for start in range(0, len(data), block):
        part = bytes(cramjam.snappy.compress_raw(data[start : start + block]))
        out += struct.pack(">i", len(part)) + part
    return out


CODECS = {
    0: lambda data: data,
    1: lambda data: bytes(cramjam.gzip.compress(data)),
    2: xerial,
    3: lambda data: bytes(cramjam.lz4.compress(data)),
    4: lambda data: bytes(cramjam.zstd.compress(data)),
}


def raw_batch(
    base: int,
    payload: bytes,
    count: int,
    *,
    epoch: int = 0,
    attributes: int = 0,
    last_delta: int | None = None,
    magic: int = 2,
    base_timestamp: int = 1_700_000_000_000,
) -> bytes:
    """A batch with a right CRC around any payload and count."""
    last_delta = count - 1 if last_delta is None else last_delta
    covered = struct.pack(">hiqqqhii", attributes, last_delta, base_timestamp, base_timestamp + 5, -1, -1, -1, count)
    covered += payload
    head = struct.pack(">qiibI", base, 9 + len(covered), epoch, magic, google_crc32c.value(covered))
    return head + covered


def batch(
    base: int,
    values: Sequence[bytes | None],
    *,
    epoch: int = 0,
    codec: int = 0,
    attributes: int = 0,
    deltas: Sequence[int] | None = None,
    headers: Headers = (),
    keys: Sequence[bytes | None] | None = None,
) -> bytes:
    """A valid batch of records with the given values; ``deltas`` with holes make a compacted one."""
    deltas = list(range(len(values))) if deltas is None else deltas
    keys = [None] * len(values) if keys is None else keys
    rows = zip(deltas, keys, values, strict=True)
    payload = b"".join(record(delta, key, value, headers, delta) for delta, key, value in rows)
    last = deltas[-1] if deltas else 0
    return raw_batch(
        base, CODECS[codec](payload), len(values), epoch=epoch, attributes=attributes | codec, last_delta=last
    )


def log(*epochs: int, start: int = 0, tag: str = "r") -> bytes:
    """A log of one record a batch: the leader epoch of each record. Equal (offset, epoch, tag), equal payload."""
    return b"".join(
        batch(offset, [f"{tag}-{epoch}-{offset}".encode()], epoch=epoch)
        for offset, epoch in enumerate(epochs, start=start)
    )


def cache_of(epochs: Iterable[int], start: int = 0) -> list[tuple[int, int]]:
    """The epoch cache that belongs to ``log(*epochs)``."""
    result: list[tuple[int, int]] = []
    for offset, epoch in enumerate(epochs, start=start):
        if not result or result[-1][0] != epoch:
            result.append((epoch, offset))
    return result


def checkpoint(lines: Iterable[str]) -> str:
    """A checkpoint file of version 0."""
    lines = list(lines)
    return "".join(f"{line}\n" for line in ["0", str(len(lines)), *lines])


def topic_id_text(value: UUID) -> str:
    """Kafka's base64 of a UUID."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


@dataclass
class Partition:
    """One partition's files: segments by base offset, the epoch cache, and what the checkpoints say."""

    segments: dict[int, bytes]
    cache: list[tuple[int, int]] | None
    high_watermark: int | None = None
    log_start: int | None = None
    topic_id: UUID | None = TOPIC_ID
    snapshots: dict[tuple[int, int], bytes] = field(default_factory=dict)
    cleaned: int | None = None


def partition(*epochs: int, hw: int | None = None, start: int = 0, tag: str = "r") -> Partition:
    """A consistent partition whose records have these leader epochs; the high watermark is the LEO by default."""
    end = start + len(epochs)
    return Partition({start: log(*epochs, start=start, tag=tag)}, cache_of(epochs, start), end if hw is None else hw)


def write_broker(
    root: Path,
    node: int,
    partitions: dict[str, Partition],
    *,
    cluster: str = CLUSTER,
    clean: bool = False,
    clean_epoch: int = 1,
    directory: str | None = "BJHo9cEqK2w",
    quorum: dict[str, object] | None = None,
) -> Path:
    """Write a data directory; ``partitions`` by folder name. Gives the directory."""
    root.mkdir(parents=True)
    (root / "meta.properties").write_text(
        f"#\n#Sat Nov 21 02:00:00 UTC 2026\nnode.id={node}\nversion=1\ncluster.id={cluster}\n"
        + ("" if directory is None else f"directory.id={directory}\n")
    )
    marks: list[str] = []
    starts: list[str] = []
    cleaned: list[str] = []
    for name, files in partitions.items():
        folder = root / name
        folder.mkdir()
        topic, _, index = name.rpartition("-")
        for base, data in files.segments.items():
            (folder / f"{base:020d}.log").write_bytes(data)
        if files.cache is not None:
            (folder / "leader-epoch-checkpoint").write_text(checkpoint(f"{e} {o}" for e, o in files.cache))
        if files.topic_id is not None:
            text = f"version: 0\ntopic_id: {topic_id_text(files.topic_id)}"
            (folder / "partition.metadata").write_text(text)
        for (end, epoch), data in files.snapshots.items():
            (folder / f"{end:020d}-{epoch:010d}.checkpoint").write_bytes(data)
        if files.high_watermark is not None:
            marks.append(f"{topic} {index} {files.high_watermark}")
        if files.log_start is not None:
            starts.append(f"{topic} {index} {files.log_start}")
        if files.cleaned is not None:
            cleaned.append(f"{topic} {index} {files.cleaned}")
        if topic == "__cluster_metadata" and quorum is not None:
            (folder / "quorum-state").write_text(json.dumps(quorum))
    (root / "replication-offset-checkpoint").write_text(checkpoint(marks))
    (root / "log-start-offset-checkpoint").write_text(checkpoint(starts))
    (root / "recovery-point-offset-checkpoint").write_text(checkpoint([]))
    if cleaned:
        (root / "cleaner-offset-checkpoint").write_text(checkpoint(cleaned))
    if clean:
        (root / ".kafka_cleanshutdown").write_text(f'{{"version":0,"brokerEpoch":{clean_epoch}}}')
    return root


def old_message(offset: int, value: bytes, magic: int = 1) -> bytes:
    """A message of format 0 or 1 (Kafka before 0.11), without a key."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", 1_500_000_000_000) if magic else b"")
    body += struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


# -- the controller's records -------------------------------------------------------------------------------------


def compact_string(text: str) -> bytes:
    """A compact string."""
    return uvarint(len(text.encode()) + 1) + text.encode()


def compact_ints(values: Sequence[int]) -> bytes:
    """A compact array of int32."""
    return uvarint(len(values) + 1) + b"".join(struct.pack(">i", value) for value in values)


def metadata_value(api_key: int, body: bytes, tagged: dict[int, bytes] | None = None, version: int = 0) -> bytes:
    """The value of a metadata record: frame, type, version, message, tagged fields."""
    tail = uvarint(len(tagged or {}))
    for tag, data in sorted((tagged or {}).items()):
        tail += uvarint(tag) + uvarint(len(data)) + data
    return uvarint(1) + uvarint(api_key) + uvarint(version) + body + tail


_CODES = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q", "float64": ">d"}
_KEYS = {each.name: key for key, each in SCHEMAS.items()}
_ZEROS: dict[str, Any] = {"bool": False, "uuid": UUID(int=0), "string": "", "bytes": b"", "float64": 0.0}


def encode(name: str, version: int = 0, **fields: Any) -> bytes:
    """The value of a record, by the reader's table of schemas; fields that are left out have their defaults."""
    key = _KEYS[name]
    schema = SCHEMAS[key]
    known = {each.name for each in (*schema.fields, *schema.tagged.values())}
    assert fields.keys() <= known, fields.keys() - known
    body = b"".join(
        _value(each, fields.get(each.name, _default(each)), version) for each in schema.fields if version >= each.since
    )
    return uvarint(1) + uvarint(key) + uvarint(version) + body + _tags(schema, version, fields)


def _tags(schema: Schema, version: int, fields: dict[str, Any]) -> bytes:
    tags = [
        (tag, _value(each, fields[each.name], version))
        for tag, each in sorted(schema.tagged.items())
        if each.name in fields and fields[each.name] != schema.defaults[each.name] and version >= each.since
    ]
    return uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in tags)


def _default(field: Field) -> Any:
    if field.nullable:
        return None
    return [] if field.type.startswith("[]") else _ZEROS.get(field.type, 0)


def _value(field: Field, value: Any, version: int) -> bytes:
    if field.type in _CODES:
        return struct.pack(_CODES[field.type], value)
    if field.type == "bool":
        return bytes([value])
    if field.type == "uuid":
        return bytes(value.bytes)
    if value is None:
        return uvarint(0)
    if field.type in ("string", "bytes"):
        raw: bytes = value.encode() if field.type == "string" else value
        return uvarint(len(raw) + 1) + raw
    items = b""
    for item in value:
        if field.items:
            fields = (each for each in field.items if version >= each.since)
            items += b"".join(_value(each, item.get(each.name, _default(each)), version) for each in fields) + b"\0"
        else:
            items += _value(Field("", field.type[2:]), item, version)
    return uvarint(len(value) + 1) + items


def topic_record(name: str, topic_id: UUID = TOPIC_ID) -> bytes:
    """TopicRecord."""
    return encode("TopicRecord", Name=name, TopicId=topic_id)


def partition_record(
    replicas: Sequence[int],
    isr: Sequence[int],
    leader: int,
    leader_epoch: int = 0,
    partition_index: int = 0,
    topic_id: UUID = TOPIC_ID,
) -> bytes:
    """PartitionRecord, version 1."""
    return encode(
        "PartitionRecord", 1, PartitionId=partition_index, TopicId=topic_id, Replicas=replicas, Isr=isr, Leader=leader,
        LeaderEpoch=leader_epoch, Directories=[UUID(int=0)] * len(replicas),
    )  # fmt: skip


def partition_change(
    *,
    isr: Sequence[int] | None = None,
    leader: int | None = None,
    partition_index: int = 0,
    topic_id: UUID = TOPIC_ID,
    eligible: Sequence[int] | None = None,
    version: int = 0,
) -> bytes:
    """PartitionChangeRecord: naming a leader raises the leader epoch by one. ``eligible`` asks for version 2."""
    told = {"Isr": isr, "Leader": leader, "EligibleLeaderReplicas": eligible}
    fields = {name: value for name, value in told.items() if value is not None}
    return encode("PartitionChangeRecord", version, PartitionId=partition_index, TopicId=topic_id, **fields)


def register_broker(broker: int, epoch: int, *, fenced: bool = True, incarnation: int = 0) -> bytes:
    """RegisterBrokerRecord, version 0, with no endpoint and no feature."""
    return encode(
        "RegisterBrokerRecord", BrokerId=broker, IncarnationId=UUID(int=incarnation), BrokerEpoch=epoch, Fenced=fenced
    )


def unfence_broker(broker: int, epoch: int, *, fence: bool = False) -> bytes:
    """UnfenceBrokerRecord, or FenceBrokerRecord."""
    return encode("FenceBrokerRecord" if fence else "UnfenceBrokerRecord", Id=broker, Epoch=epoch)


def remove_topic(topic_id: UUID) -> bytes:
    """RemoveTopicRecord."""
    return encode("RemoveTopicRecord", TopicId=topic_id)


def config_record(resource: str, name: str, value: str | None, *, broker: bool = False) -> bytes:
    """ConfigRecord of a topic, or of a broker (of all of them where ``resource`` is empty)."""
    return encode("ConfigRecord", ResourceType=4 if broker else 2, ResourceName=resource, Name=name, Value=value)


def metadata_log(values: Sequence[bytes], *, epoch: int = 1, leader: int = 100, base: int = 0) -> bytes:
    """A metadata log: the quorum leader's control record, then one batch with the given values."""
    change = struct.pack(">hi", 0, leader) + uvarint(1) + uvarint(1) + b"\x00"
    control = batch(base, [change], epoch=epoch, attributes=0x20, keys=[struct.pack(">hh", 0, 2)])
    return control + (batch(base + 1, values, epoch=epoch) if values else b"")


def metadata_partition(values: Sequence[bytes], *, epoch: int = 1) -> Partition:
    """A consistent ``__cluster_metadata-0`` with no snapshot."""
    return Partition({0: metadata_log(values, epoch=epoch)}, [(epoch, 0)], None, topic_id=None)


def snapshot_file(
    values: Sequence[bytes], *, epoch: int = 1, append_time: int = 1_700_000_000_005, footer: bool = True
) -> bytes:
    """A snapshot: header, the given values in one batch, footer. ``append_time`` is that of ``raw_batch``."""

    def control(base: int, kind: int, value: bytes) -> bytes:
        return batch(base, [value], epoch=epoch, attributes=0x20, keys=[struct.pack(">hh", 0, kind)])

    header = control(0, 3, struct.pack(">hq", 0, append_time) + b"\x00")
    state = batch(1, values, epoch=epoch) if values else b""
    return header + state + (control(1 + len(values), 4, struct.pack(">h", 0) + b"\x00") if footer else b"")
