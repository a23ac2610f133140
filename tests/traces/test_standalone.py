"""A real cluster on loopback: a master and two workers as processes, and this package sent to where it is not."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.spark import spark_session
from fencepost.traces.spark_cluster import driver_address, is_local, root_package, write_package

from .spark_cluster import Cluster, python_without_the_package

has_spark = importlib.util.find_spec("pyspark") is not None
needs_spark = pytest.mark.skipif(not has_spark, reason="PySpark is not installed (the extra 'spark' brings it)")


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[4, 2]"])
def test_local_masters(master: str) -> None:
    assert is_local(master)
    assert driver_address(master) == "127.0.0.1"


@pytest.mark.parametrize(
    "master", ["", "local[0]", "local[x]", "spark://", "spark://host", "spark://h:1,", "yarn", "l"]
)
def test_what_is_no_master_is_named(master: str) -> None:
    with pytest.raises(BadInput, match=r"^--master .*: no master that this runs on; name local\[N\], "):
        is_local(master)


def test_a_master_that_is_not_there_is_named_before_any_jvm_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        url = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(BadInput) as refused:
            driver_address(url)
    assert str(refused.value).startswith(f"{url}: no master answers there (Connection refused); start one")
    with pytest.raises(BadInput, match="no master answers there"):
        driver_address("spark://127.0.0.1:99999")


def test_of_several_masters_one_that_answers_is_enough() -> None:
    with socket.socket() as taken, socket.create_server(("127.0.0.1", 0)) as server:
        taken.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in (taken, server)]
        assert driver_address(f"spark://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}") == "127.0.0.1"


def test_the_zip_is_the_package_and_can_be_imported_alone(tmp_path: Path) -> None:
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    write_package(first)
    write_package(second)
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert root_package().name == "fencepost"
    assert {"fencepost/__init__.py", "fencepost/traces/trace.schema.json", "fencepost/specs/Fencing.tla"} <= set(names)
    assert not [name for name in names if "tests/" in name or "__pycache__" in name or "/." in name]
    text = (
        "import fencepost, sys\n"
        "from fencepost.traces.format import trace_schema\n"
        "from fencepost.traces.report.page import asset\n"
        "assert fencepost.__file__.startswith(sys.argv[1]), fencepost.__file__\n"
        "print(trace_schema()['$schema'], len(asset('page.js')) > 1000)\n"
    )
    python = python_without_the_package(tmp_path)
    done = subprocess.run([python, "-c", text, first], capture_output=True, text=True, timeout=120)
    assert "No module named 'fencepost'" in done.stderr, "the planted fault: this interpreter does not have it"
    environment = {**os.environ, "PYTHONPATH": str(first)}
    done = subprocess.run([python, "-c", text, first], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["https://json-schema.org/draft/2020-12/schema", "True"]


def test_a_daemon_without_a_jvm_says_so_in_one_line(tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "fencepost.traces.standalone", "master"],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"JAVA_HOME={tmp_path}: no executable bin/java there; ")
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as found:
        yield found


@needs_spark
def test_work_goes_on_when_a_worker_is_lost(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve tasks on two workers of a core each; one is killed with all its processes while they run."""
    monkeypatch.setenv("PYSPARK_PYTHON", str(python_without_the_package(tmp_path)))
    marks, tasks = tmp_path / "marks", 12
    marks.mkdir()
    folder = str(marks)

    # Nested, so that it is pickled by value: the workers are sent the package, but not this file.
    def distinct_states(number: int) -> tuple[int, str, int]:
        import time
        from pathlib import Path

        import fencepost
        from fencepost.model.core.ground import ground
        from fencepost.model.fencing import fencing
        from fencepost.traces.stepper import CompiledStepper
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        (Path(folder) / f"{number}-{context.attemptNumber()}").touch()
        time.sleep(0.5)
        constants = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": number % 2}
        stepper = CompiledStepper(ground(fencing.traced("kip-320"), constants))
        found, new = {stepper.system.initial}, [stepper.system.initial]
        while new:
            new = [step.state for state in new for step in stepper.every(state)]
            new = [state for state in dict.fromkeys(new) if state not in found]
            found.update(new)
        return number, str(fencepost.__file__), len(found)

    expected = distinct_by_explorer()
    session = spark_session("a worker is lost", cluster.url)
    try:
        answer = session.sparkContext.parallelize(range(tasks), tasks).map(distinct_states)
        killer = threading.Thread(target=kill_when, args=(cluster, marks, 4))
        killer.start()
        rows = answer.collect()
        killer.join()
    finally:
        session.stop()
    assert [(number, states) for number, _, states in rows] == [(n, expected[n % 2]) for n in range(tasks)]
    # It was the package that was sent, and not one that they had.
    assert all(file.endswith("fencepost.zip/fencepost/__init__.py") for _, file, _ in rows), rows
    assert cluster.workers[0].process.poll() is not None
    began = [path.name for path in marks.iterdir()]
    assert len(began) > tasks, "no task was lost with the worker, so nothing was tried again"


def distinct_by_explorer() -> list[int]:
    """How many states the model has at the constants of the tasks, by the batch engine."""
    from fencepost.model.core.ground import ground
    from fencepost.model.explore import Query, explore
    from fencepost.model.fencing import fencing

    constants = {"replicas": 2, "log_size": 1, "max_records": 1}
    traced = fencing.traced("kip-320")
    systems = [ground(traced, {**constants, "max_leader_epoch": epoch}) for epoch in range(2)]
    return [explore(Query.of(system)).distinct for system in systems]


def kill_when(cluster: Cluster, marks: Path, begun: int) -> None:
    """Kill the first worker when so many tasks have begun."""
    deadline = time.monotonic() + 300
    while len(list(marks.iterdir())) < begun and time.monotonic() < deadline:
        time.sleep(0.05)
    cluster.workers[0].kill()


@needs_spark
def test_all_of_the_cluster_listens_on_loopback_alone(cluster: Cluster) -> None:
    listening = [
        connection.laddr.ip
        for each in (cluster.master, cluster.workers[-1])
        for process in each.tree()
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 4, "a port for its peers and one for its page, each of two processes"
    assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
