"""Quorum nodes held against ``snapshots``: binding, adapter, defects, arguments, plan."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(
    __name__,
    binding=".binding:SNAPSHOTS",
    over_impl=".adapter:SnapshotsAdapter",
    defects=".defects:DEFECTS",
    arguments={"kip-630-safe": ".arguments:kip_630_safe"},
    plan=".plan:PLAN",
)
