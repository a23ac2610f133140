"""Why ``kip-280-safe`` keeps its promises, for any number of everything, however often a strategy is set.

The argument in short. The *line* is the log as it goes on: what the leader holds or held at each offset. Whoever
follows has of each offset the line's record or none, and so has whoever does not follow yet, below the *cut*, where the
first epoch began that it has missed. What is committed is the line's. Of each key the *best* record is the one that no
other committed one beats; it only ever gives way to one that is committed later. A cleaner removes what another
committed record beats: never the best. So whoever has come past the best has it, or it was a tombstone whose time was
over. By then all had come past it, nothing was left that it beats, and what comes later is not beaten: so nothing of
the key comes back.

**When a strategy is set** all logs are alike, and what they have is all that counts from before: of that the best is
found anew, the last one among those of the largest version. That there is a largest is no induction over records: it
is the last one of an index that has an end. What counts is then what somebody has, or was committed since.

Nothing is fixed: the brokers' strategy at first is any of the four, and so is each that the topic is given.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA, Constants, integers
from ...prove.proof import Ghosts, Proof
from ..logs import EPOCH, OFFSET
from .state import HEADER, KEY, TIMESTAMP, Strategy, compaction, follows, holds, holds_committed, key_at
from .strategy import is_long, order, strategy_of, version


def _at(*values: int) -> Constants:
    return dict(zip(compaction.constants, values, strict=True))


kip_280 = Proof(
    compaction,
    "kip-280-safe",
    sizes=(_at(1, 2, 1, 1, 1, 0, 0, 0, 3, 1), _at(2, 2, 1, 1, 1, 0, 1, 1, 3, 1)),
    follows=("winner_is_kept", "deleted_stays_deleted", "consumer_agrees", "offsets_agree"),
)

_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_ENDS = integers(0, lambda c: c["log_size"])
_OPTIONAL_OFFSETS = integers(-1, lambda c: c["log_size"] - 1)

kip_280.ghost(
    "line", "the epoch of the record at an offset of the log as it goes on", _EPOCHS, per=(OFFSET,), initially=-1
)
kip_280.ghost(
    "cut",
    "where the first epoch began that a replica has missed; the end of all logs where it has missed none",
    _ENDS,
    per=(REPLICA,),
    initially=lambda c: c["log_size"],
)
kip_280.ghost("cut_epoch", "which epoch that is; -1 where there is none", _EPOCHS, per=(REPLICA,), initially=-1)
kip_280.ghost(
    "best",
    "the offset of a key's committed record that no other beats; -1: there is none",
    _OPTIONAL_OFFSETS,
    per=(KEY,),
    initially=-1,
)


@kip_280.updates("elect_leader")
def _elected(k: Algebra, s: View, replica: Value) -> Ghosts:
    """All others have missed the epoch, and those who had missed none before have missed this one first."""
    start = s.leo[replica]

    def is_cut(r: Value) -> Value:
        return k.all(r != replica, start < s.cut[r])

    return {
        "cut": lambda r: k.ite(is_cut(r), start, s.cut[r]),
        "cut_epoch": lambda r: k.ite(is_cut(r), s.leader_epoch + 1, s.cut_epoch[r]),
    }


@kip_280.updates("become_follower")
def _joined(k: Algebra, s: View, replica: Value) -> Ghosts:
    return {
        "cut": lambda r: k.ite(r == replica, k.c.log_size, s.cut[r]),
        "cut_epoch": lambda r: k.ite(r == replica, -1, s.cut_epoch[r]),
    }


@kip_280.updates("leader_write")
def _written(k: Algebra, s: View, **_: Value) -> Ghosts:
    return {"line": lambda o: k.ite(o == s.leo[s.leader], s.leader_epoch, s.line[o])}


def ranks_above(k: Algebra, s: View, offset: Value, other: Value) -> Value:
    """The committed record at an offset beats the one at another."""
    beats = order(k, s, strategy_of(k, s, s.leader))
    return beats(s.committed[offset], offset, s.committed[other], other)


@kip_280.updates("leader_inc_high_watermark")
def _committed(k: Algebra, s: View) -> Ghosts:
    """The record that is committed is the best of its key, or the best so far beats it."""
    epoch = s.record_epoch[s.leader, s.hw]
    beats = order(k, s, strategy_of(k, s, s.leader))

    def better(key: Value) -> Value:
        before = s.best[key]
        wins = k.any(before == -1, beats(epoch, s.hw, s.committed[before], before))
        return k.all(key == s.record_key[epoch, s.hw], wins)

    return {"best": lambda key: k.ite(better(key), s.hw, s.best[key])}


@kip_280.updates("set_topic_strategy")
def _found_anew(k: Algebra, s: View, strategy: Value) -> Ghosts:
    """What all logs have is all that counts: the best is the last one of the largest version among it."""
    now = k.ite(strategy == Strategy.unset, s.broker_strategy[s.leader], strategy)

    def has(key: Value, offset: Value) -> Value:
        return k.all(holds(k, s, s.leader, offset), key_at(s, s.leader, offset) == key)

    def best(key: Value) -> Value:
        def there(number: Value, of: Value, asked: Value) -> Value:
            def at(epoch: Value, offset: Value) -> Value:
                same = k.all(has(key, offset), s.record_epoch[s.leader, offset] == epoch)
                return k.all(same, asked, number == of[epoch, offset])

            return k.exists(EPOCH, lambda e: k.exists(OFFSET, lambda o: at(e, o)))

        # That there is a largest version is what its definition says; so there is a record that has it.
        time = k.last(TIMESTAMP, lambda t: there(t, s.record_timestamp, 0 <= t), -1)
        header = k.last(HEADER, lambda h: there(h, s.record_header, is_long(k, h)), -1)
        largest = k.ite(now == Strategy.timestamp, time, k.ite(now == Strategy.header, header, 0))

        def has_it(offset: Value) -> Value:
            own = version(k, s, now, s.record_epoch[s.leader, offset], offset)
            return k.all(has(key, offset), own == largest)

        return k.last(OFFSET, has_it, -1)

    return {"best": best}


# Leaders, followers, and the line.


@kip_280.lemma(one=REPLICA, other=REPLICA)
def brokers_clean_alike(k: Algebra, s: View, one: Value, other: Value) -> Value:
    """All brokers have one strategy, or the topic has: whoever cleans, it is by the leader's order."""
    return k.any(s.topic_strategy != Strategy.unset, s.broker_strategy[one] == s.broker_strategy[other])


