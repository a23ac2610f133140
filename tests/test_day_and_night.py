"""What runs by day and by night: nothing that has changed is passed over, and what could not run is named."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from fencepost.conformance.free import smaller
from fencepost.conformance.free.events import Event, What
from fencepost.model.explore.disk.compiled_kernel import CompiledKernel

from . import answers

HERE = Path(__file__).parent
ASKING = HERE / "asking.py"
CASES = 40
NIGHTLY = 5
TESTS = f"""
import os
import pytest

def reads():
    from fencepost.model import fencing

@pytest.mark.asked("cvc5")
@pytest.mark.parametrize("n", range({CASES}))
def test_one(n):
    assert str(n) != os.environ.get("BREAKS")

@pytest.mark.night
def test_by_night():
    pass

@pytest.mark.night(seconds=9)
@pytest.mark.parametrize("n", range({NIGHTLY}))
def test_soon(n):
    assert n < {NIGHTLY}

def test_hash_seed():
    assert "EXPECTED" not in os.environ or os.environ["PYTHONHASHSEED"] == os.environ["EXPECTED"]

@pytest.mark.skipif("LACKS" in os.environ, reason="absent: a browser")
def test_needs_a_browser():
    pass

@pytest.mark.skipif("LACKS" in os.environ, reason="root may write anywhere")
def test_needs_nothing():
    pass
"""


SHARED = """
from hypothesis import settings

from .asking import *

settings.register_profile("ci")
settings.register_profile("long")
"""
"""The hooks without what our tests share beside them, which takes longer to import than these tests to run."""


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
        return self.root / "tests" / "asked"

    def lines(self, group: str = "cvc5") -> dict[str, str]:
        """The lines of a group, as written."""
        found: dict[str, str] = json.loads((self.ledger / f"{group}.json").read_text())
        return found

    def run(self, *arguments: str, **environment: str) -> Done:
        unset = (
            "CI",
            "FENCEPOST_NIGHT",
            "FENCEPOST_WRITE_ASKED",
            "FENCEPOST_RUN_IS_WHOLE",
            "FENCEPOST_DRAW",
            "FENCEPOST_HASH_SEED",
            "HYPOTHESIS_PROFILE",
        )
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
    for room in ("impl", "specs"):
        (tmp_path / room).mkdir()
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "model" / "__init__.py").write_text("")
    (tmp_path / "model" / "fencing.py").write_text("guard = 1\n")
    (tmp_path / "tests" / "model").mkdir(parents=True)
    for file in (ASKING, HERE / "answers.py"):
        shutil.copy(file, tmp_path / "tests" / file.name)
    (tmp_path / "tests" / "conftest.py").write_text(SHARED)
    (tmp_path / "tests" / "model" / "test_them.py").write_text(TESTS)
    marks = 'markers = ["asked(group): ", "night(seconds): "]\n'
    options = 'addopts = "--import-mode=importlib -ra --strict-markers"\ntestpaths = ["tests"]\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{options}{marks}")
    return Project(tmp_path)


@pytest.fixture
def shared() -> ModuleType:
    """The hooks of all tests, once more, as a module."""
    spec = importlib.util.spec_from_file_location(f"{answers.__package__}.asking_again", ASKING)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


DAY = 3 + 1
"""What is of no group, and one of the night's."""


def test_an_eighth_of_what_a_night_has_asked_and_all_of_what_has_changed(project: Project) -> None:
    first = project.run()
    assert not project.ledger.exists()
    assert (first.code, first.passed) == (0, CASES + DAY), (
        "no night has asked it: all of it, and what is not of a group"
    )
    # By the workers' word, as tox has it, where they are there.
    workers = ("-n", "2") if importlib.util.find_spec("xdist") else ()
    night = project.run(*workers, FENCEPOST_NIGHT="1")
    assert (night.code, night.passed) == (0, CASES + 3 + 1 + NIGHTLY)
    lines = project.lines()
    assert len(lines) == CASES and all(line.endswith(" a draw") for line in lines.values())
    assert len(project.lines("night")) == 1 + NIGHTLY
    day = project.run()
    assert day.code == 0 and 0 < day.passed - DAY < CASES / 3
    assert "FENCEPOST_DRAW=a draw" in day.out
    assert project.run().passed == day.passed, "the same draw asks the same"

    # Planted: an answer that is stale, as the text has changed; then lines that somebody wrote without asking.
    text = project.root / "model" / "fencing.py"
    text.write_text("guard = 2\n")
    assert project.run().passed == CASES + DAY
    text.write_text("guard = 1\n")
    # What no text reads in changes nothing.
    (project.root / "model" / "other.py").write_text("guard = 1\n")
    assert project.run().passed == day.passed
    stale = {test: line if "[3]" in test else "0" * 16 + " a draw" for test, line in lines.items()}
    (project.ledger / "cvc5.json").write_text(json.dumps(stale))
    assert project.run().passed in (CASES - 1 + DAY, CASES + DAY)


