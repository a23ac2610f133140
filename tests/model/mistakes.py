"""What the tests of mistakes share: a guard with one in it, and what is said of the commonest."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

Refused = Callable[..., str]
"""The fixture ``refused`` (``conftest.py``)."""
Toy = Callable[..., ModuleType]
"""The fixture ``toy``."""


def in_guard(expression: str) -> str:
    """An action of the small protocol with this expression as a guard."""
    return f"""
        @toy.action(replica=REPLICA, slot=SLOT)
        def wrong(k, s, replica, slot):
            yield "fine", s.count == 0
            yield "asked", {expression}  # here
            yield s.update(count=0)
    """


MISSING = "item is a variable per slot, and its index is missing; write s.item[slot]"
TRUTH = (
    "write k.all, k.any, k.negate, k.ite instead of and, or, not, if and a < b < c, "
    "and k.min, k.max instead of min, max"
)
NO_COLLECTION = "a term is no collection; write k.member(replica, replicas), or k.forall and k.exists over an index"
SET = "give a variable, k.only(replica), k.with_member(set, replica), or k.EMPTY"
REPLICAS = "replicas are alike and have no numbers: give one of an index or a variable, or k.NONE"
