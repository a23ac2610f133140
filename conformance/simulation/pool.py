"""Runs in several processes at once. What comes out depends on no number of processes, and on no machine.

What a run draws depends on what the runs before it have met (``coverage_feedback.py``), so that each would have to wait
for the last. Instead a run knows of those alone that lie ``AHEAD`` before it. These are over when it begins, in
whichever process, and all processes take in what they have learned in the order of the runs. With one process it is the
same.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Final, Protocol

from ...model.core.ctrl_c import CtrlC, resend_if_swallowed
from ...model.core.errors import BadInput
from ..deadline import NEVER, Deadline, OutOfTime
from ..executed import Executed
from ..lockstep.watch import HUNG_STATUS
from ..processes import end_with_parent, interrupts_ignored
from ..system_closer import SystemCloser
from .candidate import Spent
from .coverage import SimulationCoverage
from .coverage_feedback import CoverageFeedback, Learned
from .divergence import Divergence
from .machine import PerformedEvent
from .play import SimulationPlan, play, run_seed
from .sampled import Sampled
from .shrink import RunRecord
from .system import SimulatedSystem
from .transitions import Transitions
from .watch import WatchedSystem

AHEAD: Final = 16
"""So many runs may go on at once: none of them knows of the others."""
_GRACE: Final = 5.0
"""Seconds in which a process that is not needed any more puts away what it has begun."""


@dataclass(frozen=True)
class Played:
    """What came of a run: its history where it ended in a divergence, and what all runs together are to know.

    ``spent``: why it was given up, if it was. ``lines``: those of the source that were first executed in it.
    """

    number: int
    seed: int
    history: tuple[PerformedEvent, ...]
    divergence: Divergence | None
    spent: str | None
    met: SimulationCoverage
    learned: Learned
    lines: tuple[tuple[str, int], ...]
    late: bool = False
    """The deadline passed in the midst of it."""

    def ran(self, ways: Transitions) -> RunRecord:
        """The run, at its constants; without a divergence, nothing is kept of what happened in it."""
        return RunRecord(ways, self.seed, self.history, self.divergence)


@dataclass(frozen=True)
class Stage:
    """What the runs are of. ``make``: makes a system for a process; ``executed``: what is asked of its source."""

    make: Callable[[], SimulatedSystem]
    portfolio: Sequence[Transitions]
    plan: SimulationPlan
    executed: Executed | None
    step_timeout: float


class Player:
    """Plays runs in this process. ``system``: as it is watched; ``sampled``: where in that runs are counted."""

    def __init__(self, stage: Stage, system: SimulatedSystem, sampled: Sampled | None) -> None:
        self._stage = stage
        self._known = CoverageFeedback()
        self._system = system
        self._sampled = sampled

    def play(self, number: int, news: Sequence[Learned]) -> Played:
        """Play a run, after what others have learned was taken in. Raises BadInput where the system does."""
        for learned in news:
            self._known.take(learned)
        stage, memory, met = self._stage, self._known.apart(), SimulationCoverage()
        executed = stage.executed
        lines = 0 if executed is None else len(executed.order)
        if self._sampled is not None:
            self._sampled.of_run(number)
        seed = run_seed(stage.plan.seed, number)
        history: tuple[PerformedEvent, ...] = ()
        divergence: Divergence | None = None
        spent: str | None = None
        late = False
        try:
            ways = stage.portfolio[number % len(stage.portfolio)]
            ran = play(self._system, ways, seed, stage.plan, memory, met)
            seed, divergence = ran.seed, ran.divergence
            history = () if divergence is None else tuple(map(_plain, ran.history))
        except Spent as given_up:
            spent = str(given_up)
        except OutOfTime:
            late = True
        if self._sampled is not None:
            # To make a divergence small is no run.
            self._sampled.of_run(None)
        new = () if executed is None else tuple(executed.order[lines:])
        return Played(number, seed, history, divergence, spent, met, memory.learned(self._known), new, late)


def _plain(done: PerformedEvent) -> PerformedEvent:
    """What was observed may be any mapping; what goes to another process is a dict."""
    return done if done.observed is None else replace(done, observed=dict(done.observed))


class Hand(Protocol):
    """Who plays runs. ``told``: of so many runs it knows what they learned."""

    told: int

    def begin(self, number: int, news: Sequence[Learned]) -> None:
        """Begin a run, after ``news`` was taken in."""

    def end(self) -> Played:
        """Wait until it is over. Raises BadInput where the system does."""


class Here:
    """This process: it plays when it is waited for."""

    def __init__(self, player: Player) -> None:
        self.told = 0
        self._player = player
        self._next: tuple[int, Sequence[Learned]] | None = None

    def begin(self, number: int, news: Sequence[Learned]) -> None:
        """Begin a run."""
        self._next = (number, news)

    def end(self) -> Played:
        """Wait until it is over. Raises BadInput where the system does."""
        assert self._next is not None
        return self._player.play(*self._next)


class HungProcess(Exception):
    """A call hung in a process of its own, and could not be interrupted: that process has reported it and ended."""


class Elsewhere:
    """A process of its own, which is a copy of this one and ends with it.

    As a copy it has a system of somebody's own without looking for it once more, and the steps that are compiled.
    """

    def __init__(self, stage: Stage, held: ExitStack) -> None:
        self.told = 0
        self._number = 0
        context = get_context("fork")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(stage, theirs, self.connection), daemon=True)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        with interrupts_ignored():
            self._process.start()
        theirs.close()
        held.callback(self._end)

    def _end(self) -> None:
        """Its system puts its files away, unless that takes too long."""
        self._process.terminate()
        self._process.join(_GRACE)
        self._process.kill()
        self._process.join()
        self._process.close()
        self.connection.close()

    def begin(self, number: int, news: Sequence[Learned]) -> None:
        """Begin a run."""
        self._number = number
        try:
            self.connection.send((number, news))
        except BrokenPipeError:
            raise self._gone() from None

    def end(self) -> Played:
        """Wait until it is over. Raises BadInput where the system does, and where it has ended the process."""
        try:
            found: Played | BadInput = self.connection.recv()
        except EOFError:
            raise self._gone() from None
        if isinstance(found, BadInput):
            raise found
        return found

    def _gone(self) -> BaseException:
        self._process.join()
        code = self._process.exitcode
        if code == HUNG_STATUS:
            return HungProcess()
        how = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
        return BadInput(
            f"the process that run {self._number} was in has ended ({how})",
            "the system",
            "--jobs 1 runs it in the command's own process, where a debugger can be",
        )


def _work(stage: Stage, connection: Connection, others: Connection) -> None:
    """What a process does: play what it is told to, until it is ended."""
    others.close()
    end_with_parent()
    signal.signal(signal.SIGTERM, _interrupted)
    resend_if_swallowed(signal.SIGTERM, _interrupted)
    with suppress(KeyboardInterrupt, EOFError), ExitStack() as held:
        player: Player | None = None
        while True:
            number, news = connection.recv()
            try:
                player = player or _player(stage, held)
                connection.send(player.play(number, news))
            except BadInput as error:
                connection.send(error)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """An exception that no run takes for one of its system's."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise CtrlC


