"""What each guard of KIP-320 is for: every one is dropped alone, and every one is accounted for in a table.

``BREAKS``: a promise is broken, after so many steps. ``IMPLIED``: in no reachable state is it the only guard that
refuses, because the guards beside it say as much; without those too, it refuses something. ``STUTTERS``: without it
there are more steps, all of which change nothing. ``SAFE``: without it there are more steps, and no promise breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from fencepost.model.core.ground import State, System, ground
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.fencing import fencing
from fencepost.model.interpret.reference import Reference
from fencepost.model.interpret.staged import Staged, stage

At = Callable[..., System]

BREAKS = {
    "controller_elect_leader.in_quorum_isr": ("leader_in_isr", 2),
    # The epochs of the model run out: the bound is the model's, not Kafka's.
    "controller_elect_leader.epoch_available": ("type_ok", 4),
    "controller_shrink_isr.epoch_available": ("type_ok", 4),
    # The leader takes up the request that made it leader again, with the ISR of then.
    "become_leader.epoch_newer": ("weak_isr", 7),
    "become_follower.epoch_newer": ("weak_isr", 10),
    "become_follower.leader_epoch_matches": ("weak_isr", 14),
    # A replica that never led has no epoch to write in.
    "leader_write.presumes_leadership": ("type_ok", 1),
    "leader_write.record_available": ("type_ok", 7),
    "follower_fetch.epoch_not_fenced": ("weak_isr", 12),
    "follower_fetch.record_available": ("type_ok", 3),
    "leader_inc_high_watermark.isr_acknowledges": ("weak_isr", 4),
    "leader_shrink_isr.true_leader": ("leader_in_isr", 4),
    "leader_expand_isr.epoch_not_fenced": ("weak_isr", 14),
    "leader_expand_isr.reached_high_watermark": ("weak_isr", 8),
    # KAFKA-7128: the new leader does not know yet what its predecessor committed.
    "leader_expand_isr.hw_reached_epoch": ("strong_isr", 11),
    "leader_expand_isr.true_leader": ("strong_isr", 9),
}

IMPLIED: dict[str, tuple[str, tuple[str, ...]]] = {
    "become_leader.request_sent": ("a request that was not sent names no leader", ("names_leader",)),
    "become_follower.not_leader_itself": (
        "a leader that is in the request's epoch has nothing newer to take up",
        ("leader_epoch_matches",),
    ),
    "become_follower.request_sent": (
        "a request that was not sent names no leader, and no replica is in its epoch",
        ("names_leader", "leader_epoch_matches"),
    ),
    "become_follower.names_leader": (
        "whoever presumes leadership in an epoch is the one that its request names",
        ("leader_epoch_matches",),
    ),
    "become_follower.presumes_leadership": (
        "the replica that the request names is in its epoch only by having become its leader",
        ("leader_epoch_matches",),
    ),
    "become_follower.truncates_backward": ("no offset at which two logs agree is above either's end", ()),
    "follower_fetch.presumes_leadership": (
        "a replica follows only a leader of its epoch, and the epochs are equal",
        ("follows_leader",),
    ),
    "follower_fetch.follows_leader": (
        "an epoch has one leader, and whoever is in it follows that one",
        ("epoch_not_fenced",),
    ),
    "leader_inc_high_watermark.presumes_leadership": (
        "the leader is in the ISR that its followers know, and does not follow them",
        ("isr_acknowledges",),
    ),
    "leader_inc_high_watermark.record_above_hw": (
        "the leader is in the ISR that it knows, and must have the record itself",
        ("isr_acknowledges",),
    ),
    "leader_shrink_isr.not_leader_itself": ("a leader is caught up with itself", ("not_caught_up",)),
    "leader_expand_isr.follows_leader": (
        "an epoch has one leader, and whoever is in it follows that one",
        ("epoch_not_fenced",),
    ),
}

STUTTERS = {
    "leader_shrink_isr.in_isr": "a replica that is not in the ISR is taken out of it",
    "leader_expand_isr.outside_isr": "a replica that is in the ISR is taken into it",
}

# Distinct states at 2/2/2/2 and 3/1/1/1, where the model itself has 5973 and 6787.
SAFE = {
    "controller_elect_leader.not_leader_yet": ("the leader is elected again, in a new epoch", 12429, 8164),
    "controller_shrink_isr.leads_or_in_isr": ("a new epoch that changes nothing else", 7085, 7057),
    # Its followers know another leader, so nobody acknowledges its records; only a replica that is alone in the ISR
    # of a request without a leader can commit, and it has every committed record.
    "become_leader.names_leader": ("a replica that nobody elected leads, without followers", 25153, 23749),
    "leader_shrink_isr.not_caught_up": ("the leader takes out a follower that has everything", 5973, 6787),
}

# Where the log has room for all records, the guard says nothing.
ROOM = {"leader_write.log_not_full": ("2/1/2/2", "type_ok", 4)}


def test_every_guard_is_accounted_for_once() -> None:
    tables = [*BREAKS, *IMPLIED, *STUTTERS, *SAFE, *ROOM]
    guards = [f"{action.name}.{guard}" for action in fencing.traced().actions for guard, _ in action.guards]
    assert sorted(tables) == sorted(guards)


@pytest.mark.parametrize("guard", BREAKS)
def test_without_it_a_promise_breaks(at: At, guard: str) -> None:
    violated, length = BREAKS[guard]
    system = at("3/2/2/2", "kip-320", guard)
    answer = explore(Query.of(system))
    assert answer.path is not None
    assert (answer.verdict, answer.violated, len(answer.path)) == (Verdict.VIOLATED, violated, length)
    reference = Reference(system)
    assert violated in reference.broken(answer.path[-1].state)
    # The model itself refuses some step of that run, by just this guard.
    action, _, name = guard.partition(".")
    strict = Reference(at("3/2/2/2"))
    states = [system.initial, *(step.state for step in answer.path)]
    refusals = [
        strict.refused_by(state, step.instance.action, step.instance.params)
        for state, step in zip(states, answer.path, strict=False)
        if step.instance.action == action
    ]
    assert name in refusals


def test_a_log_that_is_full_takes_no_record(at: At) -> None:
    for guard, (constants, violated, length) in ROOM.items():
        answer = explore(Query.of(at(constants, "kip-320", guard)))
        assert (answer.verdict, answer.violated, len(answer.path or [])) == (Verdict.VIOLATED, violated, length)
        assert explore(Query.of(at("2/2/2/2", "kip-320", guard))).distinct == 5973


@cache
def staged_at(constants: str, *dropped: str) -> Staged:
    values = dict(zip(fencing.constants, map(int, constants.split("/")), strict=True))
    return stage(ground(fencing.traced().drop(*dropped), values))


@cache
def reachable(constants: str, *dropped: str) -> list[State]:
    staged = staged_at(constants, *dropped)
    seen = {staged.system.initial: None}
    for state in (todo := [staged.system.initial]):
        for _, after in staged.successors(state):
            if after not in seen:
                seen[after] = None
                todo.append(after)
    return list(seen)


def extra_steps(states: list[State], less: Staged, more: Staged) -> list[tuple[State, State]]:
    """Steps from these states that ``more`` has and ``less`` has not. Nothing that ``less`` has may be missing."""
    found = []
    ours, theirs = ([str(instance) for instance in staged.system.instances] for staged in (less, more))
    for state in states:
        here = {(ours[number], after) for number, after in less.successors(state)}
        there = {(theirs[number], after) for number, after in more.successors(state)}
        assert here <= there
        found += [(state, after) for _, after in there - here]
    return found


@pytest.mark.parametrize("guard", IMPLIED)
def test_the_guards_beside_it_say_as_much(at: At, guard: str) -> None:
    _, beside = IMPLIED[guard]
    for constants in ("2/2/2/2", "3/1/1/1"):
        model = staged_at(constants)
        # The same steps from every state that the model reaches: so without it, the same states are reached.
        assert extra_steps(reachable(constants), model, stage(at(constants, "kip-320", guard))) == []
    if beside:
        others = [f"{guard.partition('.')[0]}.{name}" for name in beside]
        without = staged_at("3/1/1/1", *others)
        assert extra_steps(reachable("3/1/1/1", *others), without, stage(at("3/1/1/1", "kip-320", *others, guard)))


@pytest.mark.parametrize("guard", STUTTERS)
def test_without_it_there_are_only_more_steps_that_change_nothing(at: At, guard: str) -> None:
    model = staged_at("2/2/2/2")
    extra = extra_steps(reachable("2/2/2/2"), model, stage(at("2/2/2/2", "kip-320", guard)))
    assert extra and all(before == after for before, after in extra)


@pytest.mark.parametrize("guard", SAFE)
def test_without_it_there_are_more_runs_and_no_promise_breaks(at: At, guard: str) -> None:
    _, *counts = SAFE[guard]
    for constants, distinct in zip(("2/2/2/2", "3/1/1/1"), counts, strict=True):
        mutant = at(constants, "kip-320", guard)
        answer = explore(Query.of(mutant))
        assert (answer.verdict, answer.distinct) == (Verdict.HOLDS, distinct)
        model = staged_at(constants)
        extra = extra_steps(reachable(constants), model, stage(mutant))
        assert any(before != after for before, after in extra)
