"""Consumers under clean and unclean elections, and the truncation detection that KIP-320 gives them.

One consumer of one partition (consumers do not meet: what holds of one holds of each); ``truncation_partition.py`` has
the partition. The consumer learns of leaders from metadata that may be as old as the first election (KIP-232). Its
position is an offset and the leader epoch of the record before it; with -1 for the epoch the leader checks nothing.
What it consumed is a log of its own, and the main promise is log matching between that log and the replicas'.

The reset policies ``earliest`` and ``latest`` take ``reset_to_divergence``. With ``none`` the application has, in the
same state, a LogTruncationException with the reported offset, and takes that step, or any ``seek``, itself.

**The KIP's rules have three holes**, and the variant ``kip-320`` shows each (``specs/DEVIATIONS.md`` tells the shortest
stories). The new leader may hold, instead of the consumer's last record, one of an *older* epoch, and then no larger
epoch begins below the fetch offset: a silent gap. A leader that was replaced long ago, and cleanly, finds a larger
epoch in its own log and returns LOG_TRUNCATION though nothing was ever lost. And such a leader also answers the search
for the divergence. ``kip-320-mended`` asks that the leader know the consumer's epoch, and that it be no older than the
leader which served the position. What stays impossible: with an offset and an epoch alone, nobody can tell how far
below the start of the next larger epoch two logs part once the consumer's epoch is gone.
"""

from __future__ import annotations

from collections.abc import Callable

from .core.algebra import Algebra, Step, Update, Value, View
from .core.domains import REPLICA
from .truncation_partition import (
    DIVERGENCE_FOUND,
    EPOCH,
    FETCHING,
    LOG_TRUNCATION,
    OFFSET,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    Check,
    Reset,
    common_end,
    is_consumed,
    is_elected,
    presumes_leadership,
    same_record,
    truncation,
)

__all__ = ["truncation"]


def _larger_epoch_start(k: Algebra, s: View, leader: Value, epoch: Value) -> Value:
    """Where the leader's cache has the next larger epoch begin; its own begins at its LEO while it wrote nothing."""
    return k.first(OFFSET, lambda o: s.record_epoch[leader, o] > epoch, s.leo[leader])


def _epoch_unknown(k: Algebra, s: View, leader: Value) -> Value:
    """The consumer names an epoch that is larger than the leader's own."""
    return s.leader_epoch[leader] < k.max(s.last_epoch, s.seen_epoch)


def _truncated(k: Algebra, s: View, leader: Value) -> Value:
    """The leader's check of fetch offset and last fetched epoch, by the variant's rule."""
    start = _larger_epoch_start(k, s, leader, s.last_epoch)
    named = s.last_epoch != -1
    larger = k.all(s.last_epoch < s.leader_epoch[leader], start < s.position)
    unknown = s.record_epoch[leader, start - 1] != s.last_epoch
    match k.rules.check:
        case Check.NEVER:
            return k.any()
        case Check.LARGER_EPOCH:
            return k.all(named, larger)
        case Check.KNOWN_EPOCH:
            return k.all(named, k.any(larger, unknown))
        case Check.CLEAN_LEADER:
            clean = s.epoch_unclean[s.leader_epoch[leader]] == 0
            return k.all(named, clean, k.any(larger, unknown))


