"""Terms that z3's E-matching does not come upon by itself in the proof of ``kip-630-safe``; with them it is whole.

A hint says nothing: it names a term, so that the lemmas are instantiated there.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ..logs import EPOCH, OFFSET
from .fetch import divergence_response, take_divergence
from .late import held_response
from .proof_ghosts import kip_630

__all__ = ["kip_630"]


@kip_630.hints("become_candidate", candidate_offset=OFFSET)
def _stood(_k: Algebra, s: View, candidate: Value, candidate_offset: Value) -> list[Value]:
    """The candidate's log is of its last epoch's history; what it has lost of it was chosen."""
    o = candidate_offset
    return [
        s.history[s.tip[candidate], o],
        s.history[s.chosen_in, o],
        s.chosen[o],
        s.record_epoch[candidate, o],
        s.chosen[s.chosen_end - 1],
    ]


@kip_630.hints("grant_vote", offset=OFFSET)
def voted_for(_k: Algebra, s: View, voter: Value, offset: Value, **_params: Value) -> list[Value]:
    """Whether the candidate has what is chosen is told by the epochs of last records."""
    candidate = s.candidate
    last = s.tip[candidate]
    return [
        s.history[s.chosen_in, offset],
        s.chosen[offset],
        s.record_epoch[candidate, offset],
        s.record_epoch[voter, offset],
        s.history[last, offset],
        s.history[last, s.leo[candidate] - 1],
        s.history[last, s.chosen_end - 1],
        s.chosen[s.leo[candidate] - 1],
    ]


@kip_630.hints("follower_fetch", "follower_start_over", offset=OFFSET)
def _exchanged(_k: Algebra, s: View, leader: Value, follower: Value, offset: Value) -> list[Value]:
    """Where the logs of leader and follower meet, by the histories of both."""
    epoch, last, end = s.leader_epoch[leader], s.tip[follower], s.leo[follower]
    return [
        s.record_epoch[leader, offset],
        s.record_epoch[follower, offset],
        s.history[epoch, offset],
        s.history[last, offset],
        s.history[epoch, end],
        s.history[epoch, end - 1],
        s.history[s.record_epoch[leader, end], offset],
        s.record_epoch[leader, s.lbo[leader]],
        s.history[epoch, s.lbo[leader]],
        s.chosen[s.chosen_end - 1],
        s.record_epoch[leader, s.chosen_end - 1],
        s.history[epoch, s.chosen_end - 1],
        s.history[last, s.chosen_end - 1],
        s.latest[leader],
        s.chosen[s.latest[leader]],
        s.history[epoch, s.latest[leader]],
        s.history[s.chosen[s.latest[leader]], offset],
        s.chosen[s.lbo[leader] - 1],
        s.committed[s.lbo[leader] - 1],
        s.chosen[offset],
    ]


@kip_630.hints("leader_inc_high_watermark", offset_below=OFFSET)
def _counted(_k: Algebra, s: View, leader: Value, offset: Value, offset_below: Value) -> list[Value]:
    """An epoch that chose later has the record, so it has what is below."""
    epoch, hw = s.leader_epoch[leader], s.hw[leader]
    return [
        s.blocked_by[epoch, offset],
        s.history[s.chosen_in, offset],
        s.history[s.chosen_in, s.chosen_end - 1],
        s.history[s.chosen_in, hw],
        s.history[epoch, hw],
        s.history[epoch, offset],
        s.chosen[hw],
        s.record_epoch[leader, hw],
        s.record_epoch[leader, offset_below],
        s.history[epoch, offset_below],
        s.history[s.chosen_in, offset_below],
        s.chosen[offset_below],
    ]


@kip_630.hints(
    "follower_fetch", "follower_truncate", "fetch_snapshot", "late_divergence", "late_chunk", replica=REPLICA
)
def _latest(_k: Algebra, s: View, replica: Value, **_params: Value) -> list[Value]:
    """The snapshot that an invariant asks for is the latest one."""
    size = [s.snapshot_size[replica, o] for o in (s.latest[replica], s.fetching[replica])]
    return [s.latest[replica], *size]


@kip_630.hints("leader_inc_high_watermark", epoch=EPOCH)
def _counted_for(_k: Algebra, s: View, leader: Value, offset: Value, epoch: Value) -> list[Value]:
    """A later epoch has the record that a majority acknowledged, as it is not blocked there."""
    return [s.history[epoch, offset], s.history[epoch, s.hw[leader]]]


def _where_logs_part(s: View, follower: Value, epoch: Value, last: Value, *offsets: Value) -> list[Value]:
    """What the follower and its leader have at these offsets, by the histories of both."""
    rows = ((s.history[epoch, at], s.history[last, at], s.record_epoch[follower, at], s.chosen[at]) for at in offsets)
    return [term for row in rows for term in row]


@kip_630.hints("late_divergence")
def _truncated_late(k: Algebra, s: View, follower: Value, slot: Value) -> list[Value]:
    """What lies below the follower's high watermark is in the history of whoever sent the response."""
    epoch, end, last = s.response_epoch[slot], s.response_offset[slot], s.tip[follower]
    cut = take_divergence(k, s, follower, held_response(s, slot))["leo"][follower] - 1
    met = _where_logs_part(s, follower, epoch, last, s.hw[follower] - 1)
    return [s.history[epoch, end - 1], s.history[last, cut], *met]


