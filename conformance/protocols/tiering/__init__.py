"""Brokers with tiered storage held against KIP-1023: binding, what running ones are held to, system, defects, plan."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(
    __name__,
    binding=".binding:TIERING",
    over_impl=".adapter:TieringAdapter",
    lockstep=".lockstep_binding:STEPPED",
    free=".system:FreeTiering",
    free_adapters={"kafka": ".kafka:KafkaTiering"},
    text="fencepost.model.protocols.tiering.impl_spec:tiered",
    defects=".defects:DEFECTS",
    arguments={"kip-1023-safe": ".equivalent_mutants:kip_1023_safe"},
    plan=".plan:PLAN",
    drives=(
        "tiering/bootstrap.py",
        "tiering/copier.py",
        "tiering/expiry.py",
        "tiering/metadata.py",
        "tiering/reader.py",
        "tiering/remote.py",
        "tiering/segments.py",
        "tiering/steps.py",
    ),
)
