"""Why ``kip-1023-safe`` keeps promises, for any number of replicas, offsets and leader epochs: those about one log."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA, Constants
from ...prove.fixed import FixedProof
from ..logs import EPOCH, OFFSET
from .state import Segment, leads, tiering


_FIXED = {"transactions": 1}


def _at(*values: int) -> Constants:
    return dict(zip((name for name in tiering.constants if name not in _FIXED), values, strict=True))


kip_1023 = FixedProof(
    tiering,
    "kip-1023-safe",
    _FIXED,
    without=("leader_can_serve", "isr_can_serve", "lineage_is_leaders", "built_is_uploaded", "segments_agree"),
    sizes=(_at(2, 1, 1, 1, 1, 0, 1), _at(2, 2, 1, 1, 1, 1, 1), _at(3, 2, 2, 1, 1, 1, 1)),
)


@kip_1023.lemma(replica=REPLICA)
def no_epoch_from_the_future(k: Algebra, s: View, replica: Value) -> Value:
    """Nobody is in an epoch for which there was no election."""
    return s.leader_epoch[replica] <= s.newest_epoch


@kip_1023.lemma(epoch=EPOCH, start=OFFSET)
def nothing_is_uploaded_in_the_future(k: Algebra, s: View, epoch: Value, start: Value) -> Value:
    """There is no segment of an epoch that is to come: who begins to lead in one has uploaded nothing in it."""
    return k.any(epoch <= s.newest_epoch, s.segment_state[epoch, start] == Segment.none)


@kip_1023.lemma(leader=REPLICA, start=OFFSET)
def own_segment_is_stable(k: Algebra, s: View, leader: Value, start: Value) -> Value:
    """A segment of a leader's own epoch ends at or below its high watermark, and what is stable."""
    epoch = s.leader_epoch[leader]
    end = s.segment_end[epoch, start]
    below = k.all(start < end, end <= s.hw[leader], end <= s.stable)
    return k.any(k.negate(leads(k, s, leader)), s.segment_state[epoch, start] == Segment.none, below)
