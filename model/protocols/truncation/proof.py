"""Why ``kip-320-mended`` keeps its promises, for any number of replicas, offsets, records and leader epochs.

The argument in short. The *history* of an epoch is the log of its leader: what that replica held when it was elected,
and what it wrote since. A log is a prefix of its epoch's history, a presumed leader's log is all of it, and a record is
in the history of the epoch in which it was written. Histories with one record have the same records below it; so logs
match. What was consumed is a piece of the history of its last record's epoch: a leader that passes the check, since it
has that epoch at the position or behind it, has the whole piece.

A record is *exposed* in an epoch when the high watermark of the epoch's leader passes it. A clean election keeps all
that was exposed: the new leader holds it, and the old one exposes nothing more. So if a leader is no older than the one
that served the position, and lacks the record before it, then an unclean election came in between; that is what
LOG_TRUNCATION means. Of a position that a search gave it is known that either it was exposed, or an unclean election
came after its epoch. The same is kept of the committed position, to which the consumer may return.
"""

from __future__ import annotations

from pathlib import Path

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA, Constants, Index, integers
from ...core.terms import Sort
from ...prove.proof import Ghosts, Proof
from ..logs import EPOCH, OFFSET
from .actions import larger_epoch_start
from .state import Outcome, common_end, current_leader, is_consumed, truncation

RECORD = Index("record", Sort.INT, lambda c: c["max_records"])
"""The records that producers write, by their ids."""


def _at(replicas: int, offsets: int, records: int, epochs: int) -> Constants:
    return dict(zip(truncation.constants, (replicas, offsets, records, epochs), strict=True))


kip_320_mended = Proof(
    truncation,
    variant="kip-320-mended",
    sizes=(_at(2, 1, 1, 1), _at(2, 2, 2, 2), _at(3, 2, 3, 2)),
    runs=(_at(2, 1, 1, 2), _at(2, 2, 3, 2), _at(3, 1, 2, 2)),
    # The lemmas are enough. Where any two logs meet, z3 would ask of epoch after epoch without an end.
    derived=tuple(name for name in truncation.traced("kip-320-mended").invariants if name != "hw_at_leaders"),
    cores=Path(__file__).with_name("cores-kip-320-mended.json"),
)

_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_ENDS = integers(-1, lambda c: c["log_size"])
_IDS = integers(-1, lambda c: c["max_records"] - 1)

kip_320_mended.ghost(
    "written_in", "the leader epoch in which a record was written", _EPOCHS, per=(RECORD,), initially=-1
)
kip_320_mended.ghost(
    "history_end", "the LEO that an epoch's leader had last in the epoch; -1 before", _ENDS, per=(EPOCH,), initially=-1
)
kip_320_mended.ghost("history", "the records of an epoch's leader", _IDS, per=(EPOCH, OFFSET), initially=-1)
kip_320_mended.ghost(
    "exposed_end",
    "the high watermark that an epoch's leader had last in the epoch",
    integers(0, lambda c: c["log_size"]),
    per=(EPOCH,),
)
kip_320_mended.ghost(
    "last_unclean", "the last unclean election up to that of an epoch, or -1", _EPOCHS, per=(EPOCH,), initially=-1
)


def _elected(k: Algebra, s: View, new_leader: Value, *, unclean: bool) -> Ghosts:
    epoch, old = s.quorum_leader_epoch + 1, current_leader(s)
    exposed = k.min(s.hw[old], common_end(k, s, new_leader, old))
    last = epoch if unclean else s.last_unclean[s.quorum_leader_epoch]
    return {
        "history_end": lambda e: k.ite(e == epoch, s.leo[new_leader], s.history_end[e]),
        "history": lambda e, o: k.ite(e == epoch, s.record_id[new_leader, o], s.history[e, o]),
        "exposed_end": lambda e: k.ite(e == epoch, exposed, s.exposed_end[e]),
        "last_unclean": lambda e: k.ite(e == epoch, last, s.last_unclean[e]),
    }


@kip_320_mended.updates("elect_cleanly")
def _elected_cleanly(k: Algebra, s: View, new_leader: Value) -> Ghosts:
    return _elected(k, s, new_leader, unclean=False)


@kip_320_mended.updates("elect_uncleanly")
def _elected_uncleanly(k: Algebra, s: View, new_leader: Value) -> Ghosts:
    return _elected(k, s, new_leader, unclean=True)


@kip_320_mended.updates("leader_write")
def _written(k: Algebra, s: View, leader: Value) -> Ghosts:
    epoch, end, record = s.leader_epoch[leader], s.leo[leader], s.next_record_id
    return {
        "written_in": lambda i: k.ite(i == record, epoch, s.written_in[i]),
        "history_end": lambda e: k.ite(e == epoch, end + 1, s.history_end[e]),
        "history": lambda e, o: k.ite(k.all(e == epoch, o == end), record, s.history[e, o]),
    }


