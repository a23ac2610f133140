"""Mining files as they arrive in a folder: Spark Structured Streaming says which are new, and the batch job mines them.

Only names stream. Each batch of new files goes through the tasks of ``job.py``, is merged into what came before, and is
written down under its number (``follow_state.py``): so the verdicts are those of the batch job over the same files, and
a restart from the checkpoint counts each event once. A file must appear whole, by a rename, as those of a corpus do.
"""

from __future__ import annotations

import logging
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from ...model.core.errors import BadInput
from ...model.core.registry import PROTOCOLS
from ..corpus.manifest import PLANTED, SOURCES, CorpusFile, files_by_footers, traces_beside
from ..corpus.place import shown_path
from ..corpus.spread import SERIAL
from ..run_report import Json
from ..spark import spark_session
from ..text import counted
from .against import variant_for
from .answer import Answer, Bug, Problem
from .follow_state import Journal, SeenFile, State
from .job import Asked, conclude, mine_files, model_for
from .part import Model
from .reachable_gap import Known, known_graph
from .repeats import Repeats, repeats_of
from .work_unit import Question
from .workers import Workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FILES: Final = 64
"""At most so many files make a batch."""

POLL_SECONDS: Final = 0.2
COMMIT_SECONDS: Final = 30.0
TRIGGER: Final = "1 second"
"""How often the folder is looked at."""

_COLUMNS: Final = "path string, modificationTime timestamp, length long, content binary"
"""Of Spark's format ``binaryFile``. Only the path is asked for, so no file is read by Spark."""


@dataclass(frozen=True)
class Following:
    """What to follow: the folder and questions of ``asked``; ``checkpoint`` is a folder for what outlives a restart.

    ``until_idle``: end when no new file has come for so many seconds; None: go on until interrupted.
    """

    asked: Asked
    checkpoint: Path
    until_idle: float | None = None


@dataclass(frozen=True)
class Batch:
    """A batch that is over: what came with it, the state after it, and the bugs that none before it had shown."""

    files: int
    events: int
    violating: int
    problems: tuple[Problem, ...]
    new: tuple[Bug, ...]
    state: State

    def __str__(self) -> str:
        state, part = self.state, self.state.part
        text = (
            f"batch {state.batch}: {_told(self.files, self.events, self.violating)}; "
            f"so far {_told(state.arrived, part.events, part.violating)}"
        )
        repeated = [("duplicate", state.duplicate), ("late", state.late), ("continued", state.continued)]
        for name, count in repeated:
            if count:
                text += f", {counted(count, f'{name} event')}"
        return text


def _told(files: int, events: int, violating: int) -> str:
    return f"{counted(files, 'file')}, {counted(events, 'event')}, {counted(violating, 'violating trace')}"


OnBatch = Callable[[Batch, Callable[[], Answer]], None]
"""Told of each batch, with a call that gives the answer so far."""


def follow(asked: Following, master: str, on_batch: OnBatch) -> Answer:
    """Mine what is in the folder and what arrives, until idle or interrupted (SIGINT, SIGTERM); returns the answer.

    A batch that is being mined is finished first; a second interrupt ends that too. Raises BadInput for a folder that
    cannot be read, a checkpoint of other work, an unknown variant, and where Spark does not start or gives up.
    """
    folder = asked.asked.corpus.absolute()
    _refuse_unreadable(folder)
    if master == SERIAL:
        raise BadInput(
            "a folder is followed by Spark", "--master serial", "name local[N], local[*] or spark://HOST:PORT"
        )
    question = asked.asked
    if question.variant is not None and not any(question.variant in each.variants for each in PROTOCOLS.values()):
        # A checkpoint is that of one variant: it is not begun for one that is not there.
        raise BadInput(f"no protocol has a variant {question.variant!r}", "--variant", "fencepost explore lists them")
    about: dict[str, Json] = {
        "folder": str(folder),
        "variant": question.variant,
        "max_skipped": question.budget.max_skipped,
        "max_frontier": question.budget.max_frontier,
        "max_states": question.max_states,
    }
    journal = Journal(asked.checkpoint, about)
    with Workers(master) as workers:
        session = spark_session("fencepost mine", master)
        follower = Follower(question, folder, journal, workers, on_batch)
        _stream(session, follower, asked.until_idle)
        return follower.answer()


def _refuse_unreadable(folder: Path) -> None:
    try:
        next(folder.iterdir(), None)
    except OSError as error:
        raise BadInput(
            f"cannot be read: {error.strerror}", shown_path(folder), "name a folder that is there, if still empty"
        ) from error


