"""Why ``kip-1023-safe`` keeps its promises, for any number of replicas, offsets and leader epochs: what is on remote.

The argument in short. The *history* of an epoch is the log that its leader has had in it, with what has expired since.
What was uploaded in an epoch is of that history, and logs and histories with a record in common are one below it, as
far as both say. So where a segment and a leader's log have the record before the EPUO in common, the checkpoint that
was uploaded with the segment is the leader's lineage. A leader whose remote log manager has run has all on remote from
its log start up to the highest offset that it knows, and locally what is behind: it uploads what is next, deletes
locally what is below, and nobody deletes a segment but the newest leader, below its log start.

``isr_can_serve`` and ``segments_agree`` hang on what is committed, and on who was in the ISR when: they are in
``proof_committed.py``.

**What is fixed.** The last stable offset begins at 0, and rises at any step, as where there are transactions.
Where there are none: ``proof_stable.py``.
"""

from __future__ import annotations

from pathlib import Path

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA, Constants, integers
from ...prove.proof import Ghosts
from ...prove.specialize import FixedProof
from ..logs import EPOCH, OFFSET
from .state import NOT_LOOKED, Segment, follows, in_lineage, is_tiered, leads, leads_newest, tiering

_FIXED = {"transactions": 1}


def _at(*values: int) -> Constants:
    return dict(zip((name for name in tiering.constants if name not in _FIXED), values, strict=True))


kip_1023 = FixedProof(
    tiering,
    "kip-1023-safe",
    _FIXED,
    sizes=(
        _at(2, 1, 1, 1, 1, 0, 1),
        _at(2, 2, 1, 1, 1, 1, 1),
        _at(3, 2, 2, 1, 1, 1, 1),
        _at(2, 1, 1, 0, 1, 1, 1),
        _at(2, 1, 2, 1, 0, 1, 1),
    ),
    follows=("isr_can_serve", "segments_agree"),
    cores=Path(__file__).with_name("cores-kip-1023-safe.json"),
)


_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_ENDS = integers(0, lambda c: c["log_size"])

kip_1023.ghost("history_start", "where the log of an epoch's leader began when it was elected", _ENDS, per=(EPOCH,))
kip_1023.ghost("history_end", "the LEO that an epoch's leader had last in the epoch", _ENDS, per=(EPOCH,))
kip_1023.ghost(
    "history", "the leader epochs of its records, also of those that it has let expire", _EPOCHS, per=(EPOCH, OFFSET)
)


def elected(k: Algebra, s: View, replica: Value) -> Ghosts:
    epoch = s.newest_epoch + 1
    start = k.ite(s.tiered == 1, s.log_start[replica], s.local_start[replica])
    return {
        "history_start": lambda e: k.ite(e == epoch, start, s.history_start[e]),
        "history_end": lambda e: k.ite(e == epoch, s.leo[replica], s.history_end[e]),
        "history": lambda e, o: k.ite(e == epoch, s.record_epoch[replica, o], s.history[e, o]),
    }


kip_1023.updates("elect_leader")(elected)


@kip_1023.updates("leader_write")
def _written(k: Algebra, s: View, leader: Value) -> Ghosts:
    epoch, end = s.leader_epoch[leader], s.leo[leader]
    return {
        "history_end": lambda e: k.ite(e == epoch, end + 1, s.history_end[e]),
        "history": lambda e, o: k.ite(k.all(e == epoch, o == end), epoch, s.history[e, o]),
    }


