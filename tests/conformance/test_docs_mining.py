"""The commands of docs/mining.md are commands: each is read by the command line that it is for."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from cyclopts import App, CycloptsError
from fencepost.conformance.cli import app
from fencepost.traces.standalone import app as standalone

from .conftest import Fencepost

TEXT = (Path(__file__).parents[2] / "docs" / "mining.md").read_text()
COMMANDS = [line.replace("\\\n", " ") for line in re.findall(r"^\$ ((?:.*\\\n)*.*)$", TEXT, re.MULTILINE)]


def read(command: str) -> None:
    """Read a command line, and carry nothing out."""
    words = shlex.split(command)
    chosen: App | None = None
    if words[0] == "fencepost":
        chosen, words = app, words[1:]
    elif words[:3] == ["python", "-m", "fencepost.traces.standalone"]:
        chosen, words = standalone, words[3:]
    if chosen is not None:
        chosen.parse_args(words, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_tutorial_can_be_typed(command: str) -> None:
    read(command)


def test_there_are_commands_and_a_wrong_one_would_be_noticed() -> None:
    assert sum(command.startswith("fencepost mine") for command in COMMANDS) >= 3
    assert sum("traces.standalone" in command for command in COMMANDS) == 3
    for command in ("fencepost mine", "fencepost mine corpus --mastre local[2]", "fencepost dig corpus"):
        with pytest.raises(CycloptsError):
            read(command)


def test_the_parquet_that_is_described_column_by_column_is_ingested_and_mined(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/mining.md", "exec"), {})
    ingest, mine = (each for each in COMMANDS if "mine.parquet" in each or each == "fencepost mine own")
    said = fencepost(*shlex.split(ingest)[1:])
    assert said.code == 0 and "1 trace with 3 events in 1 file, " in said.out
    said = fencepost(*shlex.split(mine)[1:])
    assert said.code == 0 and said.out.startswith("verdict  holds, held against kip-320\n")
    # The same with a value that is not the model's: each column is read as it is described.
    for wrong, complaint in (
        ('"leo[1]": [0, 0, 1]', '"leo[1]": [0, 0, 2]'),
        ('"quorum_isr": [0b11, 0b11, None]', '"quorum_isr": [0b01, 0b11, None]'),
        ('"leader[1]": [None, 1, 1]', '"leader[1]": [None, -1, 1]'),
        ('"p1": [None, 0, None]', '"p1": [None, 1, None]'),
    ):
        assert wrong in code
        exec(compile(code.replace(wrong, complaint), "docs/mining.md", "exec"), {})
        shutil.rmtree("own")
        assert fencepost(*shlex.split(ingest)[1:]).code == 0
        assert fencepost(*shlex.split(mine)[1:]).code == 1, complaint
