"""What the controller sends, and what it knows after a crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.impl.files import DiskFiles, SimulatedFiles, read_file
from fencepost.impl.log import CorruptCheckpoint
from fencepost.impl.net import Faults, LoopbackHost, Transport
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONTROLLER,
    AlterIsrRequest,
    Envelope,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    OfflineReplicasRequest,
    TopicPartition,
    UpdateMetadataRequest,
)
from fencepost.impl.zk_controller import (
    CHECKPOINT,
    Controller,
    ControllerStopped,
)

from .controlled import ALL, TP, Broker, Cluster

# -- what is sent -----------------------------------------------------------------------------------------------------


def test_every_election_is_told_to_the_replicas_and_then_to_all_brokers() -> None:
    cluster = Cluster()
    cluster.controller.elect_leader(TP, 1)
    kinds = [(flight.envelope.destination, type(flight.envelope.body)) for flight in cluster.net.in_flight()]
    assert kinds[:3] == [(broker, LeaderAndIsrRequest) for broker in range(3)]
    assert kinds[3:] == [(broker, UpdateMetadataRequest) for broker in range(4)]


def test_unanswered_requests_are_sent_again_and_a_newer_one_takes_their_place() -> None:
    """Fails where nothing is sent again, or where the old epoch is."""
    cluster = Cluster()
    deaf = cluster.brokers[2]
    cluster.net.detach(2)
    start = cluster.net.clock.now()
    cluster.controller.elect_leader(TP, 1)
    cluster.net.run(until=start + 500)
    cluster.controller.elect_leader(TP, 0)
    cluster.net.run(until=start + 1200)
    cluster.net.attach(deaf)
    assert cluster.controller.deadline() == start + 1500
    cluster.net.run()
    assert [request.leader_epoch for request in deaf.leaders()] == [2] and len(deaf.metadata()) == 1
    assert [request.leader_epoch for request in cluster.brokers[1].leaders()] == [1, 2]
    assert cluster.controller.deadline() is None


def test_each_request_is_sent_again_at_its_own_time() -> None:
    cluster = Cluster()
    other = TopicPartition("u", 0)
    start = cluster.net.clock.now()
    cluster.net.isolate(2)
    cluster.controller.elect_leader(TP, 1)
    cluster.net.run(until=start + 400)
    cluster.controller.create_partition(other, (2,))
    sent = cluster.net.counts.sent
    cluster.net.run(until=start + 1399)
    assert cluster.net.counts.sent == sent + 2 + 3  # three brokers answered about the new partition
    cluster.net.run(until=start + 1400)
    assert cluster.net.counts.sent == sent + 4 + 3


def test_nothing_is_sent_again_to_a_broker_that_has_failed_and_all_at_once_when_it_is_back() -> None:
    """Fails where its requests are not forgotten: they are sent for ever, or wait for their time."""
    cluster = Cluster()
    cluster.net.detach(2)
    cluster.controller.elect_leader(TP, 1)
    cluster.controller.mark_offline(2)
    cluster.net.run()
    assert cluster.controller.deadline() is None
    cluster.net.attach(cluster.brokers[2])
    for incarnation in (2, 3):
        cluster.net.isolate(2)
        cluster.controller.broker_started(2, incarnation)
        cluster.net.run(until=cluster.net.clock.now() + 100)
        cluster.net.heal()
    assert cluster.brokers[2].told == []
    cluster.controller.broker_started(2, 3)
    cluster.net.run(until=cluster.net.clock.now() + 100)
    assert len(cluster.brokers[2].leaders()) == len(cluster.brokers[2].metadata()) == 1


def test_a_request_is_sent_again_with_what_holds_by_then_and_until_it_is_taken() -> None:
    cluster = Cluster()
    busy = cluster.brokers[1]
    busy.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # for instance a mark that came before the LeaderAndIsr
    cluster.controller.elect_leader(TP, 2)
    cluster.net.run(until=cluster.net.clock.now() + 10)
    assert cluster.alter((1, 2), broker=2).error is ErrorCode.NONE
    cluster.net.run(until=cluster.net.clock.now() + 3500)
    partition_epochs = [request.partition_epoch for request in busy.leaders()]
    assert partition_epochs == [2, 3, 3, 3]
    busy.error = ErrorCode.NONE
    cluster.net.run()
    assert len(busy.leaders()) == 5


def test_late_and_repeated_answers_are_nobodys() -> None:
    cluster = Cluster()
    cluster.net.hold_if = lambda envelope: envelope.destination == CONTROLLER
    cluster.controller.elect_leader(TP, 1)
    cluster.net.run(until=cluster.net.clock.now() + 10)
    old = cluster.net.in_flight()
    cluster.controller.elect_leader(TP, 0)
    for flight in old:
        cluster.net.deliver(flight, keep=True)
        cluster.net.deliver(flight)
    assert cluster.controller.deadline() is not None  # those of the newer epoch are still waited for
    cluster.net.run(until=cluster.net.clock.now() + 10)
    for flight in cluster.net.in_flight():
        cluster.net.deliver(flight)
    assert cluster.controller.deadline() is None


def test_a_harness_can_deliver_each_request_late_twice_or_never() -> None:
    """In lockstep with the model: the requests of all epochs stay on their way until the harness wants one."""
    cluster = Cluster(elect=False)
    cluster.net.hold_if = lambda envelope: isinstance(envelope.body, LeaderAndIsrRequest)
    for leader in (0, 1, 2):
        cluster.controller.elect_leader(TP, leader)
    cluster.net.run(until=cluster.net.clock.now() + 500)
    held = {}
    for flight in cluster.net.in_flight(source=CONTROLLER):
        body = flight.envelope.body
        assert isinstance(body, LeaderAndIsrRequest)
        held[flight.envelope.destination, body.leader_epoch] = flight
    assert sorted(held) == [(broker, epoch) for broker in range(3) for epoch in range(3)]
    for epoch in (2, 0, 0):
        assert cluster.net.deliver(held[1, epoch], keep=True)
    assert [(r.leader_epoch, r.leader) for r in cluster.brokers[1].leaders()] == [(2, 2), (0, 0), (0, 0)]
    assert cluster.brokers[0].leaders() == cluster.brokers[2].leaders() == []


def test_every_broker_hears_the_end_of_it_over_a_bad_network() -> None:
    for seed in range(10):
        cluster = Cluster(seed=seed)
        cluster.net.faults = Faults(latency=(1, 300), loss=0.3, duplication=0.2)
        for leader in (1, 2, 0, 2):
            cluster.controller.elect_leader(TP, leader)
            cluster.net.run(until=cluster.net.clock.now() + 200)
        cluster.net.run()
        assert cluster.net.counts.lost > 0 and cluster.net.counts.reordered > 0
        for broker in cluster.brokers[:3]:
            assert max(broker.leaders(), key=lambda r: r.leader_epoch) == LeaderAndIsrRequest(
                1, TP, 2, 4, ALL, (0, 1, 2), frozenset(), 5, cluster.state.topic_id
            )


# -- crashes ----------------------------------------------------------------------------------------------------------


class Crash(Exception):
    """Power off."""


class Dying:
    """Lets ``left`` messages out, and then the power goes."""

    def __init__(self, transport: Transport, left: int) -> None:
        self.transport = transport
        self.left = left
        self.sent: list[Envelope] = []

    def send(self, envelope: Envelope) -> None:
        if self.left == 0:
            raise Crash
        self.left -= 1
        self.sent.append(envelope)
        self.transport.send(envelope)


@pytest.mark.parametrize("left", range(8))
def test_a_crash_between_store_and_send_gives_no_epoch_twice(left: int) -> None:
    """Fails where requests leave before the checkpoint is synced: then two leaders have one epoch."""
    for seed in range(20):
        cluster = Cluster(SimulatedFiles(seed))
        files = cluster.files
        assert isinstance(files, SimulatedFiles)
        dying = Dying(cluster.net, left)
        cluster.net.detach(CONTROLLER)
        controller = Controller(dying, cluster.net.clock, files)
        synced: list[bytes] = []
        files.hook = lambda what, path: synced.append(b"") if what == "fsync_dir" else None  # noqa: B023
        if left < 7:
            with pytest.raises(Crash):
                controller.elect_leader(TP, 1)
        else:
            controller.elect_leader(TP, 1)
        assert len(synced) == 1
        files.hook = None
        files.crash(seed)
        new = cluster.start()
        assert new.controller_epoch == 3 and cluster.summary() == (1, 1, {0, 1, 2}, 2)
        new.elect_leader(TP, 2)
        cluster.net.run()
        leaders = {(r.leader_epoch, r.leader) for broker in cluster.brokers for r in broker.leaders()}
        assert (2, 2) in leaders and leaders <= {(1, 1), (2, 2)}
        assert all(r.controller_epoch == 3 for b in cluster.brokers[:3] for r in b.leaders()[-1:])


@pytest.mark.parametrize("moment", range(1, 9))
def test_a_crash_before_the_store_is_synced_lets_nothing_out(moment: int) -> None:
    """Whichever of the two states survives, nobody has heard of the new one, and none is torn."""
    steps: list[str] = []

    def power_off(what: str, _path: str) -> None:
        steps.append(what)
        if len(steps) == moment:
            raise Crash

    survivors = set()
    for seed in range(20):
        cluster = Cluster(SimulatedFiles(seed))
        files = cluster.files
        assert isinstance(files, SimulatedFiles)
        steps.clear()
        files.hook = power_off
        if moment <= 6:
            with pytest.raises(Crash):
                cluster.controller.elect_leader(TP, 1)
            assert cluster.net.in_flight() == []
        else:
            cluster.controller.elect_leader(TP, 1)
            assert steps == ["open", "truncate", "append", "fsync", "rename", "fsync_dir"]
        files.hook = None
        files.crash(seed)
        cluster.start()
        survivors.add(cluster.summary()[:2])
    before, after = (0, 0), (1, 1)
    assert survivors == ({before} if moment < 6 else {before, after} if moment == 6 else {after})


def test_a_new_controller_tells_every_broker_what_it_knows() -> None:
    cluster = Cluster()
    cluster.controller.mark_offline(0)
    cluster.alter((1,), broker=1)
    cluster.settle()
    state = cluster.state
    new = cluster.start()
    assert (new.controller_epoch, new.partition(TP)) == (2, state)
    assert not new.brokers[0].online and new.brokers[3].online
    assert new.deadline() == cluster.net.clock.now()
    cluster.net.run()
    request = LeaderAndIsrRequest(2, TP, 1, 1, frozenset((1,)), (0, 1, 2), frozenset((0,)), 3, state.topic_id)
    assert [broker.leaders() for broker in cluster.brokers] == [[], [request], [request], []]
    assert [len(broker.metadata()) for broker in cluster.brokers] == [0, 1, 1, 1]


def test_answers_to_a_controllers_former_life_are_not_taken_for_its_own() -> None:
    cluster = Cluster()
    cluster.net.hold_if = lambda envelope: envelope.destination == CONTROLLER
    cluster.start()
    cluster.net.run(until=cluster.net.clock.now() + 10)
    old = cluster.net.in_flight(destination=CONTROLLER)
    assert len(old) == 7
    new = cluster.start()
    new.wake()  # the same requests again
    for flight in old:
        cluster.net.deliver(flight)
    assert new.deadline() is not None


def test_the_controller_epoch_rises_at_each_start() -> None:
    cluster = Cluster()
    assert [cluster.start().controller_epoch for _ in range(3)] == [2, 3, 4]


def test_a_controller_whose_disk_fails_stops_for_good() -> None:
    """After a failed sync nobody knows what is on the disk (Linux drops the pages): a later epoch might go back."""
    cluster = Cluster()
    files = cluster.files
    assert isinstance(files, SimulatedFiles)
    files.capacity = files.used
    with pytest.raises(ControllerStopped, match=r"controller: its checkpoint could not be written: .*; mend"):
        cluster.controller.elect_leader(TP, 1)
    files.capacity = None
    assert cluster.summary() == (0, 0, {0, 1, 2}, 1) and cluster.net.in_flight() == []
    for call in (
        lambda: cluster.controller.elect_leader(TP, 1),
        lambda: cluster.controller.mark_offline(1),
        lambda: cluster.controller.mark_online(1),
        lambda: cluster.controller.broker_started(1, 2),
        lambda: cluster.controller.create_partition(TopicPartition("u", 0), (0,)),
    ):
        with pytest.raises(ControllerStopped, match="could not be written"):
            call()
    body = AlterIsrRequest(0, TP, 0, frozenset((0, 1)), 1)
    cluster.net.send(Envelope(3, CONTROLLER, 77, body, BROKER_PRINCIPAL))
    cluster.net.run()
    assert cluster.brokers[3].answers == [] and cluster.controller.deadline() is None
    assert cluster.start().elect_leader(TP, 1).leader_epoch == 1


def test_an_alter_isr_that_could_not_be_stored_is_not_answered() -> None:
    cluster = Cluster()
    assert isinstance(cluster.files, SimulatedFiles)
    cluster.files.capacity = cluster.files.used
    cluster.net.send(Envelope(3, CONTROLLER, 77, AlterIsrRequest(0, TP, 0, frozenset((0, 1)), 1), BROKER_PRINCIPAL))
    cluster.net.run()
    assert cluster.brokers[3].answers == [] and cluster.controller.stopped is not None


def test_a_controller_that_a_later_one_replaced_stops() -> None:
    cluster = Cluster()
    cluster.brokers[1].error = ErrorCode.STALE_CONTROLLER_EPOCH
    cluster.controller.elect_leader(TP, 1)
    cluster.net.run()
    with pytest.raises(ControllerStopped, match="controller: broker 1 knows a controller after epoch 1; start another"):
        cluster.controller.elect_leader(TP, 0)


def test_what_is_no_controllers_business_is_not_answered() -> None:
    cluster = Cluster()
    before = cluster.net.counts.sent
    cluster.net.send(Envelope(3, CONTROLLER, 5, OfflineReplicasRequest(1, TP, frozenset(), 0, 1), BROKER_PRINCIPAL))
    cluster.net.send(Envelope(3, CONTROLLER, 5, LeaderAndIsrResponse(ErrorCode.KAFKA_STORAGE_ERROR), BROKER_PRINCIPAL))
    cluster.net.run()
    assert cluster.net.counts.sent == before + 2 and cluster.state.offline == set()


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("controller 1", "controller x", 3, "'x' is no number"),
        ("controller 1", "broker 7 1 online", 2, "no line with the controller epoch"),
        ("broker 0 1 online", "controller 2", 4, "it is no entry of a controller's checkpoint, or the second"),
        ("broker 0 1 online", "broker 0 1 asleep", 4, "it is no entry of a controller's checkpoint"),
        ("broker 0 1 online", "broker 1 1 online", 5, "a line before has the same key"),
        ("partition t 0 0 0", "partition t 0 7 0", 8, "a broker that has no replica"),
        ("0,1,2 0,1,2", "0,1,2 0,1,1", 8, "'0,1,1' has a broker twice"),
        ("0,1,2 0,1,2", "0,1,2 0,1,3", 8, "a broker that has no replica"),
        ("partition t 0", "partition t/t 0", 8, "it names no partition"),
        ("partition t 0", "partition t -1", 8, "'-1' is no number"),
        ("\n6\n", "\n5\n", 2, "the count and the 6 whole lines after it differ"),
        ("\n6\n", "\n7\n", 2, "the count and the 6 whole lines after it differ"),
    ],
)
def test_a_damaged_checkpoint_is_told_by_its_line(old: str, new: str, line: int, what: str) -> None:
    cluster = Cluster()
    text = read_file(cluster.files, CHECKPOINT).decode()
    assert old in text
    file = cluster.files.open(CHECKPOINT)
    file.truncate(0)
    file.append(text.replace(old, new, 1).encode())
    with pytest.raises(CorruptCheckpoint, match=f"^{CHECKPOINT}, line {line}: ") as damage:
        cluster.start()
    assert what in str(damage.value)


def test_the_controller_runs_on_a_real_disk_in_real_time(tmp_path: Path) -> None:
    host = LoopbackHost()
    files = DiskFiles(tmp_path)
    brokers = [Broker(address, host) for address in range(3)]
    for broker in brokers:
        host.attach(broker)
    host.attach(controller := Controller(host, host.clock, files, retry=20))
    for broker in brokers:
        controller.broker_started(broker.address, 1)
    brokers[2].error = None
    controller.create_partition(TP, (0, 1, 2))
    host.run(lambda: len(brokers[2].leaders()) == 3, timeout=10_000)  # sent again after 20 ms
    assert len(brokers[0].leaders()) == 1
    again = Controller(host, host.clock, DiskFiles(tmp_path))
    assert again.partitions == controller.partitions and again.controller_epoch == 2