@kip_320_mended.updates("leader_inc_high_watermark")
def _exposed(k: Algebra, s: View, leader: Value) -> Ghosts:
    epoch = s.leader_epoch[leader]
    return {"exposed_end": lambda e: k.ite(e == epoch, s.hw[leader] + 1, s.exposed_end[e])}


def _leads_in(s: View, epoch: Value) -> Value:
    """The leader of an epoch is in it still: it presumes leadership."""
    # Said of an epoch, not of a replica: from replicas to their epochs and on to the leaders of these there is no end.
    return s.leader_epoch[s.epoch_leader[epoch]] == epoch


# Histories and logs.


@kip_320_mended.lemma(epoch=EPOCH)
def epochs_begin_with_an_election(k: Algebra, s: View, epoch: Value) -> Value:
    """Each epoch up to the controller's has a leader, which is in it or in a later one; a later epoch has nothing."""
    leader = s.epoch_leader[epoch]
    begun = k.all(leader != k.NONE, epoch <= s.leader_epoch[leader], 0 <= s.history_end[epoch])
    nothing = k.all(s.history_end[epoch] == -1, s.epoch_unclean[epoch] == 0)
    return k.all(k.any(s.quorum_leader_epoch < epoch, begun), k.any(epoch <= s.quorum_leader_epoch, nothing))


@kip_320_mended.lemma(replica=REPLICA)
def no_epoch_from_the_future(_k: Algebra, s: View, replica: Value) -> Value:
    """No replica is in an epoch without an election: the next epoch is new to all."""
    return s.leader_epoch[replica] <= s.quorum_leader_epoch


