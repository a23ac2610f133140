"""A real cluster on loopback: a master and two workers as processes, and this package sent to where it is not."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from fencepost.conformance.cli import main
from fencepost.conformance.scaffold import write_new
from fencepost.model.core.errors import BadInput
from fencepost.model.core.registry import REGISTRY
from fencepost.traces import spark, spark_cluster
from fencepost.traces.corpus import spread
from fencepost.traces.corpus.plan import make_plan
from fencepost.traces.corpus.simulate import simulate, simulation, walker
from fencepost.traces.corpus.spread import SERIAL
from fencepost.traces.mine import workers
from fencepost.traces.mine.answer import TIMES, Answer
from fencepost.traces.mine.job import Asked, mine
from fencepost.traces.mine.workers import Progress
from fencepost.traces.spark import spark_session
from fencepost.traces.spark_cluster import driver_address, is_local, root_package, write_package
from fencepost.traces.spark_jvm import start_files

from .spark_cluster import Cluster, python_without_the_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAULTS = ("follower_fetch.epoch_not_fenced dropped", "kip-101")


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


def test_the_zip_has_a_name_where_the_checkout_is_installed_to_be_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its egg-info, which lies in the working directory, is found before what pip has written."""
    found = distribution("fencepost")
    folder = tmp_path / "fencepost.egg-info"
    folder.mkdir()
    (folder / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: fencepost\nVersion: {found.version}\n")
    (folder / "entry_points.txt").write_text(found.read_text("entry_points.txt") or "")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert distribution("fencepost").read_text("METADATA") is None
    write_package(tmp_path / "package.zip")
    (sent,) = distributions(path=[str(tmp_path / "package.zip")])
    assert sent.metadata["Name"] == "fencepost" and sent.version == found.version
    assert {each.name for each in sent.entry_points if each.group == "fencepost.protocols"} >= {"fencing", "snapshots"}


VECTOR, ACTION = "--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


@pytest.mark.parametrize(
    ("release", "kept"),
    [
        ('JAVA_VERSION="25.0.2"\nMODULES="java.base java.sql"\n', []),
        ('JAVA_VERSION="17.0.2"\nMODULES="java.base java.sql"\n', [ACTION]),
        ('JAVA_VERSION="25"\nMODULES="java.base jdk.incubator.vector"\n', [VECTOR]),
        ('JAVA_VERSION="21.0.1"\n', [VECTOR, ACTION]),
        (None, [VECTOR, ACTION]),
    ],
)
def test_a_jvm_is_not_asked_for_what_it_does_not_have(tmp_path: Path, release: str | None, kept: list[str]) -> None:
    home = tmp_path / "a jvm"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (home / "bin" / "java").chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    with start_files(home, levels={}) as files:
        command = [files.java_home / "bin" / "java", "-cp", "a b*", VECTOR, ACTION, "--add-opens=x", "Main", ""]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "\n".join(["-cp", "a b*", *kept, "--add-opens=x", "Main", "", ""])


def test_sparks_own_log_is_shown_to_whoever_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def levels() -> list[str]:
        with start_files(tmp_path, levels={"org.example": "off"}) as files:
            return re.findall(r"level = (\w+)", files.logging.read_text())

    monkeypatch.delenv("FENCEPOST_SPARK_LOG", raising=False)
    assert levels() == ["error", "off"]
    monkeypatch.setenv("FENCEPOST_SPARK_LOG", "INFO")
    assert levels() == ["info"]
    monkeypatch.setenv("FENCEPOST_SPARK_LOG", "loud")
    with pytest.raises(BadInput, match="FENCEPOST_SPARK_LOG: Spark's log has no level 'loud'; name one of error, warn"):
        levels()


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
    assert done.stderr.startswith(f"fencepost: JAVA_HOME={tmp_path}: no executable bin/java there; ")
    assert done.stderr.count("\n") == 1


class Executors:
    """A context that has been given so many executors, as far as it is asked."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._jsc = self

    def sc(self) -> Executors:
        return self

    def getExecutorMemoryStatus(self) -> Executors:  # noqa: N802 - Spark's name
        return self

    def size(self) -> int:
        return self._count + 1

    def getConf(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return {"spark.executor.memory": "7g"}


def test_a_cluster_that_gives_no_executor_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_cluster, "EXECUTOR_SECONDS", 0.3)
    with pytest.raises(BadInput, match=r"^spark://x:1: no worker gives an executor of 7g within 0 seconds; start work"):
        spark_cluster.wait_for_executors(Executors(0), "spark://x:1")  # type: ignore[arg-type]
    spark_cluster.wait_for_executors(Executors(1), "spark://x:1")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers' Python has every library but this package."""
    monkeypatch.setenv("PYSPARK_PYTHON", str(python_without_the_package(tmp_path)))


@pytest.mark.spark
@pytest.mark.usefixtures("lacking")
def test_workers_run_the_package_that_is_sent(cluster: Cluster) -> None:
    # Nested, so that it is pickled by value: the workers are sent the package, but not this file.
    def look(_number: int) -> tuple[str, list[str]]:
        import sys
        from pathlib import Path

        import fencepost
        from fencepost.traces.format import trace_schema

        found = f"{fencepost.__file__} {trace_schema()['$schema']}"
        return found, [entry for entry in sys.path if (Path(entry) / "fencepost").exists()]

    session = spark_session("what workers run", cluster.url)
    try:
        rows = session.sparkContext.parallelize(range(2), 2).map(look).collect()
    finally:
        session.stop()
    for where, elsewhere in rows:
        assert where.endswith("fencepost.zip/fencepost/__init__.py https://json-schema.org/draft/2020-12/schema"), where
        assert elsewhere == [], "they would find one of their own"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random walks, some of them with a fault, in many files, so that a worker can be lost between two."""
    folder = tmp_path_factory.mktemp("corpora") / "corpus"
    asked = simulation("fencing", None, {"replicas": 2}, 600, 30, 5, 60)
    simulate(asked, folder, make_plan(walker(asked, FAULTS), FAULTS, FAULTS, asked.traces, 30, asked.events))
    return folder


def untimed(answer: Answer) -> str:
    """The answer without its times, byte for byte."""
    return json.dumps({name: value for name, value in answer.to_json().items() if name not in TIMES})


@pytest.mark.spark
@pytest.mark.usefixtures("lacking")
def test_mining_gives_the_same_answer_when_a_worker_is_lost(
    cluster: Cluster, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two workers is killed, with all its processes, when some of the files are done and others are not."""
    monkeypatch.chdir(corpus.parent)  # the workers are elsewhere
    monkeypatch.setattr(spark, "POLL_SECONDS", 0.02)  # of the seconds that it takes, none is missed
    asked = Asked(Path(corpus.name))
    at: list[Progress] = []

    def told(progress: Progress) -> None:
        if not at and 0 < progress.files < progress.of:
            at.append(progress)
            cluster.workers[0].kill()

    answer = mine(asked, cluster.url, told)
    assert at and cluster.workers[0].process.poll() is not None, "the worker was not lost in mid-run"
    assert answer.groups and not answer.problems
    assert untimed(answer) == untimed(mine(asked, "local[2]")) == untimed(mine(asked, SERIAL))


@pytest.fixture
def two_phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a new protocol is, of whose text a part lies in a module beside it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(REGISTRY, "_loaded", dict(REGISTRY._loaded))
    monkeypatch.setattr(REGISTRY, "_places", {})
    for name in ("two_phase", "phases"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    write_new("two_phase", tmp_path)
    text = tmp_path / "two_phase.py"
    beside = 'from fencepost.model.core.enumeration import enumeration\n\nPhase = enumeration("phase", "working", '
    (tmp_path / "phases.py").write_text(beside + '"prepared", "committed", "aborted")\n')
    lines = text.read_text().splitlines()
    told = ["from phases import Phase" if line.startswith("Phase = ") else line for line in lines]
    assert told != lines
    text.write_text("\n".join(told) + "\n")
    return f"{text}:two_phase"


@pytest.fixture
def no_session() -> Iterator[None]:
    """Whoever asks for a session starts one: another test may have left its own, of another master."""
    _stop_session()
    yield
    _stop_session()


def _stop_session() -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


@pytest.mark.spark
@pytest.mark.usefixtures("lacking", "no_session")
@pytest.mark.parametrize("master", ["local[2]", "spark://"])
def test_a_protocol_from_a_file_is_simulated_and_mined_by_the_command_line(
    cluster: Cluster,
    two_phase: str,
    master: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A cluster's workers have neither this package nor the file: its text, and that of a module beside it, is sent.

    Those of this machine have the package. The corpus and the answer are those of one process.
    """
    named = cluster.url if master == "spark://" else master
    asked: list[str | None] = []

    def noted(app_name: str, url: str) -> SparkSession:
        session = spark_session(app_name, url)
        asked.append(session.sparkContext.master)
        return session

    for module in (spread, workers):
        monkeypatch.setattr(module, "spark_session", noted)

    def fencepost(*arguments: object) -> tuple[int, dict[str, Any]]:
        """Its exit code and its answer, but for where it lies and what is timed; nothing is known from the last one."""
        REGISTRY._loaded.pop("two_phase", None)
        REGISTRY._places.clear()
        code = main([*map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert out, err
        answer = json.loads(out)
        return code, {name: value for name, value in answer.items() if name not in (*TIMES, "out", "corpus")}

    sizes = ("--traces", 60, "--events", 30, "--seed", 5, "--files", 4)
    faults = ("--faults", "decide_commit.all_prepared dropped", "--rate", 0.1)
    simulated, mined, files = {}, {}, {}
    for each in (named, SERIAL):
        folder = tmp_path / each.replace("/", "-")
        simulated[each] = fencepost("simulate", two_phase, *sizes, *faults, "--out", folder, "--master", each)
        mined[each] = fencepost("mine", folder, "--protocol", two_phase, "--master", each)
        files[each] = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert asked == [named, named]
    assert simulated[named] == simulated[SERIAL] and simulated[named][0] == 0
    assert len(files[named]) >= 4 and files[named] == files[SERIAL]
    assert mined[named] == mined[SERIAL]
    code, answer = mined[named]
    assert (code, answer["violating_traces"], answer["problems"]) == (1, 6, [])
    (group,) = answer["groups"]
    signature = group["signature"]
    assert (group["count"], signature["action"], signature["guard"]) == (6, "decide_commit", "all_prepared")


@pytest.mark.spark
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
