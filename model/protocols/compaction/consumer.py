"""A consumer that reads the log from its start and keeps of each key what the strategy keeps.

The text's Recommendations: "the Consumer should be aware and follow the same compact strategy as in broker". It reads
what is committed, from the leader. Of a tombstone it keeps that it has read it, and where, or a record that the
tombstone beats would bring its key back.
"""

from __future__ import annotations

from ...core.algebra import EVERY, Algebra, Step, Value, View
from ..logs import OFFSET
from .state import Strategy, compaction, holds
from .strategy import order, strategy_of


@compaction.action(offset=OFFSET)
def consumer_fetch(k: Algebra, s: View, offset: Value) -> Step:
    """The consumer reads the next record that the leader still has, and takes it where it beats what it has."""
    yield "consumer_reads", k.c.consumers == 1
    yield "record_there", k.all(s.leader != k.NONE, holds(k, s, s.leader, offset))
    yield "committed", offset < s.hw
    yield "not_read", s.position <= offset
    between = k.exists(OFFSET, lambda o: k.all(s.position <= o, o < offset, holds(k, s, s.leader, o)))
    yield "is_next", k.negate(between)
    epoch = s.record_epoch[s.leader, offset]
    key = s.record_key[epoch, offset]
    kept = s.table[key]
    strategy = strategy_of(k, s, s.leader) if k.rules.same_strategy else Strategy.offset
    beats = order(k, s, strategy)
    # Unlike the leader's, the consumer's records are all committed.
    taken = k.any(kept == -1, beats(epoch, offset, s.committed[kept], kept))
    now = offset
    if not k.rules.remembers_deletes:
        now = k.ite(s.record_tombstone[epoch, offset] == 1, -1, offset)
    yield s.update(position=offset + 1, table={key: k.ite(taken, now, kept)})


@compaction.action(present=lambda rules: not rules.reads_once)
def consumer_start_over(_k: Algebra, s: View) -> Step:
    """The consumer forgets what it has, and reads the log from its start."""
    yield "has_read", 0 < s.position
    yield s.update(position=0, table={EVERY: -1})
