"""Brokers with tiered storage held against KIP-1023: binding, what running ones are held to, system, defects, plan."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(
    __name__,
    binding=".binding:TIERING",
    free=".free:FreeTiering",
    text=".running:tiered",
    plan=".plan:PLAN",
)
