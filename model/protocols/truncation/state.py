"""The state and the rules of ``truncation``: one partition, and the consumer that reads from it.

The replicas are those of ``fencing``, less what that protocol is about. A leader counts a record as committed when it
likes, as if its ISR were itself; an election is *clean* when the new leader holds every record below its predecessor's
high watermark, which is what ``strong_isr`` of ``fencing`` promises of every member of the ISR, and *unclean*
otherwise. A leader that was replaced goes on as a zombie until it hears of the new epoch. After a clean election it
commits nothing more, since a member of its ISR has left its epoch; after an unclean one it may. A new leader knows at
once how much of what was committed it holds: in Kafka its high watermark lags behind, and consumers wait.

``partition.py`` has elections and replication, ``actions.py`` the consumer, and ``promises.py`` what it is promised.
The variant ``kip-320-client`` has actions of its own, for systems that run by themselves: ``serving.py`` brokers with
retention and crashes, ``polling.py`` a consumer whose requests take their time, and its coordinator, ``reported.py``
what its application is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ...core.algebra import Algebra, Value, View
from ...core.domains import OPTIONAL_REPLICA, REPLICA, integers
from ...core.enumeration import enumeration
from ...core.protocol import Protocol
from ..logs import EPOCH, OFFSET, partition_constants

truncation = Protocol(
    "truncation",
    "KIP-320, consumers",
    constants=partition_constants(replicas=2, max_records=3),
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
    one answers neither a fetch nor a search for the divergence. ``client`` is a consumer that runs by itself;
    ``shipped`` one that does it as Apache Kafka's, the V rows of ``specs/DEVIATIONS.md``: it names its last epoch in no
    fetch, and validates its position when it hears of another leader. ``ends_alone``: it compares the end offset only
    that it is answered (H1). ``late``: it takes what a leader has sent that it has been told to leave since (V6).
    """

    check: Check
    reset: Reset = Reset.NEAREST
    seen: bool = False
    client: bool = False
    shipped: bool = False
    ends_alone: bool = False
    late: bool = False


def is_client(rules: Rules) -> bool:
    """Whether the variant is one of a consumer that runs by itself."""
    return rules.client


def is_own(rules: Rules) -> bool:
    """Whether the variant is one of a consumer that runs by itself, and has its positions checked by each fetch."""
    return rules.client and not rules.shipped


def is_shipped(rules: Rules) -> bool:
    """Whether the variant is one of a consumer as Apache Kafka's: it validates its position by itself."""
    return rules.shipped


