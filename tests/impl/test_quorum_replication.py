"""Fetch and the high watermark of the quorum node: fencing, truncation, majorities, and what comes malformed."""

from __future__ import annotations

import errno
import struct
from dataclasses import replace
from typing import Any

import google_crc32c
import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import InvalidAppend, LogOffline, Record, encode_batch
from fencepost.impl.quorum import CLUSTER_METADATA, KeyValueMachine, NotLeader, QuorumConfig, SnapshotId
from fencepost.impl.quorum.leader import Leader
from fencepost.impl.quorum.timers import ADVANCE_BEGIN, FETCH
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import Envelope, TopicPartition
from fencepost.impl.wire.quorum import (
    BeginQuorumEpochRequest,
    DeleteRecordsRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    OffsetAndEpoch,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
)

from .quorum_rack import Rack
from .test_quorum_elections import Alone

REQUESTS: list[Any] = [
    VoteRequest(CLUSTER_METADATA, 1, 1, -1, -1),
    BeginQuorumEpochRequest(CLUSTER_METADATA, 1, 1),
    EndQuorumEpochRequest(CLUSTER_METADATA, 1, 1, (0,)),
    QuorumFetchRequest(CLUSTER_METADATA, 1, 1, 0, -1, 100, False),
    FetchSnapshotRequest(CLUSTER_METADATA, 1, 1, OffsetAndEpoch(3, 0), 0, 100),
    DeleteRecordsRequest(CLUSTER_METADATA, 1),
]


def fetch(alone: Alone, offset: int, last_epoch: int, *, replica: int = 1, epoch: int | None = None) -> Any:
    own = alone.node.epoch if epoch is None else epoch
    return alone.ask(QuorumFetchRequest(CLUSTER_METADATA, replica, own, offset, last_epoch, 1 << 20, False), replica)


def led(epochs: int = 1, voters: tuple[int, ...] = (0, 1, 2)) -> Alone:
    """A leader whose log has, of each epoch, the LeaderChange record and one more."""
    alone = Alone(voters=voters)
    for epoch in range(epochs):
        alone.lead(epoch)
        alone.node.append([Record(b"%d" % epoch, b"k")])
        if epoch < epochs - 1:
            alone.node.resign()
    return alone


def test_records_come_with_high_watermark_and_lbo() -> None:
    alone = led()
    answer = fetch(alone, 0, -1)
    assert (answer.error, answer.epoch, answer.leader) == (ErrorCode.NONE, 0, 0)
    assert (answer.fetch_offset, answer.last_fetched_epoch) == (0, -1)
    assert (answer.high_watermark, answer.log_begin_offset) == (0, 0)
    assert answer.records
    assert fetch(alone, 2, 0).records == b""


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(0, ErrorCode.FENCED_REPLICA), (1, ErrorCode.NONE), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_fetch_is_fenced_by_epoch(epoch: int, error: ErrorCode) -> None:
    alone = led(2)
    answer = fetch(alone, 4, 1, epoch=epoch)
    assert answer.error is error
    assert (alone.node.replica.high_watermark == 4) is (error is ErrorCode.NONE), "a refused fetch acknowledges nothing"


def test_only_a_leader_serves_and_tells_who_it_is() -> None:
    alone = Alone()
    alone.ask(BeginQuorumEpochRequest(CLUSTER_METADATA, 2, 2), 2)
    answer = fetch(alone, 0, -1)
    assert (answer.error, answer.epoch, answer.leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2, 2)


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (4, 1, None),
        (2, 0, None),
        (3, 0, OffsetAndEpoch(2, 0)),
        (7, 2, OffsetAndEpoch(6, 2)),
        (9, 7, OffsetAndEpoch(6, 2)),
        (1, -1, OffsetAndEpoch(0, -1)),
    ],
)
def test_where_logs_diverge_the_follower_is_told(
    offset: int, last_epoch: int, diverging: OffsetAndEpoch | None
) -> None:
    answer = fetch(led(3), offset, last_epoch)
    assert answer.error is ErrorCode.NONE
    assert answer.diverging == diverging
    assert bool(answer.records) is (diverging is None)


