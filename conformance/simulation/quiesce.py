"""What a system comes to in the end, when nothing goes wrong any more.

A system may do less than its model allows, at any time, and no look at one state can tell that it will do so for ever:
a follower that never asks again, a leader that takes nobody back. So now and then a run ends in peace. Cuts heal, disks
work, nodes start; messages arrive in the order in which they were sent, timers fire when they are due, time passes.
When nothing that can be seen has moved for a while, what the binding says of a settled system must hold
(``Binding.settles``: liveness, of systems under fair conditions). Then the run may go on.

Nobody asks for anything meanwhile, or clients ask once more when it is quiet: a follower that is stuck has all that
there is until there is more.

A calm is less: messages arrive, what is due is done and time passes, for so many rounds, and that is all. Nothing is
mended and nothing is asked of what comes of it. A run that is made small has one in place of many events of which
none was chosen for its own sake: somebody is elected, everybody catches up.

Not everybody need be well: a system that stands one failure must come to the same with one node down, cut off, or
without its disk for good. So there is peace around one node, of which nothing is asked then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from ...model.core.domains import all_replicas
from ...model.interpret.reference import IntState
from ...traces.format import Value
from .divergence import Divergence, Sort
from .events import Event, EventKind
from .machine import Machine
from .system import EnabledEvent

ROUNDS: Final = 60
"""After so many rounds a system that still moves is left alone."""

WAVES: Final = 3
"""So often what is in flight arrives before any time passes: messages are quick beside the patience of who waits."""

MENDED: Final = "mended"
"""The end of a disk's trouble."""
ASKS: Final = ("asks", 1)
"""An argument of a peace: clients ask once more in it."""
ROUNDS_OF_CALM: Final = "rounds"
"""The argument of a calm."""
_PLACES: Final = ("to", "replica", "node")
"""The arguments of a call that say at whom."""
_ENDS: Final = (EventKind.HEAL, EventKind.START)


def settle(machine: Machine, peace: Event) -> Divergence | None:
    """Let a run come to peace; but for ``peace.node``, if any, everybody is well. Its events are followed like any.

    Who is well when peace begins stays so, and the same is asked of it. Raises Spent.
    """
    if peace.node is not None and peace.node not in unwell(machine):
        peace = replace(peace, node=None)
    machine.begin_peace(peace)
    found = _quiet(machine, peace)
    if found is None and ASKS in peace.args:
        for event in _asked(machine.pending(), machine.ways.binding.asks):
            if found is None and machine.can(event):
                found = machine.perform(event)
        found = found or _quiet(machine, peace)
    if found is None:
        machine.end_peace()
    return found or machine.fallen


def calm(machine: Machine, event: Event) -> Divergence | None:
    """Let everything take its course for ``rounds`` rounds (an argument). Its events are followed like any.

    Troubles stay. Raises Spent.
    """
    machine.begin_peace(event)
    for number in range(int(event.arg(ROUNDS_OF_CALM))):
        for each in _course(machine, number):
            found = machine.perform(each)
            if found is not None:
                return found
    machine.end_peace()
    return machine.fallen


def _quiet(machine: Machine, peace: Event) -> Divergence | None:
    """Until nothing moves, and then what must have come; nothing is said of a system that goes on moving."""
    quiet = 0
    for number in range(ROUNDS):
        before = _settled(machine)
        for event in _round(machine, peace.node, number):
            found = machine.perform(event)
            if found is not None:
                return found
        quiet = quiet + 1 if _settled(machine) == before else 0
        if quiet:
            # What has come need not be waited for.
            found = _judge(machine, peace, lame=_is_lame(machine, peace.node))
            if found is None or quiet >= machine.ways.binding.quiet:
                return found
    return None


def _settled(machine: Machine) -> dict[str, Value]:
    """What is seen, but for what never comes to rest."""
    restless = machine.ways.binding.restless
    observed = machine.history[-1].observed or {}
    return {name: value for name, value in observed.items() if name.partition("[")[0] not in restless}


