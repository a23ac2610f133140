"""An ISR that the leader proposes and the controller takes up (KIP-497): what counts meanwhile, and what loses records.

Constants: replicas/log size/records/leader epoch.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fencepost.model.core.ground import System
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.expected import COUNTEREXAMPLES, LARGE_STATE_COUNTS, STATE_COUNTS, WITHOUT_GUARD

from .pinned import breaches_by_guard, breaches_by_place, graphs_by_variant
from .test_fencing_stories import Walk

At = Callable[..., System]

SAFE = "kip-497"
TWINS = ("kip-497-eager", "kip-497-forgets", "kip-497-fenced")
GRAPHS = graphs_by_variant(fencing, STATE_COUNTS)[SAFE]
BREACHES = breaches_by_place(fencing, COUNTEREXAMPLES)


# --- how many states, and what breaks


@pytest.mark.parametrize(("constants", "expected"), GRAPHS.items())
def test_every_promise_holds_where_an_isr_is_proposed(at: At, constants: str, expected: tuple[int, int]) -> None:
    answer = explore(Query.of(at(constants, SAFE)))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)
    proposes = ("leader_propose_shrink", "leader_propose_expand", "controller_alter_isr", "leader_take_isr")
    assert all(answer.coverage[action].discoveries for action in proposes)


@pytest.mark.nightly
def test_every_promise_holds_with_three_replicas_and_two_epochs(at: At) -> None:
    """Four minutes, and 2 GiB."""
    ((constants, expected),) = graphs_by_variant(fencing, LARGE_STATE_COUNTS)[SAFE].items()
    answer = explore(Query.of(at(constants, SAFE), symmetry=True))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)


@pytest.mark.parametrize("variant", TWINS)
def test_who_counts_too_few_must_fail(at: At, variant: str) -> None:
    constants = "2/1/1/1"
    assert BREACHES[variant, constants].keys() == {"strong_isr", "weak_isr"}
    for invariant, length in BREACHES[variant, constants].items():
        system = at(constants, variant)
        answer = explore(Query.of(system, (invariant,)))
        assert answer.path is not None
        assert (answer.verdict, answer.violated, len(answer.path)) == (Verdict.VIOLATED, invariant, length)
        assert invariant in Reference(system).broken(answer.path[-1].state)


# Dropped guards: the promise that breaks at 2/1/1/1, and after how many steps.
BREAKS = breaches_by_guard(fencing, WITHOUT_GUARD, SAFE)


@pytest.mark.parametrize("guard", BREAKS)
def test_without_this_guard_a_promise_breaks(at: At, guard: str) -> None:
    violated, length, constants = BREAKS[guard]
    answer = explore(Query.of(at(constants, SAFE, guard)))
    assert (answer.verdict, answer.violated, len(answer.path or [])) == (Verdict.VIOLATED, violated, length)


def test_only_these_variants_have_proposals() -> None:
    proposing = {name for name in fencing.variants if "proposed" in fencing.traced(name).variables}
    assert proposing == {SAFE, *TWINS}
    for name in proposing:
        actions = {action.name for action in fencing.traced(name).actions}
        assert not actions & {"leader_shrink_isr", "leader_expand_isr"}
        assert ("leader_forget_proposal" in actions) == (name in ("kip-497-forgets", "kip-497-fenced"))


# --- stories


@pytest.fixture
def walk(at: At) -> Walk:
    """Leader 0 of epoch 0, and two followers that have its record; it has proposed to take replica 2 out."""
    told = Walk(at("3/2/2/2", SAFE))
    told.starts(0, 1, 2)
    told("leader_write", leader=0)
    told("leader_propose_shrink", leader=0, follower=2)
    return told


def alter(walk: Walk, one: int, other: int = 0, partition_epoch: int = 0) -> None:
    walk("controller_alter_isr", epoch=0, partition_epoch=partition_epoch, one=one, other=other)


def test_who_is_to_leave_counts_until_the_answer_comes(walk: Walk) -> None:
    walk("follower_fetch", leader=0, follower=1)
    walk("follower_acknowledge", leader=0, follower=1)
    alter(walk, 2)
    assert (walk["quorum_isr"], walk["isr[0]"], walk["proposed[0]"]) == (0b011, 0b111, 0b100)
    assert walk.refused_by("leader_inc_high_watermark", leader=0) == "isr_acknowledges"
    walk("leader_take_isr", leader=0)
    assert (walk["isr[0]"], walk["proposed[0]"], walk["partition_epoch[0]"]) == (0b011, 0, 1)
    walk("leader_inc_high_watermark", leader=0)


def test_an_answer_that_comes_again_changes_nothing(walk: Walk) -> None:
    alter(walk, 2)
    walk("leader_take_isr", leader=0)
    assert walk.refused_by("leader_take_isr", leader=0) == "partition_epoch_newer"


def test_of_two_requests_for_a_partition_epoch_one_is_taken_up(walk: Walk) -> None:
    walk("leader_propose_shrink", leader=0, follower=1)
    alter(walk, 1)
    late = {"epoch": 0, "partition_epoch": 0, "one": 2, "other": 0}
    assert walk.refused_by("controller_alter_isr", **late) == "partition_epoch_matches"
    walk("leader_take_isr", leader=0)
    assert (walk["isr[0]"], walk["proposed[0]"]) == (0b101, 0)


def test_a_request_may_ask_for_two_changes_or_for_none(walk: Walk) -> None:
    walk("leader_propose_shrink", leader=0, follower=1)
    alter(walk, 1, 2)
    assert walk["quorum_isr"] == 0b001


def test_to_ask_for_the_isr_that_holds_makes_a_proposal_void(walk: Walk) -> None:
    alter(walk, 0)
    assert (walk["quorum_isr"], walk["quorum_partition_epoch"]) == (0b111, 1)
    late = {"epoch": 0, "partition_epoch": 0, "one": 2, "other": 0}
    assert walk.refused_by("controller_alter_isr", **late) == "partition_epoch_matches"
    walk("leader_take_isr", leader=0)
    assert walk["proposed[0]"] == 0


def test_a_request_of_an_older_leader_epoch_is_fenced(walk: Walk) -> None:
    walk("controller_elect_leader", new_leader=1)
    late = {"epoch": 0, "partition_epoch": 0, "one": 2, "other": 0}
    assert walk.refused_by("controller_alter_isr", **late) == "leader_epoch_matches"
    assert walk["proposed[0]"] == 0b100, "who is fenced counts on"


def test_a_crashed_leaders_request_may_be_taken_up_and_nobody_hears_of_it(walk: Walk) -> None:
    walk("restart", replica=0, stored=0)
    alter(walk, 2)
    assert (walk["quorum_isr"], walk["altered_isr[0]"]) == (0b011, 0)
    assert walk.refused_by("leader_take_isr", leader=0) == "presumes_leadership"
