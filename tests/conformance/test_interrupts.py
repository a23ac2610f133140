"""Ctrl-C at any moment: one line, exit code 130, nothing left running and nothing left behind."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.corpus.simulate import simulate, simulation

from .conftest import Fencepost

COMMAND = "from fencepost.conformance.entry import run; run()"
SECONDS = 30
"""Far above what is needed on a quiet machine; what is not interrupted takes longer."""
ONE_PROCESS = 10
"""Of a command that has no others to wait for: twice the seconds that it may take to put away what it has begun."""

LARGE = ("--replicas", "4", "--log-size", "3", "--max-records", "3", "--max-leader-epoch", "3")
LONG = "50000000"
"""Constants, and a bound of states, with which the search for the whole graph goes on for long."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    constants = {"replicas": 4, "log_size": 3, "max_records": 3, "max_leader_epoch": 3}
    folder = tmp_path_factory.mktemp("interrupts") / "corpus"
    simulate(simulation("fencing", None, constants, 200, 40, 1), folder)
    return folder


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


class Running:
    """A command in a session of its own, as a terminal has it: Ctrl-C reaches all of its processes."""

    def __init__(self, arguments: tuple[str, ...], temporary: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(temporary)},
            # Whoever runs the tests in the background has SIGINT ignored, and that is inherited.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def others(self) -> list[psutil.Process]:
        """What else runs in the session; whatever ends while it is looked at does not."""
        found = []
        for process in psutil.process_iter():
            try:
                in_session = process.pid != self.process.pid and os.getsid(process.pid) == self.process.pid
                if in_session and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def interrupt(self, within: float = SECONDS) -> None:
        """Ctrl-C, and all that is said of it is held to one line. ``within``: the seconds after which it is over."""
        assert self.process.poll() is None, self.process.communicate()
        os.killpg(self.process.pid, signal.SIGINT)
        start = time.monotonic()
        out, err = self.process.communicate(timeout=SECONDS)
        took = time.monotonic() - start
        print(f"over {took:.1f} s after the interrupt")
        assert took < within
        assert (self.process.returncode, out, err) == (130, "", "fencepost: interrupted\n")
        deadline = time.monotonic() + 2
        while self.others() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert self.others() == []


@pytest.fixture
def running(temporary: Path) -> Iterator[list[Running]]:
    started: list[Running] = []
    yield started
    for each in started:
        for process in each.others():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        each.process.kill()
        each.process.wait()


def waited_for(running: Running, name: str) -> None:
    """Until a process of this name is in the session."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for process in running.others():
            try:
                if process.name().startswith(name):
                    return
            except psutil.Error:
                continue
        time.sleep(0.01)
    raise AssertionError(f"there was no {name}")


@pytest.mark.parametrize("after", [0.15, 0.4, 0.8])
def test_while_the_command_line_is_imported(running: list[Running], temporary: Path, after: float) -> None:
    one = Running(("explore", "fencing", *LARGE), temporary)
    running.append(one)
    time.sleep(after)
    one.interrupt(ONE_PROCESS)


@pytest.mark.parametrize("after", [3.0, 6.0])
def test_in_this_process(running: list[Running], temporary: Path, corpus: Path, after: float) -> None:
    one = Running(("mine", str(corpus), "--master", "serial", "--max-states", LONG), temporary)
    running.append(one)
    time.sleep(after)
    one.interrupt(ONE_PROCESS)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("after", [0.1, 2.0])
def test_free_runs_in_several_processes_on_real_files(running: list[Running], temporary: Path, after: float) -> None:
    one = Running(("conform", "--impl", "disk", "--way", "free", "--runs", "100000", "--jobs", "2"), temporary)
    running.append(one)
    deadline = time.monotonic() + SECONDS
    while len(one.others()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(one.others()) == 2
    time.sleep(after)
    one.interrupt()
    assert list(temporary.iterdir()) == []


def test_a_corpus_that_is_being_written_is_not_there(running: list[Running], temporary: Path, tmp_path: Path) -> None:
    sizes = ("--traces", "2000000", "--events", "60", "--master", "serial")
    one = Running(("simulate", "fencing", *LARGE, *sizes, "--out", str(tmp_path / "new")), temporary)
    running.append(one)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".new.*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    one.interrupt(ONE_PROCESS)
    assert list(tmp_path.iterdir()) == [temporary]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "after", "states"), [("bash", 0.0, LONG), ("java", 0.1, LONG), ("java", 3.0, LONG), ("python", 0.3, "0")]
)
def test_while_spark_starts_and_while_it_works(
    running: list[Running], temporary: Path, corpus: Path, name: str, after: float, states: str
) -> None:
    one = Running(("mine", str(corpus), "--master", "local[2]", "--max-states", states), temporary)
    running.append(one)
    waited_for(one, name)
    time.sleep(after)
    one.interrupt()
    assert [path.name for path in temporary.iterdir() if path.name.startswith("fencepost")] == []


def test_who_is_started_in_the_background_ignores_the_terminal(running: list[Running], temporary: Path) -> None:
    command = [sys.executable, "-c", COMMAND, "explore", "fencing", "--replicas", "2"]
    ignored = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    time.sleep(0.5)
    ignored.send_signal(signal.SIGINT)
    out, err = ignored.communicate(timeout=120)
    assert ignored.returncode == 0 and "holds" in out and err == ""


@pytest.mark.spark
@pytest.mark.parametrize(("name", "after"), [("java", 0.2), ("java", 4.0)])
def test_the_main_job_whose_spark_starts_beside_it(
    running: list[Running], temporary: Path, name: str, after: float
) -> None:
    one = Running(("check", "--report", str(temporary / "report")), temporary)
    running.append(one)
    waited_for(one, name)
    time.sleep(after)
    one.interrupt()
    assert list(temporary.iterdir()) == []


@pytest.mark.spark
def test_the_processes_of_a_main_job_that_is_killed_end_with_it(running: list[Running], temporary: Path) -> None:
    one = Running(("check", "--report", str(temporary / "report")), temporary)
    running.append(one)
    waited_for(one, "python")
    waited_for(one, "java")
    one.process.kill()
    one.process.communicate()
    deadline = time.monotonic() + SECONDS
    while (left := one.others()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


@pytest.mark.parametrize("failure", [RuntimeError("the JVM is gone"), BadInput("Spark gave the job up", "here", "")])
def test_an_interrupt_is_one_whatever_fails_on_the_way_out(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def interrupted(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            # As PySpark does when it asks a JVM that has ended.
            raise failure

    module = importlib.import_module("fencepost.conformance.cli.mine")
    monkeypatch.setattr(module, "run", interrupted)
    monkeypatch.setattr(module, "read_corpus", interrupted)
    said = fencepost("mine", tmp_path)
    assert (said.code, said.out, said.err) == (130, "", "fencepost: interrupted\n")
