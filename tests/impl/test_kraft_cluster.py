"""Three controllers and three brokers: topics, fencing, what followers ask, catching up, real files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from fencepost.impl.files import DiskFiles, SimulatedFiles
from fencepost.impl.log import Record
from fencepost.impl.log.batch import encode_batch
from fencepost.impl.log.topic_id import PARTITION_METADATA, read_topic_id
from fencepost.impl.metadata import changes, decode
from fencepost.impl.replica import Role
from fencepost.impl.wire.controller import (
    BrokerHeartbeatRequest,
    ConfigChange,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    ReplicaRequest,
)
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    ProduceRequest,
    TopicPartition,
)

from .kraft_cluster import T0, held, produce, settled, state, topics
from .kraft_rack import BROKERS, CONTROLLER, CONTROLLERS, Rack

# -- topics -----------------------------------------------------------------------------------------------------------


def test_a_topic_is_led_and_followed_and_takes_records() -> None:
    rack = settled()
    topics(rack, "t", partitions=3)
    rack.until(rack.even)
    for number in range(3):
        partition = T0._replace(partition=number)
        roles = {broker: rack.brokers[broker].broker.partitions[partition].role for broker in BROKERS}
        leader = state(rack, partition).leader
        assert roles[leader] is Role.LEADER and list(roles.values()).count(Role.LEADER) == 1
    produce(rack, [b"a", b"b"])
    rack.run(200)
    assert [held(rack, broker) for broker in BROKERS] == [[b"a", b"b"]] * 3
    number = rack.client.ask(0, MetadataRequest(T0))
    rack.run(20)
    assert rack.client.answers[number].leader == state(rack).leader


def test_a_deleted_topic_is_gone_from_every_disk_and_one_of_its_name_is_another() -> None:
    rack = settled()
    topics(rack, "t", "u")
    produce(rack, [b"a"])
    assert rack.ask(DeleteTopicsRequest("t")).error is ErrorCode.NONE
    rack.until(rack.even)
    for broker in rack.brokers.values():
        assert list(broker.broker.partitions) == [TopicPartition("u", 0)]
        assert not rack.disks[broker.address][0].exists("t-0")
        assert T0 not in broker.broker.metadata
    (second,) = topics(rack, "t")
    produce(rack, [b"b"])
    rack.run(100)
    assert [held(rack, broker) for broker in BROKERS] == [[b"b"]] * 3
    assert {read_topic_id(rack.disks[broker][0], str(T0)) for broker in BROKERS} == {second}


def test_a_broker_that_was_away_deletes_what_is_of_another_topic() -> None:
    rack = settled()
    topics(rack, "t", "gone")
    produce(rack, [b"old"])
    rack.stop(2)
    rack.until(lambda: not rack.ledger.image.alive(2))
    for name in ("t", "gone"):
        rack.ask(DeleteTopicsRequest(name))
    rack.ask(CreateTopicsRequest("t", assignments=((0, 1, 2),)))
    produce(rack, [b"new"])
    rack.start(2)
    rack.until(lambda: rack.unfenced() and rack.even() and 2 in state(rack).isr)
    assert held(rack, 2) == [b"new"] and not rack.disks[2][0].exists("gone-0")


def test_an_id_that_cannot_be_read_is_none() -> None:
    files = SimulatedFiles(1)
    files.make_dir("t-0")
    assert read_topic_id(files, str(T0)) is None
    for text in (b"", b"version: 1\ntopic_id: 5\n", b"version: 0\ntopic_id: 5\n", b"version: 0\nid: 5\n"):
        file = files.open(f"t-0/{PARTITION_METADATA}", create=True)
        file.truncate(0)
        file.append(text)
        assert read_topic_id(files, str(T0)) is None


# -- min.insync.replicas ----------------------------------------------------------------------------------------------


def test_acks_all_wants_as_many_in_sync_as_the_topic_says() -> None:
    """Else as many as its leader was told, else all brokers were; a topic that is deleted takes its setting with it."""
    rack = settled()
    topics(rack, "t")
    rack.until(rack.even)

    def answered() -> ErrorCode:
        number = rack.client.ask(state(rack).leader, ProduceRequest(T0, -1, encode_batch([Record(b"a", None, 0)])))
        rack.run(80)
        return rack.client.answers[number].error

    def told(kind: int, name: str, value: str | None) -> None:
        change = ConfigChange("min.insync.replicas", value)
        assert rack.ask(IncrementalAlterConfigsRequest(kind, name, (change,))).error is ErrorCode.NONE
        rack.until(rack.even)

    assert answered() is ErrorCode.NONE
    told(2, "t", "4")
    assert answered() is ErrorCode.NOT_ENOUGH_REPLICAS
    told(2, "t", "3")
    assert answered() is ErrorCode.NONE
    told(4, "", "4")
    assert answered() is ErrorCode.NONE, "the topic's own comes first"
    told(2, "t", None)
    assert answered() is ErrorCode.NOT_ENOUGH_REPLICAS
    told(4, str(state(rack).leader), "2")
    assert answered() is ErrorCode.NONE, "the broker's own comes before that of all"
    told(2, "t", "4")
    assert answered() is ErrorCode.NOT_ENOUGH_REPLICAS
    rack.ask(DeleteTopicsRequest("t"))
    told(4, "", None)
    topics(rack, "t")
    rack.until(rack.even)
    assert answered() is ErrorCode.NONE


# -- fencing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_event", [True, False])
def test_a_broker_is_fenced_by_time_out_and_comes_back(by_event: bool) -> None:
    rack = settled(controller=replace(CONTROLLER, fence_by_event=by_event))
    topics(rack, "t", partitions=3)
    leader = state(rack).leader
    produce(rack, [b"a"])
    at = rack.clock.now()
    rack.net.isolate(leader)
    rack.until(lambda: not rack.ledger.image.alive(leader))
    timeout = CONTROLLER.session_timeout_ms
    assert timeout - 150 <= rack.clock.now() - at <= timeout + 150
    assert not rack.ledger.image.leads(leader)
    assert all(leader not in each.isr for each in rack.ledger.image.partitions.values())
    kinds = [each.type for each in committed(rack)]
    assert kinds.count(changes.FENCE) == 1 and (changes.ISR in kinds) is not by_event
    produce(rack, [b"b"])
    rack.net.heal()
    rack.until(lambda: rack.unfenced() and leader in state(rack).isr)
    assert rack.brokers[leader].lifecycle.fenced is False
    assert held(rack, leader) == [b"a", b"b"]


def committed(rack: Rack) -> list[Any]:
    """The records of the log."""
    return [decode(each.value or b"") for each in rack.ledger.entries if not each.control]


def test_the_last_member_of_an_isr_leads_again_when_it_comes_back() -> None:
    rack = settled()
    rack.ask(CreateTopicsRequest("t", assignments=((0, 1),)))
    produce(rack, [b"a"])
    rack.stop(1)
    rack.until(lambda: state(rack).isr == (0,))
    produce(rack, [b"b"])
    rack.stop(0)
    rack.until(lambda: state(rack).leader == -1)
    rack.start(1)
    rack.until(lambda: rack.unfenced(1))
    rack.run(500)
    assert (state(rack).leader, state(rack).isr) == (-1, (0,)), "it lacks what was acknowledged"
    rack.start(0)
    rack.until(lambda: state(rack).isr == (0, 1))
    assert state(rack).leader == 0 and held(rack, 1) == [b"a", b"b"]


def test_a_restarted_process_has_another_epoch_and_the_former_one_none() -> None:
    rack = settled()
    topics(rack, "t")
    former = rack.brokers[1].lifecycle.broker_epoch
    rack.crash(1, 5)
    rack.start(1)
    assert rack.brokers[1].lifecycle.broker_epoch == -1
    rack.until(rack.unfenced)
    rack.until(lambda: rack.brokers[1].lifecycle.broker_epoch > former)
    assert rack.ask(BrokerHeartbeatRequest(1, former, 1)).error is ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_whose_disk_fails_asks_to_be_fenced() -> None:
    rack = settled()
    topics(rack, "t", partitions=3)
    rack.until(rack.even)
    broker = rack.brokers[0].broker
    broker.partitions[T0].go_offline("its disk has failed")
    rack.until(lambda: not rack.ledger.image.alive(0))
    assert all(0 not in each.isr for each in rack.ledger.image.partitions.values())
    rack.run(1_000)
    assert not rack.ledger.image.alive(0)
    rack.crash(0, 1)
    rack.start(0)
    rack.until(rack.unfenced)


def test_a_replica_that_cannot_be_made_has_its_broker_fenced() -> None:
    rack = settled()
    disk = rack.disks[0][0]

    def full(operation: str, path: str) -> None:
        if path.startswith("t-0"):
            raise OSError(28, "no space", path)

    disk.hook = full
    topics(rack, "t")
    rack.until(lambda: not rack.ledger.image.alive(0))
    assert rack.brokers[0].publisher.failure is not None


# -- the epoch of a process in its fetches (KIP-903) ------------------------------------------------------------------


def test_a_fetch_of_a_former_process_is_refused_and_counts_for_nothing() -> None:
    rack = settled()
    rack.ask(CreateTopicsRequest("t", assignments=((0, 1),)))
    rack.until(rack.even)
    gateway, epoch = rack.brokers[0]._gateway, rack.brokers[1].lifecycle.broker_epoch
    rack.run(200)
    assert gateway._fetched[T0, 1] == epoch
    fetch = FetchRequest(1, T0, 0, 1_000, current_leader_epoch=0, topic_id=rack.ledger.image.names["t"])
    for stale in (epoch - 1, -1):
        number = rack.client.ask(0, ReplicaRequest(stale, fetch))
        rack.run(20)
        assert rack.client.answers[number] == FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    number = rack.client.ask(0, ReplicaRequest(epoch + 5, replace(fetch, current_leader_epoch=9)))
    rack.run(20)
    assert rack.client.answers[number].error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert gateway._fetched[T0, 1] == epoch, "one that is not served says nothing of what the leader counts"
    number = rack.client.ask(0, ReplicaRequest("x", fetch))  # type: ignore[arg-type]
    rack.run(20)
    assert rack.client.answers[number].error is ErrorCode.INVALID_REQUEST


def test_a_process_is_over_by_the_metadata_or_by_a_fetch_of_the_next_one() -> None:
    """Whichever of the two the leader has heard of first."""
    rack = settled()
    rack.ask(CreateTopicsRequest("t", assignments=((0, 1),)))
    rack.until(rack.even)
    gateway, epoch = rack.brokers[0]._gateway, rack.brokers[1].lifecycle.broker_epoch
    fetch = FetchRequest(1, T0, 0, 1_000, current_leader_epoch=0)

    def answer(last: int, asks: int) -> ErrorCode:
        gateway._fetched[T0, 1] = last
        return gateway._error(ReplicaRequest(asks, fetch))

    assert answer(epoch - 1, epoch - 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER, "the metadata have the next one"
    assert answer(epoch + 5, epoch) is ErrorCode.NOT_LEADER_OR_FOLLOWER, "the next one has fetched"
    assert answer(epoch, epoch) is answer(epoch - 1, epoch) is answer(epoch, epoch + 5) is ErrorCode.NONE


def test_a_follower_of_a_topic_made_anew_takes_nothing_from_who_has_the_former_one() -> None:
    """The leader has not heard yet, and has records of the same leader epoch under the same name."""
    rack = settled()
    rack.ask(CreateTopicsRequest("t", assignments=((0, 1),)))
    produce(rack, [b"old"])
    for controller in CONTROLLERS:
        rack.net.cut(0, controller)
    rack.ask(DeleteTopicsRequest("t"))
    rack.ask(CreateTopicsRequest("t", assignments=((0, 1),)))
    rack.until(lambda: rack.brokers[1].broker.partitions[T0].role in (Role.TRUNCATING, Role.FOLLOWER))
    assert rack.brokers[0].broker.partitions[T0].role is Role.LEADER and held(rack, 0) == [b"old"]
    rack.run(200)
    assert held(rack, 1) == []
    rack.net.heal()
    rack.until(rack.even)
    produce(rack, [b"new"])
    rack.run(100)
    assert held(rack, 0) == held(rack, 1) == [b"new"]


# -- catching up ------------------------------------------------------------------------------------------------------


def test_a_broker_may_skip_states_by_a_snapshot() -> None:
    rack = settled()
    topics(rack, "t", "u")
    produce(rack, [b"a"])
    rack.stop(2)
    rack.ask(DeleteTopicsRequest("u"))
    for number in range(60):
        told = ConfigChange("min.insync.replicas", str(1 + number % 2))
        rack.ask(IncrementalAlterConfigsRequest(2, "t", (told,)))
        rack.run(30)
    behind = rack.disks[2][1]
    rack.until(lambda: min(each.quorum.replica.begin for each in rack.controllers.values()) > 40)
    assert not [name for name in behind.list("__cluster_metadata-0") if name.endswith(".checkpoint")]
    rack.start(2)
    rack.until(lambda: rack.unfenced() and rack.even() and 2 in state(rack).isr)
    assert rack.brokers[2].quorum.replica.begin > 40
    assert list(rack.brokers[2].broker.partitions) == [T0] and held(rack, 2) == [b"a"]


def test_a_broker_does_nothing_before_its_own_registration() -> None:
    rack = settled()
    topics(rack, "t")
    produce(rack, [b"a"])
    rack.stop(1)
    rack.net.isolate(1)
    rack.start(1)
    rack.run(500)
    broker = rack.brokers[1]
    assert broker.publisher.published == 0 and broker.broker.partitions[T0].role is Role.NONE
    rack.net.heal(1)
    rack.until(lambda: rack.unfenced() and 1 in state(rack).isr)
    assert held(rack, 1) == [b"a"]


def test_metrics() -> None:
    rack = settled()
    topics(rack, "t")
    rack.until(rack.even)
    active = rack.active
    assert active is not None
    end = len(rack.ledger.entries)
    assert active.metrics.metadata_lag == 0 and active.metrics.snapshot_lag == end
    assert active.metrics.commits.rate() > 0 and active.metrics.requests.rate() > 0
    rack.net.isolate(1)
    topics(rack, "u", replicas=1)
    assert rack.brokers[1].metrics.metadata_lag == 0, "it has not heard that there is more"
    assert "MetadataCommitLatencyMs_count" in active.metrics.text()


def test_on_real_files(tmp_path: Path) -> None:
    def disk(address: int, number: int) -> DiskFiles:
        folder = tmp_path / f"{address}-{number}"
        folder.mkdir(exist_ok=True)
        return DiskFiles(folder)

    rack = settled(disk=disk)
    topics(rack, "t", partitions=2)
    produce(rack, [b"a"])
    for address in (0, 100):
        (rack.brokers.get(address) or rack.controllers[address]).close()
        rack.stop(address)
    rack.until(lambda: not rack.ledger.image.alive(0))
    rack.ask(DeleteTopicsRequest("t"))
    topics(rack, "t", replicas=2)
    produce(rack, [b"b"])
    for address in (0, 100):
        rack.start(address)
    rack.until(lambda: rack.unfenced() and rack.even())
    assert T0 not in rack.brokers[0].broker.partitions
    assert [held(rack, broker) for broker in state(rack).replicas] == [[b"b"]] * 2
    for node in (*rack.brokers.values(), *rack.controllers.values()):
        node.close()
    assert (tmp_path / "100-0" / "__cluster_metadata-0").is_dir()


def test_of_two_processes_with_one_id_the_one_that_lives_is_registered() -> None:
    rack = settled()
    topics(rack, "t")
    former = rack.brokers[1]
    other = replace(former.lifecycle._registration, incarnation=UUID(int=9 << 64))
    assert rack.ask(other).error is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    rack.net.isolate(1)
    rack.until(lambda: not rack.ledger.image.alive(1))
    taken = rack.ask(other)
    assert taken.error is ErrorCode.NONE and taken.broker_epoch > former.lifecycle.broker_epoch
    rack.net.heal()
    rack.until(lambda: rack.unfenced() and 1 in state(rack).isr)
    assert former.lifecycle.broker_epoch > taken.broker_epoch


def test_a_request_that_nobody_answers_is_forgotten() -> None:
    rack = settled()
    rack.ask(CreateTopicsRequest("t", assignments=((0, 1),)))
    rack.until(rack.even)
    for controller in CONTROLLERS:
        rack.net.cut(0, controller)
    rack.stop(1)
    rack.run(1_000)
    broker = rack.brokers[0]
    assert broker._gateway._asked and len(broker._requests._waiting) <= 2
