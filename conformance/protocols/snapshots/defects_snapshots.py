"""Defects of snapshots: their names and files, how they are fetched, and booting. Driven against ``snapshots``."""

from __future__ import annotations

from typing import Final

from ...mutants.defects import Defect
from ...mutants.patched import Patch
from .defects_quorum import ALONE, ALONE_CHUNKED, ALONE_LONG, ALONE_TWICE, CHOOSY, PAIR, SNAPSHOTS, quorum_defect

SNAPSHOT_DEFECTS: Final[tuple[Defect, ...]] = (
    # -- ids --------------------------------------------------------------------------------------------------------
    quorum_defect(
        "id-in-messages-off-by-one",
        ALONE_LONG,
        "a snapshot is named by the offset after its last one, as if the text's ids were Kafka's",
        "snapshots",
        "return OffsetAndEpoch(self.end_offset - 1, self.epoch)",
        "return OffsetAndEpoch(self.end_offset, self.epoch)",
    ),
    quorum_defect(
        "id-in-name-off-by-one",
        ALONE,
        "a file's name has the last offset, as if Kafka's names had the text's ids",
        "snapshots",
        'return f"{self.end_offset:020d}-',
        'return f"{self.end_offset - 1:020d}-',
    ),
    quorum_defect(
        "id-of-newest-epoch",
        PAIR,
        "a snapshot's id has the epoch in which it was made, not that of its last record",
        "replica",
        "snapshot = SnapshotId(self.applied, self.epoch_at(self.applied - 1))",
        "snapshot = SnapshotId(self.applied, self.log.latest_epoch)",
    ),
    quorum_defect(
        "snapshot-past-hw",
        PAIR,
        "a snapshot is named after the end of the log, not of what is committed",
        "replica",
        "snapshot = SnapshotId(self.applied, self.epoch_at(self.applied - 1))",
        "snapshot = SnapshotId(self.end, self.epoch_at(self.end - 1))",
    ),
    quorum_defect(
        "snapshot-too-soon",
        CHOOSY,
        "controller.snapshot.minimum.records are enough for a snapshot, not one more",
        "replica",
        "self.applied - self.snapshots.latest_end > minimum_records",
        "self.applied - self.snapshots.latest_end >= minimum_records",
    ),
    # -- files ------------------------------------------------------------------------------------------------------
    quorum_defect(
        "renamed-before-sync",
        ALONE,
        "a snapshot gets its name before its bytes are synced",
        "snapshots",
        "        self._file.fsync()\n        self._file.close()\n        self._files.rename",
        "        self._file.close()\n        self._files.rename",
    ),
    quorum_defect(
        "name-not-synced",
        ALONE,
        "the folder is not synced after a snapshot got its name",
        "snapshots",
        '        self._files.rename(self._path, f"{self._folder}/{self.id.file_name}")\n'
        "        self._files.fsync_dir(self._folder)\n",
        '        self._files.rename(self._path, f"{self._folder}/{self.id.file_name}")\n',
    ),
    Defect(
        "part-passes-for-whole",
        SNAPSHOTS,
        "half a snapshot that a crash left under its .part name passes for a whole one",
        (
            Patch("quorum/snapshots.py", "match = _NAME.fullmatch(name)", "match = _NAME.match(name)"),
            Patch(
                "quorum/snapshots.py",
                '            files.remove(f"{folder}/{name}")\n        self._ids',
                '            files.rename(f"{folder}/{name}", f"{folder}/{name.removesuffix(PART_SUFFIX)}")\n'
                "        self._ids",
            ),
        ),
        constants=ALONE_CHUNKED,
    ),
    quorum_defect(
        "cleaned-at-lbo",
        ALONE,
        "the snapshot that ends where the log begins is deleted",
        "replica",
        "old = tuple(each for each in self.snapshots.ids if each.end_offset < self.begin)",
        "old = tuple(each for each in self.snapshots.ids if each.end_offset <= self.begin)",
    ),
    # -- fetching ---------------------------------------------------------------------------------------------------
    quorum_defect(
        "log-not-wiped",
        ALONE,
        "a follower that has to start over keeps its log",
        "replica",
        "        self.log.truncate_fully_and_start_at(offset)\n        self.high_watermark = offset",
        "        self.high_watermark = offset",
    ),
    quorum_defect(
        "log-begins-at-id",
        ALONE_LONG,
        "a follower that starts over begins its log at the snapshot's last offset, not after it",
        "replica",
        "        self._wipe(snapshot.end_offset)\n",
        "        self._wipe(snapshot.end_offset - 1)\n",
    ),
    quorum_defect(
        "snapshots-kept-over-wipe",
        ALONE_LONG,
        "a follower that starts over keeps the snapshots that it has",
        "replica",
        "        self.snapshots.delete(self.snapshots.ids)\n        self.log.truncate",
        "        self.log.truncate",
    ),
    quorum_defect(
        "chunk-at-wrong-position",
        ALONE_CHUNKED,
        "a leader answers every position with the file's first bytes",
        "answers",
        "data = snapshots.read_at(wanted, body.position, min(",
        "data = snapshots.read_at(wanted, 0, min(",
    ),
    Defect(
        "continue-misread",
        SNAPSHOTS,
        "a follower takes a snapshot for whole though Continue is set",
        (
            Patch(
                "quorum/follower.py",
                "body.unaligned_records, more=body.continues)",
                "body.unaligned_records, more=False)",
            ),
        ),
        constants=ALONE_CHUNKED,
    ),
    quorum_defect(
        "continue-at-end",
        ALONE_CHUNKED,
        "a leader sets Continue with the last bytes too",
        "answers",
        "more = body.position + len(data) < size",
        "more = body.position + len(data) <= size",
    ),
    quorum_defect(
        "chunks-of-older-leader-kept",
        ALONE_TWICE,
        "in a new epoch half a snapshot is completed with the new leader's bytes, which may differ (hole A4)",
        "node",
        "        self._state.store(ballot)\n        self.replica.entered_epoch()\n",
        "        self._state.store(ballot)\n",
    ),
    Defect(
        "late-chunk-taken",
        SNAPSHOTS,
        "a follower appends the answer to an earlier FetchSnapshot, whatever it has fetched since (hole A5)",
        (
            Patch(
                "quorum/follower.py",
                "        node.requests.forget(self._fetch_snapshot)\n        if partial is None:\n",
                "        if partial is None:\n",
            ),
            Patch(
                "quorum/follower.py",
                "        if body.snapshot != partial.id.in_messages or body.position != partial.size:\n",
                "        if body.snapshot != partial.id.in_messages:\n",
            ),
            Patch("quorum/replica.py", "if partial is None or position != partial.size:", "if partial is None:"),
        ),
        constants=ALONE_CHUNKED,
    ),
    quorum_defect(
        "never-rediscovers",
        ALONE_LONG,
        "a follower asks on and on for a snapshot that the leader does not have any more",
        "follower",
        "{ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE,",
        "{ErrorCode.POSITION_OUT_OF_RANGE,",
    ),
    quorum_defect(
        "applied-again-after-load",
        ALONE_LONG,
        "records that a fetched snapshot includes are applied to it once more",
        "replica",
        "        self.applied = snapshot.end_offset\n        self.metrics",
        "        self.metrics",
    ),
    # -- booting ----------------------------------------------------------------------------------------------------
    quorum_defect(
        "boot-not-validated",
        ALONE_CHUNKED,
        "a log whose snapshot is missing does not count as empty at boot",
        "replica",
        "        if self.log.log_start > self.snapshots.latest_end:\n",
        "        if False:\n",
    ),
    quorum_defect(
        "boot-reads-lbo-for-lbo-1",
        ALONE,
        "a log that begins where its snapshot ends counts as empty at boot",
        "replica",
        "        if self.log.log_start > self.snapshots.latest_end:\n",
        "        if 0 < self.log.log_start >= self.snapshots.latest_end:\n",
    ),
    quorum_defect(
        "hw-zero-after-boot",
        ALONE,
        "after a boot the high watermark is below the snapshot that was loaded",
        "replica",
        "            raise CorruptLog(error.what, self.snapshots.path(latest), error.byte, mend) from None\n"
        "        self.high_watermark = latest.end_offset\n",
        "            raise CorruptLog(error.what, self.snapshots.path(latest), error.byte, mend) from None\n",
    ),
)
