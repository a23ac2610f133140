"""Tasks that wait: for the store, for another broker, for a time. A task is a generator that yields what it waits for.

Between two yields it runs to its end like any event of the broker; each yield may be the last before a crash. A task
that was stopped hears of nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..replica.remote import REMOTE_TIMER
from ..wire.messages import Request
from .errors import RemoteStorageError
from .jobs import Job, Jobs

if TYPE_CHECKING:
    from ..replica.partition import Partition


class Call(NamedTuple):
    """Wait for what ``work`` gives, which asks the store. What it raises is raised in the task."""

    work: Callable[[], Any]


class Ask(NamedTuple):
    """Wait for another broker's answer; ``None`` where none has come for ``request_timeout_ms``."""

    destination: int
    body: Request


class Pause(NamedTuple):
    """Wait for so many milliseconds."""

    milliseconds: int


Steps = Generator[Call | Ask | Pause, Any, Any]


class _Task:
    """A task that runs, and what it waits for: a job, or an answer or time until ``deadline``."""

    __slots__ = ("correlation", "deadline", "job", "steps")

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.job: Job | None = None
        self.correlation: int | None = None
        self.deadline: int | None = None

    def due(self) -> int | None:
        """When to look at it."""
        return self.job.due() if self.job is not None else self.deadline


class Tasks:
    """The tasks of one partition, by name. Their timer is ``("remote", partition)``."""

    def __init__(self, partition: Partition, jobs: Jobs) -> None:
        self._partition = partition
        self._runtime = partition.runtime
        self._jobs = jobs
        self._tasks: dict[str, _Task] = {}
        self._number = 0

    def names(self) -> list[str]:
        """Those that run, in the order in which they were started."""
        return list(self._tasks)

    def start(self, name: str, steps: Steps) -> None:
        """Run a task, in place of one that has the name."""
        self.stop(name)
        task = self._tasks[name] = _Task(steps)
        self._go_on(name, task, lambda: task.steps.send(None))

    def start_another(self, name: str, steps: Steps) -> None:
        """Run a task beside those of this name."""
        self._number += 1
        self.start(f"{name}-{self._number}", steps)

    def stop(self, name: str) -> None:
        """Let a task hear of nothing any more; nothing where there is none."""
        task = self._tasks.pop(name, None)
        if task is not None:
            self._runtime.forget(task.correlation)
            task.steps.close()
            self._set_timer()

    def stop_all(self) -> None:
        """Stop every task."""
        for name in self.names():
            self.stop(name)

    def fire(self) -> None:
        """Go on with the tasks whose time has come. Raises like the tasks."""
        now = self._runtime.clock.now()
        for name, task in list(self._tasks.items()):
            if self._tasks.get(name) is not task:
                continue
            if task.job is not None:
                if task.job.done():
                    self._finished(name, task, task.job)
            elif task.deadline is not None and task.deadline <= now:
                self._runtime.forget(task.correlation)
                self._go_on(name, task, partial(task.steps.send, None))
        self._set_timer()

    def _finished(self, name: str, task: _Task, job: Job) -> None:
        try:
            result = job.result()
        except RemoteStorageError as failure:
            error = failure  # the name of an except clause ends with it
            self._go_on(name, task, lambda: task.steps.throw(error))
        else:
            self._go_on(name, task, lambda: task.steps.send(result))

    def _answered(self, name: str, task: _Task, body: Any) -> None:
        if self._tasks.get(name) is task:
            with self._partition.storage():
                self._go_on(name, task, lambda: task.steps.send(body))

    def _go_on(self, name: str, task: _Task, resume: Callable[[], Any]) -> None:
        task.job = task.correlation = task.deadline = None
        try:
            effect = resume()
        except StopIteration:
            if self._tasks.get(name) is task:
                del self._tasks[name]
            self._set_timer()
            return
        except BaseException:
            self._tasks.pop(name, None)
            raise
        now = self._runtime.clock.now()
        if isinstance(effect, Call):
            task.job = self._jobs.submit(effect.work)
        elif isinstance(effect, Ask):
            task.deadline = now + self._runtime.config.request_timeout_ms
            task.correlation = self._runtime.request(
                effect.destination, effect.body, lambda body: self._answered(name, task, body)
            )
        else:
            task.deadline = now + effect.milliseconds
        self._set_timer()

    def _set_timer(self) -> None:
        key = REMOTE_TIMER, self._partition.key
        due = [at for task in self._tasks.values() if (at := task.due()) is not None]
        if due:
            self._runtime.timers.set(key, min(due))
        else:
            self._runtime.timers.cancel(key)