def _player(stage: Stage, held: ExitStack) -> Player:
    # The parent process ends this one if a close hangs.
    closer = SystemCloser(stage.step_timeout, warn=lambda _: None)
    held.callback(closer.close, 0)
    system = closer.keep(stage.make())
    sampled = None if stage.executed is None else Sampled(system, stage.executed)
    fresh = fresh_system(stage.make, closer)
    watched = held.enter_context(WatchedSystem(sampled or system, stage.step_timeout, fresh=fresh))
    return Player(stage, watched, sampled)


def fresh_system(
    make: Callable[[], SimulatedSystem], closer: SystemCloser
) -> Callable[[SimulatedSystem], SimulatedSystem]:
    """Return the function that replaces a hung system, which may be sampled, and registers the new one."""

    def fresh(hung: SimulatedSystem) -> SimulatedSystem:
        if isinstance(hung, Sampled):
            hung.system = closer.replace(hung.system, make())
            return hung
        return closer.replace(hung, make())

    return fresh


@contextmanager
def process_pool(stage: Stage, jobs: int) -> Iterator[Sequence[Hand]]:
    """So many processes for as long as the block lasts; for one job none, as that is done in this one.

    To be entered in the main thread, before there are others: of a copy's threads there is only that.
    """
    with ExitStack() as held:
        yield [Elsewhere(stage, held) for _ in range(min(jobs, AHEAD) if jobs > 1 else 0)]


def played(hands: Sequence[Hand], goes_on: Callable[[int], bool], until: Deadline = NEVER) -> Iterator[Played]:
    """The runs in their order, each as soon as it and all before it are over. Raises BadInput as hands do.

    ``goes_on``: whether a run is to be begun. There is none after one that was not. Runs that are not over at the
    deadline are dropped.
    """
    learned: list[Learned | None] = []
    over: dict[int, Played] = {}
    idle, busy = list(hands), list[Hand]()
    upcoming, more = 0, True
    while True:
        while idle and more and upcoming <= len(learned) + AHEAD:
            more = goes_on(upcoming)
            if more:
                hand, known = idle.pop(0), max(0, upcoming - AHEAD)
                hand.begin(upcoming, [each for each in learned[hand.told : known] if each is not None])
                hand.told = known
                busy.append(hand)
                upcoming += 1
        if not busy:
            return
        for hand in _over(busy, until):
            found = hand.end()
            over[found.number] = found
            busy.remove(hand)
            idle.append(hand)
        while len(learned) in over:
            found = over.pop(len(learned))
            if found.late:
                break
            learned.append(found.learned)
            yield found
        if until.has_passed:
            # A divergence counts, even if a run before it is not over.
            yield from (over[number] for number in sorted(over) if over[number].divergence is not None)
            return
        # What all have heard is not kept: a night has a hundred thousand runs.
        for number in range(min(hand.told for hand in hands) - 1, -1, -1):
            if learned[number] is None:
                break
            learned[number] = None


def _over(busy: Sequence[Hand], until: Deadline) -> list[Hand]:
    """Those whose run is over, at least one before the deadline: this process' is when it is waited for."""
    others = [each.connection for each in busy if isinstance(each, Elsewhere)]
    ready = wait(others, until.left) if others else []
    return [each for each in busy if not isinstance(each, Elsewhere) or each.connection in ready]
