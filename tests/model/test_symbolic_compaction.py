"""The finite symbolic relation of ``compaction`` against the reference: every step that there is, and what must not be.

Constants: replicas/log size/keys/timestamps/header values/repeated headers/leader epoch/changes/brokers' strategy/
consumers.
"""

from __future__ import annotations

import pytest
from fencepost.model.interpret.symbolic import Symbolic
from fencepost.model.protocols.compaction import compaction
from fencepost.model.prove.crosscheck import exhaustive

from .every_step import at, drawn, every_step, tells_apart

SEED = 280
SMALLEST = ("2/1/1/1/0/0/1/0/0/0", "1/2/1/1/0/0/0/1/0/0")
"""Two replicas with an election; one whose strategy is set while it cleans."""
LARGER = "2/3/2/2/0/0/1/0/2/1"
"""Small enough for records to be cleaned away among the first hundred thousand states."""
SAFE = "kip-280-safe"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", SMALLEST)
def test_every_transition_at_the_smallest_constants(constants: str) -> None:
    every_step(at(compaction, SAFE, constants), SEED)


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("variant", compaction.variants)
def test_every_transition_of_every_variant(variant: str) -> None:
    for constants in SMALLEST:
        every_step(at(compaction, variant, constants), SEED)


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("variant", [SAFE, "empty-batch", "kip-280"])
def test_five_hundred_transitions_at_larger_constants(variant: str) -> None:
    check = drawn(at(compaction, variant, LARGER), SEED, 500, 100_000)
    assert len(check.by_action) > 10 and check.by_action["remove_record"] > 20


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "action"), [("ties-to-lower", "remove_record"), ("cleans-active", "finish_cleaning")]
)
def test_the_relation_of_another_variant_is_reported(variant: str, action: str) -> None:
    """A twin's relation against the mended rules: some step of a reachable state tells them apart."""
    system = at(compaction, SAFE, SMALLEST[1])
    other = Symbolic(compaction.traced(variant), system.constants)
    found = tells_apart(system, exhaustive(system).of_action(action), other, SEED)
    assert action in str(found.first_failure)
