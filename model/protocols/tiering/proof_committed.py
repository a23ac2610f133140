"""What is committed, and who has it: why ``kip-1023-safe`` keeps ``isr_can_serve`` and ``segments_agree``.

The argument in short. Up to the *committed end* all of the ISR have what the epoch has in which something was committed
last, or in which there was an unclean election; so has every epoch since. Whoever was elected cleanly was one of the
ISR, and whoever joins it has its leader's log, which reaches up to there: a high watermark is not taken over by who is
elected, but who joins must have come past where the leader's own records begin. *Was committed* is said of a record by
its epoch and offset, and for ever, also where an unclean election takes it back: nothing that some leader has once
committed is in a log of the ISR, or in one that a leader since then has had, above the committed end. So a high
watermark that a follower brings along from before is none above it, and what is uploaded was committed. Without unclean
elections one record alone was committed at an offset.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA, integers
from ...prove.proof import Ghosts
from ..logs import EPOCH, OFFSET
from .proof_remote import elected, in_history, kip_1023
from .state import Segment, follows, in_lineage, leads_newest

kip_1023.ghost(
    "committed_end",
    "the end of what all of the ISR have that was committed, or was there at an unclean election",
    integers(0, lambda c: c["log_size"]),
)
kip_1023.ghost(
    "committed_epoch",
    "the leader epoch in which something was committed last, or of the last unclean election",
    integers(-1, lambda c: c["max_leader_epoch"]),
    initially=-1,
)
kip_1023.ghost(
    "was_committed",
    "1 where some leader has committed the record of an epoch at an offset",
    integers(0, lambda _: 1),
    per=(EPOCH, OFFSET),
)


@kip_1023.updates("elect_unclean_leader")
def _elected_uncleanly(k: Algebra, s: View, replica: Value) -> Ghosts:
    """All that the new leader has is what there is: it is the ISR."""
    return {
        **elected(k, s, replica),
        "committed_end": lambda: s.leo[replica],
        "committed_epoch": lambda: s.newest_epoch + 1,
    }


@kip_1023.updates("leader_inc_high_watermark")
def _committed(k: Algebra, s: View, leader: Value) -> Ghosts:
    offset = s.hw[leader]
    record = s.record_epoch[leader, offset]
    return {
        "committed_end": lambda: k.max(s.committed_end, offset + 1),
        "committed_epoch": lambda: s.leader_epoch[leader],
        "was_committed": lambda e, o: k.ite(k.all(e == record, o == offset), 1, s.was_committed[e, o]),
    }


# Who has what is committed.


@kip_1023.lemma()
def newest_leader_leads(k: Algebra, s: View) -> Value:
    """The controller's leader is in its epoch, and in the ISR: nobody else commits anything."""
    leader = s.epoch_leader[s.newest_epoch]
    leads = k.all(leader != k.NONE, s.leader_epoch[leader] == s.newest_epoch, k.member(leader, s.isr))
    return k.any(s.newest_epoch == -1, leads)


@kip_1023.lemma(layer=1)
def nothing_is_committed_in_the_future(_k: Algebra, s: View) -> Value:
    """Nothing was committed in an epoch that there is not yet."""
    return s.committed_epoch <= s.newest_epoch


@kip_1023.lemma(layer=1, replica=REPLICA)
def member_has_the_committed(k: Algebra, s: View, replica: Value) -> Value:
    """A member of the ISR has come past all that was committed, and is in no older epoch than that."""
    has = k.all(s.committed_epoch <= s.leader_epoch[replica], s.committed_end <= s.leo[replica])
    return k.implies(k.member(replica, s.isr), has)


