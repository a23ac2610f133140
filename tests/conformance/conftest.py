"""The command line, run in this process or in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fencepost.conformance.cli import main
from fencepost.model.core.registry import REGISTRY
from fencepost.traces.kafka.capture import broker_directories, bundled_corpus


@dataclass(frozen=True)
class Said:
    """What a command left: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on standard output; fails where there is anything else."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        assert self.out.count("\n") == 1 and self.out.endswith("\n"), "one object on one line"
        return found

    @property
    def complaint(self) -> str:
        """The one line on standard error of a command line or an input that is wrong; fails where it says more."""
        assert self.code == 2, self
        assert self.out == "", self.out
        (line,) = self.err.splitlines()
        assert line.startswith("fencepost: ") and "Traceback" not in line
        return line.removeprefix("fencepost: ")

    @property
    def lines(self) -> list[str]:
        """Standard error, line by line; fails for a stack trace."""
        assert "Traceback" not in self.err
        return self.err.splitlines()


Fencepost = Callable[..., Said]


@pytest.fixture
def fencepost(capsys: pytest.CaptureFixture[str]) -> Fencepost:
    """Run the command line in this process: ``fencepost("explore", "fencing", ...)``."""

    def run(*arguments: object) -> Said:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return run


@pytest.fixture
def process() -> Fencepost:
    """Run the command line as a process, its output in pipes."""

    def run(*arguments: object, cwd: Path | None = None, seconds: int = 300) -> Said:
        program = "from fencepost.conformance.cli import run; run()"
        command = [sys.executable, "-c", program, *map(str, arguments)]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=seconds)
        return Said(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def brokers() -> Callable[[str], list[Path]]:
    """The brokers' data directories of one stage of the bundled corpus."""
    return lambda stage: broker_directories(bundled_corpus(), stage)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the protocols and systems that a test registers."""
    monkeypatch.setattr(REGISTRY, "_loaded", dict(REGISTRY._loaded))
    monkeypatch.setattr(REGISTRY, "_places", dict(REGISTRY._places))
