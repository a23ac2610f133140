"""The finite symbolic relation of ``tiering`` against the reference: every step that there is, and what must not be.

Constants: replicas/log size/leader epoch/last tiered offset/unclean/transactions/switches/expires.
"""

from __future__ import annotations

import pytest
from fencepost.model.interpret.symbolic import Symbolic
from fencepost.model.protocols.tiering import tiering
from fencepost.model.prove.crosscheck import exhaustive

from .every_step import at, drawn, every_step, tells_apart

SEED = 1023
SMALLEST = "2/1/0/1/0/1/1/1"
LARGER = "2/3/2/1/1/1/1/1"
SAFE = "kip-1023-safe"


def test_every_transition_at_the_smallest_constants() -> None:
    every_step(at(tiering, SAFE, SMALLEST), SEED)


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("variant", tiering.variants)
def test_every_transition_of_every_variant(variant: str) -> None:
    every_step(at(tiering, variant, SMALLEST), SEED)


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("variant", [SAFE, "kip-1023", "epochs-to-local-start", "first-on-remote", "keeps-highest"])
def test_a_thousand_transitions_at_larger_constants(variant: str) -> None:
    check = drawn(at(tiering, variant, LARGER), SEED, 1000, 100_000)
    assert len(check.by_action) > 20


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "action"),
    [("jump-unknown", "start_at_local_start"), ("upload-past-hw", "start_copy"), ("deposed-deletes", "delete_segment")],
)
def test_the_relation_of_another_variant_is_reported(variant: str, action: str) -> None:
    """A twin's relation against the mended rules: some step of a reachable state tells them apart."""
    system = at(tiering, SAFE, "2/1/1/1/0/0/0/1")
    other = Symbolic(tiering.traced(variant), system.constants)
    found = tells_apart(system, exhaustive(system).of_action(action), other, SEED)
    assert action in str(found.first_failure)