@kip_1023.lemma(layer=1, replica=REPLICA, offset=OFFSET)
def member_agrees(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """What a member of the ISR says of what is committed is as the epoch has it that committed last."""
    asked = k.all(k.member(replica, s.isr), in_lineage(k, s, replica, offset), offset < s.committed_end)
    epoch = s.committed_epoch
    same = s.record_epoch[replica, offset] == s.history[epoch, offset]
    return k.implies(asked, k.all(s.history_start[epoch] <= offset, same))


@kip_1023.lemma(layer=1, epoch=EPOCH)
def epoch_has_the_committed(k: Algebra, s: View, epoch: Value) -> Value:
    """Who was elected since was a member of the ISR."""
    since = k.all(s.committed_epoch <= epoch, epoch <= s.newest_epoch)
    return k.implies(since, s.committed_end <= s.history_end[epoch])


@kip_1023.lemma(layer=1, epoch=EPOCH, offset=OFFSET)
def epoch_agrees(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """So it says the same."""
    asked = k.all(s.committed_epoch <= epoch, in_history(k, s, epoch, offset), offset < s.committed_end)
    last = s.committed_epoch
    same = s.history[epoch, offset] == s.history[last, offset]
    return k.implies(asked, k.all(s.history_start[last] <= offset, same))


@kip_1023.lemma(layer=1, leader=REPLICA, offset=OFFSET)
def own_record_is_not_committed(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """A high watermark below the committed end is below its leader's own records: who reaches these has the others."""
    behind = k.all(s.hw[leader] <= offset, offset < s.committed_end)
    own = s.record_epoch[leader, offset] == s.leader_epoch[leader]
    return k.implies(k.all(leads_newest(k, s, leader), behind), k.negate(own))


@kip_1023.lemma(layer=1, leader=REPLICA, follower=REPLICA, offset=OFFSET)
def follower_has_its_history(k: Algebra, s: View, leader: Value, follower: Value, offset: Value) -> Value:
    """Whose log reaches its leader's has nothing but the history of its epoch, also below its leader's log start."""
    epoch = s.leader_epoch[leader]
    there = k.all(in_lineage(k, s, follower, offset), s.log_start[leader] <= s.leo[follower])
    same = s.record_epoch[follower, offset] == s.history[epoch, offset]
    return k.implies(k.all(follows(k, s, leader, follower), there), k.all(s.history_start[epoch] <= offset, same))


@kip_1023.lemma(layer=1, replica=REPLICA)
def isr_begins_locally(k: Algebra, s: View, replica: Value) -> Value:
    """Without tiering who is in the ISR has locally all that it claims."""
    asked = k.all(s.tiered == 0, k.member(replica, s.isr))
    return k.implies(asked, s.local_start[replica] <= s.log_start[replica])


# What was committed once.


@kip_1023.lemma(layer=1, epoch=EPOCH, offset=OFFSET)
def committed_is_written(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """Nothing was committed that was not written: what a leader writes was not."""
    written = k.all(epoch <= s.newest_epoch, offset < s.history_end[epoch])
    return k.any(s.was_committed[epoch, offset] == 0, written)


@kip_1023.lemma(layer=1, replica=REPLICA, offset=OFFSET)
def below_high_watermark_is_committed(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """What anybody has below its high watermark was committed."""
    below = k.all(in_lineage(k, s, replica, offset), offset < s.hw[replica])
    return k.implies(below, s.was_committed[s.record_epoch[replica, offset], offset] == 1)


@kip_1023.lemma(layer=1, epoch=EPOCH, offset=OFFSET)
def remote_is_committed(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """So was what is uploaded."""
    of = s.remote_epoch[epoch, offset]
    return k.any(of == -1, s.was_committed[of, offset] == 1)


@kip_1023.lemma(layer=1, epoch=EPOCH, offset=OFFSET)
def epoch_ends_what_was_committed(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """Above the committed end no leader since has had anything that was ever committed."""
    above = k.all(s.committed_epoch <= epoch, in_history(k, s, epoch, offset), s.committed_end <= offset)
    return k.implies(above, s.was_committed[s.history[epoch, offset], offset] == 0)


@kip_1023.lemma(layer=1, replica=REPLICA, offset=OFFSET)
def member_ends_what_was_committed(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """Nor has a member of the ISR: its high watermark is no higher."""
    above = k.all(k.member(replica, s.isr), in_lineage(k, s, replica, offset), s.committed_end <= offset)
    return k.implies(above, s.was_committed[s.record_epoch[replica, offset], offset] == 0)


@kip_1023.lemma(layer=1, leader=REPLICA, offset=OFFSET)
def leader_serves_the_committed(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """What the controller's leader has below its high watermark is below the committed end: all of the ISR have it."""
    below = k.all(s.log_start[leader] <= offset, offset < s.hw[leader])
    return k.implies(k.all(leads_newest(k, s, leader), below), offset < s.committed_end)


@kip_1023.lemma(layer=1, epoch=EPOCH, start=OFFSET, offset=OFFSET)
def segment_is_known(k: Algebra, s: View, epoch: Value, start: Value, offset: Value) -> Value:
    """The checkpoint that is uploaded with a segment has an epoch for each record in it."""
    state = s.segment_state[epoch, start]
    stored = k.any(state == Segment.copied, state == Segment.copy_finished)
    there = k.all(stored, start <= offset, offset < s.segment_end[epoch, start])
    return k.implies(there, s.remote_epoch[epoch, offset] != -1)


# Without unclean elections.


@kip_1023.lemma(layer=1, one=EPOCH, other=EPOCH, offset=OFFSET)
def one_record_is_committed(k: Algebra, s: View, one: Value, other: Value, offset: Value) -> Value:
    """One record alone was committed at an offset."""
    both = k.all(s.was_committed[one, offset] == 1, s.was_committed[other, offset] == 1)
    return k.any(k.c.unclean == 1, k.negate(both), one == other)


@kip_1023.lemma(layer=1, record=EPOCH, epoch=EPOCH, offset=OFFSET)
def epoch_keeps_the_committed(k: Algebra, s: View, record: Value, epoch: Value, offset: Value) -> Value:
    """No leader since has another one there."""
    committed = s.was_committed[record, offset] == 1
    here = k.all(s.committed_epoch <= epoch, in_history(k, s, epoch, offset))
    kept = k.all(offset < s.committed_end, k.implies(here, s.history[epoch, offset] == record))
    return k.any(k.c.unclean == 1, k.implies(committed, kept))


@kip_1023.lemma(layer=1, record=EPOCH, replica=REPLICA, offset=OFFSET)
def member_keeps_the_committed(k: Algebra, s: View, record: Value, replica: Value, offset: Value) -> Value:
    """Nor has a member of the ISR."""
    here = k.all(k.member(replica, s.isr), in_lineage(k, s, replica, offset))
    asked = k.all(s.was_committed[record, offset] == 1, here)
    return k.any(k.c.unclean == 1, k.implies(asked, s.record_epoch[replica, offset] == record))


@kip_1023.hints("leader_expand_isr", at=OFFSET)
def _who_joins(_k: Algebra, s: View, leader: Value, follower: Value, at: Value) -> list[Value]:
    """What who joins has, its leader's history has."""
    return [at, s.record_epoch[follower, at], s.history[s.leader_epoch[leader], at], s.leo[follower]]


@kip_1023.hints("elect_leader", at=OFFSET)
def _who_is_elected(_k: Algebra, s: View, replica: Value, at: Value) -> list[Value]:
    """What who is elected has below its high watermark."""
    return [at, s.record_epoch[replica, at]]


@kip_1023.hints("build_to_local_start", at=OFFSET)
def _last_built(_k: Algebra, s: View, leader: Value, follower: Value, epoch: Value, at: Value) -> list[Value]:  # noqa: ARG001 - as the action has it
    """What is built is the leader's up to the last record of it."""
    last = s.local_start[leader] - 1
    of = [s.record_epoch[leader, at], s.history[s.leader_epoch[leader], at], s.remote_epoch[epoch, at]]
    return [at, last, s.record_epoch[leader, last], s.remote_epoch[epoch, last], *of]


@kip_1023.hints("truncate_fully")
@kip_1023.hints("start_at_log_start")
def _end_of_who_begins(_k: Algebra, s: View, leader: Value, follower: Value) -> list[Value]:
    """Who is of the ISR has come past all that its leader has below its high watermark."""
    end = s.leo[follower]
    return [end, s.record_epoch[leader, end], s.history[s.leader_epoch[leader], end]]
