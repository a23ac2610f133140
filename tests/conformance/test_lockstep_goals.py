"""Runs are led to where a step can happen or a guard refuses, along runs of the model."""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.conformance.harness import binding_of
from fencepost.conformance.lockstep.goals import Goals, Place
from fencepost.conformance.lockstep.space import Space
from fencepost.model.core.ground import State, ground
from fencepost.model.core.registry import PROTOCOLS

CASES = {
    "fencing": ("kip-320-brokers", {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}),
    "truncation": ("kip-320-mended", {"replicas": 2, "log_size": 1, "max_records": 2, "max_leader_epoch": 1}),
    "snapshots": ("kip-630-nodes", {"replicas": 2, "log_size": 1, "max_leader_epoch": 1, "max_chunks": 2}),
}


@cache
def goals_of(protocol: str) -> Goals:
    variant, constants = CASES[protocol]
    return Goals(Space(ground(PROTOCOLS[protocol].traced(variant), constants), binding_of(protocol, "--protocol")))


def reached(goals: Goals, place: Place) -> State:
    """The state of a place: each step of the path must be one of the model."""
    state = goals.space.system.initial
    for call in goals.path(place[0]):
        state = goals.space.node(state).after[call]
    return state


@pytest.mark.parametrize("protocol", CASES)
def test_a_path_leads_to_where_the_step_can_happen(protocol: str) -> None:
    goals = goals_of(protocol)
    asked = {action.name for action in goals.space.system.traced.actions} - goals.space.crashes
    assert set(goals.steps) <= asked
    for action, kinds in goals.steps.items():
        for places in kinds.values():
            for place in places[:20]:
                assert place[1][0] == action
                assert place[1] in goals.space.node(reached(goals, place)).after


@pytest.mark.parametrize("protocol", CASES)
def test_a_path_leads_to_where_the_guard_is_the_first_to_refuse(protocol: str) -> None:
    goals = goals_of(protocol)
    assert any(goals.refusals.values())
    for (action, guard), places in goals.refusals.items():
        for place in places[:10]:
            refusal = goals.space.explain(reached(goals, place), place[1])
            assert (refusal.action, refusal.guard) == (action, guard)


def test_nothing_is_planned_where_a_system_would_act_by_itself() -> None:
    goals = goals_of("fencing")
    planned = [p for action, kinds in goals.steps.items() for each in kinds.values() for p in each[:20]]
    for place in planned:
        at_once = [
            call for call in goals.space.node(reached(goals, place)).after if call[0] in goals.space.binding.prompt
        ]
        assert place[1] in at_once or not at_once


def test_steps_of_different_kinds_are_kept_apart() -> None:
    kinds = goals_of("fencing").steps["become_follower"]
    assert len(kinds) > 2  # with and without something to cut, with and without a role before
