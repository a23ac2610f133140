"""Why ``kip-1023-safe`` keeps promises, for any number of replicas, offsets and leader epochs: those about one log."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA, Constants, integers
from ...prove.fixed import FixedProof
from ...prove.proof import Ghosts
from ..logs import EPOCH, OFFSET
from .state import Segment, follows, in_lineage, leads, tiering

_FIXED = {"transactions": 1}


def _at(*values: int) -> Constants:
    return dict(zip((name for name in tiering.constants if name not in _FIXED), values, strict=True))


kip_1023 = FixedProof(
    tiering,
    "kip-1023-safe",
    _FIXED,
    without=("leader_can_serve", "isr_can_serve", "built_is_uploaded", "segments_agree"),
    sizes=(_at(2, 1, 1, 1, 1, 0, 1), _at(2, 2, 1, 1, 1, 1, 1), _at(3, 2, 2, 1, 1, 1, 1)),
)


_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_ENDS = integers(0, lambda c: c["log_size"])

kip_1023.ghost("history_start", "where the log of an epoch's leader began when it was elected", _ENDS, per=(EPOCH,))
kip_1023.ghost("history_end", "the LEO that an epoch's leader had last in the epoch", _ENDS, per=(EPOCH,))
kip_1023.ghost(
    "history", "the leader epochs of its records, also of those that it has let expire", _EPOCHS, per=(EPOCH, OFFSET)
)


def _elected(k: Algebra, s: View, replica: Value) -> Ghosts:
    epoch = s.newest_epoch + 1
    start = k.ite(s.tiered == 1, s.log_start[replica], s.local_start[replica])
    return {
        "history_start": lambda e: k.ite(e == epoch, start, s.history_start[e]),
        "history_end": lambda e: k.ite(e == epoch, s.leo[replica], s.history_end[e]),
        "history": lambda e, o: k.ite(e == epoch, s.record_epoch[replica, o], s.history[e, o]),
    }


kip_1023.updates("elect_leader")(_elected)
kip_1023.updates("elect_unclean_leader")(_elected)


@kip_1023.updates("leader_write")
def _written(k: Algebra, s: View, leader: Value) -> Ghosts:
    epoch, end = s.leader_epoch[leader], s.leo[leader]
    return {
        "history_end": lambda e: k.ite(e == epoch, end + 1, s.history_end[e]),
        "history": lambda e, o: k.ite(k.all(e == epoch, o == end), epoch, s.history[e, o]),
    }


def _in_history(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    started = k.all(0 <= epoch, epoch <= s.newest_epoch)
    return k.all(started, s.history_start[epoch] <= offset, offset < s.history_end[epoch])


@kip_1023.lemma(replica=REPLICA)
def no_epoch_from_the_future(_k: Algebra, s: View, replica: Value) -> Value:
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


@kip_1023.lemma(leader=REPLICA)
def leader_is_at_end(k: Algebra, s: View, leader: Value) -> Value:
    """A leader's LEO is its history's end, and its log does not begin before that."""
    epoch = s.leader_epoch[leader]
    within = k.all(s.leo[leader] == s.history_end[epoch], s.history_start[epoch] <= s.log_start[leader])
    return k.any(k.negate(leads(k, s, leader)), within)


@kip_1023.lemma(leader=REPLICA, offset=OFFSET)
def leader_has_its_history(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """What a leader says of an offset is in the history of its epoch."""
    there = k.all(leads(k, s, leader), in_lineage(k, s, leader, offset))
    return k.implies(there, s.record_epoch[leader, offset] == s.history[s.leader_epoch[leader], offset])


@kip_1023.lemma(leader=REPLICA, follower=REPLICA)
def follower_is_behind(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
    """A follower has no more than its leader."""
    return k.implies(follows(k, s, leader, follower), s.leo[follower] <= s.leo[leader])


@kip_1023.lemma(replica=REPLICA, offset=OFFSET)
def epochs_are_known(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """A replica's checkpoint has the epoch of every record that it claims: one that began, and wrote up to there."""
    epoch = s.record_epoch[replica, offset]
    known = k.all(0 <= epoch, epoch <= s.newest_epoch, offset < s.history_end[epoch])
    return k.implies(in_lineage(k, s, replica, offset), known)


@kip_1023.lemma(epoch=EPOCH, offset=OFFSET)
def history_is_known(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """So has a history."""
    of = s.history[epoch, offset]
    known = k.all(0 <= of, of <= s.newest_epoch, offset < s.history_end[of])
    return k.implies(_in_history(k, s, epoch, offset), known)


@kip_1023.lemma(epoch=EPOCH, offset=OFFSET)
def remote_is_history(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """What was uploaded in an epoch is of its leader's history."""
    of = s.remote_epoch[epoch, offset]
    return k.any(of == -1, k.all(_in_history(k, s, epoch, offset), of == s.history[epoch, offset]))


@kip_1023.lemma(one=REPLICA, other=REPLICA, before=OFFSET, offset=OFFSET)
def logs_match(k: Algebra, s: View, one: Value, other: Value, before: Value, offset: Value) -> Value:
    """Two logs with one record in common are one below it, as far as both say."""
    claimed = k.all(in_lineage(k, s, one, before), in_lineage(k, s, other, before), before < offset)
    both = k.all(offset < s.leo[one], offset < s.leo[other])
    same = s.record_epoch[one, offset] == s.record_epoch[other, offset]
    return k.implies(k.all(claimed, both, same), s.record_epoch[one, before] == s.record_epoch[other, before])


@kip_1023.lemma(replica=REPLICA, epoch=EPOCH, before=OFFSET, offset=OFFSET)
def log_matches_history(k: Algebra, s: View, replica: Value, epoch: Value, before: Value, offset: Value) -> Value:
    """So are a log and a history."""
    claimed = k.all(in_lineage(k, s, replica, before), _in_history(k, s, epoch, before), before < offset)
    both = k.all(offset < s.leo[replica], offset < s.history_end[epoch])
    same = s.record_epoch[replica, offset] == s.history[epoch, offset]
    return k.implies(k.all(claimed, both, same), s.record_epoch[replica, before] == s.history[epoch, before])


@kip_1023.lemma(one=EPOCH, other=EPOCH, before=OFFSET, offset=OFFSET)
def histories_match(k: Algebra, s: View, one: Value, other: Value, before: Value, offset: Value) -> Value:
    """So are two histories."""
    claimed = k.all(_in_history(k, s, one, before), _in_history(k, s, other, before), before < offset)
    both = k.all(offset < s.history_end[one], offset < s.history_end[other])
    same = s.history[one, offset] == s.history[other, offset]
    return k.implies(k.all(claimed, both, same), s.history[one, before] == s.history[other, before])


@kip_1023.hints("follower_fetch", before=OFFSET)
def _leaders_record(_k: Algebra, s: View, leader: Value, follower: Value, before: Value) -> list[Value]:
    """What a follower has fetched matches what its leader has, which matches all others."""
    return [s.record_epoch[leader, before], s.record_epoch[leader, s.leo[follower]]]
