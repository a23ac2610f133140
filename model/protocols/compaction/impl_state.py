"""The state of ``impl_spec.py``: of each broker its log, as far as it goes by it, and what its cleaner did last.

Variables with a name of ``model/protocols/compaction`` are the same there, so that its words (``holds``, ``order``,
``is_winner``) are read over this state too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...core.domains import OPTIONAL_REPLICA, REPLICA, Index, integers
from ...core.protocol import ConstantSpec, Protocol
from ...core.terms import Sort
from ..logs import LOG_SIZE, OFFSET
from .state import KEY, Last, Rules, Strategy, declare_records

WRITTEN_KEY = Index("written_key", Sort.INT, lambda c: c["keys"] + 1)
"""What a producer gives for a key; the last one stands for none."""


@dataclass(frozen=True)
class Running(Rules):
    """The rules of brokers that run by themselves. ``last``: an empty batch takes the last offset up, and only a clock
    knows who is in time.

    ``knows_leader``: only who leads, or follows with its log cut back, cleans. ``whole_segments``: a round ends where a
    segment does.
    """

    last: Last = Last.EMPTY_BATCH
    readers_in_time: bool = False
    arrives_in_time: bool = False
    changes_when_alike: bool = False
    reads_once: bool = False
    knows_leader: bool = True
    whole_segments: bool = False


SHIPPED: Final = "kip-280-kafka"

brokers = Protocol(
    "compaction",
    "KIP-280",
    constants=(
        ConstantSpec("replicas", 2, 1, "the number of brokers; each has a replica"),
        LOG_SIZE,
        ConstantSpec("keys", 2, 1, "the number of keys"),
        ConstantSpec("timestamps", 2, 1, "the number of timestamps"),
        ConstantSpec("header_values", 2, 1, "the number of values of the header that are longs"),
        ConstantSpec("max_leader_epoch", 4, 0, "the largest leader epoch"),
    ),
)
brokers.variant(
    SHIPPED,
    Running(knows_leader=False, whole_segments=True),
    "Apache Kafka's brokers, and its cleaner: by offsets, segment by segment, whoever leads",
)
brokers.variant(
    "kip-280-brokers",
    Running(),
    "brokers that run by themselves: an empty batch takes the last offset up, and only a clock knows who is in time",
)

LARGEST: Final = 1 << 40
"""No time of a run is larger."""
_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_ENDS = integers(0, lambda c: c["log_size"])
_FLAG = integers(0, lambda _: 1)
_VERSIONS = integers(-1, lambda c: c["timestamps"] + c["header_values"])
_TIMES = integers(-1, lambda _: LARGEST)

# Who leads, by the controller; and what brokers go by.
brokers.variable("leader", "who leads, by the controller", OPTIONAL_REPLICA, initially=-1)
brokers.variable("leader_epoch", "the newest leader epoch", _EPOCHS, initially=-1)
brokers.variable("hw", "the end of what is committed, exclusive: the largest high watermark of any leader", _ENDS)
brokers.variable("leads", "1 where a broker leads, in its own view", _FLAG, per=(REPLICA,))
brokers.variable(
    "joined",
    "the leader epoch in which a broker leads, or follows with its log cut back; -1: it does neither",
    _EPOCHS,
    per=(REPLICA,),
    initially=-1,
)
brokers.variable("own_hw", "a broker's own high watermark, exclusive", _ENDS, per=(REPLICA,))

# Logs.
brokers.variable("leo", "log end offset, exclusive", _ENDS, per=(REPLICA,))
brokers.variable(
    "record_epoch",
    "the leader epoch of the record that a broker has at an offset; -1: it has none",
    _EPOCHS,
    per=(REPLICA, OFFSET),
    initially=-1,
)
brokers.variable("active", "the base offset of a broker's active segment", _ENDS, per=(REPLICA,))
brokers.variable("checkpoint", "how far a broker's log is clean (cleaner-offset-checkpoint)", _ENDS, per=(REPLICA,))
brokers.variable(
    "horizon",
    "the delete horizon of a tombstone that a broker has, in ms; -1: it has none yet",
    _TIMES,
    per=(REPLICA, OFFSET),
    initially=-1,
)

# What the cleaner of a broker did when it ran last.
brokers.variable("goes", "1 where it removed the record at an offset", _FLAG, per=(REPLICA, OFFSET))
brokers.variable("marks", "1 where it set the delete horizon of a tombstone", _FLAG, per=(REPLICA, OFFSET))
brokers.variable("reached", "how far it says that the log is clean", _ENDS, per=(REPLICA,))
brokers.variable("cleaned_at", "when it ran, in ms", _TIMES, per=(REPLICA,), initially=0)
brokers.variable("retention", "delete.retention.ms", _TIMES, initially=0)
brokers.variable("eager", "1 where whatever can be cleaned is due in the end (by its ratio, or its age)", _FLAG)
brokers.variable("rolls", "1 where an active segment is closed in the end that has a record (segment.ms)", _FLAG)

# What the records are.
declare_records(brokers)
brokers.variable(
    "committed",
    "the leader epoch of the record that was committed at an offset",
    _EPOCHS,
    per=(OFFSET,),
    initially=-1,
)

# Configuration.
brokers.variable("topic_strategy", "the topic's strategy", Strategy)
brokers.variable("broker_strategy", "a broker's strategy", Strategy, per=(REPLICA,))
brokers.variable("since", "the end of what was committed when a strategy was last set", _ENDS)

# Who was not in time, so that nothing is promised of a key any more (DEVIATIONS, X1 to X5).
brokers.variable(
    "deleted_version", "the largest version of a key's tombstones that are gone", _VERSIONS, per=(KEY,), initially=-1
)
brokers.variable("dropped", "1 where a tombstone of a key has gone somewhere", _FLAG, per=(KEY,))
brokers.variable(
    "late", "1 where a tombstone went before all had it, or a strategy was set on logs that differ", _FLAG, per=(KEY,)
)
brokers.variable("unsure", "1 where the consumer began after a tombstone had gone", _FLAG, per=(KEY,))

# Who reads.
brokers.variable("position", "the offset that the consumer reads next", _ENDS)
brokers.variable(
    "table",
    "the offset of the record that the consumer has of a key; -1: it has none",
    integers(-1, lambda c: c["log_size"] - 1),
    per=(KEY,),
    initially=-1,
)

AS_THEY_COME: Final = frozenset(
    {
        *("leader", "leader_epoch", "hw", "leads", "joined", "own_hw", "leo", "record_epoch", "active"),
        *(
            "checkpoint",
            "horizon",
            "goes",
            "marks",
            "reached",
            "cleaned_at",
            "retention",
            "eager",
            "rolls",
            "committed",
        ),
        *("record_key", "record_tombstone", "record_timestamp", "record_header", "record_earlier_header"),
        *("topic_strategy", "broker_strategy", "position", "table"),
    }
)
"""What a run may show as it is: replication, which ``fencing`` judges; times; and what the cleaner says it has done."""
