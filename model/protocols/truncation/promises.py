"""What ``truncation`` promises in every state, and what some run of it must meet."""

from __future__ import annotations

from collections.abc import Callable

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ..logs import EPOCH, OFFSET
from .actions import exact
from .state import Outcome, common_end, is_consumed, is_stepwise, presumes_leadership, same_record, truncation


@truncation.always_in(is_stepwise)
def logs_match(k: Algebra, s: View) -> Value:
    """Two replicas that hold the same record at an offset hold the same records below it."""
    return k.forall(REPLICA, lambda a: k.forall(REPLICA, lambda b: _matches_below(k, s, a, b)))


def _matches_below(k: Algebra, s: View, left: Value, right: Value) -> Value:
    end = common_end(k, s, left, right)
    return k.forall(OFFSET, lambda o: k.implies(o < end, same_record(k, s, left, right, o)))


@truncation.always_in(is_stepwise)
def unclean_means_lost(k: Algebra, s: View) -> Value:
    """An election is unclean if and only if the new leader lacks records that its predecessor committed.

    Said while both are still in their epochs: what the predecessor commits later, as a zombie, counts too.
    """

    def says_so(epoch: Value) -> Value:
        old, new = s.epoch_leader[epoch - 1], s.epoch_leader[epoch]
        both = k.all(s.leader_epoch[old] == epoch - 1, s.leader_epoch[new] == epoch, new != k.NONE)
        lost = common_end(k, s, old, new) < s.hw[old]
        return k.implies(both, k.ite(lost, s.epoch_unclean[epoch] == 1, s.epoch_unclean[epoch] == 0))

    return k.forall(EPOCH, says_so)


@truncation.always_in(is_stepwise)
def hw_at_leaders(k: Algebra, s: View) -> Value:
    """A presumed leader's high watermark lies within its log; a follower's is not kept."""
    return k.forall(REPLICA, lambda r: s.hw[r] <= k.ite(presumes_leadership(s, r), s.leo[r], 0))


