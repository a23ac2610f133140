"""The state of ``impl_spec.py``: replicas of a tiered partition, segment copies, responses to followers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Index, integers
from ...core.enumeration import enumeration
from ...core.protocol import ConstantSpec, Protocol
from ...core.terms import Sort
from ..logs import EPOCH, OFFSET

__all__ = ["COPY", "EPOCH", "GIVEN", "NOT_LOOKED", "OFFSET", "OFFSET_LIMIT", "Begins", "tiered"]

NOT_LOOKED: Final = -2
"""What a leader knows of the highest offset in remote storage before its remote log manager has run."""
COPY = Index("copy", Sort.INT, lambda c: c["copies"])
"""Copies of segments, by the order in which they are begun."""

Begins = enumeration("begins", "nowhere", "at_local_start", "at_epuo")
"""Where a follower is about to begin whose fetch offset is not on its leader."""


@dataclass(frozen=True)
class Rules:
    """What differs, by rows of DEVIATIONS.md.

    ``of_kafka``: TK2, TK7, TK8 and TK12 to TK17. ``keeps_highest``: TK1. ``cuts_first``: TK4. ``counts_given_up``:
    TK11.
    """

    of_kafka: bool = False
    keeps_highest: bool = False
    cuts_first: bool = False
    counts_given_up: bool = False


tiered = Protocol(
    "tiering",
    "KIP-1023",
    constants=(
        ConstantSpec("replicas", 3, 1, "the number of brokers; each has a replica"),
        ConstantSpec("log_size", 10, 1, "the number of offsets in each log"),
        ConstantSpec("max_leader_epoch", 12, 0, "the largest leader epoch"),
        ConstantSpec("copies", 20, 1, "the number of copies of segments that are begun"),
    ),
)
tiered.variant(
    "kip-1023-kafka",
    Rules(of_kafka=True),
    "Apache Kafka's brokers, but for rows TK1, TK4 and TK11 of DEVIATIONS.md",
)
tiered.variant(
    "kip-1023-kafka-epochs-first",
    Rules(of_kafka=True, keeps_highest=True, counts_given_up=True),
    "kip-1023-kafka-shipped, but for row TK4: a follower has the leader epochs before it cuts its log",
)
tiered.variant(
    "kip-1023-kafka-shipped",
    Rules(of_kafka=True, keeps_highest=True, cuts_first=True, counts_given_up=True),
    "Apache Kafka's brokers as they are: what is known of remote storage outlives a log, and epochs come last",
)
tiered.variant("kip-1023-brokers", Rules(), "brokers with a remote log manager that run by themselves")

OFFSET_LIMIT: Final = 1 << 16
"""No offset of the metadata log of a run is larger."""
_METADATA = integers(-1, lambda _: OFFSET_LIMIT)
_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_ENDS = integers(0, lambda c: c["log_size"])
_HEARD = integers(-1, lambda c: c["log_size"])
_BOOL = integers(0, lambda _: 1)

# The controller.
tiered.variable("newest_epoch", "the newest leader epoch", _EPOCHS, initially=-1)
tiered.variable("elected", "who leads it", OPTIONAL_REPLICA, initially=-1)
tiered.variable("isr", "the ISR", REPLICA_SET)
tiered.variable("metadata_leader", "who leads the metadata log", OPTIONAL_REPLICA, initially=-1)

# Replicas.
tiered.variable("leader_epoch", "the leader epoch that a replica is in", _EPOCHS, per=(REPLICA,), initially=-1)
tiered.variable("leads", "1 where it presumes that it leads", _BOOL, per=(REPLICA,))
tiered.variable("settled", "1 where it follows, and has cut off what its leader lacks", _BOOL, per=(REPLICA,))
tiered.variable("log_start", "log start offset", _ENDS, per=(REPLICA,))
tiered.variable("local_start", "local log start offset", _ENDS, per=(REPLICA,))
tiered.variable("leo", "log end offset, exclusive", _ENDS, per=(REPLICA,))
tiered.variable("hw", "the high watermark that a replica knows, exclusive", _ENDS, per=(REPLICA,))
tiered.variable(
    "rolled", "the end of its last segment but the active one, 0 where there is none", _ENDS, per=(REPLICA,)
)
tiered.variable(
    "record_epoch",
    "the leader epoch of the record at an offset, by a replica's leader epoch checkpoint; -1: it lacks it",
    _EPOCHS,
    per=(REPLICA, OFFSET),
    initially=-1,
)
tiered.variable(
    "first_epoch", "the first epoch in its checkpoint; -1: there is none", _EPOCHS, per=(REPLICA,), initially=-1
)
tiered.variable(
    "highest_remote",
    "the highest offset in remote storage that a leader knows; -1: it found none; -2: it has not looked",
    integers(NOT_LOOKED, lambda c: c["log_size"] - 1),
    per=(REPLICA,),
    initially=NOT_LOOKED,
)
tiered.variable("has_read", "up to where a broker may read the metadata log", _METADATA, per=(REPLICA,), initially=0)
tiered.variable("flag", "follower.fetch.last.tiered.offset.enable", _BOOL, per=(REPLICA,))
tiered.variable("begins", "where a follower is about to begin", Begins, per=(REPLICA,))
tiered.variable(
    "told_start", "the log start that a follower's leader told it last; -1: none", _HEARD, per=(REPLICA,), initially=-1
)
tiered.variable("told_local", "the local log start that it told it last", _HEARD, per=(REPLICA,), initially=-1)
tiered.variable("told_epuo", "the EPUO that it told it last; -1: unknown", _HEARD, per=(REPLICA,), initially=-1)

# The remote log.
tiered.variable("retention", "1 where retention lets segments expire", _BOOL)
tiered.variable("copier", "who makes a copy", OPTIONAL_REPLICA, per=(COPY,), initially=-1)
tiered.variable("copy_start", "the first offset of a copy", _HEARD, per=(COPY,), initially=-1)
tiered.variable("copy_end", "its end, exclusive", _HEARD, per=(COPY,), initially=-1)
tiered.variable(
    "copy_epoch",
    "the leader epoch of the record at an offset, by a copy and the checkpoint along with it; -1: it does not say",
    _EPOCHS,
    per=(COPY, OFFSET),
    initially=-1,
)
tiered.variable("copying", "1 while the process that makes a copy has not given it up", _BOOL, per=(COPY,))
tiered.variable(
    "begun_in",
    "the leader epoch in which its copier has asked to write that it is started; -1: it has not",
    _EPOCHS,
    per=(COPY,),
    initially=-1,
)
tiered.variable("is_done", "1 where its copier has asked to write that it is finished", _BOOL, per=(COPY,))
tiered.variable("deletes", "1 where a broker has asked to write that it deletes a copy", _BOOL, per=(REPLICA, COPY))
tiered.variable("stored", "1 where all of a copy is in the store", _BOOL, per=(COPY,))
tiered.variable(
    "started_at",
    "where the metadata log says COPY_SEGMENT_STARTED; -1: it does not",
    _METADATA,
    per=(COPY,),
    initially=-1,
)
tiered.variable("finished_at", "where it says COPY_SEGMENT_FINISHED", _METADATA, per=(COPY,), initially=-1)
tiered.variable("deleting_at", "where it says DELETE_SEGMENT_STARTED", _METADATA, per=(COPY,), initially=-1)
tiered.variable("deleted_at", "where it says DELETE_SEGMENT_FINISHED", _METADATA, per=(COPY,), initially=-1)

OF_BROKER: Final = ("hw", "rolled", "first_epoch", "has_read", "flag", "told_start", "told_local", "told_epuo")
"""What is shown of a broker also after its process has ended: what it was when it decided something last."""
GIVEN: Final = frozenset(
    {
        *OF_BROKER,
        "newest_epoch",
        "elected",
        "isr",
        "metadata_leader",
        "retention",
        "copier",
        "copy_start",
        "copy_end",
        "copy_epoch",
        "copying",
        "started_at",
        "finished_at",
        "deleting_at",
        "deleted_at",
    }
)
"""What a run takes as it comes: what is told, and what ``fencing`` holds the same brokers to."""
