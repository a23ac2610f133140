"""The quorum's log: elections, replication and snapshots of one partition without a controller (KIP-595, KIP-630)."""

from .config import CLUSTER_METADATA, TOPIC_SETTINGS, QuorumConfig, alter_topic_setting
from .machine import KeyValueMachine, SnapshotWriter, StateMachine
from .node import NodeState, NotLeader, QuorumNode
from .snapshots import SnapshotId

__all__ = [
    "CLUSTER_METADATA",
    "TOPIC_SETTINGS",
    "KeyValueMachine",
    "NodeState",
    "NotLeader",
    "QuorumConfig",
    "QuorumNode",
    "SnapshotId",
    "SnapshotWriter",
    "StateMachine",
    "alter_topic_setting",
]
