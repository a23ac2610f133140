"""A consumer that runs by itself, exhaustively where that is possible, and what each promise is there for.

Constants: replicas/log size/records/leader epoch.
"""

from __future__ import annotations

import random
from functools import cache

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.interpret.staged import stage
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.expected import CLIENT_STATE_COUNTS
from fencepost.model.protocols.truncation.state import Awaited

from .pinned import graphs_by_variant
from .test_truncation_kafka import Walk

CLIENT = "kip-320-client"


@cache
def at(constants: str, *dropped: str) -> System:
    values = dict(zip(truncation.constants, map(int, constants.split("/")), strict=True))
    return ground(truncation.traced(CLIENT).drop(*dropped), values)


def test_every_promise_holds_with_one_replica_and_one_record() -> None:
    ((constants, expected),) = graphs_by_variant(truncation, CLIENT_STATE_COUNTS)[CLIENT].items()
    answer = explore(Query.of(at(constants)))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)
    never = {name for name, taken in answer.transitions.items() if not taken}
    assert never == {  # for these it takes another epoch, or another replica
        *("follower_copy", "refuse_unknown_epoch", "refuse_truncated", "learn_divergence"),
        *("tell_divergence", "seek_to_told", "go_to_divergence"),
    }


def test_the_promises_are_those_of_what_the_application_was_told() -> None:
    assert set(truncation.traced(CLIENT).invariants) == {
        *("kept_logs_match", "read_what_was_written", "no_unnoticed_gap", "names_what_it_read"),
        *("truncation_was_found", "told_divergence", "acknowledged_commit_is_kept", "unknown_epoch_is_stale"),
    }
    assert not set(truncation.traced().invariants) & (
        set(truncation.traced(CLIENT).invariants) - {"unknown_epoch_is_stale"}
    )


@pytest.mark.parametrize(
    ("dropped", "broken"),
    [
        ("fetch_record.below_high_watermark", "type_ok"),
        ("find_commit.was_refused", "acknowledged_commit_is_kept"),
        ("take_record.has_arrived", "type_ok"),
        ("learn_commit.committed", "type_ok"),
    ],
)
def test_without_a_guard_a_promise_breaks(dropped: str, broken: str) -> None:
    answer = explore(Query.of(at("1/1/1/0", dropped)))
    assert answer.violated == broken


def test_an_answer_is_of_one_leader() -> None:
    """Records of two would be read as one log, with a gap that nobody tells."""

    def half_answered(*dropped: str) -> Walk:
        walk = Walk(CLIENT, *dropped)
        for leader, records in ((0, 1), (1, 2)):
            walk.leads(leader, leader, records=records, outsider=leader == 1)
            walk.exposes(leader)
        walk("seek_to", offset=0)
        walk("send", request=Awaited.fetch)
        walk("fetch_record", leader=0)
        return walk

    assert half_answered().refused_by("fetch_record", leader=1) == "of_one_answer"
    walk = half_answered("fetch_record.of_one_answer")
    walk("fetch_record", leader=1)
    walk("take_record")
    assert walk.broken == []
    walk("take_record")
    assert walk.broken == ["no_unnoticed_gap"]


SELDOM = {
    *("seek_to", "ask_for", "restart_consumer", "give_up", "elect_nobody", "elect_member", "elect_outsider"),
    *("replica_restarts", "begin_log_at", "truncate_log", "delete_records"),
}
"""What undoes what others have come to."""


@pytest.mark.parametrize("seed", range(3))
def test_random_walks_keep_every_promise(seed: int) -> None:
    """Where nobody can look at all states: steps are drawn by action, and rather those that get somewhere."""
    system = at("2/3/5/3")
    compiled, chance = stage(system), random.Random(seed)
    taken: set[str] = set()
    for _ in range(40):
        state = system.initial
        for _ in range(150):
            by_action: dict[str, list[tuple[int, ...]]] = {}
            for number, after in compiled.successors(state):
                by_action.setdefault(system.instances[number].action, []).append(after)
            actions = sorted(by_action)
            (action,) = chance.choices(actions, [0.1 if action in SELDOM else 1 for action in actions])
            state = chance.choice(by_action[action])
            taken.add(action)
            broken = [name for name, holds in compiled.invariants.items() if not holds(state)]
            assert broken == []
    assert {"fetch_record", "take_record", "store_commit", "replica_restarts"} <= taken
