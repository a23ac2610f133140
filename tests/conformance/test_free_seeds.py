"""A seed that is noted for a test comes first, and those that the test names itself come after it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fencepost.conformance.free.model_system import ModelSystem
from fencepost.conformance.free.runner import FreePlan

from . import planted_free as planted
from . import seeds

PLAN = FreePlan(runs=40, events=100, seed=3)


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A file in which seed 7 is noted for the test that asks for it."""
    monkeypatch.setattr(seeds, "FILE", tmp_path / "seeds.json")
    seeds.FILE.write_text(json.dumps({request.node.nodeid: 7}), encoding="utf-8")
    monkeypatch.delenv(seeds._SEEKS, raising=False)
    monkeypatch.setenv(seeds._MET, "")
    return seeds.FILE


def met_from(system: ModelSystem) -> str | None:
    """The seed from which a fault is come to, if any is."""
    ways = planted.ways_of(system.protocol, system.variant)
    parted = seeds.first_parted(system, lambda _: ways, PLAN)
    return None if parted is None else os.environ[seeds._MET]


def test_it_comes_first_and_where_nothing_comes_of_it_the_plans_own_is_gone_through(
    note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = planted.ShowsLess("fencing", "kip-320")
    assert met_from(system) == "7"
    monkeypatch.setattr(seeds, "SOON", 0)
    assert met_from(system) == "3"
    monkeypatch.undo()
    monkeypatch.setattr(seeds, "FILE", note.with_name("none"))
    assert met_from(system) == "3"


def test_nothing_is_found_where_nothing_is_wrong(note: Path) -> None:
    assert note.exists() and met_from(ModelSystem("fencing", "kip-320")) is None


def test_one_is_looked_for_and_noted_where_the_test_passes(note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(seeds._SEEKS, "1")
    assert met_from(planted.ShowsLess("fencing", "kip-320")) == "0"
    for passed, seed in ((True, 0), (False, 7)):
        note.write_text(json.dumps({"a": 7}), encoding="utf-8")
        monkeypatch.setenv(seeds._MET, "0")
        outcome = "passed" if passed else "failed"
        report = pytest.TestReport("a", ("a", 1, "a"), {}, outcome, None, "call")  # type: ignore[arg-type]
        seeds._Notes().pytest_runtest_logreport(report)
        assert json.loads(note.read_text(encoding="utf-8")) == {"a": seed}


@pytest.mark.parametrize("test", json.loads(seeds.FILE.read_text(encoding="utf-8")))
def test_what_is_noted_is_of_a_test_that_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    text = (Path(__file__).parents[2] / file).read_text(encoding="utf-8")
    assert f"def {name.partition('[')[0]}(" in text
