"""Power that goes in the midst of an event: between any two effects of a node."""

from __future__ import annotations


class PowerLost(BaseException):
    """The node has no power any more, and does not do what it was about to do. A node that catches every Exception must
    not catch this one."""


class Power:
    """Counts the effects of one event, and ends it at one of them."""

    def __init__(self) -> None:
        self.left: int | None = None
        """So many more effects may happen; None: any number."""

    def effect(self) -> None:
        """One more is about to happen. Raises PowerLost in its place where none is left."""
        if self.left is not None:
            if self.left <= 0:
                raise PowerLost
            self.left -= 1
