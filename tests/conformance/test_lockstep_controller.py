"""Controllers and brokers of KIP-631 beside ``controller``: failover, fencing, the ISR, restarts, and defects.

Constants: replicas/nodes/partitions/log size/controller epoch/bootstrapped/snapshots/removals.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.harness import all_defects, held_to, in_lockstep, over_impl, stepped_at
from fencepost.conformance.lockstep.adapter import ModelStep
from fencepost.conformance.lockstep.divergence import LockstepDivergence
from fencepost.conformance.lockstep.expect import Standing, Try, expectation
from fencepost.conformance.lockstep.faults import Fault, Kind
from fencepost.conformance.lockstep.machine import Machine
from fencepost.conformance.lockstep.runner import Plan, conform
from fencepost.conformance.lockstep.space import Space
from fencepost.conformance.mutants.patched import patched
from fencepost.conformance.plan import constants_of
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import System, ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.controller import controller

DEFECTS = {each.name: each for each in all_defects() if each.protocol == "controller"}
P = {"partition": 0}
OWN = {"node": 0, **P}
OF_BROKER = {"node": 0, "broker": 1}
ACTIVE: tuple[ModelStep, ...] = (("elect_controller", {"node": 0, "kept": 0}), ("activate", {"node": 0}))
LED: tuple[ModelStep, ...] = (
    *ACTIVE,
    ("elect_leader", {**OWN, "leader": 0}),
    ("commit", {"node": 0}),
    ("replay_metadata", {"broker": 0}),
)
"""Broker 0 leads, and knows it."""
EXPANDS: tuple[ModelStep, ...] = (
    *LED,
    ("propose_shrink", {"leader": 0, "member": 1, **P}),
    ("alter_partition", {**OWN, "leader": 0}),
    ("commit", {"node": 0}),
    ("replay_metadata", {"broker": 0}),
    ("replay_metadata", {"broker": 1}),
    ("propose_expand", {"leader": 0, "member": 1, **P}),
)
CRASHED: tuple[ModelStep, ...] = (
    *LED,
    ("crash_broker", {"broker": 1}),
    ("fence_broker", {**OF_BROKER, "successor": 1}),
    ("register_broker", OF_BROKER),
    ("commit", {"node": 0}),
    ("commit", {"node": 0}),
    ("hear_registration", {"broker": 1}),
)
"""Broker 1 has come back without its logs."""


def system(at: str) -> System:
    return ground(controller.traced("kip-631-safe"), constants_of(controller, at))


@pytest.fixture(scope="module")
def space() -> Space:
    return Space(ground(controller.traced("kip-631-safe"), stepped_at("controller", {})), in_lockstep("controller")[1])


@pytest.fixture(scope="module")
def long() -> Space:
    """With room for more records, in one controller epoch."""
    return Space(system("2/3/1/7/0/1/0/1"), in_lockstep("controller")[1])


def driven(
    space: Space, *steps: ModelStep, fault: Kind | None = None, parts: Parts | None = None
) -> tuple[LockstepDivergence | None, list[str]]:
    """The first divergence, and what happened in the last try, with a fault there."""
    with closing(over_impl("controller", disk=False, parts=parts)) as adapter:
        machine = Machine(space, adapter, 1)
        found = machine.start()
        for number, (action, params) in enumerate(steps, 1):
            last = Fault(fault) if fault is not None and number == len(steps) else None
            found = found or machine.perform(Try(space.call(action, params), last))
        return found, [call[0] for call, _ in machine.history[-1].run]


def test_adapters_are_driven_beside_the_text_that_is_explored_at_the_constants_of_the_plan() -> None:
    text, binding = in_lockstep("controller")
    assert text is controller and held_to("controller") is not controller
    assert binding.actions.keys() == controller.actions.keys()
    assert stepped_at("controller", {}) == constants_of(controller, "2/3/1/5/2/1/0/1")


def test_whoever_is_elected_commits_all_of_its_log_at_once_and_is_active(space: Space) -> None:
    led = (*ACTIVE, ("elect_leader", {**OWN, "leader": 0}))
    found, run = driven(space, *led, ("commit", {"node": 0}))
    assert found is None and "commit" in run
    found, run = driven(space, *led, ("elect_controller", {"node": 2, "kept": 1}), ("activate", {"node": 2}))
    assert found is None and run[0] == "commit" and run[-1] == "activate" and "replay_record" in run


def test_what_was_pending_is_gone_with_its_controller(space: Space) -> None:
    lost = (*ACTIVE, ("elect_leader", {**OWN, "leader": 0}), ("elect_controller", {"node": 2, "kept": 0}))
    found, run = driven(space, *lost, ("activate", {"node": 2}))
    assert found is None and run[-1] == "activate" and "commit" not in run
    again = {"node": 2, **P, "leader": 0}
    assert driven(space, *lost, ("activate", {"node": 2}), ("elect_leader", again)) == (None, ["elect_leader"])


def test_a_deposed_leader_asks_in_vain(space: Space) -> None:
    """Broker 0 is fenced, and has not heard of it, when its request for another ISR arrives."""
    asked = (*LED, ("propose_shrink", {"leader": 0, "member": 1, **P}))
    alter: ModelStep = ("alter_partition", {**OWN, "leader": 0})
    assert driven(space, *asked, alter) == (None, ["alter_partition"])
    deposed = ("fence_broker", {"node": 0, "broker": 0, "successor": 1})
    assert driven(space, *asked, deposed, alter) == (None, [])


def test_a_record_is_acknowledged_when_all_of_the_isr_have_it(space: Space) -> None:
    written = (*LED, ("leader_write", {"leader": 0, **P}))
    acknowledge: ModelStep = ("acknowledge", {"leader": 0, **P})
    assert driven(space, *written, acknowledge) == (None, [])
    fetched = (
        *written,
        ("replay_metadata", {"broker": 1}),
        ("follower_fetch", {"leader": 0, "follower": 1, **P}),
    )
    assert driven(space, *fetched, acknowledge) == (None, ["acknowledge"])


def test_a_follower_that_has_caught_up_joins_the_isr_again_unless_it_is_fenced(space: Space) -> None:
    alter: ModelStep = ("alter_partition", {**OWN, "leader": 0})
    assert driven(space, *EXPANDS) == (None, ["propose_expand"])
    assert driven(space, *EXPANDS, alter) == (None, ["alter_partition"])
    fenced = (*EXPANDS, ("fence_broker", {**OF_BROKER, "successor": 1}))
    assert driven(space, *fenced, alter) == (None, [])  # INELIGIBLE_REPLICA
    assert driven(space, *fenced, ("refuse_member", {**OWN, "leader": 0})) == (None, [])


def test_a_broker_that_crashed_is_refused_before_its_session_is_over_and_unfenced_when_it_knows_itself(
    space: Space,
) -> None:
    early = (*LED, ("crash_broker", {"broker": 1}), ("register_broker", OF_BROKER))
    assert driven(space, *early) == (None, [])
    unfence: ModelStep = ("unfence_broker", OF_BROKER)
    assert driven(space, *CRASHED, unfence) == (None, [])
    found, run = driven(space, *CRASHED, ("replay_metadata", {"broker": 1}))
    assert found is None and set(run) == {"replay_metadata"} and len(run) == 3
    assert driven(space, *CRASHED, ("replay_metadata", {"broker": 1}), unfence) == (None, ["unfence_broker"])


def test_who_does_not_lead_is_fenced_and_stops_at_once(space: Space) -> None:
    shut_down: ModelStep = ("request_shutdown", OF_BROKER)
    stops = (*LED, shut_down, ("commit", {"node": 0}), ("stop_broker", OF_BROKER))
    assert driven(space, *LED, shut_down) == (None, ["request_shutdown", "fence_broker"])
    assert driven(space, *stops) == (None, ["stop_broker"])
    assert driven(space, *LED, ("request_shutdown", {"node": 0, "broker": 0})) == (None, [])


@pytest.mark.parametrize("kind", [Kind.LOSE_REQUEST, Kind.LOSE_RESPONSE, Kind.DUPLICATE_REQUEST])
def test_a_registration_that_is_lost_or_repeated_is_made_once_at_most(space: Space, kind: Kind) -> None:
    found, run = driven(space, *CRASHED[:-3], fault=kind)
    assert found is None and run == ([] if kind is Kind.LOSE_REQUEST else ["register_broker"])


def test_no_fault_is_drawn_of_a_step_that_may_wait(space: Space) -> None:
    """Nobody could say what it leaves behind."""
    binding = in_lockstep("controller")[1]
    patient = replace(binding.actions["register_broker"], waits=lambda _sight: True)
    waiting = Space(space.system, replace(binding, actions={**binding.actions, "register_broker": patient}))
    for each, drawn in ((space, True), (waiting, False)):
        node = each.node(each.system.initial)
        for action, params in CRASHED[:-4]:
            node = each.node(node.after[each.call(action, params)])
        asked = Try(each.call("register_broker", OF_BROKER), Fault(Kind.LOSE_REQUEST))
        assert asked.call in node.after
        assert (expectation(each, node, asked, Standing()) is not None) is drawn


@pytest.mark.parametrize(("name", "value"), [("replicas", 3), ("snapshots", 1)])
def test_what_no_nodes_can_be_driven_with_is_refused(name: str, value: int) -> None:
    with closing(over_impl("controller", disk=False)) as adapter, pytest.raises(BadInput, match=f"--{name}"):
        adapter.reset(stepped_at("controller", {name: value}), 1)


RESTARTED: tuple[ModelStep, ...] = (
    *EXPANDS,
    ("crash_broker", {"broker": 1}),
    ("fence_broker", {**OF_BROKER, "successor": 1}),
    ("register_broker", OF_BROKER),
    ("commit", {"node": 0}),
    ("commit", {"node": 0}),
    ("hear_registration", {"broker": 1}),
    ("replay_metadata", {"broker": 1}),
    ("unfence_broker", OF_BROKER),
)
"""Broker 1 was asked for, and is another process when that arrives."""
SHOWN: dict[str, tuple[ModelStep, ...]] = {
    "acknowledged-by-leader-alone": (*LED, ("leader_write", {"leader": 0, **P})),
    "answered-before-stable": CRASHED[:-3],
    "fenced-member-joins": (
        *EXPANDS,
        ("fence_broker", {**OF_BROKER, "successor": 1}),
        ("alter_partition", {**OWN, "leader": 0}),
    ),
    "fenced-stays-in-isr": (*ACTIVE, ("fence_broker", {**OF_BROKER, "successor": 1})),
    "live-number-taken": (*ACTIVE, ("crash_broker", {"broker": 1}), ("register_broker", OF_BROKER)),
    "refusal-before-stable": (
        *ACTIVE,
        ("fence_broker", {**OF_BROKER, "successor": 1}),
        ("unfence_broker", {"node": 0, "broker": 0}),
    ),
    "restarted-member-joins": (*RESTARTED, ("alter_partition", {**OWN, "leader": 0})),
    "roles-not-taken-up": (*LED, ("leader_write", {"leader": 0, **P})),
    "sessions-forgotten": (*ACTIVE, ("fence_broker", {**OF_BROKER, "successor": 1})),
}
"""By defect a run in which the last step shows it."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(SHOWN))
def test_a_defect_of_controllers_or_brokers_parts_them_from_the_model(long: Space, name: str) -> None:
    assert driven(long, *SHOWN[name])[0] is None
    with patched(*DEFECTS[name].patches) as root:
        parts = Parts.of(root)
        assert driven(long, *SHOWN[name][:-1], parts=parts)[0] is None
        assert driven(long, *SHOWN[name], parts=parts)[0] is not None


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("variant", "at"), [("kip-631-safe", "1/1/1/5/1/0/0/1"), ("isr-changes", "2/1/2/3/1/1/0/1")])
def test_they_conform_where_nothing_is_there_at_first_and_where_brokers_are_fenced_by_changes(
    variant: str, at: str
) -> None:
    traced = ground(controller.traced(variant), constants_of(controller, at))
    with closing(over_impl("controller", variant, disk=False)) as adapter:
        found = conform(adapter, traced, in_lockstep("controller")[1], Plan(25, 50, 7, draw="random"))
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence
