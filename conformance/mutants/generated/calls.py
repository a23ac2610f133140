"""Systems whose calls may take so much time of the processor: a mutant that does not come back is a finding.

``watch.py`` goes by the clock on the wall, which a machine with other work to do makes unfair.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

from ....traces.format import Value
from ...lockstep.adapter import Adapter, Outcome
from ...lockstep.faults import Fault, Kind
from ...lockstep.watch import Hung
from ...simulation.events import Event
from ...simulation.system import EnabledEvent, SimulatedSystem, StepResult, SupportsLiveness, SupportsQuiescence

CALL_SECONDS: Final = 5.0
"""Of the processor; a healthy call takes some milliseconds."""


@contextmanager
def within(call: str, seconds: float = CALL_SECONDS) -> Iterator[None]:
    """Raise ``Hung`` in a block that takes longer; again and again, should somebody swallow it. In the main thread."""

    def over(_number: int, _frame: FrameType | None) -> None:
        raise Hung(call, seconds)

    signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


class LimitedAdapter:
    """An adapter whose calls are limited."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.name = adapter.name
        self.protocol = adapter.protocol
        self.variant = adapter.variant
        self.faults: Collection[Kind] = adapter.faults

    def reset(self, constants: Mapping[str, int], seed: int) -> None:
        """As the adapter's."""
        with within("reset"):
            self._adapter.reset(constants, seed)

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """As the adapter's."""
        with within(f"apply({action})"):
            return self._adapter.apply(action, params, fault)

    def observe(self) -> Mapping[str, Value]:
        """As the adapter's."""
        with within("observe"):
            return self._adapter.observe()

    def inject(self, fault: Fault) -> Outcome:
        """As the adapter's."""
        with within(f"inject({fault})"):
            return self._adapter.inject(fault)

    def close(self) -> None:
        """As the adapter's."""
        self._adapter.close()


class LimitedSystem:
    """A system that runs freely, whose calls are limited."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._system = system
        self.name = system.name
        self.protocol = system.protocol
        self.variant = system.variant

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """As the system's."""
        with within("reset"):
            return self._system.reset(constants, seed)

    def pending(self) -> Sequence[EnabledEvent]:
        """As the system's."""
        with within("pending"):
            return self._system.pending()

    def step(self, event: Event) -> StepResult:
        """As the system's."""
        with within(f"step({event})"):
            return self._system.step(event)

    def observe(self) -> Mapping[str, Value]:
        """As the system's."""
        with within("observe"):
            return self._system.observe()

    def peace(self, *, on: bool) -> None:
        """As the system's, where it has that."""
        if isinstance(self._system, SupportsQuiescence):
            self._system.peace(on=on)

    def unsettled(self, but: int | None) -> str | None:
        """As the system's, where it has that."""
        return self._system.unsettled(but) if isinstance(self._system, SupportsLiveness) else None

    def close(self) -> None:
        """As the system's."""
        self._system.close()
