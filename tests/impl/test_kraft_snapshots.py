"""Whose turn it is to take a snapshot: by itself, and in a cluster."""

from __future__ import annotations

from dataclasses import replace

from fencepost.impl.kraft.config import ControllerConfig
from fencepost.impl.kraft.snapshots import SnapshotTurns

from .kraft_cluster import settled, topics
from .kraft_rack import CONTROLLER, QUORUM, Rack

CONFIG = ControllerConfig(
    session_timeout_ms=100, snapshot_minimum_records=10, degraded_snapshot_minimum_records=50, max_lag_records=5
)
VOTERS = (100, 101, 102)


class Turns:
    """Heartbeats of one moment, of nodes that have replayed everything."""

    def __init__(self, voters: tuple[int, ...] = VOTERS) -> None:
        self.turns = SnapshotTurns(CONFIG, voters, 0)
        self.stable = 11

    def hear(self, node: int, snapshot: int = 0, *, now: int = 0, behind: int = 0) -> bool:
        return self.turns.heard(
            node, metadata_end=self.stable - behind, snapshot_end=snapshot, stable=self.stable, now=now
        )


def test_one_at_a_time_until_it_tells_of_its_snapshot() -> None:
    turns = Turns()
    assert turns.hear(101) and turns.turns.turn == 101
    assert not turns.hear(102) and not turns.hear(5) and not turns.hear(100)
    assert turns.hear(101), "the answer was lost, so it is told again"
    assert not turns.hear(101, 11) and turns.turns.turn is None
    assert turns.hear(5), "brokers take snapshots, too"
    assert not turns.hear(102)


def test_with_too_few_records_nobody_is_told() -> None:
    turns = Turns()
    turns.stable = 10
    assert not turns.hear(101)
    turns.stable = 11
    assert not turns.hear(101, 1)
    assert turns.hear(102, 0)


def test_who_has_replayed_no_more_than_its_snapshot_is_not_told() -> None:
    turns = Turns()
    turns.stable = 100
    assert not turns.hear(101, 3, behind=97)


def test_who_is_not_heard_of_loses_its_turn() -> None:
    turns = Turns()
    turns.stable = 51  # by then a member is unavailable, so that more records have to be there
    assert turns.hear(101)
    turns.hear(100, 51, now=99)
    assert not turns.hear(102, now=99)
    assert turns.hear(102, now=100)
    assert turns.turns.turn == 102


def test_less_often_while_a_member_is_unavailable() -> None:
    turns = Turns()
    turns.hear(100, 11, now=100)
    turns.hear(102, 11, now=100)
    assert turns.turns.degraded(11, 100), "101 was never heard of"
    assert not turns.hear(5, now=100)
    turns.hear(101, 11, now=101)
    assert turns.hear(5, now=101)


def test_less_often_while_the_loss_of_one_more_would_leave_no_majority() -> None:
    turns = Turns()
    turns.stable = 30
    turns.hear(100, 30)
    turns.hear(101, 30, behind=6)
    turns.hear(102, 30)
    assert turns.turns.degraded(30, 0), "two of three are there, and if one goes the other is no majority"
    assert not turns.hear(5)
    turns.stable = 51
    turns.hear(101, 30, behind=6)
    assert turns.hear(5), "beyond the other threshold"
    five = Turns((100, 101, 102, 103, 104))
    five.stable = 30
    for voter in (100, 101, 102, 103):
        five.hear(voter, 30)
    five.hear(104, 30, behind=6)
    assert not five.turns.degraded(30, 0)


def test_small_quorums_are_not_degraded_for_ever() -> None:
    for voters in ((100,), (100, 101)):
        turns = Turns(voters)
        for voter in voters:
            turns.hear(voter, 11)
        assert not turns.turns.degraded(11, 0)


def test_every_node_takes_snapshots_and_no_two_at_once() -> None:
    """And the active controller gives up its leadership first."""
    rack = settled()
    resigned: list[int] = []
    for controller in rack.controllers.values():
        turn = controller._snapshot_as_active

        def told(turn=turn, address=controller.address) -> None:  # type: ignore[no-untyped-def]
            resigned.append(address)
            turn()

        controller._snapshot_as_active = told  # type: ignore[method-assign]
    seen: set[int] = set()
    for number in range(40):
        topics(rack, f"t{number}")
        rack.run(150)
        turns = [each.active.turns.turn for each in rack.controllers.values() if each.active is not None]
        seen |= {turn for turn in turns if turn is not None}
        whole = [*rack.controllers.values(), *rack.brokers.values()]
        if resigned and all(each.quorum.replica.snapshots.latest_end for each in whole):
            break
    else:
        raise AssertionError("not everyone has a snapshot")
    assert seen, "or nobody was told"
    former = rack.controllers[resigned[0]]
    rack.until(lambda: former.quorum.replica.snapshots.latest_end > 0)
    assert rack.ledger.snapshots_checked >= 6
    assert all(each.quorum.replica.begin > 0 for each in rack.controllers.values())


def test_an_active_controller_that_nobody_relieves_takes_its_snapshot_itself() -> None:
    """A quorum of one, and one whose leadership comes back."""
    rack = Rack(1, quorum=replace(QUORUM, voters=(100,)))
    rack.until(rack.unfenced)
    for number in range(14):
        topics(rack, f"t{number}")
    rack.until(lambda: rack.controllers[100].quorum.replica.snapshots.latest_end > 0)
    other = settled()
    active = other.active
    assert active is not None
    active._yielded = True
    for number in range(14):
        topics(other, f"t{number}")
    before = active.quorum.epoch
    active._snapshot_as_active()
    assert active.quorum.replica.snapshots.latest_end > 0 and active.active is not None
    assert active.quorum.epoch == before and not active._yielded


def test_snapshots_are_rarer_while_a_controller_is_away() -> None:
    def records_before_the_first(down: bool) -> int:
        config = replace(CONTROLLER, snapshot_minimum_records=20, degraded_snapshot_minimum_records=60)
        rack = Rack(3, controller=config)
        rack.until(rack.unfenced)
        if down:
            active = rack.active
            assert active is not None
            rack.stop(next(each for each in rack.controllers if each != active.address))
            rack.run(700)
        for number in range(60):
            nodes = [*rack.controllers.values(), *rack.brokers.values()]
            if any(each.quorum.replica.snapshots.latest_end for each in nodes):
                break
            topics(rack, f"t{number}")
            rack.run(110)
        return len(rack.ledger.entries)

    assert records_before_the_first(down=False) < 40
    assert records_before_the_first(down=True) > 60
