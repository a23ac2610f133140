"""The finite symbolic relation of ``controller`` against the reference: every step that there is, and what must not be.

Constants: replicas/nodes/partitions/log size/controller epoch/bootstrapped/snapshots/removals.
"""

from __future__ import annotations

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.explore.result import Verdict
from fencepost.model.interpret.symbolic import Symbolic
from fencepost.model.protocols.controller import controller
from fencepost.model.prove.crosscheck import CrossCheck, crosscheck, exhaustive
from fencepost.model.prove.spread import spread

SEED = 631
SMALLEST = ("2/1/1/1/0/1/0/1", "1/2/1/1/0/0/1/1")
"""Two brokers and one controller; one broker and two controllers, which make snapshots."""
LARGER = "2/2/2/3/1/1/1/1"
SAFE = "kip-631-safe"


def system_of(variant: str, constants: str) -> System:
    values = dict(zip(controller.constants, map(int, constants.split("/")), strict=True))
    return ground(controller.traced(variant), values)


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


@pytest.mark.parametrize("constants", SMALLEST)
def test_every_transition_at_the_smallest_constants(constants: str) -> None:
    every_step(SAFE, constants)


@pytest.mark.asked("model", "controller")
@pytest.mark.night(seconds=60)
@pytest.mark.parametrize("variant", controller.variants)
def test_every_transition_of_every_variant(variant: str) -> None:
    for constants in SMALLEST:
        every_step(variant, constants)


@pytest.mark.asked("model", "controller")
@pytest.mark.night(seconds=60)
@pytest.mark.parametrize("variant", [SAFE, "isr-changes", "concurrent-snapshots", "kip-631"])
def test_a_thousand_transitions_at_larger_constants(variant: str) -> None:
    check = drawn(variant, 1000, 100_000)
    assert len(check.by_action) > 20


@pytest.mark.parametrize(
    ("variant", "action"),
    [("two-snapshots", "order_snapshot"), ("applies-pending", "replay_record"), ("keeps-pending", "resign")],
)
def test_the_relation_of_another_variant_is_reported(variant: str, action: str) -> None:
    """A twin's relation against the mended rules: some step of a reachable state tells them apart."""
    system = system_of(SAFE, SMALLEST[1])
    sample = exhaustive(system).of_action(action)
    other = Symbolic(controller.traced(variant), system.constants)
    check = crosscheck(system, sample, SEED, symbolic=other, thorough=0, refused=2000, states=0)
    assert check.verdict is Verdict.VIOLATED
    assert action in str(check.first_failure)