def test_a_majority_commits_and_less_does_not() -> None:
    five = led(voters=(0, 1, 2, 3, 4))
    fetch(five, 2, 0)
    assert five.node.replica.high_watermark == 0
    fetch(five, 1, 0, replica=3)
    assert five.node.replica.high_watermark == 1, "three of five have it"
    three = led()
    assert three.node.replica.high_watermark == 0
    fetch(three, 1, 0)
    assert three.node.replica.high_watermark == 1
    fetch(three, 2, 0)
    assert three.node.replica.high_watermark == 2
    fetch(three, 1, 0)
    assert three.node.replica.high_watermark == 2, "it never falls"


def values(alone: Alone) -> dict[bytes, bytes]:
    machine = alone.node.replica.machine
    assert isinstance(machine, KeyValueMachine)
    return machine.values


THREE = [Record(b"%d" % n, b"k%d" % n) for n in range(3)]


@pytest.mark.parametrize("inside", [[], [2], [3], [2, 3]])
def test_a_high_watermark_inside_a_batch_skips_no_committed_record(inside: list[int]) -> None:
    """Of a leader: a follower that is another implementation has part of the batch. Offset 0 is its LeaderChange."""
    alone = led_with_a_batch()
    for end in (1, *inside):
        fetch(alone, end, 0)
        assert (alone.node.replica.high_watermark, alone.node.replica.applied) == (end, 1)
        assert values(alone) == {}
    fetch(alone, 4, 0)
    assert (alone.node.replica.high_watermark, alone.node.replica.applied) == (4, 4)
    assert values(alone) == {record.key: record.value for record in THREE}


def led_with_a_batch() -> Alone:
    alone = Alone()
    alone.lead(0)
    assert alone.node.append(THREE) == 1
    return alone


@pytest.mark.parametrize("inside", [[], [1], [2, 4], [1, 2, 3, 4]])
def test_a_followers_high_watermark_inside_a_batch_skips_none_either(inside: list[int]) -> None:
    records = encode_batch(THREE, leader_epoch=5) + encode_batch(THREE[:2], base_offset=3, leader_epoch=5)
    alone = following(5)
    for high_watermark in (*inside, 5):
        answer_fetch(alone, records if alone.node.replica.end == 0 else b"", high_watermark)
        replica = alone.node.replica
        assert replica.high_watermark == high_watermark
        assert replica.applied == (5 if high_watermark == 5 else 3 if high_watermark >= 3 else 0)
        assert set(values(alone)) == {record.key for record in THREE[: replica.applied]}
        if replica.applied:
            replica.generate_snapshot()
            assert replica.snapshots.latest == SnapshotId(replica.applied, 5), (
                "it ends where a batch does (KAFKA-14619)"
            )
    assert values(alone) == {record.key: record.value for record in THREE}


def test_committed_bytes_that_are_no_records_take_the_node_offline() -> None:
    """A batch is copied by its CRC; what is inside is looked at when it is applied."""
    batch = bytearray(encode_batch([Record(b"value", b"key")], leader_epoch=5))
    batch[61:63] = b"\xff\xff"
    batch[17:21] = struct.pack(">I", google_crc32c.value(bytes(batch[21:])))
    alone = following(5)
    answer_fetch(alone, bytes(batch), 0)
    assert alone.node.failure is None and alone.node.replica.end == 1
    answer_fetch(alone, b"", 1)
    assert alone.node.failure is not None and "the batch at offset 0" in alone.node.failure
    assert values(alone) == {}


@pytest.mark.parametrize(("epoch", "taken"), [(4, True), (5, True), (6, False), (1 << 30, False)])
def test_a_batch_of_a_later_epoch_than_the_leaders_is_damage(epoch: int, taken: bool) -> None:
    """No CRC covers a batch's epoch (KAFKA-18723)."""
    alone = following(5)
    answer_fetch(alone, encode_batch(THREE, leader_epoch=epoch), 0)
    assert alone.node.failure is None and (alone.node.replica.end == 3) is taken
    alone.lead(6)
    assert alone.node.is_leader


