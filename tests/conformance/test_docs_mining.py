"""The commands of docs/mining.md are commands: each is read by the command line that it is for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from cyclopts import App, CycloptsError
from fencepost.conformance.cli import app
from fencepost.traces.standalone import app as standalone

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
