"""A consumer that validates its position by itself, as Apache Kafka's: what breaks it, walked by hand.

Constants: replicas/log size/records/leader epoch.
"""

from __future__ import annotations

import pytest
from fencepost.model.core.ground import Params, State, ground
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.expected import CLIENT_STATE_COUNTS

from .pinned import graphs_by_variant

MENDED, SHIPPED = "kip-320-kafka", "kip-320-kafka-shipped"
ENDS, LATE = f"{MENDED}-ends", f"{MENDED}-late"


class Walk:
    """A run told step by step: ``walk("take_up", replica=0, epoch=1)``."""

    def __init__(self, variant: str, *dropped: str) -> None:
        constants = dict(zip(truncation.constants, (2, 2, 3, 2), strict=True))
        self.reference = Reference(ground(truncation.traced(variant).drop(*dropped), constants))
        self.state: State = self.reference.system.initial

    def __call__(self, action: str, **params: int) -> None:
        after = self.reference.step(self.state, action, tuple(params.items()))
        assert after is not None, f"{action} is refused by {self.refused_by(action, **params)}"
        self.state = after

    def refused_by(self, action: str, **params: int) -> str | None:
        order: Params = tuple(params.items())
        return self.reference.refused_by(self.state, action, order)

    def __getitem__(self, cell: str) -> int:
        return self.state[self.reference.system.layout.by_name[cell]]

    @property
    def broken(self) -> list[str]:
        return self.reference.broken(self.state)

    def leads(self, leader: int, epoch: int, *, records: int, outsider: bool) -> None:
        """A replica is elected, hears of it, and writes and exposes so many records."""
        self("elect_outsider" if outsider else "elect_member", new_leader=leader)
        self("take_up", replica=leader, epoch=epoch)
        for _ in range(records):
            self("leader_append", leader=leader)

    def exposes(self, leader: int) -> None:
        self("raise_high_watermark", leader=leader, offset=self[f"leo[{leader}]"])

    def hears(self, epoch: int) -> None:
        """The consumer hears of a leader epoch, and its position goes over to it."""
        self("update_metadata", epoch=epoch)
        self("follow_metadata")


def reads_what_is_lost(variant: str) -> Walk:
    """The consumer has read a record of epoch 1; the leader of epoch 2 has one of epoch 0 in its place."""
    walk = Walk(variant)
    walk.leads(0, 0, records=1, outsider=False)
    walk.leads(1, 1, records=1, outsider=True)
    walk.exposes(1)
    walk("seek_offset", offset=0)
    walk.hears(1)
    walk("read_record", leader=1)
    walk.leads(0, 2, records=1, outsider=True)
    walk.exposes(0)
    walk.hears(2)
    assert walk["validating"] == 1
    return walk


@pytest.mark.parametrize("variant", [ENDS, SHIPPED])
def test_h1_a_validation_that_compares_ends_alone_skips_a_record(variant: str) -> None:
    walk = reads_what_is_lost(variant)
    walk("complete_validation", leader=0)
    assert walk.broken == []
    walk("read_record", leader=0)
    assert walk.broken == ["no_unnoticed_gap"]
    assert (walk["consumed_id[0]"], walk["record_id[0][0]"]) == (1, 0)


@pytest.mark.parametrize("variant", [MENDED, LATE])
def test_h1_is_told_where_epochs_are_compared_too(variant: str) -> None:
    walk = reads_what_is_lost(variant)
    assert walk.refused_by("complete_validation", leader=0) == "not_truncated"
    walk("find_truncation", leader=0)
    walk("raise_truncation")
    assert (walk["told"], walk["reported_epoch"]) == (1, 0)
    assert walk.broken == []


