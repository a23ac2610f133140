"""docs/findings.md: the stories of the models are what its commands print, but for the lines that it leaves out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from .conftest import Fencepost

TEXT = (Path(__file__).parents[2] / "docs" / "findings.md").read_text(encoding="utf-8")
STORIES = re.findall(r"^\$ fencepost (explore (?:.*\\\n)*.*)\n((?: +\d+  .*\n)+BROKEN: .*)$", TEXT, re.MULTILINE)
STEP = re.compile(r" +[1-9]\d*  \w+\(|BROKEN: ")


def test_each_finding_has_one() -> None:
    assert [re.findall(r"--variant (\S+)", command) for command, _ in STORIES] == [
        ["kip-320-kafka-stale-acks"],
        ["kip-320-kafka-forgets"],
        ["keeps-highest"],
        ["offsets-first"],
        ["kip-320"],
    ]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("command", "story"), STORIES, ids=["k11", "k12", "tk1", "tk4", "h1"])
def test_a_story_of_a_model_is_what_the_command_prints(
    command: str, story: str, fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the engine that is named: another one may find another run of the same length, which is the shortest."""
    monkeypatch.chdir(tmp_path)
    told = fencepost(*shlex.split(command.replace("\\\n", " ")))
    assert told.code == 1
    assert [line for line in told.out.splitlines() if STEP.match(line)] == story.splitlines()
