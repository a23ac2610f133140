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
        entries.append(EpochEntry(acted_in, later.log_end))
    starts = np.array([entry.start_offset for entry in entries], dtype=np.int64)
    if not len(starts) or bool(np.any(np.diff(starts) < 0)):
        return np.empty(0, dtype=np.intp)
    epochs = np.array([entry.epoch for entry in entries], dtype=np.int64)
    offset, epoch = replica.records.offset, replica.records.leader_epoch
    following = np.searchsorted(epochs, epoch, side="right")
    superseded = (following < len(epochs)) & (epoch >= 0)
    start = starts[np.minimum(following, len(epochs) - 1)]
    return np.flatnonzero(superseded & ((offset >= start) | _other_record(later, replica)))


def _other_record(later: PartitionFiles, replica: PartitionFiles) -> NDArray[np.bool_]:
    """For each record of ``replica``, whether ``later`` has another one at its offset."""
    other = np.zeros(len(replica.records), dtype=np.bool_)
    _, ours, theirs = np.intersect1d(
        replica.records.offset, later.records.offset, assume_unique=True, return_indices=True
    )
    a, b = replica.records.take(ours), later.records.take(theirs)
    other[ours] = (a.leader_epoch != b.leader_epoch) | (a.payload_hash != b.payload_hash)
    return other
