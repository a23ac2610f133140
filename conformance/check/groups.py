"""The models' obligations, group by group, in processes of their own: one for each core.

A group is the smallest piece, as its obligations may share what they found (the graph of a liveness check). Processes
begin from nothing, so that an answer is the same as in a process that runs everything: they import the registry anew,
and are told names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context

from ...model.core.registry import REGISTRY
from ...model.explore.result import Progress
from ...traces.report.obligation import Obligation
from ..processes import cores, end_with_parent, interrupts_ignored
from .builtin import plan_tasks
from .task import Task, carry_out, obligation_of, unknown

OnGroup = Callable[[str, int], None]
"""Told of each group that is over, with its number of obligations."""


@dataclass(frozen=True)
class Group:
    """The obligations of one protocol that are of one kind."""

    protocol: str
    name: str

    def tasks(self) -> list[Task]:
        """In the order of the report. KeyError for a protocol that is not registered."""
        return [task for task in plan_tasks(REGISTRY[self.protocol]) if task.group == self.name]

    def answered(self) -> list[Obligation]:
        """What comes out, found in this process."""
        return carry_out(self.tasks(), lambda _task: _nothing)


def _nothing(_at: Progress) -> None:
    """Nobody looks on in a process that works for another."""


def all_groups() -> list[Group]:
    """Those of every registered protocol, in the order of the report."""
    named = ((name, task.group) for name in REGISTRY for task in plan_tasks(REGISTRY[name]))
    return [Group(*each) for each in dict.fromkeys(named)]


class Answers:
    """Groups that are being answered."""

    def __init__(self, groups: Sequence[Group], waiting: Sequence[Future[list[Obligation]]]) -> None:
        self._groups = list(zip(groups, waiting, strict=True))

    def wait(self, on_group: OnGroup) -> list[Obligation]:
        """All obligations, in the order of the groups. What a process took along when it was ended is ``unknown``."""
        names = {waiting: group.name for group, waiting in self._groups}
        for waiting in as_completed(names):
            on_group(names[waiting], 0 if isinstance(waiting.exception(), BrokenProcessPool) else len(waiting.result()))
        return [each for group, waiting in self._groups for each in _found(group, waiting)]


def _found(group: Group, waiting: Future[list[Obligation]]) -> list[Obligation]:
    try:
        return waiting.result()
    except BrokenProcessPool:
        why = "its process was ended from outside, as the system does where memory runs out"
        lost = replace(unknown(why), unfinished=True)
        return [obligation_of(task, lost, 0.0) for task in group.tasks()]


@contextmanager
def answering(groups: Sequence[Group], processes: int | None = None) -> Iterator[Answers]:
    """Begin to answer; whatever goes on when the block is left is ended.

    ``processes``: so many at once; by default as many as there are cores that this process may use.
    """
    # Started anew, not forked: here Spark's threads may run, and z3 and NumPy have theirs.
    context = get_context("spawn")
    pool = ProcessPoolExecutor(processes or cores(), context, end_with_parent)
    try:
        # Proofs first, which take longest: what is begun last is waited for alone.
        order = sorted(groups, key=lambda group: "proofs" not in group.name)
        with interrupts_ignored():
            begun = {group: pool.submit(group.answered) for group in order}
        yield Answers(groups, [begun[group] for group in groups])
    except BaseException:
        for child in active_children():
            child.kill()
        # Waited for, so that its semaphores are put away: whoever is interrupted ends without asking anybody else.
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
