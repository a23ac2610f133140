"""What free runs of Apache Kafka are asked, whatever of it runs: what they found, and whether they are repeatable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fencepost.conformance.simulation.divergence import Divergence
from fencepost.conformance.simulation.runner import RunRecord, SimulationPlan, SimulationResult
from fencepost.conformance.simulation.system import SimulatedSystem
from fencepost.model.explore.result import Verdict

from .conftest import Fencepost


@pytest.fixture
def as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found is taken as it is: to make it small takes longer than to find it."""

    def unmade(_system: SimulatedSystem, failed: RunRecord, _until: object) -> tuple[RunRecord, bool, bool]:
        return failed, True, False

    monkeypatch.setattr("fencepost.conformance.simulation.runner.smallest", unmade)


def found(free: SimulationResult, what: str = "") -> Divergence:
    """How it parted; ``what`` was planted, and is printed with how long that took."""
    assert free.verdict is Verdict.VIOLATED and free.failure is not None
    divergence = free.failure.divergence
    assert divergence is not None
    if what:
        print(what, free.met.events, divergence.detail)
    return divergence


def is_repeatable(run: Callable[[SimulationPlan], SimulationResult]) -> None:
    """The same seed is the same run, whatever the JVM has run before."""
    plan = SimulationPlan(runs=4, events=60, seed=9)
    one, _, other = run(plan), run(SimulationPlan(runs=5, events=80, seed=1)), run(plan)
    assert (one.met.events, one.met.steps, one.kinds) == (other.met.events, other.met.steps, other.kinds)


def wants_maven(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *of: object) -> None:
    """Without Maven, and nothing kept of what it brought, a command says so in one line."""
    for name in ("XDG_CACHE_HOME", "PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert fencepost("conform", *of, "--impl", "kafka").complaint.startswith("Maven: no mvn on PATH")
