"""The records of the remote log metadata (KIP-405): a copy that has begun, and each state that it comes to later."""

from __future__ import annotations

from importlib.resources import files
from uuid import UUID

from ..log.epochs import EpochEntry
from ..metadata.codec import MetadataCodec, MetadataRecord
from ..metadata.schema import parse_schema
from ..metadata.values import Struct
from ..wire.messages import TopicPartition
from .segments import PARTS, RemoteObject, RemoteSegment, RemoteSegments, SegmentState

STARTED, UPDATE = "RemoteLogSegmentMetadataRecord", "RemoteLogSegmentMetadataUpdateRecord"
CODEC = MetadataCodec(
    (
        parse_schema((files(__package__) / "schemas" / f"{name}.json").read_text(encoding="utf-8"), f"{name}.json")
        for name in (STARTED, UPDATE)
    ),
    framed=True,
)
"""With the frame version before each record, as Kafka's serde of these has it."""


def encode_started(segment: RemoteSegment) -> bytes:
    """A copy has begun."""
    epochs = [{"LeaderEpoch": entry.epoch, "Offset": entry.start_offset} for entry in segment.epochs]
    fields = {
        "Name": segment.topic,
        "TopicId": segment.topic_id,
        "Partition": segment.partition,
        "Id": segment.id,
        "StartOffset": segment.start_offset,
        "EndOffset": segment.end_offset,
        "BrokerId": segment.broker,
        "MaxTimestampMs": segment.max_timestamp,
        "EventTimestampMs": segment.event_timestamp,
        "SegmentLeaderEpochs": [Struct(each) for each in epochs],
        "SegmentSizeInBytes": segment.size,
        "RemoteLogSegmentState": int(segment.state),
    }
    return CODEC.encode(MetadataRecord(STARTED, 0, fields))


def encode_update(
    segment: RemoteSegment,
    state: SegmentState,
    broker: int,
    now: int,
    objects: tuple[RemoteObject, ...] = (),
    *,
    unfinished: bool = False,
) -> bytes:
    """It has come into a state; with ``unfinished``, unless its copy is finished."""
    rows = [Struct({"Part": each.part, "Size": each.size, "Crc": each.crc}) for each in objects]
    fields = {
        "Name": segment.topic,
        "TopicId": segment.topic_id,
        "Partition": segment.partition,
        "Id": segment.id,
        "BrokerId": broker,
        "EventTimestampMs": now,
        "Objects": rows,
        "RemoteLogSegmentState": int(state),
        "OfUnfinishedCopy": unfinished,
    }
    return CODEC.encode(MetadataRecord(UPDATE, 0, fields))


def apply(data: bytes, into: dict[tuple[TopicPartition, UUID], RemoteSegments]) -> bool:
    """Take a record in; gives whether it changed anything. Raises ``CorruptRecord``, and ``ValueError`` for values."""
    record = CODEC.decode(data)
    fields = record.fields
    key = TopicPartition(fields["Name"], fields["Partition"]), fields["TopicId"]
    state = SegmentState(fields["RemoteLogSegmentState"])
    here = into.setdefault(key, RemoteSegments())
    if record.type == UPDATE:
        objects = tuple(
            RemoteObject(*(row.fields[name] for name in ("Part", "Size", "Crc"))) for row in fields["Objects"]
        )
        if state is SegmentState.COPY_SEGMENT_FINISHED and tuple(each.part for each in objects) != PARTS:
            raise ValueError(f"a copy that is finished has the objects {[each.part for each in objects]}")
        return here.updated(fields["Id"], state, objects, unfinished=fields["OfUnfinishedCopy"])
    epochs = tuple(EpochEntry(row.fields["LeaderEpoch"], row.fields["Offset"]) for row in fields["SegmentLeaderEpochs"])
    start, end = fields["StartOffset"], fields["EndOffset"]
    starts = [entry.start_offset for entry in epochs]
    rises = starts == sorted(set(starts)) and [each.epoch for each in epochs] == sorted({each.epoch for each in epochs})
    if not (0 <= start <= end and starts and starts[0] == start and starts[-1] <= end and rises and state == 0):
        raise ValueError(f"a copy of offsets {start} to {end} with epochs {list(epochs)} in state {state.name}")
    return here.started(
        RemoteSegment(
            topic=fields["Name"],
            topic_id=fields["TopicId"],
            partition=fields["Partition"],
            id=fields["Id"],
            start_offset=start,
            end_offset=end,
            broker=fields["BrokerId"],
            max_timestamp=fields["MaxTimestampMs"],
            event_timestamp=fields["EventTimestampMs"],
            epochs=epochs,
            size=fields["SegmentSizeInBytes"],
        )
    )