@kip_280.lemma()
def leader_is_in_its_epoch(k: Algebra, s: View) -> Value:
    """Whoever leads has joined its own epoch, is in the ISR, and has what it began with."""
    began = s.epoch_start[s.leader_epoch] <= s.leo[s.leader]
    leads = k.all(s.joined[s.leader] == s.leader_epoch, k.member(s.leader, s.isr), began, 0 <= s.leader_epoch)
    return k.ite(s.leader == k.NONE, k.all(s.leader_epoch == -1, s.hw == 0), leads)


@kip_280.lemma(replica=REPLICA)
def no_epoch_from_the_future(k: Algebra, s: View, replica: Value) -> Value:
    """Nobody has joined an epoch that there is not yet; whoever is in the newest one has missed none."""
    in_newest = k.all(s.cut[replica] == k.c.log_size, s.cut_epoch[replica] == -1)
    return k.all(s.joined[replica] <= s.leader_epoch, k.implies(s.joined[replica] == s.leader_epoch, in_newest))


@kip_280.lemma(replica=REPLICA)
def cut_is_a_missed_start(k: Algebra, s: View, replica: Value) -> Value:
    """A cut is where an epoch began that the replica has missed: it truncates at least so far."""
    epoch = s.cut_epoch[replica]
    missed = k.all(s.joined[replica] < epoch, epoch <= s.leader_epoch, s.epoch_start[epoch] == s.cut[replica])
    return k.any(s.cut[replica] == k.c.log_size, missed)


@kip_280.lemma(replica=REPLICA, epoch=EPOCH)
def cut_is_the_first(k: Algebra, s: View, replica: Value, epoch: Value) -> Value:
    """No epoch that it has missed began before that: it truncates no further."""
    missed = k.all(s.joined[replica] < epoch, epoch <= s.leader_epoch)
    return k.implies(missed, s.cut[replica] <= s.epoch_start[epoch])


@kip_280.lemma(replica=REPLICA)
def follower_is_behind(k: Algebra, s: View, replica: Value) -> Value:
    """No follower's log is longer than its leader's."""
    return k.implies(follows(k, s, replica), s.leo[replica] <= s.leo[s.leader])


