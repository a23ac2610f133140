"""Quorum nodes held against ``snapshots``: binding, adapter, defects, arguments, plan."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(
    __name__,
    binding=".kafka_binding:RUNNING",
    lockstep=".binding:SNAPSHOTS",
    text="fencepost.model.protocols.snapshots.kafka_spec:text",
    printed="fencepost.model.protocols.snapshots.kafka_spec:printed",
    over_impl=".adapter:SnapshotsAdapter",
    free=".system:FreeQuorum",
    free_adapters={"kafka": ".kafka:KafkaQuorum"},
    defects=".defects:DEFECTS",
    arguments={"kip-630-safe": ".equivalent_mutants:kip_630_safe"},
    plan=".plan:PLAN",
    drives=(
        "log/directory.py",
        "log/epochs.py",
        "log/log.py",
        "log/recovery.py",
        "quorum/answers.py",
        "quorum/candidate.py",
        "quorum/follower.py",
        "quorum/leader.py",
        "quorum/node.py",
        "quorum/replica.py",
        "quorum/snapshots.py",
        "quorum/state_file.py",
    ),
)
