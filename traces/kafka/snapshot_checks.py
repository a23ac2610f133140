"""Checks of one node's metadata log and the snapshots beside it (KIP-630), the rules at boot among them.

Kafka's snapshot ids are exclusive ends and the text's are last offsets, one less: the text's "between LBO - 1 and the
high watermark" is an end from the log start offset up to the high watermark, both included (DEVIATIONS F1).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .boot import boot_snapshot, emptied_for, foreign, last_epoch, newest
from .partition import UNFINISHED_SNAPSHOT, SnapshotId
from .verdicts import CheckResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .image import State
    from .partition import PartitionFiles
    from .snapshot_files import SnapshotFile

BOOTSTRAP = SnapshotId(0, 0)
"""Written when the storage is formatted; what is in it is not in the log (KAFKA-19648)."""


def check_boot_rule_of_text(files: PartitionFiles, subject: str) -> CheckResult:
    """The log does not count as empty at boot by the text ("Validation of Snapshot and Log").

    "At least one snapshot where the offset of the snapshot is between LogBeginOffset - 1 and High-Watermark." A log
    that begins at 0 needs none (DEVIATIONS B2). Kafka writes no high watermark of this log, so the LEO, above which it
    cannot be, bounds it; where ``replication-offset-checkpoint`` has one, that is what a boot would go by (A3).
    """
    name = "boot_rule_of_kip_630"
    start, end = files.log_start, files.log_end
    if start == 0:
        return CheckResult(name, "holds", subject, "the log begins at 0 and needs no snapshot")
    known = files.high_watermark
    bound, what = (end, f"the LEO {end}") if known is None else (known, f"the high watermark {known}")
    within = [each for each, _ in files.snapshots if start <= each.end_offset <= bound]
    if not within:
        message = (
            f"no snapshot ends between the log start {start} and {what}: the log counts as empty{_unfinished(files)}"
        )
        return CheckResult(name, "violated", subject, message, _log_start(files))
    message = f"{within[0]} ends between the log start {start} and {what}"
    if known is None:
        message += f", for any high watermark from {within[0].end_offset} on; none is on disk"
    return CheckResult(name, "holds", subject, message)


def check_boot_rule_of_kafka(files: PartitionFiles, subject: str) -> CheckResult:
    """The node starts, and has no gap between snapshot and log (KAFKA-14240, ``KafkaRaftLog.createLog``).

    A log that does not begin at 0 needs a snapshot that ends at its start or later; else the node refuses to start. A
    log that is behind the newest snapshot, by epoch and then offset, is emptied and begins where that ends. One that
    ends below it in a later epoch is left, with a gap in between.
    """
    name = "boot_rule_of_kafka"
    start, end = files.log_start, files.log_end
    ids = [each for each, _ in files.snapshots]
    if start > 0 and not any(each.end_offset >= start for each in ids):
        said = f"the newest is {max(ids)}" if ids else "there is none"
        message = f"no snapshot reaches the log start {start}, {said}: Kafka does not start{_unfinished(files)}"
        return CheckResult(name, "violated", subject, message, _log_start(files))
    newest_id, epoch = newest(ids), last_epoch(files)
    if newest_id is not None and end < newest_id.end_offset and newest_id.epoch < epoch:
        path = dict(files.snapshots)[newest_id]
        message = (
            f"the log ends at {end}, in epoch {epoch}, below the end of snapshot {newest_id}: Kafka keeps that "
            f"log, and offsets {end} to {newest_id.end_offset - 1} are nowhere"
        )
        return CheckResult(name, "violated", subject, message, f"{path}, byte 0")
    if emptied_for(files) is not None:
        message = f"Kafka empties this log, which ends at {end}, and begins at the end of snapshot {newest_id}"
        return CheckResult(name, "holds", subject, message)
    if start == 0:
        return CheckResult(name, "holds", subject, "the log begins at 0 and needs no snapshot")
    return CheckResult(name, "holds", subject, f"{newest_id} reaches the log start {start}")


def _log_start(files: PartitionFiles) -> str:
    """``FILE, byte N`` of the log's first batch; byte 0 of its first segment where it has none."""
    return files.where(files.log_start) if len(files.batches) else f"{files.segments[0].path}, byte 0"


def _unfinished(files: PartitionFiles) -> str:
    """What to add where a snapshot is there that does not count."""
    parts = [problem.path.name for problem in files.problems if problem.path.name.endswith(UNFINISHED_SNAPSHOT)]
    return f" ({parts[0]} was still being written and does not count)" if parts else ""


def check_snapshot_ids(files: PartitionFiles, snapshots: Sequence[SnapshotFile], subject: str) -> CheckResult:
    """Each snapshot's name against the batches of the log.

    Its end is at most the LEO (the high watermark that bounds it is not written to disk) and no offset inside a batch
    (KAFKA-14619); its epoch is that of the record before its end or, where the log has lost that, not above the epoch
    of what comes next; ids rise in both parts.

    A snapshot that the node boots from in place of this log (``boot.py``) was downloaded because the log is behind it
    or diverges before its end: it is held against nothing in the log.
    """
    name = "snapshot_ids_within_log"
    end = files.log_end
    boot, doubt = boot_snapshot(files, snapshots), foreign(files, snapshots)
    for snapshot, path in files.snapshots:
        if doubt and snapshot == emptied_for(files):
            message = f"snapshot {snapshot} ends above the LEO {end}, and {doubt}"
            return CheckResult(name, "unknown", subject, message, f"{path}, byte 0")
        if boot is not None and snapshot == boot.id:
            continue
        if snapshot.end_offset > end:
            message = f"snapshot {snapshot} ends above the LEO {end}"
            return CheckResult(name, "violated", subject, message, f"{path}, byte 0")
        wrong = _against_batches(files, snapshot)
        if wrong is not None:
            return CheckResult(name, "violated", subject, wrong, f"{path}, byte 0")
    for before, after in pairwise(files.snapshots):
        if after[0].epoch < before[0].epoch:
            message = f"snapshot {after[0]} has a lower epoch than {before[0]} before it"
            return CheckResult(name, "violated", subject, message, f"{after[1]}, byte 0")
    if files.damaged:
        return CheckResult(name, "unknown", subject, "part of the log could not be read")
    message = f"{len(files.snapshots)} snapshots, log from {files.log_start} to {end}"
    if boot is not None:
        message += f", which Kafka empties at its next start and goes on from snapshot {boot.id}"
    return CheckResult(name, "holds", subject, message)