def is_stepwise(rules: Rules) -> bool:
    """Whether each exchange of the variant is one step."""
    return not rules.client


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
    "kip-320-client",
    Rules(Check.KNOWN_EPOCH, seen=True, client=True),
    "the mended rules as a running consumer meets them: late answers, partial takes, commits, retention, crashes",
    restarts=True,
)
for _name, _ends_alone, _late, _doc in (
    ("kip-320-kafka-shipped", True, True, "KIP-320 as Apache Kafka 4.4's consumer does it, with H1 and V6"),
    ("kip-320-kafka-ends", True, False, "kip-320-kafka with a validation that compares end offsets alone (H1)"),
    ("kip-320-kafka-late", False, True, "kip-320-kafka with answers taken of a leader that was left since (V6)"),
    ("kip-320-kafka", False, False, "KIP-320 as Apache Kafka's consumer does it, but for what breaks it (H1, V6)"),
):
    truncation.variant(
        _name,
        Rules(Check.NEVER, client=True, shipped=True, ends_alone=_ends_alone, late=_late),
        _doc,
        restarts=True,
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
_YES_OR_NO = integers(0, lambda _: 1)

Outcome = enumeration(
    "outcome", "fetching", "unknown_leader_epoch", "log_truncation", "offset_out_of_range", "divergence_found"
)
"""What became of the consumer's last fetch.

``fetching``: it was answered, or is still to be sent. ``unknown_leader_epoch``: the leader knows no epoch as large as
the consumer's, its metadata is stale. ``log_truncation``: the record before the fetch offset is not the one that the
consumer fetched. ``offset_out_of_range``: the fetch offset is beyond the end of the leader's log.
``divergence_found``: where to go on from has been found; with the reset policy ``none``, LogTruncationException.
"""
Awaited = enumeration("awaited", "nothing", "fetch", "search", "list", "committed", "metadata")
"""Which answer a consumer waits for."""
Asking = enumeration("asking", "nothing", "committed", "beginning", "end")
"""Which new position a consumer asks for."""


def _in_log(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    below_end = offset < s.leo[replica]
    return k.all(s.log_start[replica] <= offset, below_end) if k.rules.client else below_end


def is_elected(_k: Algebra, s: View, epoch: Value) -> Value:
    """There was an election for this epoch."""
    return epoch <= s.quorum_leader_epoch


def is_consumed(k: Algebra, s: View, offset: Value) -> Value:
    """The consumer has read the offset since the last break, and not gone back before it."""
    return k.all(s.consumed_from <= offset, offset < s.position)


def is_fetched(k: Algebra, s: View, offset: Value) -> Value:
    """The record at the offset has arrived, and is not yet given to the application."""
    return k.all(s.position <= offset, offset < s.fetched_end)


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
truncation.variable("outcome", "what became of the last fetch", Outcome)
truncation.variable(
    "answered_epoch", "the epoch of the leader that refused or found the divergence", _EPOCHS, initially=-1
)
truncation.variable("reported", "the offset found to go on from", _OPTIONAL_OFFSETS, initially=-1)
truncation.variable("reported_epoch", "the epoch of the record before it, or -1", _EPOCHS, initially=-1)
truncation.variable("committed", "the committed offset, or -1", _OPTIONAL_OFFSETS, initially=-1)
truncation.variable("committed_epoch", "the epoch committed with it", _EPOCHS, initially=-1)
truncation.variable("committed_seen", "the leader's epoch committed with it", _EPOCHS, initially=-1)

# Of a consumer that runs by itself, of its coordinator, and of brokers with retention.

_COMMIT = (("", "offset"), ("_epoch", "epoch of the record before it"), ("_seen", "leader's epoch"))
truncation.variable("log_start", "the log begin offset", _OFFSETS, per=(REPLICA,), present=is_client)
truncation.variable("leading", "whether a replica leads, and knows it", _YES_OR_NO, per=(REPLICA,), present=is_client)
truncation.variable(
    "metadata_epoch", "the leader epoch of the consumer's metadata", _EPOCHS, initially=-1, present=is_client
)
truncation.variable(
    "current_epoch",
    "the leader epoch in which the position was validated, or is to be; -1 if none",
    _EPOCHS,
    initially=-1,
    present=is_shipped,
)
truncation.variable(
    "validating", "whether the position waits to be validated: nothing is fetched", _YES_OR_NO, present=is_shipped
)
truncation.variable(
    "topic_known",
    "whether the consumer knows the topic's id, so that metadata of an older leader epoch does not count",
    _YES_OR_NO,
    present=is_shipped,
)
truncation.variable("placed", "whether the consumer has a position", _YES_OR_NO, present=is_client)
truncation.variable("awaited", "which answer the consumer waits for", Awaited, present=is_own)
truncation.variable(
    "asking", "which new position the consumer asks for", Asking, initially=Asking.committed, present=is_client
)
truncation.variable("fetched_end", "behind the last record that has arrived", _OFFSETS, present=is_own)
truncation.variable(
    "fetched_id",
    "the record that has arrived of an offset",
    _OPTIONAL_IDS,
    per=(OFFSET,),
    initially=-1,
    live=is_fetched,
    present=is_own,
)
truncation.variable(
    "fetched_epoch", "its leader epoch", _EPOCHS, per=(OFFSET,), initially=-1, live=is_fetched, present=is_own
)
truncation.variable(
    "fetched_seen",
    "the epoch of the leader that sent what has arrived, or -1",
    _EPOCHS,
    initially=-1,
    present=is_own,
)
truncation.variable(
    "consumed_epoch",
    "the leader epoch of the record consumed at an offset",
    _EPOCHS,
    per=(OFFSET,),
    initially=-1,
    live=is_consumed,
    present=is_client,
)
truncation.variable(
    "told", "the divergence that the application was told of, or -1", _OPTIONAL_OFFSETS, initially=-1, present=is_client
)
truncation.variable(
    "known",
    "the committed offset, as far as the consumer was told, or -1",
    _OPTIONAL_OFFSETS,
    initially=-1,
    present=is_own,
)
for _name, _doc in (
    ("acknowledged", "of the commit that was acknowledged last, or -1"),
    ("refused", "of a commit that was not acknowledged and may be stored, or -1"),
):
    for _suffix, _part in _COMMIT:
        _values = _EPOCHS if _suffix else _OPTIONAL_OFFSETS
        truncation.variable(_name + _suffix, f"the {_part} {_doc}", _values, initially=-1, present=is_client)
truncation.variable(
    "found_again",
    "whether what is committed was never acknowledged, and found in the log",
    _YES_OR_NO,
    present=is_client,
)


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
