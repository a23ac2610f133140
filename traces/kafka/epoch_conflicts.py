"""Records that a later leader epoch rules out: its leader began without them, or wrote others in their place.

A record at offset ``o`` of epoch ``e`` conflicts with a log that has a later epoch which starts at or below ``o``, and
with a log that has a later epoch and another record at ``o``. Every leader of a later epoch begins with all committed
records (KIP-101, KIP-279, KIP-320), so a conflicting record below a high watermark was committed and is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .statefiles import EpochEntry
from .truncation import effective_epochs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .partition import PartitionFiles


def latest_epoch(files: PartitionFiles) -> int:
    """The largest leader epoch in batches or ``leader-epoch-checkpoint``; -1 for none."""
    entries = [*(files.epoch_cache or ()), *files.epoch_starts()]
    return max((entry.epoch for entry in entries), default=-1)


def conflicting_rows(later: PartitionFiles, replica: PartitionFiles, acted_in: int | None = None) -> NDArray[np.intp]:
    """Rows of ``replica.records`` that a later epoch of the log ``later`` rules out, ascending.

    ``acted_in``: an epoch that ``later`` has led, even if its files have no entry of it. The result does not depend on
    either log being complete: each entry of ``later`` bounds where its epoch starts from above.
    """
    entries = effective_epochs(later)
    if acted_in is not None and all(entry.epoch < acted_in for entry in entries):
        start_at_most = _latest_start(later, acted_in)
        entries += [] if start_at_most is None else [EpochEntry(acted_in, start_at_most)]
    starts = np.array([entry.start_offset for entry in entries], dtype=np.int64)
    if not len(starts) or bool(np.any(np.diff(starts) < 0)):
        return np.empty(0, dtype=np.intp)
    epochs = np.array([entry.epoch for entry in entries], dtype=np.int64)
    offset, epoch = replica.records.offset, replica.records.leader_epoch
    following = np.searchsorted(epochs, epoch, side="right")
    superseded = (following < len(epochs)) & (epoch >= 0)
    start = starts[np.minimum(following, len(epochs) - 1)]
    conflicts = superseded & (offset >= start)
    rest = np.flatnonzero(superseded & ~conflicts)
    conflicts[rest[_differ(later, replica, rest)]] = True
    return np.flatnonzero(conflicts)


def _latest_start(log: PartitionFiles, epoch: int) -> int | None:
    """An upper bound of the offset at which a log began an epoch that it has led; ``None`` without one.

    A leader enters its epoch at its LEO, so the LEO of today is a bound, unless the log has lost its end since.
    """
    cached = [entry.start_offset for entry in log.epoch_cache or () if entry.epoch >= epoch]
    if cached:
        return min(cached)
    return None if log.damaged or (log.high_watermark or 0) > log.log_end else log.log_end


def _differ(later: PartitionFiles, replica: PartitionFiles, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """For each of these rows of ``replica``, whether ``later`` has another record at its offset."""
    if not len(rows) or not len(later.records):
        return np.zeros(len(rows), dtype=np.bool_)
    ours = replica.records.take(rows)
    at = np.minimum(np.searchsorted(later.records.offset, ours.offset), len(later.records) - 1)
    theirs = later.records.take(at)
    another = (theirs.leader_epoch != ours.leader_epoch) | (theirs.payload_hash != ours.payload_hash)
    differ: NDArray[np.bool_] = (theirs.offset == ours.offset) & another
    return differ
