"""Which of a partition's records are surely committed, as far as files can tell.

Of an ordinary partition each replica writes its high watermark. The metadata log has none, but a snapshot is taken of
committed records only (KIP-630), and its id says which: those below ``end_offset`` in a log whose last record below it
is of leader epoch ``epoch``. So it commits records in the logs that agree with it, and in no other: a deposed
controller's tail below another node's snapshot end was never committed, and is truncated when its node follows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from .partition import METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .divergence import Difference
    from .image import PartitionState
    from .partition import PartitionFiles


def committed_below(replicas: Sequence[PartitionFiles]) -> int | None:
    """The largest offset below which every record is surely committed on all of these replicas.

    That is the smallest high watermark; of the metadata log, where each node has snapshots, the smallest of their
    newest ends. ``None`` where a replica tells nothing.
    """
    if replicas[0].topic == METADATA_TOPIC:
        ends = [max((known.end_offset for known, _ in files.snapshots), default=None) for files in replicas]
    else:
        ends = [files.high_watermark for files in replicas]
    known = [end for end in ends if end is not None]
    return min(known) if len(known) == len(ends) else None


def differ_in_committed(a: PartitionFiles, b: PartitionFiles, found: Difference, bound: int | None) -> bool | None:
    """Whether a difference of two replicas is one in a committed record; ``None`` where nothing tells.

    ``bound`` is that of all replicas (``committed_below``). Of the metadata log one node's snapshot is enough: no
    leader of a later epoch may have another record where it has one (leader completeness), and no leader of its own
    epoch two records at an offset.
    """
    if bound is not None and found.offset < bound:
        return True
    if a.topic != METADATA_TOPIC:
        return None if bound is None else False
    if not a.snapshots and not b.snapshots:
        return None
    ours, theirs = found.epochs
    return _contradicts(a, found.offset, ours, theirs) or _contradicts(b, found.offset, theirs, ours)


def _contradicts(files: PartitionFiles, offset: int, ours: int, theirs: int) -> bool:
    """Whether another node's record of epoch ``theirs`` cannot be beside what a snapshot here has committed."""
    return any(known.end_offset > offset and (theirs >= known.epoch or theirs == ours) for known, _ in files.snapshots)


def led_epoch(history: Sequence[PartitionState], node: int | None) -> int | None:
    """The newest leader epoch in which ``node`` surely acted as leader; ``None`` for none.

    Only a leader makes the ISR grow and ends the recovery of an unclean election (AlterPartition), so a leader that did
    either had begun its epoch.
    """
    found: int | None = None
    for before, after in pairwise(history):
        same = before.leader == after.leader == node and before.leader_epoch == after.leader_epoch
        if same and (set(after.isr) - set(before.isr) or before.leader_recovery_state > after.leader_recovery_state):
            found = after.leader_epoch
    return found