def test_a_night_that_was_broken_off_goes_on(project: Project) -> None:
    """What has passed has its line at once; what fails has none, and is asked again."""
    half = project.run("-k", "test_one and (1 or 2)", FENCEPOST_NIGHT="1")
    assert half.code == 0 and len(project.lines()) == half.passed < CASES
    failing = project.run(FENCEPOST_NIGHT="rest", BREAKS="7")
    assert failing.code == 1
    assert failing.passed == CASES - half.passed - 1 + 3 + 1 + NIGHTLY
    assert len(project.lines()) == CASES - 1 and not any("[7]" in test for test in project.lines())
    last = project.run(FENCEPOST_NIGHT="rest")
    assert (last.code, last.passed, len(project.lines())) == (0, 1 + 3, CASES)
    # New examples are drawn: nobody has asked them.
    longer = project.run("-k", "test_one", FENCEPOST_NIGHT="rest", HYPOTHESIS_PROFILE="long")
    assert (longer.code, longer.passed) == (0, CASES)
    # Planted: the line of a test that is no more. A whole night drops it, and another one does not; what fails has lost
    # its line, and is asked on every day.
    gone = project.ledger / "cvc5.json"
    gone.write_text(json.dumps(project.lines() | {"tests/model/test_them.py::test_gone": "0 a"}))
    assert project.run("-k", "test_one and 7", FENCEPOST_NIGHT="1", BREAKS="7").code == 1
    assert len(project.lines()) == CASES
    assert project.run("--collect-only", FENCEPOST_NIGHT="1").code == 0
    assert len(project.lines()) == CASES
    assert project.run(FENCEPOST_NIGHT="1").code == 0
    assert len(project.lines()) == CASES


def test_a_day_writes_where_it_is_told_to(project: Project) -> None:
    assert project.run(FENCEPOST_WRITE_ASKED="1").code == 0
    assert len(project.lines()) == CASES and len(project.lines("night")) == 1


