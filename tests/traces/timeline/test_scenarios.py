"""Whole command lines: each folder has log files, and the expected output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fencepost.conformance.cli import main

SCENARIOS = Path(__file__).parent / "scenarios"


@pytest.mark.parametrize("name", sorted(each.name for each in SCENARIOS.iterdir()))
def test_scenario_output(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folder = SCENARIOS / name
    monkeypatch.chdir(folder)
    files = sorted(each.name for each in folder.iterdir() if each.name != "expected.txt")
    code = main(["timeline", *files])
    out, err = capsys.readouterr()
    lines = [line.rstrip() for line in (out + err).splitlines()]
    told = "\n".join([f"$ fencepost timeline {' '.join(files)}", *lines, f"exit code {code}"]) + "\n"
    expected = folder / "expected.txt"
    if os.environ.get("FENCEPOST_REWRITE"):
        expected.write_text(told)
    assert told == expected.read_text()
