"""Exit codes where the output goes nowhere, and where something goes wrong that nobody has a word for.

Real processes with real pipes: what the interpreter does with its streams when it ends belongs to the question.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from fencepost.conformance.cli import COMMANDS

from .conftest import Fencepost

SMALL = ("explore", "fencing", "--replicas", "2", "--log-size", "1", "--max-records", "1", "--max-leader-epoch", "1")
HOLDS = SMALL
VIOLATED = (*SMALL[:2], "--variant", "truncate-to-hw", "--replicas", "2", "--max-records", "2")
UNKNOWN = (*SMALL, "--max-states", "3")
PROGRAM = "from fencepost.conformance.cli import run; run()"
CODES = [(HOLDS, 0), (VIOLATED, 1), (UNKNOWN, 3)]


def finished(
    arguments: tuple[str, ...], stdout: int, program: str = PROGRAM, **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    environment = {**os.environ, **environment}
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, env=environment)


@pytest.mark.parametrize("json_too", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(("arguments", "code"), CODES, ids=["holds", "violated", "unknown"])
def test_the_code_of_the_verdict_survives_a_closed_pipe(
    arguments: tuple[str, ...], code: int, json_too: tuple[str, ...]
) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = finished((*arguments, *json_too), write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (code, "")


def test_a_reader_that_stops_reading_changes_nothing() -> None:
    shell = f'{sys.executable} -c "{PROGRAM}" {" ".join(VIOLATED)} | head -n 1; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "1" and done.stderr == ""


@pytest.mark.parametrize("json_too", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(("arguments", "code"), CODES, ids=["holds", "violated", "unknown"])
def test_an_answer_that_finds_no_room_is_bad_input_and_no_verdict(
    arguments: tuple[str, ...], code: int, json_too: tuple[str, ...]
) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = finished((*arguments, *json_too), full)
    finally:
        os.close(full)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("fencepost: standard output: cannot write: No space left on device;")
    assert f"(exit code {code})" in line


def test_a_closed_output_is_refused_before_the_work() -> None:
    command = [sys.executable, "-c", PROGRAM, *HOLDS]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("fencepost: standard output: it is closed")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&- 2>&-"])
def test_what_happens_to_standard_error_changes_nothing(redirection: str, tmp_path: Path) -> None:
    trace = tmp_path / "story.jsonl"
    command = [sys.executable, "-c", PROGRAM, *VIOLATED, "--trace-out", str(trace), "--json"]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *command], stdout=subprocess.PIPE, text=True, timeout=120
    )
    assert done.returncode == 1 and json.loads(done.stdout)["verdict"] == "violated"
    # With a stream closed, the trace would get its number, and whatever is written to the stream.
    assert all(json.loads(line) for line in trace.read_text().splitlines())


BREAKS = """
import importlib
module = importlib.import_module("fencepost.conformance.cli.explore")
def search(*_):
    {}
module.search = search
from fencepost.conformance.cli import run
run()
"""


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return 1 // 0", "ZeroDivisionError: "),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise MemoryError", "Memory"),
    ],
)
def test_an_internal_failure_has_a_code_of_its_own(body: str, told: str) -> None:
    done = finished(HOLDS, subprocess.PIPE, BREAKS.format(body))
    assert done.returncode == 4 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("fencepost: a fault of Fencepost's own") and told in line
    assert "FENCEPOST_DEBUG=1" in line and "<string>:5" in line


def test_an_internal_failure_shows_its_traceback_on_demand() -> None:
    done = finished(HOLDS, subprocess.PIPE, BREAKS.format("return 1 // 0"), FENCEPOST_DEBUG="1")
    assert done.returncode == 4
    assert done.stderr.startswith("Traceback") and "in search" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("fencepost: a fault of Fencepost's own")


def test_what_cannot_be_imported_is_no_verdict(tmp_path: Path) -> None:
    """Planted: a package that the command line needs is broken."""
    (tmp_path / "cyclopts.py").write_text("raise ImportError('half of it\\nis missing')")
    for debug in ("", "1"):
        done = subprocess.run(
            [sys.executable, "-c", "from fencepost.conformance.entry import run; run()", "protocols"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "FENCEPOST_DEBUG": debug},
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (4, "")
        *before, line = done.stderr.splitlines()
        assert line == (
            "fencepost: cannot start: ImportError: half of it is missing; install it again, with all that it needs"
        )
        assert ("Traceback" in "".join(before)) == bool(debug)


def test_help_says_all_codes(fencepost: Fencepost) -> None:
    said = " ".join(fencepost("--help").out.split())
    for words in ("0 holds", "1 violated", "2 bad input", "3 unknown", "4 a fault of Fencepost's own"):
        assert words in said


@pytest.mark.parametrize("command", COMMANDS)
def test_help_breaks_no_line_where_the_source_does(command: str) -> None:
    """On a wide terminal each argument's text is one line, and so is each paragraph."""
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, command, "--help"],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "2000"},
        check=True,
    ).stdout
    above, panel = said.split("╭", 1)
    assert all(len(paragraph.splitlines()) == 1 for paragraph in above.strip().split("\n\n"))
    rows = [line for line in panel.splitlines() if line.startswith("│")]
    assert rows and all("--" in row or " PATH " in row for row in rows)


HOSTILE = "no\x1b[2J\x07:fire:[bold]such\nfile.jsonl"


def test_a_path_steers_no_terminal(fencepost: Fencepost, tmp_path: Path) -> None:
    line = fencepost("replay", tmp_path / HOSTILE).complaint
    assert r"no\x1b[2J\x07:fire:[bold]such\nfile.jsonl" in line


def test_what_is_written_is_named_without_its_escapes(fencepost: Fencepost, tmp_path: Path) -> None:
    said = fencepost(*VIOLATED, "--trace-out", tmp_path / HOSTILE)
    assert said.code == 1 and r"wrote " in said.err and r"\x1b[2J\x07:fire:[bold]such\nfile.jsonl" in said.err
    replayed = fencepost("replay", tmp_path / HOSTILE)
    assert "\x1b" not in replayed.out and "\x07" not in replayed.out
    assert r"\x1b[2J\x07:fire:[bold]such\n" in replayed.out


def test_the_help_has_a_line_for_each_command(fencepost: Fencepost) -> None:
    said = fencepost("--help")
    for command in COMMANDS:
        line = next(line for line in said.out.splitlines() if line.split()[1:2] == [command])
        assert len(line.split()) > 5, line


def test_a_search_loads_neither_z3_nor_what_other_commands_use() -> None:
    heavy = {"z3", "networkx", "hypothesis", "jinja2", "pyarrow", "pyspark", "pandas"}
    script = (
        "import sys; from fencepost.conformance.cli import main; "
        "main(['explore', 'fencing', '--replicas', '2', '--json']); "
        f"print(sorted(set({sorted(heavy)!r}) & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_loads_no_command() -> None:
    script = (
        "import sys; from fencepost.conformance.cli import main; main(['--version']); "
        "print(sorted(name for name in sys.modules if name == 'numpy' or name.startswith('fencepost.model.explore')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    said, loaded = done.stdout.splitlines()
    assert said == version("fencepost") and loaded == "[]"
