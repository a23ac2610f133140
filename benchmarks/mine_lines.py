"""The lines of ``mine.py``, each run in a process of its own: ``python mine_lines.py NAME CORPUS REPEAT``.

Prints one JSON object: events of one run, seconds of the first run (cold) and of the others (warm), CPU seconds of the
best, seconds until a Spark session was there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore.result import Verdict
from fencepost.traces.corpus.convert import trace_of
from fencepost.traces.corpus.files import open_events
from fencepost.traces.corpus.layout import CorpusLayout, Events
from fencepost.traces.corpus.manifest import Corpus, read_corpus
from fencepost.traces.mine.against import Against
from fencepost.traces.mine.job import units_of
from fencepost.traces.mine.lockstep import carried_steps, whole_steps
from fencepost.traces.mine.promises import Promises
from fencepost.traces.mine.work_unit import Question, Unit, against_of
from fencepost.traces.mine.workers import Workers
from fencepost.traces.replay import replay
from fencepost.traces.stepper import CompiledStepper, DirectStepper
from mine_sql import DUCKDB, SPARK, Sql

CORES = 2
SAMPLE = 2_000_000
"""Events for replay in lockstep in one process; the replay of single traces gets a thousandth of them."""

Told = dict[str, Any]


def measured(corpus_events: int, repeat: int, run: Callable[[], int]) -> Told:
    """One cold run and ``repeat`` warm ones; each returns what it found wrong, which must be nothing."""
    me = psutil.Process()
    seconds, cpu = [], []
    for _ in range(repeat + 1):
        before, start = _cpu(me), time.perf_counter()
        wrong = run()
        seconds.append(time.perf_counter() - start)
        cpu.append(_cpu(me) - before)
        assert wrong == 0, f"{wrong} rows are wrong in a corpus that holds"
    warm = seconds[1:] or seconds
    return {"events": corpus_events, "cold": seconds[0], "warm": warm, "cpu": min(cpu[1:] or cpu)}


def _cpu(process: psutil.Process) -> float:
    """CPU seconds of a process and its children so far, those that have ended included."""
    total = sum(process.cpu_times()[:4])
    for child in process.children(recursive=True):
        try:
            total += sum(child.cpu_times()[:4])
        except psutil.Error:
            continue
    return total


def model_of(corpus: Corpus) -> Against:
    """The safe variant at the corpus' constants."""
    header = corpus.files[0].header
    return Against(CorpusLayout.of(header), PROTOCOLS[header.protocol].traced())


def scan(corpus: Corpus, repeat: int) -> Told:
    """All columns of all files into Arrow, and nothing else."""

    def one(path: str) -> int:
        file = pq.ParquetFile(path)
        return sum(file.read_row_group(n, use_threads=False).num_rows for n in range(file.num_row_groups))

    def run() -> int:
        with ThreadPoolExecutor(CORES) as pool:
            return sum(pool.map(one, [file.path for file in corpus.files])) - corpus.events

    return measured(corpus.events, repeat, run)


def check_unit(unit: Unit) -> int:
    """Rows of a unit that break a promise. Reading holds each file to its order, its steps and its domains."""
    wrong = 0
    with unit.file.open() as file:
        promises = against_of(file.layout, None, file.name).promises
        for group in range(unit.low, min(unit.high, file.groups)):
            wrong += sum(rows.size for rows in promises.broken(file.read(group)).values())
    return wrong


def numpy(corpus: Corpus, repeat: int) -> Told:
    """One process, one file after the other."""
    return measured(corpus.events, repeat, lambda: sum(map(check_unit, units_of(corpus.files, 1))))


def promises(corpus: Corpus, repeat: int, cores: int = CORES) -> Told:
    """The first pass as mining does it."""
    return _on_spark(
        corpus, repeat, cores, lambda workers, units: sum(workers.map(check_unit, units, workers.tasks_for(units)))
    )


def whole(corpus: Corpus, repeat: int, cores: int = CORES) -> Told:
    """Both passes, findings and coverage."""

    def run(workers: Workers, units: list[Unit]) -> int:
        return sum(part.violating for part in workers.mine(units, Question()))

    return _on_spark(corpus, repeat, cores, run)


def _on_spark(corpus: Corpus, repeat: int, cores: int, run: Callable[[Workers, list[Unit]], int]) -> Told:
    start = time.perf_counter()
    with Workers(f"local[{cores}]") as workers:
        session = time.perf_counter() - start
        units = units_of(corpus.files, workers.tasks)
        return measured(corpus.events, repeat, lambda: run(workers, units)) | {"session": session}


