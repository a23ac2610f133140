"""The bindings: no guard of any variant is left without an answer, and the answers are KIP-320's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from fencepost.conformance.harness import binding_of, bound_protocols, held_to, in_lockstep
from fencepost.conformance.lockstep.binding import Answer, Binding, environment, error, unasked
from fencepost.conformance.lockstep.expect import askable
from fencepost.conformance.lockstep.space import Node, Space
from fencepost.model.core.ground import ground
from fencepost.model.core.protocol import Protocol
from fencepost.model.core.registry import PROTOCOLS

from .planted import SMALL


def holes(protocol: Protocol, binding: Binding) -> list[str]:
    """Guards and parameters that do not fit between a protocol and its binding, either way."""
    guards: dict[str, set[str]] = {}
    for variant in protocol.variants:
        for action in protocol.traced(variant).actions:
            guards.setdefault(action.name, set()).update(name for name, _ in action.guards)
    found = [f"{action} is bound, and is no action" for action in binding.actions if action not in guards]
    for action, names in guards.items():
        bound = binding.actions.get(action)
        if bound is None:
            found.append(f"{action} is not bound")
            continue
        found += [f"{action}.{name} is not bound" for name in sorted(names - set(bound.guards))]
        found += [f"{action}.{name} is bound, and is no guard" for name in sorted(set(bound.guards) - names)]
        params = set(protocol.actions[action].params)
        named = {*bound.offline, *(each for pair in bound.distinct for each in pair)}
        named |= {bound.stores} - {None} if bound.stores else set()
        if bound.exchange is not None:
            named |= {who for who in (bound.exchange.asker, bound.exchange.asked) if isinstance(who, str)}
        found += [f"{action} has no parameter {name}" for name in sorted(named - params)]
    return found


@pytest.mark.parametrize("name", sorted(bound_protocols()))
def test_every_guard_of_every_variant_is_bound_and_nothing_else(name: str) -> None:
    assert holes(held_to(name), binding_of(name, "--protocol")) == []


@pytest.mark.parametrize("name", sorted(bound_protocols()))
def test_so_is_every_guard_of_what_adapters_are_driven_beside(name: str) -> None:
    assert holes(*in_lockstep(name)) == []


def test_a_hole_in_a_binding_is_noticed() -> None:
    binding = binding_of("fencing", "--protocol")
    fetch = binding.actions["follower_fetch"]
    less = {name: rule for name, rule in fetch.guards.items() if name != "epoch_not_fenced"}
    actions = {**binding.actions, "follower_fetch": replace(fetch, guards=less, stores="broker")}
    del actions["leader_write"]
    assert sorted(holes(PROTOCOLS["fencing"], replace(binding, actions=actions))) == [
        "follower_fetch has no parameter broker",
        "follower_fetch.epoch_not_fenced is not bound",
        "leader_write is not bound",
    ]


@pytest.fixture(scope="module")
def space() -> Space:
    return Space(ground(PROTOCOLS["fencing"].traced(None), SMALL), binding_of("fencing", "--protocol"))


def after(space: Space, *steps: tuple[str, Mapping[str, int]]) -> Node:
    """The model after these steps."""
    node = space.node(space.system.initial)
    for action, params in steps:
        node = space.node(node.after[space.call(action, params)])
    return node


def answer(space: Space, node: Node, action: str, **params: int) -> Answer:
    """How a system answers a step that is refused."""
    return space.refused(node, space.call(action, params))[1]


ELECT_0 = ("controller_elect_leader", {"new_leader": 0})
LEAD_0 = ("become_leader", {"leader": 0, "epoch": 0})
FOLLOW = ("become_follower", {"leader": 0, "follower": 1, "epoch": 0})
SHRINK = ("controller_shrink_isr", {"replica": 1})
LEAD_AGAIN = ("become_leader", {"leader": 0, "epoch": 1})


def test_a_lower_epoch_is_fenced_and_a_higher_one_unknown(space: Space) -> None:
    stale_follower = after(space, ELECT_0, LEAD_0, FOLLOW, SHRINK, LEAD_AGAIN)
    assert answer(space, stale_follower, "follower_fetch", leader=0, follower=1) == error("FENCED_REPLICA")
    stale_leader = after(space, ELECT_0, LEAD_0, SHRINK)
    assert answer(space, stale_leader, "become_follower", leader=0, follower=1, epoch=1) == error(
        "UNKNOWN_LEADER_EPOCH"
    )
    assert answer(space, stale_follower, "become_leader", leader=0, epoch=0) == error("FENCED_REPLICA")
    assert answer(space, stale_leader, "leader_shrink_isr", leader=0, follower=1) == error("FENCED_REPLICA")


def test_who_leads_nothing_says_so_whatever_else_is_wrong(space: Space) -> None:
    start = space.node(space.system.initial)
    assert answer(space, start, "leader_write", leader=0) == error("NOT_LEADER_OR_FOLLOWER")
    # Nobody sends this fetch unless made to; then the broker asked leads nothing, in whichever order it looks.
    fetch = answer(space, start, "follower_fetch", leader=0, follower=1)
    assert fetch.errors == {None, "NOT_LEADER_OR_FOLLOWER"}


def test_a_fetch_at_the_end_of_the_log_is_no_error_and_must_be_fenced_first(space: Space) -> None:
    caught_up = after(space, ELECT_0, LEAD_0, FOLLOW)
    assert answer(space, caught_up, "follower_fetch", leader=0, follower=1).errors == {None}
    # Both guards refuse here; an answer without an error would hide the fencing.
    stale = after(space, ELECT_0, LEAD_0, FOLLOW, SHRINK, LEAD_AGAIN)
    guards, told = space.refused(stale, space.call("follower_fetch", {"leader": 0, "follower": 1}))
    assert guards == ("epoch_not_fenced", "record_available") and None not in told.errors


def test_what_nobody_can_ask_for_is_never_drawn(space: Space) -> None:
    start = space.node(space.system.initial)
    assert not answer(space, start, "become_leader", leader=0, epoch=0).drawn
    assert ("become_leader", "request_sent") not in space.askable
    assert all(
        params != (("leader", 0), ("follower", 0)) for action, params in space.tries if action == "follower_fetch"
    )


def test_answers_of_several_guards_are_taken_together() -> None:
    binding = binding_of("fencing", "--protocol")
    assert binding.fixed_answer("follower_fetch", ("presumes_leadership", "record_available")) == error(
        "NOT_LEADER_OR_FOLLOWER"
    )
    assert binding.fixed_answer("follower_fetch", ("record_available",)) == Answer(frozenset({None}))
    assert binding.fixed_answer("follower_fetch", ("follows_leader",)) is None, "it depends on the state"
    blocked = binding.fixed_answer("leader_write", ("presumes_leadership", "record_available"))
    assert blocked == environment("a bound of the model")
    both = binding.fixed_answer("leader_inc_high_watermark", ("presumes_leadership", "record_above_hw"))
    assert both == unasked("NOT_LEADER_OR_FOLLOWER")


QUORUM = {"replicas": 3, "log_size": 1, "max_leader_epoch": 1}
STAND_0 = ("become_candidate", {"candidate": 0})
VOTE_1 = ("grant_vote", {"voter": 1})
WRITE_0 = ("leader_write", {"leader": 0})


@pytest.fixture(scope="module")
def quorum() -> Space:
    return Space(ground(PROTOCOLS["snapshots"].traced("kip-630-nodes"), QUORUM), binding_of("snapshots", "--protocol"))


def test_a_quorum_fences_who_is_in_another_epoch_and_has_errors_for_snapshots(quorum: Space) -> None:
    led = after(quorum, STAND_0, VOTE_1, WRITE_0)
    # Replica 2 is in no epoch yet, and its fetch would find records otherwise: the fence is named all the same.
    assert answer(quorum, led, "follower_fetch", leader=0, follower=2) == error("FENCED_REPLICA")
    assert answer(quorum, led, "follower_fetch", leader=2, follower=0).errors == {
        "NOT_LEADER_OR_FOLLOWER",
        "UNKNOWN_LEADER_EPOCH",
    }
    assert answer(quorum, led, "delete_records", leader=0, lbo=1) == error("OFFSET_OUT_OF_RANGE")
    assert answer(quorum, led, "fetch_snapshot", leader=0, follower=1).unasked, "it fetches none"


def test_a_leader_of_an_older_epoch_is_fenced_where_it_tells_of_it(quorum: Space) -> None:
    deposed = after(quorum, STAND_0, VOTE_1, ("become_candidate", {"candidate": 1}))
    assert answer(quorum, deposed, "become_follower", follower=1, epoch=0) == error("FENCED_REPLICA")
    assert not answer(quorum, deposed, "become_follower", follower=0, epoch=0).drawn, "it does not tell itself"


def test_of_a_vote_granted_and_a_vote_refused_only_the_right_one_is_drawn(quorum: Space) -> None:
    standing = after(quorum, STAND_0, VOTE_1, WRITE_0, ("become_candidate", {"candidate": 1}))
    refused = quorum.call("refuse_vote", {"voter": 0})
    assert refused in standing.after and not askable(quorum, standing, quorum.call("grant_vote", {"voter": 0}))
    in_the_epoch = quorum.node(standing.after[refused])
    assert answer(quorum, in_the_epoch, "grant_vote", voter=0).errors == {None}, "it may be asked again"


def test_one_answer_to_a_poll_keeps_the_others_from_being_drawn() -> None:
    truncation = Space(ground(PROTOCOLS["truncation"].traced(None), {}), binding_of("truncation", "--protocol"))
    steps = (
        ("elect_cleanly", {"new_leader": 0}),
        ("refresh_metadata", {"epoch": 0}),
        ("leader_write", {"leader": 0}),
    )
    poll = truncation.call("consumer_fetch", {"leader": 0})
    nothing_yet = after(truncation, *steps)
    assert poll not in nothing_yet.after and askable(truncation, nothing_yet, poll)
    exposed = after(truncation, *steps, ("leader_inc_high_watermark", {"leader": 0}))
    assert poll in exposed.after
    assert not askable(truncation, exposed, truncation.call("find_divergence", {"leader": 0}))