@kip_280.lemma(replica=REPLICA)
def member_has_the_committed(k: Algebra, s: View, replica: Value) -> Value:
    """A member of the ISR has come past all that was committed, and cuts none of it."""
    return k.implies(k.member(replica, s.isr), k.all(s.hw <= s.leo[replica], s.hw <= s.cut[replica]))


@kip_280.lemma(replica=REPLICA, offset=OFFSET)
def record_is_of_a_joined_epoch(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """A replica has records of epochs up to the one that it has joined."""
    epoch = s.record_epoch[replica, offset]
    return k.implies(holds(k, s, replica, offset), k.all(0 <= epoch, epoch <= s.joined[replica]))


@kip_280.lemma(replica=REPLICA, offset=OFFSET)
def record_has_a_key(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """Whatever is in a log was written."""
    key = key_at(s, replica, offset)
    return k.implies(holds(k, s, replica, offset), k.all(0 <= key, key < k.c.keys))


@kip_280.lemma(replica=REPLICA, offset=OFFSET)
def record_is_the_line_s(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """Below its cut a replica has the line's records."""
    here = k.all(holds(k, s, replica, offset), offset < s.cut[replica])
    return k.implies(here, s.record_epoch[replica, offset] == s.line[offset])


@kip_280.lemma(offset=OFFSET)
def committed_is_the_line_s(k: Algebra, s: View, offset: Value) -> Value:
    """What was committed is the line's, and was written."""
    epoch = s.committed[offset]
    key = s.record_key[epoch, offset]
    there = k.all(epoch == s.line[offset], 0 <= epoch, epoch <= s.leader_epoch, 0 <= key, key < k.c.keys)
    return k.implies(offset < s.hw, there)


@kip_280.lemma(replica=REPLICA)
def clean_part_is_in_log(_k: Algebra, s: View, replica: Value) -> Value:
    """The active segment begins within the log."""
    return s.active[replica] <= s.leo[replica]


# The best record of each key.


@kip_280.lemma(key=KEY)
def best_is_committed(k: Algebra, s: View, key: Value) -> Value:
    """The best record of a key is a committed one of that key."""
    best = s.best[key]
    of_key = s.record_key[s.committed[best], best] == key
    return k.any(best == -1, k.all(0 <= best, best < s.hw, of_key))


def _is_best_or_beaten(k: Algebra, s: View, offset: Value) -> Value:
    best = s.best[s.record_key[s.committed[offset], offset]]
    return k.all(best != -1, k.any(best == offset, ranks_above(k, s, best, offset)))


@kip_280.lemma(replica=REPLICA, offset=OFFSET)
def best_is_beaten_by_none(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """Whatever somebody has of what was committed is the best of its key, or beaten by it."""
    return k.implies(holds_committed(k, s, replica, offset), _is_best_or_beaten(k, s, offset))


@kip_280.lemma(offset=OFFSET)
def best_is_not_beaten_since(k: Algebra, s: View, offset: Value) -> Value:
    """So is whatever was committed since the strategy was set, and gone."""
    return k.implies(k.all(offset < s.hw, s.since <= offset), _is_best_or_beaten(k, s, offset))


def below(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The replica has come past the offset in the log as it goes on."""
    return k.all(offset < s.leo[replica], offset < s.cut[replica])


def dropped(k: Algebra, s: View, replica: Value, key: Value) -> Value:
    """The replica has come past the best record of a key, and has it not."""
    best = s.best[key]
    return k.all(0 <= best, below(k, s, replica, best), s.record_epoch[replica, best] == -1)


@kip_280.lemma(replica=REPLICA, key=KEY)
def best_is_kept(k: Algebra, s: View, replica: Value, key: Value) -> Value:
    """Only a tombstone is ever missing of the best: nothing beats it that a cleaner could compare it with."""
    best = s.best[key]
    return k.implies(dropped(k, s, replica, key), s.record_tombstone[s.committed[best], best] == 1)


@kip_280.lemma(one=REPLICA, other=REPLICA, key=KEY)
def all_have_passed(k: Algebra, s: View, one: Value, other: Value, key: Value) -> Value:
    """When one has dropped it, all have come past it."""
    best = s.best[key]
    read = k.any(k.c.consumers == 0, best < s.position)
    return k.implies(dropped(k, s, one, key), k.all(below(k, s, other, best), read))


@kip_280.lemma(replica=REPLICA, key=KEY)
def dropped_version_is_known(k: Algebra, s: View, replica: Value, key: Value) -> Value:
    """What comes from then on is not beaten by it."""
    best = s.best[key]
    rank = version(k, s, strategy_of(k, s, s.leader), s.committed[best], best)
    return k.implies(dropped(k, s, replica, key), rank <= s.deleted_version[key])


def _beats_at(k: Algebra, s: View, key: Value, replica: Value, offset: Value) -> Value:
    best = s.best[key]
    beats = order(k, s, strategy_of(k, s, s.leader))
    return beats(s.committed[best], best, s.record_epoch[replica, offset], offset)


@kip_280.lemma(replica=REPLICA, key=KEY, offset=OFFSET)
def dropped_beats_nothing_here(k: Algebra, s: View, replica: Value, key: Value, offset: Value) -> Value:
    """Whoever has dropped it has no record of its key that it beats."""
    here = k.all(holds(k, s, replica, offset), offset < s.cut[replica], key_at(s, replica, offset) == key)
    return k.implies(k.all(dropped(k, s, replica, key), here), k.negate(_beats_at(k, s, key, replica, offset)))


@kip_280.lemma(replica=REPLICA, other=REPLICA, key=KEY, offset=OFFSET)
def dropped_beats_nothing_to_come(
    k: Algebra, s: View, replica: Value, other: Value, key: Value, offset: Value
) -> Value:
    """Nor will it be given one, by whoever leads now or later."""
    there = k.all(holds(k, s, other, offset), offset < s.cut[other], key_at(s, other, offset) == key)
    ahead = k.any(s.leo[replica] <= offset, s.cut[replica] <= offset)
    asked = k.all(dropped(k, s, replica, key), there, ahead)
    return k.implies(asked, k.negate(_beats_at(k, s, key, other, offset)))


# Who reads.


@kip_280.lemma()
def reads_the_committed(k: Algebra, s: View) -> Value:
    """The consumer reads what is committed; where there is none nothing is read."""
    return k.all(s.position <= s.hw, k.implies(k.c.consumers == 0, s.position == 0))


@kip_280.lemma(key=KEY)
def table_is_of_the_committed(k: Algebra, s: View, key: Value) -> Value:
    """What the consumer has of a key is a committed record of it."""
    kept = s.table[key]
    of_key = s.record_key[s.committed[kept], kept] == key
    return k.any(kept == -1, k.all(0 <= kept, kept < s.position, of_key))


@kip_280.lemma(key=KEY)
def table_has_nothing_better(k: Algebra, s: View, key: Value) -> Value:
    """Nor is that better than the best, also where nobody has it any more."""
    kept, best = s.table[key], s.best[key]
    return k.any(kept == -1, k.all(best != -1, k.any(best == kept, ranks_above(k, s, best, kept))))


@kip_280.lemma(key=KEY)
def table_has_the_best(k: Algebra, s: View, key: Value) -> Value:
    """Whoever has come past the best has read it, and takes nothing for it."""
    best = s.best[key]
    return k.implies(k.all(0 <= best, best < s.position), s.table[key] == best)


@kip_280.lemma(key=KEY)
def best_is_still_to_be_read(k: Algebra, s: View, key: Value) -> Value:
    """Where the consumer has not come past the best, the leader has it to give, unless there is no consumer."""
    best = s.best[key]
    nobody = k.all(k.c.consumers == 0, s.record_tombstone[s.committed[best], best] == 1)
    ahead = k.all(s.leader != k.NONE, 0 <= best, s.position <= best)
    return k.implies(ahead, k.any(s.record_epoch[s.leader, best] != -1, nobody))


# Terms that z3's E-matching does not come upon by itself.


@kip_280.hints("follower_fetch", at=OFFSET)
def _skipped(_k: Algebra, s: View, replica: Value, offset: Value, at: Value) -> list[Value]:  # noqa: ARG001
    """What a follower comes past and is not given, its leader has not."""
    return [s.record_epoch[s.leader, at]]


@kip_280.hints("follower_fetch", key=KEY)
def _best_skipped(_k: Algebra, s: View, replica: Value, offset: Value, key: Value) -> list[Value]:  # noqa: ARG001
    """So it is with the best of a key."""
    return [s.record_epoch[s.leader, s.best[key]]]
