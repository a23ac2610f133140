"""Shared by all tests: the tiers (``tiers.py``), the profiles of Hypothesis, and a proof with a wrong lemma.

``HYPOTHESIS_PROFILE=ci`` (the default) draws the same examples in every run; ``long`` draws ten times as many, from a
seed that the header prints and that ``--hypothesis-seed`` brings back.
"""

from __future__ import annotations

import copy

import pytest
from fencepost.model.core.algebra import Algebra, Value, View
from fencepost.model.core.domains import REPLICA
from fencepost.model.protocols.fencing.proof import kip_320
from fencepost.model.prove.proof import Proof
from hypothesis import HealthCheck, settings

from .tiers import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_report_header,
    pytest_sessionfinish,
    pytest_terminal_summary,
    random_seed,
)

__all__ = (
    "proof_with_a_wrong_lemma",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_report_header",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "random_seed",
)

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile(
    "long", max_examples=1000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.fixture
def proof_with_a_wrong_lemma() -> Proof:
    """That of ``fencing``, and that a follower is always in the epoch of the leader that it follows."""
    proof = copy.copy(kip_320)
    proof.lemmas = dict(kip_320.lemmas)

    @proof.lemma(leader=REPLICA, follower=REPLICA)
    def followers_are_never_late(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
        """This is not so."""
        return k.implies(s.leader[follower] == leader, s.leader_epoch[follower] == s.leader_epoch[leader])

    return proof
