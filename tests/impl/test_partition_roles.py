"""LeaderAndIsr: what a replica takes up, what it refuses, and what it is after a restart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.impl.files import read_file
from fencepost.impl.replica import Role
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    NO_LEADER,
    OfflineReplicasRequest,
    TopicPartition,
)

from .brokers import TP, Cluster


def test_three_replicas_commit() -> None:
    cluster = Cluster()
    cluster.elect(0, 0)
    assert cluster.produce(0, b"a").error is ErrorCode.NONE
    assert cluster.produce(0, b"b", acks=-1) is None
    produce = cluster.last
    assert cluster.state(0).high_watermark == 0
    cluster.fetch_all(1, 2)
    assert [cluster.values(node) for node in range(3)] == [b"ab"] * 3
    assert [cluster.state(node).high_watermark for node in range(3)] == [2, 2, 2]
    answer: Any = cluster.answer_to(produce)
    assert answer.error is ErrorCode.NONE and answer.base_offset == 1


def test_a_new_leader_begins_its_epoch_and_knows_nobodys_progress() -> None:
    cluster = Cluster()
    cluster.elect(0, 3)
    cluster.produce(0, b"a")
    cluster.fetch_all(1, 2)
    assert cluster.tell(1, cluster.request(1, 5)) is ErrorCode.NONE
    state = cluster.state(1)
    assert state.role is Role.LEADER and state.leader == 1 and state.leader_epoch == 5
    assert state.epochs == ((3, 0), (5, 1)) and state.high_watermark == 1
    assert state.progress == ((0, -1), (2, -1)) and state.partition_epoch == 50


def test_the_same_leader_in_a_newer_epoch_begins_anew_and_keeps_what_waits() -> None:
    cluster = Cluster()
    cluster.elect(0, 0)
    assert cluster.produce(0, b"a", acks=-1) is None
    produce = cluster.last
    cluster.exchange(1)  # it now holds the record, and has not said so
    cluster.elect(0, 1, [0, 1])
    assert cluster.state(0).progress == ((1, -1), (2, -1)) and cluster.state(0).waiting == 1
    assert ("produce", TP) in cluster.brokers[0].timers()
    cluster.exchange(1)
    answer: Any = cluster.answer_to(produce)
    assert answer.error is ErrorCode.NONE and answer.base_offset == 0
    assert ("produce", TP) not in cluster.brokers[0].timers()


def test_a_follower_truncates_before_it_fetches() -> None:
    cluster = Cluster()
    cluster.tell(0, cluster.request(0, 0))
    cluster.tell(1, cluster.request(0, 0))
    assert cluster.state(1).role is Role.TRUNCATING
    assert type(cluster.exchange(1)).__name__ == "OffsetsForLeaderEpochResponse"
    assert cluster.state(1).role is Role.FOLLOWER
    assert type(cluster.exchange(1)).__name__ == "FetchResponse"


@pytest.mark.parametrize("leads", [True, False])
def test_what_is_in_force_already_changes_nothing(leads: bool) -> None:
    cluster = Cluster()
    cluster.elect(0, 2)
    cluster.produce(0, b"a")
    cluster.exchange(1)
    node = 0 if leads else 1
    before = cluster.snapshot(node)
    assert cluster.tell(node, cluster.request(0, 2)) is ErrorCode.NONE
    assert cluster.tell(node, cluster.request(0, 2, [0], partition_epoch=3)) is ErrorCode.NONE
    assert cluster.snapshot(node) == before


@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize(
    ("leader", "epoch", "controller_epoch", "error"),
    [
        (0, 1, 1, ErrorCode.FENCED_REPLICA),
        (1, 1, 1, ErrorCode.FENCED_REPLICA),
        (NO_LEADER, 1, 1, ErrorCode.FENCED_REPLICA),
        (1, 2, 1, ErrorCode.FENCED_REPLICA),
        (2, 2, 1, ErrorCode.FENCED_REPLICA),
        (1, 3, 0, ErrorCode.STALE_CONTROLLER_EPOCH),
        (NO_LEADER, 3, 1, ErrorCode.NONE),
    ],
)
def test_what_is_not_taken_up(node: int, leader: int, epoch: int, controller_epoch: int, error: ErrorCode) -> None:
    """An older epoch, another leader in the same one, an older controller, nobody at all."""
    cluster = Cluster()
    cluster.elect(0, 2)
    cluster.produce(0, b"a")
    before = cluster.snapshot(node)
    request = cluster.request(leader, epoch, controller_epoch=controller_epoch)
    assert cluster.tell(node, request) is error
    assert cluster.snapshot(node) == before


BAD: list[dict[str, Any]] = [
    {"leader_epoch": -1},
    {"leader_epoch": 1 << 31},
    {"leader_epoch": 9.0},
    {"leader_epoch": None},
    {"controller_epoch": -1},
    {"partition_epoch": -1},
    {"leader": 3},
    {"leader": -2},
    {"leader": 1, "isr": frozenset({0, 2})},
    {"isr": frozenset({0, 1, 7})},
    {"isr": {0, 1}},
    {"replicas": (1, 2), "isr": frozenset({1})},
    {"replicas": (0, 1, 1)},
    {"replicas": (0, 1, -2)},
    {"offline": None},
    {"partition": TopicPartition("../orders", 0)},
    {"partition": TopicPartition("orders", -1)},
    {"partition": TopicPartition("orders", 1 << 31)},
    {"partition": ("orders", 0)},
    {"partition": TopicPartition(None, 0)},  # type: ignore[arg-type]
    {"partition": TopicPartition([], 0)},  # type: ignore[arg-type]
]


@pytest.mark.parametrize("changes", BAD, ids=str)
def test_a_malformed_request_changes_nothing(changes: dict[str, Any]) -> None:
    cluster = Cluster()
    cluster.elect(1, 2)
    before = cluster.snapshot(0)
    assert cluster.tell(0, replace(cluster.request(1, 9), **changes)) is ErrorCode.INVALID_REQUEST
    assert cluster.snapshot(0) == before


def test_a_new_controller_is_followed_from_then_on() -> None:
    cluster = Cluster()
    cluster.elect(0, 0)
    assert cluster.tell(0, cluster.request(0, 1, controller_epoch=7)) is ErrorCode.NONE
    assert cluster.tell(0, cluster.request(0, 2, controller_epoch=6)) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert cluster.ask(0, OfflineReplicasRequest(6, TP, frozenset(), 1, 11)).error is ErrorCode.STALE_CONTROLLER_EPOCH
    assert cluster.state(0).leader_epoch == 1


def test_a_leader_that_follows_answers_what_waited() -> None:
    cluster = Cluster()
    cluster.elect(0, 0)
    assert cluster.produce(0, b"a", acks=-1) is None
    produce = cluster.last
    cluster.tell(0, cluster.request(1, 1))
    answer: Any = cluster.answer_to(produce)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER and answer.base_offset == -1
    assert cluster.state(0).waiting == 0 and ("isr", TP) not in cluster.brokers[0].timers()


def test_a_later_isr_of_the_same_leader_epoch_is_taken_up() -> None:
    """The answer to an AlterIsr was lost, and the controller tells of it by a LeaderAndIsr."""
    cluster = Cluster()
    cluster.elect(0, 2, [0, 1, 2])
    cluster.produce(0, b"a")
    cluster.fetch_all(1)
    assert cluster.state(0).high_watermark == 0
    later = cluster.request(0, 2, [0, 1], partition_epoch=21, offline=frozenset({2}))
    assert cluster.tell(0, later) is ErrorCode.NONE
    state = cluster.state(0)
    assert state.isr == {0, 1} and state.offline == {2} and state.partition_epoch == 21
    assert state.high_watermark == 1 and state.progress == ((1, 1), (2, -1))
    assert state.epochs == ((2, 0),)


# -- restarts ---------------------------------------------------------------------------------------------------------


def epoch_file(cluster: Cluster, node: int) -> bytes:
    return read_file(cluster.disks[node], "leader-epoch-seen-checkpoint")


def test_the_epoch_is_on_disk_before_the_replica_acts_in_it() -> None:
    """Each order in which the disk may be stopped: nothing is sent, and no role is had, before the epoch is synced."""
    cluster = Cluster()
    cluster.elect(0, 0)
    request = cluster.request(1, 4)
    seen: list[tuple[str, Role, bool]] = []

    def hook(operation: str, path: str) -> None:
        seen.append((f"{operation} {path}", cluster.state(1).role, cluster.nothing_sent(1)))

    cluster.disks[1].hook = hook
    cluster.tell(1, request)
    cluster.disks[1].hook = None
    done = next(n for n, (what, _, _) in enumerate(seen) if what == "fsync_dir ")
    assert [what for what, _, _ in seen[: done + 1]][-2:] == ["rename leader-epoch-seen-checkpoint.tmp", "fsync_dir "]
    assert all(role is Role.FOLLOWER and quiet for _, role, quiet in seen[: done + 1])
    assert epoch_file(cluster, 1) == b"0\n1\norders 0 4\n"


@pytest.mark.parametrize("seed", range(8))
def test_a_restarted_replica_knows_its_epoch_and_has_no_role(seed: int) -> None:
    cluster = Cluster()
    cluster.elect(0, 2)
    cluster.produce(0, b"a")
    cluster.fetch_all(1, 2)
    cluster.tell(1, cluster.request(2, 5))
    broker = cluster.crash(1, seed)
    state = broker.state(TP)
    assert (state.role, state.leader_epoch, state.leader) == (Role.NONE, 5, NO_LEADER)
    assert state.end == 1 and state.isr == frozenset() and state.progress == ()
    before = cluster.snapshot(1)
    assert cluster.tell(1, cluster.request(1, 4)) is ErrorCode.FENCED_REPLICA
    assert cluster.tell(1, cluster.request(2, 4)) is ErrorCode.FENCED_REPLICA
    assert cluster.tell(1, cluster.request(1, 5)) is ErrorCode.FENCED_REPLICA, "it may have led in this epoch"
    assert cluster.snapshot(1) == before
    assert cluster.produce(1, b"b").error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_restarted_replica_follows_in_the_same_epoch_and_leads_in_a_newer() -> None:
    cluster = Cluster()
    cluster.elect(0, 2)
    cluster.produce(0, b"a")
    cluster.fetch_all(1, 2)
    cluster.crash(1)
    assert cluster.tell(1, cluster.request(0, 2)) is ErrorCode.NONE
    assert cluster.state(1).role is Role.TRUNCATING
    cluster.truncate(1)
    cluster.fetch_all(1)
    assert cluster.state(1).high_watermark == 1 and cluster.values(1) == b"a"
    cluster.crash(0)
    assert cluster.tell(0, cluster.request(0, 2)) is ErrorCode.FENCED_REPLICA
    assert cluster.tell(0, cluster.request(0, 3)) is ErrorCode.NONE
    assert cluster.state(0).role is Role.LEADER


def test_without_the_file_the_epoch_is_that_of_the_log() -> None:
    cluster = Cluster()
    cluster.elect(0, 2)
    cluster.produce(0, b"a")
    cluster.network.detach(0)
    cluster.disks[0].remove("leader-epoch-seen-checkpoint")
    cluster.start(0)
    assert cluster.state(0).leader_epoch == 2
    assert cluster.tell(0, cluster.request(1, 1)) is ErrorCode.FENCED_REPLICA


def test_high_watermarks_are_stored_by_a_timer_and_never_above_what_is_there() -> None:
    cluster = Cluster(1)
    cluster.elect(0, 0)
    cluster.produce(0, b"a")
    assert cluster.state(0).high_watermark == 1
    assert cluster.crash(0).state(TP).high_watermark == 0
    cluster.elect(0, 1)
    assert cluster.state(0).high_watermark == 1, "alone in the ISR it needs nobody"
    cluster.brokers[0].fire(("high-watermarks",))
    assert read_file(cluster.disks[0], "replication-offset-checkpoint") == b"0\n1\norders 0 1\n"
    assert cluster.crash(0).state(TP).high_watermark == 1
    cluster.network.detach(0)
    cluster.disks[0].remove("replication-offset-checkpoint")
    file = cluster.disks[0].open("replication-offset-checkpoint", create=True)
    file.append(b"0\n1\norders 0 77\n")
    assert cluster.start(0).state(TP).high_watermark == 1
    assert read_file(cluster.disks[0], "replication-offset-checkpoint") == b"0\n1\norders 0 1\n"