def in_history(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
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
    return k.implies(in_history(k, s, epoch, offset), known)


@kip_1023.lemma(epoch=EPOCH, offset=OFFSET)
def remote_is_history(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """What was uploaded in an epoch is of its leader's history."""
    of = s.remote_epoch[epoch, offset]
    return k.any(of == -1, k.all(in_history(k, s, epoch, offset), of == s.history[epoch, offset]))


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
    claimed = k.all(in_lineage(k, s, replica, before), in_history(k, s, epoch, before), before < offset)
    both = k.all(offset < s.leo[replica], offset < s.history_end[epoch])
    same = s.record_epoch[replica, offset] == s.history[epoch, offset]
    return k.implies(k.all(claimed, both, same), s.record_epoch[replica, before] == s.history[epoch, before])


@kip_1023.lemma(one=EPOCH, other=EPOCH, before=OFFSET, offset=OFFSET)
def histories_match(k: Algebra, s: View, one: Value, other: Value, before: Value, offset: Value) -> Value:
    """So are two histories."""
    claimed = k.all(in_history(k, s, one, before), in_history(k, s, other, before), before < offset)
    both = k.all(offset < s.history_end[one], offset < s.history_end[other])
    same = s.history[one, offset] == s.history[other, offset]
    return k.implies(k.all(claimed, both, same), s.history[one, before] == s.history[other, before])


@kip_1023.lemma(leader=REPLICA)
def highest_is_written(k: Algebra, s: View, leader: Value) -> Value:
    """The highest offset that a leader knows on remote is below its LEO."""
    return k.any(k.negate(leads(k, s, leader)), s.highest_remote[leader] < s.leo[leader])


@kip_1023.lemma(leader=REPLICA, start=OFFSET)
def own_upload_is_next(k: Algebra, s: View, leader: Value, start: Value) -> Value:
    """What a leader uploads begins no higher than what is uploaded next, and what it has uploaded is below that."""
    epoch, highest = s.leader_epoch[leader], s.highest_remote[leader]
    state = s.segment_state[epoch, start]
    finished = s.segment_end[epoch, start] - 1 <= highest
    begins = start <= k.max(highest + 1, s.log_start[leader])
    next_one = k.all(highest != NOT_LOOKED, begins, highest < s.segment_end[epoch, start])
    right = k.ite(state == Segment.copy_finished, finished, next_one)
    return k.any(k.negate(leads(k, s, leader)), state == Segment.none, right)


@kip_1023.lemma(leader=REPLICA, one=OFFSET, other=OFFSET)
def one_upload(k: Algebra, s: View, leader: Value, one: Value, other: Value) -> Value:
    """A leader uploads one segment at a time."""

    def is_open(start: Value) -> Value:
        state = s.segment_state[s.leader_epoch[leader], start]
        return k.any(state == Segment.copy_started, state == Segment.copied)

    return k.implies(k.all(leads(k, s, leader), is_open(one), is_open(other)), one == other)


@kip_1023.lemma(leader=REPLICA, start=OFFSET, offset=OFFSET)
def own_copy_is_of_log(k: Algebra, s: View, leader: Value, start: Value, offset: Value) -> Value:
    """What a leader has copied, and not committed yet, says what its log says."""
    epoch = s.leader_epoch[leader]
    copied = k.all(leads(k, s, leader), s.segment_state[epoch, start] == Segment.copied)
    there = k.all(s.log_start[leader] <= offset, offset < s.segment_end[epoch, start])
    return k.implies(k.all(copied, there), s.remote_epoch[epoch, offset] == s.record_epoch[leader, offset])


@kip_1023.lemma(leader=REPLICA, offset=OFFSET)
def tiered_up_to_highest(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """All from the log start up to the highest offset on remote is there, whoever has uploaded it."""
    below = k.all(s.log_start[leader] <= offset, offset <= s.highest_remote[leader])
    return k.implies(k.all(leads_newest(k, s, leader), below), is_tiered(k, s, leader, offset))


@kip_1023.lemma(leader=REPLICA)
def local_follows_highest(k: Algebra, s: View, leader: Value) -> Value:
    """A leader has locally what is not on remote; without tiering, all."""
    looked = s.highest_remote[leader] != NOT_LOOKED
    known = k.implies(looked, s.local_start[leader] <= k.max(s.highest_remote[leader] + 1, s.log_start[leader]))
    off = k.any(s.tiered == 1, s.local_start[leader] == s.log_start[leader])
    return k.any(k.negate(leads_newest(k, s, leader)), k.all(known, off))


@kip_1023.lemma(leader=REPLICA, follower=REPLICA, last=OFFSET)
def jump_ends_on_remote(k: Algebra, s: View, leader: Value, follower: Value, last: Value) -> Value:
    """The last record below the EPUO at which a follower has begun is on remote, or has expired at its leader."""
    there = k.any(last < s.log_start[leader], is_tiered(k, s, leader, last))
    begun = k.all(s.jumped_from[follower] != -1, last + 1 == s.leo[follower])
    return k.implies(k.all(leads_newest(k, s, leader), follows(k, s, leader, follower), begun), there)


@kip_1023.hints("follower_fetch", before=OFFSET)
def _leaders_record(_k: Algebra, s: View, leader: Value, follower: Value, before: Value) -> list[Value]:
    """What a follower has fetched matches what its leader has, which matches all others."""
    return [s.record_epoch[leader, before], s.record_epoch[leader, s.leo[follower]]]


@kip_1023.hints("build_to_epuo")
def _last_uploaded(_k: Algebra, s: View, leader: Value, follower: Value, epoch: Value) -> list[Value]:  # noqa: ARG001 - as the action has it
    """The last record on remote, which is the last that is built."""
    last = s.highest_remote[leader]
    return [last, s.record_epoch[leader, last], s.remote_epoch[epoch, last]]


@kip_1023.hints("find_highest_remote_offset", offset=OFFSET)
@kip_1023.hints("delete_local", offset=OFFSET)
def _offset_of_goal(_k: Algebra, s: View, leader: Value, offset: Value) -> list[Value]:
    """An offset of which it is asked whether it is on remote."""
    return [offset, s.record_epoch[leader, offset], s.local_start[leader], s.local_start[leader] - 1]


@kip_1023.hints("finish_copy", offset=OFFSET)
def _copied_offset(_k: Algebra, s: View, leader: Value, start: Value, offset: Value) -> list[Value]:
    """The same where the segment that has it is the one at hand."""
    epoch = s.leader_epoch[leader]
    return [offset, start, epoch, s.record_epoch[leader, offset], s.remote_epoch[epoch, offset]]


@kip_1023.hints("find_highest_remote_offset")
def _last_that_is_not_local(_k: Algebra, s: View, leader: Value) -> list[Value]:
    """The last offset that a leader has not locally: that it is on remote is what it finds out."""
    last = s.local_start[leader] - 1
    return [last, s.local_start[leader], s.record_epoch[leader, last]]


@kip_1023.hints("leader_write", leads=REPLICA, offset=OFFSET)
@kip_1023.hints("replace_replica", leads=REPLICA, offset=OFFSET)
@kip_1023.hints("find_highest_remote_offset", leads=REPLICA, offset=OFFSET)
@kip_1023.hints("follower_fetch", leads=REPLICA, offset=OFFSET)
@kip_1023.hints("build_to_epuo", leads=REPLICA, offset=OFFSET)
def _built_by_another(_k: Algebra, s: View, leads: Value, offset: Value, **_: Value) -> list[Value]:
    """What a leader has where somebody has built up to."""
    return [offset, s.record_epoch[leads, offset]]


@kip_1023.hints("enable_tiering", leads=REPLICA, offset=OFFSET)
def _built_meanwhile(_k: Algebra, s: View, leads: Value, offset: Value, **_: Value) -> list[Value]:
    """What a leader has where somebody has built up to before tiering was switched off."""
    return [offset, s.record_epoch[leads, offset]]
