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
        "flag-ignored",
        "an empty follower begins at the EPUO though the flag is off",
        "tiering/remote",
        "return self.config.follower_fetch_last_tiered_offset_enable and log.log_start == log.end",
        "return log.log_start == log.end",
    ),
    _of(
        "begins-with-data",
        "a follower that has data begins at the EPUO",
        "tiering/remote",
        "return self.config.follower_fetch_last_tiered_offset_enable and log.log_start == log.end",
        "return self.config.follower_fetch_last_tiered_offset_enable",
    ),
    _of(
        "gives-up-building",
        "a follower whose auxiliary state could not be built fetches no more",
        "tiering/bootstrap",
        "            metrics.build_errors.mark()\n",
        "            metrics.build_errors.mark()\n            return\n",
        "KAFKA-19523",
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
    _of(
        "latest-is-local",
        "the record with the largest timestamp is looked for in the local log alone",
        "tiering/reader",
        "return latest if latest[1] > found[1] else found",
        "return latest",
    ),
    _of(
        "first-segment-skipped",
        "by a timestamp a segment is skipped whose latest record has it",
        "tiering/reader",
        "if segment.max_timestamp < timestamp:",
        "if segment.max_timestamp <= timestamp:",
    ),
    _of(
        "forgets-objects",
        "which objects a finished copy has is forgotten, so that nobody can read it",
        "tiering/segments",
        "objects=objects or known.objects)",
        "objects=known.objects)",
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
        "copy-begins-unsaid",
        "a segment is copied before the metadata log says so",
        "tiering/copier",
        "            yield from self._start(segment)\n",
        "            remote.copying.add(segment.id)\n",
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
        "deletes-what-is-not-local",
        "remote segments are deleted when they are gone from the disk",
        "tiering/expiry",
        "return segment.end_offset < log.log_start or segment.epochs[-1].epoch < first",
        "return segment.end_offset < log.local_start or segment.epochs[-1].epoch < first",
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
    ),
    _of(
        "finished-deleted-as-unfinished",
        "a copy is deleted as unfinished though it was finished before that was said",
        "tiering/segments",
        "        if unfinished and known.state is SegmentState.COPY_SEGMENT_FINISHED:\n            return False\n",
        "",
    ),
    _of(
        "log-start-behind-segment",
        "the log start is raised behind the first record that does not expire",
        "tiering/expiry",
        "            log.delete_before(start)\n",
        "            log.delete_before(min(start + 1, log.end))\n",
    ),
    # -- how long records are kept ----------------------------------------------------------------------------------
    _of(
        "bytes-behind-miscounted",
        "what goes by size is not taken off what is there: more goes than is over",
        "tiering/expiry",
        "            size -= each.size\n            start = behind\n",
        "            start = behind\n",
    ),
    _of(
        "young-go-by-age",
        "records go by age before they are as old as retention.ms",
        "tiering/expiry",
        "now - each.max_timestamp > topic.retention_ms",
        "now - each.max_timestamp > topic.retention_ms // 100",
    ),
    _of(
        "left-below-log-start",
        "segments below the log start stay in remote storage",
        "tiering/expiry",
        "return segment.end_offset < log.log_start or segment.epochs[-1].epoch < first",
        "return segment.epochs[-1].epoch < first",
    ),
    _of(
        "left-on-disk",
        "the last local segment that is in remote storage stays on the disk",
        "tiering/expiry",
        "            if each.end > limit:\n",
        "            if each.end >= limit:\n",
    ),
)
"""Each is found by a free run."""
