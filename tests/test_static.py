"""The checks of the source as a whole: types and the main job of the README."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.first


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=1800)


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="absent: mypy")
def test_types_are_strict(tmp_path: Path) -> None:
    # The installed package, because the checkout's folder need not be called fencepost.
    settings = Path(__file__).parents[1] / "pyproject.toml"
    done = run(tmp_path, "mypy", "--config-file", str(settings), "-p", "fencepost")
    assert done.returncode == 0, done.stdout + done.stderr


def test_main_job_holds(tmp_path: Path) -> None:
    done = run(tmp_path, "fencepost", "check", "--report", "report")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "report" / "index.html").is_file()
