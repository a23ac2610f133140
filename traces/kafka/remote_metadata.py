"""``__remote_log_metadata``: which segments of which partitions are in remote storage, and how far each copy has come.

The values are framed as the controller's records are (KIP-405; ``RemoteLogSegmentMetadataRecord.json`` and
``RemoteLogSegmentMetadataUpdateRecord.json`` of Kafka's storage module). The implementation in ``impl/tiering`` writes
the same fields without the structures around the ids; whichever of the two a value is, it is read to its last byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from .codecs import CodecError
from .metadata import Field, MetadataError, decode_metadata_record, schema
from .records import RecordError
from .statefiles import EpochEntry

if TYPE_CHECKING:
    from uuid import UUID

    from .batches import Batch, Limits
    from .metadata import MetadataRecord, Schema
    from .problems import ProblemLog

REMOTE_TOPIC = "__remote_log_metadata"
MAX_EVENTS = 1 << 21
"""Events that are kept of one of its partitions."""
_STARTED, _UPDATE = "RemoteLogSegmentMetadataRecord", "RemoteLogSegmentMetadataUpdateRecord"
_EPOCHS = (Field("LeaderEpoch", "int32"), Field("Offset", "int64"))
_OBJECTS = (Field("Part", "string"), Field("Size", "int64"), Field("Crc", "uint32"))
_TAGS = Field("", "tagged")
_TOPIC = [Field("Name", "string"), Field("TopicId", "uuid"), Field("Partition", "int32")]
_STATE = Field("RemoteLogSegmentState", "int8")
_TIMES = [Field("MaxTimestampMs", "int64"), Field("EventTimestampMs", "int64")]
_RANGE = [Field("StartOffset", "int64"), Field("EndOffset", "int64"), Field("BrokerId", "int32"), *_TIMES]


def _dialect(ids: list[Field], size: Field, custom: Field, extra: Field | None) -> dict[int, Schema]:
    """Both records; ``extra`` is a tagged field of the update."""
    custom_of_copy = [custom] if custom.type == "bytes" else []
    return {
        0: schema(_STARTED, 1, [*ids, *_RANGE, Field("Epochs", "[]", items=_EPOCHS), size, *custom_of_copy, _STATE]),
        1: schema(
            _UPDATE,
            1,
            [*ids, Field("BrokerId", "int32"), Field("EventTimestampMs", "int64"), custom, _STATE],
            {0: (extra, False)} if extra else None,
        ),
    }


SHIPPED = _dialect(
    [*_TOPIC, _TAGS, Field("Id", "uuid"), _TAGS],
    Field("SegmentSizeInBytes", "int32"),
    Field("CustomMetadata", "bytes", nullable=True),
    None,
)
OWN = _dialect(
    [*_TOPIC, Field("Id", "uuid")],
    Field("SegmentSizeInBytes", "int64"),
    Field("Objects", "[]", items=_OBJECTS, nullable=True),
    Field("OfUnfinishedCopy", "bool"),
)


class SegmentState(IntEnum):
    """``RemoteLogSegmentState``."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


@dataclass(frozen=True, slots=True)
class RemoteEvent:
    """One record, at ``offset``. ``start``, ``end`` (included), ``epochs`` and ``size`` are of a copy's start.

    ``size``: bytes of the segment's records. ``objects``: ``(part, bytes)`` of each object, where an update says them.
    """

    offset: int
    topic: str
    topic_id: UUID
    partition: int
    id: UUID
    broker: int
    state: SegmentState
    started: bool
    start: int = -1
    end: int = -1
    epochs: tuple[EpochEntry, ...] = ()
    unfinished: bool = False
    """A deletion that says nothing of a copy that is finished by then (``impl/tiering`` alone has it)."""
    size: int = -1
    objects: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class RemoteEvents:
    """What one replica of one partition of the topic tells. ``complete``: all of it was read, and decodes."""

    events: list[RemoteEvent] = field(default_factory=list)
    complete: bool = True

    def take(self, batch: Batch, problems: ProblemLog, limits: Limits) -> None:
        """Decode a batch; what does not decode is noted as a problem."""
        if batch.control:
            return
        try:
            for record in batch.records(limits):
                if len(self.events) >= MAX_EVENTS:
                    raise MetadataError(f"more than {MAX_EVENTS:,} events: the rest is left out")
                if record.value is not None:
                    self.events.append(decode_remote(record.value, record.offset))
        except (MetadataError, RecordError, CodecError) as error:
            self.complete = False
            what = f"a record of remote log metadata in the batch at offset {batch.base_offset}: {error}"
            problems.add("bad-remote-metadata", what, "copy the file from another replica", byte=batch.position)


def decode_remote(value: bytes, offset: int) -> RemoteEvent:
    """Decode the value of the record at ``offset``. Raises ``MetadataError``."""
    try:
        record = decode_metadata_record(value, SHIPPED)
    except MetadataError as error:
        try:
            record = decode_metadata_record(value, OWN)
        except MetadataError:
            raise error from None
    if record is None:
        # Kafka has a third one, of a partition's deletion, and its storage manager does not write it (KAFKA-12802).
        raise MetadataError("an event of another type than a copy's start and its updates")
    return _event(record, offset)


def _event(record: MetadataRecord, offset: int) -> RemoteEvent:
    fields: dict[str, Any] = record.fields
    try:
        state = SegmentState(fields["RemoteLogSegmentState"])
    except ValueError:
        raise MetadataError(f"a segment in state {fields['RemoteLogSegmentState']}, which there is not") from None
    return RemoteEvent(
        offset=offset,
        topic=fields["Name"] or "",
        topic_id=fields["TopicId"],
        partition=fields["Partition"],
        id=fields["Id"],
        broker=fields["BrokerId"],
        state=state,
        started=record.type == _STARTED,
        start=fields.get("StartOffset", -1),
        end=fields.get("EndOffset", -1),
        epochs=tuple(EpochEntry(each["LeaderEpoch"], each["Offset"]) for each in fields.get("Epochs") or ()),
        unfinished=fields.get("OfUnfinishedCopy", False),
        size=fields.get("SegmentSizeInBytes", -1),
        objects=tuple((each["Part"] or "", each["Size"]) for each in fields.get("Objects") or ()),
    )


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """One copy of a segment, as of the events that were read."""

    copy: RemoteEvent
    state: SegmentState
    finished: bool
    """Whether it ever was."""
    objects: tuple[tuple[str, int], ...] = ()
    """``(part, bytes)`` of each object, where the metadata say them."""

    def lineage(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """``(epoch, first, end)`` of its records in ``[start, end)``, in their order."""
        bounds = [*(each.start_offset for each in self.copy.epochs), self.copy.end + 1]
        spans = zip(self.copy.epochs, bounds, bounds[1:], strict=False)
        cut = [(each.epoch, max(start, low), min(end, high)) for each, low, high in spans]
        return [span for span in cut if span[1] < span[2]]


def segments_of(events: list[RemoteEvent]) -> dict[UUID, RemoteSegment]:
    """All copies that were ever begun, in the order of their beginnings."""
    found: dict[UUID, RemoteSegment] = {}
    for event in events:
        known = found.get(event.id)
        if event.started:
            if known is None:
                found[event.id] = RemoteSegment(event, event.state, event.state is SegmentState.COPY_SEGMENT_FINISHED)
        elif known is not None and not (event.unfinished and known.finished) and event.state >= known.state:
            finished = known.finished or event.state is SegmentState.COPY_SEGMENT_FINISHED
            found[event.id] = RemoteSegment(known.copy, event.state, finished, event.objects or known.objects)
    return found
