"""What running controllers and brokers are held to is held to the model that is explored and proved: by simulation.

Constants: replicas/nodes/partitions/log size/controller epoch/bootstrapped/snapshots/removals.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.conformance.plan import constants_of
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import System, ground
from fencepost.model.explore.simulate import Simulated, simulate
from fencepost.model.protocols.controller import controller
from fencepost.model.protocols.controller.impl_spec import cluster
from fencepost.model.protocols.controller.refinement import PROCESSES, RELATION

DEVIATIONS = Path(__file__).resolve().parents[2] / "specs" / "DEVIATIONS.md"

STATED = {
    ("hear_registration", "hear_registration", ("hear_registration.awaits_answer",)): "I12",
    ("hear_registration", "", ()): "I12",
    ("move_partition", "", ()): "I13",
    ("create_topic", "", ()): "I14",
    ("elect_leader", "elect_leader", ("elect_leader.none_leads",)): "I15",
    ("shut_down", "request_shutdown", ("request_shutdown.runs",)): "I16",
    ("elect_leader", "elect_leader", ("elect_leader.not_doubted",)): "I17",
}
"""Each difference that is found, and the row that says why it is one."""

OF_CONSTANTS = {
    ("remove_topic", "remove_topic", ("remove_topic.removals_asked",)),
    ("shut_down", "request_shutdown", ("request_shutdown.removals_asked",)),
}
"""Where ``removals`` is 0 the model has neither."""

ALONE = "1/1/1/3/0/1/0/1"
UNCLEAN = "1/1/1/4/0/1/0/1"
EMPTY = "1/1/1/3/0/0/0/1"
FAILOVER = "1/2/1/1/1/1/0/1"
DATA = "2/1/1/2/0/1/0/1"
MORE = "2/1/1/3/0/1/0/0"

DROPPED = {
    "hear_registration.is_stable": ALONE,
    "unfence_broker.caught_up": ALONE,
    "unfence_broker.broker_epoch_matches": ALONE,
    "register_broker.session_over": ALONE,
    "activate.nothing_pending": FAILOVER,
}
DROPPED_BY_NIGHT = {
    "fence_broker.elected_0_can_lead": DATA,
    "elect_leader.can_lead": DATA,
    "alter_partition.partition_epoch_matches": MORE,
}


def running(at: str, *drop: str) -> System:
    constants = constants_of(controller, at)
    return ground(cluster.traced(None).drop(*drop), {name: constants[name] for name in cluster.constants})


def simulated(at: str, *drop: str) -> Simulated:
    return simulate(running(at, *drop), controller.traced("kip-631-safe"), constants_of(controller, at), RELATION)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("at", "happens"),
    [
        (ALONE, {"register_broker", "unfence_broker", "shut_down", "remove_topic", "fence_as_asked"}),
        (EMPTY, {"register_broker", "unfence_broker", "create_topic"}),
        (FAILOVER, {"activate", "elect_leader", "fence_broker"}),
        pytest.param(UNCLEAN, {"register_broker", "elect_leader"}, marks=pytest.mark.nightly(seconds=30)),
        pytest.param(DATA, {"alter_partition", "move_partition"}, marks=pytest.mark.nightly(seconds=30)),
        pytest.param(MORE, {"alter_partition", "unfence_broker"}, marks=pytest.mark.nightly(seconds=200)),
    ],
)
def test_what_a_running_cluster_may_do_the_model_may_do_too(at: str, happens: set[str]) -> None:
    """Each of its steps is a run of at most two of the model's, but for what is stated."""
    found = simulated(at)
    stated = set(STATED) | (OF_CONSTANTS if at == MORE else set())
    assert found.kinds <= stated, [str(each) for each in found.unmatched]
    assert happens <= {action for action, count in found.matched.items() if count}


def test_every_difference_that_is_stated_is_found_and_has_its_row() -> None:
    rows = set(re.findall(r"^\| (I\d+) \|", DEVIATIONS.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert set(STATED.values()) | {"I18"} <= rows
    found = simulated(ALONE).kinds | simulated(FAILOVER).kinds
    assert {STATED[kind] for kind in found} == {"I12", "I13", "I14", "I16"}


@pytest.mark.nightly(seconds=60)
def test_the_other_differences_are_found_too() -> None:
    found = simulated(DATA).kinds | simulated(UNCLEAN).kinds
    assert {STATED[kind] for kind in found} >= {"I15", "I17"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "guard",
    [*DROPPED, *(pytest.param(guard, marks=pytest.mark.nightly(seconds=100)) for guard in DROPPED_BY_NIGHT)],
)
def test_a_text_that_lets_more_happen_is_noticed(guard: str) -> None:
    at = (DROPPED | DROPPED_BY_NIGHT)[guard]
    more = simulated(at, guard).kinds - set(STATED) - OF_CONSTANTS
    assert {action for action, _, _ in more} == {guard.partition(".")[0]}


def test_nothing_is_left_out_unsaid() -> None:
    actions = {action.name for action in cluster.traced(None).actions}
    assert set(PROCESSES) < actions
    asked = simulated(FAILOVER).matched.keys()
    assert asked == actions - set(PROCESSES)


def test_a_relation_without_a_variable_is_refused() -> None:
    less = replace(RELATION, cells=lambda k, s: {n: f for n, f in RELATION.cells(k, s).items() if n != "isr"})
    with pytest.raises(BadInput, match="nothing says what isr is"):
        simulate(running(ALONE), controller.traced("kip-631-safe"), constants_of(controller, ALONE), less)
