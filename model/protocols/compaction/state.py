"""The state and the rules of ``compaction``: one partition whose replicas clean their logs, each by itself.

**Records.** A record is told by its offset and its leader epoch: nobody but the leader of an epoch writes in it, once
for each offset. What it is (key, tombstone, timestamp, header) is written down by epoch and offset and never changes;
of the logs there is only, for each replica and offset, the epoch of the record that is there, or -1 for none. What was
lost in an election stays written down, where no step reads it.

**Replication** is what ``fencing`` promises, in as few steps as show what cleaning does to it: there is no leader but
that of the newest epoch, whoever is elected has followed the one before, the ISR is changed in one step, and all know
the one high watermark. A follower fetches the next record that its leader still has, so its LEO may jump.

**Cleaning** is a record at a time: one that is beaten by another of its key goes, below the high watermark and the
active segment, at any time. So a pass may end, or be cut off by a crash, at any point; ``checkpoint`` says how far
nothing is left to be removed. A clock is not there: that ``delete.retention.ms`` is over is said by who has come how
far (``cleaning.py``).

The LEO, the high watermark and the checkpoint are exclusive ends. ``strategy.py`` has the order of records and the
configuration, ``replication.py`` leaders and followers, ``cleaning.py`` the cleaner, ``consumer.py`` who reads, and
``promises.py`` what is promised.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ...core.algebra import Algebra, Value, View
from ...core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Index, all_replicas, integers
from ...core.enumeration import enumeration
from ...core.protocol import ConstantSpec, Protocol
from ...core.terms import Sort
from ..logs import EPOCH, LOG_SIZE, OFFSET

KEY = Index("key", Sort.INT, lambda c: c["keys"])
TOMBSTONE = Index("tombstone", Sort.INT, lambda _: 2)
"""1 where a record deletes its key."""
TIMESTAMP = Index("timestamp", Sort.INT, lambda c: c["timestamps"])
HEADER = Index("header", Sort.INT, lambda c: c["header_values"] + 2)
"""What a record has under the configured header key: 0 none, then the values, and last what is no long."""

Strategy = enumeration("strategy", "unset", "offset", "timestamp", "header")
"""``compaction.strategy`` and ``log.cleaner.compaction.strategy``. A topic's that is unset is its broker's, and a
broker's that is unset is ``offset``."""

compaction = Protocol(
    "compaction",
    "KIP-280",
    constants=(
        ConstantSpec("replicas", 2, 1, "the number of replicas"),
        LOG_SIZE,
        ConstantSpec("keys", 1, 1, "the number of keys"),
        ConstantSpec("timestamps", 2, 1, "the number of timestamps"),
        ConstantSpec("header_values", 0, 0, "the number of values of the header; where it is 0 no record has it"),
        ConstantSpec("repeated_headers", 0, 0, "1 where a record may have the header twice, 0 where none has"),
        ConstantSpec("max_leader_epoch", 1, 0, "the largest leader epoch"),
        ConstantSpec("max_changes", 1, 0, "how often a strategy is set"),
        ConstantSpec(
            "default_strategy", 0, 0, "the brokers' strategy at first: unset, offset, timestamp, header", maximum=3
        ),
        ConstantSpec("consumers", 1, 0, "1 where somebody reads the log, 0 where nobody does"),
    ),
)


class Last(Enum):
    """What becomes of a record that is beaten where it is the last one of its log."""

    RETAINED = "it stays"
    EMPTY_BATCH = "it goes, and an empty batch takes its offset up"
    REMOVED = "it goes, and the log ends before it for whoever fetches"


@dataclass(frozen=True)
class Rules:
    """In what a variant differs; the defaults are those of the safe one.

    What the text says, and twins do otherwise. ``last``: see ``Last``. ``ties_to_higher``: of equal timestamps or
    header values the higher offset stays. ``last_occurrence``: of a repeated header the last value counts.
    ``header_stays``: of a record that has the header and one that has not the first one stays. ``checks_header``: a
    value that is no long is refused at the producer's edge, and is none to the cleaner. ``committed_only``,
    ``inactive_only``: what is cleaned. ``same_strategy``: the consumer reads by the topic's strategy.

    What the text does not say. ``maps_all``: the cleaner compares with what it has cleaned before, too.
    ``remembers_deletes``: a consumer keeps the tombstone that it has read, to compare with. ``readers_in_time``,
    ``cleaned_in_time``, ``arrives_in_time``: who has passed a tombstone before it goes: replicas and consumer, the
    cleaner, late producers. ``changes_when_alike``: a strategy is set where all logs are alike.
    ``changes_overridden``: a broker's is set where the topic has one of its own. ``reads_once``: a consumer does not
    start over.
    """

    last: Last = Last.RETAINED
    ties_to_higher: bool = True
    last_occurrence: bool = True
    header_stays: bool = True
    checks_header: bool = True
    committed_only: bool = True
    inactive_only: bool = True
    same_strategy: bool = True
    maps_all: bool = True
    remembers_deletes: bool = True
    readers_in_time: bool = True
    cleaned_in_time: bool = True
    arrives_in_time: bool = True
    changes_when_alike: bool = True
    changes_overridden: bool = True
    reads_once: bool = True


AS_WRITTEN = Rules(
    maps_all=False,
    remembers_deletes=False,
    readers_in_time=False,
    cleaned_in_time=False,
    arrives_in_time=False,
    changes_when_alike=False,
    changes_overridden=False,
    reads_once=False,
)
"""The text's own rules, where it has one, and none where it says nothing."""

compaction.variant("kip-280", AS_WRITTEN, "the KIP's text as it is written")
compaction.variant("slow-readers", Rules(readers_in_time=False), "a tombstone goes before all have it: hole 1 alone")
compaction.variant(
    "uncleaned-tail", Rules(cleaned_in_time=False), "a tombstone goes before what it beats is cleaned: hole 2 alone"
)
compaction.variant(
    "late-producers", Rules(arrives_in_time=False), "a record comes after the tombstone that beats it: hole 3 alone"
)
compaction.variant(
    "reads-again",
    Rules(reads_once=False, last=Last.EMPTY_BATCH),
    "empty-batch with a consumer that starts over, at any time: hole 4 alone",
)
compaction.variant(
    "changes-uncleaned", Rules(changes_when_alike=False), "a strategy is set on logs that differ: hole 5 alone"
)
compaction.variant(
    "rolling-change", Rules(changes_overridden=False), "a broker's strategy is set one by one: hole 6 alone"
)
compaction.variant(
    "maps-dirty-part", Rules(maps_all=False), "records are compared with newly cleaned ones alone: hole 7 alone"
)
compaction.variant(
    "forgets-deletes", Rules(remembers_deletes=False), "a consumer forgets what it deletes: hole 8 alone"
)
compaction.variant("reads-by-offset", Rules(same_strategy=False), "a consumer goes by offsets alone")
compaction.variant("removes-last", Rules(last=Last.REMOVED), "the last record goes, and its offset with it")
compaction.variant("ties-to-lower", Rules(ties_to_higher=False), "of equal versions the lower offset stays")
compaction.variant("first-occurrence", Rules(last_occurrence=False), "of a repeated header the first value counts")
compaction.variant("anomalous-stays", Rules(header_stays=False), "a record without the header beats one that has it")
compaction.variant("trusts-header", Rules(checks_header=False), "a value that is no long is taken for a large one")
compaction.variant("cleans-uncommitted", Rules(committed_only=False), "the cleaner goes past the high watermark")
compaction.variant("cleans-active", Rules(inactive_only=False), "the cleaner goes into the active segment")
compaction.variant(
    "empty-batch", Rules(last=Last.EMPTY_BATCH), "kip-280-safe with an empty batch in place of the last record"
)
compaction.variant("kip-280-safe", Rules(), "the KIP less its holes")

_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_ENDS = integers(0, lambda c: c["log_size"])
_FLAG = integers(0, lambda _: 1)
_HEADERS = integers(-1, lambda c: c["header_values"])
"""-1 where there is none."""
_VERSIONS = integers(-1, lambda c: c["timestamps"] + c["header_values"])


def in_log(_k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The offset is below the replica's LEO: there is its record, or was."""
    return offset < s.leo[replica]


def _has_begun(_k: Algebra, s: View, epoch: Value) -> Value:
    return epoch <= s.leader_epoch


def _is_committed(_k: Algebra, s: View, offset: Value) -> Value:
    return offset < s.hw


# Who leads, and who follows.
compaction.variable("leader", "who leads", OPTIONAL_REPLICA, initially=-1)
compaction.variable("leader_epoch", "in which leader epoch", _EPOCHS, initially=-1)
compaction.variable("isr", "the ISR", REPLICA_SET, initially=all_replicas)
compaction.variable(
    "epoch_start",
    "the LEO with which the leader of an epoch began",
    integers(-1, lambda c: c["log_size"]),
    per=(EPOCH,),
    initially=-1,
    live=_has_begun,
)
compaction.variable("joined", "the leader epoch that a replica is in", _EPOCHS, per=(REPLICA,), initially=-1)
compaction.variable("hw", "the high watermark, exclusive", _ENDS)

# Logs.
compaction.variable("leo", "log end offset, exclusive", _ENDS, per=(REPLICA,))
compaction.variable(
    "record_epoch",
    "the leader epoch of the record that a replica has at an offset; -1: it has none",
    _EPOCHS,
    per=(REPLICA, OFFSET),
    initially=-1,
    live=in_log,
    unset=True,
)
compaction.variable("active", "the base offset of a replica's active segment", _ENDS, per=(REPLICA,))
compaction.variable(
    "checkpoint", "how far a replica's log is clean, exclusive (cleaner-offset-checkpoint)", _ENDS, per=(REPLICA,)
)


# What the records are.
def declare_records(protocol: Protocol) -> None:
    """What is written down of each record, by the epoch of who wrote it and its offset."""
    protocol.variable(
        "record_key",
        "the key of the record that an epoch's leader wrote at an offset; -1: it wrote none",
        integers(-1, lambda c: c["keys"] - 1),
        per=(EPOCH, OFFSET),
        initially=-1,
    )
    protocol.variable("record_tombstone", "1 where it has no value", _FLAG, per=(EPOCH, OFFSET))
    protocol.variable(
        "record_timestamp", "its timestamp", integers(0, lambda c: c["timestamps"] - 1), per=(EPOCH, OFFSET)
    )
    protocol.variable(
        "record_header",
        "its header, in the last occurrence; -1: it has none; the largest: it is no long",
        _HEADERS,
        per=(EPOCH, OFFSET),
        initially=-1,
    )
    protocol.variable(
        "record_earlier_header", "the same of the occurrence before", _HEADERS, per=(EPOCH, OFFSET), initially=-1
    )


declare_records(compaction)
compaction.variable(
    "committed",
    "the leader epoch of the record that was committed at an offset",
    _EPOCHS,
    per=(OFFSET,),
    initially=-1,
    live=_is_committed,
    unset=True,
)

# Configuration.
compaction.variable("topic_strategy", "the topic's strategy", Strategy)
compaction.variable(
    "broker_strategy", "a broker's strategy", Strategy, per=(REPLICA,), initially=lambda c: c["default_strategy"]
)
compaction.variable("changes", "how often a strategy was set", integers(0, lambda c: c["max_changes"]))
compaction.variable("since", "the high watermark when a strategy was last set", _ENDS)
compaction.variable(
    "deleted_version",
    "the largest version of a key's tombstones that some replica has dropped; -1: none that matters",
    _VERSIONS,
    per=(KEY,),
    initially=-1,
)

# Who reads.
compaction.variable("position", "the offset that the consumer reads next", _ENDS)
compaction.variable(
    "table",
    "the offset of the record that the consumer has of a key; -1: it has none",
    integers(-1, lambda c: c["log_size"] - 1),
    per=(KEY,),
    initially=-1,
)


def holds(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The replica has a record at this offset."""
    return k.all(offset < s.leo[replica], s.record_epoch[replica, offset] != -1)


def holds_committed(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The replica has the record that was committed at this offset."""
    return k.all(
        offset < s.hw,
        holds(k, s, replica, offset),
        s.record_epoch[replica, offset] == s.committed[offset],
    )


def follows(k: Algebra, s: View, replica: Value) -> Value:
    """The replica leads, or has cut its log back to what it shares with the leader and follows it."""
    return k.all(s.leader != k.NONE, s.joined[replica] == s.leader_epoch)


def key_at(s: View, replica: Value, offset: Value) -> Value:
    """The key of the record that the replica has at this offset."""
    return s.record_key[s.record_epoch[replica, offset], offset]