def duckdb(corpus: Corpus, repeat: int) -> Told:
    """The same checks in DuckDB; of two ways to find a gap the quicker one."""
    import duckdb as engine

    against = model_of(corpus)
    sql = Sql(against.layout, against.system, DUCKDB)
    table = f"read_parquet({[file.path for file in corpus.files]!r})"
    queries = sql.checks(Promises.of(against.system).conditions, table), sql.grouped(table)
    connection = engine.connect()
    connection.execute(f"SET threads = {CORES}")

    def run() -> int:
        events, *wrong = connection.execute(queries[0]).fetchall()[0]
        assert events == corpus.events
        return sum(wrong) + sum(connection.execute(queries[1]).fetchall()[0])

    return measured(corpus.events, repeat, run)


def windows(corpus: Corpus, repeat: int) -> Told:
    """The same checks in Spark SQL, with a window over each trace for the gaps."""
    from fencepost.traces.spark import spark_session

    start = time.perf_counter()
    session = spark_session("windows", f"local[{CORES}]", driver_memory="2g")
    seconds = time.perf_counter() - start
    against = model_of(corpus)
    sql = Sql(against.layout, against.system, SPARK)
    session.conf.set("spark.sql.shuffle.partitions", str(4 * CORES))
    session.read.parquet(*[file.path for file in corpus.files]).createOrReplaceTempView("events")
    queries = sql.checks(Promises.of(against.system).conditions, "events"), sql.windows("events")

    def run() -> int:
        events, *wrong = session.sql(queries[0]).collect()[0]
        assert events == corpus.events
        return sum(wrong) + sum(session.sql(queries[1]).collect()[0])

    told = measured(corpus.events, repeat, run) | {"session": seconds}
    session.stop()
    return told


def _sample(corpus: Corpus, events: int) -> list[Events]:
    """The first row groups with so many events, read beforehand."""
    found: list[Events] = []
    for file in corpus.files:
        with open_events(file.path) as opened:
            for group in opened:
                found.append(group)
                if sum(map(len, found)) >= events:
                    return found
    return found


def lockstep(corpus: Corpus, repeat: int) -> Told:
    """Every step against guards and effects, the states before known."""
    against, runs = model_of(corpus), _sample(corpus, SAMPLE)

    def run() -> int:
        return sum(whole_steps(against, events, against.codes(events)).rows.size for events in runs)

    return measured(sum(map(len, runs)), repeat, run)


def carried(corpus: Corpus, repeat: int) -> Told:
    """The same with states carried along, as where cells were not observed."""
    against, runs = model_of(corpus), _sample(corpus, SAMPLE)
    joined = Events.joined(runs)
    joined = replace(joined, seen=np.ones(joined.cells.shape, dtype=np.bool_))

    def run() -> int:
        return carried_steps(against, joined, against.codes(joined)).stops.rows.size

    return measured(len(joined), repeat, run)


def single(corpus: Corpus, repeat: int, compiled: bool) -> Told:
    """The replay of traces one by one."""
    against, events = model_of(corpus), _sample(corpus, 1)[0]
    stepper = CompiledStepper(against.system) if compiled else DirectStepper(against.traced, against.system.constants)
    traces = [trace_of(events, place) for place in range(min(events.starts.size, SAMPLE // 1000 // 100))]

    def run() -> int:
        return sum(replay(trace, stepper, confirm=False).verdict is not Verdict.HOLDS for trace in traces)

    return measured(sum(map(len, traces)), repeat, run)


RUN: dict[str, Callable[[Corpus, int], Told]] = {
    "scan": scan,
    "numpy": numpy,
    "promises": promises,
    "promises1": lambda corpus, repeat: promises(corpus, repeat, 1),
    "duckdb": duckdb,
    "windows": windows,
    "all": whole,
    "all1": lambda corpus, repeat: whole(corpus, repeat, 1),
    "lockstep": lockstep,
    "carried": carried,
    "reference": lambda corpus, repeat: single(corpus, repeat, compiled=False),
    "compiled": lambda corpus, repeat: single(corpus, repeat, compiled=True),
}


@contextmanager
def _quiet() -> Iterator[None]:
    """What Spark's launcher prints on standard output goes to standard error: the answer stands there alone."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)


if __name__ == "__main__":
    name, place, repeat = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    with _quiet():
        told = RUN[name](read_corpus(place), repeat)
    print(json.dumps(told))
