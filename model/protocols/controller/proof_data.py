"""Lemmas of partitions' data: whoever may be elected has what a producer was told that all of the ISR have.

The argument. When a leader acknowledges a record, all whom it counts on are in its leader epoch: the ISR that it knows,
and whom it has asked to take in. Only the leader of an epoch has members taken in, and the leader of a later one, who
was in the ISR, would have taken up that later epoch first. So all of the log's later ISRs are among those who have the
record (``isr_is_counted_on``). From then on nobody writes; who joins an ISR has what its leader has; and who loses its
logs is fenced before it is back, and out of the ISR, or the last member, which is then doubted.

They are a layer above the others: those are proved without them.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ..logs import OFFSET
from .image import registers
from .proof_ghosts import kip_631
from .state import PARTITION, Kind, Run, is_up, presumes_leadership


def _is_there(s: View, offset: Value, partition: Value) -> Value:
    """There is such a partition behind a record."""
    return s.prefix_partition_epoch[offset, partition] != -1


@kip_631.lemma(layer=1, offset=OFFSET, partition=PARTITION)
def partition_is_created_first(k: Algebra, s: View, offset: Value, partition: Value) -> Value:
    """There is no partition before the record that creates it, unless the log begins with it."""
    created = s.created_at[partition]
    first = k.ite(k.c.bootstrapped == 1, -1, 0)
    return k.implies(k.all(offset < s.end, _is_there(s, offset, partition)), k.all(first <= created, created <= offset))


@kip_631.lemma(layer=1, offset=OFFSET)
def partition_is_created_there(k: Algebra, s: View, offset: Value) -> Value:
    """Nor does any other record create it."""
    creates = k.all(offset < s.end, s.record_kind[offset] == Kind.create_topic)
    return k.implies(creates, s.created_at[s.record_partition[offset]] == offset)


@kip_631.lemma(layer=1, older=OFFSET, newer=OFFSET, partition=PARTITION)
def partition_is_there_between(k: Algebra, s: View, older: Value, newer: Value, partition: Value) -> Value:
    """A partition that is removed does not come back."""
    known = k.all(s.created_at[partition] <= older, older <= newer, newer < s.end, _is_there(s, newer, partition))
    return k.implies(known, _is_there(s, older, partition))


@kip_631.lemma(layer=1, offset=OFFSET, partition=PARTITION)
def doubted_is_not_led(k: Algebra, s: View, offset: Value, partition: Value) -> Value:
    """Whose last member is doubted has no leader: that member was fenced, and nobody is elected since."""
    doubted = k.all(offset < s.end, s.prefix_doubted[offset, partition] == 1)
    return k.implies(doubted, s.prefix_leader[offset, partition] == k.NONE)


# Brokers, and what is known of them while they are gone.


@kip_631.lemma(layer=1, broker=REPLICA, offset=OFFSET, partition=PARTITION)
def who_registers_leads_nothing(k: Algebra, s: View, broker: Value, offset: Value, partition: Value) -> Value:
    """Who registers was fenced before."""
    registered = k.all(offset < s.end, registers(k, s, offset, broker))
    return k.implies(registered, s.prefix_leader[offset, partition] != broker)


@kip_631.lemma(layer=1, broker=REPLICA)
def awaiting_is_not_up(k: Algebra, s: View, broker: Value) -> Value:
    """Who awaits an answer cannot crash: that would be another life, with other logs."""
    return k.implies(s.awaited[broker] != -1, k.negate(is_up(k, s, broker)))


@kip_631.lemma(layer=1, broker=REPLICA, offset=OFFSET)
def awaiting_is_fenced(k: Algebra, s: View, broker: Value, offset: Value) -> Value:
    """Who awaits an answer is fenced since the registration that it awaits it of."""
    since = k.all(s.awaited[broker] != -1, s.awaited[broker] <= offset, offset < s.end)
    return k.implies(since, k.negate(k.member(broker, s.prefix_unfenced[offset])))


@kip_631.lemma(layer=1, broker=REPLICA, offset=OFFSET, partition=PARTITION)
def lost_is_doubted(k: Algebra, s: View, broker: Value, offset: Value, partition: Value) -> Value:
    """Where somebody who has lost its logs, and registers, is still in an ISR, it is doubted."""
    since = k.all(s.awaited[broker] != -1, s.awaited[broker] <= offset, offset < s.end, s.run[broker] == Run.lost)
    in_isr = k.member(broker, s.prefix_isr[offset, partition])
    return k.implies(k.all(since, in_isr), s.prefix_doubted[offset, partition] == 1)


@kip_631.lemma(layer=1, leader=REPLICA, partition=PARTITION)
def proposed_epoch_was_told(k: Algebra, s: View, leader: Value, partition: Value) -> Value:
    """The broker epoch of who is to join is one that it was told, if not its last."""
    member = s.proposed[leader, partition]
    return k.implies(member != k.NONE, s.proposed_epoch[leader, partition] <= s.own_epoch[member])


# Whom a leader counts on.


def _counts_on(k: Algebra, s: View, offset: Value, partition: Value, broker: Value) -> Value:
    """Who leads behind a record may count on the broker: it is in the ISR, or may have been asked for.

    Until its metadata have another version of the partition, the leader has asked for one broker at most. What it asks
    for after that, or has asked for before it crashed, is not told: that may be anybody.
    """
    leader = s.prefix_leader[offset, partition]
    same = s.view_partition_epoch[leader, partition] == s.prefix_partition_epoch[offset, partition]
    past = k.all(offset < s.view_applied[leader], k.negate(same))
    asked = k.any(k.negate(presumes_leadership(k, s, leader, partition)), s.proposed[leader, partition] == broker)
    may_ask = k.all(leader != k.NONE, k.any(past, k.all(same, asked)))
    return k.any(k.member(broker, s.prefix_isr[offset, partition]), may_ask)


def _has_moved_on(k: Algebra, s: View, offset: Value, partition: Value, broker: Value) -> Value:
    """The broker's metadata have a later leader epoch than that behind a record."""
    later = s.view_leader_epoch[broker, partition] != s.prefix_leader_epoch[offset, partition]
    return k.all(offset < s.view_applied[broker], later)


