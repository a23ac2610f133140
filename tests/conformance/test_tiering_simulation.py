"""What running brokers with tiered storage are held to is held to the model that is proved: by simulation.

Constants: replicas/log size/leader epoch/last tiered offset/unclean/transactions/switches/expires.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from fencepost.conformance.plan import constants_of
from fencepost.model.core.ground import System, ground
from fencepost.model.explore.simulate import Simulated, simulate
from fencepost.model.protocols.tiering import tiering
from fencepost.model.protocols.tiering.impl_spec import tiered
from fencepost.model.protocols.tiering.refinement import OF_FENCING, RELATION, UNFINISHED, running_constants

DEVIATIONS = Path(__file__).resolve().parents[2] / "specs" / "DEVIATIONS.md"


def _kinds(action: str, nearest: str, *guards: str) -> tuple[str, str, tuple[str, ...]]:
    return action, nearest, tuple(f"{nearest}.{guard}" for guard in guards)


STATED = {
    _kinds("delete_records", "increment_log_start", "has_looked"): "TR1",
    _kinds("delete_records", ""): "TR1",
    _kinds("expire", "increment_log_start", "has_looked"): "TR1",
    _kinds("copy_segment", ""): "TR2",
    _kinds("copy_segment", "copy_segment", "is_local"): "TR2",
    _kinds("copy_segment", "copy_segment", "presumes_leadership"): "TR2",
    _kinds("copy_segment", "copy_segment", "presumes_leadership", "is_local"): "TR2",
    _kinds("find_highest_remote_offset", ""): "TR4",
    _kinds("find_highest_remote_offset", "find_highest_remote_offset", "not_looked"): "TR4",
    _kinds("note_copied", ""): "TR4",
    _kinds("delete_local", "delete_local", "is_uploaded"): "TR5",
    _kinds("start_deletion", "delete_segment", "epoch_is_newest"): "TR6",
    _kinds("start_deletion", "delete_segment", "below_log_start"): "TR6",
    _kinds("follow_log_start", "become_follower", "epoch_newer"): "TR7",
    _kinds("follow_log_start", "increment_log_start", "presumes_leadership", "has_looked"): "TR7",
    _kinds("follow_log_start", "find_highest_remote_offset", "presumes_leadership"): "TR7",
    _kinds("truncate_fully", "truncate_fully", "offset_not_local", "below_log_start"): "TR8",
}
"""Each difference that is found, and the row that says why it is one."""

ALONE = "1/1/0/1/0/0/0/1"
ROOM = "1/2/0/1/0/0/0/1"
FOLLOWER = "2/1/0/1/0/0/0/1"
FAILOVER = "2/1/1/1/0/0/0/1"
LOG = "2/2/0/1/0/0/0/1"
OLD_WAY = "2/2/0/0/0/0/0/1"

DROPPED = {
    "start_copy.has_looked": ALONE,
    "copy_segment.copy_started": ALONE,
    "finish_copy.copied": ALONE,
    "note_copied.copy_finished": ALONE,
    "delete_local.is_uploaded": ALONE,
    "expire.copy_finished": ALONE,
    "delete_records.below_last_stable": ALONE,
    "start_deletion.copy_finished": ALONE,
    "start_deletion.of_no_use": ALONE,
    "truncate_fully.was_told": ALONE,
    "start_at_local_start.begins_there": ALONE,
    "start_at_log_start.begins_there": ALONE,
    "start_copy.has_records": ROOM,
    "start_copy.is_next": ROOM,
    "start_copy.one_at_a_time": ROOM,
    "start_copy.below_last_stable": FOLLOWER,
    "truncate_fully.not_on_leader": FOLLOWER,
}
DROPPED_BY_NIGHT = {
    "start_copy.presumes_leadership": FAILOVER,
    "finish_copy.begun_in_epoch": FAILOVER,
    "delete_local.below_last_stable": FAILOVER,
    "start_deletion.presumes_leadership": FAILOVER,
    "start_at_local_start.nothing_uploaded": FAILOVER,
    "build_to_local_start.begins_there": FAILOVER,
    "truncate_fully.old_behaviour": LOG,
    "start_at_local_start.epuo_is_unknown": LOG,
    "start_at_log_start.not_above_log_start": LOG,
}


def running(at: str, *drop: str) -> System:
    return ground(tiered.traced(None).drop(*drop), running_constants(constants_of(tiering, at)))


@cache
def simulated(at: str, *drop: str) -> Simulated:
    return simulate(running(at, *drop), tiering.traced("kip-1023-safe"), constants_of(tiering, at), RELATION)


@pytest.mark.parametrize(
    ("at", "happens"),
    [
        (ROOM, {"start_copy", "copy_segment", "finish_copy", "delete_local", "expire", "start_deletion"}),
        (FOLLOWER, {"start_at_log_start", "start_at_local_start", "build_to_epuo"}),
        pytest.param(
            FAILOVER, {"build_to_epuo", "note_copied", "delete_records"}, marks=pytest.mark.nightly(seconds=30)
        ),
        pytest.param(LOG, {"build_to_epuo", "build_to_local_start"}, marks=pytest.mark.nightly(seconds=30)),
        pytest.param(OLD_WAY, {"build_to_local_start", "truncate_fully"}, marks=pytest.mark.nightly(seconds=30)),
    ],
)
def test_what_running_brokers_may_do_the_model_may_do_too(at: str, happens: set[str]) -> None:
    """Each of their steps for a log's remote part is a run of at most two of the model's, but for what is stated."""
    found = simulated(at)
    assert found.kinds <= set(STATED), [str(each) for each in found.unmatched if each.kind not in STATED]
    assert happens <= {action for action, count in found.matched.items() if count}


def test_every_difference_that_is_stated_has_its_row() -> None:
    rows = set(re.findall(r"^\| (TR\d+) \|", DEVIATIONS.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert set(STATED.values()) == rows


@pytest.mark.nightly(seconds=60)
def test_every_difference_that_is_stated_is_found() -> None:
    assert simulated(FAILOVER).kinds | simulated(LOG).kinds == set(STATED)


@pytest.mark.parametrize(
    "guard",
    [*DROPPED, *(pytest.param(guard, marks=pytest.mark.nightly(seconds=30)) for guard in DROPPED_BY_NIGHT)],
)
def test_a_text_that_lets_more_happen_is_noticed(guard: str) -> None:
    at = (DROPPED | DROPPED_BY_NIGHT)[guard]
    more = simulated(at, guard).kinds - simulated(at).kinds
    assert {action for action, _, _ in more} == {guard.partition(".")[0]}


def test_nothing_is_left_out_unsaid() -> None:
    actions = {action.name for action in tiered.traced(None).actions}
    assert set(OF_FENCING) | set(UNFINISHED) < actions
    assert simulated(ALONE).matched.keys() == actions - set(OF_FENCING) - set(UNFINISHED)
