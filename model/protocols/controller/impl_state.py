"""The state of ``impl_spec.py``: the newest leader's log and the image of all of it, controllers, brokers, requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Index, integers
from ...core.enumeration import enumeration
from ...core.protocol import ConstantSpec, Protocol
from ...core.terms import Sort

NODE = Index("node", Sort.INT, lambda c: c["nodes"])
"""The controllers."""
PARTITION = Index("partition", Sort.INT, lambda c: c["partitions"])
PARTITIONS: Final = range(2)
"""Every partition that there may be; a write to one that there is not writes nothing."""

Role = enumeration("role", "down", "standby", "active")
"""How a controller is."""
Run = enumeration("run", "down", "running")
"""Whether a broker's process is there."""


@dataclass(frozen=True)
class Rules:
    """Nothing that differs."""


cluster = Protocol(
    "controller",
    "KIP-631",
    constants=(
        ConstantSpec("replicas", 3, 1, "the number of brokers; each has a replica of every partition"),
        ConstantSpec("nodes", 3, 1, "the number of controllers"),
        ConstantSpec("partitions", 2, 1, "the number of partitions, at most two, each of a topic of its own"),
    ),
)
cluster.variant("kip-631-cluster", Rules(), "controllers and brokers that run by themselves")

LARGEST: Final = 1 << 20
"""No offset or epoch of a run is larger."""
_ENDS = integers(0, lambda _: LARGEST)
_OFFSETS = integers(-1, lambda _: LARGEST)
_BOOL = integers(0, lambda _: 1)

# The newest leader's log, and the image of all of it.
cluster.variable("newest_epoch", "the newest controller epoch", _OFFSETS, initially=-1)
cluster.variable(
    "leads", "which controller was elected for it; -1: none", integers(-1, lambda c: c["nodes"] - 1), initially=-1
)
cluster.variable("end", "the end of its log, exclusive", _ENDS)
cluster.variable("stable", "the last stable offset, as an exclusive end", _ENDS)
cluster.variable("registered", "who is registered", REPLICA_SET)
cluster.variable("unfenced", "who is unfenced", REPLICA_SET)
cluster.variable("shutting_down", "who is in controlled shutdown", REPLICA_SET)
cluster.variable("alive", "who is unfenced, and not in controlled shutdown", REPLICA_SET)
cluster.variable("broker_epoch", "the epoch of a broker's registration", _OFFSETS, per=(REPLICA,), initially=-1)
cluster.variable("incarnation", "the process that is registered", _OFFSETS, per=(REPLICA,), initially=-1)
cluster.variable(
    "shutdown_offset",
    "where the record is by which a broker shuts down; -1: it does not",
    _OFFSETS,
    per=(REPLICA,),
    initially=-1,
)
cluster.variable("topics", "how many topic ids have been drawn", _ENDS)
cluster.variable("topic", "the topic of a partition; -1: there is none", _OFFSETS, per=(PARTITION,), initially=-1)
cluster.variable("leader", "a partition's leader", OPTIONAL_REPLICA, per=(PARTITION,), initially=-1)
cluster.variable("leader_epoch", "its leader epoch", _OFFSETS, per=(PARTITION,), initially=-1)
cluster.variable("partition_epoch", "its partition epoch", _OFFSETS, per=(PARTITION,), initially=-1)
cluster.variable("isr", "its ISR", REPLICA_SET, per=(PARTITION,))

# Controllers.
cluster.variable("role", "how a controller is", Role, per=(NODE,), initially=0)
cluster.variable("node_epoch", "the epoch of the quorum that a controller is in", _OFFSETS, per=(NODE,), initially=-1)
cluster.variable("node_end", "the end of a controller's log", _ENDS, per=(NODE,))
cluster.variable("node_applied", "the end of what a controller has replayed", _ENDS, per=(NODE,))
cluster.variable("snapshot_end", "the end of what its latest snapshot includes; 0: there is none", _ENDS, per=(NODE,))

# Brokers.
cluster.variable("run", "whether a broker's process is there", Run, per=(REPLICA,), initially=0)
cluster.variable("own_epoch", "the broker epoch that a broker was told", _OFFSETS, per=(REPLICA,), initially=-1)
cluster.variable("view_end", "the end of a broker's copy of the log", _ENDS, per=(REPLICA,))
cluster.variable("view_applied", "the end of what a broker has replayed", _ENDS, per=(REPLICA,))
cluster.variable("has_told", "the end of what the registered process has said to have replayed", _ENDS, per=(REPLICA,))
cluster.variable(
    "as_incarnation", "the process that a broker has registered as last", _OFFSETS, per=(REPLICA,), initially=-1
)
cluster.variable("beat_epoch", "the broker epoch in a broker's last heartbeat", _OFFSETS, per=(REPLICA,), initially=-1)
cluster.variable("beat_end", "the end of what it has replayed, by its last heartbeat", _ENDS, per=(REPLICA,))
cluster.variable("wants_fence", "1 where it wants to be fenced", _BOOL, per=(REPLICA,))
cluster.variable("wants_stop", "1 where it wants to stop", _BOOL, per=(REPLICA,))
cluster.variable(
    "asks_epoch", "the broker epoch in its last AlterPartition", _OFFSETS, per=(REPLICA, PARTITION), initially=-1
)
cluster.variable("asks_topic", "the topic in it", _OFFSETS, per=(REPLICA, PARTITION), initially=-1)
cluster.variable("asks_leader_epoch", "the leader epoch in it", _OFFSETS, per=(REPLICA, PARTITION), initially=-1)
cluster.variable("asks_partition_epoch", "the partition epoch in it", _OFFSETS, per=(REPLICA, PARTITION), initially=-1)
cluster.variable("asks_isr", "the ISR that it asks for", REPLICA_SET, per=(REPLICA, PARTITION))
cluster.variable(
    "asks_member_epoch",
    "the broker epoch of a member in it; -1: it is not known, or no member",
    _OFFSETS,
    per=(REPLICA, PARTITION, REPLICA),
    initially=-1,
)

OF_LOG: Final = (
    "newest_epoch",
    "leads",
    "end",
    "registered",
    "unfenced",
    "shutting_down",
    "alive",
    "broker_epoch",
    "incarnation",
    "shutdown_offset",
    "topics",
    "topic",
    "leader",
    "leader_epoch",
    "partition_epoch",
    "isr",
)
"""What an election may change: the log is another node's."""
OF_CONTROLLER: Final = ("broker_epoch", "incarnation", "shutdown_offset", "has_told", "run", "view_end", "view_applied")
"""What is told of a broker, and not by it."""
TOLD: Final = (
    "as_incarnation",
    "beat_epoch",
    "beat_end",
    "wants_fence",
    "wants_stop",
    "asks_epoch",
    "asks_topic",
    "asks_leader_epoch",
    "asks_partition_epoch",
    "asks_isr",
    "asks_member_epoch",
)
"""What requests say."""
PROGRESS: Final = (
    "stable",
    "node_epoch",
    "node_end",
    "node_applied",
    "snapshot_end",
    "view_end",
    "view_applied",
    "run",
    "has_told",
)
"""How far everyone is, which the metadata log itself is held against."""
AT_FIRST: Final = ("role", "own_epoch")
"""What else is so when a run begins, in which controllers and brokers know each other."""
