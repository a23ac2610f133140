"""Many runs of an adapter in lockstep with a model, up to the first divergence, which is then made small.

Runs come in rounds. Within a round the weights of the drawing stand still, so that Hypothesis may repeat and shrink
what it drew; between rounds they follow the coverage. All that is random comes from one seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from hypothesis import HealthCheck, Phase, Verbosity, given, settings, strategies
from hypothesis import seed as seeded
from hypothesis.errors import HypothesisException

from ...model.core.errors import BadInput
from ...model.core.ground import System
from ...model.explore.result import Verdict
from ...traces.shrink import minimize
from ..deadline import Deadline, OutOfTime
from .adapter import Adapter
from .binding import Binding
from .coverage import Coverage
from .divergence import Sort
from .expect import Try
from .faults import Kind
from .generate import BITS, Chooser, DrawnSource, SeededSource
from .goals import Goals
from .play import Played, play, renumbered, repeat, without_fault
from .space import Space

ROUND: Final = 25
"""Examples of one round."""

SHRINKS: Final = 300
"""So often Hypothesis may run a failing example again to make it smaller; delta debugging does the rest."""

DIRECT: Final = 200
"""So many shortest paths are tried in the place of a run that was made small."""

_DIGITS: Final = 0xF0000
"""The first of 256 characters that stand for the values of a byte: of a private plane, in no source that is read."""

Drawing = Literal["hypothesis", "random"]

OnProgress = Callable[[int, int, str], None]
"""Told how many examples are done, of how many, and what is going on."""


@dataclass(frozen=True)
class Plan:
    """How much to try. ``examples`` runs of up to ``steps`` tries; ``max_seconds``: None for no limit.

    ``shrink``: whether Hypothesis makes a failing example smaller before delta debugging does. Without it what is left
    is 1-minimal too, but may have a step more; it is there in a third of the time.

    ``seconds``: go on for so long, instead of for so many examples. The clock says when to stop and nothing else: the
    runs are those of a plan with more examples and no clock.
    """

    examples: int = 100
    steps: int = 50
    seed: int = 0
    faults: Collection[Kind] = frozenset(Kind)
    draw: Drawing = "hypothesis"
    invariants: frozenset[str] | None = None
    max_seconds: float | None = None
    shrink: bool = True
    seconds: float | None = None
    shrink_until: Deadline | None = None
    """The end of shrinking; None: the end of ``seconds`` or ``max_seconds``."""


@dataclass(frozen=True)
class Conformance:
    """The answer. ``failure``: the smallest run that ends in a divergence, ``found``: how many steps the first had.

    ``repeatable``: whether that run ended in the same way each time, None if there was no time to repeat it; the run of
    a system that answers differently in a repetition is not shrunk. ``minimal``: whether shrinking ended by itself.
    ``faults``: the selected kinds that the adapter can inject.
    """

    verdict: Verdict
    reason: str | None
    space: Space
    coverage: Coverage
    examples: int
    faults: tuple[Kind, ...]
    seconds: float
    failure: Played | None = None
    found: int = 0
    repeatable: bool | None = True
    minimal: bool = True


def drawn_numbers() -> strategies.SearchStrategy[int]:
    """Numbers of ``BITS`` bits, evenly drawn by Hypothesis, that depend on the seed alone and shrink towards zero.

    One in twenty integers, bytes or strings that Hypothesis draws is a constant in the source of some local module that
    the process has imported, if one fits: a seed would give other runs after other imports, or once an adapter's file
    has changed. None fits where a number is a string of characters that nobody writes. Nothing is hill-climbed then
    (``Phase.target``); rounds that were climbed met fewer states than others, and no defect sooner.
    """
    size = BITS // 8
    digits = strategies.characters(min_codepoint=_DIGITS, max_codepoint=_DIGITS + 0xFF)
    return strategies.text(digits, min_size=size, max_size=size).map(_number)


def _number(digits: str) -> int:
    return int.from_bytes(bytes(ord(digit) - _DIGITS for digit in digits), "big")


class _FoundError(Exception):
    """Tells Hypothesis that an example fails."""


class _Stop(BaseException):
    """Leaves Hypothesis at once: no failure of an example, so nothing to shrink. ``error``: what to raise instead."""

    def __init__(self, error: BadInput | None = None) -> None:
        super().__init__()
        self.error = error


def conform(
    adapter: Adapter,
    system: System,
    binding: Binding,
    plan: Plan,
    on_progress: OnProgress | None = None,
    goals: Goals | None = None,
    on_found: Callable[[Played], None] | None = None,
) -> Conformance:
    """Drive an adapter in lockstep with a system. Raises BadInput where the adapter does.

    ``on_found`` receives the first failing run, before it is shrunk.

    ``goals`` of this very system and binding, where they are at hand, save exploring it again; their space is used, and
    so are its invariants.
    """
    start = time.perf_counter()
    planned = goals or Goals(Space(system, binding, plan.invariants))
    return _Runner(adapter, planned, plan, start, on_progress, on_found).run()


def refuse_impossible(adapter: Adapter, space: Space, wanted: Collection[Kind], where: str) -> None:
    """Raise BadInput for a fault that was named and would never be drawn; ``where`` names it."""
    able = [kind for kind in Kind if kind in adapter.faults]
    mend = f"choose of {', '.join(kind.value for kind in able)}" if able else "leave it out"
    for kind in Kind:
        if kind in wanted and kind not in able:
            raise BadInput(f"{adapter.name} has no fault {kind.value!r}", where, mend)
    if Kind.CRASH in wanted and not space.crashes:
        variant = space.system.traced.variant.name
        raise BadInput(f"nothing crashes in {variant}", f"{where} crash", "choose a variant with restarts")


class _Runner:
    """One call of ``conform``."""

    def __init__(
        self,
        adapter: Adapter,
        goals: Goals,
        plan: Plan,
        start: float,
        on_progress: OnProgress | None,
        on_found: Callable[[Played], None] | None,
    ) -> None:
        self.adapter = adapter
        self.plan = plan
        self.goals = goals
        self.space = goals.space
        self.coverage = Coverage(self.space)
        wanted = [kind for kind in Kind if kind in plan.faults and kind in adapter.faults]
        self.faults = tuple(kind for kind in wanted if kind is not Kind.CRASH or self.space.crashes)
        self.on_progress = on_progress or (lambda _done, _of, _what: None)
        self.on_found = on_found or (lambda _played: None)
        self.start = start
        self.drawing = Deadline(None if plan.max_seconds is None else start + plan.max_seconds)
        shrinking = plan.shrink_until
        if shrinking is None:
            shrinking = self.drawing if plan.seconds is None else Deadline(start + plan.seconds)
        self.shrinking = shrinking
        self.examples = 0
        self.shrinks = 0
        self.best: Played | None = None
        self.first: Played | None = None

    def run(self) -> Conformance:
        """Round after round."""
        number = 0
        try:
            while self._wants_more() and self.best is None:
                size = ROUND if self.plan.seconds is not None else min(ROUND, self.plan.examples - self.examples)
                seed = (self.plan.seed * 1_000_003 + number) & 0xFFFFFFFF
                chooser = Chooser(self.space, self.coverage, self.faults, self.goals)
                if self.plan.draw == "hypothesis":
                    self._drawn(chooser, seed, size)
                else:
                    self._random(chooser, seed, size)
                self.coverage.end_round()
                number += 1
        except _Stop as stopped:
            if stopped.error is not None:
                raise stopped.error from None
            self.coverage.end_round()
        return self._answer()

    def _wants_more(self) -> bool:
        return self.plan.seconds is not None or self.examples < self.plan.examples

    def _play(self, chooser: Chooser, source: DrawnSource | SeededSource, seed: int) -> Played:
        if self.best is not None:
            self.shrinks += 1
            if self.shrinks > SHRINKS:
                raise _Stop
        else:
            self.examples += 1
            self.on_progress(self.examples, self.plan.examples, f"{self.coverage.steps:,} steps")
        until = self.drawing if self.best is None else self.shrinking
        try:
            played = play(self.space, self.adapter, seed, chooser, source, self.plan.steps, self.coverage, until)
        except BadInput as error:
            raise _Stop(error) from None
        except OutOfTime:
            raise _Stop from None
        if played.divergence is not None:
            # Repetitions that shrink the run do not count as coverage.
            self.coverage.frozen = True
            if self.first is None:
                self.first = played
                self.on_found(played)
            hung = played.divergence.sort is Sort.HUNG
            # A run that hangs while another one is shrunk is not that divergence.
            if self.best is None or (not hung and len(played.history) < len(self.best.history)):
                self.best = played
                self.on_progress(self.examples, self.plan.examples, f"shrinking, {len(played.tries)} steps")
            if hung:
                # Each time that it is repeated takes the whole time limit again.
                raise _Stop
        time_over = self.plan.seconds is not None and time.perf_counter() - self.start > self.plan.seconds
        if time_over and self.best is None:
            raise _Stop
        if (self.drawing if self.best is None else self.shrinking).has_passed:
            # Not before an example: Hypothesis knows how many numbers each one took.
            raise _Stop
        return played

    def _random(self, chooser: Chooser, seed: int, size: int) -> None:
        for number in range(size):
            if self._play(chooser, SeededSource(seed * 1009 + number), seed).divergence is not None:
                return

    def _drawn(self, chooser: Chooser, seed: int, size: int) -> None:
        phases = (Phase.generate, Phase.shrink) if self.plan.shrink else (Phase.generate,)
        numbers = drawn_numbers()

        # Not handed over as the example's value: Hypothesis would print the whole run.
        latest: list[Played] = []

        @strategies.composite
        def runs(draw: strategies.DrawFn) -> None:
            latest[:] = [self._play(chooser, DrawnSource(lambda: draw(numbers)), seed)]

        @seeded(seed)
        @settings(
            max_examples=size,
            phases=phases,
            database=None,
            deadline=None,
            derandomize=False,
            report_multiple_bugs=False,
            print_blob=False,
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )
        @given(runs())
        def example(_run: None) -> None:
            (played,) = latest
            if played.divergence is not None:
                raise _FoundError

        try:
            example()
        except _FoundError:
            return
        except HypothesisException:
            # Flaky: the example did not fail again. It has been kept, and _smallest tells how it does.
            if self.best is not None:
                return
            # An example that the budget cuts short draws fewer numbers than an earlier one with the same beginning,
            # and Hypothesis reports that as flaky before _Stop arrives here.
            if self.drawing.has_passed:
                raise _Stop from None
            raise

    def _answer(self) -> Conformance:
        reason, verdict = None, Verdict.HOLDS
        if self.best is not None:
            verdict = Verdict.VIOLATED
        elif self.plan.seconds is not None and not self.coverage.steps:
            verdict, reason = Verdict.UNKNOWN, f"no step was over within {self.plan.seconds:g} s"
        elif self._wants_more() and self.plan.seconds is None:
            verdict = Verdict.UNKNOWN
            reason = f"{self.plan.max_seconds:g} s ran out after {self.examples} of {self.plan.examples} examples"
        elif not self.coverage.cells:
            verdict, reason = Verdict.UNKNOWN, "the adapter showed no cell at all, so nothing was compared"
        elif not self.coverage.steps:
            verdict, reason = Verdict.UNKNOWN, "no step was tried, so that nothing but the start was compared"
        failure, repeatable, minimal = self._smallest()
        return Conformance(
            verdict,
            reason,
            self.space,
            self.coverage,
            self.examples,
            self.faults,
            time.perf_counter() - self.start,
            failure,
            len(self.first.tries) if self.first is not None else 0,
            repeatable,
            minimal,
        )

    def _direct(self, tries: Sequence[Try]) -> Iterator[tuple[Try, ...]]:
        """The last try's action after shortest paths of the model to where it can be tried, the nearest first.

        A run without which nothing can be left out may still be a roundabout way.
        """
        if not tries or tries[-1].call is None:
            # A system that parts from the model at the start needs no step at all.
            return
        last = tries[-1]
        assert last.call is not None
        action, crashes = last.call[0], self.space.crashes
        places = [place for kind in self.goals.steps.get(action, {}).values() for place in kind]
        places += [place for pair, kept in self.goals.refusals.items() if pair[0] == action for place in kept]
        for number, call in sorted(places)[:DIRECT]:
            before = (Try(each) for each in self.goals.path(number) if each[0] not in crashes)
            yield (*before, Try(call, last.fault))

    def _repeat(self, tries: Sequence[Try]) -> Played:
        """Repeat the failing run with these tries. Raises OutOfTime."""
        assert self.best is not None
        self.shrinking.check()
        return repeat(self.space, self.adapter, self.best.seed, tries, self.shrinking)

    def _smallest(self) -> tuple[Played | None, bool | None, bool]:
        """The failing run, 1-minimal; whether it fails whenever it is repeated; whether shrinking came to its end."""
        best = self.best
        if best is None:
            return None, True, True
        latest: list[Played] = []

        def failing(tries: Sequence[Try]) -> Sequence[Try] | None:
            played = self._repeat(tries)
            if played.divergence is None or played.divergence.sort is Sort.HUNG:
                return None
            latest[:] = [played]
            return played.tries

        try:
            hung = best.divergence is not None and best.divergence.sort is Sort.HUNG
            return (*self._shrunk(best, failing, latest), not hung)
        except OutOfTime:
            # The smallest run so far has failed in a repetition already, unless there was no time at all.
            return (latest[0], True, False) if latest else (best, None, False)

    def _shrunk(
        self, best: Played, failing: Callable[[Sequence[Try]], Sequence[Try] | None], latest: Sequence[Played]
    ) -> tuple[Played, bool]:
        """The failing run, 1-minimal, and whether it fails whenever it is repeated. Raises OutOfTime."""
        if best.divergence is not None and best.divergence.sort is Sort.HUNG:
            return best, _ends_alike(best, self._repeat(best.tries))
        try:
            least = minimize(best.tries, failing, simpler=without_fault, rewritten=partial(renumbered, self.space))
        except ValueError:
            return best, False
        for direct in self._direct(least):
            if len(direct) < len(least):
                shorter = failing(direct)
                if shorter is not None:
                    least = minimize(shorter, failing, simpler=without_fault, rewritten=partial(renumbered, self.space))
                    break
        again = self._repeat(least)
        if again.divergence is None:
            return latest[0], False
        before = latest[0] if latest[0].tries == tuple(least) else self._repeat(least)
        return again, again.tries == tuple(least) and _ends_alike(before, again)


def _ends_alike(before: Played, again: Played) -> bool:
    """Whether the same was asked, and the two parted from the model in the same way."""
    if before.divergence is None or again.divergence is None or before.tries != again.tries:
        return False
    return before.divergence.is_like(again.divergence)
