"""A seed that is noted for a test comes first, and those that the test names itself come after it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.conformance.simulation.model_system import ModelSystem
from fencepost.conformance.simulation.runner import SimulationPlan

from . import planted_free as planted
from . import seeds

PLAN = SimulationPlan(runs=40, events=100, seed=3)


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A file in which seed 7 is noted for the test that asks for it."""
    written = tmp_path / "seeds.json"
    written.write_text(json.dumps({request.node.nodeid: 7}), encoding="utf-8")
    monkeypatch.setattr(seeds, "FILE", written)
    return written


def seed_of(system: ModelSystem) -> int | None:
    """From which a divergence is found, if any is."""
    ways = planted.ways_of(system.protocol, system.variant)
    found = seeds.first_with_seed(system, lambda _: ways, PLAN)
    return None if found is None else found[1]


def test_it_comes_first_and_where_nothing_comes_of_it_the_plans_own_is_gone_through(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = planted.ShowsLess("fencing", "kip-320")
    assert seed_of(system) == 7
    monkeypatch.setattr(seeds, "SOON", 0)
    assert seed_of(system) == 3
    monkeypatch.setattr(seeds, "SOON", 20)
    file.unlink()
    assert seed_of(system) == 3


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert seed_of(ModelSystem("fencing", "kip-320")) is None


@pytest.mark.parametrize(("outcome", "noted"), [("passed", 0), ("failed", 7)])
def test_one_is_looked_for_and_noted_where_the_test_passes(
    file: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, outcome: str, noted: int
) -> None:
    monkeypatch.setenv(seeds._SEEKS, "1")
    monkeypatch.delenv(seeds._FOUND, raising=False)
    system, test = planted.ShowsLess("fencing", "kip-320"), request.node.nodeid
    ways = planted.ways_of(system.protocol, system.variant)
    assert seeds.first_divergence(system, lambda _: ways, PLAN) is not None
    report = pytest.TestReport(test, ("", None, ""), {}, outcome, None, "call")  # type: ignore[arg-type]
    seeds._Notes().pytest_runtest_logreport(report)
    assert json.loads(file.read_text(encoding="utf-8")) == {test: noted}
    assert seeds._FOUND not in os.environ


def test_what_is_noted_is_of_tests_that_are_there() -> None:
    root = Path(__file__).parents[2]
    noted = json.loads(Path(seeds.__file__).with_suffix(".json").read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *noted]
    collected = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert collected.returncode == 0 and all(test in collected.stdout.splitlines() for test in noted), collected.stdout