def _consumed_is_in(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    return k.all(is_consumed(k, s, offset), s.record_id[replica, offset] == s.consumed_id[offset])


@truncation.always_in(is_stepwise)
def no_silent_gap(k: Algebra, s: View) -> Value:
    """What the consumer has read without a notice is the log of whoever served it, offset for offset.

    Every log that holds the record consumed last holds all that was consumed before it: nothing was skipped, and
    nothing that was truncated stayed. Since records are unique, the leader that served the last fetch is such a log.

    It promises nothing across a notice that gave a bound only, nor below a ``seek``; and a consumer whose last record
    was truncated learns of it only with its next fetch.
    """

    def holds(replica: Value) -> Value:
        last = k.all(s.position != s.consumed_from, _consumed_is_in(k, s, replica, s.position - 1))
        rest = k.forall(OFFSET, lambda o: k.implies(is_consumed(k, s, o), _consumed_is_in(k, s, replica, o)))
        return k.implies(last, rest)

    return k.forall(REPLICA, holds)


def _answering(k: Algebra, s: View, body: Callable[[Value], Value]) -> Value:
    """The body holds of the leader that found the truncation, as long as that is still in the epoch of its answer."""
    leader = s.epoch_leader[s.answered_epoch]
    return k.implies(s.leader_epoch[leader] == s.answered_epoch, body(leader))


@truncation.always_in(is_stepwise)
def truncation_is_true(k: Algebra, s: View) -> Value:
    """LOG_TRUNCATION is returned only where an unclean election lost the consumer's last record.

    There was an unclean election after the epoch that the consumer names, and the log of the leader that answered
    has another record, or none, before the fetch offset.
    """
    lost = k.exists(EPOCH, lambda e: k.all(s.last_epoch < e, s.epoch_unclean[e] == 1))
    gone = _answering(k, s, lambda leader: s.record_epoch[leader, s.position - 1] != s.last_epoch)
    return k.implies(s.outcome == Outcome.log_truncation, k.all(lost, gone))


@truncation.always_in(is_stepwise)
def reported_divergence(k: Algebra, s: View) -> Value:
    """The reported offset is where the logs part or, if the leader has lost the consumer's epoch, a bound for it.

    Exact: the leader's log has what was consumed below the offset, and not what was consumed at it. A bound: the leader
    is in a larger epoch than the consumer's, which its log has not; the next larger one begins there (or only above
    the position); and nothing consumed from there on is in its log. So nothing that is still there is read again. A
    bound may be too high: then records below it are skipped, noticed but unread (``bound_skips_records``).
    """

    def found(leader: Value) -> Value:
        below = k.forall(
            OFFSET,
            lambda o: k.implies(k.all(is_consumed(k, s, o), o < s.reported), _consumed_is_in(k, s, leader, o)),
        )
        above = k.forall(
            OFFSET,
            lambda o: k.implies(s.reported <= o, k.negate(_consumed_is_in(k, s, leader, o))),
        )
        begins = k.all(
            s.record_epoch[leader, s.reported - 1] < s.last_epoch,
            k.any(
                s.reported == s.position,
                s.reported == s.leo[leader],
                s.record_epoch[leader, s.reported] > s.last_epoch,
            ),
        )
        bound = k.all(s.last_epoch < s.leader_epoch[leader], begins)
        return k.all(s.reported <= s.position, above, k.ite(exact(s), below, bound))

    return k.implies(s.outcome == Outcome.divergence_found, _answering(k, s, found))


@truncation.always
def unknown_epoch_is_stale(k: Algebra, s: View) -> Value:
    """UNKNOWN_LEADER_EPOCH is returned only by a leader that has been replaced: other metadata mends it."""
    return k.implies(s.outcome == Outcome.unknown_leader_epoch, s.answered_epoch < s.quorum_leader_epoch)


@truncation.always_in(is_stepwise)
def out_of_range_only_unchecked(k: Algebra, s: View) -> Value:
    """OFFSET_OUT_OF_RANGE meets only a consumer that has consumed nothing since it was put where it is."""
    unchecked = k.all(s.position == s.consumed_from, s.last_epoch == -1)
    return k.implies(s.outcome == Outcome.offset_out_of_range, unchecked)


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def unclean_election(k: Algebra, s: View) -> Value:
    """An election lost committed records."""
    return k.exists(EPOCH, lambda e: s.epoch_unclean[e] == 1)


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 1 and c["max_records"] > 1)
def consecutive_unclean_elections(k: Algebra, s: View) -> Value:
    """Two elections in a row lost committed records."""
    return k.exists(EPOCH, lambda e: k.all(s.epoch_unclean[e] == 1, s.epoch_unclean[e + 1] == 1))


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def stale_metadata(k: Algebra, s: View) -> Value:
    """The consumer fetches from a leader that was replaced and does not know it."""
    asked = s.metadata_leader
    return k.all(presumes_leadership(s, asked), s.leader_epoch[asked] < s.quorum_leader_epoch, asked != k.NONE)


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def unknown_leader_epoch_returned(_k: Algebra, s: View) -> Value:
    """UNKNOWN_LEADER_EPOCH is returned."""
    return s.outcome == Outcome.unknown_leader_epoch


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def log_truncation_returned(_k: Algebra, s: View) -> Value:
    """LOG_TRUNCATION is returned."""
    return s.outcome == Outcome.log_truncation


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0 and c["log_size"] > 1)
def out_of_range_returned(_k: Algebra, s: View) -> Value:
    """OFFSET_OUT_OF_RANGE is returned: the position was never checked, and the log is shorter."""
    return s.outcome == Outcome.offset_out_of_range


@truncation.sometimes(lambda c: c["log_size"] > 1)
def sentinel_fetch(k: Algebra, s: View) -> Value:
    """The consumer fetches from the middle of the log and names no epoch."""
    return k.all(s.outcome == Outcome.fetching, s.position > 0, s.last_epoch == -1)


@truncation.sometimes(
    lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0 and c["log_size"] > 1 and c["max_records"] > 1
)
def divergence_found_exactly(k: Algebra, s: View) -> Value:
    """The leader still knows the consumer's epoch, and less of it than the consumer read."""
    return k.all(s.outcome == Outcome.divergence_found, exact(s), s.reported < s.position)


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def divergence_only_bounded(k: Algebra, s: View) -> Value:
    """The leader has lost the consumer's epoch: only the start of the next larger epoch can be given."""
    return k.all(s.outcome == Outcome.divergence_found, k.negate(exact(s)))


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 1 and c["max_records"] > 1)
def bound_skips_records(k: Algebra, s: View) -> Value:
    """The bound is too high: the leader has another record below it than the one consumed there."""
    leader = s.epoch_leader[s.answered_epoch]

    def differs(offset: Value) -> Value:
        read = k.all(offset < s.reported, is_consumed(k, s, offset), offset < s.leo[leader])
        return k.all(read, s.record_id[leader, offset] != s.consumed_id[offset])

    return k.all(
        s.outcome == Outcome.divergence_found,
        s.leader_epoch[leader] == s.answered_epoch,
        k.exists(OFFSET, differs),
    )
