"""What ``compaction`` promises in every state, and what some run of it must meet.

What a log comes to is judged by what was committed: of each key the record that no other one beats, by the text's order
and the leader's strategy. What nobody has any more since before a strategy was last set counts no longer: the text has
it so that "the already compacted log still remains as such".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ..logs import OFFSET
from .state import KEY, Last, Strategy, compaction, follows, holds, holds_committed, key_at
from .strategy import is_long, order, strategy_of, version

Wins: TypeAlias = Callable[[Algebra, View, Value], Value]
"""Whether the record that was committed at an offset is its key's winner."""


def counts(k: Algebra, s: View, offset: Value) -> Value:
    """What was committed at an offset counts: it was since the strategy was set, or somebody has it."""
    held = k.exists(REPLICA, lambda r: holds_committed(k, s, r, offset))
    return k.all(offset < s.hw, k.any(s.since <= offset, held))


def committed_key(s: View, offset: Value) -> Value:
    """The key of the record that was committed at an offset."""
    return s.record_key[s.committed[offset], offset]


def deletes(s: View, offset: Value) -> Value:
    """The record that was committed at an offset is a tombstone."""
    return s.record_tombstone[s.committed[offset], offset] == 1


def is_winner(k: Algebra, s: View, offset: Value) -> Value:
    """Of all that was committed, nothing that counts beats the record at an offset."""
    beats = order(k, s, strategy_of(k, s, s.leader))

    def beaten_by(other: Value) -> Value:
        return k.all(
            other != offset,
            counts(k, s, other),
            committed_key(s, other) == committed_key(s, offset),
            beats(s.committed[other], other, s.committed[offset], offset),
        )

    strategy = strategy_of(k, s, s.leader)
    own = version(k, s, strategy, s.committed[offset], offset)
    # A tombstone from before the strategy was set beats it, too, when it is gone.
    undeleted = s.deleted_version[committed_key(s, offset)] <= own
    return k.all(counts(k, s, offset), undeleted, k.negate(k.exists(OFFSET, beaten_by)))


def kept_by_all(k: Algebra, s: View, wins: Wins) -> Value:
    """Each replica that has come past a winner has it, unless it is a tombstone."""

    def kept(offset: Value) -> Value:
        def has_it(replica: Value) -> Value:
            past = k.all(follows(k, s, replica), offset < s.leo[replica])
            return k.implies(past, holds_committed(k, s, replica, offset))

        stays = k.all(wins(k, s, offset), k.negate(deletes(s, offset)))
        return k.implies(stays, k.forall(REPLICA, has_it))

    return k.forall(OFFSET, kept)


def gone_from_all(k: Algebra, s: View, wins: Wins) -> Value:
    """Of a key whose winner is a tombstone each replica that has come past it has it, or nothing committed."""

    def stays(offset: Value) -> Value:
        def gone(replica: Value) -> Value:
            past = k.all(follows(k, s, replica), offset < s.leo[replica])

            def is_there(other: Value) -> Value:
                same = key_at(s, replica, other) == committed_key(s, offset)
                return k.all(other < s.hw, holds(k, s, replica, other), same)

            has_it = holds_committed(k, s, replica, offset)
            return k.implies(past, k.any(has_it, k.negate(k.exists(OFFSET, is_there))))

        return k.implies(k.all(wins(k, s, offset), deletes(s, offset)), k.forall(REPLICA, gone))

    return k.forall(OFFSET, stays)


@compaction.always
def winner_is_kept(k: Algebra, s: View) -> Value:
    """Each replica that has come past the winner of a key has it, unless it is a tombstone.

    So a reader from the start, which applies the same strategy, finds the same value on any replica, before and after
    any cleaning.
    """
    return kept_by_all(k, s, is_winner)


@compaction.always
def deleted_stays_deleted(k: Algebra, s: View) -> Value:
    """A key whose winner is a tombstone is in no log of those who have come past it, unless the tombstone is, too."""
    return gone_from_all(k, s, is_winner)


@compaction.always
def consumer_agrees(k: Algebra, s: View) -> Value:
    """Of each winner that the consumer has come past, or cannot be given, it has the record; none if that deletes."""

    def is_past(offset: Value) -> Value:
        left = k.exists(OFFSET, lambda o: k.all(s.position <= o, o <= offset, holds(k, s, s.leader, o)))
        return k.negate(left)

    def agrees(offset: Value) -> Value:
        kept = s.table[committed_key(s, offset)]
        has_none = k.any(kept == -1, deletes(s, kept))
        wins = k.all(is_past(offset), is_winner(k, s, offset))
        return k.implies(wins, k.ite(deletes(s, offset), has_none, kept == offset))

    return k.forall(OFFSET, agrees)


@compaction.always
def survivor_is_alone(k: Algebra, s: View) -> Value:
    """Up to its checkpoint a log has one record of each key, other than the last one, which is retained."""

    def twice(replica: Value, one: Value, other: Value) -> Value:
        end = s.checkpoint[replica]
        if k.rules.last is Last.RETAINED:
            end = end - 1
        same = key_at(s, replica, one) == key_at(s, replica, other)
        return k.all(one < other, other < end, holds(k, s, replica, one), holds(k, s, replica, other), same)

    return k.forall(REPLICA, lambda r: k.forall(OFFSET, lambda a: k.forall(OFFSET, lambda b: k.negate(twice(r, a, b)))))


