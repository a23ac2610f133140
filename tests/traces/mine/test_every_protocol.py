"""Mining with planted faults, of each protocol that there is: all that was planted is found, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fencepost.conformance.harness import find_harness
from fencepost.conformance.plan import constants_of
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.traces.corpus.faults import ALL, faults_named
from fencepost.traces.corpus.plan import make_plan
from fencepost.traces.corpus.simulate import simulate, simulation, walker
from fencepost.traces.mine.job import Asked, mine

TRACES, PLANTED, STEPS, FAULTS = 400, 80, 40, 16


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("protocol", REGISTRY)
def test_what_is_planted_is_found_and_nothing_else(protocol: str, tmp_path: Path, truth: Any, random_seed: int) -> None:
    """Sixteen faults that are drawn by the commit, of all variants and mutants, as far as they show."""
    harness = find_harness(protocol)
    assert harness is not None
    model = REGISTRY[protocol].protocol
    constants = constants_of(model, harness.find_plan().at)
    seed = random_seed % (1 << 20)
    asked = simulation(protocol, None, constants, TRACES, STEPS, seed, 2)
    every = faults_named(model.traced(asked.variant), (ALL,))
    first = random_seed % len(every)
    faults = tuple(every[(first + n * len(every) // FAULTS) % len(every)] for n in range(FAULTS))
    plan = make_plan(walker(asked, faults), faults, (), TRACES, PLANTED, STEPS)
    simulate(asked, tmp_path / "corpus", plan)
    planted = truth(tmp_path / "corpus")
    assert len(planted) == PLANTED and {each["fault"] for each in planted.values()} == set(plan.faults)
    answer = mine(Asked(tmp_path / "corpus"))
    # A planted trace takes a step that the variant does not: each is found, and no other one (recall and precision 1).
    assert (answer.verdict, answer.traces, answer.violating_traces) == (Verdict.VIOLATED, TRACES, PLANTED)
    assert {group.first for group in answer.groups} <= set(planted)
    assert sum(group.count for group in answer.groups) == PLANTED and not answer.unknown
