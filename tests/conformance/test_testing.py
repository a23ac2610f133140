"""Assertions for tests: what compared nothing, or was asked of what is not there, does not pass."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.conformance.lockstep.faults import Kind
from fencepost.conformance.testing import Failed, assert_conforms, assert_holds, assert_proved
from fencepost.model.core.errors import BadInput
from fencepost.model.explore import Limits, Verdict

from .planted import SeesNothing

SMALL = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}


def model(**asked: Any) -> Any:
    return assert_conforms("model", protocol="fencing", **asked)


def test_what_does_as_the_model_does_passes() -> None:
    found = model(examples=2, steps=3)
    assert found.verdict is Verdict.HOLDS
    assert found.coverage.steps == 6


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"examples": 0}, "unknown: the adapter showed no cell at all"),
        ({"examples": 2, "steps": 0}, "unknown: no step was tried"),
        ({"max_seconds": 0.0}, "unknown: 0 s ran out after 1 of 100 examples"),
    ],
)
def test_what_compared_nothing_fails(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(Failed, match=f"^{says}"):
        model(**asked)


def test_an_adapter_that_shows_nothing_fails() -> None:
    with pytest.raises(Failed, match=r"^unknown: the adapter showed no cell at all"):
        assert_conforms(lambda _protocol, _variant: SeesNothing(), examples=2)


def test_a_fault_that_would_never_be_drawn_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^faults crash: nothing crashes in kip-320; choose a variant with restarts"):
        model(examples=2, faults={Kind.CRASH})
    # Without a choice, and with none at all, what can be is drawn.
    assert not model(examples=2, steps=3, faults=()).faults
    assert model(examples=2, steps=3).faults


def test_an_exploration_that_is_cut_short_fails() -> None:
    assert assert_holds("fencing", "kip-320", **SMALL).verdict is Verdict.HOLDS
    with pytest.raises(Failed, match=r"^unknown: more than 10 states"):
        assert_holds("fencing", "kip-320", limits=Limits(10), **SMALL)
    with pytest.raises(BadInput, match="has no invariant 'leader_in_irs'"):
        assert_holds("fencing", "kip-320", invariants=("leader_in_irs",), **SMALL)


def test_liveness_is_asked_of_what_has_it_and_by_sets_that_are_there() -> None:
    with pytest.raises(BadInput, match="fencing has no set of fairness conditions 'fair'"):
        assert_holds("fencing", "kip-320", liveness=("fair",), **SMALL)
    with pytest.raises(Failed, match="final_leader_commits_record"):
        assert_holds("fencing", "kip-320", liveness=("kip",), **SMALL)
    with pytest.raises(BadInput, match="snapshots has no liveness property"):
        assert_holds("snapshots", liveness=("kip",), replicas=1)


def test_a_variant_that_its_proof_does_not_fit_is_not_proved() -> None:
    with pytest.raises(Failed, match=r"^violated: fencing kip-279"):
        assert_proved("fencing", "kip-279")