def fetches_in_vain(variant: str) -> Walk:
    """The consumer has asked the leader of epoch 0, and hears of the one of epoch 1 before the answer comes."""
    walk = Walk(variant)
    walk.leads(0, 0, records=1, outsider=False)
    walk.exposes(0)
    walk("update_metadata", epoch=0)
    walk("seek_offset", offset=0)
    walk.leads(1, 1, records=2, outsider=True)
    walk.exposes(1)
    walk.hears(1)
    assert walk["validating"] == 0  # a position without an epoch
    return walk


@pytest.mark.parametrize("variant", [LATE, SHIPPED])
def test_v6_an_answer_of_a_leader_that_was_left_skips_a_record(variant: str) -> None:
    walk = fetches_in_vain(variant)
    walk("read_late_record", leader=0)
    assert walk["current_epoch"] == 1
    assert walk["validating"] == 0
    walk("read_record", leader=1)
    assert walk.broken == ["no_unnoticed_gap"]


@pytest.mark.parametrize("variant", [MENDED, ENDS])
def test_v6_not_where_such_an_answer_is_dropped(variant: str) -> None:
    walk = fetches_in_vain(variant)
    assert walk.refused_by("read_record", leader=0) == "same_epoch"
    walk("read_record", leader=1)
    walk("read_record", leader=1)
    assert walk.broken == []


def test_v3_metadata_never_goes_back() -> None:
    walk = fetches_in_vain(MENDED)
    assert walk.refused_by("update_metadata", epoch=0) == "no_older"
    walk("restart_process")
    walk("update_metadata", epoch=0)
    assert walk["metadata_leader"] == 0


def forgets_the_topic(variant: str) -> Walk:
    """The consumer has read a record of epoch 1; a broker does not know the topic, and another one is late."""
    walk = Walk(variant)
    walk.leads(0, 0, records=1, outsider=False)
    walk.leads(1, 1, records=1, outsider=True)
    walk.exposes(1)
    walk("seek_offset", offset=0)
    walk.hears(1)
    walk("read_record", leader=1)
    assert walk.refused_by("update_metadata", epoch=0) == "no_older"
    walk("lose_metadata")
    assert (walk["metadata_epoch"], walk["topic_known"]) == (1, 0)
    walk.hears(0)
    assert (walk["metadata_epoch"], walk["topic_known"], walk["current_epoch"], walk["validating"]) == (0, 1, 0, 1)
    return walk


@pytest.mark.parametrize("variant", [SHIPPED, ENDS, LATE, MENDED])
def test_v7_an_older_leader_knows_of_nothing_and_that_is_told_as_a_truncation(variant: str) -> None:
    """Nothing was lost: the leader of epoch 1 has what was read, and still leads."""
    walk = forgets_the_topic(variant)
    assert walk.refused_by("complete_validation", leader=0) == "not_truncated"
    walk("find_truncation", leader=0)
    assert (walk["reported"], walk["reported_epoch"], walk["answered_epoch"]) == (-1, -1, 0)
    assert walk.broken == []
    # Newer metadata mends it, as long as nobody has been told.
    walk.hears(1)
    walk("complete_validation", leader=1)
    assert walk.broken == []


def test_v7_a_divergence_of_nothing_is_told_of_a_leader_of_the_positions_epoch_by_none() -> None:
    """What is allowed for V7 is allowed there alone."""
    walk = reads_what_is_lost(MENDED)
    walk("find_truncation", leader=0)
    cells = dict.fromkeys(("reported", "reported_epoch"), -1)
    at = walk.reference.system.layout.by_name
    state = list(walk.state)
    for name, value in cells.items():
        state[at[name]] = value
    assert walk.reference.broken(tuple(state)) == ["told_divergence"]


def test_every_promise_holds_with_one_replica_and_one_record() -> None:
    ((written, expected),) = graphs_by_variant(truncation, CLIENT_STATE_COUNTS)[MENDED].items()
    constants = dict(zip(truncation.constants, map(int, written.split("/")), strict=True))
    answer = explore(Query.of(ground(truncation.traced(MENDED), constants)))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)
    never = {name for name, taken in answer.transitions.items() if not taken}
    assert never == {"follower_copy"}