@kip_631.lemma(layer=1, older=OFFSET, newer=OFFSET, partition=PARTITION, broker=REPLICA)
def isr_is_counted_on(k: Algebra, s: View, older: Value, newer: Value, partition: Value, broker: Value) -> Value:
    """Every member of a later ISR is counted on by the leader behind an older record, or one of those has moved on."""
    later = k.all(older <= newer, newer < s.end, _is_there(s, older, partition))

    def moved(member: Value) -> Value:
        counted = _counts_on(k, s, older, partition, member)
        return k.all(counted, _has_moved_on(k, s, older, partition, member))

    in_isr = k.member(broker, s.prefix_isr[newer, partition])
    known = k.any(_counts_on(k, s, older, partition, broker), k.exists(REPLICA, moved))
    return k.implies(k.all(later, in_isr), known)


# What was acknowledged.


@kip_631.lemma(layer=1, partition=PARTITION)
def acknowledged_in_its_epoch(k: Algebra, s: View, partition: Value) -> Value:
    """A record was acknowledged in the leader epoch that the log has up to a stable offset, which its leader knows."""
    end, epoch = s.acknowledged_end[partition], s.acknowledged[partition]
    leader = s.prefix_leader[end - 1, partition]
    known = k.all(0 < end, end <= s.stable, s.prefix_leader_epoch[end - 1, partition] == epoch)
    return k.implies(epoch != -1, k.all(known, leader != k.NONE, end <= s.view_applied[leader]))


def _keeps(k: Algebra, s: View, broker: Value, partition: Value) -> Value:
    """The broker has the record, and knows its leader epoch; or it knows that the partition is gone."""
    epoch = s.acknowledged[partition]
    has = k.all(s.data[broker, partition] == epoch, epoch <= s.view_leader_epoch[broker, partition])
    gone = k.all(s.created_at[partition] < s.view_applied[broker], s.view_leader_epoch[broker, partition] == -1)
    return k.any(has, gone)


@kip_631.lemma(layer=1, leader=REPLICA, partition=PARTITION)
def proposed_member_keeps(k: Algebra, s: View, leader: Value, partition: Value) -> Value:
    """Who is to join has what was acknowledged, if it still is what it was when it was proposed."""
    member, epoch = s.proposed[leader, partition], s.acknowledged[partition]
    joins = k.all(member != k.NONE, k.negate(k.member(member, s.view_isr[leader, partition])))
    itself = k.all(s.run[member] != Run.lost, s.own_epoch[member] == s.proposed_epoch[leader, partition])
    knows = k.all(epoch != -1, epoch <= s.view_leader_epoch[leader, partition])
    return k.implies(k.all(joins, itself, knows), _keeps(k, s, member, partition))


@kip_631.lemma(layer=1, broker=REPLICA, offset=OFFSET, partition=PARTITION)
def member_keeps(k: Algebra, s: View, broker: Value, offset: Value, partition: Value) -> Value:
    """A member of an ISR since has what was acknowledged, if it is what it was then, and is not doubted."""
    since = k.all(s.acknowledged[partition] != -1, s.acknowledged_end[partition] <= offset + 1, offset < s.end)
    trusted = s.prefix_doubted[offset, partition] == 0
    in_isr = k.all(k.member(broker, s.prefix_isr[offset, partition]), trusted)
    itself = k.all(s.run[broker] != Run.lost, s.own_epoch[broker] <= offset)
    return k.implies(k.all(since, in_isr, itself), _keeps(k, s, broker, partition))


# Terms that z3's E-matching does not come upon by itself. A hint says nothing.


@kip_631.hints("load_snapshot", older=OFFSET, partition=PARTITION)
def _loaded(_k: Algebra, s: View, broker: Value, node: Value, partition: Value, **_: Value) -> list[Value]:
    """The partition behind the last record of a snapshot, and where the broker registered."""
    end, epoch = s.snapshot_end[node], s.own_epoch[broker]
    return [
        s.prefix_partition_epoch[end - 1, partition],
        s.prefix_partition_epoch[epoch, partition],
        s.prefix_leader[epoch, partition],
    ]
