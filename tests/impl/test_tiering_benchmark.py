"""``python -m benchmarks.tiering``: what is asked of it that this machine cannot do ends in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WITHOUT = "import runpy, sys; sys.modules['moto'] = None; runpy.run_module('benchmarks.tiering', run_name='__main__')"


def test_without_an_s3_server_nothing_is_measured() -> None:
    program = [sys.executable, "-c", f"import sys; sys.argv[1:] = ['--mib', '1']; {WITHOUT}"]
    ran = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("s3: ") and "pip install -c constraints.txt 'moto[server]'" in ran.stderr


def test_a_folder_needs_none() -> None:
    given = ["--mib", "1", "--segment-kib", "64", "--shares", "0.9", "--store", "folder"]
    program = [sys.executable, "-c", f"import sys; sys.argv[1:] = {given}; {WITHOUT}"]
    ran = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "folder" in ran.stdout and "tiered" in ran.stdout
