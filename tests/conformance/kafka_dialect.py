"""What a row about shipped Kafka is held to: Kafka's own classes, the model of the text, and the Apache variant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fencepost.conformance.kafka.jars import RELEASE
from fencepost.conformance.kafka.process import DriverFailedError
from fencepost.model.core.ground import Params, State, ground
from fencepost.model.core.protocol import Protocol
from fencepost.model.interpret.reference import Reference


class RowClosed(AssertionError):
    """Apache Kafka does not do any more what a row says of it."""


@contextmanager
def shipped(row: str, does: str) -> Iterator[None]:
    """What is asserted in here of Kafka's classes is what the row says; where it does not hold, the row is closed.

    So it is where the story cannot be told to its end, as somebody does not ask for what was to be answered, or Kafka
    throws.
    """
    try:
        yield
    except (AssertionError, LookupError, StopIteration, ValueError, DriverFailedError) as not_so:
        raise RowClosed(
            f"{row} of specs/DEVIATIONS.md: Apache Kafka {RELEASE} does not do so any more: {does}. The row is closed:"
            " say there since which release, and make the variant, the adapter and this test tell what it does now"
        ) from not_so


class Walk:
    """A run of a variant, told step by step: ``walk("leader_write", leader=0)``."""

    def __init__(self, protocol: Protocol, variant: str, *constants: int) -> None:
        named = dict(zip(protocol.constants, constants, strict=True))
        self.reference = Reference(ground(protocol.traced(variant), named))
        self.state: State = self.reference.system.initial

    def __call__(self, action: str, **params: int) -> None:
        after = self.reference.step(self.state, action, tuple(params.items()))
        assert after is not None, f"{action} is refused by {self.refused_by(action, **params)}"
        self.state = after

    def refused_by(self, action: str, **params: int) -> str | None:
        """The guard that refuses a step; None where it is enabled."""
        order: Params = tuple(params.items())
        return self.reference.refused_by(self.state, action, order)

    def has(self, action: str) -> bool:
        """Whether there is such an action at all."""
        return action in self.reference.system.actions

    def __getitem__(self, cell: str) -> int:
        return self.state[self.reference.system.layout.by_name[cell]]

    @property
    def broken(self) -> list[str]:
        """The promises that the state does not keep."""
        return self.reference.broken(self.state)
