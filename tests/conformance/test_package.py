"""What is installed is what the repository holds, and the commands of the README are those that CI runs."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from configparser import ConfigParser
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("conformance", "impl", "model", "specs", "traces")

MAIN_JOB = "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/fencepost check"
TESTS = "python3 -m venv .venv && .venv/bin/pip install tox && .venv/bin/tox"

NEEDED = [
    "py.typed",
    "model/explore/disk/disk.c",
    "model/interpret/search.c",
    "specs/Fencing.tla",
    "specs/Kip320.tla",
    "specs/DEVIATIONS.md",
    "traces/trace.schema.json",
    "traces/bundled/failover.tar.gz",
    "traces/bundled/mining.tar.gz",
    "traces/report/page.html.j2",
    "traces/report/index.html.j2",
]
"""Files besides the modules without which some command would fail, or say less: one of each kind."""


@pytest.fixture(scope="module")
def setuptools_table() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    return table


def tracked() -> list[PurePosixPath]:
    """The files below the rooms, but for what tools leave there."""
    paths = [path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file()]
    kept = [path for path in paths if "__pycache__" not in path.parts and path.suffix != ".pyc"]
    return sorted(PurePosixPath(path.as_posix()) for path in kept)


def recent_setuptools() -> bool:
    """Whether setuptools is installed as pyproject.toml asks for it, so that nothing has to be fetched to build."""
    try:
        return int(version("setuptools").split(".")[0]) >= 80
    except PackageNotFoundError:
        return False


def test_no_module_is_left_out() -> None:
    folders = {path.parent for path in tracked() if path.name == "__init__.py"}
    modules = {path.parent for path in tracked() if path.suffix == ".py"}
    assert modules == folders, "a folder with modules and no __init__.py would not be installed"


def test_package_data_patterns_match_every_data_file(setuptools_table: dict[str, Any]) -> None:
    matched: set[PurePosixPath] = set()
    for package, patterns in setuptools_table["package-data"].items():
        folder = ROOT.joinpath(*package.split(".")[1:])
        for pattern in patterns:
            hits = [path.relative_to(ROOT) for path in folder.glob(pattern) if path.is_file()]
            assert hits, f"{package}: {pattern} matches nothing"
            matched |= {PurePosixPath(path.as_posix()) for path in hits}
    data = {path for path in tracked() if path.suffix != ".py" and not path.name.startswith(".git")}
    assert data - matched == set(), "these would be missing once installed"


@pytest.mark.parametrize("name", NEEDED)
def test_the_installed_package_holds_what_its_commands_read(name: str) -> None:
    assert files("fencepost").joinpath(*name.split("/")).is_file()


def test_a_wheel_of_this_checkout_holds_every_file(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "__init__.py", "__main__.py", "py.typed"):
        shutil.copy(ROOT / name, source / name)
    for path in tracked():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, source / path)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, source]
    if recent_setuptools():
        command.insert(4, "--no-build-isolation")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0 and "setuptools" in done.stderr and "No matching distribution" in done.stderr:
        pytest.skip("absent: setuptools is neither installed nor to be had")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("fencepost-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {PurePosixPath(name) for name in archive.namelist()}
    wanted = {"fencepost" / path for path in tracked() if not path.name.startswith(".git")}
    assert wanted - held == set()
    assert {PurePosixPath("fencepost", name) for name in NEEDED} - held == set()
    foreign = {path for path in held - wanted if path.parts[0] == "fencepost"}
    assert foreign == {PurePosixPath("fencepost", name) for name in ("__init__.py", "__main__.py", "py.typed")}
    entry = next(name for name in held if name.name == "entry_points.txt")
    with zipfile.ZipFile(wheel) as archive:
        assert "fencepost = fencepost.conformance.entry:run" in archive.read(str(entry)).decode()


def test_the_readme_gives_the_two_commands() -> None:
    lines = [line.strip() for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()]
    assert MAIN_JOB in lines
    assert TESTS in lines


def test_ci_runs_the_test_command_of_the_readme_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    lines = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    assert lines == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', TESTS]
    assert script.stat().st_mode & 0o111, "executable"
    subprocess.run(["bash", "-n", script], check=True)


def test_tox_shares_tests_among_workers() -> None:
    """In both tiers: a worker without work takes tests of another. The ten slowest are named."""
    tox = ConfigParser(interpolation=None)
    assert tox.read(ROOT / "tox.ini")
    for environment in ("tests", "nightly"):
        runs = [line for line in tox[f"testenv:{environment}"]["commands"].split("\n") if "pytest" in line]
        assert runs and all("--dist worksteal --durations 10 " in line and line.endswith("{posargs}") for line in runs)
    assert tox["tox"]["env_list"] == "tests"


NEED_NOT = "root may write anywhere"
"""Why a test is skipped that lacks nothing: it has nothing to ask of this user."""


def calls_of(name: str) -> Iterator[tuple[str, ast.Call]]:
    """The calls of pytest's ``name`` in the tests, each with where it is; not in those that are about such words."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if f".{name}(" not in text or path.name == "test_tiers.py":
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_skips_for_a_missing_dependency_begin_with_absent() -> None:
    """``tiers.py`` tells a test that could not run from one that need not by how its reason begins."""
    found = 0
    for name in ("skip", "skipif", "importorskip"):
        for where, call in calls_of(name):
            said = [each.value for each in call.keywords if each.arg == "reason"] or call.args[:1]
            words = said[0].values[0] if isinstance(said[0], ast.JoinedStr) else said[0]
            assert isinstance(words, ast.Constant) and isinstance(words.value, str), where
            assert words.value.startswith(("absent: ", NEED_NOT)), where
            found += 1
    assert found > 15


def test_nightly_marks_name_their_seconds() -> None:
    """The shards are balanced by them."""
    marks = list(calls_of("nightly"))
    assert len(marks) > 10
    for where, call in marks:
        assert not call.args and [each.arg for each in call.keywords] == ["seconds"], where