def _epoch_of_position(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """The epoch that goes with an offset found at this leader: that of the record before it."""
    return -1 if k.rules.check is Check.NEVER else s.record_epoch[leader, offset - 1]


def _served_by(k: Algebra, s: View, leader: Value) -> Value:
    return s.leader_epoch[leader] if k.rules.seen else -1


def _forget_commit(k: Algebra, s: View, position: Value) -> dict[str, Value]:
    """Whoever goes back before the committed offset takes the commit back."""
    kept = s.committed <= position
    return {name: k.ite(kept, getattr(s, name), -1) for name in ("committed", "committed_epoch", "committed_seen")}


def _move(k: Algebra, s: View, position: Value, epoch: Value, seen: Value, consumed_from: Value) -> Update:
    """The consumer goes on from a position, fetching."""
    return s.update(
        position=position,
        last_epoch=epoch,
        seen_epoch=seen,
        consumed_from=consumed_from,
        outcome=FETCHING,
        answered_epoch=-1,
        reported=-1,
        reported_epoch=-1,
        **_forget_commit(k, s, position),
    )


@truncation.action(epoch=EPOCH)
def refresh_metadata(k: Algebra, s: View, epoch: Value) -> Step:
    """The consumer learns a leader from some broker's metadata, of the current epoch or of an older one (KIP-232)."""
    yield "epoch_started", is_elected(k, s, epoch)
    yield "another_leader", s.epoch_leader[epoch] != s.metadata_leader
    retries = s.outcome == UNKNOWN_LEADER_EPOCH
    yield s.update(
        metadata_leader=s.epoch_leader[epoch],
        outcome=k.ite(retries, FETCHING, s.outcome),
        answered_epoch=k.ite(retries, -1, s.answered_epoch),
    )


def _asks(s: View, leader: Value, outcome: int) -> Step:
    yield "outcome_pending", s.outcome == outcome
    yield "asks_leader", s.metadata_leader == leader
    yield "presumes_leadership", presumes_leadership(s, leader)


@truncation.action(leader=REPLICA)
def consumer_fetch(k: Algebra, s: View, leader: Value) -> Step:
    """The consumer reads the next record below the high watermark (KIP-320, "Leader Fetch Handling")."""
    yield from _asks(s, leader, FETCHING)
    yield "epoch_known", k.negate(_epoch_unknown(k, s, leader))
    yield "not_truncated", k.negate(_truncated(k, s, leader))
    yield "below_high_watermark", s.position < s.hw[leader]
    record = s.record_id[leader, s.position]
    yield s.update(
        position=s.position + 1,
        last_epoch=_epoch_of_position(k, s, leader, s.position + 1),
        seen_epoch=_served_by(k, s, leader),
        consumed_id={s.position: record},
    )


@truncation.action(leader=REPLICA, present=lambda rules: rules.check is not Check.NEVER)
def answer_unknown_leader_epoch(k: Algebra, s: View, leader: Value) -> Step:
    """The leader knows no epoch as large as the consumer's, which has to refresh its metadata (KIP-232)."""
    yield from _asks(s, leader, FETCHING)
    yield "epoch_unknown", _epoch_unknown(k, s, leader)
    yield s.update(outcome=UNKNOWN_LEADER_EPOCH, answered_epoch=s.leader_epoch[leader])


@truncation.action(leader=REPLICA, present=lambda rules: rules.check is not Check.NEVER)
def answer_log_truncation(k: Algebra, s: View, leader: Value) -> Step:
    """The leader finds that the record before the fetch offset is not the one that the consumer fetched."""
    yield from _asks(s, leader, FETCHING)
    yield "epoch_known", k.negate(_epoch_unknown(k, s, leader))
    yield "truncated", _truncated(k, s, leader)
    yield s.update(outcome=LOG_TRUNCATION, answered_epoch=s.leader_epoch[leader])


@truncation.action(leader=REPLICA)
def answer_out_of_range(k: Algebra, s: View, leader: Value) -> Step:
    """The fetch offset is beyond the end of the leader's log."""
    yield from _asks(s, leader, FETCHING)
    yield "epoch_known", k.negate(_epoch_unknown(k, s, leader))
    yield "not_truncated", k.negate(_truncated(k, s, leader))
    yield "beyond_leo", s.leo[leader] < s.position
    yield s.update(outcome=OFFSET_OUT_OF_RANGE)


def _nearest(k: Algebra, s: View, leader: Value, position: Value, epoch: Value) -> tuple[Value, Value]:
    """What OffsetForLeaderEpoch makes of a position: the offset to go on from, and the epoch to name there.

    The response has the largest epoch of the leader's log that is not larger than the one asked, and where that
    ends: where the next larger one begins. The epoch is the one asked where the leader knows that: then the offset is
    exactly where the logs part. The epoch is -1 where the response does not belong to the offset.
    """
    end = _larger_epoch_start(k, s, leader, epoch)
    answer = s.record_epoch[leader, end - 1]
    return k.min(end, position), k.ite(k.any(end <= position, answer == epoch), answer, -1)


@truncation.action(leader=REPLICA, present=lambda rules: rules.check is not Check.NEVER)
def find_divergence(k: Algebra, s: View, leader: Value) -> Step:
    """After LOG_TRUNCATION: find where to go on from, which ``none`` reports and the other policies take.

    KIP-320, "Consumer Handling". "Consumers will send a sentinel value (-1) for the current epoch and the broker will
    simply disregard that validation": any presumed leader answers.
    """
    yield from _asks(s, leader, LOG_TRUNCATION)
    if k.rules.seen:
        yield "epoch_known", k.negate(_epoch_unknown(k, s, leader))
    match k.rules.reset:
        case Reset.NEAREST:
            offset, epoch = _nearest(k, s, leader, s.position, s.last_epoch)
        case Reset.EARLIEST:
            offset, epoch = 0, -1
        case Reset.LATEST:
            offset = s.hw[leader]
            epoch = _epoch_of_position(k, s, leader, offset)
    yield s.update(
        outcome=DIVERGENCE_FOUND,
        answered_epoch=s.leader_epoch[leader],
        reported=offset,
        reported_epoch=epoch,
    )


def _exact(s: View) -> Value:
    """The leader that answered knows the consumer's epoch, so the offset is where the logs part."""
    return s.reported_epoch == s.last_epoch


@truncation.action(present=lambda rules: rules.check is not Check.NEVER)
def reset_to_divergence(k: Algebra, s: View) -> Step:
    """The consumer (or, with ``none``, the application) goes on from the reported offset.

    Below an offset that is only a bound nothing is known: there the consumer begins anew.
    """
    yield "divergence_found", s.outcome == DIVERGENCE_FOUND
    yield "offset_reported", s.reported != -1
    unbroken = k.all(_exact(s), s.reported <= s.position)
    begin = k.ite(unbroken, k.min(s.consumed_from, s.reported), s.reported)
    yield _move(k, s, s.reported, s.reported_epoch, s.answered_epoch if k.rules.seen else -1, begin)


@truncation.action(offset=OFFSET)
def seek(k: Algebra, s: View, offset: Value) -> Step:
    """The application seeks to any offset; the next fetch names no epoch (-1) and is not checked."""
    yield "has_metadata", s.metadata_leader != k.NONE
    yield "elsewhere", k.any(s.position != offset, s.outcome == DIVERGENCE_FOUND)
    yield _move(k, s, offset, -1, -1, offset)


@truncation.action(leader=REPLICA)
def reset_to_latest(k: Algebra, s: View, leader: Value) -> Step:
    """ListOffsets gives a consumer that has no valid offset the high watermark, with the epoch of the record before it.

    The reset policy ``latest`` of a new consumer, or of one that is out of range; ``earliest`` is ``seek`` to 0, where
    there is nothing to check.
    """
    yield (
        "needs_offset",
        k.any(
            s.outcome == OFFSET_OUT_OF_RANGE,
            k.all(s.outcome == FETCHING, s.position == s.consumed_from, s.position != s.hw[leader]),
        ),
    )
    yield "asks_leader", s.metadata_leader == leader
    yield "presumes_leadership", presumes_leadership(s, leader)
    end = s.hw[leader]
    yield _move(k, s, end, _epoch_of_position(k, s, leader, end), _served_by(k, s, leader), end)


@truncation.action()
def commit_offset(_k: Algebra, s: View) -> Step:
    """OffsetCommit: the position with its epoch, here or in a store of the application's own."""
    yield "fetching", s.outcome == FETCHING
    yield "not_committed", s.committed != s.position
    yield s.update(committed=s.position, committed_epoch=s.last_epoch, committed_seen=s.seen_epoch)


@truncation.action()
def restart(k: Algebra, s: View) -> Step:
    """A rebalance or a restart: OffsetFetch gives the position and its epoch back, and what came after is reread."""
    yield "offset_committed", s.committed != -1
    yield "elsewhere", k.any(s.committed != s.position, s.outcome != FETCHING)
    begin = k.min(s.consumed_from, s.committed)
    yield _move(k, s, s.committed, s.committed_epoch, s.committed_seen, begin)


@truncation.action(leader=REPLICA, present=lambda rules: rules.check is not Check.NEVER)
def seek_to_nearest(k: Algebra, s: View, leader: Value) -> Step:
    """The application gives a stored offset and epoch to ``seekToNearest``, which asks the leader at once."""
    yield "offset_stored", k.all(s.committed != -1, s.committed_epoch != -1)
    yield "asks_leader", s.metadata_leader == leader
    yield "presumes_leadership", presumes_leadership(s, leader)
    if k.rules.seen:
        yield "epoch_known", k.max(s.committed_epoch, s.committed_seen) <= s.leader_epoch[leader]
    offset, epoch = _nearest(k, s, leader, s.committed, s.committed_epoch)
    exact = epoch == s.committed_epoch
    begin = k.ite(exact, k.min(s.consumed_from, offset), offset)
    yield _move(k, s, offset, epoch, _served_by(k, s, leader), begin)


@truncation.always
def logs_match(k: Algebra, s: View) -> Value:
    """Two replicas that hold the same record at an offset hold the same records below it."""
    return k.forall(REPLICA, lambda a: k.forall(REPLICA, lambda b: _matches_below(k, s, a, b)))


def _matches_below(k: Algebra, s: View, left: Value, right: Value) -> Value:
    end = common_end(k, s, left, right)
    return k.forall(OFFSET, lambda o: k.implies(o < end, same_record(k, s, left, right, o)))


@truncation.always
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


@truncation.always
def hw_at_leaders(k: Algebra, s: View) -> Value:
    """A presumed leader's high watermark lies within its log; a follower's is not kept."""
    return k.forall(REPLICA, lambda r: s.hw[r] <= k.ite(presumes_leadership(s, r), s.leo[r], 0))


def _consumed_is_in(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    return k.all(is_consumed(k, s, offset), s.record_id[replica, offset] == s.consumed_id[offset])


@truncation.always
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


@truncation.always
def truncation_is_true(k: Algebra, s: View) -> Value:
    """LOG_TRUNCATION is returned only where an unclean election lost the consumer's last record.

    There was an unclean election after the epoch that the consumer names, and the log of the leader that answered
    has another record, or none, before the fetch offset.
    """
    lost = k.exists(EPOCH, lambda e: k.all(s.last_epoch < e, s.epoch_unclean[e] == 1))
    gone = _answering(k, s, lambda leader: s.record_epoch[leader, s.position - 1] != s.last_epoch)
    return k.implies(s.outcome == LOG_TRUNCATION, k.all(lost, gone))


@truncation.always
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
        return k.all(s.reported <= s.position, above, k.ite(_exact(s), below, bound))

    return k.implies(s.outcome == DIVERGENCE_FOUND, _answering(k, s, found))


@truncation.always
def unknown_epoch_is_stale(k: Algebra, s: View) -> Value:
    """UNKNOWN_LEADER_EPOCH is returned only by a leader that has been replaced: other metadata mends it."""
    return k.implies(s.outcome == UNKNOWN_LEADER_EPOCH, s.answered_epoch < s.quorum_leader_epoch)


@truncation.always
def out_of_range_only_unchecked(k: Algebra, s: View) -> Value:
    """OFFSET_OUT_OF_RANGE meets only a consumer that has consumed nothing since it was put where it is."""
    unchecked = k.all(s.position == s.consumed_from, s.last_epoch == -1)
    return k.implies(s.outcome == OFFSET_OUT_OF_RANGE, unchecked)


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
    return s.outcome == UNKNOWN_LEADER_EPOCH


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def log_truncation_returned(_k: Algebra, s: View) -> Value:
    """LOG_TRUNCATION is returned."""
    return s.outcome == LOG_TRUNCATION


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0 and c["log_size"] > 1)
def out_of_range_returned(_k: Algebra, s: View) -> Value:
    """OFFSET_OUT_OF_RANGE is returned: the position was never checked, and the log is shorter."""
    return s.outcome == OFFSET_OUT_OF_RANGE


@truncation.sometimes(lambda c: c["log_size"] > 1)
def sentinel_fetch(k: Algebra, s: View) -> Value:
    """The consumer fetches from the middle of the log and names no epoch."""
    return k.all(s.outcome == FETCHING, s.position > 0, s.last_epoch == -1)


@truncation.sometimes(
    lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0 and c["log_size"] > 1 and c["max_records"] > 1
)
def divergence_found_exactly(k: Algebra, s: View) -> Value:
    """The leader still knows the consumer's epoch, and less of it than the consumer read."""
    return k.all(s.outcome == DIVERGENCE_FOUND, _exact(s), s.reported < s.position)


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def divergence_only_bounded(k: Algebra, s: View) -> Value:
    """The leader has lost the consumer's epoch: only the start of the next larger epoch can be given."""
    return k.all(s.outcome == DIVERGENCE_FOUND, k.negate(_exact(s)))


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 1 and c["max_records"] > 1)
def bound_skips_records(k: Algebra, s: View) -> Value:
    """The bound is too high: the leader has another record below it than the one consumed there."""
    leader = s.epoch_leader[s.answered_epoch]

    def differs(offset: Value) -> Value:
        read = k.all(offset < s.reported, is_consumed(k, s, offset), offset < s.leo[leader])
        return k.all(read, s.record_id[leader, offset] != s.consumed_id[offset])

    return k.all(
        s.outcome == DIVERGENCE_FOUND,
        s.leader_epoch[leader] == s.answered_epoch,
        k.exists(OFFSET, differs),
    )
