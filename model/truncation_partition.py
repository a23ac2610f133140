"""The partition that ``truncation`` consumes from: its state and rules, elections and replication.

The replicas are those of ``fencing``, less what that protocol is about. A leader counts a record as committed when it
likes, as if its ISR were itself; an election is *clean* when the new leader holds every record below its predecessor's
high watermark, which is what ``strong_isr`` of ``fencing`` promises of every member of the ISR, and *unclean*
otherwise. A leader that was replaced goes on as a zombie until it hears of the new epoch. After a clean election it
commits nothing more, since a member of its ISR has left its epoch; after an unclean one it may. A new leader knows at
once how much of what was committed it holds: in Kafka its high watermark lags behind, and consumers wait.

``truncation.py`` has the consumer and the promises; the protocol is complete once that is imported.
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
    LARGER_EPOCH = "a larger epoch begins below the fetch offset (KIP-320)"
    KNOWN_EPOCH = "the same, or the consumer's epoch is not in the leader's log (Fetch version 12)"
    CLEAN_LEADER = "the same, but never by a leader that was elected uncleanly"


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
truncation.variant("kip-320", Rules(Check.LARGER_EPOCH), "the KIP's text as it is written")
truncation.variant(
    "epoch-ignored", Rules(Check.CLEAN_LEADER, seen=True), "no check by a leader that was elected uncleanly"
)
truncation.variant(
    "reset-earliest", Rules(Check.KNOWN_EPOCH, Reset.EARLIEST, seen=True), "a truncation leads back to the start"
)
truncation.variant(
    "reset-latest", Rules(Check.KNOWN_EPOCH, Reset.LATEST, seen=True), "a truncation leads on to the end"
)
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


def is_elected(_k: Algebra, s: View, epoch: Value) -> Value:
    """There was an election for this epoch."""
    return epoch <= s.quorum_leader_epoch


def is_consumed(k: Algebra, s: View, offset: Value) -> Value:
    """The consumer has read the offset since the last break, and not gone back before it."""
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
    "epoch_leader", "the leader elected for an epoch", OPTIONAL_REPLICA, per=(EPOCH,), initially=-1, live=is_elected
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
    "consumed_id", "the record consumed at an offset", _OPTIONAL_IDS, per=(OFFSET,), initially=-1, live=is_consumed
)
truncation.variable("outcome", "what became of the last fetch", integers(FETCHING, lambda _: DIVERGENCE_FOUND))
truncation.variable(
    "answered_epoch", "the epoch of the leader that refused or found the divergence", _EPOCHS, initially=-1
)
truncation.variable("reported", "the offset found to go on from", _OPTIONAL_OFFSETS, initially=-1)
truncation.variable("reported_epoch", "the epoch of the record before it, or -1", _EPOCHS, initially=-1)
truncation.variable("committed", "the committed offset, or -1", _OPTIONAL_OFFSETS, initially=-1)
truncation.variable("committed_epoch", "the epoch committed with it", _EPOCHS, initially=-1)
truncation.variable("committed_seen", "the leader's epoch committed with it", _EPOCHS, initially=-1)


def presumes_leadership(s: View, replica: Value) -> Value:
    """The replica was elected for the epoch that it is in, whether or not that is over."""
    # No replica is the leader of epoch -1: a read out of range gives NONE.
    return s.epoch_leader[s.leader_epoch[replica]] == replica


def current_leader(s: View) -> Value:
    """Whom the controller elected last."""
    return s.epoch_leader[s.quorum_leader_epoch]


def same_record(k: Algebra, s: View, left: Value, right: Value, offset: Value) -> Value:
    """Both logs hold the same record at this offset. Records are unique by their ids."""
    return k.all(offset < s.leo[left], s.record_id[left, offset] == s.record_id[right, offset])


def common_end(k: Algebra, s: View, left: Value, right: Value) -> Value:
    """The end of what two logs have in common: log matching makes the last match the end of all matches."""
    return k.last(OFFSET, lambda o: same_record(k, s, left, right, o), -1) + 1


def _elect(k: Algebra, s: View, new_leader: Value, unclean: int) -> Update:
    epoch, old = s.quorum_leader_epoch + 1, current_leader(s)
    return s.update(
        quorum_leader_epoch=epoch,
        epoch_leader={epoch: new_leader},
        epoch_unclean={epoch: unclean},
        leader_epoch={new_leader: epoch},
        hw={new_leader: k.min(s.hw[old], common_end(k, s, new_leader, old))},
    )


def _holds_committed(k: Algebra, s: View, replica: Value) -> Value:
    """The replica holds every record below the current leader's high watermark (all do before the first election)."""
    return s.hw[current_leader(s)] <= common_end(k, s, replica, current_leader(s))


@truncation.action(new_leader=REPLICA)
def elect_cleanly(k: Algebra, s: View, new_leader: Value) -> Step:
    """The controller makes a replica the leader that holds all committed records, as every member of the ISR does.

    It may be the leader that there is: the epoch changes with the ISR too.
    """
    yield "epoch_available", s.quorum_leader_epoch < k.c.max_leader_epoch
    yield "holds_committed", _holds_committed(k, s, new_leader)
    yield _elect(k, s, new_leader, 0)


@truncation.action(new_leader=REPLICA)
def elect_uncleanly(k: Algebra, s: View, new_leader: Value) -> Step:
    """The controller makes a replica the leader that lacks committed records (unclean.leader.election.enable)."""
    yield "epoch_available", s.quorum_leader_epoch < k.c.max_leader_epoch
    yield "lacks_committed", k.negate(_holds_committed(k, s, new_leader))
    yield _elect(k, s, new_leader, 1)


@truncation.action(follower=REPLICA)
def become_follower(k: Algebra, s: View, follower: Value) -> Step:
    """A replica takes up the current epoch and truncates its log to what it has in common with its leader."""
    yield "leader_elected", s.quorum_leader_epoch != -1
    yield "epoch_newer", s.leader_epoch[follower] < s.quorum_leader_epoch
    end = common_end(k, s, follower, current_leader(s))
    yield s.update(leader_epoch={follower: s.quorum_leader_epoch}, leo={follower: end}, hw={follower: 0})


@truncation.action(leader=REPLICA)
def leader_write(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader appends a producer's record in its own epoch."""
    yield "presumes_leadership", presumes_leadership(s, leader)
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
def follower_fetch(_k: Algebra, s: View, follower: Value) -> Step:
    """A follower in the current epoch copies the next record."""
    leader, end = current_leader(s), s.leo[follower]
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
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "record_above_hw", s.hw[leader] < s.leo[leader]
    yield "isr_acknowledges", k.any(epoch == s.quorum_leader_epoch, s.epoch_unclean[epoch + 1] == 1)
    yield s.update(hw={leader: s.hw[leader] + 1})
