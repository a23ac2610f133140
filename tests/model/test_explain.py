"""Why a step is refused, in words: the guard's condition and the values of what it read, and nothing besides."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from fencepost.model.core.domains import OPTIONAL_REPLICA, REPLICA_SET, Values, integers
from fencepost.model.core.enumeration import enumeration
from fencepost.model.core.ground import Params, State, System
from fencepost.model.interpret.explain import refusal
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.fencing import fencing

At = Callable[..., System]


def run(reference: Reference, *steps: tuple[str, Params]) -> State:
    state = reference.system.initial
    for action, params in steps:
        after = reference.step(state, action, params)
        assert after is not None
        state = after
    return state


def say(reference: Reference, state: State, action: str, **params: int) -> str:
    return str(refusal(reference, state, action, tuple(params.items())))


def test_the_operands_of_a_refusal_are_shown_as_a_person_reads_them(at: At) -> None:
    reference = Reference(at("3/2/2/2"))
    start = reference.system.initial
    assert say(reference, start, "leader_write", leader=1) == (
        "leader_write(leader=1): guard presumes_leadership wants leader[leader] == leader; leader[1] is NONE"
    )
    assert say(reference, start, "become_leader", leader=0, epoch=1) == (
        "become_leader(leader=0, epoch=1): guard request_sent wants epoch < next_leader_epoch; next_leader_epoch is 0"
    )
    assert say(reference, start, "become_follower", leader=2, follower=2, epoch=0) == (
        "become_follower(leader=2, follower=2, epoch=0): guard not_leader_itself wants leader != follower"
    )
    removed = run(reference, ("controller_shrink_isr", (("replica", 2),)))
    assert say(reference, removed, "controller_elect_leader", new_leader=2) == (
        "controller_elect_leader(new_leader=2): guard in_quorum_isr wants new_leader in quorum_isr; "
        "quorum_isr is {0, 1}"
    )


def test_a_fenced_fetch_names_both_epochs(at: At) -> None:
    reference = Reference(at("3/2/2/2"))
    state = run(
        reference,
        ("controller_elect_leader", (("new_leader", 0),)),
        ("become_leader", (("leader", 0), ("epoch", 0))),
        ("become_follower", (("leader", 0), ("follower", 2), ("epoch", 0))),
        ("controller_shrink_isr", (("replica", 1),)),
        ("become_leader", (("leader", 0), ("epoch", 1))),
        ("leader_write", (("leader", 0),)),
    )
    refused = refusal(reference, state, "follower_fetch", (("leader", 0), ("follower", 2)))
    assert refused is not None
    assert (refused.action, refused.guard) == ("follower_fetch", "epoch_not_fenced")
    assert refused.condition == "leader_epoch[follower] == leader_epoch[leader]"
    assert refused.operands == (("leader_epoch[2]", "0"), ("leader_epoch[0]", "1"))


def test_a_conjunction_is_explained_by_the_part_that_fails_and_a_forall_by_the_member_that_does(at: At) -> None:
    reference = Reference(at("3/2/2/2"))
    state = run(
        reference,
        ("controller_elect_leader", (("new_leader", 0),)),
        ("become_leader", (("leader", 0), ("epoch", 0))),
        ("leader_write", (("leader", 0),)),
    )
    refused = refusal(reference, state, "leader_inc_high_watermark", (("leader", 0),))
    assert refused is not None and refused.guard == "isr_acknowledges"
    # Replica 0 has the record; of replica 1 it is enough to know that it is in the ISR and follows nobody.
    assert dict(refused.operands) == {"isr[0]": "{0, 1, 2}", "leader[1]": "NONE"}


def test_an_enabled_step_has_no_refusal_and_an_unknown_action_is_a_key_error(at: At) -> None:
    reference = Reference(at("2/1/1/1"))
    start = reference.system.initial
    assert refusal(reference, start, "controller_elect_leader", (("new_leader", 0),)) is None
    with pytest.raises(KeyError):
        refusal(reference, start, "follower_truncate", (("leader", 0), ("follower", 1)))


@pytest.mark.parametrize("variant", fencing.variants)
def test_the_operands_are_cells_of_the_state_and_decide_the_refusal(at: At, variant: str) -> None:
    """Any state that has the same values in the cells named refuses the same step too, if it comes to that guard."""
    system = at("2/2/2/2", variant)
    reference = Reference(system)
    draw = random.Random(320)
    print("seed 320")
    states, state = [], system.initial
    for _ in range(150):
        steps = reference.successors(state)
        state = draw.choice(steps)[2] if steps else system.initial
        states.append(state)
    compared = 0
    for state in states:
        action, params = draw.choice(list(system.by_step))
        refused = refusal(reference, state, action, params)
        if refused is None:
            continue
        names = [name for name, _ in refused.operands]
        domains = {
            n: system.layout.cells[system.layout.by_name[n]].variable.values
            for n in names
            if n in system.layout.by_name
        }
        for name, value in refused.operands:
            if name in domains:
                assert value == domains[name].told(state[system.layout.by_name[name]])
        for other in states:
            if all(other[system.layout.by_name[n]] == state[system.layout.by_name[n]] for n in domains):
                here = reference.refused_by(other, action, params)
                order = [guard for guard, _ in system.by_step[action, params].guards]
                assert here is not None and order.index(here) <= order.index(refused.guard)
                compared += 1
    assert compared > 150


@pytest.mark.parametrize(
    ("values", "value", "text"),
    [
        (integers(-1, lambda _: 3), -1, "-1"),
        (OPTIONAL_REPLICA, -1, "NONE"),
        (OPTIONAL_REPLICA, 0, "0"),
        (REPLICA_SET, 0, "{}"),
        (REPLICA_SET, 6, "{1, 2}"),
        (enumeration("phase", "idle", "busy"), 1, "busy"),
        (enumeration("phase", "idle", "busy").with_dead(), -1, "NONE"),
    ],
)
def test_values(values: Values, value: int, text: str) -> None:
    assert values.told(value) == text
