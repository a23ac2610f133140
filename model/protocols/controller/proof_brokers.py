"""Lemmas of brokers: registrations and their answers, and what is pending of them."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from .image import registers
from .proof_ghosts import kip_631
from .state import PARTITION


@kip_631.lemma(broker=REPLICA)
def broker_epoch_is_stable(k: Algebra, s: View, broker: Value) -> Value:
    """A broker was told of a registration when that was stable."""
    return k.any(s.own_epoch[broker] == -1, s.own_epoch[broker] < s.stable)


@kip_631.lemma(broker=REPLICA)
def awaited_is_its_own(k: Algebra, s: View, broker: Value) -> Value:
    """The registration of which a broker awaits the answer is in the log, and is its own."""
    awaited = s.awaited[broker]
    there = k.all(awaited < s.end, registers(k, s, awaited, broker), s.own_epoch[broker] < awaited)
    return k.any(awaited == -1, there)


@kip_631.lemma(leader=REPLICA, partition=PARTITION)
def nobody_proposes_itself(k: Algebra, s: View, leader: Value, partition: Value) -> Value:
    """No leader asks to be taken out of the ISR, or into it."""
    return k.any(s.proposed[leader, partition] == k.NONE, s.proposed[leader, partition] != leader)
