"""What running brokers with a compacted topic are held to is held to the model that is proved: by simulation.

Constants: replicas/log size/keys/timestamps/header values/repeated headers/leader epoch/changes/brokers' strategy/
consumers.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from fencepost.conformance.plan import constants_of
from fencepost.model.core.ground import System, ground
from fencepost.model.explore.simulate import Simulated, simulate
from fencepost.model.protocols.compaction import compaction
from fencepost.model.protocols.compaction.impl_spec import brokers
from fencepost.model.protocols.compaction.refinement import NOT_ASKED, RELATION, VARIANT, running_constants

DEVIATIONS = Path(__file__).resolve().parents[2] / "specs" / "DEVIATIONS.md"

STATED = {
    ("clean", "remove_tombstone", ("remove_tombstone.cleaned_before",)): "CR1",
    ("clean", "remove_record", ("remove_record.is_beaten",)): "CR1",
    ("clean", "", ()): "CR1",
    ("follower_skip", "follower_fetch", ("follower_fetch.record_there",)): "CR3",
    ("set_topic_strategy", "set_topic_strategy", ("set_topic_strategy.logs_are_alike",)): "CR2",
    ("set_topic_strategy", "set_topic_strategy", ("set_topic_strategy.has_leader",)): "CR2",
}
"""Each difference that is found, and the row that says why it is one."""

BY_OFFSET = "1/2/1/1/0/0/0/0/0/1"
BY_TIMESTAMP = "1/2/1/2/0/0/0/0/2/1"
BY_HEADER = "1/2/1/1/1/0/0/0/3/1"
SETS = "1/2/1/1/0/0/0/1/0/1"
FAILOVER = "2/1/1/1/0/0/1/0/0/1"
LOGS = "2/2/1/1/0/0/0/0/0/0"

DROPPED = {
    "clean.beaten_or_expired": BY_OFFSET,
    "clean.nothing_comes_back": BY_OFFSET,
    "clean.committed": BY_OFFSET,
    "clean.inactive": BY_OFFSET,
    "clean.cleanable": BY_TIMESTAMP,
    "leader_write.leads": BY_OFFSET,
    "leader_write.has_key": BY_OFFSET,
    "consumer_fetch.committed": BY_OFFSET,
    "consumer_fetch.not_read": BY_OFFSET,
    "consumer_skip.goes_on": BY_OFFSET,
    "consumer_skip.committed": BY_OFFSET,
    "consumer_skip.no_record_left": BY_OFFSET,
    "set_topic_strategy.differs": BY_OFFSET,
}
DROPPED_BY_NIGHT = {
    "leader_write.header_is_long": BY_HEADER,
    "leader_write.log_not_full": BY_OFFSET,
    "follower_fetch.record_there": FAILOVER,
    "follower_fetch.not_fetched": FAILOVER,
    "follower_skip.goes_on": FAILOVER,
    "follower_skip.in_log": FAILOVER,
    "follower_skip.no_record_left": FAILOVER,
    "consumer_fetch.is_next": BY_TIMESTAMP,
}


def running(at: str, *drop: str) -> System:
    return ground(brokers.traced(None).drop(*drop), running_constants(constants_of(compaction, at)))


@cache
def simulated(at: str, *drop: str) -> Simulated:
    return simulate(running(at, *drop), compaction.traced(VARIANT), constants_of(compaction, at), RELATION)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("at", "happens"),
    [
        (BY_OFFSET, {"clean", "leader_write", "consumer_fetch", "consumer_skip"}),
        (BY_TIMESTAMP, {"clean", "leader_write", "consumer_fetch", "consumer_skip"}),
        (SETS, {"set_topic_strategy", "clean"}),
        (FAILOVER, {"clean", "leader_write", "follower_fetch", "consumer_fetch"}),
        pytest.param(BY_HEADER, {"clean", "leader_write"}, marks=pytest.mark.nightly(seconds=30)),
        pytest.param(LOGS, {"clean", "follower_fetch"}, marks=pytest.mark.nightly(seconds=90)),
    ],
)
def test_what_running_brokers_may_do_the_model_may_do_too(at: str, happens: set[str]) -> None:
    """Each of their steps is a run of at most three of the model's, but for what is stated."""
    found = simulated(at)
    assert found.kinds <= set(STATED), [str(each) for each in found.unmatched if each.kind not in STATED]
    assert happens <= {action for action, count in found.matched.items() if count}


def test_every_difference_that_is_stated_has_its_row_and_is_found() -> None:
    rows = set(re.findall(r"^\| (CR\d+) \|", DEVIATIONS.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert set(STATED.values()) == rows
    found = simulated(BY_OFFSET).kinds | simulated(SETS).kinds
    assert {STATED[kind] for kind in found} == rows - {"CR3"}


@pytest.mark.nightly(seconds=90)
def test_a_follower_may_end_where_nothing_is() -> None:
    assert {STATED[kind] for kind in simulated(LOGS).kinds} == {"CR1", "CR3"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "guard",
    [*DROPPED, *(pytest.param(guard, marks=pytest.mark.nightly(seconds=30)) for guard in DROPPED_BY_NIGHT)],
)
def test_a_text_that_lets_more_happen_is_noticed(guard: str) -> None:
    at = (DROPPED | DROPPED_BY_NIGHT)[guard]
    more = simulated(at, guard).kinds - simulated(at).kinds
    assert {action for action, _, _ in more} == {guard.partition(".")[0]}


def test_nothing_is_left_out_unsaid() -> None:
    actions = {action.name for action in brokers.traced(None).actions}
    assert set(NOT_ASKED) < actions
    assert simulated(FAILOVER).matched.keys() == actions - set(NOT_ASKED)
