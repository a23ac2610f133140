"""Leaders and followers of a log that is cleaned: elections, appends, fetches, the ISR and the high watermark.

What ``fencing`` is about is done in one step each here: whoever is elected leads at once and has followed the leader
before, its predecessor does not go on, and a follower cuts its log where an epoch that it has missed began. What is
left is what cleaning changes: **a follower's LEO is past the last record that it was given**, and where its leader has
removed the next ones it does not get them.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA
from ..logs import EPOCH, OFFSET
from .state import (
    HEADER,
    KEY,
    TIMESTAMP,
    TOMBSTONE,
    Last,
    Strategy,
    compaction,
    follows,
    holds,
)
from .strategy import is_long, strategy_of


@compaction.action(replica=REPLICA)
def elect_leader(k: Algebra, s: View, replica: Value) -> Step:
    """The controller makes a member of the ISR the leader, which has followed the one before."""
    yield "in_isr", k.member(replica, s.isr)
    yield "not_leader_yet", s.leader != replica
    yield "follows_leader", k.any(s.leader == k.NONE, follows(k, s, replica))
    yield "epoch_available", s.leader_epoch < k.c.max_leader_epoch
    epoch = s.leader_epoch + 1
    yield s.update(leader=replica, leader_epoch=epoch, epoch_start={epoch: s.leo[replica]}, joined={replica: epoch})


def shared_end(k: Algebra, s: View, replica: Value) -> Value:
    """Up to where a replica's log is the leader's: where the first epoch began that it has missed."""

    def missed(epoch: Value, offset: Value) -> Value:
        return k.all(s.joined[replica] < epoch, epoch <= s.leader_epoch, s.epoch_start[epoch] == offset)

    return k.first(OFFSET, lambda o: k.exists(EPOCH, lambda e: missed(e, o)), k.c.log_size)


@compaction.action(replica=REPLICA)
def become_follower(k: Algebra, s: View, replica: Value) -> Step:
    """A replica cuts its log back to what it shares with the leader, and follows it."""
    end = k.min(s.leo[replica], shared_end(k, s, replica))
    yield "has_leader", s.leader != k.NONE
    yield "epoch_newer", s.joined[replica] < s.leader_epoch
    yield s.update(
        joined={replica: s.leader_epoch},
        leo={replica: end},
        active={replica: k.min(end, s.active[replica])},
        checkpoint={replica: k.min(end, s.checkpoint[replica])},
    )


@compaction.action(key=KEY, tombstone=TOMBSTONE, timestamp=TIMESTAMP, header=HEADER, earlier_header=HEADER)
def leader_write(
    k: Algebra, s: View, key: Value, tombstone: Value, timestamp: Value, header: Value, earlier_header: Value
) -> Step:
    """The leader appends a producer's record. Producers race: records come in any order of their versions.

    "which must be of type long - 8 bytes": a record with another value is refused while ``header`` is the strategy.
    """
    end, strategy = s.leo[s.leader], strategy_of(k, s, s.leader)
    value = header - 1
    known = k.ite(is_long(k, value), value, -1)
    rank = k.ite(strategy == Strategy.timestamp, timestamp, k.ite(strategy == Strategy.header, known, 0))
    yield "has_leader", s.leader != k.NONE
    yield "log_not_full", end < k.c.log_size
    yield "headers_used", k.any(header == 0, 0 < k.c.header_values)
    yield "repeats_a_header", k.any(earlier_header == 0, k.all(k.c.repeated_headers == 1, header != 0))
    if k.rules.checks_header:
        yield "header_is_long", k.any(strategy != Strategy.header, value == -1, is_long(k, value))
    if k.rules.arrives_in_time:
        yield "arrives_in_time", s.deleted_version[key] <= rank
    at = (s.leader_epoch, end)
    yield s.update(
        leo={s.leader: end + 1},
        record_epoch={(s.leader, end): s.leader_epoch},
        record_key={at: key},
        record_tombstone={at: tombstone},
        record_timestamp={at: timestamp},
        record_header={at: value},
        record_earlier_header={at: earlier_header - 1},
    )


@compaction.action(replica=REPLICA, offset=OFFSET)
def follower_fetch(k: Algebra, s: View, replica: Value, offset: Value) -> Step:
    """A follower copies the next record that its leader still has."""
    yield "follows_leader", k.all(follows(k, s, replica), s.leader != replica)
    yield "record_there", holds(k, s, s.leader, offset)
    yield "not_fetched", s.leo[replica] <= offset
    between = k.exists(OFFSET, lambda o: k.all(s.leo[replica] <= o, o < offset, holds(k, s, s.leader, o)))
    yield "is_next", k.negate(between)
    yield s.update(leo={replica: offset + 1}, record_epoch={(replica, offset): s.record_epoch[s.leader, offset]})


def log_end(k: Algebra, s: View, replica: Value) -> Value:
    """The end of a replica's log as whoever fetches sees it: past its last record, or empty batch."""
    if k.rules.last is Last.REMOVED:
        return k.last(OFFSET, lambda o: holds(k, s, replica, o), -1) + 1
    return s.leo[replica]


@compaction.action(replica=REPLICA, present=lambda rules: rules.last is Last.EMPTY_BATCH)
def follower_fetch_empty_batch(k: Algebra, s: View, replica: Value) -> Step:
    """A follower is given the empty batch that takes the last offset up, and no record."""
    end = s.leo[s.leader]
    yield "follows_leader", k.all(follows(k, s, replica), s.leader != replica)
    yield "not_fetched", s.leo[replica] < end
    left = k.exists(OFFSET, lambda o: k.all(s.leo[replica] <= o, holds(k, s, s.leader, o)))
    yield "no_record_left", k.negate(left)
    yield s.update(leo={replica: end})


@compaction.action()
def leader_inc_high_watermark(k: Algebra, s: View) -> Step:
    """The leader counts one more record as committed: every member of the ISR has it."""

    def has_it(replica: Value) -> Value:
        return k.all(follows(k, s, replica), s.hw < s.leo[replica])

    yield "has_leader", s.leader != k.NONE
    yield "record_above_hw", s.hw < k.c.log_size
    yield "isr_has_it", k.forall(REPLICA, lambda r: k.implies(k.member(r, s.isr), has_it(r)))
    yield s.update(hw=s.hw + 1, committed={s.hw: s.record_epoch[s.leader, s.hw]})


@compaction.action(replica=REPLICA)
def leader_shrink_isr(k: Algebra, s: View, replica: Value) -> Step:
    """The leader takes a follower that lags out of the ISR."""
    yield "has_leader", s.leader != k.NONE
    yield "not_leader_itself", s.leader != replica
    yield "in_isr", k.member(replica, s.isr)
    yield "not_caught_up", k.negate(k.all(follows(k, s, replica), s.leo[s.leader] <= s.leo[replica]))
    yield s.update(isr=k.without_member(s.isr, replica))


@compaction.action(replica=REPLICA)
def leader_expand_isr(k: Algebra, s: View, replica: Value) -> Step:
    """The leader takes a follower that has what is committed, as far as its log goes, into the ISR."""
    yield "outside_isr", k.negate(k.member(replica, s.isr))
    yield "follows_leader", follows(k, s, replica)
    yield "reached_high_watermark", k.min(s.hw, log_end(k, s, s.leader)) <= s.leo[replica]
    yield s.update(isr=k.with_member(s.isr, replica))