@kip_320_mended.lemma(epoch=EPOCH, offset=OFFSET)
def history_of_histories(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """A record in a history was written, in that epoch or before, and is in the history of its own epoch too."""
    record = s.history[epoch, offset]
    own = s.written_in[record]
    written = k.all(0 <= record, record < s.next_record_id, 0 <= own, own <= epoch)
    there = k.all(offset < s.history_end[own], s.history[own, offset] == record)
    return k.implies(offset < s.history_end[epoch], k.all(written, there))


@kip_320_mended.lemma(left=EPOCH, right=EPOCH, lower=OFFSET, upper=OFFSET)
def histories_match(k: Algebra, s: View, left: Value, right: Value, lower: Value, upper: Value) -> Value:
    """Two histories that hold the same record hold the same records below it."""
    within = k.all(lower <= upper, upper < s.history_end[left], upper < s.history_end[right])
    same = s.history[left, upper] == s.history[right, upper]
    return k.implies(k.all(within, same), s.history[left, lower] == s.history[right, lower])


@kip_320_mended.lemma(replica=REPLICA, offset=OFFSET)
def log_is_a_prefix(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """A log is a prefix of its epoch's history, and the epoch beside a record is that in which it was written."""
    epoch, record = s.leader_epoch[replica], s.record_id[replica, offset]
    within = k.any(s.leo[replica] == 0, k.all(0 <= epoch, s.leo[replica] <= s.history_end[epoch]))
    same = k.all(record == s.history[epoch, offset], s.record_epoch[replica, offset] == s.written_in[record])
    return k.all(within, k.implies(offset < s.leo[replica], same))


@kip_320_mended.lemma(epoch=EPOCH)
def leader_has_the_whole_history(k: Algebra, s: View, epoch: Value) -> Value:
    """While an epoch's leader is in it, its log is all of the history, and it exposes what the epoch has exposed."""
    leader = s.epoch_leader[epoch]
    whole = k.all(s.leo[leader] == s.history_end[epoch], s.hw[leader] == s.exposed_end[epoch])
    return k.implies(_leads_in(s, epoch), whole)


# Elections.


@kip_320_mended.lemma(epoch=EPOCH)
def last_unclean_was_unclean(k: Algebra, s: View, epoch: Value) -> Value:
    """The last unclean election up to an epoch was one, and not of a later epoch."""
    last = s.last_unclean[epoch]
    return k.implies(
        epoch <= s.quorum_leader_epoch, k.all(last <= epoch, k.any(last == -1, s.epoch_unclean[last] == 1))
    )


@kip_320_mended.lemma(older=EPOCH, newer=EPOCH)
def last_unclean_is_last(k: Algebra, s: View, older: Value, newer: Value) -> Value:
    """It is the last: none after it, up to that epoch, was unclean."""
    between = k.all(older <= newer, newer <= s.quorum_leader_epoch, s.epoch_unclean[older] == 1)
    return k.implies(between, older <= s.last_unclean[newer])


@kip_320_mended.lemma(older=EPOCH, newer=EPOCH, offset=OFFSET)
def clean_elections_keep_what_is_exposed(k: Algebra, s: View, older: Value, newer: Value, offset: Value) -> Value:
    """With clean elections only in between, a later epoch has, and exposes, all that an older one exposed."""
    clean = k.all(older <= newer, newer <= s.quorum_leader_epoch, s.last_unclean[newer] <= older)
    same = k.implies(offset < s.exposed_end[older], s.history[older, offset] == s.history[newer, offset])
    return k.implies(clean, k.all(s.exposed_end[older] <= s.exposed_end[newer], same))


# The consumer: what it consumed, and where it goes on from.


def _is_of_epoch(k: Algebra, s: View, position: Value, epoch: Value) -> Value:
    """The record before the position, in the epoch's history, was written in the epoch."""
    last = position - 1
    return k.all(0 <= epoch, 0 < position, last < s.history_end[epoch], s.written_in[s.history[epoch, last]] == epoch)


def _served_or_lost(k: Algebra, s: View, position: Value, epoch: Value, seen: Value) -> Value:
    """A position was exposed in the epoch that it was seen in, or an unclean election came after its own epoch."""
    exposed = k.all(position <= s.exposed_end[seen], s.history[seen, position - 1] == s.history[epoch, position - 1])
    known = k.all(epoch <= seen, _is_of_epoch(k, s, position, epoch), k.any(epoch < s.last_unclean[seen], exposed))
    return k.all(seen <= s.quorum_leader_epoch, k.implies(epoch != -1, known))


@kip_320_mended.lemma()
def position_served_or_lost(k: Algebra, s: View) -> Value:
    """The position was exposed to the consumer, or lost since: a leader that then lacks it says so rightly."""
    return _served_or_lost(k, s, s.position, s.last_epoch, s.seen_epoch)


@kip_320_mended.lemma()
def commit_served_or_lost(k: Algebra, s: View) -> Value:
    """So was the committed one, to which the consumer may return."""
    return k.implies(s.committed != -1, _served_or_lost(k, s, s.committed, s.committed_epoch, s.committed_seen))


@kip_320_mended.lemma()
def reported_served_or_lost(k: Algebra, s: View) -> Value:
    """And the reported one, from which it goes on; that is within the log of the leader that reported it."""
    reported = _served_or_lost(k, s, s.reported, s.reported_epoch, s.answered_epoch)
    return k.implies(
        s.outcome == Outcome.divergence_found, k.all(s.reported <= s.history_end[s.answered_epoch], reported)
    )


@kip_320_mended.lemma(offset=OFFSET)
def consumed_is_of_one_history(k: Algebra, s: View, offset: Value) -> Value:
    """What was consumed is a piece of the history of its last record's epoch; with no epoch nothing was consumed."""
    of_history = s.consumed_id[offset] == s.history[s.last_epoch, offset]
    something = k.all(s.consumed_from < s.position, s.last_epoch != -1)
    return k.all(k.any(s.consumed_from == s.position, something), k.implies(is_consumed(k, s, offset), of_history))


@kip_320_mended.lemma(offset=OFFSET)
def commit_is_of_one_history(k: Algebra, s: View, offset: Value) -> Value:
    """So is what was consumed up to the commit, which is never ahead of the position."""
    consumed = k.all(s.consumed_from <= offset, offset < s.committed)
    of_history = s.consumed_id[offset] == s.history[s.committed_epoch, offset]
    something = k.any(s.committed <= s.consumed_from, s.committed_epoch != -1)
    return k.all(s.committed <= s.position, something, k.implies(consumed, of_history))


@kip_320_mended.lemma()
def truncation_is_of_a_named_epoch(k: Algebra, s: View) -> Value:
    """A truncation is found of a position with an epoch, by a leader that was elected for no older one."""
    refused = k.any(s.outcome == Outcome.log_truncation, s.outcome == Outcome.divergence_found)
    named = k.all(s.last_epoch != -1, s.last_epoch <= s.answered_epoch, s.answered_epoch <= s.quorum_leader_epoch)
    return k.implies(refused, named)


# Terms that z3's E-matching does not come upon by itself. A hint says nothing.


@kip_320_mended.hints("elect_cleanly", offset=OFFSET)
def _kept(_k: Algebra, s: View, new_leader: Value, offset: Value) -> list[Value]:  # noqa: ARG001 - as the action has it
    """What an older epoch exposed is in the history of the last one, from whose leader the new one has it."""
    return [s.history[s.quorum_leader_epoch, offset]]


@kip_320_mended.hints("answer_log_truncation", "find_divergence")
def _checked(k: Algebra, s: View, leader: Value) -> list[Value]:
    """Where the leader's epochs are larger than the consumer's, whether it has that one before them, what was lost."""
    start, last = larger_epoch_start(k, s, leader, s.last_epoch), s.position - 1
    found, now = s.record_epoch[leader, start - 1], s.leader_epoch[leader]
    return [s.history[s.last_epoch, start], s.history[found, last], s.history[now, last], s.last_unclean[now]]
