"""Code of a user that ends the process: ``sys.exit``, KeyboardInterrupt or a stack overflow is no verdict.

Each test starts a process, because the handler of Ctrl-C belongs to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.conformance.scaffold import write_new

COMMAND = "from fencepost.conformance.entry import run; run()"

ENDS = {
    "exit-0": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "exit-1": ("raise SystemExit(1)", "SystemExit: 1"),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "recursion": ("f = lambda: f(); f()", "RecursionError"),
}


def finished(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    write_new("toy", tmp_path / "toy")
    return tmp_path / "toy"


def plant(file: Path, after: str, statement: str) -> int:
    """Insert a statement after the line that begins so; returns its line number."""
    lines = file.read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if line.lstrip().startswith(after)) + 1
    indent = len(lines[at]) - len(lines[at].lstrip())
    lines.insert(at, " " * indent + statement)
    file.write_text("\n".join(lines) + "\n")
    return at + 1


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "command", [("explore", "ends.py:toy"), ("conform", "--impl", "ends.py:Adapter")], ids=["protocol", "adapter"]
)
def test_import_that_ends_the_process_is_bad_input(tmp_path: Path, command: tuple[str, ...], end: str) -> None:
    statement, said = ENDS[end]
    (tmp_path / "ends.py").write_text(statement + "\n")
    done = finished(tmp_path, *command)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "ends.py, line 1: importing it raised" in line and said in line


@pytest.mark.parametrize("end", ENDS)
def test_action_that_ends_the_process_is_bad_input(toy: Path, end: str) -> None:
    statement, said = ENDS[end]
    line = plant(toy / "toy.py", 'yield "is_working"', statement)
    done = finished(toy, "explore", "toy.py:toy")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"fencepost: toy.py, line {line}: {said}")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("file", "after", "command"),
    [
        ("toy_system.py", "if self.votes[participant] !=", ("--impl", "toy_system.py:Adapter", "--way", "lockstep")),
        ("toy_free.py", "def act(self", ("--impl", "toy_free.py:Free", "--way", "free", "--jobs", "1")),
        ("toy_free.py", "def act(self", ("--impl", "toy_free.py:Free", "--way", "free", "--jobs", "2")),
    ],
    ids=["lockstep", "free", "free-jobs"],
)
def test_system_that_ends_the_process_is_violated(
    toy: Path, file: str, after: str, command: tuple[str, ...], end: str
) -> None:
    statement, said = ENDS[end]
    plant(toy / file, after, statement)
    done = finished(toy, "conform", "--protocol", "toy.py:toy", *command)
    assert done.returncode == 1 and f"raised {said}" in done.stdout, done.stderr


def test_adapter_that_ends_a_worker_process_is_bad_input(toy: Path) -> None:
    """``os._exit(1)`` of one process among several is no report of a hang."""
    plant(toy / "toy_free.py", "def act(self", "import os; os._exit(1)")
    done = finished(
        toy, "conform", "--protocol", "toy.py:toy", "--impl", "toy_free.py:Free", "--way", "free", "--jobs", "2"
    )
    assert done.returncode == 2 and "has ended (exit code 1)" in done.stderr


def test_hang_in_a_worker_process_is_violated(toy: Path) -> None:
    locked = "import ctypes; m, c = ctypes.create_string_buffer(128), ctypes.CDLL(None); "
    plant(toy / "toy_free.py", "def act(self", locked + "[c.pthread_mutex_lock(m) for _ in range(2)]")
    program = (
        "from fencepost.conformance.simulation import watch; watch.WatchedSystem.__init__.__defaults__ = (60.0, 1.0); "
    )
    command = ["conform", "--protocol", "toy.py:toy", "--impl", "toy_free.py:Free", "--way", "free", "--jobs", "2"]
    done = subprocess.run(
        [sys.executable, "-c", program + COMMAND, *command, "--step-timeout", "0.2s"],
        cwd=toy,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONFAULTHANDLER": ""},
    )
    assert done.returncode == 1
    assert "cannot be interrupted; the verdict is violated" in done.stderr and "fault of Fencepost" not in done.stderr