class Follower:
    """Takes in batches of new files, by their names.

    ``closed``: no batch is taken in any more; ``failure``: what ended one.
    """

    def __init__(self, asked: Asked, folder: Path, journal: Journal, workers: Workers, on_batch: OnBatch) -> None:
        self.folder = folder
        self.journal = journal
        self.gate = threading.Lock()
        self.closed = False
        self.failure: BaseException | None = None
        self._asked = asked
        self._workers = workers
        self._on_batch = on_batch
        self._known: dict[Model, Known] = {}
        self._state = journal.last()
        self._explore(self._state.part.seen)

    def answer(self) -> Answer:
        """The answer so far."""
        # Merged and told from a copy: what comes later is merged into the state's own.
        part = self._state.copy().part
        known = {model: self._known[model] for model in part.seen}
        return conclude(part, known, self._asked, self._workers, time.perf_counter() - self._state.seconds)

    def take(self, frame: DataFrame, number: int) -> None:
        """Spark's call for each batch of new names."""
        with self.gate:
            if self.closed:
                raise InterruptedError("no more batches are taken in")
            try:
                # The source may name a file more than once.
                names = {row.path.rpartition("/")[2] for row in frame.select("path").collect()}
                self.mine(number, sorted(names - {SOURCES, PLANTED}))
            except BaseException as error:
                self.failure = error
                raise

    def mine(self, number: int, names: Sequence[str]) -> None:
        """Mine a batch; one that was mined before comes to the same again."""
        start = time.perf_counter()
        state = self.journal.before(number)
        files, faults = files_by_footers(self.folder, [name for name in names if name.endswith(".parquet")])
        problems = [Problem.of(fault) for fault in (*faults, *traces_beside(self.folder, names))]
        kept = [file for file in self._sorted(files) if self._is_new(file, state, problems)]
        self._explore(model_for(file.header, self._asked.variant) for file in kept)
        whole = frozenset(model for model, known in self._known.items() if known.whole is not None)
        part = mine_files(kept, Question(self._asked.variant, self._asked.budget, whole), self._workers)
        part.problems[:0] = problems
        shown = {bug.seen for bug in state.part.sightings}
        new = tuple(sorted({bug.seen for bug in part.sightings} - shown, key=repr))
        told = (len(names), part.events, part.violating, tuple(part.problems), new)
        state.part.merge(part)
        state.batch = number
        state.arrived += len(names)
        state.seconds += time.perf_counter() - start
        self.journal.write(state)
        self._state = state
        self._on_batch(Batch(*told, state), self.answer)

    @staticmethod
    def _sorted(files: Sequence[CorpusFile]) -> list[CorpusFile]:
        """In the order in which the batch job takes files of one folder."""
        return sorted((file for file in files if file.first is not None), key=lambda file: (file.first, file.name))

    def _is_new(self, file: CorpusFile, state: State, problems: list[Problem]) -> bool:
        """Whether a file can be mined; else it is among the problems, and what it repeats is counted."""
        assert file.first is not None and file.last is not None
        try:
            variant_for(file.header, self._asked.variant, file.path)
            earlier = state.overlapping(file.first, file.last)
            if earlier:
                repeats = repeats_of(file, [self.folder / each.name for each in earlier])
                state.duplicate += repeats.duplicate
                state.late += repeats.late
                state.continued += repeats.continued
                raise _repeated(file, earlier[0], repeats)
        except BadInput as error:
            if error.where not in (file.path, shown_path(file.path)):
                raise
            problems.append(Problem.of(error))
            return False
        state.add(SeenFile(file.first, file.last, file.name, file.events))
        return True

    def _explore(self, models: Any) -> None:
        for model in models:
            if model not in self._known:
                self._known[model] = known_graph(model, self._asked.max_states)


def _repeated(file: CorpusFile, earlier: SeenFile, repeats: Repeats) -> BadInput:
    what = f"it has trace {file.first}, within those of {earlier.name} (to {earlier.last}), which came before it"
    if repeats.told:
        what += f": {repeats.told}"
    return BadInput(what, shown_path(file.path), "number the traces anew by fencepost ingest")


def _stream(session: SparkSession, follower: Follower, until_idle: float | None) -> None:
    """Run the query until it is over."""
    # Spark takes the folder's name for a pattern.
    pattern = re.sub(r"([\\{}\[\]*?^])", r"\\\1", str(follower.folder))
    names = (
        session.readStream.format("binaryFile")
        .schema(_COLUMNS)
        .option("pathGlobFilter", "*.{parquet,jsonl}")
        .option("maxFilesPerTrigger", str(FILES))
        # A file may be moved in long after it was written.
        .option("maxFileAge", "36500d")
        .load(pattern)
        .select("path")
    )
    with _interruptible() as interrupted, _quiet():
        query = (
            names.writeStream.foreachBatch(follower.take)
            .option("checkpointLocation", str(follower.journal.spark.absolute()))
            .trigger(processingTime=TRIGGER)
            .start()
        )
        idle_since: float | None = None
        while query.isActive and not interrupted.is_set():
            busy = follower.gate.locked() or not _waits(query)
            idle_since = None if busy else idle_since or time.monotonic()
            if until_idle is not None and idle_since is not None and time.monotonic() - idle_since >= until_idle:
                break
            interrupted.wait(POLL_SECONDS)
        with follower.gate:
            follower.closed = True
        _await_commit(query)
        query.stop()
    if follower.failure is not None:
        raise follower.failure
    ended = query.exception()
    if ended is not None and "no more batches are taken in" not in str(ended):
        first = str(ended).strip().splitlines()[0]
        raise BadInput(f"Spark's streaming ended: {first}", shown_path(follower.folder), "start again: nothing is lost")


def _await_commit(query: StreamingQuery) -> None:
    """Let Spark note that the last batch is done; else it would be done again after a restart, to no effect."""
    deadline = time.monotonic() + COMMIT_SECONDS
    while query.isActive and not _waits(query) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _waits(query: StreamingQuery) -> bool:
    """Whether Spark waits for new files, or for the time to look for them."""
    return bool(query.status["message"].startswith("Waiting"))


@contextmanager
def _quiet() -> Iterator[None]:
    """Py4J tells of what a batch raises too, with a stack trace; it is raised again when the query is over."""
    logger = logging.getLogger("py4j")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; the second one interrupts as ever. Not outside of the main thread."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def asked(_number: int, _frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    # PySpark's own handler would cancel the tasks of the batch that is to be finished.
    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
