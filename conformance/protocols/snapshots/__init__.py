"""Quorum nodes held against ``snapshots``: binding, adapter, defects, arguments, plan."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(
    __name__,
    binding=".kafka_binding:RUNNING",
    lockstep=".binding:SNAPSHOTS",
    text=".kafka_text:text",
    printed=".kafka_text:printed",
    over_impl=".adapter:SnapshotsAdapter",
    free=".free:FreeQuorum",
    free_adapters={"kafka": ".kafka:KafkaQuorum"},
    defects=".defects:DEFECTS",
    arguments={"kip-630-safe": ".arguments:kip_630_safe"},
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
