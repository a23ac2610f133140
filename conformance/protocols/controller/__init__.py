"""What is checked of ``controller``: the plan of its model. There is no binding yet."""

from ...harness import Harness

__all__ = ["HARNESS"]

HARNESS = Harness(__name__, plan=".plan:PLAN")
