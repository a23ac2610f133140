"""Topics are deleted by the controller of ZooKeeper's time, and made anew under their names (KIP-516)."""

from __future__ import annotations

from uuid import UUID

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import CorruptCheckpoint
from fencepost.impl.log.checkpoints import write_entries
from fencepost.impl.net import SimulatedNetwork
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONTROLLER,
    LEADER_DURING_DELETE,
    NO_TOPIC_ID,
    AlterIsrRequest,
    AlterIsrResponse,
    Envelope,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    Request,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
    UpdateMetadataRequest,
)
from fencepost.impl.zk_controller import CHECKPOINT, Controller, UnknownPartition, UnknownTopic
from fencepost.impl.zk_controller.store import Deleted, read_store

from .controlled import ALL, TP, Broker, Cluster

OTHER = UUID(int=5)


def stops(broker: Broker) -> list[StopReplicaRequest]:
    return [body for body in broker.told if isinstance(body, StopReplicaRequest)]


def later(cluster: Cluster, ms: int = 5_000) -> None:
    """Time passes in which everything arrives, and what nobody has answered is sent again."""
    cluster.net.run(until=cluster.net.clock.now() + ms)


def test_whoever_has_a_replica_is_told_to_remove_it_and_everybody_that_it_is_gone() -> None:
    cluster = Cluster()
    topic = cluster.state.topic_id
    cluster.controller.delete_topic("t")
    later(cluster)
    assert [stops(broker) for broker in cluster.brokers] == [[StopReplicaRequest(1, TP, topic)]] * 3 + [[]]
    gone = UpdateMetadataRequest(1, TP, LEADER_DURING_DELETE, -1, frozenset(), (), frozenset(), topic)
    assert [broker.metadata() for broker in cluster.brokers] == [[gone]] * 4
    assert cluster.controller.partitions == cluster.controller.deleted == {}
    with pytest.raises(UnknownPartition):
        cluster.controller.partition(TP)
    with pytest.raises(UnknownTopic, match="t: there is no such topic"):
        cluster.controller.delete_topic("t")


def test_the_next_topic_of_the_name_is_another_and_begins_anew() -> None:
    cluster = Cluster()
    cluster.controller.elect_leader(TP, 1)
    old = cluster.state
    cluster.controller.delete_topic("t")
    cluster.controller.create_partition(TP, (0, 1, 2))
    new = cluster.state
    assert (new.leader, new.leader_epoch, new.partition_epoch, set(new.isr)) == (0, 0, 1, ALL)
    assert new.topic_id not in (old.topic_id, NO_TOPIC_ID)
    second = cluster.controller.create_partition(TopicPartition("t", 1), (2, 1))
    assert second.topic_id == new.topic_id, "a topic has one id"
    assert cluster.controller.create_partition(TopicPartition("u", 0), (0,)).topic_id != new.topic_id
    cluster.controller.delete_topic("t")
    assert list(cluster.controller.partitions) == [TopicPartition("u", 0)]


def test_nothing_is_said_any_more_of_a_topic_that_is_deleted() -> None:
    """Not even what was not answered."""
    cluster = Cluster()
    cluster.brokers[1].error = None
    cluster.controller.elect_leader(TP, 1)
    cluster.controller.delete_topic("t")
    cluster.net.run(until=lambda: bool(stops(cluster.brokers[1])))
    cluster.brokers[1].told.clear()
    later(cluster)
    assert stops(cluster.brokers[1]) and cluster.brokers[1].leaders() == []
    told = [body.leader for body in cluster.brokers[1].metadata()]
    assert set(told) == {LEADER_DURING_DELETE}


def test_a_broker_that_was_away_is_told_when_it_is_back_by_the_next_controller_too() -> None:
    cluster = Cluster()
    topic = cluster.state.topic_id
    cluster.controller.mark_offline(2)
    later(cluster)
    cluster.controller.delete_topic("t")
    cluster.controller.create_partition(TP, (0, 1, 2))
    later(cluster)
    assert stops(cluster.brokers[2]) == [] and stops(cluster.brokers[0]) != []
    assert cluster.controller.deleted == {Deleted(TP, topic): frozenset({2})}
    cluster.start()
    assert cluster.controller.deleted == {Deleted(TP, topic): frozenset({2})}
    cluster.controller.broker_started(2, 2)
    later(cluster)
    assert stops(cluster.brokers[2]) == [StopReplicaRequest(2, TP, topic)] and len(cluster.brokers[2].leaders()) == 1
    assert cluster.controller.deleted == {}


def test_a_replica_whose_disk_has_failed_is_to_be_removed_still() -> None:
    cluster = Cluster()
    cluster.brokers[0].error = ErrorCode.KAFKA_STORAGE_ERROR
    cluster.controller.delete_topic("t")
    later(cluster)
    assert [set(brokers) for brokers in cluster.controller.deleted.values()] == [{0}]
    assert len(stops(cluster.brokers[0])) > 2
    cluster.brokers[0].error = ErrorCode.INCONSISTENT_TOPIC_ID
    later(cluster)
    assert cluster.controller.deleted == {}, "what it has is of another topic"


