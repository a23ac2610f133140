"""What a node's metadata log is once Kafka has started from it: the log on disk, or the newest snapshot alone.

A follower that is far behind downloads a snapshot and then empties its log. A crash in between leaves a log that ends
below the snapshot, or diverges before its end; at the next start Kafka empties that log first
(``KafkaRaftLog.truncateToLatestSnapshot``; ``KafkaMetadataLogTest.testTruncateFullyToLatestSnapshot``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .partition import BatchColumns, PartitionFiles, RecordColumns, SegmentFile, SnapshotId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .snapshot_files import SnapshotFile


def newest(ids: Sequence[SnapshotId]) -> SnapshotId | None:
    """The newest snapshot: Kafka orders them by epoch first (``OffsetAndEpoch.compareTo``)."""
    return max(ids, key=lambda each: (each.epoch, each.end_offset), default=None)


def last_epoch(files: PartitionFiles) -> int:
    """The epoch of the log's last record; 0 for an empty log, as Kafka has it."""
    starts = files.epoch_starts()
    return starts[-1].epoch if starts else 0


def emptied_for(files: PartitionFiles) -> SnapshotId | None:
    """The snapshot for whose sake Kafka empties this log at its next start; ``None`` where the log stays.

    That is the newest one, where it is of a later epoch than the log's last record, or of the same and ends above the
    LEO. A log start that no snapshot reaches keeps the node from starting at all.
    """
    ids = [each for each, _ in files.snapshots]
    found = newest(ids)
    if found is None or not any(each.end_offset >= files.log_start for each in ids):
        return None
    return found if (found.epoch, found.end_offset) > (last_epoch(files), files.log_end) else None


def boot_snapshot(files: PartitionFiles, snapshots: Sequence[SnapshotFile]) -> SnapshotFile | None:
    """The file that the node boots from in place of its log: ``emptied_for``, where that file is what its name says.

    One that ends at the log start or below was no download: what stood there was deleted for another snapshot's sake.
    """
    found = _whole(files, snapshots)
    return None if found is None or foreign(files, snapshots) else found


def foreign(files: PartitionFiles, snapshots: Sequence[SnapshotFile]) -> str:
    """Why the file that Kafka would boot from may be another snapshot's under that name; empty where it may not.

    A log of the snapshot's own epoch is the beginning of what is in it, so the last append time in the header cannot be
    before that of the log's last batch, unless the controller's clock went back.
    """
    found = _whole(files, snapshots)
    if found is None or not len(files.batches) or found.id.epoch != last_epoch(files):
        return ""
    written = int(files.batches.max_timestamp[-1])
    if found.header is None or found.header >= written:
        return ""
    return (
        f"its header says append time {found.header}, the log's last batch, before its end, {written}: "
        "it is another one's file, or the controller's clock went back"
    )


def _whole(files: PartitionFiles, snapshots: Sequence[SnapshotFile]) -> SnapshotFile | None:
    wanted = emptied_for(files)
    found = next((each for each in snapshots if each.id == wanted), None)
    if found is None or found.damaged or found.header is None or not found.has_footer:
        return None
    if found.id.end_offset <= files.log_start:
        return None
    return found if all(batch.leader_epoch == found.id.epoch for batch in found.batches) else None


def emptied(files: PartitionFiles, snapshot: SnapshotFile) -> PartitionFiles:
    """The log as that boot leaves it: no records, from the snapshot's end on."""
    end = snapshot.id.end_offset
    batches = BatchColumns(*(getattr(files.batches, name)[:0] for name in BatchColumns.__slots__))
    records = RecordColumns(*(getattr(files.records, name)[:0] for name in RecordColumns.__slots__))
    segments = (SegmentFile(files.path / f"{end:020d}.log", end, 0, 0),)
    return replace(
        files, segments=segments, batches=batches, records=records, epoch_cache=(), log_start_checkpoint=None
    )
