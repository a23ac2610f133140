"""A freely running system of which some runs are watched for the lines that they execute, and where its source is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from inspect import getsourcefile
from pathlib import Path

from ...traces.format import Value
from ..executed import EVERY, Executed, files_of
from ..harness import OVER_IMPL, find_harness
from .events import Event
from .system import EnabledEvent, SimulatedSystem, StepResult, SupportsLiveness, SupportsQuiescence

_OURS = Path(__file__).resolve().parent
_IMPL = _OURS.parents[1] / "impl"


def source_of(impl: str, system: SimulatedSystem, folder: Path | None) -> Executed | None:
    """The source of a system: ``folder``, or what its protocol's harness says, or the file of its class.

    None where there is none to tell of: the model itself. Raises BadInput for a folder without Python.
    """
    # Neither is called in a run.
    but = {f"{each.__qualname__}.{name}" for each in type(system).__mro__ for name in ("__init__", "close")}
    if folder is not None:
        return Executed(files_of(folder, "--source"), but)
    harness = find_harness(system.protocol)
    if impl in OVER_IMPL and harness is not None:
        return Executed([_IMPL / name for name in harness.drives], but)
    try:
        own = Path(getsourcefile(type(system)) or "").resolve()
    except TypeError:
        return None
    return Executed([own], but) if own.is_file() and own.parent != _OURS else None


class Sampled:
    """A system of which one run of ``every`` is watched, the first, and then those after it."""

    def __init__(self, system: SimulatedSystem, executed: Executed, every: int = EVERY) -> None:
        self.system = system
        self.executed = executed
        self.every = every
        self._runs = -1
        self._rests = False

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

    def of_run(self, number: int | None) -> None:
        """Say which run the next one is, where others are run elsewhere; None: none that is watched."""
        self._runs = -1 if number is None else number - 1
        self._rests = number is None

    def _watched(self) -> AbstractContextManager[None]:
        return nullcontext() if self._rests or self._runs % self.every else self.executed.watching()

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """As the system's; a run begins."""
        self._runs += 1
        with self._watched():
            return self.system.reset(constants, seed)

    def pending(self) -> Sequence[EnabledEvent]:
        """As the system's."""
        with self._watched():
            return self.system.pending()

    def step(self, event: Event) -> StepResult:
        """As the system's."""
        with self._watched():
            return self.system.step(event)

    def observe(self) -> Mapping[str, Value]:
        """As the system's."""
        with self._watched():
            return self.system.observe()

    def peace(self, *, on: bool) -> None:
        """As the system's, where it has that."""
        if isinstance(self.system, SupportsQuiescence):
            self.system.peace(on=on)

    def unsettled(self, but: int | None) -> str | None:
        """As the system's, where it has that."""
        return self.system.unsettled(but) if isinstance(self.system, SupportsLiveness) else None

    def close(self) -> None:
        """As the system's."""
        self.system.close()
