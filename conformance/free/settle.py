"""What a system comes to in the end, when nothing goes wrong any more and nobody asks for anything.

A system may do less than its model allows, at any time, and no look at one state can tell that it will do so for ever:
a follower that never asks again, a leader that takes nobody back. So now and then a run ends in peace. Cuts heal, disks
work, nodes start; messages arrive in the order in which they were sent, timers fire when they are due, time passes.
When nothing that can be seen has moved for a while, what the binding says of a settled system must hold
(``Binding.settles``: liveness, of systems under fair conditions).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...model.interpret.reference import IntState
from .events import Event, What
from .machine import Machine
from .parted import Parted, Sort
from .system import Pending

ROUNDS: Final = 60
"""After so many rounds a system that still moves is left alone."""

QUIET: Final = 4
"""So many rounds in which nothing moves are peace. In each of them the clock moves on by the longest time there is."""

WAVES: Final = 3
"""So often what is in flight arrives before any time passes: messages are quick beside the patience of who waits."""

_ENDS: Final = (What.HEAL, What.START)


def settle(machine: Machine) -> Parted | None:
    """Let a run end in peace. The events are those of the system, and followed like any. Raises Spent."""
    machine.in_peace = True
    quiet = 0
    for _ in range(ROUNDS):
        before = machine.history[-1].observed
        for event in _round(machine):
            found = machine.perform(event)
            if found is not None:
                return found
        quiet = quiet + 1 if machine.history[-1].observed == before else 0
        if quiet >= QUIET:
            return _judge(machine)
    return None


def _round(machine: Machine) -> Iterator[Event]:
    """Whatever is over, all that is in flight, and what is sent in answer; then what is due, and time."""
    for event in _ends(machine.pending()):
        if machine.can(event):
            yield event
    for _ in range(WAVES):
        flights = {each.message for each in machine.pending() if each.message is not None}
        while flights:
            first = next((each for each in machine.pending() if each.message in flights), None)
            if first is None:
                break
            flights.discard(first.message)
            yield first.event
    for event in [each.event for each in machine.pending() if each.due]:
        if machine.can(event):
            yield event
    times = [each.event for each in machine.pending() if each.event.what is What.TIME]
    if times:
        yield max(times, key=lambda event: int(event.arg("ms")))


def _ends(pending: Sequence[Pending]) -> list[Event]:
    mended = [each.event for each in pending if each.event.what is What.DISK and each.event.name == "mended"]
    return mended + [each.event for each in pending if each.event.what in _ENDS]


def _judge(machine: Machine) -> Parted | None:
    """What a settled system must have come to; in none of the states that explain what is seen it has."""
    ways, threads = machine.ways, machine.follower.threads
    k, system = ways.space.reference.k, ways.system
    for text in ways.binding.settles:
        if not any(text(k, IntState(system, thread.state)) for thread in threads):
            doc = " ".join((text.__doc__ or text.__name__).strip().split("\n\n")[0].split())
            event = Event(What.PEACE)
            return Parted(Sort.NEVER, event, f"nothing moves any more, and yet not: {doc}", broken=text.__name__)
    return None
