"""A consumer as Apache Kafka's: it validates its position by itself, and its fetches name no last epoch.

KIP-320 lets the leader check each fetch. Apache Kafka's consumer asks OffsetForLeaderEpoch when it hears of another
leader or leader epoch, and fetches nothing until it has its answer (``SubscriptionState``, ``PositionsValidator``).
What it asks carries the leader epoch of its metadata, which goes back to an older one only after a broker has not known
the topic, and the leader answers in that very epoch or not at all. A position found by ListOffsets, or sought by its
offset alone, has no epoch, and nobody validates it. What is fetched is given to the application when it arrives, as to
one that waits in ``poll``.

Requests take their time here too, and several may be on their way: an answer is of a leader as that was when it
answered, and what it is to the consumer is decided by what that is when it arrives.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Update, Value, View
from ...core.domains import REPLICA
from ..logs import END_OFFSET, EPOCH
from .actions import larger_epoch_start
from .state import Asking, Outcome, Rules, is_elected, is_shipped, truncation

_NOTHING_FOUND = {"outcome": Outcome.fetching, "answered_epoch": -1, "reported": -1, "reported_epoch": -1, "told": -1}


def _takes_late(rules: Rules) -> bool:
    """Whether what a leader has sent that was left since is taken (V6)."""
    return rules.late


def _go(
    k: Algebra, s: View, position: Value, epoch: Value, begin: Value, newest: Value, *, takes_up_first: bool = False
) -> Update:
    """The consumer goes on from a position, once that is validated; ``newest``: the newest leader epoch it knows.

    An epoch that comes with the position may be newer than the metadata, which then names no leader any more. The
    position is given the leader of before, but where that epoch is taken up first (``refreshCommittedOffsets``; not in
    ``KafkaConsumer.seek`` and ``resetPositionIfNeeded``).
    """
    nobody = s.metadata_leader == k.NONE
    current = k.ite(k.any(nobody, newest != s.metadata_epoch) if takes_up_first else nobody, -1, s.metadata_epoch)
    return s.update(
        metadata_leader=k.ite(newest == s.metadata_epoch, s.metadata_leader, k.NONE),
        metadata_epoch=newest,
        placed=1,
        position=position,
        last_epoch=epoch,
        current_epoch=current,
        validating=k.ite(k.all(epoch != -1, newest != -1), 1, 0),
        consumed_from=begin,
        asking=Asking.nothing,
        **_NOTHING_FOUND,
    )


def _newest(k: Algebra, s: View, epoch: Value) -> Value:
    """The newest leader epoch that is known: a position's own counts only where there is metadata to compare."""
    return k.ite(s.metadata_epoch == -1, -1, k.max(s.metadata_epoch, epoch))


def _nowhere(s: View, asking: Value, **more: Value) -> Update:
    """The consumer has no position any more, and asks for one."""
    return s.update(
        placed=0,
        position=0,
        last_epoch=-1,
        current_epoch=-1,
        validating=0,
        consumed_from=0,
        asking=asking,
        **_NOTHING_FOUND,
        **more,
    )


# What the application does.


@truncation.action(offset=END_OFFSET, present=is_shipped)
def seek_offset(k: Algebra, s: View, offset: Value) -> Step:
    """The application seeks to an offset: without an epoch nobody validates it."""
    yield _go(k, s, offset, -1, offset, s.metadata_epoch)


@truncation.action(offset=END_OFFSET, epoch=EPOCH, present=is_shipped)
def seek_position(k: Algebra, s: View, offset: Value, epoch: Value) -> Step:
    """The application seeks to an offset with the epoch of the record before it: what it was told, or had kept."""
    yield "epoch_started", is_elected(k, s, epoch)
    yield _go(k, s, offset, epoch, offset, _newest(k, s, epoch))


@truncation.action(target=Asking, present=is_shipped)
def request_reset(k: Algebra, s: View, target: Value) -> Step:
    """The application asks for the beginning or the end of the log; the consumer has no position until it has that."""
    yield "beginning_or_end", k.any(target == Asking.beginning, target == Asking.end)
    yield _nowhere(s, target)


@truncation.action(present=is_shipped)
def raise_truncation(_k: Algebra, s: View) -> Step:
    """``poll`` raises LogTruncationException, with where to go on from (the reset policy ``none``)."""
    yield "divergence_found", s.outcome == Outcome.divergence_found
    yield s.update(told=s.reported)


@truncation.action(present=is_shipped)
def restart_process(k: Algebra, s: View) -> Step:
    """The consumer's process ends, and another one begins: all that it knows is the group's name."""
    yield _nowhere(s, Asking.committed, metadata_leader=k.NONE, metadata_epoch=-1, topic_known=0)


# Metadata.


@truncation.action(epoch=EPOCH, present=is_shipped)
def update_metadata(k: Algebra, s: View, epoch: Value) -> Step:
    """Some broker's metadata, which counts unless it is older than what the consumer has heard of (V3).

    A topic whose id the consumer does not know is new to it, and so is its leader epoch, whichever that is (V7).
    """
    yield "epoch_started", is_elected(k, s, epoch)
    yield "no_older", k.any(s.topic_known == 0, s.metadata_epoch <= epoch)
    yield s.update(metadata_leader=s.epoch_leader[epoch], metadata_epoch=epoch, topic_known=1)


@truncation.action(present=is_shipped)
def lose_metadata(k: Algebra, s: View) -> Step:
    """A broker does not know the topic yet: the consumer forgets who leads it, and its id, but not the leader epoch."""
    yield s.update(metadata_leader=k.NONE, topic_known=0)


