"""Who does the work: this process, or Spark's tasks; and how far they are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from ..corpus.spread import SERIAL
from ..shipping import carried
from ..spark import collected, spark_session
from ..spark_processes import end_processes
from ..text import counted
from .part import Part
from .work_unit import Question, Unit, mine_unit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

BUSY: Final = 2
"""So many tasks for each core at least, where there are as many units: the last ones to end leave little idle."""
UNITS: Final = 8
"""So many units a task at most: some seconds of work, so that progress shows."""


@dataclass(frozen=True)
class Progress:
    """How far mining is. ``seconds`` since the first task was handed out."""

    files: int
    of: int
    events: int
    violations: int
    seconds: float

    def __str__(self) -> str:
        rate = self.events / self.seconds if self.seconds else 0.0
        return (
            f"{self.files:,} of {counted(self.of, 'file')}, {counted(self.events, 'event')} ({rate:,.0f} a second), "
            f"{counted(self.violations, 'violating trace')}"
        )


OnProgress: TypeAlias = Callable[[Progress], None]


class Workers:
    """A pool of workers, as a context: ``SERIAL`` is this process, anything else a master of Spark's.

    Raises BadInput, on entry, where Spark does not start, and later where it gives up. A session that was there before
    is left running.
    """

    def __init__(self, master: str, on_progress: OnProgress | None = None) -> None:
        self._master = master
        self._told = on_progress or (lambda _progress: None)
        self._session: SparkSession | None = None
        self._own = False

    def __enter__(self) -> Workers:
        if self._master != SERIAL:
            self._own = _active() is None
            self._session = spark_session("fencepost mine", self._master)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._session is not None and self._own:
            if kind is not None and not issubclass(kind, Exception):
                # Interrupted: to stop in order would wait for tasks.
                end_processes()
            else:
                self._session.stop()

    @property
    def tasks(self) -> int:
        """How many tasks run at once."""
        return 1 if self._session is None else int(self._session.sparkContext.defaultParallelism)

    def map(self, work: Callable[[T], R], items: Sequence[T], tasks: int | None = None) -> list[R]:
        """The result for each item, in their order, by so many tasks (None: one for each item)."""
        if self._session is None or not items:
            return [work(item) for item in items]
        rdd = self._session.sparkContext.parallelize(items, tasks or len(items)).map(carried(work))
        results: list[R] = collected(rdd, lambda: None)
        return results

    def tasks_for(self, units: Sequence[Unit]) -> int:
        """How many tasks are to mine the units.

        A task costs Spark some 60 ms of work, whatever it does (20 empty ones on two cores: 0.7 s in the JVM, 0.5 s in
        Python), so each gets several units, but all cores are to be busy to the end.
        """
        rounds = max(BUSY, -(-len(units) // (UNITS * self.tasks)))
        return max(1, min(len(units), rounds * self.tasks))

    def mine(self, units: Sequence[Unit], question: Question) -> Iterator[Part]:
        """What the units give, in parts, and progress on the way."""
        watch = _Watch(units, self._told)
        if self._session is None or not units:
            for unit in units:
                part = mine_unit(unit, question)
                watch.add(_tally(unit, part))
                yield part
            return
        context = self._session.sparkContext
        counters: Any = _Counters()
        tally: Any = context.accumulator(Counter(), counters)

        def task(mine: Iterable[Unit]) -> Iterator[Part]:
            whole = Part()
            for unit in mine:
                part = mine_unit(unit, question)
                tally.add(_tally(unit, part))
                whole.merge(part)
            yield whole

        rdd = context.parallelize(units, self.tasks_for(units)).mapPartitions(carried(task))
        parts: list[Part] = collected(rdd, lambda: watch.tell(tally.value))
        watch.tell(tally.value)
        yield from parts


def _active() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _tally(unit: Unit, part: Part) -> Counter[str]:
    """What a unit adds to the progress; a path counts the units of that file."""
    return Counter({"events": part.events, "violations": part.violating, f"file {unit.file.path}": 1})


class _Counters:
    """How Spark adds up counters (its class ``AccumulatorParam``); a task that is run twice is counted once."""

    def zero(self, _value: Counter[str]) -> Counter[str]:
        """What a task begins with."""
        return Counter()

    def addInPlace(self, one: Counter[str], other: Counter[str]) -> Counter[str]:  # noqa: N802 - Spark's name
        """The sum, in place of the first."""
        one.update(other)
        return one


class _Watch:
    """From what was added up so far to progress."""

    def __init__(self, units: Sequence[Unit], told: OnProgress) -> None:
        self._units = Counter(f"file {unit.file.path}" for unit in units)
        self._told = told
        self._start = time.perf_counter()
        self._sum: Counter[str] = Counter()

    def add(self, tally: Counter[str]) -> None:
        self._sum.update(tally)
        self.tell(self._sum)

    def tell(self, tally: Counter[str]) -> None:
        files = sum(tally[name] >= count for name, count in self._units.items())
        seconds = time.perf_counter() - self._start
        self._told(Progress(files, len(self._units), tally["events"], tally["violations"], seconds))
