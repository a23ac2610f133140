"""Consumers under clean and unclean elections, and the truncation detection that KIP-320 gives them.

One consumer of one partition (consumers do not meet: what holds of one holds of each); ``partition.py`` has
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

from ...core.algebra import Algebra, Step, Update, Value, View
from ...core.domains import REPLICA
from ..logs import EPOCH, OFFSET
from .state import Check, Outcome, Reset, Rules, is_elected, is_stepwise, presumes_leadership, truncation


def larger_epoch_start(k: Algebra, s: View, leader: Value, epoch: Value) -> Value:
    """Where the leader's cache has the next larger epoch begin; its own begins at its LEO while it wrote nothing."""
    return k.first(OFFSET, lambda o: s.record_epoch[leader, o] > epoch, s.leo[leader])


def unknown_epoch(k: Algebra, s: View, leader: Value) -> Value:
    """The consumer names an epoch that is larger than the leader's own."""
    return s.leader_epoch[leader] < k.max(s.last_epoch, s.seen_epoch)


def _truncated(k: Algebra, s: View, leader: Value) -> Value:
    """The leader's check of fetch offset and last fetched epoch, by the variant's rule."""
    start = larger_epoch_start(k, s, leader, s.last_epoch)
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
        outcome=Outcome.fetching,
        answered_epoch=-1,
        reported=-1,
        reported_epoch=-1,
        **_forget_commit(k, s, position),
    )


def _has_check(rules: Rules) -> bool:
    """A variant that detects truncations, an exchange a step."""
    return rules.check is not Check.NEVER and not rules.client


@truncation.action(epoch=EPOCH, present=is_stepwise)
def refresh_metadata(k: Algebra, s: View, epoch: Value) -> Step:
    """The consumer learns a leader from some broker's metadata, of the current epoch or of an older one (KIP-232)."""
    yield "epoch_started", is_elected(k, s, epoch)
    yield "another_leader", s.epoch_leader[epoch] != s.metadata_leader
    retries = s.outcome == Outcome.unknown_leader_epoch
    yield s.update(
        metadata_leader=s.epoch_leader[epoch],
        outcome=k.ite(retries, Outcome.fetching, s.outcome),
        answered_epoch=k.ite(retries, -1, s.answered_epoch),
    )


def _asks(s: View, leader: Value, outcome: int) -> Step:
    yield "outcome_pending", s.outcome == outcome
    yield "asks_leader", s.metadata_leader == leader
    yield "presumes_leadership", presumes_leadership(s, leader)


@truncation.action(leader=REPLICA, present=is_stepwise)
def consumer_fetch(k: Algebra, s: View, leader: Value) -> Step:
    """The consumer reads the next record below the high watermark (KIP-320, "Leader Fetch Handling")."""
    yield from _asks(s, leader, Outcome.fetching)
    yield "epoch_known", k.negate(unknown_epoch(k, s, leader))
    yield "not_truncated", k.negate(_truncated(k, s, leader))
    yield "below_high_watermark", s.position < s.hw[leader]
    record = s.record_id[leader, s.position]
    yield s.update(
        position=s.position + 1,
        last_epoch=_epoch_of_position(k, s, leader, s.position + 1),
        seen_epoch=_served_by(k, s, leader),
        consumed_id={s.position: record},
    )


@truncation.action(leader=REPLICA, present=_has_check)
def answer_unknown_leader_epoch(k: Algebra, s: View, leader: Value) -> Step:
    """The leader knows no epoch as large as the consumer's, which has to refresh its metadata (KIP-232)."""
    yield from _asks(s, leader, Outcome.fetching)
    yield "epoch_unknown", unknown_epoch(k, s, leader)
    yield s.update(outcome=Outcome.unknown_leader_epoch, answered_epoch=s.leader_epoch[leader])


@truncation.action(leader=REPLICA, present=_has_check)
def answer_log_truncation(k: Algebra, s: View, leader: Value) -> Step:
    """The leader finds that the record before the fetch offset is not the one that the consumer fetched."""
    yield from _asks(s, leader, Outcome.fetching)
    yield "epoch_known", k.negate(unknown_epoch(k, s, leader))
    yield "truncated", _truncated(k, s, leader)
    yield s.update(outcome=Outcome.log_truncation, answered_epoch=s.leader_epoch[leader])


@truncation.action(leader=REPLICA, present=is_stepwise)
def answer_out_of_range(k: Algebra, s: View, leader: Value) -> Step:
    """The fetch offset is beyond the end of the leader's log."""
    yield from _asks(s, leader, Outcome.fetching)
    yield "epoch_known", k.negate(unknown_epoch(k, s, leader))
    yield "not_truncated", k.negate(_truncated(k, s, leader))
    yield "beyond_leo", s.leo[leader] < s.position
    yield s.update(outcome=Outcome.offset_out_of_range)


def nearest(k: Algebra, s: View, leader: Value, position: Value, epoch: Value) -> tuple[Value, Value]:
    """What OffsetForLeaderEpoch makes of a position: the offset to go on from, and the epoch to name there.

    The response has the largest epoch of the leader's log that is not larger than the one asked, and where that
    ends: where the next larger one begins. The epoch is the one asked where the leader knows that: then the offset is
    exactly where the logs part. The epoch is -1 where the response does not belong to the offset.
    """
    end = larger_epoch_start(k, s, leader, epoch)
    answer = s.record_epoch[leader, end - 1]
    return k.min(end, position), k.ite(k.any(end <= position, answer == epoch), answer, -1)