@truncation.action(present=is_shipped)
def follow_metadata(k: Algebra, s: View) -> Step:
    """The position goes over to the leader and the epoch of new metadata: with an epoch it is to be validated there."""
    yield "has_position", s.placed == 1
    yield "has_leader", s.metadata_leader != k.NONE
    yield "another_epoch", s.current_epoch != s.metadata_epoch
    yield s.update(current_epoch=s.metadata_epoch, validating=k.ite(s.last_epoch == -1, 0, 1))


# What it is answered.


def _validated(k: Algebra, s: View, leader: Value) -> tuple[Value, Value, Value]:
    """Where the epoch of the position ends in the leader's log, with what epoch there, and whether it was truncated.

    Kafka's ``endOffsetForEpoch``: the largest epoch of the leader's log that is no larger than the one that is asked
    for; where that has none, as retention took it, or none was there, the one that is asked for. A leader whose own
    epoch is smaller, to which metadata has gone back (V7), knows nothing (-1, -1), and to the consumer that is a
    truncation.
    """
    unknown = s.leader_epoch[leader] < s.last_epoch
    end = larger_epoch_start(k, s, leader, s.last_epoch)
    itself = k.any(end <= s.log_start[leader], s.last_epoch == s.leader_epoch[leader])
    found = k.ite(itself, s.last_epoch, s.record_epoch[leader, end - 1])
    differs = end < s.position if k.rules.ends_alone else k.any(end < s.position, found != s.last_epoch)
    return k.ite(unknown, -1, end), k.ite(unknown, -1, found), k.any(unknown, differs)


def _validation_answered(k: Algebra, s: View, leader: Value) -> Step:
    yield "awaits_validation", k.all(s.placed == 1, s.validating == 1)
    yield "same_epoch", s.current_epoch == s.leader_epoch[leader]
    yield "leads", s.leading[leader] == 1


@truncation.action(leader=REPLICA, present=is_shipped)
def complete_validation(k: Algebra, s: View, leader: Value) -> Step:
    """The leader's log has the position, as far as the consumer can tell, which goes on fetching."""
    yield from _validation_answered(k, s, leader)
    _, _, truncated = _validated(k, s, leader)
    yield "not_truncated", k.negate(truncated)
    yield s.update(validating=0, **_NOTHING_FOUND)


@truncation.action(leader=REPLICA, present=is_shipped)
def find_truncation(k: Algebra, s: View, leader: Value) -> Step:
    """The leader's log has another record, or none, before the position; the reset policy is ``none``."""
    yield from _validation_answered(k, s, leader)
    end, found, truncated = _validated(k, s, leader)
    yield "truncated", truncated
    yield s.update(
        outcome=Outcome.divergence_found,
        answered_epoch=s.leader_epoch[leader],
        reported=k.min(end, s.position),
        reported_epoch=found,
        told=-1,
    )


def _fetch_answered(k: Algebra, s: View, leader: Value) -> Step:
    yield "has_valid_position", k.all(s.placed == 1, s.validating == 0)
    yield "leads", s.leading[leader] == 1
    yield "in_range", k.all(s.log_start[leader] <= s.position, s.position <= s.leo[leader])
    yield "below_high_watermark", s.position < s.hw[leader]


def _read(s: View, leader: Value) -> Update:
    at = s.position
    return s.update(
        position=at + 1,
        last_epoch=s.record_epoch[leader, at],
        consumed_id={at: s.record_id[leader, at]},
        consumed_epoch={at: s.record_epoch[leader, at]},
        **_NOTHING_FOUND,
    )


@truncation.action(leader=REPLICA, present=is_shipped)
def read_record(k: Algebra, s: View, leader: Value) -> Step:
    """One more record of the answer to a fetch, below the high watermark of a leader in the position's epoch."""
    yield "same_epoch", s.current_epoch == s.leader_epoch[leader]
    yield from _fetch_answered(k, s, leader)
    yield _read(s, leader)


@truncation.action(leader=REPLICA, present=_takes_late)
def read_late_record(k: Algebra, s: View, leader: Value) -> Step:
    """The same of a leader that was asked before the position went over to another leader epoch (V6)."""
    yield "another_epoch", s.current_epoch != s.leader_epoch[leader]
    yield "heard_of", s.leader_epoch[leader] <= s.metadata_epoch
    yield from _fetch_answered(k, s, leader)
    yield _read(s, leader)


@truncation.action(leader=REPLICA, present=is_shipped)
def reset_position(k: Algebra, s: View, leader: Value) -> Step:
    """ListOffsets gives the log start offset or the high watermark; the position has no epoch, whatever is answered."""
    yield "awaits_reset", k.any(s.asking == Asking.beginning, s.asking == Asking.end)
    yield "leads", s.leading[leader] == 1
    offset = k.ite(s.asking == Asking.beginning, s.log_start[leader], s.hw[leader])
    # The epoch of the record before it is answered, too, and may be newer than metadata that has gone back (V7).
    answered = k.ite(s.log_start[leader] < offset, s.record_epoch[leader, offset - 1], -1)
    yield _go(k, s, offset, -1, offset, _newest(k, s, answered))


# Commits.


@truncation.action(present=is_shipped)
def begin_at_commit(k: Algebra, s: View) -> Step:
    """OffsetFetch gives a consumer that has just started the committed position, with its epoch."""
    yield "initializing", s.asking == Asking.committed
    yield "committed", s.committed != -1
    newest = _newest(k, s, s.committed_epoch)
    yield _go(k, s, s.committed, s.committed_epoch, s.committed, newest, takes_up_first=True)
