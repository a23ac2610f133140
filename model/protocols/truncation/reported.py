"""What a running consumer's application is promised, of what it was told: records, notices, commits."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ..logs import OFFSET
from .actions import exact
from .state import Outcome, is_client, is_consumed, is_fetched, is_own, truncation


def _holds(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The replica's log reaches to an offset, which retention did not take."""
    return k.all(s.log_start[replica] <= offset, offset < s.leo[replica])


@truncation.always_in(is_client)
def kept_logs_match(k: Algebra, s: View) -> Value:
    """Two replicas that hold the same record at an offset hold the same records below it, as far as both reach back."""

    def same(left: Value, right: Value, offset: Value) -> Value:
        both = k.all(_holds(k, s, left, offset), _holds(k, s, right, offset))
        return k.all(both, s.record_id[left, offset] == s.record_id[right, offset])

    def match(left: Value, right: Value) -> Value:
        end = k.last(OFFSET, lambda o: same(left, right, o), -1)
        start = k.max(s.log_start[left], s.log_start[right])
        return k.forall(OFFSET, lambda o: k.implies(k.all(start <= o, o < end), same(left, right, o)))

    return k.forall(REPLICA, lambda a: k.forall(REPLICA, lambda b: match(a, b)))


@truncation.always_in(is_client)
def read_what_was_written(k: Algebra, s: View) -> Value:
    """Whatever was read, or has arrived, was written by a producer; each offset of a run was read."""

    def written(offset: Value) -> Value:
        read = k.all(0 <= s.consumed_id[offset], s.consumed_id[offset] < s.next_record_id)
        given = k.implies(is_consumed(k, s, offset), k.all(read, 0 <= s.consumed_epoch[offset]))
        if k.rules.shipped:
            return given
        arrived = k.all(0 <= s.fetched_id[offset], s.fetched_id[offset] < s.next_record_id)
        return k.all(given, k.implies(is_fetched(k, s, offset), k.all(arrived, 0 <= s.fetched_epoch[offset])))

    return k.forall(OFFSET, written)


def _read_is_in(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    read = k.all(is_consumed(k, s, offset), _holds(k, s, replica, offset))
    return k.all(read, s.record_id[replica, offset] == s.consumed_id[offset])


@truncation.always_in(is_client)
def no_unnoticed_gap(k: Algebra, s: View) -> Value:
    """What was read without a notice is the log of whoever served it, offset for offset.

    Every log that holds the record that was read last holds all that was read before it, as far as it reaches back. A
    notice is a truncation that was reported, a reset, a seek of the application's own, or a restart.
    """

    def holds(replica: Value) -> Value:
        last = k.all(s.position != s.consumed_from, _read_is_in(k, s, replica, s.position - 1))
        kept = k.forall(
            OFFSET,
            lambda o: k.implies(k.all(is_consumed(k, s, o), s.log_start[replica] <= o), _read_is_in(k, s, replica, o)),
        )
        return k.implies(last, kept)

    return k.forall(REPLICA, holds)


@truncation.always_in(is_client)
def names_what_it_read(k: Algebra, s: View) -> Value:
    """The epoch that the next fetch names is that of the record that was read last."""
    read = s.consumed_from < s.position
    return k.implies(read, s.last_epoch == s.consumed_epoch[s.position - 1])


def _still_leads(k: Algebra, s: View, leader: Value) -> Value:
    """The leader that answered has only appended since, and deleted what is old."""
    return k.all(s.leader_epoch[leader] == s.answered_epoch, s.leading[leader] == 1)


@truncation.always_in(is_own)
def truncation_was_found(k: Algebra, s: View) -> Value:
    """LOG_TRUNCATION is told where the answering leader has another record, or none, before the fetch offset."""
    leader = s.epoch_leader[s.answered_epoch]
    gone = s.record_epoch[leader, s.position - 1] != s.last_epoch
    return k.implies(k.all(s.outcome == Outcome.log_truncation, _still_leads(k, s, leader)), gone)


@truncation.always_in(is_client)
def told_divergence(k: Algebra, s: View) -> Value:
    """The divergence that was found, and told, is where the logs part or, if the epoch is lost, a bound for it.

    Exact: the leader's log has what was read below the offset, and nothing of what was read from it on. A bound: it has
    nothing that was read from there on, so that nothing that is still there is read again. Of Apache Kafka's consumer a
    leader of an older epoch than the position's may be asked, which knows of nothing (V7).
    """
    leader = s.epoch_leader[s.answered_epoch]

    def right(offset: Value) -> Value:
        in_log = _read_is_in(k, s, leader, offset)
        below = k.all(is_consumed(k, s, offset), offset < s.reported, s.log_start[leader] <= offset)
        return k.all(k.implies(k.all(exact(s), below), in_log), k.implies(s.reported <= offset, k.negate(in_log)))

    found = k.all(s.reported != -1, s.reported <= s.position, k.any(s.told == -1, s.told == s.reported))
    true = k.all(found, k.implies(_still_leads(k, s, leader), k.forall(OFFSET, right)))
    if k.rules.shipped:
        nothing = k.all(s.reported == -1, s.reported_epoch == -1, s.told == -1)
        true = k.any(true, k.all(nothing, s.answered_epoch < s.last_epoch))
    return k.ite(s.outcome == Outcome.divergence_found, true, k.all(s.reported == -1, s.told == -1))


@truncation.always_in(is_client)
def acknowledged_commit_is_kept(k: Algebra, s: View) -> Value:
    """OffsetFetch gives the commit that was acknowledged last, or one that the coordinator found again in its log."""
    same = k.all(
        s.committed == s.acknowledged,
        s.committed_epoch == s.acknowledged_epoch,
        s.committed_seen == s.acknowledged_seen,
    )
    return k.any(same, k.all(s.found_again == 1, s.committed != -1))