@truncation.action(leader=REPLICA, present=_has_check)
def find_divergence(k: Algebra, s: View, leader: Value) -> Step:
    """After LOG_TRUNCATION: find where to go on from, which ``none`` reports and the other policies take.

    KIP-320, "Consumer Handling". "Consumers will send a sentinel value (-1) for the current epoch and the broker will
    simply disregard that validation": any presumed leader answers.
    """
    yield from _asks(s, leader, Outcome.log_truncation)
    if k.rules.seen:
        yield "epoch_known", k.negate(unknown_epoch(k, s, leader))
    match k.rules.reset:
        case Reset.NEAREST:
            offset, epoch = nearest(k, s, leader, s.position, s.last_epoch)
        case Reset.EARLIEST:
            offset, epoch = 0, -1
        case Reset.LATEST:
            offset = s.hw[leader]
            epoch = _epoch_of_position(k, s, leader, offset)
    yield s.update(
        outcome=Outcome.divergence_found,
        answered_epoch=s.leader_epoch[leader],
        reported=offset,
        reported_epoch=epoch,
    )


def exact(s: View) -> Value:
    """The leader that answered knows the consumer's epoch, so the offset is where the logs part."""
    return s.reported_epoch == s.last_epoch


@truncation.action(present=_has_check)
def reset_to_divergence(k: Algebra, s: View) -> Step:
    """The consumer (or, with ``none``, the application) goes on from the reported offset.

    Below an offset that is only a bound nothing is known: there the consumer begins anew.
    """
    yield "divergence_found", s.outcome == Outcome.divergence_found
    yield "offset_reported", s.reported != -1
    unbroken = k.all(exact(s), s.reported <= s.position)
    begin = k.ite(unbroken, k.min(s.consumed_from, s.reported), s.reported)
    yield _move(k, s, s.reported, s.reported_epoch, s.answered_epoch if k.rules.seen else -1, begin)


@truncation.action(offset=OFFSET, present=is_stepwise)
def seek(k: Algebra, s: View, offset: Value) -> Step:
    """The application seeks to any offset; the next fetch names no epoch (-1) and is not checked."""
    yield "has_metadata", s.metadata_leader != k.NONE
    yield "elsewhere", k.any(s.position != offset, s.outcome == Outcome.divergence_found)
    yield _move(k, s, offset, -1, -1, offset)


@truncation.action(leader=REPLICA, present=is_stepwise)
def reset_to_latest(k: Algebra, s: View, leader: Value) -> Step:
    """ListOffsets gives a consumer that has no valid offset the high watermark, with the epoch of the record before it.

    The reset policy ``latest`` of a new consumer, or of one that is out of range; ``earliest`` is ``seek`` to 0, where
    there is nothing to check.
    """
    yield (
        "needs_offset",
        k.any(
            s.outcome == Outcome.offset_out_of_range,
            k.all(s.outcome == Outcome.fetching, s.position == s.consumed_from, s.position != s.hw[leader]),
        ),
    )
    yield "asks_leader", s.metadata_leader == leader
    yield "presumes_leadership", presumes_leadership(s, leader)
    end = s.hw[leader]
    yield _move(k, s, end, _epoch_of_position(k, s, leader, end), _served_by(k, s, leader), end)


@truncation.action(present=is_stepwise)
def commit_offset(_k: Algebra, s: View) -> Step:
    """OffsetCommit: the position with its epoch, here or in a store of the application's own."""
    yield "fetching", s.outcome == Outcome.fetching
    yield "not_committed", s.committed != s.position
    yield s.update(committed=s.position, committed_epoch=s.last_epoch, committed_seen=s.seen_epoch)


@truncation.action(present=is_stepwise)
def restart(k: Algebra, s: View) -> Step:
    """A rebalance or a restart: OffsetFetch gives the position and its epoch back, and what came after is reread."""
    yield "offset_committed", s.committed != -1
    yield "elsewhere", k.any(s.committed != s.position, s.outcome != Outcome.fetching)
    begin = k.min(s.consumed_from, s.committed)
    yield _move(k, s, s.committed, s.committed_epoch, s.committed_seen, begin)


@truncation.action(leader=REPLICA, present=_has_check)
def seek_to_nearest(k: Algebra, s: View, leader: Value) -> Step:
    """The application gives a stored offset and epoch to ``seekToNearest``, which asks the leader at once."""
    yield "offset_stored", k.all(s.committed != -1, s.committed_epoch != -1)
    yield "asks_leader", s.metadata_leader == leader
    yield "presumes_leadership", presumes_leadership(s, leader)
    if k.rules.seen:
        yield "epoch_known", k.max(s.committed_epoch, s.committed_seen) <= s.leader_epoch[leader]
    offset, epoch = nearest(k, s, leader, s.committed, s.committed_epoch)
    exact = epoch == s.committed_epoch
    begin = k.ite(exact, k.min(s.consumed_from, offset), offset)
    yield _move(k, s, offset, epoch, _served_by(k, s, leader), begin)
