"""Brokers with a compacted topic against KIP-280: binding, what running ones are held to, system, defects, plan."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(
    __name__,
    binding=".binding:COMPACTION",
    over_impl=".adapter:CompactionAdapter",
    lockstep=".lockstep_binding:STEPPED",
    free=".system:RunningCompaction",
    free_adapters={"kafka": ".kafka:KafkaCompaction"},
    text="fencepost.model.protocols.compaction.impl_spec:brokers",
    defects=".defects:DEFECTS",
    arguments={"kip-280-safe": ".equivalent_mutants:kip_280_safe"},
    plan=".plan:PLAN",
    drives=(
        "compaction/cleaner.py",
        "compaction/config.py",
        "compaction/edge.py",
        "compaction/manager.py",
        "compaction/offset_map.py",
        "compaction/retention.py",
        "compaction/rewriting.py",
        "compaction/strategy.py",
        "compaction/table.py",
        "log/compacted_part.py",
        "log/swap.py",
    ),
)
