"""A task: something to show, what must come out, and how to find out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...model.explore.result import OnProgress, Verdict
from ...traces.report.beside import Beside
from ...traces.report.obligation import Obligation
from ...traces.run_report import Story
from ...traces.run_report import Verdict as Word


@dataclass(frozen=True)
class Outcome:
    """How a task went. ``count`` is in ``unit``; ``detail`` is one line for the report."""

    verdict: Verdict
    detail: str
    count: int
    unit: str
    story: Story | None = None
    beside: Beside | None = None
    unfinished: bool = False
    """Whether a limit was reached before an answer."""


@dataclass(frozen=True)
class Task:
    """One obligation to be. ``expected`` is VIOLATED for a must-fail twin.

    An ``optional`` task can only add a violation: if it ends ``unknown``, the overall verdict stays.
    """

    name: str
    group: str
    run: Callable[[OnProgress], Outcome]
    expected: Verdict = Verdict.HOLDS
    optional: bool = False


def word(verdict: Verdict) -> Word:
    """The verdict as the presenters write it."""
    words: dict[Verdict, Word] = {
        Verdict.HOLDS: "holds",
        Verdict.VIOLATED: "violated",
        Verdict.UNKNOWN: "unknown",
    }
    return words[verdict]


def unknown(detail: str) -> Outcome:
    """Nothing was found out, and why."""
    return Outcome(Verdict.UNKNOWN, detail, 0, "states")


def obligation_of(task: Task, outcome: Outcome, seconds: float) -> Obligation:
    """A task and how it went, as it is reported."""
    return Obligation(
        name=task.name,
        group=task.group,
        verdict=word(outcome.verdict),
        expected=word(task.expected),
        detail=outcome.detail,
        count=outcome.count,
        unit=outcome.unit,
        seconds=seconds,
        story=outcome.story,
        beside=outcome.beside,
        optional=task.optional,
        unfinished=outcome.unfinished,
    )


def carry_out(tasks: Iterable[Task], on_task: Callable[[Task], OnProgress]) -> list[Obligation]:
    """Run tasks in order. ``on_task`` is told of each before it starts, and gives what its progress is told to."""
    done: list[Obligation] = []
    for task in tasks:
        told = on_task(task)
        start = time.perf_counter()
        outcome = task.run(told)
        done.append(obligation_of(task, outcome, time.perf_counter() - start))
    return done
