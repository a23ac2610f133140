"""The tiers of the test suite: samples, shards, and skips for a missing dependency."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

TIERS = Path(__file__).with_name("tiers.py")
CASES = 40
SAMPLE = 5
TESTS = f"""
import os

import pytest

@pytest.mark.sampled({SAMPLE})
@pytest.mark.parametrize("n", range({CASES}))
def test_sampled(n):
    pass

@pytest.mark.nightly(seconds=900)
@pytest.mark.parametrize("n", range(3))
def test_nightly(n):
    pass

def test_hash_seed():
    assert os.environ.get("EXPECTED", "") in ("", os.environ.get("PYTHONHASHSEED"))

@pytest.mark.skipif("LACKS" in os.environ, reason="absent: a browser")
def test_browser():
    pass

@pytest.mark.skipif("LACKS" in os.environ, reason="root may write anywhere")
def test_permission():
    pass
"""
CONFTEST = """
from hypothesis import settings

from .tiers import *

settings.register_profile("ci")
settings.register_profile("long")
"""
QUICK = SAMPLE + 3
WHOLE = CASES + 3 + 3


@dataclass(frozen=True)
class Run:
    """Exit code and output of pytest."""

    code: int
    out: str

    @property
    def passed(self) -> set[str]:
        """The tests that passed."""
        return set(re.findall(r"^\S*?::(\S+) PASSED", self.out, re.MULTILINE))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with these tests in two files, and the tiers."""
    tests = tmp_path / "tests"
    tests.mkdir()
    shutil.copy(TIERS, tests)
    (tests / "conftest.py").write_text(CONFTEST)
    (tests / "test_them.py").write_text(TESTS)
    marks = 'markers = ["first", "kafka", "spark", "nightly(seconds)", "sampled(cases)"]\n'
    options = 'addopts = "--import-mode=importlib -rA --strict-markers"\ntestpaths = ["tests"]\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{options}{marks}")
    return tmp_path


def run(project: Path, *arguments: str, **environment: str) -> Run:
    inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "HYPOTHESIS_PROFILE")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments],
        cwd=project,
        env={name: value for name, value in inherited.items() if "PYTEST" not in name} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Run(done.returncode, done.stdout + done.stderr)


def test_quick_tier_runs_a_fixed_sample(project: Path) -> None:
    first = run(project)
    assert first.code == 0 and len(first.passed) == QUICK
    assert not any("nightly" in test for test in first.passed)
    assert run(project, PYTHONHASHSEED="7").passed == first.passed


def test_nightly_tier_runs_every_test(project: Path) -> None:
    nightly = run(project, "--nightly")
    assert nightly.code == 0 and len(nightly.passed) == WHOLE
    assert re.search(r"tier: nightly, --random-seed \d+", nightly.out)


def test_named_test_runs_in_any_tier(project: Path) -> None:
    assert run(project, "tests/test_them.py::test_nightly").passed == {f"test_nightly[{n}]" for n in range(3)}


def test_shards_partition_the_tests(project: Path) -> None:
    parts = [run(project, "--nightly", "--shard", f"{n}/4").passed for n in range(1, 5)]
    assert sum(map(len, parts)) == len(set().union(*parts)) == WHOLE
    # The three long tests are in three shards, and the short ones in the fourth.
    assert sorted(map(len, parts)) == [1, 1, 1, WHOLE - 3]


@pytest.mark.parametrize("shard", ["0/2", "3/2", "2", "a/b"])
def test_shard_out_of_range_is_rejected(project: Path, shard: str) -> None:
    rejected = run(project, "--shard", shard)
    assert rejected.code == 4 and f"--shard: '{shard}' is no shard; write I/N" in rejected.out


def test_missing_dependency_is_named_and_fails_ci(project: Path) -> None:
    local = run(project, LACKS="")
    assert local.code == 0 and local.out.splitlines()[-2] == "a browser: tests/test_them.py (1)"
    assert run(project, LACKS="", CI="true").code == 1
    assert run(project, CI="true").code == 0


def test_workers_use_the_printed_hash_seed(project: Path) -> None:
    pytest.importorskip("xdist", reason="absent: pytest-xdist")
    assert run(project, "-n", "1", "--random-seed", "7", EXPECTED="7").code == 0
    assert run(project, "-n", "1", "--random-seed", "7", EXPECTED="8").code == 1
