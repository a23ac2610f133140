"""Former names of ``simulation.mailbox``."""

from __future__ import annotations

from ..simulation import mailbox
from ..simulation.events import Event
from ..simulation.mailbox import Letter, Mailbox
from ..simulation.system import StepResult

__all__ = ["Letter", "MailSystem", "Mailbox"]


class MailSystem(mailbox.MailSystem):
    """A ``MailSystem`` whose ``step`` is called ``happen``."""

    def happen(self, event: Event) -> StepResult:
        """Perform an event, and return the result."""
        return super().step(event)

    def step(self, event: Event) -> StepResult:
        """Perform an event, and return the result."""
        return self.happen(event)
