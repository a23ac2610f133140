"""The cleaner of a replica: segments, beaten records, tombstones, the checkpoint.

**A beaten record** goes when a record of its key that beats it is cleanable too. **A tombstone** stays until
``delete.retention.ms`` have passed since it was first cleaned; that time is there for those who must not miss it, and
the mended rules say who they are and that they have had it:

- *readers*: each replica and the consumer have come past it. Whoever had an older record of the key and not the
  tombstone would keep the key for ever (KIP-630, "Consistent Log and Tombstones").
- *the cleaner*: whatever the tombstone beats is gone, in the active segment too, and none of it is still to be fetched.
  The text's Recommendations say so: ``segment.ms`` and ``max.compaction.lag.ms`` less than ``delete.retention.ms``.
- *producers*: a record that the tombstone beats comes no more (``leader_write``).

A replica that has not yet heard of the leader cleans nothing: it knows no high watermark but that of its own epoch, and
what it could clean below that it could have cleaned before.

With the strategy ``offset`` whatever comes later beats the tombstone, so that the last two are met by themselves.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA
from ..logs import END_OFFSET, OFFSET
from .state import Last, compaction, follows, holds, key_at
from .strategy import cleaner_order, removable, strategy_of, version


@compaction.action(replica=REPLICA)
def roll_segment(_k: Algebra, s: View, replica: Value) -> Step:
    """A replica begins a new active segment, which is empty (``segment.ms``, ``max.compaction.lag.ms``)."""
    yield "segment_not_empty", s.active[replica] < s.leo[replica]
    yield s.update(active={replica: s.leo[replica]})


def _may_go(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The text: "simply never remove the last message", or "create an empty message batch"."""
    if k.rules.last is Last.RETAINED:
        return offset + 1 < s.leo[replica]
    return offset < s.leo[replica]


def _is_beaten(k: Algebra, s: View, replica: Value, offset: Value, winner: Value, end: Value) -> Value:
    """Of two records of a key the one at ``winner`` is below an end and beats the other, as this cleaner sees it."""
    beats = cleaner_order(k, s, strategy_of(k, s, replica))
    conditions = [
        holds(k, s, replica, winner),
        winner < end,
        key_at(s, replica, offset) == key_at(s, replica, winner),
        beats(s.record_epoch[replica, winner], winner, s.record_epoch[replica, offset], offset),
    ]
    if not k.rules.maps_all:
        conditions.append(s.checkpoint[replica] <= winner)
    return k.all(*conditions)


@compaction.action(replica=REPLICA, offset=OFFSET, winner=OFFSET)
def remove_record(k: Algebra, s: View, replica: Value, offset: Value, winner: Value) -> Step:
    """The cleaner of a replica removes a record that another one of its key beats."""
    yield "follows_leader", follows(k, s, replica)
    yield "cleanable", removable(k, s, replica, offset)
    yield "winner_cleanable", removable(k, s, replica, winner)
    yield "is_beaten", _is_beaten(k, s, replica, offset, winner, s.leo[replica])
    yield "not_last", _may_go(k, s, replica, offset)
    yield s.update(record_epoch={(replica, offset): -1})


@compaction.action(replica=REPLICA, end=END_OFFSET)
def finish_cleaning(k: Algebra, s: View, replica: Value, end: Value) -> Step:
    """The cleaner of a replica has been through its log up to an offset, and writes that down."""

    def left(offset: Value, winner: Value) -> Value:
        return k.all(
            offset < end,
            holds(k, s, replica, offset),
            _may_go(k, s, replica, offset),
            _is_beaten(k, s, replica, offset, winner, end),
        )

    yield "follows_leader", follows(k, s, replica)
    yield "cleans_more", s.checkpoint[replica] < end
    yield "in_log", end <= s.leo[replica]
    if k.rules.committed_only:
        yield "committed", end <= s.hw
    if k.rules.inactive_only:
        yield "inactive", end <= s.active[replica]
    yield "nothing_left", k.negate(k.exists(OFFSET, lambda o: k.exists(OFFSET, lambda w: left(o, w))))
    yield s.update(checkpoint={replica: end})


def _all_have_passed(k: Algebra, s: View, offset: Value) -> Value:
    """Each replica and the consumer have come past an offset, in the log as it goes on."""
    reads = k.any(k.c.consumers == 0, offset < s.position)
    return k.all(reads, k.forall(REPLICA, lambda r: k.all(follows(k, s, r), offset < s.leo[r])))


def _beats_nothing(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The replica has no other record of a tombstone's key that it beats, and will not be given one."""
    epoch = s.record_epoch[replica, offset]
    beats = cleaner_order(k, s, strategy_of(k, s, replica))

    def beaten(other: Value, at: Value) -> Value:
        return k.all(
            at != offset,
            k.any(other == replica, s.leo[replica] <= at),
            holds(k, s, other, at),
            key_at(s, other, at) == s.record_key[epoch, offset],
            beats(epoch, offset, s.record_epoch[other, at], at),
        )

    return k.negate(k.exists(REPLICA, lambda r: k.exists(OFFSET, lambda o: beaten(r, o))))


@compaction.action(replica=REPLICA, offset=OFFSET)
def remove_tombstone(k: Algebra, s: View, replica: Value, offset: Value) -> Step:
    """The cleaner of a replica removes a tombstone, ``delete.retention.ms`` after it was first cleaned."""
    epoch = s.record_epoch[replica, offset]
    key = s.record_key[epoch, offset]
    yield "follows_leader", follows(k, s, replica)
    yield "is_tombstone", k.all(holds(k, s, replica, offset), s.record_tombstone[epoch, offset] == 1)
    yield "cleaned_before", offset < s.checkpoint[replica]
    yield "not_last", _may_go(k, s, replica, offset)
    if k.rules.readers_in_time:
        yield "readers_in_time", _all_have_passed(k, s, offset)
    if k.rules.cleaned_in_time:
        yield "cleaned_in_time", _beats_nothing(k, s, replica, offset)
    forgotten = k.max(s.deleted_version[key], version(k, s, strategy_of(k, s, replica), epoch, offset))
    yield s.update(record_epoch={(replica, offset): -1}, deleted_version={key: forgotten})
