"""Consumers under clean and unclean elections, and the truncation detection that KIP-320 gives them.

One partition and one consumer (consumers do not meet: what holds of one holds of each). The replicas are those of
``fencing``, less what that protocol is about. A leader counts a record as committed when it likes, as if its ISR
were itself; an election is *clean* when the new leader holds every record below its predecessor's high watermark,
which is what ``strong_isr`` of ``fencing`` promises of every member of the ISR, and *unclean* otherwise. A leader that
was replaced goes on as a zombie until it hears of the new epoch. After a clean election it commits nothing more, since
a member of its ISR has left its epoch; after an unclean one it may. A new leader knows at once how much of what was
committed it holds: in Kafka its high watermark lags behind, and consumers wait.

The consumer learns of leaders from metadata that may be as old as the first election (KIP-232). Its position is an
offset and the leader epoch of the record before it; with -1 for the epoch the leader checks nothing. What it consumed
is a log of its own, and the main promise is log matching between that log and the replicas'.

The reset policies ``earliest`` and ``latest`` take ``reset_to_divergence``; with ``none`` the application has a
LogTruncationException with the reported offset in the same state, and takes that step, or any ``seek``, itself.

**The KIP's rules have three holes**, all of which the variant ``kip-320`` shows (``specs/DEVIATIONS.md`` tells them
as stories): after two unclean elections the leader may hold, instead of the consumer's last record, one of an *older*
epoch, and no larger epoch begins below the fetch offset; a leader that was replaced cleanly long ago returns
LOG_TRUNCATION though nothing was ever lost; and the search for the divergence is answered by any such leader as well.
``kip-320-mended`` closes them. What stays impossible in it: with an offset and an epoch alone, nobody can tell how far
below the start of the next larger epoch two logs differ once the consumer's epoch is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .core.algebra import Algebra, Step, Update, Value, View
from .core.domains import OPTIONAL_REPLICA, REPLICA, Index, integers
from .core.protocol import ConstantSpec, Protocol
from .core.terms import Sort

OFFSET = Index("offset", Sort.INT, lambda c: c["log_size"])
EPOCH = Index("epoch", Sort.INT, lambda c: c["max_leader_epoch"] + 1)

FETCHING = 0
"""The last fetch was answered, or is still to be sent."""
UNKNOWN_LEADER_EPOCH = 1
"""The leader knows no epoch as large as the consumer's: its metadata is stale."""
LOG_TRUNCATION = 2
"""The record before the fetch offset is not the one that the consumer fetched."""
OFFSET_OUT_OF_RANGE = 3
"""The fetch offset is beyond the end of the leader's log."""
DIVERGENCE_FOUND = 4
"""Where to go on from has been found. With the reset policy ``none``: LogTruncationException."""

truncation = Protocol(
    "truncation",
    "KIP-320, consumers",
    constants=(
        ConstantSpec("replicas", 2, 1, "the number of replicas"),
        ConstantSpec("log_size", 2, 1, "the number of offsets in each log"),
        ConstantSpec("max_records", 3, 1, "the number of records that producers write"),
        ConstantSpec("max_leader_epoch", 2, 0, "the largest leader epoch"),
    ),
)


class Check(Enum):
    """When the leader answers a fetch with LOG_TRUNCATION."""

    NEVER = "it is not told the consumer's epoch (before KIP-320)"
    CLEAN_LEADER = "as the KIP says, but not by a leader that was elected uncleanly"
    LARGER_EPOCH = "a larger epoch begins below the fetch offset (KIP-320)"
    KNOWN_EPOCH = "the same, or the consumer's epoch is not in the leader's log (Fetch version 12)"


class Reset(Enum):
    """Where a consumer goes on from after a truncation."""

    NEAREST = "from the divergence, found by OffsetForLeaderEpoch (KIP-320)"
    EARLIEST = "from the first offset (auto.offset.reset=earliest before KIP-320)"
    LATEST = "from the high watermark (auto.offset.reset=latest before KIP-320)"


@dataclass(frozen=True)
class Rules:
    """In what a variant differs.

    ``seen`` adds to the consumer's position the leader epoch in which that position was served; a leader in a lower
    one answers neither a fetch nor a search for the divergence.
    """

    check: Check
    reset: Reset = Reset.NEAREST
    seen: bool = False


