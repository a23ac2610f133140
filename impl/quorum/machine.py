"""The state machine behind a quorum's log: its interface, and one that keeps keys and values.

The notifications between the two (KIP-630, "Interaction Between Kafka Raft and the Kafka Controller"): the log tells
the machine of a snapshot that was fetched by ``load``, and the machine tells the log that one is finished by calling
``finished`` of the ``SnapshotWriter`` that it was given.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

from ..files.interface import File
from ..log.batch import encode_batch
from ..log.errors import CorruptBatch
from ..log.records import Record, StoredRecord
from .snapshots import SnapshotId, batches_of

_FOOTER_KEY = struct.pack(">hh", 0, 4)
"""Kafka's control record SNAPSHOT_FOOTER: version and type."""
_COUNT = struct.Struct(">q")


class SnapshotWriter(Protocol):
    """Where a machine writes its snapshot. Both raise ``OSError``."""

    @property
    def id(self) -> SnapshotId:
        """The end offset and epoch of what the machine has applied."""

    def append(self, data: bytes) -> None:
        """Write the next bytes."""

    def finished(self) -> None:
        """The snapshot is complete: the log syncs it and goes by it from now on."""


class StateMachine(Protocol):
    """What the committed records are applied to, in the order of their offsets, each once after each ``load``."""

    def apply(self, records: Sequence[StoredRecord]) -> None:
        """Apply committed records; those that only the quorum itself reads are not among them."""

    def snapshot(self, writer: SnapshotWriter) -> None:
        """Write all that was applied, and say that it is finished."""

    def load(self, snapshot: SnapshotId, file: File) -> None:
        """Take the state in this file in place of all that was applied. Raises ``CorruptBatch`` with nothing changed.

        A file may be larger than what memory has to spare: read it piece by piece.
        """

    def clear(self) -> None:
        """Forget everything: the log begins again at offset 0."""


class KeyValueMachine:
    """Keys and values; a record without a value deletes its key, one without a key changes nothing.

    A snapshot is record batches, keys in order, and a footer (a control batch) with the number of records, so that a
    file that ends early is found.
    """

    def __init__(self, *, batch_records: int = 1_000) -> None:
        """``batch_records``: how many records of a snapshot are one batch. Its bytes differ by it, not its content."""
        self.values: dict[bytes, bytes] = {}
        self._batch_records = batch_records

    def apply(self, records: Sequence[StoredRecord]) -> None:
        """Put and delete."""
        values = self.values
        for record in records:
            if record.key is None:
                continue
            if record.value is None:
                values.pop(record.key, None)
            else:
                values[record.key] = record.value

    def snapshot(self, writer: SnapshotWriter) -> None:
        """Batches of ``batch_records`` each, then the footer."""
        epoch = max(writer.id.epoch, 0)
        keys = sorted(self.values)
        for first in range(0, len(keys), self._batch_records):
            records = [Record(self.values[key], key, 0) for key in keys[first : first + self._batch_records]]
            writer.append(encode_batch(records, base_offset=first, leader_epoch=epoch))
        footer = Record(_COUNT.pack(len(keys)), _FOOTER_KEY, 0)
        writer.append(encode_batch([footer], base_offset=len(keys), leader_epoch=epoch, control=True))
        writer.finished()

    def load(self, snapshot: SnapshotId, file: File) -> None:
        """Every CRC, the order of the batches and the footer are checked."""
        values: dict[bytes, bytes] = {}
        offset, footers = 0, 0
        for batch in batches_of(file, snapshot.file_name):
            if batch.base_offset != offset or footers:
                raise CorruptBatch(f"a batch at {batch.base_offset} where {offset} follows", 0, snapshot.file_name)
            for record in batch.records():
                if batch.is_control:
                    footers += record.key == _FOOTER_KEY and record.value == _COUNT.pack(offset)
                elif record.key is not None and record.value is not None:
                    values[record.key] = record.value
            offset = batch.next_offset
        if not footers:
            raise CorruptBatch("no footer with the number of records", file.size, snapshot.file_name)
        self.values = values

    def clear(self) -> None:
        """Nothing is left."""
        self.values = {}
