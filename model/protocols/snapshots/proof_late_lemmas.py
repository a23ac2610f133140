"""What stays true of a response while the network holds it back, in the proof of ``kip-630-safe``.

Whoever sent it may have crashed or been deposed since, and its log may be another. But it sent what was in the history
of its epoch, and that only grows; what it said was committed stays committed, and every later epoch has it. So a
response that answers the request in hand does what it would have done at once: by the request's epochs and offsets the
receiver's log is the very one that the sender compared.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ..logs import EPOCH, OFFSET
from .late import CHUNK_OF_SNAPSHOT, DIVERGENCE, RECORDS, SNAPSHOT
from .proof_ghosts import is_started, kip_630
from .state import SLOT

__all__ = ["kip_630"]


@kip_630.lemma(slot=SLOT)
def held_for_a_follower(k: Algebra, s: View, slot: Value) -> Value:
    """A held response is of a started epoch, and goes to somebody who does not lead in it."""
    epoch, to = s.response_epoch[slot], s.response_to[slot]
    sent = k.all(to != k.NONE, is_started(s, epoch), s.epoch_leader[epoch] != to)
    return k.implies(s.response_kind[slot] != -1, sent)


@kip_630.lemma(slot=SLOT)
def held_records_are_next(k: Algebra, s: View, slot: Value) -> Value:
    """A held record is the one of its epoch's history that comes after the record that was asked with."""
    epoch, at, end = s.response_epoch[slot], s.response_fetch_offset[slot], s.response_offset[slot]
    last = s.response_fetch_epoch[slot]
    asked = k.all(k.implies(at == 0, last == -1), k.implies(at != 0, s.history[epoch, at - 1] == last))
    one = k.all(end == at + 1, s.response_offset_epoch[slot] == s.history[epoch, at])
    within = k.all(0 <= at, end <= s.history_end[epoch], k.any(end == at, one))
    return k.implies(s.response_kind[slot] == RECORDS, k.all(asked, within))


@kip_630.lemma(slot=SLOT, offset=OFFSET)
def held_divergence_is_right(k: Algebra, s: View, slot: Value, offset: Value) -> Value:
    """A held divergence says where in its epoch's history larger epochs begin than the one that was asked with."""
    epoch, asked, end = s.response_epoch[slot], s.response_fetch_epoch[slot], s.response_offset[slot]
    known = s.response_offset_epoch[slot]
    last = k.all(k.implies(end == 0, known == -1), k.implies(end != 0, s.history[epoch, end - 1] == known))
    larger = k.implies(k.all(end <= offset, offset < s.history_end[epoch]), asked < s.history[epoch, offset])
    right = k.all(0 <= end, end <= s.history_end[epoch], known <= asked, asked < epoch, last, larger)
    return k.implies(s.response_kind[slot] == DIVERGENCE, right)


@kip_630.lemma(slot=SLOT)
def held_snapshot_is_ahead(k: Algebra, s: View, slot: Value) -> Value:
    """A held snapshot id is that of a chosen record, and whoever asked had less than that: fewer, or older records."""
    offset, asked = s.response_offset[slot], s.response_fetch_epoch[slot]
    named = k.all(0 <= offset, offset < k.c.log_size, s.response_offset_epoch[slot] == s.chosen[offset])
    ahead = k.any(s.response_fetch_offset[slot] <= offset, asked < s.chosen[offset])
    return k.implies(s.response_kind[slot] == SNAPSHOT, k.all(named, ahead))


@kip_630.lemma(slot=SLOT)
def held_chunk_is_of_the_file(k: Algebra, s: View, slot: Value) -> Value:
    """A held chunk is of the one file that the leader of its epoch has of that snapshot."""
    epoch, offset, size = s.response_epoch[slot], s.response_offset[slot], s.response_size[slot]
    of_file = k.all(0 < size, size == s.file_size[epoch, offset], s.response_records[slot] == offset + 1)
    return k.implies(s.response_kind[slot] == CHUNK_OF_SNAPSHOT, of_file)


def known_end(k: Algebra, s: View, slot: Value) -> Value:
    """Up to where a held response says that records are committed, exclusive."""
    named = k.ite(s.response_kind[slot] == SNAPSHOT, s.response_offset[slot] + 1, 0)
    return k.ite(s.response_kind[slot] == RECORDS, s.response_hw[slot], named)


@kip_630.lemma(slot=SLOT, offset=OFFSET)
def held_is_committed(k: Algebra, s: View, slot: Value, offset: Value) -> Value:
    """What a held response says is committed, is."""
    end = known_end(k, s, slot)
    return k.all(end <= s.chosen_end, k.implies(offset < end, s.committed[offset] != -1))


@kip_630.lemma(slot=SLOT, epoch=EPOCH, offset=OFFSET)
def histories_hold_what_is_held(k: Algebra, s: View, slot: Value, epoch: Value, offset: Value) -> Value:
    """From a held response's epoch on, histories have what it says is committed."""
    end = known_end(k, s, slot)
    same = k.implies(offset < end, s.history[epoch, offset] == s.chosen[offset])
    later = k.all(is_started(s, epoch), s.response_epoch[slot] <= epoch)
    return k.implies(later, k.all(end <= s.history_end[epoch], same))