@kip_630.hints("late_divergence", offset=OFFSET)
def _truncated_late_at(_k: Algebra, s: View, follower: Value, slot: Value, offset: Value) -> list[Value]:
    """So is whatever else must not be lost."""
    epoch, last = s.response_epoch[slot], s.tip[follower]
    return _where_logs_part(s, follower, epoch, last, offset, s.chosen_end - 1)


@kip_630.hints("late_records", "late_snapshot", offset=OFFSET)
def _taken_late(_k: Algebra, s: View, follower: Value, slot: Value, offset: Value) -> list[Value]:
    """What the follower has is in the history of the response's epoch, or is chosen."""
    epoch, last = s.response_epoch[slot], s.tip[follower]
    met = _where_logs_part(s, follower, epoch, last, offset, s.response_offset[slot], s.leo[follower] - 1)
    return [*met, s.history[s.response_offset_epoch[slot], offset]]


@kip_630.hints("hold_snapshot")
def _named(_k: Algebra, s: View, leader: Value, **_params: Value) -> list[Value]:
    """The snapshot's epoch is no older than that of the record before the leader's LBO."""
    epoch, latest, begin = s.leader_epoch[leader], s.latest[leader], s.lbo[leader] - 1
    return [s.history[epoch, latest], s.history[epoch, begin], s.chosen[begin], s.chosen[latest]]


@kip_630.hints("hold_divergence", offset=OFFSET)
def _diverged(_k: Algebra, s: View, leader: Value, follower: Value, offset: Value, **_params: Value) -> list[Value]:
    """The follower's last epoch is older than the leader's, as that has all records of its own."""
    epoch, own, end = s.leader_epoch[leader], s.leo[leader] - 1, s.leo[follower] - 1
    return [
        s.history[epoch, own],
        s.record_epoch[leader, own],
        s.history[epoch, end],
        s.history[epoch, offset],
        s.record_epoch[leader, offset],
    ]


@kip_630.hints("follower_truncate")
def _truncated(k: Algebra, s: View, leader: Value, follower: Value) -> list[Value]:
    """What lies below the follower's high watermark is in the leader's log too."""
    epoch, last, known, begin = s.leader_epoch[leader], s.tip[follower], s.hw[follower] - 1, s.lbo[follower] - 1
    response = divergence_response(k, s, leader, follower)
    end, cut = response.offset - 1, take_divergence(k, s, follower, response)["leo"][follower] - 1
    return [
        s.history[epoch, end],
        s.chosen[end],
        *_where_logs_part(s, follower, epoch, last, known),
        s.snapshot_epoch[follower, begin],
        s.chosen[begin],
        s.history[last, cut],
    ]


@kip_630.hints("follower_truncate", offset=OFFSET)
def _truncated_at(_k: Algebra, s: View, leader: Value, follower: Value, offset: Value) -> list[Value]:
    """So is whatever else must not be lost."""
    epoch, last = s.leader_epoch[leader], s.tip[follower]
    return _where_logs_part(s, follower, epoch, last, offset, s.chosen_end - 1)
