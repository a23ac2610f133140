"""Run a ``fencepost`` command in a scratch folder, in the checkout that this process imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fencepost

CHECKOUT = Path(fencepost.__file__).resolve().parent
"""The folder of the package."""
SECONDS = 3 * 3600.0
"""Limit of one command."""
TIMED_OUT = 124
"""Exit code of a command that exceeded the limit, as of ``timeout``."""


@dataclass(frozen=True)
class Outcome:
    """Result of a command. ``value``: standard output, parsed if it is JSON."""

    exit_code: int
    value: Any
    errors: str


def run(args: list[str], scratch: Path, seconds: float = SECONDS) -> Outcome:
    """Run ``fencepost ARGS`` in ``scratch``."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    env |= {"PYTHONPATH": str(CHECKOUT.parent), "NO_COLOR": "1", "COLUMNS": "120", "TZ": "UTC"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "fencepost", *args],
            cwd=scratch,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(TIMED_OUT, None, "")
    return Outcome(done.returncode, _parsed(done.stdout), done.stderr)


def run_alone(*args: str) -> Outcome:
    """Run a command that reads no file, in a folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="baseline-") as scratch:
        return run(list(args), Path(scratch))


def show(*args: str) -> Any:
    """Return the JSON output of a command that reads no file."""
    return run_alone(*args, "--json").value


def _parsed(text: str) -> Any:
    """The JSON value, or one value a line, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return text
