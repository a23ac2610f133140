"""Defaults in ``pyproject.toml``, and shell completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.conformance.cli import COMMANDS, app

from .conftest import Fencepost

SETTINGS = """
[project]
name = "x"

[tool.fencepost.explore]
max-records = 1  # an option's name, with dashes
log_size = 1
replicas = 2
max_leader_epoch = 1
json = true

[tool."fencepost".conform]
examples = 3
seed = 4
replicas = 2
json = true
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in a project with settings; what is written replaces them."""
    path = tmp_path / "pyproject.toml"
    path.write_text(SETTINGS)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return path


def test_defaults_are_taken_from_the_project(fencepost: Fencepost, project: Path) -> None:
    said = fencepost("explore", "fencing")
    assert said.code == 0 and said.json["distinct"] == 277
    assert said.json["constants"] == {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
    assert fencepost("conform", "--way", "lockstep", "--impl", "model").json["seed"] == 4


def test_what_is_typed_comes_first_and_the_rest_stays(fencepost: Fencepost, project: Path) -> None:
    said = fencepost("explore", "fencing", "--max-records", 2, "--no-such-thing", 1)
    assert said.code == 2
    said = fencepost("explore", "fencing", "--max-records", 2, "--max-states", 50)
    assert said.code == 3
    assert said.json["constants"] == {"replicas": 2, "log_size": 1, "max_records": 2, "max_leader_epoch": 1}


def test_a_default_steps_back_where_it_means_nothing(fencepost: Fencepost, project: Path) -> None:
    unsafe = ("--variant", "truncate-to-hw", "--log-size", 2, "--max-records", 2, "--max-leader-epoch", 2)
    assert fencepost("explore", "fencing", *unsafe, "--trace-out", "run.jsonl").code == 1
    replayed = fencepost("conform", "--impl", "model", "--variant", "truncate-to-hw", "--replay", "run.jsonl")
    assert replayed.code in (0, 1), "no seed was typed"
    assert fencepost("conform", "--way", "lockstep", "--impl", "model", "--time", "0.2s").code == 0, (
        "no examples were typed"
    )
    assert "--seed" in fencepost("conform", "--replay", "run.jsonl", "--seed", 4).complaint


BAD = [
    ("[tool.fencepost.explore]\nreplicas = 2\n\nmax_stats = 3\n", "line 4: explore has no option 'max_stats'"),
    ("[tool.fencepost.explore]\n'max-stats' = 3\n", "line 2: explore has no option 'max-stats'"),
    ("[tool.fencepost]\nexplore.max_stats = 3\n", "line 2: explore has no option 'max_stats'"),
    ("\n[tool.fencepost.explroe]\nreplicas = 2\n", "line 2: there is no command 'explroe'"),
    ("[tool.fencepost]\nreplicas = 2\n", "line 2: there is no command 'replicas'"),
    ("[tool.fencepost]\nexplore = 2\n", "line 2: explore is no table"),
    ("[tool.fencepost.explore]\nreplicas = 2.5\n", "line 2: 2.5 is no whole number"),
    ("[tool.fencepost.explore]\nmax-states = 'few'\n", "'few' is no whole number"),
    ("[tool.fencepost.explore\n", "cannot be read"),
]


@pytest.mark.parametrize(("text", "told"), BAD, ids=[told for _, told in BAD])
def test_a_bad_setting_is_one_line_with_file_and_line(
    fencepost: Fencepost, project: Path, text: str, told: str
) -> None:
    project.write_text(text)
    line = fencepost("explore", "fencing", "--max-leader-epoch", 1).complaint
    assert told in line and ("pyproject.toml" in line or "max-states" in line)


def test_settings_of_others_say_nothing(fencepost: Fencepost, project: Path) -> None:
    project.write_text("[tool.ruff]\nline-length = 3\n")
    assert "max_leader_epoch 2" in fencepost("explore", "fencing", "--max-states", 9).out


def test_completion_knows_every_command_and_option() -> None:
    script = app.generate_completion(prog_name="fencepost", shell="bash")
    assert all(command in script for command in COMMANDS)
    assert "--max-states" in script and "--junitxml" in script
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_completion_is_installed_for_the_shell(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from fencepost.conformance.cli import run; run()", "--install-completion"]
    environment = {**os.environ, "HOME": str(tmp_path), "SHELL": "/bin/bash"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    (script,) = tmp_path.glob(".local/share/bash-completion/completions/*")
    assert "explore" in script.read_text() and str(script) in (tmp_path / ".bashrc").read_text()
