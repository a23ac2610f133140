"""The state machine behind the metadata log: committed records make the image (KIP-631), snapshots hold it (KIP-630).

A snapshot is record batches of the records that describe the image, and a footer (a control batch) with their number,
so that a file that ends early is found. Each value is a metadata record in the form of the log.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..files.interface import File
from ..log.batch import encode_batch
from ..log.errors import CorruptBatch
from ..log.records import Record, StoredRecord
from ..quorum.machine import SnapshotWriter
from ..quorum.snapshots import SnapshotId, batches_of
from .codec import decode, encode
from .errors import CorruptRecord
from .image import Image
from .replay_errors import ReplayError

_FOOTER_KEY = struct.pack(">hh", 0, 4)
"""Kafka's control record SNAPSHOT_FOOTER: version and type."""
_COUNT = struct.Struct(">q")


class MetadataMachine:
    """``image`` is what is committed. A committed record that does not fit it takes the node offline, which names it:
    whoever went on would hold another image than the others."""

    def __init__(self, *, batch_records: int = 1_000, track: bool = False) -> None:
        """``batch_records``: how many records of a snapshot are one batch. Its bytes differ by it, not its content.

        ``track``: note in ``image.touched`` which partitions change; somebody has to take them out of there.
        """
        self.image = Image()
        self._batch_records = batch_records
        if track:
            self.image.touched = set()

    def apply(self, records: Sequence[StoredRecord]) -> None:
        """Replay. Raises ``CorruptBatch`` that names the offset and what does not fit."""
        for record in records:
            _replay(self.image, record, "metadata log", f"offset {record.offset}")

    def snapshot(self, writer: SnapshotWriter) -> None:
        """Batches of ``batch_records`` each, then the footer."""
        epoch = max(writer.id.epoch, 0)
        offset, batch = 0, list[Record]()
        for record in self.image.records():
            batch.append(Record(encode(record), None, 0))
            if len(batch) == self._batch_records:
                writer.append(encode_batch(batch, base_offset=offset, leader_epoch=epoch))
                offset += len(batch)
                batch.clear()
        if batch:
            writer.append(encode_batch(batch, base_offset=offset, leader_epoch=epoch))
            offset += len(batch)
        footer = Record(_COUNT.pack(offset), _FOOTER_KEY, 0)
        writer.append(encode_batch([footer], base_offset=offset, leader_epoch=epoch, control=True))
        writer.finished()

    def load(self, snapshot: SnapshotId, file: File) -> None:
        """Every CRC, the order of the batches, the footer and each record are checked before the image is taken."""
        image, offset, footers, path = Image(), 0, 0, snapshot.file_name
        for batch in batches_of(file, path):
            if batch.base_offset != offset or footers:
                raise CorruptBatch(f"a batch at {batch.base_offset} where {offset} follows", 0, path)
            for record in batch.records():
                if batch.is_control:
                    footers += record.key == _FOOTER_KEY and record.value == _COUNT.pack(offset)
                else:
                    _replay(image, record, path, f"record {record.offset}")
            offset = batch.next_offset
        if not footers:
            raise CorruptBatch("no footer with the number of records", file.size, path)
        self._take(image)

    def clear(self) -> None:
        """Nothing is left."""
        self._take(Image())

    def _take(self, image: Image) -> None:
        touched = self.image.touched
        if touched is not None:
            image.touched = touched.union(self.image.partitions, image.partitions)
        self.image = image


def _replay(image: Image, record: StoredRecord, path: str, where: str) -> None:
    if record.key is not None or record.value is None:
        raise CorruptBatch(f"{where}: a metadata record has a value and no key", 0, path)
    try:
        image.replay(decode(record.value))
    except (CorruptRecord, ReplayError) as error:
        raise CorruptBatch(f"{where}: {error}", 0, path) from None
