"""Seeds from which free runs come to a planted fault soon. From others it may take a hundred times as long.

``seeds.json`` has one for tests that would take long otherwise, by their names. A test goes through a few runs of it
before those that it names itself, so that it takes longer, and fails no sooner, where draws have changed since.
``python -m tests.conformance.seeds TEST...`` looks for one for each of these tests, and notes it if the test passes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.conformance.simulation.coverage import SimulationCoverage
from fencepost.conformance.simulation.coverage_feedback import CoverageFeedback
from fencepost.conformance.simulation.divergence import Divergence
from fencepost.conformance.simulation.play import SimulationPlan, play, run_seed
from fencepost.conformance.simulation.shrink import RunRecord
from fencepost.conformance.simulation.system import SimulatedSystem
from fencepost.conformance.simulation.transitions import Transitions

FILE = Path(__file__).with_suffix(".json")
SOON = 20
"""So many runs of a noted seed are gone through."""
BURSTS = (2, 5, 15)
"""So many runs of each of ``SOUGHT`` seeds, one burst after the other, are gone through where one is looked for."""
SOUGHT = 24

_SEEKS, _FOUND = "FENCEPOST_SEEKS_SEEDS", "FENCEPOST_SEED_FOUND"
"""Set where a seed is looked for, and to the one that is found: pytest imports this module again, as another one."""


def first_divergence(
    system: SimulatedSystem, at: Callable[[int], Transitions], plan: SimulationPlan, word: str = ""
) -> Divergence | None:
    """The first divergence that is told with this word, as it is found: it is not made small.

    ``at``: the ways of a run, by its number.
    """
    found = first_ran(system, at, plan, word)
    return None if found is None else found.divergence


def first_ran(
    system: SimulatedSystem, at: Callable[[int], Transitions], plan: SimulationPlan, word: str = ""
) -> RunRecord | None:
    """The run that ends in it."""
    found = first_with_seed(system, at, plan, word)
    if found is None:
        return None
    ran, seed = found
    if _SEEKS in os.environ:
        os.environ[_FOUND] = str(seed)
    return ran


def first_with_seed(
    system: SimulatedSystem, at: Callable[[int], Transitions], plan: SimulationPlan, word: str = ""
) -> tuple[RunRecord, int] | None:
    """The same, and the seed from which it was found."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    for each in _plans(test, plan):
        memory, met = CoverageFeedback(), SimulationCoverage()
        for number in range(each.runs):
            ran = play(system, at(number), run_seed(each.seed, number), each, memory, met)
            if ran.divergence is not None and word in ran.divergence.headline:
                return ran, each.seed
    return None


def _plans(test: str, plan: SimulationPlan) -> Iterator[SimulationPlan]:
    if _SEEKS in os.environ:
        yield from (replace(plan, runs=runs, seed=seed) for runs in BURSTS for seed in range(SOUGHT))
    elif test in (known := _known()):
        yield replace(plan, runs=min(plan.runs, SOON), seed=known[test])
    yield plan


def _known() -> dict[str, int]:
    found: dict[str, int] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return found


class _Notes:
    """Notes the seeds of tests that pass."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = os.environ.pop(_FOUND, None) if report.when == "call" else None
        if found is not None and report.passed:
            known = _known() | {report.nodeid: int(found)}
            FILE.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ[_SEEKS] = "1"
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[_Notes()]))
