"""Checks on one replica's files alone: what a log, its epoch cache and its offsets promise each other."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..text import counted
from .batches import OVERLAP
from .divergence import first_missing, has_offset_holes
from .partition import METADATA_TOPIC
from .verdicts import CheckResult, Verdict

if TYPE_CHECKING:
    from .partition import PartitionFiles
    from .policies import CleanupPolicy
    from .statefiles import EpochEntry

CACHE_FILE = "leader-epoch-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
CLEANER_FILE = "cleaner-offset-checkpoint"


def check_epochs_monotone(files: PartitionFiles, subject: str) -> CheckResult:
    """Leader epochs never fall along the log (KIP-101: an epoch's records are one run of offsets)."""
    name = "epochs_monotone"
    epochs, bases = files.batches.leader_epoch, files.batches.base_offset
    falls = np.flatnonzero(np.diff(epochs) < 0)
    if len(falls):
        row = int(falls[0]) + 1
        offset = int(bases[row])
        message = f"leader epoch {epochs[row]} at offset {offset} after epoch {epochs[row - 1]} before it"
        return CheckResult(name, "violated", subject, message, files.where(offset), data={"offset": offset})
    if files.damaged:
        return CheckResult(name, "unknown", subject, "part of the log could not be read; what could be is monotone")
    return CheckResult(name, "holds", subject, f"over {counted(len(epochs), 'batch')}")


def check_epoch_cache(files: PartitionFiles, subject: str, *, clean_shutdown: bool) -> CheckResult:
    """The entries of ``leader-epoch-checkpoint`` are the first offsets of the epochs in the batches.

    By Kafka's own rules (``LeaderEpochFileCache``) three differences are none: an entry at the LEO (a leader enters its
    epoch before its first record), entries at or below the log start (only the last of them counts, from the log start
    on), and in a compacted log an entry below the first record that is left of its epoch. An entry above the
    LEO is what a killed broker leaves, since a truncation writes the file later (Kafka drops it when it loads the
    log): ``unknown`` then, ``violated`` after a clean shutdown.
    """
    name = "epoch_cache_matches_batches"
    path = str(files.path / CACHE_FILE)
    expected = files.epoch_starts()
    if any(problem.path.name == CACHE_FILE for problem in files.problems):
        return CheckResult(name, "unknown", subject, f"{CACHE_FILE} could not be read whole", path)
    if files.epoch_cache is None:
        if files.damaged:
            return CheckResult(name, "unknown", subject, "part of the log could not be read", path)
        if not expected:
            return CheckResult(name, "holds", subject, "no record has an epoch and there is no cache")
        message = f"there is no {CACHE_FILE}, or nothing in it, to compare with {len(expected)} epochs in the batches"
        return CheckResult(name, "unknown", subject, message, path)
    mismatch = _cache_mismatch(files, expected)
    if mismatch is not None:
        start = None if clean_shutdown else _unwritten_log_start(files)
        if start is not None:
            message = f"{mismatch}; the log may start at {start}, which {LOG_START_FILE} does not have yet"
            return CheckResult(name, "unknown", subject, message, path)
        verdict: Verdict = "unknown" if files.damaged else "violated"
        reason = " (part of the log could not be read)" if files.damaged else ""
        return CheckResult(name, verdict, subject, mismatch + reason, path)
    if files.damaged:
        return CheckResult(name, "unknown", subject, "part of the log could not be read; the rest matches", path)
    stale = [entry for entry in files.epoch_cache if entry.start_offset > files.log_end]
    if stale:
        message = f"epoch {stale[0].epoch} begins at {stale[0].start_offset}, above the LEO {files.log_end}"
        if clean_shutdown:
            return CheckResult(name, "violated", subject, f"{message}, after a clean shutdown", path)
        return CheckResult(
            name, "unknown", subject, f"{message}: left over from a truncation, or the log lost its tail", path
        )
    return CheckResult(
        name, "holds", subject, f"{len(files.epoch_cache)} entries, {len(expected)} epochs in the batches"
    )


def _cache_mismatch(files: PartitionFiles, expected: tuple[EpochEntry, ...]) -> str | None:
    """The first contradiction between cache and batches, in words."""
    cache = files.epoch_cache or ()
    for line, (before, after) in enumerate(pairwise(cache), start=4):
        if after.epoch <= before.epoch or after.start_offset <= before.start_offset:
            return (
                f"line {line}: entry {after.epoch} {after.start_offset} does not rise "
                f"over {before.epoch} {before.start_offset}"
            )
    below = [entry for entry in cache if entry.start_offset <= files.log_start]
    starts = {entry.epoch: entry.start_offset for entry in cache if entry.start_offset > files.log_start}
    if below:
        starts[below[-1].epoch] = files.log_start
    for entry in expected:
        start = starts.get(entry.epoch)
        if start is None:
            return (
                f"the batches have epoch {entry.epoch} from offset {entry.start_offset} on, the cache has no such entry"
            )
        if start != entry.start_offset and not (
            start < entry.start_offset and _empty(files, start, entry.start_offset)
        ):
            return f"epoch {entry.epoch} begins at {entry.start_offset} in the batches and at {start} in the cache"
    known = {entry.epoch for entry in expected}
    ordered = sorted(starts.items())
    for i, (epoch, start) in enumerate(ordered):
        end = min(ordered[i + 1][1], files.log_end) if i + 1 < len(ordered) else files.log_end
        if epoch not in known and start < end and not _empty(files, start, end):
            return f"the cache has epoch {epoch} from offset {start} on, no batch from there to {end} has it"
    return None


def _unwritten_log_start(files: PartitionFiles) -> int | None:
    """The log start that explains the cache, if no checkpoint has one; ``None`` if there is no such offset.

    Kafka cuts the cache at a new log start at once, and writes the checkpoint of log starts once a minute. The first
    entry then is that start, in the epoch of the batch there.
    """
    cache = files.epoch_cache
    if not cache or files.log_start_checkpoint is not None:
        return None
    start = cache[0].start_offset
    if not files.log_start < start < files.log_end or start > (files.high_watermark or start):
        return None
    row = int(np.searchsorted(files.batches.last_offset, start))
    if int(files.batches.leader_epoch[row]) != cache[0].epoch:
        return None
    moved = replace(files, log_start_checkpoint=start)
    return start if _cache_mismatch(moved, moved.epoch_starts()) is None else None


def _empty(files: PartitionFiles, start: int, end: int) -> bool:
    """Whether no batch holds any offset of ``[start, end)``."""
    batches = files.batches
    return not bool(np.any((batches.last_offset >= start) & (batches.base_offset < end)))


def check_offsets_contiguous(
    files: PartitionFiles, subject: str, policy: CleanupPolicy, cleaned: int | None = None
) -> CheckResult:
    """Every offset from log start to LEO has its record, but for what compaction has removed.

    ``policy`` is the topic's, as the metadata log has it. ``cleaned`` is the offset below which some replica has
    cleaned the log, where that is known (``compaction_checks.cleaned_below``): a hole above it is nobody's cleaning.
    """
    name = "offsets_contiguous"
    overlap = next((each for each in files.problems if each.kind == OVERLAP), None)
    if overlap is not None:
        return CheckResult(name, "violated", subject, overlap.what, overlap.where)
    if files.unread is not None:
        return CheckResult(name, "unknown", subject, f"the log was not read: {files.unread}")
    if not has_offset_holes(files):
        if files.damaged:
            return CheckResult(name, "unknown", subject, "part of the log could not be read; the rest has no hole")
        return CheckResult(name, "holds", subject, f"offsets {files.log_start} to {files.log_end}, LEO exclusive")
    gaps = files.gaps()
    if gaps:
        start, end = gaps[0]
        message, where = f"no batch covers offsets {start} to {end - 1}", files.where(start)
    else:
        message, where = "batches hold fewer records than they cover offsets", ""
    if files.damaged:
        return CheckResult(name, "unknown", subject, f"{message}; part of the log could not be read", where)
    if policy.compacted:
        lost = None if cleaned is None else first_missing(files, cleaned, files.log_end)
        if lost is not None:
            message = f"offset {lost} has no record, and no replica has cleaned beyond {cleaned}"
            return CheckResult(name, "violated", subject, message, files.where(lost), data={"offset": lost})
        return CheckResult(name, "holds", subject, f"{message}, as {policy} allows", where)
    if files.topic == METADATA_TOPIC:
        return CheckResult(name, "violated", subject, f"{message}, and this log is never compacted", where)
    if policy.value is not None:
        if policy.since_creation and files.cleaned is None:
            message += f", and {policy} since the topic was created"
            return CheckResult(name, "violated", subject, message, where)
        if files.cleaned is None:
            # Holes stay after a topic is compacted no more.
            message += f"; compaction may have removed them before {policy}"
            return CheckResult(name, "holds" if policy.once_compacted else "unknown", subject, message, where)
        # The checkpoint keeps the entry of a topic that is compacted no more.
        bound = max(files.cleaned, cleaned or 0)
        lost = first_missing(files, bound, files.log_end)
        if lost is None:
            message += f"; compaction did, up to {bound}, before {policy}"
            return CheckResult(name, "holds" if policy.once_compacted else "unknown", subject, message, where)
        message = f"offset {lost} has no record, no replica is known to have cleaned beyond {bound}, and {policy}"
        verdict: Verdict = "unknown" if cleaned is None else "violated"
        return CheckResult(name, verdict, subject, message, files.where(lost), data={"offset": lost})
    lost = None if cleaned is None else first_missing(files, cleaned, files.log_end)
    if cleaned is not None and lost is None:
        message += f"; {CLEANER_FILE} says that compaction has cleaned the log up to {cleaned}"
        return CheckResult(name, "holds", subject, message, where)
    message += "; compaction may have removed them (no file here has the topic's cleanup.policy)"
    return CheckResult(name, "unknown", subject, message, where)


def check_offsets_ordered(files: PartitionFiles, subject: str, *, clean_shutdown: bool) -> CheckResult:
    """log start <= high watermark <= LEO.

    Compared are: the first segment's base or the checkpointed log start, whichever is larger; the high watermark of
    ``replication-offset-checkpoint``; and one more than the last readable offset. The checkpointed high watermark lags
    the broker's own by up to 5 s unless the broker was shut down cleanly, so one below the log start is ``unknown``
    without a clean shutdown. One above the LEO is ``unknown`` then too: Kafka syncs the checkpoint and not the log, so
    a power loss may take the end of the log. ``losses.py`` reports records that every replica has lost.
    """
    name = "log_start_hw_leo_ordered"
    start, watermark, end = files.log_start, files.high_watermark, files.log_end
    data = {"log_start": start, "high_watermark": watermark, "log_end": end}
    if files.unread is not None:
        return CheckResult(name, "unknown", subject, f"the log was not read: {files.unread}", data=data)
    if start > end:
        message = f"log start {start} is above the LEO {end}"
        return CheckResult(name, "violated", subject, message, str(files.path), data=data)
    if watermark is None:
        if files.topic == METADATA_TOPIC:
            # A raft log's high watermark is never written; snapshot_ids_within_log has the bounds that are.
            message = f"log start {start} <= LEO {end}; Kafka writes no high watermark of this log"
            return CheckResult(name, "holds", subject, message, data=data)
        message = f"log start {start} <= LEO {end}; replication-offset-checkpoint has no entry"
        return CheckResult(name, "unknown", subject, message, data=data)
    checkpoint = str(files.path.parent / "replication-offset-checkpoint")
    if watermark > end:
        message = f"checkpointed high watermark {watermark} is above the LEO {end}"
        verdict: Verdict = "violated" if clean_shutdown and not files.damaged else "unknown"
        message += ", after a clean shutdown" if clean_shutdown else ": a power loss may have taken unsynced records"
        return CheckResult(name, verdict, subject, message, checkpoint, data=data)
    if watermark < start:
        message = f"checkpointed high watermark {watermark} is below the log start {start}"
        if clean_shutdown:
            return CheckResult(name, "violated", subject, f"{message}, after a clean shutdown", checkpoint, data=data)
        return CheckResult(name, "unknown", subject, f"{message}; it may lag", checkpoint, data=data)
    return CheckResult(name, "holds", subject, f"{start} <= {watermark} <= {end}", data=data)
