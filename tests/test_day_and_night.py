"""What runs by day and by night: nothing that has changed is passed over, and what could not run is named."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

CONFTEST = Path(__file__).parent / "conftest.py"
CASES = 40
TESTS = f"""
import os
import pytest

@pytest.mark.asked("cvc5")
@pytest.mark.parametrize("n", range({CASES}))
def test_one(n):
    assert str(n) != os.environ.get("BREAKS")

@pytest.mark.night
def test_by_night():
    pass

def test_hash_seed():
    assert "EXPECTED" not in os.environ or os.environ["PYTHONHASHSEED"] == os.environ["EXPECTED"]

@pytest.mark.skipif("LACKS" in os.environ, reason="absent: a browser")
def test_needs_a_browser():
    pass

@pytest.mark.skipif("LACKS" in os.environ, reason="root may write anywhere")
def test_needs_nothing():
    pass
"""


@dataclass
class Done:
    code: int
    out: str

    @property
    def passed(self) -> int:
        found = re.search(r"(\d+) passed", self.out)
        return int(found[1]) if found else 0


@dataclass
class Project:
    """A package with these tests."""

    root: Path

    @property
    def ledger(self) -> Path:
        return self.root / "tests" / "asked.json"

    def run(self, *arguments: str, **environment: str) -> Done:
        unset = ("CI", "FENCEPOST_NIGHT", "FENCEPOST_DRAW", "FENCEPOST_HASH_SEED", "HYPOTHESIS_PROFILE")
        inherited = {name: value for name, value in os.environ.items() if name not in unset and "PYTEST" not in name}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
            cwd=self.root,
            env=inherited | {"FENCEPOST_DRAW": "a draw"} | environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Done(done.returncode, done.stdout + done.stderr)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "model").mkdir()
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "model" / "fencing.py").write_text("guard = 1\n")
    (tmp_path / "tests" / "model").mkdir(parents=True)
    shutil.copy(CONFTEST, tmp_path / "tests" / "conftest.py")
    (tmp_path / "tests" / "model" / "test_them.py").write_text(TESTS)
    marks = 'markers = ["asked(group): ", "night: "]\n'
    options = 'addopts = "--import-mode=importlib -ra --strict-markers"\ntestpaths = ["tests"]\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{options}{marks}")
    return Project(tmp_path)


@pytest.fixture
def shared() -> ModuleType:
    """The hooks of all tests, once more, as a module."""
    spec = importlib.util.spec_from_file_location("conftest_again", CONFTEST)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_an_eighth_of_what_a_night_has_asked_and_all_of_what_has_changed(project: Project) -> None:
    first = project.run()
    assert not project.ledger.exists()
    assert (first.code, first.passed) == (0, CASES + 3), "no night has asked it: all of it, and what is not of a group"
    # By the workers' word, as tox has it, where they are there.
    workers = ("-n", "2") if importlib.util.find_spec("xdist") else ()
    night = project.run(*workers, FENCEPOST_NIGHT="1")
    assert (night.code, night.passed) == (0, CASES + 4)
    entry = json.loads(project.ledger.read_text())["cvc5"]
    assert (entry["tests"], entry["commit"]) == (CASES, "a draw")
    day = project.run()
    assert day.code == 0 and 0 < day.passed - 3 < CASES / 3
    assert "FENCEPOST_DRAW=a draw" in day.out
    assert project.run().passed == day.passed, "the same draw asks the same"

    # Planted: an answer that is stale, as the text has changed; then one that somebody wrote down without asking.
    text = project.root / "model" / "fencing.py"
    text.write_text("guard = 2\n")
    assert project.run().passed == CASES + 3
    text.write_text("guard = 1\n")
    assert project.run().passed == day.passed
    project.ledger.write_text(json.dumps({"cvc5": entry | {"state": "0" * 64}}))
    assert project.run().passed == CASES + 3


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [((), {"BREAKS": "7"}), (("-k", "one"), {}), (("tests/model",), {})],
)
def test_only_a_whole_night_that_passed_is_written_down(
    project: Project, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    assert project.run(*arguments, FENCEPOST_NIGHT="1", **environment).passed >= CASES - 1
    assert not project.ledger.exists()


def test_what_an_answer_depends_on_that_the_state_lacks_is_found_by_the_part_that_is_asked(
    project: Project, shared: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a test that fails though nothing has changed that is known to matter. Its day comes within days."""
    assert project.run(FENCEPOST_NIGHT="1").code == 0
    draws: dict[bool, str] = {}
    for number in range(24):
        monkeypatch.setattr(shared, "draw", lambda number=number: f"commit {number}")
        draws[shared.is_due("cvc5", "tests/model/test_them.py::test_one[7]", {"cvc5": {"state": ""}}, "")] = (
            shared.draw()
        )
    assert project.run(FENCEPOST_DRAW=draws[True], BREAKS="7").code == 1
    assert project.run(FENCEPOST_DRAW=draws[False], BREAKS="7").code == 0


def test_what_could_not_run_is_said_last_and_fails_where_ci_is_set(project: Project) -> None:
    quiet = project.run(LACKS="")
    assert quiet.code == 0
    assert "not run, for want of what they need" in quiet.out
    *_, named, closing = quiet.out.splitlines()
    assert (named, "passed" in closing) == ("a browser: tests/model/test_them.py (1)", True)
    assert project.run(LACKS="", CI="true").code == 1
    assert project.run(CI="true").code == 0


def test_the_hash_seed_of_the_workers_is_drawn_and_printed(project: Project) -> None:
    pytest.importorskip("xdist")
    drawn = re.search(r"FENCEPOST_HASH_SEED=(\d+)", project.run("-n", "1").out)
    assert drawn is not None
    assert project.run("-n", "1", EXPECTED=drawn[1]).code == 0
    assert project.run("-n", "1", EXPECTED="7", FENCEPOST_HASH_SEED="7").code == 0
    assert project.run("-n", "1", EXPECTED="7").code == 1


def test_every_test_of_a_group_has_its_day(shared: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    due: Callable[..., bool] = shared.is_due
    tests = [f"tests/a.py::test_one[{n}]" for n in range(100)]
    met: set[str] = set()
    for commit in range(60):
        monkeypatch.setattr(shared, "draw", lambda commit=commit: f"{commit}")
        chosen = {test for test in tests if due("tlc", test, {"tlc": {"state": "s"}}, "s")}
        assert 4 <= len(chosen) <= 25
        assert all(due("tlc", test, {"tlc": {"state": "s"}}, "t") for test in tests)
        met |= chosen
    assert met == set(tests)


def test_what_the_groups_depend_on_is_there(shared: ModuleType) -> None:
    states = {name: group.state() for name, group in shared.GROUPS.items()}
    assert len(set(states.values())) == len(states)
    assert all(group.state() == states[name] for name, group in shared.GROUPS.items())
    with pytest.raises(pytest.UsageError, match="no-such-folder, on which answers depend, is not there"):
        shared.Group(("no-such-folder",), ()).state()