def _against_batches(files: PartitionFiles, snapshot: SnapshotId) -> str | None:
    """What is wrong with an id that ends within the log or below it."""
    batches, end = files.batches, snapshot.end_offset
    inside = np.flatnonzero((batches.base_offset < end) & (batches.last_offset >= end))
    if len(inside):
        base, last = int(batches.base_offset[inside[0]]), int(batches.last_offset[inside[0]])
        return f"snapshot {snapshot} ends inside the batch of offsets {base} to {last} ({files.where(base)})"
    record = files.records.between(end - 1, end)
    if len(record):
        epoch = int(record.leader_epoch[0])
        if epoch != snapshot.epoch:
            place = files.where(end - 1)
            return f"snapshot {snapshot}, but the record before its end has epoch {epoch} ({place})"
        return None
    later = np.flatnonzero(batches.base_offset >= end)
    if len(later) and int(batches.leader_epoch[later[0]]) < snapshot.epoch:
        base, epoch = int(batches.base_offset[later[0]]), int(batches.leader_epoch[later[0]])
        return f"snapshot {snapshot}, but the log goes on at {base} with the older epoch {epoch} ({files.where(base)})"
    return None


def check_snapshot_files(files: PartitionFiles, snapshots: Sequence[SnapshotFile], subject: str) -> CheckResult:
    """Each file says of itself what its name says, from a header to a footer.

    All batches are of the epoch in the name, their offsets run from 0 on without a gap, and the append time in the
    header is that of the batch before the end in the name, where the log still has that batch. A file with an
    unreadable part is ``unknown``: the fault may be the copy's.
    """
    name = "snapshot_files_match_names"
    for snapshot in snapshots:
        wrong = None if snapshot.damaged else _file_fault(files, snapshot)
        if wrong is not None:
            message, byte = wrong
            return CheckResult(name, "violated", subject, f"snapshot {snapshot.id}: {message}", snapshot.at(byte))
    for snapshot in snapshots:
        if snapshot.damaged:
            message = f"part of snapshot {snapshot.id} could not be read"
            return CheckResult(name, "unknown", subject, message, str(snapshot.path))
    return CheckResult(name, "holds", subject, f"{len(snapshots)} snapshots")


def _file_fault(files: PartitionFiles, snapshot: SnapshotFile) -> tuple[str, int] | None:
    """What is wrong with one file, and at which byte."""
    if snapshot.header is None and not snapshot.of_page:
        return "it does not begin with a snapshot header", 0
    expected = 0
    for batch in snapshot.batches:
        if batch.leader_epoch != snapshot.id.epoch:
            return f"a batch of epoch {batch.leader_epoch}", batch.position
        if batch.base_offset != expected:
            return f"a batch at offset {batch.base_offset} where {expected} comes next", batch.position
        expected = batch.last_offset + 1
    if not snapshot.has_footer:
        return f"it ends without a footer, after {snapshot.valid_bytes} bytes: written in part", snapshot.valid_bytes
    # A log that Kafka empties for the snapshot's sake may hold another leader's batches where that ends.
    written = None if snapshot.id == emptied_for(files) else _append_time(files, snapshot.id.end_offset)
    if snapshot.header is None or written is None:
        return None
    if written != snapshot.header and snapshot.id != BOOTSTRAP:
        return f"its header says append time {snapshot.header}, the log's batch before its end {written}", 0
    return None


def _append_time(files: PartitionFiles, end: int) -> int | None:
    """The append time of the batch that ends there, in the log."""
    rows = np.flatnonzero(files.batches.last_offset == end - 1)
    return int(files.batches.max_timestamp[rows[0]]) if len(rows) else None


def check_snapshot_contents(
    snapshots: Sequence[SnapshotFile], replayed: Mapping[int, State], subject: str
) -> CheckResult | None:
    """Each snapshot decides what the log up to its end does: it is the committed prefix that it names.

    ``replayed`` is the log's word, by end offset. What it does not reach is not compared; ``None`` where that is all.
    """
    name = "snapshot_contents_match_log"
    compared = [each for each in snapshots if each.id.end_offset in replayed and not each.damaged]
    for snapshot in compared:
        log, own = replayed[snapshot.id.end_offset], snapshot.state
        if log != own:
            key = min(key for key in {*log, *own} if log.get(key) != own.get(key))
            message = f"snapshot {snapshot.id} has {_said(key, own)}, the log up to its end {_said(key, log)}"
            return CheckResult(name, "violated", subject, message, snapshot.at(snapshot.state_at))
    if not compared:
        return None
    return CheckResult(name, "holds", subject, f"{len(compared)} snapshots decide what the log does up to their ends")


def _said(key: str, state: State) -> str:
    return f"{key}: {state[key]}" if key in state else f"no {key}"
