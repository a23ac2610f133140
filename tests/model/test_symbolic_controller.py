"""The finite symbolic relation of ``controller`` against the reference: every step that there is, and what must not be.

Constants: replicas/nodes/partitions/log size/controller epoch/bootstrapped/snapshots/removals.
"""

from __future__ import annotations

import pytest
from fencepost.model.interpret.symbolic import Symbolic
from fencepost.model.protocols.controller import controller
from fencepost.model.prove.crosscheck import exhaustive

from .every_step import at, drawn, every_step, tells_apart

SEED = 631
SMALLEST = ("2/1/1/1/0/1/0/1", "1/2/1/1/0/0/1/1")
"""Two brokers and one controller; one broker and two controllers, which make snapshots."""
LARGER = "2/2/2/3/1/1/1/1"
SAFE = "kip-631-safe"


@pytest.mark.parametrize("constants", SMALLEST)
def test_every_transition_at_the_smallest_constants(constants: str) -> None:
    every_step(at(controller, SAFE, constants), SEED)


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("variant", controller.variants)
def test_every_transition_of_every_variant(variant: str) -> None:
    for constants in SMALLEST:
        every_step(at(controller, variant, constants), SEED)


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("variant", [SAFE, "isr-changes", "concurrent-snapshots", "kip-631"])
def test_a_thousand_transitions_at_larger_constants(variant: str) -> None:
    check = drawn(at(controller, variant, LARGER), SEED, 1000, 100_000)
    assert len(check.by_action) > 20


@pytest.mark.parametrize(
    ("variant", "action"),
    [("two-snapshots", "order_snapshot"), ("applies-pending", "replay_record"), ("keeps-pending", "resign")],
)
def test_the_relation_of_another_variant_is_reported(variant: str, action: str) -> None:
    """A twin's relation against the mended rules: some step of a reachable state tells them apart."""
    system = at(controller, SAFE, SMALLEST[1])
    other = Symbolic(controller.traced(variant), system.constants)
    found = tells_apart(system, exhaustive(system).of_action(action), other, SEED)
    assert action in str(found.first_failure)