def test_a_leader_does_not_keep_what_a_dead_voter_never_answers() -> None:
    rack = Rack(seed=2)
    rack.stop(0)
    leader = rack.elect()
    rack.run(10_000)
    assert len(leader.requests._waiting) <= 1, "the last BeginQuorumEpoch to voter 0"
    leader.resign()
    assert not leader.requests._waiting


def test_a_leader_does_not_keep_observers_that_ask_no_more() -> None:
    alone = led()
    leader = alone.node.role
    assert isinstance(leader, Leader)
    for observer in range(100, 200):
        fetch(alone, 1, 0, replica=observer)
    fetch(alone, 1, 0)
    alone.clock.advance(alone.config.fetch_timeout_ms)
    fetch(alone, 1, 0, replica=100)
    alone.node.fire(ADVANCE_BEGIN)
    assert len(leader.progress) == 102, "they have been given time"
    alone.clock.advance(1)
    alone.node.fire(ADVANCE_BEGIN)
    assert set(leader.progress) == {1, 2, 100} and leader._following == {1, 100}


def following(epoch: int) -> Alone:
    """A follower of node 1."""
    alone = Alone()
    alone.ask(BeginQuorumEpochRequest(CLUSTER_METADATA, epoch, 1))
    return alone


def answer_fetch(alone: Alone, records: bytes, high_watermark: int) -> None:
    """Let it fetch, and have node 1 answer."""
    alone.node.fire(FETCH)
    sent = alone.post.sent[-1]
    asked = sent.body
    assert isinstance(asked, QuorumFetchRequest)
    place = asked.fetch_offset, asked.last_fetched_epoch
    alone.answer(sent, QuorumFetchResponse(ErrorCode.NONE, alone.node.epoch, 1, *place, high_watermark, 0, records))


def test_an_observer_counts_for_nothing() -> None:
    alone = led()
    fetch(alone, 2, 0, replica=9)
    assert alone.node.replica.high_watermark == 0


def test_records_of_older_epochs_are_committed_only_with_one_of_the_leaders_own() -> None:
    alone = led(2)
    fetch(alone, 2, 0)
    assert alone.node.replica.high_watermark == 0
    fetch(alone, 3, 1)
    assert alone.node.replica.high_watermark == 3


def test_what_is_acknowledged_is_synced_and_so_is_what_is_committed() -> None:
    rack = Rack(seed=4)
    leader = rack.elect()
    follower = next(node for node in rack.nodes.values() if node is not leader)
    rack.put(leader, 3)
    while follower.replica.end < leader.replica.end:
        rack.step()
    end = follower.replica.end
    follower.fire(FETCH)
    assert follower.replica.log.recovery_point == end
    rack.run(200)
    assert leader.replica.log.recovery_point >= leader.replica.high_watermark


def test_a_follower_truncates_to_where_the_logs_part() -> None:
    rack = Rack(seed=5)
    first = rack.elect()
    rack.run(200)
    rack.network.isolate(first.address)
    rack.put(first, 4)
    lost = first.replica.end
    rack.stop(first.address)
    second = rack.elect()
    rack.put(second, 1, 50)
    rack.run(200)
    rack.network.heal()
    again = rack.start(first.address)
    assert again.replica.end == lost
    rack.run(3_000)
    assert again.state().epochs == second.state().epochs
    assert again.replica.applied == second.replica.high_watermark


def test_no_answer_cuts_below_the_high_watermark() -> None:
    rack = Rack(seed=6)
    leader = rack.elect()
    rack.run(300)
    follower = next(node for node in rack.nodes.values() if node is not leader)
    end = follower.replica.high_watermark
    assert end > 0
    assert not follower.replica.truncate(-1, 0)
    assert follower.replica.end == end
    rack.check()


