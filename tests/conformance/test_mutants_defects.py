"""Every defect of the implementation is killed, in lockstep or running freely; one that changes nothing is not."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from functools import cache
from statistics import median

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.harness import all_defects
from fencepost.conformance.mutants.defect_rows import Judge
from fencepost.conformance.mutants.defects import Defect, defect
from fencepost.conformance.mutants.free_rows import FreeJudge, free_over, is_free_only
from fencepost.conformance.mutants.matrix import Matrix, Outcome, Verdict
from fencepost.conformance.mutants.patched import patched
from fencepost.conformance.simulation.runner import SimulationPlan, repeat

from .seeds import first_ran

LONGEST = 12
"""Steps of a minimal run."""
LONGEST_FREE = 14
"""The same of a free run, in events."""
WITHIN = {"fencing": 4_000, "truncation": 4_000, "snapshots": 8_000}
"""Steps in the median until a run shows the defect: twice what is wanted, as ten seeds tell it to a factor of two."""

BY_NAME = {each.name: each for each in all_defects()}
RUNNING = [(each.protocol, name) for name, each in BY_NAME.items() if is_free_only(each.protocol)]
"""Those of systems that run freely and are in no lockstep, each after its protocol."""
IN_STEP = [name for name, each in BY_NAME.items() if (each.protocol, name) not in RUNNING]


@cache
def judge() -> Judge:
    return Judge()


@cache
def freely() -> FreeJudge:
    return FreeJudge()


def test_each_is_named_once_and_those_of_kafka_name_its_issue() -> None:
    assert len(BY_NAME) == len(all_defects()) >= 90
    assert Counter(each.protocol for each in all_defects())["snapshots"] >= 40
    issues = {each.issue for each in all_defects()}
    known = {"KAFKA-6880", "KAFKA-6361", "KAFKA-7128", "KAFKA-7786", "KAFKA-13141", "KAFKA-14704", "KAFKA-1211"}
    assert known <= issues


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", IN_STEP)
def test_it_is_killed(name: str) -> None:
    row = judge().row(BY_NAME[name])
    found = row.cell("hypothesis")
    assert (row.verdict, row.complaints) == (Verdict.KILLED, ())
    assert found.length is not None and found.length <= LONGEST
    # Trace replay kills it too, unless no state shows it.
    assert row.cell("replay").outcome in (Outcome.KILLED, Outcome.EQUIVALENT)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("protocol", "name"), RUNNING)
def test_it_is_found_running_freely(protocol: str, name: str) -> None:
    """By the divergence as it is found; that it becomes small is seen by night."""
    chosen, portfolio = BY_NAME[name], freely().portfolio(protocol)
    with patched(*chosen.patches) as root, closing(free_over(protocol)(Parts.of(root))) as system:
        found = first_ran(system, lambda number: portfolio[number % len(portfolio)], SimulationPlan())
        assert found is not None and found.divergence is not None
        again = repeat(system, found.ways, found.seed, found.events).divergence
    assert again is not None and found.divergence.alike(again)
    assert freely().clean(chosen, found).divergence is None


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize(("protocol", "name"), RUNNING)
def test_it_is_killed_running_freely(protocol: str, name: str) -> None:
    row = judge().row(BY_NAME[name])
    assert (row.verdict, row.complaints) == (Verdict.KILLED, ())
    # The time for making a run minimal is the clock's, and a busy machine may run out of it.
    length = row.cell("free").length
    assert length is None or length <= LONGEST_FREE


def test_what_changes_nothing_survives_and_fails_the_matrix() -> None:
    same = defect(
        "same", "fencing", "nothing", "replica/isr.py", "now - each.fetched_at <= lag", "lag >= now - each.fetched_at"
    )
    row = Judge(examples=20).row(same)
    assert row.cell("hypothesis").outcome is Outcome.SURVIVED
    assert row.verdict is Verdict.FAILED
    assert Matrix.of([row]).exit_code == 1


def test_the_same_seed_finds_the_same_run() -> None:
    chosen: Defect = BY_NAME["leader-epoch-not-stored"]
    first, again = (judge().drive(chosen, 3).failure for _ in range(2))
    assert first is not None and again is not None
    assert first.tries == again.tries


@pytest.mark.nightly(seconds=30)
@pytest.mark.parametrize("name", IN_STEP)
def test_it_is_killed_soon_in_the_median_of_ten_seeds(name: str) -> None:
    runs = [judge().drive(BY_NAME[name], seed) for seed in range(10)]
    steps = [run.coverage.steps if run.failure is not None else 1 << 60 for run in runs]
    assert median(steps) <= WITHIN[BY_NAME[name].protocol], sorted(steps)
    assert max(len(run.failure.tries) for run in runs if run.failure is not None) <= LONGEST
