"""The finite symbolic relation of ``tiering`` against the reference: every step that there is, and what must not be.

Constants: replicas/log size/leader epoch/last tiered offset/unclean/transactions/switches/expires.
"""

from __future__ import annotations

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.explore.result import Verdict
from fencepost.model.interpret.symbolic import Symbolic
from fencepost.model.protocols.tiering import tiering
from fencepost.model.prove.crosscheck import CrossCheck, crosscheck, exhaustive
from fencepost.model.prove.spread import spread

SEED = 1023
SMALLEST = "2/1/0/1/0/1/1/1"
LARGER = "2/3/2/1/1/1/1/1"
SAFE = "kip-1023-safe"


def system_of(variant: str, constants: str) -> System:
    values = dict(zip(tiering.constants, map(int, constants.split("/")), strict=True))
    return ground(tiering.traced(variant), values)


def every_step(variant: str, constants: str) -> CrossCheck:
    system = system_of(variant, constants)
    sample = exhaustive(system)
    check = crosscheck(system, sample, SEED, thorough=5, refused=500)
    print(f"{variant} {constants}, seed {SEED}: {check}")
    assert (check.verdict, check.first_failure) == (Verdict.HOLDS, None)
    assert check.accepted == len(sample.transitions)
    assert check.refused == min(500, len(sample.refused))
    return check


def drawn(variant: str, count: int, max_states: int) -> CrossCheck:
    system = system_of(variant, LARGER)
    sample = spread(system, count, SEED, max_states=max_states)
    check = crosscheck(system, sample, SEED, thorough=5, refused=500)
    print(f"{variant} {LARGER}, seed {SEED}: {check}")
    assert (check.verdict, check.first_failure, check.accepted) == (Verdict.HOLDS, None, count)
    return check


def test_every_transition_at_the_smallest_constants() -> None:
    every_step(SAFE, SMALLEST)


@pytest.mark.asked("model", "tiering")
@pytest.mark.night(seconds=60)
@pytest.mark.parametrize("variant", tiering.variants)
def test_every_transition_of_every_variant(variant: str) -> None:
    every_step(variant, SMALLEST)


@pytest.mark.asked("model", "tiering")
@pytest.mark.night(seconds=60)
@pytest.mark.parametrize("variant", [SAFE, "kip-1023", "epochs-to-local-start", "first-on-remote", "keeps-highest"])
def test_a_thousand_transitions_at_larger_constants(variant: str) -> None:
    check = drawn(variant, 1000, 100_000)
    assert len(check.by_action) > 20


@pytest.mark.parametrize(
    ("variant", "action"),
    [("jump-unknown", "start_at_local_start"), ("upload-past-hw", "start_copy"), ("deposed-deletes", "delete_segment")],
)
def test_the_relation_of_another_variant_is_reported(variant: str, action: str) -> None:
    """A twin's relation against the mended rules: some step of a reachable state tells them apart."""
    system = system_of(SAFE, "2/1/1/1/0/0/0/1")
    sample = exhaustive(system).of_action(action)
    other = Symbolic(tiering.traced(variant), system.constants)
    check = crosscheck(system, sample, SEED, symbolic=other, thorough=0, refused=2000, states=0)
    assert check.verdict is Verdict.VIOLATED
    assert action in str(check.first_failure)
