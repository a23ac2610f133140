"""Brokers with tiered storage beside ``tiering``: an upload, a follower that begins behind it, and defects.

Constants: replicas/log size/leader epoch/last tiered offset/unclean/transactions/switches/expires.
"""

from __future__ import annotations

from contextlib import closing

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.harness import all_defects, held_to, in_lockstep, over_impl, stepped_at
from fencepost.conformance.lockstep.adapter import ModelStep
from fencepost.conformance.lockstep.divergence import LockstepDivergence
from fencepost.conformance.lockstep.expect import Try
from fencepost.conformance.lockstep.faults import Fault, Kind
from fencepost.conformance.lockstep.machine import Machine
from fencepost.conformance.lockstep.runner import Plan, conform
from fencepost.conformance.lockstep.space import Space
from fencepost.conformance.mutants.patched import patched
from fencepost.conformance.plan import constants_of
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import System, ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.tiering import tiering

DEFECTS = {each.name: each for each in all_defects() if each.protocol == "tiering"}
PAIR = {"leader": 0, "follower": 1}
ALONE: tuple[ModelStep, ...] = (
    ("elect_leader", {"replica": 0}),
    ("leader_shrink_isr", PAIR),
    ("leader_write", {"leader": 0}),
)
UPLOADED: tuple[ModelStep, ...] = (
    *ALONE,
    ("start_copy", {"leader": 0, "end": 1}),
    ("copy_segment", {"leader": 0, "start": 0}),
    ("finish_copy", {"leader": 0, "start": 0}),
)
GONE: tuple[ModelStep, ...] = (*UPLOADED, ("delete_local", {"leader": 0}), ("become_follower", PAIR))
"""A leader has uploaded its only record, and deleted it locally; an empty follower has heard of it."""
BUILD: ModelStep = ("build_to_epuo", {**PAIR, "epoch": 0})


def system(**constants: int) -> System:
    return ground(tiering.traced("up-to-gap"), stepped_at("tiering", constants))


def driven(*steps: ModelStep, lost: int | None = None) -> tuple[LockstepDivergence | None, list[str]]:
    """The first divergence, and what happened in the last try. ``lost``: the step whose request does not arrive."""
    space = Space(system(), in_lockstep("tiering")[1])
    with closing(over_impl("tiering", disk=False)) as adapter:
        machine = Machine(space, adapter, 1)
        found = machine.start()
        for number, (action, params) in enumerate(steps):
            fault = Fault(Kind.LOSE_REQUEST) if number == lost else None
            found = found or machine.perform(Try(space.call(action, params), fault))
        return found, [call[0] for call, _ in machine.history[-1].run]


def test_adapters_are_driven_beside_the_text_that_is_explored_at_the_constants_of_the_plan() -> None:
    text, binding = in_lockstep("tiering")
    assert text is tiering and held_to("tiering") is not tiering
    assert binding.actions.keys() == tiering.actions.keys()
    assert stepped_at("tiering", {}) == constants_of(tiering, "2/2/1/1/1/0/0/0")
    assert stepped_at("tiering", {"log_size": 3})["log_size"] == 3
    assert stepped_at("fencing", {}) == in_lockstep("fencing")[0].check_constants({})


def test_an_empty_follower_begins_behind_what_is_uploaded_and_joins_the_isr() -> None:
    assert driven(*GONE, BUILD) == (None, ["build_to_epuo"])
    assert driven(*GONE, BUILD, ("leader_expand_isr", PAIR)) == (None, ["leader_expand_isr"])


def test_a_leader_uploads_when_it_has_a_turn_and_nothing_that_is_not_committed() -> None:
    turn: ModelStep = ("find_highest_remote_offset", {"leader": 0})
    assert driven(*ALONE, turn) == (None, ["start_copy"])
    assert driven(ALONE[0], ALONE[2], turn) == (None, [])


def test_a_new_leader_deletes_what_an_unclean_election_has_left_behind() -> None:
    """Not before the deposed leader has heard of it."""
    elected: tuple[ModelStep, ...] = (*UPLOADED, ("elect_unclean_leader", {"replica": 1}))
    delete: ModelStep = ("delete_segment", {"leader": 1, "epoch": 0, "start": 0})
    assert driven(*elected, delete) == (None, [])
    heard: ModelStep = ("become_follower", {"leader": 1, "follower": 0})
    assert driven(*elected, heard, delete) == (None, ["delete_segment"])


def test_a_deposed_leader_that_waits_for_its_isr_hears_of_the_controller_that_it_is_none() -> None:
    """That is no answer to what it was to do, which is to commit a record."""
    back = {"leader": 1, "follower": 0}
    steps: tuple[ModelStep, ...] = (
        ("elect_leader", {"replica": 1}),
        ("leader_shrink_isr", back),
        ("become_follower", back),
        ("leader_expand_isr", back),
        ("leader_write", {"leader": 1}),
        ("follower_fetch", back),
        ("elect_unclean_leader", {"replica": 0}),
        ("leader_inc_high_watermark", {"leader": 1}),
    )
    assert driven(*steps, lost=3) == (None, [])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["transactions", "switches", "expires"])
def test_what_no_broker_has_is_refused(name: str) -> None:
    with closing(over_impl("tiering", disk=False)) as adapter, pytest.raises(BadInput, match=f"{name} is 1"):
        adapter.reset(stepped_at("tiering", {name: 1}), 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name",
    [
        "begins-above-target",
        "epuo-is-last-tiered",
        "uploads-uncommitted",
        "copy-begins-unsaid",
        "deletes-what-is-not-local",
        "deletion-begins-unsaid",
    ],
)
def test_a_defect_of_the_remote_log_manager_parts_it_from_the_model(name: str) -> None:
    with (
        patched(*DEFECTS[name].patches) as root,
        closing(over_impl("tiering", disk=False, parts=Parts.of(root))) as adapter,
    ):
        plan = Plan(100, 50, 0, draw="random", shrink=False)
        found = conform(adapter, system(), in_lockstep("tiering")[1], plan)
    assert found.verdict is Verdict.VIOLATED
