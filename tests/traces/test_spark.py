"""The Spark session: on the right JVM, quiet, on loopback, and able to replay traces in parallel.

Nothing imports PySpark or starts a JVM unless it is asked to.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.protocols.fencing import fencing
from fencepost.traces.jvm import java_home
from fencepost.traces.read import read_trace
from fencepost.traces.record import record
from fencepost.traces.replay import replay
from fencepost.traces.spark import collected, spark_session
from fencepost.traces.stepper import CompiledStepper, TakenStep
from fencepost.traces.write import write_trace

SEED = 7
CONSTANTS = {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}

EVERYTHING = """
import importlib, json, pkgutil, sys
import psutil
import fencepost
from fencepost.conformance.cli import main

names = [m.name for m in pkgutil.walk_packages(fencepost.__path__, "fencepost.")
         if m.name.split(".")[1] in ("model", "impl", "traces", "conformance", "specs")]
for name in names:
    importlib.import_module(name)
main(["--help"])
heavy = sorted(name for name in sys.modules if name.partition(".")[0] in ("pyspark", "py4j", "pandas"))
children = [child.name() for child in psutil.Process().children(recursive=True)]
print(json.dumps({"imported": len(names), "heavy": heavy, "children": children}))
"""


def test_nothing_imports_pyspark_or_starts_a_jvm() -> None:
    done = subprocess.run([sys.executable, "-c", EVERYTHING], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["imported"] > 50
    assert said["heavy"] == []
    assert said["children"] == []


def test_without_pyspark_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)  # as if it were not installed
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(BadInput) as refused:
        spark_session("none")
    assert str(refused.value) == "Spark: PySpark is not installed; install Fencepost anew, which brings it"


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """One session for all tests: a JVM takes seconds to start. The environment names another Spark, to be ignored."""
    misleading = {
        "SPARK_HOME": "/nonexistent/spark",
        "PYSPARK_PYTHON": "/nonexistent/python",
        "PYSPARK_SUBMIT_ARGS": "--packages org.example:none:1 pyspark-shell",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in misleading.items():
            patch.setenv(name, value)
        # Two names of its own are left behind by PySpark itself.
        before = dict(os.environ) | {"SPARK_AUTH_SOCKET_TIMEOUT": "15", "SPARK_BUFFER_SIZE": "65536"}
        found = spark_session("fencepost tests", settings={"spark.sql.shuffle.partitions": "2"})
        assert dict(os.environ) == before
    yield found
    found.stop()


@pytest.mark.spark
def test_a_session_runs_on_the_jvm_of_java_home(session: Any) -> None:
    jvm = session.sparkContext._jvm
    assert Path(jvm.java.lang.System.getProperty("java.home")).resolve() == java_home().resolve()
    assert session.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert session.sparkContext.uiWebUrl is None
    assert session.sparkContext.pythonExec == sys.executable


@pytest.mark.spark
def test_a_second_call_returns_the_active_session(session: Any) -> None:
    assert spark_session("another") is session


@pytest.mark.spark
def test_all_of_it_listens_on_loopback_alone(session: Any) -> None:
    assert session.range(4).count() == 4
    listening = [
        connection.laddr.ip
        for process in psutil.Process().children(recursive=True)
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening, "the JVM listens for its Python process"
    for address in listening:
        name = address.removeprefix("::ffff:")
        assert name == "::1" or socket.inet_aton(name)[0] == 127, address


@pytest.mark.spark
def test_a_job_that_spark_gives_up_is_one_line_and_what_a_task_raises_is_all_of_it(
    session: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    def end(_item: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def fault(item: int) -> float:
        return 1 / item

    polls: list[int] = []
    context = session.sparkContext
    assert collected(context.parallelize([2, 1], 2).map(fault), lambda: polls.append(1)) == [0.5, 1.0]
    with pytest.raises(BadInput) as given_up:
        collected(context.parallelize([0], 1).map(end), lambda: None)
    said = str(given_up.value)
    assert said.startswith("--master local[2]: Spark gave the job up: ") and "\n" not in said
    assert "Python worker exited unexpectedly" in said
    with pytest.raises(Exception, match=r"(?s)Traceback.*in fault.*ZeroDivisionError"):
        collected(context.parallelize([0], 1).map(fault), lambda: None)
    assert capfd.readouterr().err == ""


def write_walks(folder: Path, count: int, length: int) -> list[Path]:
    """Random walks of the safe variant and of the oldest, recorded with some of their cells, a file each."""
    draw = Random(SEED)
    print(f"random walks with seed {SEED}")
    paths = []
    for number in range(count):
        variant = "kip-320" if number % 2 else "truncate-to-hw"
        system = ground(fencing.traced(variant), CONSTANTS)
        stepper = STEPPERS.setdefault(variant, CompiledStepper(system))
        state, run = system.initial, list[TakenStep]()
        while len(run) < length and (steps := stepper.every(state)):
            run.append(draw.choice(steps))
            state = run[-1].state
        paths.append(folder / f"{number:03d}.trace.jsonl")
        write_trace(paths[-1], record(system, run, variables=("leo", "hw", "leader", "record_epoch")))
    return paths


STEPPERS: dict[str, CompiledStepper] = {}


@pytest.mark.spark
def test_traces_replayed_on_partitions_get_the_verdicts_of_this_process(session: Any, tmp_path: Path) -> None:
    paths = write_walks(tmp_path, 60, 25)
    safe = CompiledStepper(ground(fencing.traced("kip-320"), CONSTANTS))
    expected = {}
    for path in paths:
        answer = replay(read_trace(path), safe)
        expected[path.name] = (answer.verdict.value, answer.step, answer.violated)
    verdicts = {verdict for verdict, _, _ in expected.values()}
    assert verdicts == {"holds", "violated"}, "the walks must be of both kinds, or equality shows little"

    # Nested, so that it is pickled by value: the workers have the package, but not this file.
    def replayed(batches: Iterator[Any]) -> Iterator[Any]:
        import io

        import pyarrow as pa
        from fencepost.model.core.ground import ground
        from fencepost.model.protocols.fencing import fencing
        from fencepost.traces.format import Trace
        from fencepost.traces.read import TraceReader
        from fencepost.traces.replay import replay
        from fencepost.traces.stepper import CompiledStepper
        from pyspark import TaskContext

        stepper = CompiledStepper(ground(fencing.traced("kip-320"), constants))
        partition = TaskContext.get().partitionId()
        for batch in batches:
            rows = []
            for text, name in zip(batch.column("value").to_pylist(), batch.column("name").to_pylist(), strict=True):
                reader = TraceReader(io.BytesIO(text.encode()), name)
                events = tuple(reader)
                assert reader.header is not None and not reader.problems, reader.problems
                answer = replay(Trace(reader.header, events), stepper)
                rows.append((name, answer.verdict.value, answer.step, answer.violated, partition))
            columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * 5
            yield pa.RecordBatch.from_arrays([pa.array(c, t) for c, t in zip(columns, types, strict=True)], list(names))

    import pyarrow as pa

    constants = CONSTANTS
    names = ("name", "verdict", "step", "violated", "partition")
    types = [pa.string(), pa.string(), pa.int64(), pa.string(), pa.int64()]
    schema = "name string, verdict string, step bigint, violated string, partition bigint"
    files = session.read.text(str(tmp_path), wholetext=True).selectExpr("value", "_metadata.file_name AS name")
    rows = files.repartition(4, "name").mapInArrow(replayed, schema).collect()

    assert {row.name: (row.verdict, row.step, row.violated) for row in rows} == expected
    assert len(rows) == len(paths)
    assert len({row.partition for row in rows}) > 1


START = """
import sys, time
start = time.perf_counter()
from fencepost.traces.spark import spark_session
session = spark_session("start")
started = time.perf_counter() - start
assert session.range(1000).selectExpr("sum(id)").collect()[0][0] == 499500
print(f"{started:.1f} {time.perf_counter() - start:.1f}")
session.stop()
"""


@pytest.mark.spark
def test_a_session_starts_and_stops_quietly_in_a_process_of_its_own(tmp_path: Path) -> None:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", START], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    started, first = done.stdout.split()
    print(f"session after {started} s, first result after {first} s, all over after {time.perf_counter() - start:.1f}")
    # The JVM's own warnings (WARNING: ...) are beyond any logger; Spark itself says nothing.
    assert [line for line in done.stderr.splitlines() if not line.startswith("WARNING:")] == []
    assert list(tmp_path.iterdir()) == [], "nothing is left in the current folder"


@pytest.mark.spark
def test_a_jvm_that_does_not_start_spark_is_named(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\necho \'openjdk version "1.8.0"\' >&2\n[ "$1" = -version ]\n')
    java.chmod(0o755)
    text = (
        "from fencepost.traces.spark import spark_session\n"
        "from fencepost.model.core.errors import BadInput\n"
        "try:\n    spark_session('x')\nexcept BadInput as error:\n    print(error)\n"
    )
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=120)
    told = f'{tmp_path}: Spark did not start on openjdk version "1.8.0"; see what it wrote above; '
    assert done.stdout == told + "Spark 4 needs Java 17 or newer\n", done.stderr