class Stray(Broker):
    """A broker with a replica of another topic, until it is told to remove it."""

    def receive(self, envelope: Envelope) -> None:
        body: Request = envelope.body  # type: ignore[assignment]
        has = not stops(self)
        if isinstance(body, LeaderAndIsrRequest) and has:
            self.told.append(body)
            refused = LeaderAndIsrResponse(ErrorCode.INCONSISTENT_TOPIC_ID, OTHER)
            self._transport.send(Envelope(self.address, CONTROLLER, envelope.correlation, refused, BROKER_PRINCIPAL))
            return
        super().receive(envelope)


def test_a_replica_of_a_topic_that_nobody_knows_is_stopped() -> None:
    cluster = Cluster()
    cluster.net.detach(1)
    stray = Stray(1, cluster.net)
    cluster.net.attach(stray)
    cluster.brokers[1] = stray
    cluster.controller.elect_leader(TP, 1)
    later(cluster, 900)
    assert cluster.state.leader == 1 and stops(stray) == [StopReplicaRequest(1, TP, OTHER)]
    later(cluster)
    assert len(stops(stray)) == 1 and len(stray.leaders()) == 2, "and then it is told again"
    assert cluster.controller.deleted == {}


def test_an_alter_isr_of_a_deleted_topic_changes_nothing() -> None:
    cluster = Cluster()
    old = cluster.state

    def ask(topic: UUID) -> AlterIsrResponse:
        body = AlterIsrRequest(0, TP, 0, frozenset((0, 1)), cluster_epoch, topic)
        cluster.net.send(Envelope(3, CONTROLLER, 78, body, BROKER_PRINCIPAL))
        cluster.net.run(until=lambda: bool(cluster.brokers[3].answers))
        return cluster.brokers[3].answers.pop()

    cluster_epoch = old.partition_epoch
    cluster.controller.delete_topic("t")
    assert ask(old.topic_id) == AlterIsrResponse(ErrorCode.UNKNOWN_TOPIC_ID, TP)
    assert ask(NO_TOPIC_ID) == AlterIsrResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TP)
    cluster.controller.create_partition(TP, (0, 1, 2))
    new = cluster.state
    assert new.partition_epoch == cluster_epoch, "nothing else tells them apart"
    assert ask(old.topic_id) == AlterIsrResponse(ErrorCode.UNKNOWN_TOPIC_ID, TP) and cluster.state == new
    assert ask(new.topic_id).error is ErrorCode.NONE and cluster.state.isr == {0, 1}


# -- the checkpoint ---------------------------------------------------------------------------------------------------


def test_partitions_of_before_there_were_ids_get_one_for_each_topic() -> None:
    files = SimulatedFiles(1)
    lines = [f"partition {name} 0 3 2 0,1 0 1" for name in ("t 0", "t 1", "u 0")]
    write_entries(files, CHECKPOINT, ["controller 4", "broker 0 1 online", *lines])
    net = SimulatedNetwork(1)
    found = Controller(net, net.clock.at(CONTROLLER), files).partitions
    ids = [state.topic_id for state in found.values()]
    assert ids[0] == ids[1] != ids[2] and NO_TOPIC_ID not in ids
    assert {key: state.topic_id for key, state in read_store(files, CHECKPOINT).partitions.items()} == {
        key: state.topic_id for key, state in found.items()
    }


@pytest.mark.parametrize(
    "line",
    [
        "partition t 0 0 3 2 0,1 0 1 x",
        f"partition t 0 0 3 2 0,1 0 1 {OTHER} {OTHER}",
        "deleted t 0 x 0,1",
        f"deleted t -1 {OTHER} 0,1",
        f"deleted .. 0 {OTHER} 0,1",
        f"deleted t 0 {OTHER} 0,0",
    ],
)
def test_a_line_that_is_none_is_named(line: str) -> None:
    files = SimulatedFiles(1)
    write_entries(files, CHECKPOINT, ["controller 4", line])
    with pytest.raises(CorruptCheckpoint, match=f"{CHECKPOINT}, line 4"):
        read_store(files, CHECKPOINT)


def test_answers_to_what_is_over_are_ignored() -> None:
    cluster = Cluster()
    cluster.controller.delete_topic("t")
    before = dict(cluster.controller.deleted)
    for error in (ErrorCode.NONE, ErrorCode.INCONSISTENT_TOPIC_ID):
        body = StopReplicaResponse(error)
        cluster.controller.receive(Envelope(0, CONTROLLER, 99, body, BROKER_PRINCIPAL))
    assert cluster.controller.deleted == before
