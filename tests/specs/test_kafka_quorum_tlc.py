"""TLC on ``specs/KafkaQuorum.tla``: from drawn states the graph itself, edge for edge, and where its bounds end."""

from __future__ import annotations

import pytest
from fencepost.model.core.ground import State, System, ground
from fencepost.model.explore import Query, explore
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.snapshots.kafka_spec import SHIPPED, VARIANT, text

from .cfgs import whole_cfg
from .drawn import draw, edges_of_python, edges_of_tlc
from .test_quorum_tlc import NAMES, told
from .tlc import Tlc

# The text is a free run's, which the state of "tlc" leaves out.

VARIANTS = (VARIANT, SHIPPED)
# replicas/observers/log size/leader epoch/chunks/minimum records/lag expires
LEAST = (2, 0, 1, 1, 1, 0, 1)
DRAWN = (3, 0, 2, 3, 2, 0, 1)
SELDOM = frozenset({"resume", "resign", "stand", "leave_epoch", "lose_election", "give_up_snapshot", "hear_of_epoch"})
"""What undoes what others have come to."""

CLEANED: tuple[tuple[str, dict[str, int]], ...] = (
    ("stand", {"replica": 0, "epoch": 0}),
    ("hear_of_epoch", {"replica": 1, "teller": 0}),
    ("give_vote", {"candidate": 0, "voter": 1}),
    ("count_vote", {"candidate": 0, "voter": 1}),
    ("take_office", {"replica": 0}),
    ("begin_epoch", {"leader": 0, "follower": 1}),
    ("begin_epoch", {"leader": 0, "follower": 2}),
    *[("client_append", {"leader": 0})] * 2,
    ("sync", {"replica": 0}),
    *[("follower_fetch", {"leader": 0, "follower": 1})] * 2,
    ("sync", {"replica": 1}),
    ("count_fetch", {"leader": 0, "follower": 1}),
    *[("raise_high_watermark", {"leader": 0, "offset": 1})] * 2,
    ("generate_snapshot", {"replica": 0, "offset": 0, "more": 0}),
    ("follower_start_over", {"leader": 0, "follower": 2}),
    ("generate_snapshot", {"replica": 0, "offset": 1, "more": 0}),
    ("delete_before_snapshot", {"replica": 0, "lbo": 2}),
)
"""To where a leader has deleted the snapshot that a follower is fetching: no draw comes there."""


def at(variant: str, constants: tuple[int, ...], *dropped: str) -> System:
    values = {**dict(zip(NAMES, constants, strict=True)), "late_responses": 0}
    return ground(text.traced(variant).drop(*dropped), values)


def within_bounds(system: System, states: tuple[State, ...]) -> tuple[State, ...]:
    """The states in which nobody is in the largest epoch: nothing bounds the step that leaves it, which is far then."""
    epochs = [cell.number for cell in system.layout.cells if cell.variable.name == "leader_epoch"]
    largest = system.constants["max_leader_epoch"]
    return tuple(state for state in states if max(state[number] for number in epochs) < largest)


def walked(system: System) -> State:
    """Where the steps of ``CLEANED`` lead."""
    reference, state = Reference(system), system.initial
    for action, params in CLEANED:
        after = reference.step(state, action, tuple(params.items()))
        assert after is not None, action
        state = after
    return state


@pytest.mark.sampled(1)
@pytest.mark.parametrize("variant", VARIANTS)
def test_from_drawn_states_the_steps_are_those_of_the_python_text(tlc: Tlc, variant: str) -> None:
    """Every action happens in them, and a dropped guard is another edge."""
    system = at(variant, DRAWN)
    sample = draw(system, 1, 1500, 12, SELDOM)
    states = within_bounds(system, (*sample.states, walked(system)))
    ours = edges_of_python(system, states, told)
    tla_names = {system.traced.protocol.actions[name].tla_name for name in system.actions}
    assert tla_names - {action for _, action, _ in ours} == set()
    assert edges_of_tlc(tlc, system, states, told) == ours
    for dropped in ("resume.keeps_synced", "generate_snapshot.later_than_latest"):
        mutant = at(variant, DRAWN, dropped)
        assert edges_of_python(mutant, states, told) != ours, f"the comparison would see {dropped} gone"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_cfg_breaks_where_the_largest_epoch_is_left(tlc: Tlc, variant: str) -> None:
    """No guard bounds that step, and the shortest way to it is the explorer's."""
    run = tlc.run("KafkaQuorum", whole_cfg(text, variant, "2/0/1/1/1/0/0/1"))
    answer = explore(Query.of(at(variant, LEAST)))
    assert answer.path is not None
    assert (run.violated, len(run.trace), run.trace[-1]) == ("TypeOk", len(answer.path), "LeaveEpoch")
    assert answer.violated == "type_ok"
