"""Lemmas of a partition's versions: what the log says of it at one offset, beside what it says at a later one."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ..logs import OFFSET
from .image import PartitionState
from .proof_ghosts import kip_631
from .proof_log import at_offset
from .state import PARTITION


@kip_631.lemma(offset=OFFSET, partition=PARTITION)
def absent_is_nothing(k: Algebra, s: View, offset: Value, partition: Value) -> Value:
    """A partition that is not there, or not any more, has neither versions nor a leader nor an ISR."""
    state = at_offset(s, offset, partition)
    absent = state.leader_epoch == -1
    nothing = k.all(state.leader == k.NONE, state.isr == k.EMPTY)
    return k.all(absent == (state.partition_epoch == -1), k.implies(absent, nothing))


def _is_earlier(k: Algebra, was: PartitionState, now: PartitionState) -> Value:
    """Both are versions of the partition, and one is no later than the other."""
    there = k.all(was.partition_epoch != -1, now.partition_epoch != -1)
    ordered = k.all(was.partition_epoch <= now.partition_epoch, was.leader_epoch <= now.leader_epoch)
    same_version = k.all(was.leader_epoch == now.leader_epoch, was.isr == now.isr)
    return k.all(
        k.implies(there, ordered),
        k.implies(k.all(there, was.leader_epoch == now.leader_epoch), was.leader == now.leader),
        k.implies(k.all(there, was.partition_epoch == now.partition_epoch), same_version),
    )


@kip_631.lemma(older=OFFSET, newer=OFFSET, partition=PARTITION)
def versions_only_grow(k: Algebra, s: View, older: Value, newer: Value, partition: Value) -> Value:
    """A leader epoch has one leader, or none; a partition epoch has one ISR; and neither ever goes back."""
    earlier = _is_earlier(k, at_offset(s, older, partition), at_offset(s, newer, partition))
    return k.implies(k.all(older <= newer, newer < s.end), earlier)


@kip_631.lemma(offset=OFFSET, partition=PARTITION)
def topic_is_created_once(k: Algebra, s: View, offset: Value, partition: Value) -> Value:
    """There is no partition before the topic's id is drawn: so it is a new one when it is created."""
    drawn = k.any(s.created[partition] == 1, offset >= s.end)
    return k.any(drawn, s.prefix_partition_epoch[offset, partition] == -1)
