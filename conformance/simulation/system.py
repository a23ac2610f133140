"""What an implementer writes to have a system run freely: start, what is pending, let this one happen, observe.

Nothing is scheduled here. The system says what may happen next (a message in flight may arrive, a timer may fire, a
client may ask, a node may crash), the harness chooses one, and the system lets that one happen and nothing else. After
each the harness looks at everything that can be seen, and the model must have a path to it.

A message stands for half an exchange of the model. When a request is sent its asker's state is as it is then; when it
is served the asked one's. So a message that is late, repeated or overtaken carries what was so when it was sent, and
the model is asked whether the receiver may act on that now. For this the system names, of each message that it sends,
the model's steps for which it may stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import ne
from typing import Protocol, TypeAlias, runtime_checkable

from ...traces.format import Value
from ..lockstep.adapter import ModelStep
from .candidate import Spent
from .events import Event


@dataclass(frozen=True, slots=True)
class EnabledEvent:
    """An event that may happen next; ``message``: the number of the message that it would deliver, repeat or lose.

    ``due``: its time has come: a timer that has run off. Any other timer may fire as well, as if time had passed.
    ``weight``: how likely it is now, beside 1 of any other: a system that knows what leads to where little is ever
    tried may say so. ``sort``: what the event is besides its name, where that decides what comes of it: an answer that
    names a snapshot. Of each sort it is tried that it is lost, comes twice, or is broken off by a loss of power.
    ``garbles``: something in the message is under a checksum, and the system can have it arrive otherwise than it was
    sent (``EventKind.GARBLE``). To the model that is a message which was lost: whoever gets it may take nothing of it.
    """

    event: Event
    message: int | None = None
    due: bool = False
    weight: float = 1.0
    sort: str = ""
    garbles: bool = False

    def weighing(self, weight: float) -> EnabledEvent:
        """The same, so likely: twice as fast as ``dataclasses.replace``, and done for much of what is pending."""
        return EnabledEvent(self.event, self.message, self.due, weight, self.sort, self.garbles)


@dataclass(frozen=True, slots=True)
class SenderClaim:
    """What a message says of whoever sends it: the largest of these cells is ``value``, as it is sent.

    Cells and value are those of ``observe``. Several cells of numbers only: of a position the epoch that is known to be
    the latest.
    """

    cells: tuple[str, ...]
    value: Value


@dataclass(frozen=True, slots=True)
class Message:
    """A message that was sent in an event. ``number`` is its own through the run, and never used again.

    ``steps``: the steps of the model that its arrival may be (half of): of a fetch request ``follower_fetch`` and
    ``follower_acknowledge``, each with the parameters that are known; those left out may be any. None of them: it says
    nothing to the model. ``answers``: the number of the request that it answers, None for a request. ``says``: what all
    must be so in one state of its sender's; a fetch offset that is not the position is wrong where nobody minds, too.
    """

    number: int
    name: str
    source: int | None
    destination: int | None
    steps: tuple[ModelStep, ...] = ()
    answers: int | None = None
    says: tuple[SenderClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """A request that was decided in this event, and the error code that its asker will hear (None: no error).

    It is told where the decision is made, at the asked one, not where the answer arrives. The protocol's binding says
    which codes are right where the model's guards refuse, and that none is where they do not.
    """

    steps: tuple[ModelStep, ...]
    error: str | None
    message: int | None = None
    """The request that was decided; None where it came without one (a call of a client in this very event)."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What came of an event, as far as it cannot be observed as cells.

    ``steps``: steps of the model, whole exchanges too, that this event may be besides what messages stand for: of a
    call of the operator ``controller_elect_leader``. What a node does within itself (an action that the binding has no
    exchange for) may happen at any event and is not named. ``crashed`` and ``started``: nodes whose process ended, or
    began, in this event; between the two their cells cannot be observed. ``given``: cells that hold what is seen of
    them now whatever they held before, of variables of which the binding allows it (``Binding.inputs``): what the model
    takes as it comes, and holds its steps and promises to. ``told``: what a person reads of it. ``anew``: what the
    model followed is over, and another begins in its place (a topic is deleted, and made anew under its name). What is
    seen after the event is the model's initial state, and no message from before is any step of the new one.
    """

    sent: tuple[Message, ...] = ()
    judged: tuple[RequestOutcome, ...] = ()
    steps: tuple[ModelStep, ...] = ()
    crashed: frozenset[int] = frozenset()
    started: frozenset[int] = frozenset()
    told: str = ""
    inputs: frozenset[str] = frozenset()
    anew: bool = False


class CannotDrive(Spent):
    """A ``SimulatedSystem`` raises it where it could not drive what it is made of: what it waits for has not come in
    time.

    Nothing can be said of the run any more, and the verdict is ``unknown``. What the system under test does is none.
    """


class SimulatedSystem(Protocol):
    """A system that runs freely. ``name`` is for reports, ``protocol`` and ``variant`` say what it implements.

    Whatever it raises counts as a divergence: the system fell over. Only ``BadInput`` passes through, and
    ``CannotDrive``, after which the run is given up. All methods are called from one thread. The same seed and the same
    events must lead to the same answers: no real clock, no thread.
    """

    @property
    def name(self) -> str:
        """What reports call the system: ``memory``."""

    @property
    def protocol(self) -> str:
        """The protocol that it implements: ``fencing``."""

    @property
    def variant(self) -> str:
        """The variant of the protocol that it is held to."""

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """Start afresh, in the model's initial state, with every node up. All that is random comes from ``seed``."""

    def pending(self) -> Sequence[EnabledEvent]:
        """Everything that may happen next, each event once, in an order that depends on the run alone.

        Of a message that may arrive only DELIVER is named: that it may be lost or come twice instead, and that a node
        may lose power in the midst of an event, the harness knows. CRASH, CUT and their ends are named where they make
        sense.
        """

    def step(self, event: Event) -> StepResult:
        """Let this one happen, and nothing else: one that ``pending`` has just named, or a variation of it."""

    def observe(self) -> Mapping[str, Value]:
        """What can be seen of the system now: cells by their names in traces, as ``Adapter.observe`` has them.

        Cells of a node that is down are left out, and so is whatever cannot be seen. Looking changes nothing.
        """

    def close(self) -> None:
        """Release everything; may be called more than once."""


@runtime_checkable
class SupportsQuiescence(Protocol):
    """A ``SimulatedSystem`` that keeps some of what may happen waiting, to make runs go somewhere: not so in peace."""

    def peace(self, *, on: bool) -> None:
        """In peace whatever may happen is pending, and what anybody wants done is due; the run may go on after it."""


@runtime_checkable
class SupportsLiveness(Protocol):
    """A ``SimulatedSystem`` that also reports what is missing at quiescence."""

    def unsettled(self, but: int | None) -> str | None:
        """What has not come, in words that follow "and yet"; None where all has. ``but``: the node that is not well."""


MakeSystem: TypeAlias = Callable[[str | None, str | None], SimulatedSystem]
"""Makes a system for a protocol and a variant; None stands for its own. A class whose constructor takes the two."""


def changed(before: Mapping[str, Value], after: Mapping[str, Value]) -> Iterable[str]:
    """The cells that are shown ``after``, and were not so ``before``, in their order."""
    missing = object()
    # In one order, which they mostly are in, two pictures are compared the faster.
    alike = list(after) == list(before)
    old = before.values() if alike else (before.get(name, missing) for name in after)
    return compress(after, map(ne, after.values(), old))
