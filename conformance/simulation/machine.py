"""One free run: the system lets an event happen, is looked at, and the model follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...model.core.errors import BadInput
from ...model.core.ground import State
from ...model.core.user_error import is_user_error
from ...traces.format import Value
from ..deadline import NEVER, Deadline
from ..lockstep.adapter import Contradiction
from ..lockstep.space import Call
from ..lockstep.traceback import raised_at
from ..lockstep.watch import Hung
from .candidate import Spent
from .coverage import SimulationCoverage
from .divergence import Divergence, Sort
from .events import Event, EventKind
from .system import EnabledEvent, SimulatedSystem, StepResult, SupportsLiveness, SupportsQuiescence
from .tracker import StateTracker
from .transitions import Transitions

_IN_VAIN: Final = (EventKind.LOSE, EventKind.GARBLE)
"""Nothing of the message is to be taken."""
_SWEEP: Final = 32
"""After so many events the mail that is no longer in flight is let go."""


@dataclass(frozen=True)
class PerformedEvent:
    """One event that happened: what came of it, the model's path through it (one of them), and what was seen after.

    ``observed`` is None where it did not come to that.
    """

    event: Event | None
    happened: StepResult
    message: int | None
    path: tuple[tuple[Call, State], ...]
    observed: Mapping[str, Value] | None
    in_peace: bool = False
    """It is part of a peace (``quiesce.py``): of the events that are repeated there is only the peace itself."""


class Machine:
    """A system and its follower. ``history`` begins with the start."""

    def __init__(
        self,
        ways: Transitions,
        system: SimulatedSystem,
        seed: int,
        met: SimulationCoverage | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        self.ways = ways
        self.system = system
        self.seed = seed
        self.deadline = deadline
        self.follower = StateTracker(ways, met)
        self.history: list[PerformedEvent] = []
        self.peace: Event | None = None
        """The peace that the run has come to; while there is one, what happens is part of it."""
        self._pending: Sequence[EnabledEvent] | None = None
        self.fallen: Divergence | None = None
        """A call outside an event that raised or hung: ``pending`` or ``peace``. The run is over."""

    def start(self) -> Divergence | None:
        """Start the system afresh, and compare. Raises BadInput where the system does, and threads.Spent."""
        try:
            happened = self.system.reset(self.ways.system.constants, self.seed)
            observed = self.system.observe()
        except (BadInput, Spent):
            raise
        except BaseException as error:
            self.history.append(PerformedEvent(None, StepResult(), None, (), None))
            return _fell_over(None, error, "starting it")
        found = self.follower.start(happened, observed)
        self.history.append(PerformedEvent(None, happened, None, self._path(found), observed))
        return found

    def begin_peace(self, peace: Event) -> None:
        """What happens from now on is what comes of this one event (``quiesce.py``)."""
        self.history.append(PerformedEvent(peace, StepResult(), None, (), self.history[-1].observed))
        self.peace = peace
        self._hear_of_peace(on=True)

    def end_peace(self) -> None:
        """The run goes on."""
        self.peace = None
        self._hear_of_peace(on=False)

    def _hear_of_peace(self, *, on: bool) -> None:
        self._pending = None
        if not isinstance(self.system, SupportsQuiescence):
            return
        try:
            self.system.peace(on=on)
        except (BadInput, Spent):
            raise
        except BaseException as error:
            last = self.history[-1].event if self.history else None
            self.fallen = _fell_over(last, error, f"its peace(on={on})")

    def unsettled(self, peace: Event) -> Divergence | None:
        """What the system's author demands of it besides the model, now that nothing moves any more."""
        if not isinstance(self.system, SupportsLiveness):
            return None
        try:
            told = self.system.unsettled(peace.node)
        except (BadInput, Spent):
            raise
        except BaseException as error:
            return _fell_over(peace, error, "asking it what has not come")
        around = "" if peace.node is None else f" (but at {peace.node})"
        return (
            None if told is None else Divergence(Sort.NEVER, peace, f"nothing moves any more{around}, and yet {told}")
        )

    def pending(self) -> Sequence[EnabledEvent]:
        """What may happen next; nothing, where asking for it was too much for the system (``fallen``)."""
        if self.fallen is not None:
            return []
        if self._pending is None:
            try:
                self._pending = list(self.system.pending())
            except (BadInput, Spent):
                raise
            except BaseException as error:
                self._pending = []
                last = self.history[-1].event if self.history else None
                self.fallen = _fell_over(last, error, "naming what may happen next")
        return self._pending

    def can(self, event: Event) -> bool:
        """Whether an event may happen now."""
        return self.found(event) is not None

    def found(self, event: Event) -> EnabledEvent | None:
        """What is pending as this event, or has it be varied; None where it cannot happen now."""
        pending = self.pending()
        for each in pending:
            # What is drawn is most often one of these very objects; to compare them takes far longer.
            if each.event is event:
                return each
        wanted = event.plain()
        found = next((each for each in pending if each.event == wanted), None)
        if found is None and event.what is EventKind.TIME:
            # As when several of those that are offered pass, and nothing happens in between.
            found = next((each for each in pending if each.event.what is EventKind.TIME), None)
        return None if found is None or (event.what is EventKind.GARBLE and not found.garbles) else found

    def perform(self, event: Event) -> Divergence | None:
        """Let an event happen that can, and follow it.

        Raises BadInput where the system does, threads.Spent, and OutOfTime after the machine's deadline.
        """
        self.deadline.check()
        pending = self.found(event)
        assert pending is not None
        self._pending = None
        message = pending.message
        try:
            happened = self.system.step(event)
            observed = self.system.observe()
        except (BadInput, Spent):
            raise
        except BaseException as error:
            # Whatever a system under test raises is what we are looking for.
            self.history.append(PerformedEvent(event, StepResult(), message, (), None, self.peace is not None))
            return _fell_over(event, error, "it")
        delivered = None if event.what in _IN_VAIN else message
        found = self.follower.after(event, delivered, happened, observed)
        self.history.append(
            PerformedEvent(event, happened, message, self._path(found), observed, self.peace is not None)
        )
        if found is None and len(self.history) % _SWEEP == 0:
            self.follower.forget(each.message for each in self.pending() if each.message is not None)
        return found

    def _path(self, found: Divergence | None) -> tuple[tuple[Call, State], ...]:
        if found is not None:
            return ()
        path = self.follower.threads[0].last
        return tuple(zip(path.calls, path.states[1:], strict=True))


def _fell_over(event: Event | None, error: BaseException, what: str) -> Divergence:
    """What the system raised; a system that ends the process, and one that hangs, are such too.

    Whoever drives it may have found a contradiction, and that is no exception of the system's.
    """
    if isinstance(error, Contradiction):
        return Divergence(Sort.CONTRADICTED, event, str(error))
    if isinstance(error, Hung):
        return Divergence(Sort.HUNG, event, str(error), at=raised_at(error))
    if not is_user_error(error):
        raise error
    detail = f"{what} raised {type(error).__name__}: {error}".removesuffix(": ")
    return Divergence(Sort.RAISED, event, detail, at=raised_at(error))
