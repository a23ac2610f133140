"""The help of every command: grouped options, and lines that begin with a word that informs."""

from __future__ import annotations

import re

import pytest
from fencepost.conformance.cli import COMMANDS, app

from .conftest import Fencepost

UNGROUPED = 8
"""A command with more options has groups."""

IDLE = {
    "a",
    "an",
    "the",
    "how",
    "what",
    "where",
    "which",
    "who",
    "whose",
    "one",
    "so",
    "of",
    "only",
    "in",
    "for",
    "its",
}
"""First words that say nothing, or begin a clause."""


def options(command: str) -> list[tuple[str, str, str]]:
    """The name, group and help of each parameter of a command."""
    found = []
    for each in app[command].assemble_argument_collection(parse_docstring=True):
        (group,) = each.parameter.group
        found.append((each.name, getattr(group, "name", str(group)), each.parameter.help or ""))
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_command_with_many_options_groups_them(command: str) -> None:
    groups = [group for _, group, _ in options(command)]
    if len(groups) > UNGROUPED:
        assert len(set(groups)) >= 3 and "Parameters" not in groups
        assert max(map(groups.count, groups)) <= 10


@pytest.mark.parametrize("command", COMMANDS)
def test_help_line_begins_with_a_word_that_informs(command: str) -> None:
    if len(options(command)) <= UNGROUPED:
        return
    for name, _, text in options(command):
        assert text.endswith((".", ")")), name
        assert text.split()[0].lower() not in IDLE, f"{command} {name}: {text}"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_80_columns(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = fencepost(command, "--help")
    assert said.code == 0 and max(map(len, said.out.splitlines())) <= 80
    if len(options(command)) > UNGROUPED:
        assert not re.search(r"default: (False|\\(\\)|None)", said.out)
