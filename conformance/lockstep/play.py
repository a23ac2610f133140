"""Runs of the lockstep machine: drawn as it goes, or a given list of tries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...model.core.terms import Sort
from ..deadline import NEVER, Deadline
from .adapter import Adapter
from .coverage import Coverage
from .divergence import Done, LockstepDivergence
from .expect import Try
from .generate import Chooser, Source
from .machine import Machine
from .space import Space

MAX_IDLE: Final = 10
"""So many tries are made where the model can go no further, before a run ends."""


@dataclass(frozen=True, repr=False)
class Played:
    """A run that is over. ``tries`` were carried out; the last one led to the divergence, if there is one."""

    seed: int
    history: tuple[Done, ...]
    divergence: LockstepDivergence | None

    @property
    def tries(self) -> tuple[Try, ...]:
        """What was asked, without the first look at the initial state."""
        return tuple(done.asked for done in self.history if done.asked != Try(None))


def play(
    space: Space,
    adapter: Adapter,
    seed: int,
    chooser: Chooser,
    source: Source,
    steps: int,
    coverage: Coverage,
    deadline: Deadline = NEVER,
) -> Played:
    """A drawn run of at most so many tries. Raises OutOfTime after the deadline."""
    machine = Machine(space, adapter, seed, coverage)
    found = machine.start()
    idle = 0
    chooser.begin(source)
    while found is None and len(machine.history) <= steps and idle < MAX_IDLE:
        deadline.check()
        asked = chooser.next(machine, source)
        if asked is None:
            break
        found = machine.perform(asked)
        idle = idle + 1 if chooser.stuck(machine.node) else 0
    return Played(seed, tuple(machine.history), found)


def repeat(space: Space, adapter: Adapter, seed: int, tries: Iterable[Try], deadline: Deadline = NEVER) -> Played:
    """Run exactly these tries, but for those that make no sense where they would come, up to a divergence.

    Raises OutOfTime after the deadline.
    """
    machine = Machine(space, adapter, seed)
    found = machine.start()
    for asked in tries:
        if found is not None:
            break
        deadline.check()
        if not machine.skips(asked):
            found = machine.perform(asked)
    return Played(seed, tuple(machine.history), found)


def without_fault(asked: Try) -> Sequence[Try]:
    """The same action with nothing going wrong."""
    return (Try(asked.call),) if asked.call is not None and asked.fault is not None else ()


def renumbered(space: Space, tries: Sequence[Try]) -> Iterator[tuple[Try, ...]]:
    """The sequence without one try, and with what is numbered from the start (epochs, offsets) one less after it.

    Without an election, those after it have a smaller epoch, and so have the requests that they send.
    """
    numbered = {
        action.name: {name: i.name for name, i in action.params.items() if i.sort is Sort.INT and not i.names}
        for action in space.system.traced.actions
    }
    domains = dict.fromkeys(domain for params in numbered.values() for domain in params.values())

    def lower(asked: Try, domain: str) -> Try:
        if asked.call is None:
            return asked
        action, params = asked.call
        values = ((name, max(0, n - 1) if numbered[action].get(name) == domain else n) for name, n in params)
        return Try((action, tuple(values)), asked.fault)

    for index in range(len(tries)):
        for domain in domains:
            yield (*tries[:index], *(lower(each, domain) for each in tries[index + 1 :]))
