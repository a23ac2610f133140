"""A time limit for each call of a freely running system, as ``lockstep/watch.py`` has it for adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...traces.format import Value
from ..lockstep.watch import GRACE, STEP_TIMEOUT, Limit
from .events import Event
from .system import EnabledEvent, SimulatedSystem, StepResult, SupportsLiveness, SupportsQuiescence


class WatchedSystem(Limit):
    """A freely running system whose calls raise ``Hung`` after so many seconds.

    If ``fresh`` is given, the next ``reset`` after a hung call closes the system and continues with ``fresh(system)``.
    """

    def __init__(
        self,
        system: SimulatedSystem,
        seconds: float = STEP_TIMEOUT,
        grace: float = GRACE,
        *,
        fresh: Callable[[SimulatedSystem], SimulatedSystem] | None = None,
    ) -> None:
        super().__init__(seconds, grace)
        self.system = system
        self._fresh = fresh

    @property
    def name(self) -> str:
        """The system's."""
        return self.system.name

    @property
    def protocol(self) -> str:
        """The system's."""
        return self.system.protocol

    @property
    def variant(self) -> str:
        """The system's."""
        return self.system.variant

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """As the system's, or a fresh system's after a hung call."""
        if self.hung and self._fresh is not None:
            self.system = self.replaced(self.system, self._fresh)
        with self.within(lambda: "reset"):
            return self.system.reset(constants, seed)

    def pending(self) -> Sequence[EnabledEvent]:
        """As the system's."""
        with self.within(lambda: "pending"):
            return self.system.pending()

    def step(self, event: Event) -> StepResult:
        """As the system's."""
        with self.within(lambda: f"step({event})"):
            return self.system.step(event)

    def observe(self) -> Mapping[str, Value]:
        """As the system's."""
        with self.within(lambda: "observe"):
            return self.system.observe()

    def peace(self, *, on: bool) -> None:
        """As the system's, where it has that."""
        if isinstance(self.system, SupportsQuiescence):
            with self.within(lambda: f"peace(on={on})"):
                self.system.peace(on=on)

    def unsettled(self, but: int | None) -> str | None:
        """As the system's, where it has that."""
        if not isinstance(self.system, SupportsLiveness):
            return None
        with self.within(lambda: f"unsettled({but})"):
            return self.system.unsettled(but)

    def close(self) -> None:
        """As the system's."""
        self.system.close()
