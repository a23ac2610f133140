"""The controller's rules, each where it accepts and where it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fencepost.impl.files import read_file
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    NO_LEADER,
    AlterIsrResponse,
    LeaderAndIsrRequest,
    OfflineReplicasRequest,
    TopicPartition,
    UpdateMetadataRequest,
)
from fencepost.impl.zk_controller import (
    CHECKPOINT,
    ControllerError,
    ElectionNotNeeded,
    InvalidPartition,
    NotEligible,
    NotInIsr,
    PartitionExists,
    StaleIncarnation,
    UnknownBroker,
    UnknownPartition,
)

from .controlled import TP, Cluster


def refused(cluster: Cluster, kind: type[ControllerError], text: str, call: Callable[[], object]) -> None:
    """The call is refused in one line, and changes nothing: not the state, not the file, and nobody is told."""
    before, data = cluster.summary(), read_file(cluster.files, CHECKPOINT)
    with pytest.raises(kind, match=text) as refusal:
        call()
    where, what = str(refusal.value).split(": ", 1)
    assert where and "; " in what and "\n" not in what
    assert (cluster.summary(), read_file(cluster.files, CHECKPOINT), cluster.net.in_flight()) == (before, data, [])


# -- creation ---------------------------------------------------------------------------------------------------------


def test_a_new_partition_is_led_by_its_first_live_replica_in_epoch_0() -> None:
    cluster = Cluster()
    assert cluster.summary() == (0, 0, {0, 1, 2}, 1)
    cluster.controller.mark_offline(3)
    other = TopicPartition("t", 1)
    state = cluster.controller.create_partition(other, (3, 2, 1))
    assert (state.leader, state.leader_epoch, state.isr, state.offline) == (2, 0, {1, 2}, {3})
    cluster.net.run()
    epochs = [[request.leader_epoch for request in broker.leaders()] for broker in cluster.brokers]
    assert epochs == [[], [0], [0], []]


def test_a_partition_can_wait_for_its_first_leader() -> None:
    """The initial state of the model: no epoch, no request, and every replica in the ISR."""
    cluster = Cluster(elect=False)
    assert cluster.summary() == (NO_LEADER, -1, {0, 1, 2}, 0)
    cluster.controller.elect_leader(TP, 1)
    cluster.net.run()
    assert cluster.summary() == (1, 0, {0, 1, 2}, 1)
    assert [len(broker.leaders()) for broker in cluster.brokers] == [1, 1, 1, 0]


def test_replicas_that_are_offline_leave_the_isr_at_the_first_election() -> None:
    cluster = Cluster()
    create, first, second = cluster.controller.create_partition, TopicPartition("t", 1), TopicPartition("t", 2)
    cluster.controller.mark_offline(3)
    for partition in (first, second):
        assert create(partition, (3, 0, 1), elect=False).isr == {0, 1, 3}
    for state in (cluster.controller.elect_leader(first, 0), cluster.controller.elect_preferred(second)):
        assert (state.leader, state.leader_epoch, state.isr, state.offline) == (0, 0, {0, 1}, {3})


def test_without_live_replicas_a_new_partition_waits_for_one() -> None:
    cluster = Cluster()
    cluster.controller.mark_offline(3)
    other = TopicPartition("t", 1)
    state = cluster.controller.create_partition(other, (3,))
    assert (state.leader, state.leader_epoch, state.isr) == (NO_LEADER, -1, {3})
    cluster.controller.broker_started(3, 2)
    state = cluster.controller.partition(other)
    assert (state.leader, state.leader_epoch, state.isr, state.offline) == (3, 0, {3}, set())


def test_what_is_no_partition_is_not_made() -> None:
    cluster = Cluster()
    create = cluster.controller.create_partition
    refused(cluster, PartitionExists, "t-0: the partition is there", lambda: create(TP, (0,)))
    for name in (TopicPartition("a b", 0), TopicPartition("", 0), TopicPartition("..", 0), TopicPartition("t", -1)):
        refused(cluster, InvalidPartition, "no name of a partition", lambda name=name: create(name, (0,)))  # type: ignore[misc]
    for replicas in ((), (1, 1)):
        refused(cluster, InvalidPartition, "replicas", lambda r=replicas: create(TopicPartition("u", 0), r))  # type: ignore[misc]
    refused(cluster, UnknownBroker, "broker 9: it has never", lambda: create(TopicPartition("u", 0), (0, 9)))
    refused(cluster, UnknownPartition, "u-0", lambda: cluster.controller.partition(TopicPartition("u", 0)))


# -- elections --------------------------------------------------------------------------------------------------------


def test_a_clean_election_needs_a_live_member_of_the_isr_that_does_not_lead() -> None:
    cluster = Cluster()
    elect = cluster.controller.elect_leader
    refused(cluster, ElectionNotNeeded, "replica 0 leads already", lambda: elect(TP, 0))
    elect(TP, 2)
    assert cluster.summary() == (2, 1, {0, 1, 2}, 2)
    cluster.controller.shrink_isr(TP, 1)
    cluster.settle()
    refused(cluster, NotEligible, "replica 1 is outside of the ISR", lambda: elect(TP, 1))
    refused(cluster, NotEligible, "replica 3 is outside of the ISR", lambda: elect(TP, 3))
    refused(cluster, UnknownPartition, "x-1", lambda: elect(TopicPartition("x", 1), 0))
    cluster.controller.shrink_isr(TP, 2)
    cluster.controller.mark_offline(0)
    cluster.settle()
    assert cluster.state.isr == {0}
    refused(cluster, NotEligible, "replica 0 is marked offline", lambda: elect(TP, 0))


def test_an_unclean_election_makes_any_live_replica_the_whole_isr() -> None:
    cluster = Cluster(unclean=True)
    elect = cluster.controller.elect_unclean
    cluster.controller.shrink_isr(TP, 2)
    elect(TP, 2)
    assert cluster.summary() == (2, 2, {2}, 3)
    cluster.controller.mark_offline(0)
    cluster.settle()
    refused(cluster, NotEligible, "broker 3 has no replica", lambda: elect(TP, 3))
    refused(cluster, NotEligible, "replica 0 is marked offline", lambda: elect(TP, 0))


def test_without_the_setting_only_a_member_of_the_isr_is_made_the_whole_of_it() -> None:
    cluster = Cluster()
    elect = cluster.controller.elect_unclean
    cluster.controller.shrink_isr(TP, 2)
    cluster.settle()
    refused(cluster, NotEligible, "outside of the ISR; set unclean.leader.election.enable", lambda: elect(TP, 2))
    elect(TP, 1)  # it holds all that was committed
    assert cluster.summary() == (1, 2, {1}, 3)


def test_the_preferred_leader_is_the_first_live_replica_in_the_isr() -> None:
    cluster = Cluster()
    prefer = cluster.controller.elect_preferred
    prefer(TP)
    assert cluster.summary() == (0, 0, {0, 1, 2}, 1)  # it leads
    cluster.controller.elect_leader(TP, 2)
    prefer(TP)
    assert cluster.summary() == (0, 2, {0, 1, 2}, 3)
    cluster.controller.shrink_isr(TP, 0)
    assert cluster.state.leader == NO_LEADER
    prefer(TP)
    assert cluster.summary() == (1, 4, {1, 2}, 5)


@pytest.mark.parametrize("unclean", [False, True])
def test_without_a_live_member_of_the_isr_only_the_setting_gives_a_leader(unclean: bool) -> None:
    cluster = Cluster(unclean=unclean)
    for broker in (2, 1, 0):
        cluster.controller.mark_offline(broker)
    assert cluster.summary() == (NO_LEADER, 3, {0}, 4)
    cluster.settle()
    cluster.controller.elect_preferred(TP)
    assert cluster.summary() == (NO_LEADER, 3, {0}, 4) and not cluster.net.in_flight()
    cluster.controller.mark_online(1)
    assert cluster.summary() == ((1, 4, {1}, 6) if unclean else (NO_LEADER, 3, {0}, 5))
    cluster.controller.mark_online(0)
    assert cluster.summary() == ((1, 4, {1}, 7) if unclean else (0, 4, {0}, 7))


# -- failures ---------------------------------------------------------------------------------------------------------


def test_a_failed_replica_leaves_the_isr_but_the_last_member_while_it_leads() -> None:
    """As ``controller_shrink_isr`` of the model says, the empty ISR included (DEVIATIONS, S3)."""
    cluster = Cluster()
    shrink = cluster.controller.shrink_isr
    shrink(TP, 2)
    assert cluster.summary() == (0, 1, {0, 1}, 2)
    cluster.settle()
    refused(cluster, NotInIsr, "replica 2 neither leads nor is in the ISR", lambda: shrink(TP, 2))
    shrink(TP, 0)
    assert cluster.summary() == (NO_LEADER, 2, {1}, 3)
    cluster.controller.elect_leader(TP, 1)
    shrink(TP, 1)
    assert cluster.summary() == (NO_LEADER, 4, {1}, 5)
    shrink(TP, 1)
    assert cluster.summary() == (NO_LEADER, 5, set(), 6)


def test_a_failed_broker_is_marked_replaced_and_told_nothing_until_it_is_back() -> None:
    """Fails where marks are not set, where the leader stays, or where the failed broker is told too."""
    cluster = Cluster()
    other = TopicPartition("u", 0)
    cluster.controller.create_partition(other, (1, 0))
    cluster.settle()
    cluster.controller.mark_offline(0)
    cluster.controller.mark_offline(0)
    assert cluster.summary() == (1, 1, {1, 2}, 2) and cluster.state.offline == {0}
    state = cluster.controller.partition(other)
    assert (state.leader, state.leader_epoch, state.isr, state.offline) == (1, 1, {1}, {0})
    cluster.net.run()
    zero, one, two, three = cluster.brokers
    assert zero.told == [] and len(one.leaders()) == 2 and len(two.leaders()) == 1 and len(three.leaders()) == 0
    topic = cluster.state.topic_id
    assert two.leaders() == [LeaderAndIsrRequest(1, TP, 1, 1, frozenset((1, 2)), (0, 1, 2), frozenset((0,)), 2, topic)]
    expected = UpdateMetadataRequest(1, TP, 1, 1, frozenset((1, 2)), (0, 1, 2), frozenset((0,)), topic)
    assert three.metadata()[0] == expected and len(three.metadata()) == 2
    cluster.settle()
    cluster.controller.mark_online(0)
    cluster.net.run()
    assert cluster.state.offline == set() and cluster.state.leader_epoch == 1
    assert [request.leader_epoch for request in zero.leaders()] == [1, 1] and len(zero.metadata()) == 2
    # The epoch is the same, so the leader hears of the mark by itself; the other replica needs not.
    ids = {each: cluster.controller.partition(each).topic_id for each in (TP, other)}
    assert one.marks() == [OfflineReplicasRequest(1, each, frozenset(), 1, 3, ids[each]) for each in (TP, other)]
    assert (one.leaders(), two.leaders(), two.marks()) == ([], [], [])
    refused(cluster, UnknownBroker, "broker 9: it has never started", lambda: cluster.controller.mark_offline(9))


def test_a_broker_that_bounced_unnoticed_leads_again_in_a_new_epoch_only() -> None:
    """KIP-380. Fails where ``broker_started`` only tells, without failing the broker first."""
    cluster = Cluster()
    cluster.controller.broker_started(0, 2)
    assert cluster.summary() == (1, 1, {1, 2}, 3) and cluster.state.offline == set()
    cluster.net.run()
    zero = cluster.brokers[0]
    assert [(request.leader, request.leader_epoch) for request in zero.leaders()] == [(1, 1)]
    cluster.controller.broker_started(2, 2)  # a follower leaves the ISR: its log may be shorter now
    assert cluster.summary() == (1, 2, {1}, 5)
    cluster.settle()
    cluster.controller.broker_started(1, 2)  # the last member leads on, after an epoch without leader
    assert cluster.summary() == (1, 4, {1}, 8)
    cluster.settle()
    cluster.controller.broker_started(1, 2)  # told again, nothing changed
    assert cluster.summary() == (1, 4, {1}, 8)
    cluster.net.run()
    assert [request.leader_epoch for request in cluster.brokers[1].leaders()] == [4]
    assert [len(broker.told) for broker in cluster.brokers] == [0, 2, 0, 0]
    refused(
        cluster, StaleIncarnation, "broker 1: incarnation 1 is over", lambda: cluster.controller.broker_started(1, 1)
    )
    refused(cluster, UnknownBroker, "from 0 on", lambda: cluster.controller.broker_started(-1, 1))


def test_a_last_member_that_bounced_is_not_replaced_uncleanly() -> None:
    cluster = Cluster(unclean=True)
    cluster.controller.shrink_isr(TP, 1)
    cluster.controller.shrink_isr(TP, 2)
    cluster.controller.broker_started(0, 2)
    assert cluster.summary() == (0, 4, {0}, 6)


def test_a_broker_that_was_marked_offline_comes_back_without_another_epoch() -> None:
    cluster = Cluster()
    cluster.controller.mark_offline(0)
    cluster.settle()
    cluster.controller.broker_started(0, 2)
    assert cluster.summary() == (1, 1, {1, 2}, 3)
    cluster.net.run()
    assert [request.leader_epoch for request in cluster.brokers[0].leaders()] == [1]


def test_a_replica_whose_log_failed_is_offline_until_its_broker_restarts() -> None:
    """KIP-112: the answer to LeaderAndIsr says so."""
    cluster = Cluster()
    cluster.brokers[0].error = ErrorCode.KAFKA_STORAGE_ERROR
    cluster.controller.elect_leader(TP, 1)
    cluster.controller.elect_leader(TP, 0)
    cluster.net.run(until=100)
    assert cluster.summary() == (1, 3, {1, 2}, 4) and cluster.state.offline == {0}
    assert cluster.controller.brokers[0].online
    cluster.brokers[0].error = ErrorCode.NONE
    cluster.controller.broker_started(0, 2)
    assert cluster.summary() == (1, 3, {1, 2}, 5) and cluster.state.offline == set()


# -- AlterIsr ---------------------------------------------------------------------------------------------------------


def test_a_leader_alters_the_isr_within_its_epoch() -> None:
    """Fails where the leader epoch rises, where the partition epoch stays, or where nothing is stored."""
    cluster = Cluster()
    answer = cluster.alter((0, 1))
    assert answer == AlterIsrResponse(ErrorCode.NONE, TP, 0, 0, frozenset((0, 1)), 2)
    assert cluster.summary() == (0, 0, {0, 1}, 2)
    cluster.net.run()
    assert all(not broker.leaders() and len(broker.metadata()) == 1 for broker in cluster.brokers)
    assert cluster.start().partition(TP).isr == {0, 1}
    assert cluster.alter((0, 1, 2)).error is ErrorCode.NONE and cluster.summary() == (0, 0, {0, 1, 2}, 3)


def test_a_repeated_alter_isr_is_answered_with_what_holds() -> None:
    cluster = Cluster()
    cluster.alter((0, 1))
    for version in (0, 1):
        answer = cluster.alter((0, 1), version=version)
        assert answer == AlterIsrResponse(ErrorCode.NONE, TP, 0, 0, frozenset((0, 1)), 2)
    assert cluster.summary() == (0, 0, {0, 1}, 2)


def test_asking_for_the_isr_that_holds_makes_earlier_proposals_void() -> None:
    """Fails where the partition epoch stays: a late copy of the proposal would be taken up after all."""
    cluster = Cluster()
    cluster.alter((0, 1))
    assert cluster.alter((0, 1)) == AlterIsrResponse(ErrorCode.NONE, TP, 0, 0, frozenset((0, 1)), 3)
    assert cluster.alter((0, 1, 2), version=2).error is ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.summary() == (0, 0, {0, 1}, 3)


@pytest.mark.parametrize(
    ("error", "wish"),
    [
        (ErrorCode.FENCED_REPLICA, {"isr": (0, 1), "epoch": 2}),
        (ErrorCode.FENCED_REPLICA, {"isr": (0, 1), "epoch": -1}),
        (ErrorCode.FENCED_REPLICA, {"isr": (0, 1), "broker": 1}),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, {"isr": (0, 1), "epoch": 4}),
        (ErrorCode.INVALID_UPDATE_VERSION, {"isr": (0, 1), "version": 3}),
        (ErrorCode.INVALID_UPDATE_VERSION, {"isr": (0, 1), "version": 5}),
        (ErrorCode.INVALID_UPDATE_VERSION, {"isr": (0, 2), "version": 5}),
        (ErrorCode.INVALID_REQUEST, {"isr": (1, 2)}),
        (ErrorCode.INVALID_REQUEST, {"isr": ()}),
        (ErrorCode.INVALID_REQUEST, {"isr": (0, 3)}),
        (ErrorCode.INELIGIBLE_REPLICA, {"isr": (0, 1, 2)}),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {"isr": (0, 1), "partition": TopicPartition("t", 9)}),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, {"isr": (0, 2), "principal": "User:alice"}),
    ],
)
def test_what_no_leader_may_ask_is_refused_and_changes_nothing(error: ErrorCode, wish: dict[str, object]) -> None:
    """Leader 0 in epoch 3 with ISR {0, 2}, partition epoch 4; replica 1 is marked offline."""
    cluster = Cluster()
    cluster.controller.elect_leader(TP, 2)
    cluster.controller.mark_offline(1)
    cluster.controller.elect_leader(TP, 0)
    cluster.settle()
    before = cluster.controller.partition(TP)
    assert (before.leader, before.leader_epoch, before.isr, before.partition_epoch) == (0, 3, {0, 2}, 4)
    answer = cluster.alter(**wish)  # type: ignore[arg-type]
    assert answer.error is error and cluster.state == before
    assert all(broker.told == [] for broker in cluster.brokers)


def test_without_a_leader_nobody_alters_the_isr() -> None:
    cluster = Cluster()
    cluster.controller.shrink_isr(TP, 0)
    for broker in (0, 1, NO_LEADER):
        assert cluster.alter((1,), broker=broker).error is ErrorCode.FENCED_REPLICA
    assert cluster.summary() == (NO_LEADER, 1, {1, 2}, 2)


def test_a_zombie_may_not_join_the_isr_until_it_is_back() -> None:
    """KIP-320, "Leader Fetch Handling". Fails where the marks are not looked at."""
    cluster = Cluster()
    cluster.controller.mark_offline(2)
    assert cluster.alter((0, 1, 2)).error is ErrorCode.INELIGIBLE_REPLICA
    assert cluster.summary() == (0, 1, {0, 1}, 2)
    cluster.controller.mark_online(2)
    assert cluster.alter((0, 1, 2)).error is ErrorCode.NONE
    assert cluster.summary() == (0, 1, {0, 1, 2}, 4)
