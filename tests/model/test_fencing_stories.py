"""The situations that KIP-320 tells of, walked by hand through the reference, the refusal named at each fence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fencepost.model.core.ground import Params, State, System
from fencepost.model.interpret.reference import Reference

At = Callable[..., System]


class Walk:
    """A run told step by step: ``walk("follower_fetch", leader=0, follower=1)``."""

    def __init__(self, system: System) -> None:
        self.reference = Reference(system)
        self.state: State = system.initial

    def __call__(self, action: str, **params: int) -> None:
        after = self.reference.step(self.state, action, tuple(params.items()))
        assert after is not None, f"{action} is refused by {self.refused_by(action, **params)}"
        self.state = after

    def refused_by(self, action: str, **params: int) -> str | None:
        order: Params = tuple(params.items())
        refused = self.reference.refused_by(self.state, action, order)
        assert (self.reference.step(self.state, action, order) is None) == (refused is not None)
        return refused

    def __getitem__(self, cell: str) -> int:
        return self.state[self.reference.system.layout.by_name[cell]]

    def log(self, replica: int) -> list[tuple[int, int]]:
        """The (record, leader epoch) pairs of a log."""
        return [
            (self[f"record_id[{replica}][{o}]"], self[f"record_epoch[{replica}][{o}]"])
            for o in range(self[f"leo[{replica}]"])
        ]

    @property
    def broken(self) -> list[str]:
        return self.reference.broken(self.state)

    def starts(self, leader: int, *followers: int, epoch: int = 0) -> None:
        """The controller elects a leader, and these replicas take up the request."""
        self("controller_elect_leader", new_leader=leader)
        self.take_up(leader, *followers, epoch=epoch)

    def take_up(self, leader: int, *followers: int, epoch: int) -> None:
        self("become_leader", leader=leader, epoch=epoch)
        for follower in followers:
            self("become_follower", leader=leader, follower=follower, epoch=epoch)


@pytest.fixture
def walk(at: At) -> Callable[..., Walk]:
    """A walk of a variant at 3/2/2/2, less the guards named."""
    return lambda variant="kip-320", *dropped: Walk(at("3/2/2/2", variant, *dropped))


MakeWalk = Callable[..., Walk]


def zombie_whose_leader_comes_back(walk: Walk) -> None:
    """Replica 2 hears nothing after epoch 0; leadership moves to 1 and back to 0, whom the zombie still follows."""
    walk.starts(0, 1, 2)
    walk.starts(1, 0, epoch=1)
    walk.starts(0, 1, epoch=2)
    walk("leader_write", leader=0)
    assert (walk["leader_epoch[2]"], walk["leader[2]"], walk["leader_epoch[0]"]) == (0, 0, 2)


def test_a_zombie_fetches_no_more_once_its_leader_has_moved_on(walk: MakeWalk) -> None:
    """KAFKA-6880: "the replica was still able to make progress … as the assigned leader … became accurate again"."""
    fenced = walk()
    zombie_whose_leader_comes_back(fenced)
    assert fenced.refused_by("follower_fetch", leader=0, follower=2) == "epoch_not_fenced"
    assert fenced.refused_by("follower_fetch", leader=0, follower=1) is None
    for before in ("truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try"):
        unfenced = walk(before)
        zombie_whose_leader_comes_back(unfenced)
        unfenced("follower_fetch", leader=0, follower=2)
        assert unfenced.log(2) == [(0, 2)], "a record of an epoch that the zombie never heard of"
        assert unfenced["leader_epoch[2]"] == 0


def controller_takes_the_zombie_out(walk: Walk) -> None:
    """Replica 2 is offline to the controller, which starts epoch 1 without it; the zombie does not hear of that."""
    walk.starts(0, 1, 2)
    walk("controller_shrink_isr", replica=2)
    walk.take_up(0, 1, epoch=1)
    assert (walk["quorum_isr"], walk["isr[0]"], walk["quorum_leader"]) == (0b011, 0b011, 0)


def test_a_replica_that_the_controller_took_offline_does_not_rejoin_the_isr(walk: MakeWalk) -> None:
    """KIP-320: "not permitted to add a replica to the ISR if it is marked as offline by the controller"."""
    fenced = walk()
    controller_takes_the_zombie_out(fenced)
    assert fenced.refused_by("leader_expand_isr", leader=0, follower=2) == "epoch_not_fenced"
    # Once it hears of the new epoch, it may.
    fenced("become_follower", leader=0, follower=2, epoch=1)
    fenced("leader_expand_isr", leader=0, follower=2)
    assert fenced["quorum_isr"] == 0b111

    unfenced = walk("kip-279")
    controller_takes_the_zombie_out(unfenced)
    unfenced("leader_expand_isr", leader=0, follower=2)
    assert (unfenced["quorum_isr"], unfenced["leader_epoch[2]"]) == (0b111, 0), "the zombie counts for acks=all"


def follower_hears_first(walk: Walk) -> None:
    """Leader 0 is still in epoch 0 when follower 2 hears that 0 leads in epoch 2."""
    walk.starts(0, 1, 2)
    walk("leader_write", leader=0)
    walk("controller_elect_leader", new_leader=1)
    walk("controller_elect_leader", new_leader=0)
    assert (walk["leader_epoch[0]"], walk["request_leader[2]"]) == (0, 0)


def test_a_follower_with_a_newer_epoch_than_its_leader_waits(walk: MakeWalk) -> None:
    """UNKNOWN_LEADER_EPOCH: the leader has not heard of its own election."""
    fenced = walk()
    follower_hears_first(fenced)
    assert fenced.refused_by("become_follower", leader=0, follower=2, epoch=2) == "leader_epoch_matches"
    fenced("become_leader", leader=0, epoch=2)
    fenced("become_follower", leader=0, follower=2, epoch=2)
    assert fenced["leader_epoch[2]"] == 2

    # Were it to become a follower all the same, its fetch would be refused.
    half = walk("kip-320", "become_follower.leader_epoch_matches")
    follower_hears_first(half)
    half("become_follower", leader=0, follower=2, epoch=2)
    assert half.refused_by("follower_fetch", leader=0, follower=2) == "epoch_not_fenced"

    unfenced = walk("kip-279")
    follower_hears_first(unfenced)
    unfenced("become_follower", leader=0, follower=2, epoch=2)
    unfenced("follower_fetch", leader=0, follower=2)
    assert (unfenced["leader_epoch[2]"], unfenced["leader_epoch[0]"], unfenced.log(2)) == (2, 0, [(0, 0)])


def test_a_leader_that_has_moved_on_answers_no_truncation_for_an_old_request(walk: MakeWalk) -> None:
    """FENCED_LEADER_EPOCH: the request of epoch 0 reaches replica 2 when its leader is in epoch 2 already."""

    def late(walk: Walk) -> None:
        walk.starts(0, 1)
        walk("controller_elect_leader", new_leader=1)
        walk.starts(0, epoch=2)

    fenced = walk()
    late(fenced)
    assert fenced.refused_by("become_follower", leader=0, follower=2, epoch=0) == "leader_epoch_matches"
    assert fenced.refused_by("become_follower", leader=0, follower=2, epoch=2) is None
    # Replica 1 never took up the request of epoch 1 that names it: it leads nobody.
    assert fenced.refused_by("become_follower", leader=1, follower=2, epoch=1) == "presumes_leadership"

    unfenced = walk("kip-279")
    late(unfenced)
    unfenced("become_follower", leader=0, follower=2, epoch=0)
    assert unfenced["leader_epoch[2]"] == 0


def test_a_stale_leader_is_no_one_to_truncate_against(walk: MakeWalk) -> None:
    """Replica 0 still presumes to lead in epoch 0, with a record that nobody else has; 2 truncates against 1 alone."""

    def two_leaders(walk: Walk) -> None:
        walk.starts(0, 1, 2)
        walk("leader_write", leader=0)
        walk.starts(1, epoch=1)
        walk("leader_write", leader=1)

    fenced = walk()
    two_leaders(fenced)
    assert fenced["leader[0]"] == 0 and fenced["leader[1]"] == 1, "two replicas presume leadership"
    assert fenced.refused_by("become_follower", leader=0, follower=2, epoch=1) == "names_leader"
    assert fenced.refused_by("become_follower", leader=0, follower=2, epoch=0) == "epoch_newer"
    fenced("follower_fetch", leader=0, follower=2)
    fenced("become_follower", leader=1, follower=2, epoch=1)
    assert fenced.log(2) == [], "the zombie leader's record is cut off"
    assert fenced.refused_by("follower_fetch", leader=0, follower=2) == "follows_leader"
    fenced("follower_fetch", leader=1, follower=2)
    assert fenced.log(2) == fenced.log(1) == [(1, 1)]
    # The deposed leader joins in turn, and its record goes the same way.
    fenced("become_follower", leader=1, follower=0, epoch=1)
    assert fenced.log(0) == [] and fenced.broken == []


def new_leader_behind_its_predecessor(walk: Walk) -> None:
    """Record 0 is committed by 0 with the ISR {0, 1}; then 1 leads, and knows a high watermark of 0 only."""
    walk.starts(0, 1, 2)
    walk("leader_write", leader=0)
    walk("follower_fetch", leader=0, follower=1)
    walk("leader_shrink_isr", leader=0, follower=2)
    walk("leader_inc_high_watermark", leader=0)
    walk("controller_elect_leader", new_leader=1)
    walk.take_up(1, 2, epoch=1)
    assert (walk["hw[0]"], walk["hw[1]"], walk["leo[2]"], walk["quorum_isr"]) == (1, 0, 0, 0b011)
    assert walk.broken == []


def test_the_isr_grows_only_when_the_high_watermark_has_reached_the_leaders_epoch(walk: MakeWalk) -> None:
    """KAFKA-7128: before that the new leader does not know what its predecessor committed."""
    fenced = walk()
    new_leader_behind_its_predecessor(fenced)
    assert fenced.refused_by("leader_expand_isr", leader=1, follower=2) == "hw_reached_epoch"

    for unguarded in (walk("kip-320", "leader_expand_isr.hw_reached_epoch"), walk("kip-279")):
        new_leader_behind_its_predecessor(unguarded)
        unguarded("leader_expand_isr", leader=1, follower=2)
        assert unguarded["quorum_isr"] == 0b111 and unguarded.log(2) == []
        assert "strong_isr" in unguarded.broken, "the committed record is not on every member of the ISR"

    # The old leader follows; with its acknowledgement the high watermark reaches the epoch, and 2 may join.
    fenced("become_follower", leader=1, follower=0, epoch=1)
    fenced("leader_inc_high_watermark", leader=1)
    assert fenced.refused_by("leader_expand_isr", leader=1, follower=2) == "reached_high_watermark"
    fenced("follower_fetch", leader=1, follower=2)
    fenced("leader_expand_isr", leader=1, follower=2)
    assert fenced["quorum_isr"] == 0b111 and fenced.broken == []


def committed_record_whose_commit_the_follower_has_not_heard_of(walk: Walk) -> None:
    """Replica 1 has record 0, and the leader commits it; 1 still has high watermark 0 when it joins epoch 2."""
    walk.starts(0, 1, 2)
    walk("leader_write", leader=0)
    walk("follower_fetch", leader=0, follower=1)
    walk("follower_fetch", leader=0, follower=2)
    walk("leader_inc_high_watermark", leader=0)
    assert (walk["hw[0]"], walk["hw[1]"], walk.log(1)) == (1, 0, [(0, 0)])
    walk("controller_elect_leader", new_leader=1)
    walk.starts(0, 1, epoch=2)


@pytest.mark.parametrize("variant", ["kip-101", "kip-279", "kip-320-first-try", "kip-320"])
def test_truncation_by_epoch_keeps_what_truncation_to_the_high_watermark_loses(walk: MakeWalk, variant: str) -> None:
    """KIP-101, "High Watermark Truncation followed by Immediate Leader Election"."""
    old = walk("truncate-to-hw")
    committed_record_whose_commit_the_follower_has_not_heard_of(old)
    assert old.log(1) == []
    assert old.broken == ["weak_isr", "strong_isr"]

    new = walk(variant)
    committed_record_whose_commit_the_follower_has_not_heard_of(new)
    assert new.log(1) == [(0, 0)]
    assert new.broken == []


def test_a_whole_lineage_is_compared_since_kip_279(walk: MakeWalk) -> None:
    """Two unheard-of epochs in a row: the follower's last epoch is not in the leader's log at all (KIP-279).

    Replica 2 holds record 1 of epoch 1, which only leader 1 wrote; leader 0 holds record 0 of epoch 0 at that offset.
    """

    def fast_failover(walk: Walk) -> None:
        walk.starts(0, 1, 2)
        walk("leader_write", leader=0)
        walk.starts(1, 2, epoch=1)
        walk("leader_write", leader=1)
        walk("follower_fetch", leader=1, follower=2)
        assert (walk.log(0), walk.log(2)) == ([(0, 0)], [(1, 1)])
        walk.starts(0, epoch=2)

    fenced = walk()
    fast_failover(fenced)
    fenced("become_follower", leader=0, follower=2, epoch=2)
    assert fenced.log(2) == []
    fenced("follower_fetch", leader=0, follower=2)
    assert fenced.log(2) == fenced.log(0)

    # By KIP-101 alone no epoch of the leader is above 1, so the follower goes back to its high watermark: luck.
    lookup = walk("kip-101")
    fast_failover(lookup)
    lookup("become_follower", leader=0, follower=2, epoch=2)
    assert lookup["leo[2]"] == lookup["hw[2]"] == 0

    # The first try does not truncate when it joins: the fetch is refused, and then it truncates.
    tried = walk("kip-320-first-try")
    fast_failover(tried)
    tried("become_follower", leader=0, follower=2, epoch=2)
    assert tried.log(2) == [(1, 1)]
    assert tried.refused_by("follower_fetch", leader=0, follower=2) == "previous_epoch_matches"
    tried("follower_truncate", leader=0, follower=2)
    assert tried.log(2) == []
    assert tried.refused_by("follower_truncate", leader=0, follower=2) == "diverges"


def test_a_zombie_leader_commits_nothing_that_its_followers_have_left(walk: MakeWalk) -> None:
    """The followers acknowledge in the new epoch; the zombie leader's high watermark stands still, until it joins."""
    fenced = walk()
    fenced.starts(0, 1, 2)
    fenced("leader_write", leader=0)
    fenced("follower_fetch", leader=0, follower=1)
    fenced("follower_fetch", leader=0, follower=2)
    fenced.starts(1, 2, epoch=1)
    assert fenced["leader[0]"] == 0
    assert fenced.refused_by("leader_inc_high_watermark", leader=0) == "isr_acknowledges"
    assert fenced.refused_by("leader_shrink_isr", leader=0, follower=1) == "true_leader"
    assert fenced.refused_by("leader_inc_high_watermark", leader=1) == "isr_acknowledges"
    fenced("leader_write", leader=0)
    assert fenced.refused_by("leader_write", leader=0) == "record_available"
    fenced("become_follower", leader=1, follower=0, epoch=1)
    assert fenced.log(0) == fenced.log(1) == [(0, 0)]
    fenced("leader_inc_high_watermark", leader=1)
    assert fenced["hw[1]"] == 1 and fenced.broken == []
