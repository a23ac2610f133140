"""Events of nodes as they are offered, each made once, and what messages are called in them.

Most of what is pending was so before. To look an event up takes a fifth of the time that it takes to make it anew.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

from ...impl.wire.messages import Envelope
from ..simulation.events import Event, EventKind
from ..simulation.system import EnabledEvent

CRASH_SEEDS: Final = 4
"""So many outcomes of a loss of power are offered."""
SKEWS: Final = (-86_400_000, -5_000, 0, 5_000, 86_400_000)
"""By so many milliseconds a time of day is off from the true one."""
SKEWED: Final = 3
"""In one of so many runs times of day are set."""
FULL, FAILS, MENDED = "full", "fails", "mended"
"""What befalls a disk, and the end of it."""
Way: TypeAlias = tuple[str, int | None, int | None]
"""A message's name, receiver and sender: by what events tell messages apart, but for their number."""
_REMEMBERED: Final = 4_096
"""So many events of a sort are kept."""


@lru_cache(_REMEMBERED)
def _name_of(body: type) -> str:
    return body.__name__.removesuffix("Request")


def kind_of(envelope: Envelope) -> str:
    """What a message is called in events: ``Fetch``, ``FetchResponse``."""
    body: type = type(envelope.body)
    return _name_of(body)


def is_response(envelope: Envelope) -> bool:
    """Whether a message answers another."""
    return type(envelope.body).__name__.endswith("Response")


def party(address: int) -> int | None:
    """A node's number; None for the controller and clients."""
    return address if address >= 0 else None


def way_of(envelope: Envelope) -> Way:
    """The way of a message."""
    return kind_of(envelope), party(envelope.destination), party(envelope.source)


@lru_cache(_REMEMBERED)
def arrives(name: str, node: int | None, source: int | None, number: int) -> Event:
    """A message arrives."""
    return Event(EventKind.DELIVER, name, node, source, number)


@lru_cache(_REMEMBERED)
def fires(name: str, node: int, *, due: bool = False) -> EnabledEvent:
    """A timer fires."""
    return EnabledEvent(Event(EventKind.TIMER, name, node), due=due)


@lru_cache(_REMEMBERED)
def passes(ms: int) -> EnabledEvent:
    """So much time passes."""
    return EnabledEvent(Event(EventKind.TIME, args=(("ms", ms),)))


@lru_cache(_REMEMBERED)
def clocks(nodes: tuple[int, ...]) -> tuple[EnabledEvent, ...]:
    """The time of day of any of these is set."""
    return tuple(EnabledEvent(Event(EventKind.CLOCK, "", node, args=(("ms", ms),))) for node in nodes for ms in SKEWS)


@lru_cache(_REMEMBERED)
def crashes(node: int | None) -> tuple[EnabledEvent, ...]:
    """A node loses power, in as many ways as are offered."""
    return tuple(EnabledEvent(Event(EventKind.CRASH, node=node, args=(("seed", seed),))) for seed in range(CRASH_SEEDS))


@lru_cache(_REMEMBERED)
def plain(what: EventKind, name: str, node: int | None) -> EnabledEvent:
    """An event that has nothing but these, as it is offered."""
    return EnabledEvent(Event(what, name, node))


@lru_cache(_REMEMBERED)
def offered(event: Event) -> EnabledEvent:
    """An event as it is offered."""
    return EnabledEvent(event)


@lru_cache(_REMEMBERED)
def failing(node: int | None, *, down: bool, cut: bool, bad: bool, simulated: bool) -> tuple[EnabledEvent, ...]:
    """What may befall a process, and the ends of what has. ``bad``: its disk; ``simulated``: disks may fail."""
    found: list[EnabledEvent] = []
    if not down:
        found += crashes(node)
    elif not bad:
        found.append(plain(EventKind.START, "", node))
    found.append(plain(EventKind.HEAL if cut else EventKind.CUT, "", node))
    if simulated:
        found += [plain(EventKind.DISK, name, node) for name in ((MENDED,) if bad else (FULL, FAILS))]
    return tuple(found)