truncation.variant("no-epoch", Rules(Check.NEVER), "Kafka before KIP-320: no epoch in the fetch")
truncation.variant("epoch-ignored", Rules(Check.CLEAN_LEADER), "no check by a leader that was elected uncleanly")
truncation.variant("reset-earliest", Rules(Check.LARGER_EPOCH, Reset.EARLIEST), "the old policy: from the start")
truncation.variant("reset-latest", Rules(Check.LARGER_EPOCH, Reset.LATEST), "the old policy: from the end")
truncation.variant("kip-320", Rules(Check.LARGER_EPOCH), "the KIP's text as it is written")
truncation.variant(
    "kip-320-mended",
    Rules(Check.KNOWN_EPOCH, seen=True),
    "the KIP less its holes: the leader must know the epoch, and be no older than who served the position",
)

_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_OFFSETS = integers(0, lambda c: c["log_size"])
_OPTIONAL_OFFSETS = integers(-1, lambda c: c["log_size"])
_OPTIONAL_IDS = integers(-1, lambda c: c["max_records"] - 1)


def _in_log(_k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    return offset < s.leo[replica]


def _elected(_k: Algebra, s: View, epoch: Value) -> Value:
    return epoch <= s.quorum_leader_epoch


def _is_consumed(k: Algebra, s: View, offset: Value) -> Value:
    return k.all(s.consumed_from <= offset, offset < s.position)


truncation.variable("next_record_id", "the next record that a producer writes", integers(0, lambda c: c["max_records"]))
truncation.variable("leo", "log end offset, exclusive", _OFFSETS, per=(REPLICA,))
truncation.variable(
    "record_id", "the record at an offset", _OPTIONAL_IDS, per=(REPLICA, OFFSET), initially=-1, live=_in_log
)
truncation.variable(
    "record_epoch",
    "the leader epoch of the record at an offset",
    _EPOCHS,
    per=(REPLICA, OFFSET),
    initially=-1,
    live=_in_log,
)
truncation.variable("hw", "a leader's high watermark; 0 at a follower", _OFFSETS, per=(REPLICA,), dead=0)
truncation.variable("leader_epoch", "the leader epoch that a replica is in", _EPOCHS, per=(REPLICA,), initially=-1)
truncation.variable("quorum_leader_epoch", "the controller's leader epoch", _EPOCHS, initially=-1)
truncation.variable(
    "epoch_leader", "the leader elected for an epoch", OPTIONAL_REPLICA, per=(EPOCH,), initially=-1, live=_elected
)
truncation.variable(
    "epoch_unclean", "whether an epoch began with an unclean election", integers(0, lambda _: 1), per=(EPOCH,)
)
truncation.variable("metadata_leader", "the leader by the consumer's metadata", OPTIONAL_REPLICA, initially=-1)
truncation.variable("position", "the consumer's fetch offset", _OFFSETS)
truncation.variable("last_epoch", "the epoch of the last fetched record, or -1 (no check)", _EPOCHS, initially=-1)
truncation.variable("seen_epoch", "the epoch of the leader that served the position, or -1", _EPOCHS, initially=-1)
truncation.variable("consumed_from", "the offset from which the consumer has read without a break", _OFFSETS)
truncation.variable(
    "consumed_id", "the record consumed at an offset", _OPTIONAL_IDS, per=(OFFSET,), initially=-1, live=_is_consumed
)
truncation.variable("outcome", "what became of the last fetch", integers(FETCHING, lambda _: DIVERGENCE_FOUND))
truncation.variable("answered_epoch", "the epoch of the leader that found the truncation", _EPOCHS, initially=-1)
truncation.variable("reported", "the offset found to go on from", _OPTIONAL_OFFSETS, initially=-1)
truncation.variable("reported_epoch", "the epoch of the record before it, or -1", _EPOCHS, initially=-1)
truncation.variable("committed", "the committed offset, or -1", _OPTIONAL_OFFSETS, initially=-1)
truncation.variable("committed_epoch", "the epoch committed with it", _EPOCHS, initially=-1)
truncation.variable("committed_seen", "the leader's epoch committed with it", _EPOCHS, initially=-1)


def _presumes_leadership(k: Algebra, s: View, replica: Value) -> Value:
    # No replica is the leader of epoch -1: a read out of range gives NONE.
    return s.epoch_leader[s.leader_epoch[replica]] == replica


def _current_leader(s: View) -> Value:
    return s.epoch_leader[s.quorum_leader_epoch]


def _same_record(k: Algebra, s: View, left: Value, right: Value, offset: Value) -> Value:
    return k.all(offset < s.leo[left], s.record_id[left, offset] == s.record_id[right, offset])


def _common_end(k: Algebra, s: View, left: Value, right: Value) -> Value:
    """The end of what two logs have in common: log matching makes the last match the end of all matches."""
    return k.last(OFFSET, lambda o: _same_record(k, s, left, right, o), -1) + 1


def _elect(k: Algebra, s: View, new_leader: Value, unclean: int) -> Update:
    epoch, old = s.quorum_leader_epoch + 1, _current_leader(s)
    return s.update(
        quorum_leader_epoch=epoch,
        epoch_leader={epoch: new_leader},
        epoch_unclean={epoch: unclean},
        leader_epoch={new_leader: epoch},
        hw={new_leader: k.min(s.hw[old], _common_end(k, s, new_leader, old))},
    )


def _holds_committed(k: Algebra, s: View, replica: Value) -> Value:
    """The replica holds every record below the current leader's high watermark (all do before the first election)."""
    return s.hw[_current_leader(s)] <= _common_end(k, s, replica, _current_leader(s))


@truncation.action(new_leader=REPLICA)
def elect_cleanly(k: Algebra, s: View, new_leader: Value) -> Step:
    """The controller makes a replica the leader that holds all committed records: what a member of the ISR does."""
    yield "not_leader_yet", _current_leader(s) != new_leader
    yield "epoch_available", s.quorum_leader_epoch < k.c.max_leader_epoch
    yield "holds_committed", _holds_committed(k, s, new_leader)
    yield _elect(k, s, new_leader, 0)


@truncation.action(new_leader=REPLICA)
def elect_uncleanly(k: Algebra, s: View, new_leader: Value) -> Step:
    """The controller makes a replica the leader that lacks committed records (unclean.leader.election.enable)."""
    yield "not_leader_yet", _current_leader(s) != new_leader
    yield "epoch_available", s.quorum_leader_epoch < k.c.max_leader_epoch
    yield "lacks_committed", k.negate(_holds_committed(k, s, new_leader))
    yield _elect(k, s, new_leader, 1)


@truncation.action(follower=REPLICA)
def become_follower(k: Algebra, s: View, follower: Value) -> Step:
    """A replica takes up the current epoch and truncates its log to what it has in common with its leader."""
    yield "epoch_newer", s.leader_epoch[follower] < s.quorum_leader_epoch
    end = _common_end(k, s, follower, _current_leader(s))
    yield s.update(leader_epoch={follower: s.quorum_leader_epoch}, leo={follower: end}, hw={follower: 0})


@truncation.action(leader=REPLICA)
def leader_write(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader appends a producer's record in its own epoch."""
    yield "presumes_leadership", _presumes_leadership(k, s, leader)
    yield "record_available", s.next_record_id < k.c.max_records
    end = s.leo[leader]
    yield "log_not_full", end < k.c.log_size
    yield s.update(
        next_record_id=s.next_record_id + 1,
        leo={leader: end + 1},
        record_id={(leader, end): s.next_record_id},
        record_epoch={(leader, end): s.leader_epoch[leader]},
    )


@truncation.action(follower=REPLICA)
def follower_fetch(k: Algebra, s: View, follower: Value) -> Step:
    """A follower in the current epoch copies the next record."""
    leader, end = _current_leader(s), s.leo[follower]
    yield "not_leader_itself", leader != follower
    yield "epoch_not_fenced", s.leader_epoch[follower] == s.quorum_leader_epoch
    yield "record_available", end < s.leo[leader]
    yield s.update(
        leo={follower: end + 1},
        record_id={(follower, end): s.record_id[leader, end]},
        record_epoch={(follower, end): s.record_epoch[leader, end]},
    )


@truncation.action(leader=REPLICA)
def leader_inc_high_watermark(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader counts one more record as committed, and so exposes it to consumers."""
    epoch = s.leader_epoch[leader]
    yield "presumes_leadership", _presumes_leadership(k, s, leader)
    yield "record_above_hw", s.hw[leader] < s.leo[leader]
    yield "isr_acknowledges", k.any(epoch == s.quorum_leader_epoch, s.epoch_unclean[epoch + 1] == 1)
    yield s.update(hw={leader: s.hw[leader] + 1})


def _larger_epoch_start(k: Algebra, s: View, leader: Value, epoch: Value) -> Value:
    """Where the leader's cache has the next larger epoch begin; its own begins at its LEO while it wrote nothing."""
    return k.first(OFFSET, lambda o: s.record_epoch[leader, o] > epoch, s.leo[leader])


def _epoch_unknown(k: Algebra, s: View, leader: Value) -> Value:
    """The consumer names an epoch that is larger than the leader's own."""
    return s.leader_epoch[leader] < k.max(s.last_epoch, s.seen_epoch)


def _truncated(k: Algebra, s: View, leader: Value) -> Value:
    """The leader's check of fetch offset and last fetched epoch, by the variant's rule."""
    start = _larger_epoch_start(k, s, leader, s.last_epoch)
    larger = k.all(s.last_epoch < s.leader_epoch[leader], start < s.position)
    known = s.last_epoch != -1
    match k.rules.check:
        case Check.NEVER:
            return k.any()
        case Check.CLEAN_LEADER:
            return k.all(known, s.epoch_unclean[s.leader_epoch[leader]] == 0, larger)
        case Check.LARGER_EPOCH:
            return k.all(known, larger)
        case Check.KNOWN_EPOCH:
            return k.all(known, k.any(larger, s.record_epoch[leader, start - 1] != s.last_epoch))


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
    yield "epoch_started", _elected(k, s, epoch)
    yield "another_leader", s.epoch_leader[epoch] != s.metadata_leader
    yield s.update(
        metadata_leader=s.epoch_leader[epoch],
        outcome=k.ite(s.outcome == UNKNOWN_LEADER_EPOCH, FETCHING, s.outcome),
    )


def _asks(k: Algebra, s: View, leader: Value, outcome: int) -> Step:
    yield "outcome_pending", s.outcome == outcome
    yield "asks_leader", s.metadata_leader == leader
    yield "presumes_leadership", _presumes_leadership(k, s, leader)


@truncation.action(leader=REPLICA)
def consumer_fetch(k: Algebra, s: View, leader: Value) -> Step:
    """The consumer reads the next record below the high watermark (KIP-320, "Leader Fetch Handling")."""
    yield from _asks(k, s, leader, FETCHING)
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
    yield from _asks(k, s, leader, FETCHING)
    yield "epoch_unknown", _epoch_unknown(k, s, leader)
    yield s.update(outcome=UNKNOWN_LEADER_EPOCH)


@truncation.action(leader=REPLICA, present=lambda rules: rules.check is not Check.NEVER)
def answer_log_truncation(k: Algebra, s: View, leader: Value) -> Step:
    """The leader finds that the record before the fetch offset is not the one that the consumer fetched."""
    yield from _asks(k, s, leader, FETCHING)
    yield "epoch_known", k.negate(_epoch_unknown(k, s, leader))
    yield "truncated", _truncated(k, s, leader)
    yield s.update(outcome=LOG_TRUNCATION, answered_epoch=s.leader_epoch[leader])


@truncation.action(leader=REPLICA)
def answer_out_of_range(k: Algebra, s: View, leader: Value) -> Step:
    """The fetch offset is beyond the end of the leader's log."""
    yield from _asks(k, s, leader, FETCHING)
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
    yield from _asks(k, s, leader, LOG_TRUNCATION)
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
    unbroken = k.all(_exact(s), s.reported <= s.position)
    begin = k.ite(unbroken, k.min(s.consumed_from, s.reported), s.reported)
    yield _move(k, s, s.reported, s.reported_epoch, s.answered_epoch if k.rules.seen else -1, begin)


@truncation.action(offset=OFFSET)
def seek(k: Algebra, s: View, offset: Value) -> Step:
    """The application seeks to any offset; the next fetch names no epoch (-1) and is not checked."""
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
    yield "presumes_leadership", _presumes_leadership(k, s, leader)
    end = s.hw[leader]
    yield _move(k, s, end, _epoch_of_position(k, s, leader, end), _served_by(k, s, leader), end)


@truncation.action()
def commit_offset(k: Algebra, s: View) -> Step:
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
    yield "presumes_leadership", _presumes_leadership(k, s, leader)
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
    end = _common_end(k, s, left, right)
    return k.forall(OFFSET, lambda o: k.implies(o < end, _same_record(k, s, left, right, o)))


def _consumed_is_in(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    return k.all(_is_consumed(k, s, offset), s.record_id[replica, offset] == s.consumed_id[offset])


@truncation.always
def no_silent_gap(k: Algebra, s: View) -> Value:
    """What the consumer has read without a notice is the log of whoever served it, offset for offset.

    Every log that holds the record consumed last holds all that was consumed before it: nothing was skipped, nothing
    that was truncated stayed, and a record read again at another offset would be seen here too. Since records are
    unique, the leader that served the last fetch is such a log.

    It promises nothing across a notice that gave a bound only, nor below a ``seek``; and a consumer whose last record
    was truncated learns of it only with its next fetch.
    """

    def holds(replica: Value) -> Value:
        last = k.all(s.position != s.consumed_from, _consumed_is_in(k, s, replica, s.position - 1))
        rest = k.forall(OFFSET, lambda o: k.implies(_is_consumed(k, s, o), _consumed_is_in(k, s, replica, o)))
        return k.implies(last, rest)

    return k.forall(REPLICA, holds)


def _answering(k: Algebra, s: View, body: object) -> Value:
    """The body holds of the leader that found the truncation, as long as that is still in the epoch of its answer."""
    assert callable(body)
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
    is in a larger epoch than the consumer's, its next larger epoch begins there (or only above the position), and
    nothing consumed from there on is in its log. So nothing that is still there is read again. A bound may be too
    high: then records below it are skipped, noticed but unread (the witness ``bound_skips_records``).
    """

    def found(leader: Value) -> Value:
        below = k.forall(
            OFFSET,
            lambda o: k.implies(k.all(_is_consumed(k, s, o), o < s.reported), _consumed_is_in(k, s, leader, o)),
        )
        above = k.forall(
            OFFSET,
            lambda o: k.implies(s.reported <= o, k.negate(_consumed_is_in(k, s, leader, o))),
        )
        begins = k.any(
            s.reported == s.position,
            k.all(
                s.record_epoch[leader, s.reported - 1] < s.last_epoch,
                k.any(s.reported == s.leo[leader], s.record_epoch[leader, s.reported] > s.last_epoch),
            ),
        )
        bound = k.all(s.last_epoch < s.leader_epoch[leader], begins)
        return k.all(s.reported <= s.position, above, k.ite(_exact(s), below, bound))

    return k.implies(s.outcome == DIVERGENCE_FOUND, _answering(k, s, found))


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
    return k.all(_presumes_leadership(k, s, asked), s.leader_epoch[asked] < s.quorum_leader_epoch, asked != k.NONE)


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def unknown_leader_epoch_returned(k: Algebra, s: View) -> Value:
    """UNKNOWN_LEADER_EPOCH is returned."""
    return s.outcome == UNKNOWN_LEADER_EPOCH


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def log_truncation_returned(k: Algebra, s: View) -> Value:
    """LOG_TRUNCATION is returned."""
    return s.outcome == LOG_TRUNCATION


@truncation.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0 and c["log_size"] > 1)
def out_of_range_returned(k: Algebra, s: View) -> Value:
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
        read = k.all(offset < s.reported, _is_consumed(k, s, offset), offset < s.leo[leader])
        return k.all(read, s.record_id[leader, offset] != s.consumed_id[offset])

    return k.all(
        s.outcome == DIVERGENCE_FOUND,
        s.leader_epoch[leader] == s.answered_epoch,
        k.exists(OFFSET, differs),
    )
