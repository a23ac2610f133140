"""Disks that fail and machines that crash under a broker: what is offline, and what is never lost."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fencepost.impl.files import DiskFiles
from fencepost.impl.log import CorruptLog, LogConfig
from fencepost.impl.net import LoopbackHost
from fencepost.impl.replica import Broker, Role
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    CONSUMER,
    FIRST_CLIENT,
    LATEST,
    Envelope,
    FetchRequest,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    ProduceResponse,
)

from .brokers import CONFIG, TP, Cluster, records

STORAGE = ErrorCode.KAFKA_STORAGE_ERROR


def failing(operation: str, path: str = "") -> Callable[[str, str], None]:
    def hook(what: str, where: str) -> None:
        if what == operation and path in where:
            raise OSError(errno.EIO, "I/O error", where)

    return hook


def everything(cluster: Cluster, node: int) -> list[ErrorCode]:
    """What the broker answers to each kind of request for the partition."""
    bodies: list[Any] = [
        FetchRequest(CONSUMER, TP, 0, 100),
        FetchRequest(1, TP, 0, 100, 3),
        OffsetsForLeaderEpochRequest(CONSUMER, TP, -1, 1),
        ListOffsetsRequest(TP, LATEST),
        ProduceRequest(TP, 1, records(b"x")),
        cluster.request(0, 9),
    ]
    return [cluster.ask(node, body).error for body in bodies]


@pytest.mark.parametrize("operation", ["append", "fsync"])
def test_a_leader_whose_disk_fails_goes_offline_until_it_is_reopened(operation: str) -> None:
    cluster = Cluster()
    cluster.elect(0, 3, [0, 1])
    assert cluster.produce(0, b"a", acks=-1) is None
    waiting = cluster.last
    cluster.fetch_all(2)
    cluster.disks[0].hook = failing(operation, ".log")
    assert cluster.produce(0, b"b") == ProduceResponse(STORAGE)
    cluster.disks[0].hook = None
    assert cluster.answer_to(waiting) == ProduceResponse(STORAGE)
    assert cluster.state(0).role is Role.OFFLINE and "I/O error" in str(cluster.brokers[0].partitions[TP].failure)
    assert everything(cluster, 0) == [STORAGE] * 6
    for key in (("isr", TP), ("fetch", TP), ("high-watermarks",), ("recovery-points",)):
        cluster.brokers[0].fire(key)  # type: ignore[arg-type]
    assert cluster.nothing_sent(0) and ("isr", TP) not in cluster.brokers[0].timers()
    cluster.brokers[0].reopen(TP)
    state = cluster.state(0)
    assert (state.role, state.leader_epoch) == (Role.NONE, 3)
    assert cluster.tell(0, cluster.request(0, 3)) is ErrorCode.FENCED_REPLICA
    assert cluster.tell(0, cluster.request(0, 4)) is ErrorCode.NONE
    assert cluster.produce(0, b"c").error is ErrorCode.NONE


@pytest.mark.parametrize("operation", ["append", "fsync"])
def test_a_follower_whose_disk_fails_acknowledges_nothing(operation: str) -> None:
    cluster = Cluster()
    cluster.elect(0, 3, [0, 1])
    cluster.produce(0, b"a")
    cluster.disks[1].hook = failing(operation, ".log")
    cluster.exchange(1)
    cluster.brokers[1].fire(("fetch", TP))
    assert cluster.state(1).role is Role.OFFLINE and cluster.nothing_sent(1)
    assert cluster.state(0).high_watermark == 0
    cluster.disks[1].hook = None
    cluster.brokers[1].reopen(TP)
    cluster.elect(0, 3, [0, 1], nodes=[1])
    cluster.fetch_all(1)
    assert cluster.rows(1) == cluster.rows(0) and cluster.state(1).high_watermark == 1


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("operation", ["open", "append", "fsync", "rename", "fsync_dir"])
def test_an_epoch_that_cannot_be_stored_is_not_taken_up(leads: bool, operation: str) -> None:
    cluster = Cluster()
    cluster.elect(0, 3)
    cluster.produce(0, b"a")
    cluster.fetch_all(1, 2)
    assert cluster.produce(0, b"b", acks=-1) is None
    waiting = cluster.last
    node = 0 if leads else 1
    path = "" if operation == "fsync_dir" else "leader-epoch-seen"
    cluster.disks[node].hook = failing(operation, path)
    assert cluster.tell(node, cluster.request(1, 4)) is STORAGE
    cluster.disks[node].hook = None
    state = cluster.state(node)
    assert (state.role, state.leader_epoch) == (Role.OFFLINE, 3) and cluster.nothing_sent(node)
    assert cluster.answer_to(waiting) == (ProduceResponse(STORAGE) if leads else None)
    assert cluster.crash(node).state(TP).leader_epoch in (3, 4)


def test_a_new_partition_that_cannot_be_stored_can_be_made_later() -> None:
    cluster = Cluster()
    cluster.disks[0].hook = failing("make_dir")
    assert cluster.tell(0, cluster.request(0, 0)) is STORAGE
    assert cluster.produce(0, b"a").error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.disks[0].hook = None
    assert cluster.tell(0, cluster.request(0, 0)) is ErrorCode.NONE
    assert cluster.produce(0, b"a").error is ErrorCode.NONE


@pytest.mark.parametrize("key", [("high-watermarks",), ("recovery-points",)])
def test_a_checkpoint_that_cannot_be_stored_takes_all_offline(key: tuple[str]) -> None:
    cluster = Cluster()
    cluster.elect(0, 3, [0])
    cluster.produce(0, b"a")
    cluster.disks[0].hook = failing("rename")
    cluster.brokers[0].fire(key)
    assert cluster.state(0).role is Role.OFFLINE


@pytest.mark.parametrize("who", [CONSUMER, 1])
def test_a_damaged_record_is_not_served(who: int) -> None:
    cluster = Cluster()
    cluster.elect(0, 3, [0])
    cluster.produce(0, b"good")
    cluster.produce(0, b"damaged")
    cluster.brokers[0].fire(("recovery-points",))
    file = cluster.disks[0].open("orders-0/00000000000000000000.log")
    data = file.pread(0, file.size)
    file.truncate(0)
    file.append(data.replace(b"damaged", b"damagEd"))
    good = cluster.ask(0, FetchRequest(who, TP, 0, 1, 3))
    assert good.error is ErrorCode.NONE and b"good" in good.records
    answer = cluster.ask(0, FetchRequest(who, TP, 1, 1, 3))
    assert answer.error is STORAGE and answer.records == b""
    assert cluster.state(0).role is Role.OFFLINE
    with pytest.raises(CorruptLog, match=r"orders-0/0{20}\.log, byte \d+: CRC-32C"):
        cluster.brokers[0].reopen(TP)
    assert cluster.state(0).role is Role.OFFLINE


def test_a_damaged_log_is_named_at_the_start() -> None:
    cluster = Cluster()
    cluster.elect(0, 3, [0])
    cluster.produce(0, b"abc")
    cluster.brokers[0].close()
    cluster.network.detach(0)
    file = cluster.disks[0].open("orders-0/00000000000000000000.log")
    data = file.pread(0, file.size)
    file.truncate(0)
    file.append(data[:-1] + b"x")
    with pytest.raises(CorruptLog, match=r"orders-0/0{20}\.log, byte 0: CRC-32C"):
        cluster.start(0)


@pytest.mark.parametrize("seed", range(25))
def test_what_was_committed_outlives_every_crash(seed: int) -> None:
    """Crash one replica after another at seeded moments; whoever is elected from the ISR has all that was committed."""
    config = replace(CONFIG, log=LogConfig(segment_bytes=300))
    cluster = Cluster(config=config)
    chance = cluster.network.chance
    chance.seed(seed)
    cluster.elect(0, 0)
    leader, epoch = 0, 0
    committed: list[tuple[int, int, bytes]] = []
    for step in range(200):
        move = chance.random()
        followers = [node for node in range(3) if node != leader]
        if move < 0.5:
            cluster.produce(leader, b"%d" % step, acks=chance.choice((0, 1)))
        elif move < 0.94:
            cluster.exchange(chance.choice(followers))
        elif move < 0.97:
            node = chance.choice(followers)
            cluster.crash(node, seed * 100 + step)
            assert cluster.tell(node, cluster.request(leader, epoch)) is ErrorCode.NONE
            cluster.truncate(node)
        else:
            if chance.random() < 0.5:
                cluster.crash(leader, seed * 100 + step)
            leader, epoch = chance.choice(followers), epoch + 1
            cluster.elect(leader, epoch)
        rows = cluster.rows(leader)
        assert rows[: len(committed)] == committed
        found = rows[: cluster.state(leader).high_watermark]
        committed = max(committed, found, key=len)
    assert len(committed) > 5
    for node in range(3):
        cluster.crash(node, seed)
        assert cluster.rows(node)[: len(committed)] == committed


def test_a_broker_on_a_real_disk(tmp_path: Path) -> None:
    host = LoopbackHost()
    lead = LeaderAndIsrRequest(1, TP, 0, 2, frozenset({0}), (0, 1), frozenset(), 0)
    for epoch in (2, 3):
        broker = Broker(0, DiskFiles(tmp_path), host, host.clock, CONFIG)
        broker.receive(Envelope(FIRST_CLIENT, 0, 1, replace(lead, leader_epoch=epoch)))
        broker.receive(Envelope(FIRST_CLIENT, 0, 2, ProduceRequest(TP, -1, records(b"%d" % epoch))))
        state = broker.state(TP)
        broker.close()
    assert state.epochs == ((2, 0), (3, 1)) and state.high_watermark == 2
    assert (tmp_path / "leader-epoch-seen-checkpoint").read_text() == "0\n1\norders 0 3\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
