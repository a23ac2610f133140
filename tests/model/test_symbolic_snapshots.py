"""The finite symbolic relation of ``snapshots`` against the reference: every step that there is, and what must not be.

Constants: replicas/observers/log size/leader epoch/chunks/minimum records/late responses/lag expires.
"""

from __future__ import annotations

import pytest
from fencepost.model.core.ground import System
from fencepost.model.explore.result import Verdict
from fencepost.model.interpret.reference import Reference
from fencepost.model.interpret.symbolic import Symbolic
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.prove.crosscheck import Sample, crosscheck, disturbed, exhaustive
from fencepost.model.prove.spread import lone_refusals, spread

from .every_step import at, drawn, every_step, tells_apart

SEED = 630
SMALLEST = ("2/1/1/0/1/0/1/1", "3/0/1/0/1/0/0/1")
"""One voter, one observer and one late response; three voters. Nothing diverges there, and one offset is never cut."""
DIVERGING = "3/0/1/1/1/0/0/1"
"""Three voters and two epochs: 10,308 states of the safe variant."""
LARGER = "3/0/1/1/1/0/1/1"
LARGEST = ("3/0/2/1/1/0/1/1", "3/1/2/1/2/1/1/0")
MIXED = "3/1/3/1/2/1/1/0"
"""Every constant at a value that matters: each guard has something to refuse."""
SAFE = "kip-630-safe"

nightly = pytest.mark.nightly

IMPLIED = {
    "grant_vote.candidate_stands": "no vote is up to date with a log of nobody's",
    "fetch_snapshot.is_fetching": "a leader has no snapshot of id -1",
    "hold_chunk.is_fetching": "the same",
    "fetch_snapshot.not_leader_itself": "whoever is fetching a snapshot has not got it",
    "hold_chunk.not_leader_itself": "the same",
}
"""Guards that the others imply in every state that ``type_ok`` allows, by z3's word at ``MIXED``."""


def test_every_transition_at_the_smallest_constants() -> None:
    seen = {
        action
        for constants in SMALLEST
        for action in every_step(at(snapshots, SAFE, constants), SEED, thorough=25, refused=None).by_action
    }
    unseen = {"follower_truncate", "hold_divergence", "late_divergence", "delete_snapshot"}
    assert {action.name for action in snapshots.traced(SAFE).actions} - seen == unseen


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", ["kip-630", "lbo-misread", "mixed-chunks"])
def test_every_transition_of_the_others(variant: str) -> None:
    every_step(at(snapshots, variant, SMALLEST[0]), SEED, refused=300)


@pytest.mark.sampled(2)
@nightly
@pytest.mark.parametrize("constants", SMALLEST)
@pytest.mark.parametrize("variant", snapshots.variants)
def test_every_transition_and_every_refused_step(variant: str, constants: str) -> None:
    every_step(at(snapshots, variant, constants), SEED, thorough=100, refused=None)


@nightly
def test_every_transition_where_logs_diverge() -> None:
    check = every_step(at(snapshots, SAFE, DIVERGING), SEED, thorough=100, refused=50_000)
    assert "follower_truncate" in check.by_action


def test_two_thousand_transitions_at_larger_constants() -> None:
    check = drawn(at(snapshots, SAFE, LARGER), SEED, 2000, 200_000, thorough=25, refused=1000)
    assert set(at(snapshots, SAFE, LARGER).actions) - set(check.by_action) == {"delete_snapshot"}
    assert min(check.by_action.values()) >= 80, "as many of one action as of another"


@pytest.mark.sampled(2)
@nightly
@pytest.mark.parametrize("constants", LARGEST)
@pytest.mark.parametrize("variant", snapshots.variants)
def test_two_thousand_transitions_of_every_variant(variant: str, constants: str) -> None:
    drawn(at(snapshots, variant, constants), SEED, 2000, 1_000_000, thorough=25, refused=1000)


def test_a_sample_depends_on_its_seed_alone() -> None:
    system = at(snapshots, SAFE, SMALLEST[0])
    assert spread(system, 100, 1) == spread(system, 100, 1)
    assert spread(system, 100, 1) != spread(system, 100, 2)


def test_a_sample_of_all_that_there_is() -> None:
    system = at(snapshots, SAFE, "2/0/1/0/1/0/0/1")
    sample, whole = spread(system, 10_000, SEED, refused_each=3), exhaustive(system)
    assert set(sample.transitions) == set(whole.transitions)
    assert len(sample.transitions) == len(whole.transitions)
    assert set(sample.refused) <= set(whole.refused)
    few = spread(system, 10_000, SEED, max_states=10)
    assert len(few.transitions) < len(whole.transitions)


def test_steps_from_states_that_no_run_reaches() -> None:
    system = at(snapshots, SAFE, LARGER)
    sample = disturbed(system, spread(system, 100, SEED, max_states=20_000).states, 40, SEED)
    check = crosscheck(system, sample, SEED, thorough=0, refused=500, states=20)
    assert (check.verdict, check.first_failure) == (Verdict.HOLDS, None)
    assert check.accepted == len(sample.transitions) > 100


@pytest.fixture(scope="module")
def alone() -> tuple[System, Sample, list[str]]:
    """Each guard that can refuse by itself, doing so."""
    system = at(snapshots, SAFE, MIXED)
    return system, *lone_refusals(system)


def test_each_guard_refuses_by_itself_or_is_implied(alone: tuple[System, Sample, list[str]]) -> None:
    system, sample, implied = alone
    assert set(implied) == set(IMPLIED)
    guards = sum(len(action.guards) for action in system.traced.actions)
    assert len(sample.refused) == guards - len(implied) > 80
    reference = Reference(system)
    assert all("type_ok" not in reference.broken(state) for state in sample.states)
    check = crosscheck(system, sample, SEED)
    assert (check.verdict, check.refused) == (Verdict.HOLDS, len(sample.refused))


def test_a_relation_without_a_guard_is_reported(alone: tuple[System, Sample, list[str]]) -> None:
    """Each guard in turn: the planted fault that the refused steps catch."""
    system, sample, implied = alone
    for action in system.traced.actions:
        steps = Sample(refused=sample.of_action(action.name).refused)
        for guard, _ in action.guards:
            name = f"{action.name}.{guard}"
            mutant = Symbolic(system.traced.drop(name), system.constants)
            check = crosscheck(system, steps, SEED, symbolic=mutant)
            if name in implied:
                assert check.verdict is Verdict.HOLDS, name
                continue
            assert check.verdict is Verdict.VIOLATED, name
            assert f"the reference's guard {guard} refuses: {action.name}(" in str(check.first_failure)


def test_the_relation_of_another_variant_is_reported() -> None:
    """The text's rules, and each twin's, against the mended ones: some step of a reachable state tells them apart."""
    system = at(snapshots, SAFE, SMALLEST[0])
    sample = exhaustive(system)
    for variant in ("kip-630", "lbo-past-snapshot", "snapshot-past-hw", "delete-at-lbo", "lbo-misread"):
        other = Symbolic(snapshots.traced(variant), system.constants)
        tells_apart(system, sample, other, SEED)