@compaction.always
def offsets_agree(k: Algebra, s: View) -> Value:
    """Where some replica has the record that was committed at an offset, no log that goes on has another one there."""

    def agree(replica: Value, offset: Value) -> Value:
        has_one = k.all(follows(k, s, replica), offset < s.hw, holds(k, s, replica, offset))
        known = k.exists(REPLICA, lambda r: holds_committed(k, s, r, offset))
        return k.implies(k.all(has_one, known), s.record_epoch[replica, offset] == s.committed[offset])

    return k.forall(REPLICA, lambda r: k.forall(OFFSET, lambda o: agree(r, o)))


@compaction.always
def uncommitted_is_whole(k: Algebra, s: View) -> Value:
    """Nothing above the high watermark is cleaned."""

    def whole(replica: Value, offset: Value) -> Value:
        return k.implies(k.all(s.hw <= offset, offset < s.leo[replica]), holds(k, s, replica, offset))

    return k.forall(REPLICA, lambda r: k.forall(OFFSET, lambda o: whole(r, o)))


@compaction.always
def active_segment_is_uncleaned(k: Algebra, s: View) -> Value:
    """No log is clean past the high watermark, nor in its active segment."""
    return k.forall(REPLICA, lambda r: k.all(s.checkpoint[r] <= s.hw, s.checkpoint[r] <= s.active[r]))


@compaction.always_in(lambda rules: rules.changes_when_alike and rules.changes_overridden)
def header_is_long(k: Algebra, s: View) -> Value:
    """While ``header`` is the strategy, no record comes into the log whose value is not 8 bytes long."""

    def good(replica: Value, offset: Value) -> Value:
        header = s.record_header[s.record_epoch[replica, offset], offset]
        new = k.all(s.since <= offset, holds(k, s, replica, offset))
        return k.implies(new, k.any(header == -1, is_long(k, header)))

    asked = k.all(s.leader != k.NONE, strategy_of(k, s, s.leader) == Strategy.header)
    return k.implies(asked, k.forall(REPLICA, lambda r: k.forall(OFFSET, lambda o: good(r, o))))


@compaction.sometimes(lambda c: c["log_size"] > 1)
def record_removed(k: Algebra, s: View) -> Value:
    """A record was removed from a log that goes on."""

    def gone(replica: Value, offset: Value) -> Value:
        return k.all(offset < s.leo[replica], s.record_epoch[replica, offset] == -1)

    return k.exists(REPLICA, lambda r: k.exists(OFFSET, lambda o: gone(r, o)))


@compaction.sometimes(lambda c: c["log_size"] > 2 and (c["timestamps"] > 1 or c["header_values"] > 0))
def later_record_removed(k: Algebra, s: View) -> Value:
    """A record was removed for one before it: with the strategy ``offset`` that never happens."""

    def gone(replica: Value, offset: Value, before: Value) -> Value:
        same = committed_key(s, offset) == key_at(s, replica, before)
        missing = k.all(offset < s.leo[replica], offset < s.hw, s.record_epoch[replica, offset] == -1)
        nothing_later = k.forall(OFFSET, lambda o: k.any(o <= offset, committed_key(s, o) != committed_key(s, offset)))
        return k.all(before < offset, holds(k, s, replica, before), same, missing, nothing_later)

    return k.exists(REPLICA, lambda r: k.exists(OFFSET, lambda o: k.exists(OFFSET, lambda b: gone(r, o, b))))


@compaction.sometimes(lambda c: c["log_size"] > 1)
def tombstone_removed(k: Algebra, s: View) -> Value:
    """A tombstone was removed that nothing beats."""

    def gone(offset: Value) -> Value:
        wins = k.all(is_winner(k, s, offset), deletes(s, offset))
        missing = k.exists(REPLICA, lambda r: k.all(offset < s.leo[r], s.record_epoch[r, offset] == -1))
        return k.all(wins, missing)

    return k.exists(OFFSET, gone)


@compaction.sometimes(lambda c: c["replicas"] > 1 and c["log_size"] > 1)
def logs_differ(k: Algebra, s: View) -> Value:
    """One replica has removed what another one still has."""

    def differ(one: Value, other: Value, offset: Value) -> Value:
        return k.all(
            follows(k, s, one),
            holds_committed(k, s, other, offset),
            offset < s.leo[one],
            s.record_epoch[one, offset] == -1,
        )

    return k.exists(REPLICA, lambda a: k.exists(REPLICA, lambda b: k.exists(OFFSET, lambda o: differ(a, b, o))))


@compaction.sometimes(lambda c: c["consumers"] == 1)
def consumer_caught_up(k: Algebra, s: View) -> Value:
    """The consumer has read something, and all that there is."""
    has_some = k.exists(KEY, lambda key: s.table[key] != -1)
    return k.all(has_some, s.position == s.hw)
