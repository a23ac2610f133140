"""Former names of ``simulation.system``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..simulation.system import CannotDrive, Message, StepResult
from ..simulation.system import EnabledEvent as Pending
from ..simulation.system import RequestOutcome as Judged
from ..simulation.system import SenderClaim as Said
from ..simulation.system import SimulatedSystem as FreeSystem
from ..simulation.system import SupportsLiveness as Demands
from ..simulation.system import SupportsQuiescence as HearsOfPeace

__all__ = ["CannotDrive", "Demands", "FreeSystem", "Happened", "HearsOfPeace", "Judged", "Message", "Pending", "Said"]


def Happened(*arguments: Any, given: frozenset[str] = frozenset(), **named: Any) -> StepResult:  # noqa: N802 - a class before
    """Make a ``StepResult``, whose ``inputs`` were called ``given``."""
    return replace(StepResult(*arguments, **named), inputs=given)
