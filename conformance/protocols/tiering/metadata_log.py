"""The remote log metadata as it is committed, read past the brokers, and what it says of each copy.

Of a copy the first that is said counts: one that somebody deletes is not finished any more, and one that is finished is
not deleted by who has found it unfinished.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from ....impl.files.interface import Files
from ....impl.log.batch import read_batches
from ....impl.log.records import StoredRecord
from ....impl.tiering.metadata import METADATA
from ....impl.tiering.records import CODEC, UPDATE
from ....impl.tiering.segments import SegmentState
from ....impl.wire.messages import ProduceRequest
from ...adapters.stores import SegmentReader

NEVER: Final = -1


def number_of(segment: UUID) -> int:
    """The number of a copy, by its id."""
    return segment.int - 1


@dataclass
class Copy:
    """A copy: who makes it, its offsets (the end exclusive), the epochs of its records; where the log says what."""

    copier: int
    start: int
    end: int
    epochs: dict[int, int]
    """By offset, of its records and of the checkpoint that is with them."""
    started_at: int = NEVER
    finished_at: int = NEVER
    deleting_at: int = NEVER
    deleted_at: int = NEVER
    deleter: int = -1
    """Who has begun to delete it."""

    @property
    def told(self) -> tuple[int, int, int, int]:
        """Where the log says what."""
        return self.started_at, self.finished_at, self.deleting_at, self.deleted_at


@dataclass(frozen=True)
class Said:
    """A record of the metadata log."""

    copy: int
    state: SegmentState
    broker: int
    unfinished: bool
    copied: Copy | None = None
    objects: dict[str, int] = field(default_factory=dict)
    """Sizes by part, of a copy that is finished."""


def decode(value: bytes) -> Said:
    """A record. Raises what decoding raises."""
    record = CODEC.decode(value)
    fields: Any = record.fields
    number, state = number_of(fields["Id"]), SegmentState(fields["RemoteLogSegmentState"])
    if record.type == UPDATE:
        sizes = {row.fields["Part"]: row.fields["Size"] for row in fields["Objects"]}
        return Said(number, state, fields["BrokerId"], fields["OfUnfinishedCopy"], None, sizes)
    start, end = fields["StartOffset"], fields["EndOffset"] + 1
    epochs: dict[int, int] = {}
    for row in fields["SegmentLeaderEpochs"]:
        epochs |= dict.fromkeys(range(row.fields["Offset"], end), row.fields["LeaderEpoch"])
    copied = Copy(fields["BrokerId"], start, end, epochs)
    return Said(number, state, fields["BrokerId"], False, copied)


def said_in(request: ProduceRequest) -> list[Said]:
    """What a broker asks to write."""
    return [decode(record.value or b"") for batch in read_batches(request.records) for record in batch.records()]


class MetadataView:
    """What is committed."""

    def __init__(self) -> None:
        self.copies: dict[int, Copy] = {}
        """All that were ever begun, by number."""
        self.end = 0
        self._reader: SegmentReader[StoredRecord] = SegmentReader(METADATA, lambda record: record, torn=True)

    def begun(self, said: Said) -> None:
        """A broker asks to write that it has begun a copy."""
        if said.copied is not None:
            self.copies.setdefault(said.copy, said.copied)

    def catch_up(self, partition: Any, files: Files) -> None:
        """Read a replica of the metadata log up to its high watermark, of a broker's files: its log may be offline."""
        if self.end >= partition.high_watermark:
            return
        for record in self._reader.read(files):
            if self.end <= record.offset < partition.high_watermark:
                self.apply(record.offset, decode(record.value or b""))
                self.end = record.offset + 1

    def apply(self, at: int, said: Said) -> None:
        """A record is committed, at this offset."""
        known = self.copies.get(said.copy)
        if known is None:
            return
        match said.state:
            case SegmentState.COPY_SEGMENT_STARTED if known.started_at == NEVER:
                known.started_at = at
            case SegmentState.COPY_SEGMENT_FINISHED if (
                known.started_at != NEVER and known.finished_at == known.deleting_at == NEVER
            ):
                known.finished_at = at
            case SegmentState.DELETE_SEGMENT_STARTED if (
                known.started_at != NEVER
                and known.deleting_at == NEVER
                and not (said.unfinished and known.finished_at != NEVER)
            ):
                known.deleting_at, known.deleter = at, said.broker
            case SegmentState.DELETE_SEGMENT_FINISHED if known.deleting_at != NEVER and known.deleted_at == NEVER:
                known.deleted_at = at
            case _:
                pass

    def gone_below(self, lineage: Mapping[int, int]) -> int:
        """The end of what a log had in copies that are deleted, or about to be; 0 where there are none.

        ``lineage``: by offset, its leader epochs.
        """
        gone = (each for each in self.copies.values() if NEVER not in (each.finished_at, each.deleting_at))
        there = ((offset, each.epochs.get(offset)) for each in gone for offset in range(each.start, each.end))
        return max(
            (offset + 1 for offset, epoch in there if epoch is not None and lineage.get(offset) == epoch), default=0
        )

    def state_of(self, number: int) -> SegmentState | None:
        """What it says of a copy now; None where it is none, or none any more."""
        known = self.copies[number]
        if known.started_at == NEVER or known.deleted_at != NEVER:
            return None
        if known.deleting_at != NEVER:
            return SegmentState.DELETE_SEGMENT_STARTED
        return SegmentState.COPY_SEGMENT_STARTED if known.finished_at == NEVER else SegmentState.COPY_SEGMENT_FINISHED