def test_a_late_or_foreign_answer_of_fetch_is_dropped() -> None:
    rack = Rack(seed=6)
    leader = rack.elect()
    rack.run(300)
    follower = next(node for node in rack.nodes.values() if node is not leader)
    rack.put(leader, 1)
    follower.fire(FETCH)
    (sent,) = [
        each.envelope
        for each in rack.network.in_flight(source=follower.address)
        if isinstance(each.envelope.body, QuorumFetchRequest)
    ][-1:]
    request = sent.body
    assert isinstance(request, QuorumFetchRequest)
    named = OffsetAndEpoch(90, follower.epoch)
    wipe = QuorumFetchResponse(
        ErrorCode.NONE, follower.epoch, leader.address, request.fetch_offset, request.last_fetched_epoch, snapshot=named
    )
    before = follower.state()
    follower.receive(Envelope(leader.address, follower.address, sent.correlation - 1, wipe))
    assert follower.state() == before, "the answer to another request"
    changes: list[dict[str, Any]] = [{"fetch_offset": 0}, {"last_fetched_epoch": 5}, {"epoch": follower.epoch - 1}]
    for change in changes:
        follower.receive(Envelope(leader.address, follower.address, sent.correlation, replace(wipe, **change)))
        assert follower.state() == before, change
        follower.fire(FETCH)
        sent = replace(sent, correlation=follower.requests._correlation)
    follower.receive(Envelope(leader.address, follower.address, sent.correlation, wipe))
    assert follower.state().begin == 91


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("value", [None, "x", -5, 1 << 70, 1.5, (), b"", True])
def test_malformed_fields_get_invalid_request_and_change_nothing(request_: Any, value: object) -> None:
    for name in request_.__slots__:
        fits = (value is True and name == "snapshot_incomplete") or (value == () and name == "preferred_successors")
        if fits:
            continue
        alone = Alone()
        before = alone.node.state()
        answer = alone.ask(replace(request_, **{name: value}))
        assert answer.error is ErrorCode.INVALID_REQUEST, name
        assert alone.node.state() == before


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: type(each).__name__)
def test_another_partition_is_unknown(request_: Any) -> None:
    answer = Alone().ask(replace(request_, partition=TopicPartition("other", 0)))
    assert answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_node_whose_disk_fails_goes_offline_and_says_so() -> None:
    alone = led()
    files: SimulatedFiles = alone.files

    def failing(operation: str, path: str) -> None:
        if operation == "append":
            raise OSError(errno.EIO, "injected", path)

    files.hook = failing
    with pytest.raises(LogOffline):
        alone.node.append([Record(b"x")])
    assert alone.node.failure is not None
    assert alone.node.state().role == "offline"
    assert alone.node.deadline() is None
    files.hook = None
    for request in REQUESTS:
        for asked in (request, replace(request, partition=TopicPartition("other", 0))):
            answer = alone.ask(asked)
            # What its disk holds may be of a later epoch than the one that it knows of.
            assert (answer.error, answer.epoch, answer.leader) == (ErrorCode.KAFKA_STORAGE_ERROR, -1, -1)
    with pytest.raises(NotLeader):
        alone.node.append([Record(b"x")])


def test_what_cannot_be_appended_is_refused_and_the_node_goes_on() -> None:
    alone = led()
    with pytest.raises(InvalidAppend):
        alone.node.append([])
    assert alone.node.append([Record(b"y")]) == 2


def test_settings_that_no_node_can_run_with() -> None:
    for wrong in ({"voters": ()}, {"voters": (1, 1)}, {"voters": (-1,)}, {"fetch_max_bytes": 0}):
        with pytest.raises(ValueError, match=r"is below|are not different"):
            QuorumConfig(**{"voters": (0,), **wrong})  # type: ignore[arg-type]
    node = Alone().node
    with pytest.raises(KeyError):
        node.fire(("no-such-timer",))
