"""Former names of ``simulation.events``."""

from __future__ import annotations

from ..simulation.events import Event
from ..simulation.events import EventKind as What

__all__ = ["Event", "What"]
