"""What brokers that run by themselves are held to: what producers write, what followers copy, what the cleaner removes.

``model/protocols/compaction`` has one high watermark, one step for an election, and a record at a time that is removed.
Brokers have each their own high watermark, know of a leader late or never, and clean a whole log in one pass, or a part
of it where the power goes. So there is a text of their own. Who leads, how far a log goes, and what is committed is
taken as it comes: ``fencing`` judges that. What is left:

- **The cleaner.** What a pass has removed (``goes``), where it has set a delete horizon (``marks``) and how far it says
  that the log is clean (``reached``) is shown, and ``clean`` judges each of it: a record goes for one that beats it, or
  as a tombstone whose horizon is over, below the broker's own high watermark and its active segment. Nothing that a
  broker has below its LEO goes otherwise, in a crash neither.
- **Producers.** What the leader appends is what was sent, and under ``header`` a value that is no long is refused.
- **Followers and the consumer** get the next record that the leader had when it answered, and come past no other.

A tombstone goes by time alone, and who was not in time may miss it (DEVIATIONS, X1 to X5). Whether somebody was is
kept by key: ``late`` where the mended rules of ``kip-280-safe`` would have had the cleaner wait, or a producer or an
operator come sooner, and ``unsure`` where the consumer began too late. Of such a key nothing is promised from then on.
"""

from __future__ import annotations

from ...core.algebra import EVERY, Algebra, Step, Value, View
from ...core.domains import REPLICA
from ..logs import END_OFFSET, OFFSET
from .impl_state import WRITTEN_KEY, brokers
from .promises import (
    committed_key,
    deletes,
    gone_from_all,
    is_winner,
    kept_by_all,
)
from .state import (
    HEADER,
    TIMESTAMP,
    TOMBSTONE,
    Strategy,
    follows,
    holds,
    holds_committed,
    key_at,
)
from .strategy import is_long, order, strategy_of, version

__all__ = ["brokers"]