def test_each_of_the_night_s_that_are_cheap_has_its_day(
    project: Project, shared: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {f"tests/a.py::test_one[{n}]": float(n) for n in range(200)}
    met = set()
    for commit in range(1000):
        monkeypatch.setattr(shared, "draw", lambda commit=commit: f"{commit}")
        met.add(shared.of_the_day(seconds))
    assert met == {test for test, takes in seconds.items() if takes <= shared.BY_DAY}
    assert shared.of_the_day({"tests/a.py::test_one": shared.BY_DAY + 1}) is None
    # Where tests are chosen, none is drawn.
    assert "test_soon" not in project.run("--collect-only", "-q", "tests/model").out


def test_what_an_answer_depends_on_that_the_state_lacks_is_found_by_the_part_that_is_asked(
    project: Project, shared: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a test that fails though nothing has changed that is known to matter. Its day comes within days."""
    assert project.run(FENCEPOST_NIGHT="1").code == 0
    draws: dict[bool, str] = {}
    seven = shared.Asked("cvc5", "tests/model/test_them.py::test_one[7]", "")
    for number in range(24):
        monkeypatch.setattr(shared, "draw", lambda number=number: f"commit {number}")
        known = shared.Ledger(project.ledger, {"cvc5": {seven.test: " a"}})
        draws[shared.is_due(seven, known)] = shared.draw()
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
    tests = [shared.Asked("tlc", f"tests/a.py::test_one[{n}]", "s") for n in range(100)]
    ledger = shared.Ledger(Path("nowhere"), {"tlc": {each.test: "s commit" for each in tests}})
    met: set[object] = set()
    for commit in range(60):
        monkeypatch.setattr(shared, "draw", lambda commit=commit: f"{commit}")
        chosen = {each for each in tests if shared.is_due(each, ledger)}
        assert 4 <= len(chosen) <= 25
        assert all(shared.is_due(shared.Asked(each.group, each.test, "t"), ledger) for each in tests)
        met |= chosen
    assert met == set(tests)


HIDDEN = """
from importlib import import_module

import pytest

@pytest.mark.asked("cvc5")
def test_what_no_import_tells():
    registry = import_module(".".join(("fencepost", "model", "core", "registry")))
    assert registry.PROTOCOLS["fencing"].traced()
"""


def test_what_a_test_runs_and_its_state_lacks_is_found_where_it_is_watched(project: Project) -> None:
    (project.root / "tests" / "model" / "test_hidden.py").write_text(HIDDEN)
    assert project.run("tests/model/test_hidden.py").code == 0
    watched = project.run("tests/model", FENCEPOST_WATCH="1")
    assert watched.code == 1 and watched.passed >= CASES
    assert "test_what_no_import_tells is asked by the state of 'cvc5', which lacks what it runs: " in watched.out
    assert "model/core/registry.py" in watched.out and "model/core/trace.py" in watched.out
    assert not any(each in watched.out for each in answers.ONLY_REFUSES), "which no answer depends on"


def test_a_generator_that_another_test_has_left_is_none_that_this_one_runs() -> None:
    """It goes on once more when the last that held it lets go, whatever is watched then."""
    source = Path("conformance", "free", "smaller.py")
    left = smaller.plainer(Event(What.REPEAT, "Fetch", 0, 1))
    next(left)
    with answers.called() as ran:
        del left
    assert source not in ran
    with answers.called() as ran:
        assert next(smaller.plainer(Event(What.REPEAT, "Fetch", 0, 1)))
    assert source in ran


def test_what_another_test_has_left_is_not_collected_while_one_is_watched() -> None:
    """A generator in a cycle would run to its end, and call what this test does not."""
    source = Path("conformance", "free", "smaller.py")

    def leave(held: list[object]) -> Iterator[None]:
        try:
            yield
        finally:
            held += smaller.plainer(Event(What.REPEAT, "Fetch", 0, 1))

    held: list[object] = []
    generator = leave(held)
    held.append(generator)
    next(generator)
    with answers.called() as ran:
        del generator, held
        gc.collect()
    assert source not in ran
    with answers.called() as ran:
        gc.collect()
    assert source not in ran


def test_a_finalizer_is_nothing_that_this_test_calls() -> None:
    """It runs when the last that held it lets go, whatever is watched then."""
    source = Path("model", "explore", "disk", "compiled_kernel.py")
    left = object.__new__(CompiledKernel)
    with answers.called() as ran:
        del left
    assert source not in ran
    with answers.called() as ran, pytest.raises(AttributeError):
        object.__new__(CompiledKernel).clear()
    assert source in ran


TESTS_OF = {
    "matrix": "conformance/test_mutants_model.py",
    "defects": "conformance/test_mutants_defects.py",
    "free": "conformance/test_mutants_defects.py",
    "kafka": "conformance/test_free_kafka.py",
    "model": "model/test_tiering.py",
    "proofs": "model/test_prove_snapshots.py",
    "runs": "conformance/test_free_run.py",
    "compiled": "model/test_compiled.py",
    "cvc5": "model/test_prove_cvc5.py",
    "tlc": "specs/test_snapshots_tlc.py",
    "night": "conformance/test_cli_check.py",
}


def names(group: str, protocol: str | None = None) -> set[str]:
    """The files on which the tests of a group depend."""
    found = answers.GROUPS[group].files(HERE / TESTS_OF[group], protocol)
    return {each.relative_to(HERE.parent).as_posix() for each in found}


def test_what_the_groups_depend_on_is_there() -> None:
    assert set(TESTS_OF) == set(answers.GROUPS)
    tests = {group: HERE / test for group, test in TESTS_OF.items()}
    states = {name: group.state(tests[name]) for name, group in answers.GROUPS.items()}
    assert len(set(states.values())) == len(states)
    assert all(group.state(tests[name]) == states[name] for name, group in answers.GROUPS.items())
    with pytest.raises(pytest.UsageError, match="no-such-folder, on which answers depend, is not there"):
        answers.Group((), ("no-such-folder",)).state(tests["matrix"])


def test_an_answer_depends_on_what_it_comes_from_and_on_nothing_else() -> None:
    matrix = names("matrix", "fencing")
    assert matrix >= {
        "model/core/terms.py",
        "model/explore/compare.py",
        "model/prove/implied.py",
        "model/protocols/fencing/actions.py",
        "model/protocols/fencing/proof.py",
        "conformance/mutants/proofs.py",
        "conformance/protocols/fencing/arguments.py",
        "conformance/protocols/fencing/plan.py",
        "traces/replay.py",
        "tests/conformance/mutants_fencing.txt",
    }
    assert not any("snapshots" in each or each.startswith("impl/") for each in matrix)
    assert matrix.isdisjoint(answers.ONLY_REFUSES)
    assert not [each for each in answers.ONLY_REFUSES if not (HERE.parent / each).is_file()]
    assert names("matrix") > matrix | names("matrix", "snapshots")
    assert "impl/log/log.py" in names("defects")
    running = names("free", "controller")
    assert running >= {
        "impl/metadata/image.py",
        "impl/metadata/schemas/FenceBrokerRecord.json",
        "conformance/free/follow.py",
    }
    assert not any(each.startswith("conformance/protocols/tiering/") for each in running)
    kafkas = names("kafka", "truncation")
    assert kafkas >= {
        "conformance/kafka/driver/Planted.java",
        "conformance/kafka/driver/checksums.json",
        "conformance/protocols/truncation/kafka.py",
        "conformance/free/follow.py",
        "traces/kafka/maven.py",
    }
    models = names("model", "tiering")
    assert models >= {
        "model/interpret/staged.py",
        "model/protocols/tiering/bootstrap.py",
        "conformance/protocols/tiering/plan.py",
    }
    assert not any(each.startswith(("impl/", "conformance/free/")) for each in models)
    proofs = names("proofs", "snapshots")
    assert "model/protocols/snapshots/proof_hints.py" in proofs and "model/prove/solve.py" in proofs
    assert not any(each.startswith(("impl/", "traces/", "conformance/")) for each in proofs)
    modules = {each for each in names("tlc", "snapshots") if each.startswith("specs/") and each.endswith(".tla")}
    assert modules == {"specs/Snapshots.tla"}
    assert "specs/Kip320Restarts.tla" in names("tlc", "fencing")
