"""Controllers and brokers held against KIP-631: binding, what running ones are held to, system, defects, plan."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(
    __name__,
    binding=".binding:CONTROLLER",
    free=".free:FreeControllers",
    text=".running:cluster",
    defects=".defects:DEFECTS",
    plan=".plan:PLAN",
)