def _stays(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The broker has the record, and this pass leaves it."""
    return k.all(holds(k, s, replica, offset), s.goes[replica, offset] == 0)


def _cleanable(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    return k.all(holds(k, s, replica, offset), offset < s.own_hw[replica], offset < s.active[replica])


def _of_one_key(s: View, replica: Value, one: Value, other: Value) -> Value:
    return key_at(s, replica, one) == key_at(s, replica, other)


def _beaten_by(k: Algebra, s: View, replica: Value, offset: Value, winner: Value) -> Value:
    beats = order(k, s, strategy_of(k, s, replica))
    return k.all(
        offset != winner,
        _cleanable(k, s, replica, winner),
        _of_one_key(s, replica, offset, winner),
        beats(s.record_epoch[replica, winner], winner, s.record_epoch[replica, offset], offset),
    )


def _is_beaten(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    return k.exists(OFFSET, lambda w: _beaten_by(k, s, replica, offset, w))


def _is_tombstone(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    return k.all(holds(k, s, replica, offset), s.record_tombstone[s.record_epoch[replica, offset], offset] == 1)


def _goes_as_tombstone(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """A record goes that nothing beats."""
    return k.all(s.goes[replica, offset] == 1, k.negate(_is_beaten(k, s, replica, offset)))


def _beats_nothing(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """Nothing that the pass leaves is beaten by the record: it would come back."""
    beats = order(k, s, strategy_of(k, s, replica))

    def comes_back(other: Value) -> Value:
        return k.all(
            other != offset,
            _stays(k, s, replica, other),
            _of_one_key(s, replica, offset, other),
            beats(s.record_epoch[replica, offset], offset, s.record_epoch[replica, other], other),
        )

    return k.negate(k.exists(OFFSET, comes_back))


def _was_late(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The mended rules would have the tombstone wait: for a replica, the consumer, or what it beats elsewhere."""
    epoch = s.record_epoch[replica, offset]
    beats = order(k, s, strategy_of(k, s, replica))

    def beaten(other: Value, at: Value) -> Value:
        # What another log has may be cleaned there by itself, unless this one has yet to copy it.
        return k.all(
            s.leo[replica] <= at,
            holds(k, s, other, at),
            key_at(s, other, at) == s.record_key[epoch, offset],
            beats(epoch, offset, s.record_epoch[other, at], at),
        )

    passed = k.forall(REPLICA, lambda r: k.all(follows(k, s, r), offset < s.leo[r]))
    left = k.exists(REPLICA, lambda r: k.exists(OFFSET, lambda o: beaten(r, o)))
    return k.any(s.position <= offset, k.negate(passed), left)


@brokers.action(replica=REPLICA)
def clean(k: Algebra, s: View, replica: Value) -> Step:
    """The cleaner of a broker goes through its log, or a part of it: what it says that it has done is right."""
    epochs = s.record_epoch
    if k.rules.knows_leader:
        yield "knows_leader", s.joined[replica] != -1

    def each(condition: object) -> Value:
        return k.forall(OFFSET, condition)  # type: ignore[arg-type]

    yield (
        "cleanable",
        each(
            lambda o: k.implies(k.any(s.goes[replica, o] == 1, s.marks[replica, o] == 1), _cleanable(k, s, replica, o))
        ),
    )
    strategy = strategy_of(k, s, replica)

    def expired(offset: Value) -> Value:
        ranked = k.any(strategy == Strategy.timestamp, strategy == Strategy.header)
        was_clean = k.implies(ranked, offset < s.checkpoint[replica])
        over = k.all(s.horizon[replica, offset] != -1, s.horizon[replica, offset] <= s.cleaned_at[replica])
        return k.all(_is_tombstone(k, s, replica, offset), over, was_clean)

    yield (
        "beaten_or_expired",
        each(lambda o: k.implies(s.goes[replica, o] == 1, k.any(_is_beaten(k, s, replica, o), expired(o)))),
    )
    yield (
        "nothing_comes_back",
        each(lambda o: k.implies(_goes_as_tombstone(k, s, replica, o), _beats_nothing(k, s, replica, o))),
    )
    yield (
        "marked_once",
        each(
            lambda o: k.implies(
                s.marks[replica, o] == 1,
                k.all(_is_tombstone(k, s, replica, o), s.goes[replica, o] == 0, s.horizon[replica, o] == -1),
            )
        ),
    )
    end = s.reached[replica]
    yield "committed", k.any(end <= s.checkpoint[replica], end <= s.own_hw[replica])
    yield "inactive", k.any(end <= s.checkpoint[replica], end <= s.active[replica])

    def tombstone_of(offset: Value, key: Value) -> Value:
        return k.all(_goes_as_tombstone(k, s, replica, offset), s.record_key[epochs[replica, offset], offset] == key)

    def forgotten(key: Value) -> Value:
        """Nothing is as large as the versions of the tombstones that go: the largest of them, found one by one."""
        found = s.deleted_version[key]
        last = k.last(OFFSET, lambda o: k.all(tombstone_of(o, key)), -1)
        return k.ite(last == -1, found, k.max(found, version(k, s, strategy, epochs[replica, last], last)))

    def late(key: Value) -> Value:
        missed = k.exists(OFFSET, lambda o: k.all(tombstone_of(o, key), _was_late(k, s, replica, o)))
        return k.ite(missed, 1, s.late[key])

    def dropped(key: Value) -> Value:
        return k.ite(k.exists(OFFSET, lambda o: tombstone_of(o, key)), 1, s.dropped[key])

    def horizon(offset: Value) -> Value:
        gone = s.goes[replica, offset] == 1
        marked = s.cleaned_at[replica] + s.retention
        return k.ite(gone, -1, k.ite(s.marks[replica, offset] == 1, marked, s.horizon[replica, offset]))

    yield s.update(
        record_epoch={(replica, EVERY): lambda o: k.ite(s.goes[replica, o] == 1, -1, epochs[replica, o])},
        horizon={(replica, EVERY): horizon},
        checkpoint={replica: k.max(end, s.checkpoint[replica])},
        deleted_version={EVERY: forgotten},
        late={EVERY: late},
        dropped={EVERY: dropped},
    )


@brokers.action(
    replica=REPLICA,
    key=WRITTEN_KEY,
    tombstone=TOMBSTONE,
    timestamp=TIMESTAMP,
    header=HEADER,
    earlier_header=HEADER,
)
def leader_write(
    k: Algebra,
    s: View,
    replica: Value,
    key: Value,
    tombstone: Value,
    timestamp: Value,
    header: Value,
    earlier_header: Value,
) -> Step:
    """A leader appends a producer's record, in its own epoch; what no cleaner could keep it refuses."""
    end, strategy = s.leo[replica], strategy_of(k, s, replica)
    value = header - 1
    known = k.ite(is_long(k, value), value, -1)
    rank = k.ite(strategy == Strategy.timestamp, timestamp, k.ite(strategy == Strategy.header, known, 0))
    yield "leads", s.leads[replica] == 1
    yield "log_not_full", end < k.c.log_size
    yield "has_key", key < k.c.keys
    yield "header_is_long", k.any(strategy != Strategy.header, value == -1, is_long(k, value))
    epoch = s.joined[replica]
    at = (epoch, end)
    yield s.update(
        leo={replica: end + 1},
        record_epoch={(replica, end): epoch},
        record_key={at: key},
        record_tombstone={at: tombstone},
        record_timestamp={at: timestamp},
        record_header={at: value},
        record_earlier_header={at: earlier_header - 1},
        late={key: k.ite(rank < s.deleted_version[key], 1, s.late[key])},
    )


@brokers.action(leader=REPLICA, follower=REPLICA, offset=OFFSET)
def follower_fetch(k: Algebra, s: View, leader: Value, follower: Value, offset: Value) -> Step:
    """A follower copies the next record that its leader has, with its delete horizon."""
    yield "leads", s.leads[leader] == 1
    yield "same_epoch", k.all(s.joined[follower] == s.joined[leader], leader != follower)
    yield "record_there", holds(k, s, leader, offset)
    yield "not_fetched", s.leo[follower] <= offset
    between = k.exists(OFFSET, lambda o: k.all(s.leo[follower] <= o, o < offset, holds(k, s, leader, o)))
    yield "is_next", k.negate(between)
    yield s.update(
        leo={follower: offset + 1},
        record_epoch={(follower, offset): s.record_epoch[leader, offset]},
        horizon={(follower, offset): s.horizon[leader, offset]},
    )


@brokers.action(leader=REPLICA, follower=REPLICA, end=END_OFFSET)
def follower_skip(k: Algebra, s: View, leader: Value, follower: Value, end: Value) -> Step:
    """A follower comes past offsets of which the leader has no record: to the end of a batch that has less, or none."""
    yield "leads", s.leads[leader] == 1
    yield "same_epoch", k.all(s.joined[follower] == s.joined[leader], leader != follower)
    yield "goes_on", s.leo[follower] < end
    yield "in_log", end <= s.leo[leader]
    left = k.exists(OFFSET, lambda o: k.all(s.leo[follower] <= o, o < end, holds(k, s, leader, o)))
    yield "no_record_left", k.negate(left)
    yield s.update(leo={follower: end})


@brokers.action(replica=REPLICA, stored=END_OFFSET)
def restart(_k: Algebra, s: View, replica: Value, stored: Value) -> Step:
    """A broker's next process knows of no leader, and of a high watermark that was stored."""
    yield "was_known", stored <= s.hw
    yield s.update(joined={replica: -1}, leads={replica: 0}, own_hw={replica: stored})


def _differs(k: Algebra, s: View, key: Value) -> Value:
    """Of a key some replica has a committed record that another one has removed."""

    def removed(one: Value, other: Value, offset: Value) -> Value:
        return k.all(
            holds_committed(k, s, one, offset),
            committed_key(s, offset) == key,
            offset < s.leo[other],
            s.record_epoch[other, offset] == -1,
        )

    return k.exists(REPLICA, lambda a: k.exists(REPLICA, lambda b: k.exists(OFFSET, lambda o: removed(a, b, o))))


@brokers.action(strategy=Strategy)
def set_topic_strategy(k: Algebra, s: View, strategy: Value) -> Step:
    """An operator sets ``compaction.strategy`` of the topic, or unsets it; who reads begins anew."""
    yield "differs", s.topic_strategy != strategy
    yield s.update(
        topic_strategy=strategy,
        since=s.hw,
        deleted_version={EVERY: -1},
        late={EVERY: lambda key: k.ite(_differs(k, s, key), 1, s.late[key])},
        position=0,
        table={EVERY: -1},
        unsure={EVERY: lambda key: k.max(s.unsure[key], s.dropped[key])},
    )


@brokers.action(leader=REPLICA, offset=OFFSET)
def consumer_fetch(k: Algebra, s: View, leader: Value, offset: Value) -> Step:
    """The consumer is given the next record that its leader has, and takes it where it beats what it has."""
    yield "leads", s.leads[leader] == 1
    yield "record_there", holds(k, s, leader, offset)
    yield "committed", offset < s.own_hw[leader]
    yield "not_read", s.position <= offset
    between = k.exists(OFFSET, lambda o: k.all(s.position <= o, o < offset, holds(k, s, leader, o)))
    yield "is_next", k.negate(between)
    epoch = s.record_epoch[leader, offset]
    key = s.record_key[epoch, offset]
    kept = s.table[key]
    beats = order(k, s, strategy_of(k, s, leader))
    taken = k.any(kept == -1, beats(epoch, offset, s.committed[kept], kept))
    yield s.update(position=offset + 1, table={key: k.ite(taken, offset, kept)})


@brokers.action(leader=REPLICA, end=END_OFFSET)
def consumer_skip(k: Algebra, s: View, leader: Value, end: Value) -> Step:
    """The consumer comes past offsets of which the leader has no record."""
    yield "leads", s.leads[leader] == 1
    yield "goes_on", s.position < end
    yield "committed", end <= s.own_hw[leader]
    left = k.exists(OFFSET, lambda o: k.all(s.position <= o, o < end, holds(k, s, leader, o)))
    yield "no_record_left", k.negate(left)
    yield s.update(position=end)


@brokers.action()
def consumer_start_over(k: Algebra, s: View) -> Step:
    """The consumer forgets what it has, and reads the log from its start."""
    yield s.update(
        position=0,
        table={EVERY: -1},
        unsure={EVERY: lambda key: k.max(s.unsure[key], s.dropped[key])},
    )


# -- promises --------------------------------------------------------------------------------------------------------


def _wins(k: Algebra, s: View, offset: Value) -> Value:
    """Of a key of which something is promised the record at an offset is the winner."""
    # Without a leader there is no broker whose strategy it would be.
    counts = k.all(s.leader != k.NONE, offset < s.hw, s.late[committed_key(s, offset)] == 0)
    return k.all(counts, is_winner(k, s, offset))


@brokers.always
def winner_is_kept(k: Algebra, s: View) -> Value:
    """Each replica that has come past the winner of a key has it, unless it is a tombstone.

    So a reader from the start, which applies the same strategy, finds the same value on any replica, before and after
    any cleaning.
    """
    return kept_by_all(k, s, _wins)


@brokers.always
def deleted_stays_deleted(k: Algebra, s: View) -> Value:
    """A key whose winner is a tombstone is in no log of those who have come past it, unless the tombstone is, too."""
    return gone_from_all(k, s, _wins)


@brokers.always
def consumer_agrees(k: Algebra, s: View) -> Value:
    """Of each winner that the consumer has come past it has the record; none, if that deletes."""

    def agrees(offset: Value) -> Value:
        key = committed_key(s, offset)
        kept = s.table[key]
        has_none = k.any(kept == -1, deletes(s, kept))
        wins = k.all(offset < s.position, s.unsure[key] == 0, _wins(k, s, offset))
        return k.implies(wins, k.ite(deletes(s, offset), has_none, kept == offset))

    return k.forall(OFFSET, agrees)


@brokers.always
def survivor_is_alone(k: Algebra, s: View) -> Value:
    """Up to its checkpoint a log has one record of each key."""

    def twice(replica: Value, one: Value, other: Value) -> Value:
        both = k.all(holds(k, s, replica, one), holds(k, s, replica, other))
        return k.all(one < other, other < s.checkpoint[replica], both, _of_one_key(s, replica, one, other))

    return k.forall(REPLICA, lambda r: k.forall(OFFSET, lambda a: k.forall(OFFSET, lambda b: k.negate(twice(r, a, b)))))


@brokers.always
def offsets_agree(k: Algebra, s: View) -> Value:
    """What a replica that goes on has below what is committed is what was committed there."""

    def agree(replica: Value, offset: Value) -> Value:
        has_one = k.all(follows(k, s, replica), offset < s.hw, holds(k, s, replica, offset))
        return k.implies(has_one, s.record_epoch[replica, offset] == s.committed[offset])

    return k.forall(REPLICA, lambda r: k.forall(OFFSET, lambda o: agree(r, o)))


@brokers.always
def uncommitted_is_whole(k: Algebra, s: View) -> Value:
    """Nothing is cleaned that is not committed."""

    def whole(replica: Value, offset: Value) -> Value:
        past = k.all(follows(k, s, replica), s.hw <= offset, offset < s.leo[replica])
        return k.implies(past, holds(k, s, replica, offset))

    return k.forall(REPLICA, lambda r: k.forall(OFFSET, lambda o: whole(r, o)))
