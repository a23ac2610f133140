"""Defects of ``impl/tiering``, and of what a broker asks of it, which are driven against ``tiering``."""

from __future__ import annotations

from typing import Final

from ...mutants.defects import Defect
from ...mutants.patched import Patch

CONSTANTS: Final = (3, 10, 14, 20)
"""Brokers, offsets, leader epochs, copies."""


def _of(name: str, doc: str, file: str, old: str, new: str, issue: str = "") -> Defect:
    return Defect(name, "tiering", doc, (Patch(f"{file}.py", old, new),), issue, CONSTANTS)


DEFECTS: Final[tuple[Defect, ...]] = (
    # -- where a follower begins ------------------------------------------------------------------------------------
    _of(
        "unknown-epuo-taken",
        "a follower goes by an EPUO that is unknown, though something is uploaded",
        "tiering/bootstrap",
        "            if local != leader_start:\n"
        "                raise _Retry  # something is uploaded, and the leader will know of it\n",
        "",
        "KIP-1023",
    ),
    _of(
        "flag-ignored",
        "an empty follower begins at the EPUO though the flag is off",
        "tiering/remote",
        "return self.config.follower_fetch_last_tiered_offset_enable and log.log_start == log.end",
        "return log.log_start == log.end",
        "KIP-1023",
    ),
    _of(
        "begins-with-data",
        "a follower that has data begins at the EPUO",
        "tiering/remote",
        "return self.config.follower_fetch_last_tiered_offset_enable and log.log_start == log.end",
        "return self.config.follower_fetch_last_tiered_offset_enable",
        "KIP-1023",
    ),
    _of(
        "gives-up-building",
        "a follower whose auxiliary state could not be built fetches no more",
        "tiering/bootstrap",
        "            metrics.build_errors.mark()\n",
        "            metrics.build_errors.mark()\n            return\n",
        "KAFKA-16890",
    ),
    _of(
        "begins-above-target",
        "a follower begins behind the first offset that its leader has locally",
        "tiering/bootstrap",
        "self._partition.start_after_remote(log_start, offset, epochs, producers)",
        "self._partition.start_after_remote(log_start, offset + 1, epochs, producers)",
    ),
    _of(
        "forgets-log-start",
        "a follower's log begins where its checkpoint does, and not where its leader's log does",
        "tiering/bootstrap",
        "self._partition.start_after_remote(log_start, offset, epochs, producers)",
        "self._partition.start_after_remote(epochs[-1].start_offset, offset, epochs, producers)",
    ),
    # -- what a leader answers --------------------------------------------------------------------------------------
    _of(
        "epuo-is-last-tiered",
        "the earliest pending upload offset is that of the last record uploaded",
        "replica/fetch",
        "return NO_OFFSET if last == NO_OFFSET else last + 1",
        "return last",
        "KIP-1023",
    ),
    _of(
        "consumer-told-moved",
        "a consumer that fetches below the local log start is told what only a follower is",
        "replica/fetch",
        "if not replica and envelope is not None and partition.remote is not None:",
        "if not replica and envelope is None and partition.remote is not None:",
    ),
    _of(
        "moved-below-log-start",
        "below the log start a follower is told that the records are in remote storage",
        "replica/fetch",
        "if error is ErrorCode.NONE and not log.log_start <= offset <= log.end:",
        "if error is ErrorCode.NONE and not 0 <= offset <= log.end:",
    ),
    # -- uploads ----------------------------------------------------------------------------------------------------
    _of(
        "uploads-uncommitted",
        "segments above the high watermark are uploaded",
        "tiering/copier",
        "stable = self._partition.high_watermark",
        "stable = self._partition.log.end",
    ),
    _of(
        "highest-of-another-lineage",
        "the highest offset in remote storage may be a deposed leader's",
        "tiering/segments",
        "return min(highest, lineage.end_offset_for(entry.epoch, end)[1] - 1)",
        "return highest",
        "KAFKA-15241",
    ),
    _of(
        "copy-begins-unsaid",
        "a segment is copied before the metadata log says so",
        "tiering/copier",
        "            yield from self._start(segment)\n",
        "            remote.copying.add(segment.id)\n",
        "KAFKA-16511",
    ),
    _of(
        "reads-uncommitted-metadata",
        "what is not committed in the metadata log counts",
        "tiering/metadata",
        "        while self._position < here.high_watermark:\n"
        "            batches = log.read(self._position, _READ_BYTES, here.high_watermark)\n",
        "        while self._position < log.end:\n"
        "            batches = log.read(self._position, _READ_BYTES, log.end)\n",
    ),
    # -- deletions --------------------------------------------------------------------------------------------------
    _of(
        "local-deleted-before-upload",
        "local segments are deleted by the local retention alone",
        "tiering/expiry",
        "limit = min(self.local_limit(), self._partition.high_watermark)",
        "limit = self._partition.high_watermark",
    ),
    _of(
        "deletes-what-is-not-local",
        "remote segments are deleted when they are gone from the disk",
        "tiering/expiry",
        "return segment.end_offset < log.log_start or segment.epochs[-1].epoch < first",
        "return segment.end_offset < log.local_start or segment.epochs[-1].epoch < first",
        "KAFKA-15352",
    ),
    _of(
        "deletes-what-is-copied",
        "a leader takes its own copy that is under way for one that came to no end",
        "tiering/expiry",
        "            return segment.id not in self._remote.copying\n",
        "            return True\n",
        "KAFKA-17062",
    ),
    _of(
        "deletion-begins-unsaid",
        "objects are removed before the metadata log says so",
        "tiering/expiry",
        "        if segment.state is not SegmentState.DELETE_SEGMENT_STARTED:\n",
        "        if segment.state is SegmentState.COPY_SEGMENT_STARTED:\n",
        "KAFKA-15352",
    ),
    _of(
        "deletion-begins-log-start-behind",
        "the log start does not follow what another leader has begun to delete",
        "tiering/expiry",
        "        while (gone := self._deleted_at(start)) is not None:\n            start = gone.end_offset + 1\n",
        "",
        "KAFKA-15351",
    ),
    _of(
        "finished-deleted-as-unfinished",
        "a copy is deleted as unfinished though it was finished before that was said",
        "tiering/segments",
        "        if unfinished and known.state is SegmentState.COPY_SEGMENT_FINISHED:\n            return False\n",
        "",
    ),
    _of(
        "deposed-leader-finishes",
        "a copy that a new leader has begun to delete is finished by the deposed one",
        "tiering/segments",
        "    SegmentState.DELETE_SEGMENT_STARTED: (SegmentState.DELETE_SEGMENT_FINISHED,),\n",
        "    SegmentState.DELETE_SEGMENT_STARTED: (\n"
        "        SegmentState.DELETE_SEGMENT_FINISHED,\n"
        "        SegmentState.COPY_SEGMENT_FINISHED,\n"
        "    ),\n",
    ),
    _of(
        "deleted-copy-taken-for-finished",
        "a leader takes its copy, which a deposed one has begun to delete, for finished",
        "tiering/remote",
        "is SegmentState.COPY_SEGMENT_STARTED else bool(known.objects)",
        "is SegmentState.COPY_SEGMENT_STARTED else True",
        "KAFKA-16511",
    ),
    _of(
        "deleted-segment-returns",
        "a record of the metadata log that comes once more brings a deleted segment back",
        "tiering/segments",
        "if segment.id in self._segments or segment.id in self._deleted:",
        "if segment.id in self._segments:",
    ),
    _of(
        "log-start-behind-segment",
        "the log start is raised behind the first record that does not expire",
        "tiering/expiry",
        "            log.delete_before(start)\n",
        "            log.delete_before(min(start + 1, log.end))\n",
    ),
)
"""Each is found by a free run."""