def _asked(pending: Sequence[EnabledEvent], names: Collection[str]) -> list[Event]:
    """One call of each of these names at each node."""
    found: dict[tuple[str, tuple[object, ...]], Event] = {}
    for each in pending:
        if each.event.what is EventKind.CALL and each.event.name in names:
            place = (each.event.node, *(value for name, value in each.event.args if name in _PLACES))
            found.setdefault((each.event.name, place), each.event)
    return list(found.values())


def unwell(machine: Machine) -> list[int]:
    """The replicas that are down, cut off or without a disk: the end of it is pending."""
    replicas = range(machine.ways.system.constants.get("replicas", 0))
    ends = {each.event.node for each in machine.pending() if _is_end(each.event)}
    return [node for node in replicas if node in ends]


def _is_lame(machine: Machine, node: int | None) -> bool:
    """Whether a node is up and can be reached, by some at least: its disk fails, or the way to one party is cut.

    Until it notices it may do all that it should.
    """
    if node is None or node in machine.follower.down:
        return False  # one that has given up is no more than one whose process has ended
    ends = [each.event for each in machine.pending() if each.event.node == node]
    ends = [event for event in ends if _is_end(event)]
    return bool(ends) and all(
        event.what is EventKind.DISK or (event.what is EventKind.HEAL and event.name) for event in ends
    )


def _round(machine: Machine, but: int | None, number: int) -> Iterator[Event]:
    """Whatever is over, all that is in flight, and what is sent in answer; then what is due, one by one, and time.

    By turns the first is due first, and the last: time passes by leaps, and who is asked after another all the time
    could for ever seem to be late.
    """
    for event in _ends(machine.pending(), but):
        if machine.can(event):
            yield event
    yield from _course(machine, number)


def _course(machine: Machine, number: int) -> Iterator[Event]:
    """The same, and nothing is over."""
    yield from _arriving(machine)
    for event in [each.event for each in machine.pending() if each.due][:: -1 if number % 2 else 1]:
        if machine.can(event):
            yield event
            # Before anybody else has waited for too long: else all stand for election at once, again and again.
            yield from _arriving(machine)
    times = [each.event for each in machine.pending() if each.event.what is EventKind.TIME]
    if times:
        yield max(times, key=lambda event: int(event.arg("ms")))


def _arriving(machine: Machine) -> Iterator[Event]:
    """All that is in flight, and what is sent in answer."""
    for _ in range(WAVES):
        flights = {each.message for each in machine.pending() if each.message is not None}
        while flights:
            first = next((each for each in machine.pending() if each.message in flights), None)
            if first is None:
                break
            flights.discard(first.message)
            yield first.event


def _is_end(event: Event) -> bool:
    return event.what in _ENDS or (event.what is EventKind.DISK and event.name == MENDED)


def _ends(pending: Sequence[EnabledEvent], but: int | None) -> list[Event]:
    """What ends the troubles of all nodes but one, disks first."""
    ends = [each.event for each in pending if _is_end(each.event) and (but is None or each.event.node != but)]
    return sorted(ends, key=lambda event: event.what is not EventKind.DISK)


def _judge(machine: Machine, peace: Event, *, lame: bool) -> Divergence | None:
    """What a settled system must have come to; in none of the states that explain what is seen it has.

    ``lame``: with who is not well, or without.
    """
    if machine.fallen is not None:
        # A system that raises or hangs has not settled.
        return machine.fallen
    ways, threads = machine.ways, machine.follower.threads
    k, system = ways.space.reference.k, ways.system
    everybody = all_replicas(system.constants) if "replicas" in system.constants else 0
    wells = [everybody if peace.node is None else everybody & ~(1 << peace.node), *([everybody] if lame else [])]
    for text in ways.binding.settles:
        if not any(text(k, IntState(system, thread.state), well) for thread in threads for well in wells):
            doc = " ".join((text.__doc__ or text.__name__).strip().split("\n\n")[0].split())
            around = "" if peace.node is None else f" (but at {peace.node})"
            detail = f"nothing moves any more{around}, and yet not: {doc}"
            return Divergence(Sort.NEVER, peace, detail, broken=text.__name__)
    return machine.unsettled(peace)
