"""KIP-630's rules on snapshots, each by a case that is accepted and one that is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import CorruptBatch, CorruptLog, Record, StoredRecord, read_batches
from fencepost.impl.quorum import TOPIC_SETTINGS, KeyValueMachine, QuorumNode, SnapshotId, alter_topic_setting
from fencepost.impl.quorum.snapshots import SnapshotStore, batches_of, parse_name
from fencepost.impl.quorum.timers import CLEAN, GENERATE
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import Envelope
from fencepost.impl.wire.quorum import (
    DeleteRecordsRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    OffsetAndEpoch,
    QuorumFetchRequest,
    QuorumFetchResponse,
)
from prometheus_client.parser import text_string_to_metric_families

from .quorum_rack import SMALL, Rack

FOLDER = "__cluster_metadata-0"


def grown(records: int = 20, **changes: Any) -> tuple[Rack, QuorumNode]:
    """A quorum of three that has committed records, with snapshots where the settings have it; and its leader."""
    rack = Rack(seed=2, **changes)
    leader = rack.elect()
    for serial in range(records):
        rack.put(leader, 1, serial)
        rack.run(30)
    rack.run(400)
    assert rack.leader() is leader
    return rack, leader


def behind(rack: Rack, leader: QuorumNode) -> QuorumNode:
    """A voter that was down while the others went on past its end, and that has just come up."""
    address = next(node for node in rack.nodes if node != leader.address)
    rack.stop(address)
    for serial in range(100, 130):
        rack.put(leader, 1, serial)
        rack.run(50)
    rack.run(1_500)
    late = rack.start(address)
    assert leader.replica.begin > late.replica.end
    return late


def ask(node: QuorumNode, body: Any) -> Any:
    """A node's answer to a request, given by hand."""
    answers: list[Any] = []
    send = node.requests._transport.send
    node.requests._transport.send = lambda envelope: answers.append(envelope.body)  # type: ignore[method-assign]
    try:
        node.receive(Envelope(9, node.address, 1, body))
    finally:
        node.requests._transport.send = send  # type: ignore[method-assign]
    (answer,) = answers
    return answer


def fetch(node: QuorumNode, offset: int, last_epoch: int, replica: int = 9) -> QuorumFetchResponse:
    epoch = node.epoch
    body = QuorumFetchRequest(node.config.partition, replica, epoch, offset, last_epoch, 1 << 20, False)
    answer = ask(node, body)
    assert isinstance(answer, QuorumFetchResponse)
    return answer


def chunk(node: QuorumNode, snapshot: OffsetAndEpoch, position: int, **changes: int) -> FetchSnapshotResponse:
    epoch = changes.get("epoch", node.epoch)
    body = FetchSnapshotRequest(node.config.partition, 9, epoch, snapshot, position, changes.get("max_bytes", 50))
    answer = ask(node, body)
    assert isinstance(answer, FetchSnapshotResponse)
    return answer


def test_names_on_disk_have_the_end_offset_and_messages_the_last_one() -> None:
    snapshot = SnapshotId(5120794, 2)
    assert snapshot.file_name == "00000000000005120794-0000000002.checkpoint"
    assert parse_name(snapshot.file_name) == snapshot
    assert snapshot.in_messages == OffsetAndEpoch(5120793, 2)
    assert SnapshotId.from_message(snapshot.in_messages) == snapshot
    for name in ("5120794-2.checkpoint", snapshot.file_name + ".part", "leader-epoch-checkpoint"):
        assert parse_name(name) is None


@pytest.mark.parametrize(("records", "taken"), [(5, False), (6, True)])
def test_a_snapshot_is_taken_when_more_than_the_minimum_is_committed(records: int, taken: bool) -> None:
    rack = Rack(1, voters=(0,), leader_change_record=False)
    leader = rack.elect()
    rack.put(leader, records)
    rack.run(100)
    assert (leader.replica.snapshots.latest == SnapshotId(6, 0)) is taken


def test_no_snapshot_goes_past_the_high_watermark() -> None:
    rack, leader = grown(3)
    for other in set(rack.nodes) - {leader.address}:
        rack.network.isolate(other)
    rack.put(leader, 20, 50)
    leader.fire(GENERATE)
    assert leader.replica.snapshots.latest is None
    assert leader.replica.end > leader.replica.high_watermark + SMALL.snapshot_minimum_records


def test_the_leader_advances_its_lbo_to_a_snapshot_that_live_replicas_have_reached() -> None:
    rack, leader = grown(20)
    latest = leader.replica.snapshots.latest
    assert latest is not None
    assert leader.replica.begin == latest.end_offset
    for node in rack.nodes.values():
        assert 0 < node.replica.begin <= node.replica.snapshots.latest_end


def test_a_live_replica_that_lags_holds_the_lbo_back_for_max_replication_lag_ms() -> None:
    rack = Rack(4, seed=2, max_replication_lag_ms=5_000, fetch_timeout_ms=100_000)
    leader = rack.elect()
    rack.run(200)
    assert 3 in leader.role.progress, "the observer has fetched"  # type: ignore[union-attr]
    rack.network.isolate(3)
    rack.put(leader, 20)
    rack.run(3_000)
    assert leader.replica.snapshots.latest is not None
    assert leader.replica.begin == 0
    rack.run(3_000)
    assert leader.replica.begin > 0


def test_a_replica_that_is_not_alive_holds_nothing_back() -> None:
    rack = Rack(4, seed=2, max_replication_lag_ms=1_000_000)
    leader = rack.elect()
    rack.run(200)
    rack.stop(3)
    rack.put(leader, 20)
    rack.run(SMALL.fetch_timeout_ms + 500)
    assert leader.replica.begin > 0


def test_a_follower_takes_the_lbo_only_with_a_snapshot_of_its_own() -> None:
    _, leader = grown(20)
    replica = leader.replica
    latest = replica.snapshots.latest_end
    assert not replica.advance_begin(latest + 1)
    rack, leader = grown(3)
    follower = next(node for node in rack.nodes.values() if node is not leader)
    assert not follower.replica.advance_begin(1), "it has none"
    rack.put(leader, 20, 50)
    rack.run(100)
    assert follower.replica.snapshots.latest_end >= follower.replica.begin


def test_snapshots_below_lbo_minus_one_are_deleted_and_the_one_there_is_kept() -> None:
    rack, leader = grown(0, max_replication_lag_ms=1_000_000, fetch_timeout_ms=1_000_000)
    replica = leader.replica
    for node in rack.nodes.values():
        if node is not leader:
            rack.network.cut(node.address, leader.address, both=False)  # the leader learns of no progress any more
    replica.append([Record(b"v", b"k") for _ in range(9)], leader.epoch)
    for end in (3, 6, 9):
        replica.high_watermark = replica.applied = end
        replica.generate_snapshot()
    ids = replica.snapshots.ids
    assert [each.end_offset for each in ids] == [3, 6, 9]
    assert replica.delete_old_snapshots() == ()
    assert replica.advance_begin(6)
    assert [each.end_offset for each in replica.delete_old_snapshots()] == [3]
    leader.fire(CLEAN)
    names = [name for name in rack.disks[leader.address].list(FOLDER) if name.endswith(".checkpoint")]
    assert names == [each.file_name for each in ids[1:]]


def test_a_fetch_below_the_lbo_is_answered_with_the_latest_snapshot_and_where_to_go_on() -> None:
    _, leader = grown(20)
    latest = leader.replica.snapshots.latest
    assert latest is not None
    answer = fetch(leader, 0, -1)
    assert answer.snapshot == latest.in_messages
    assert answer.next_fetch == OffsetAndEpoch(latest.end_offset, latest.epoch)
    assert (answer.records, answer.diverging) == (b"", None)
    served = fetch(leader, leader.replica.end, leader.epoch)
    assert (served.error, served.snapshot, served.diverging) == (ErrorCode.NONE, None, None)


def test_a_fetch_at_the_lbo_is_served_only_if_the_leader_can_tell_the_epoch_before() -> None:
    _, leader = grown(20)
    replica = leader.replica
    at_snapshot = fetch(leader, replica.begin, leader.epoch)
    assert at_snapshot.snapshot is None, "a snapshot ends there"
    older = fetch(leader, replica.begin, leader.epoch - 1)
    assert older.snapshot is not None, "the record before is of another epoch than the leader's"
    for reach, served in ((6, True), (7, False)):
        rack = Rack(1, voters=(0,), leader_change_record=False, snapshot_minimum_records=100)
        rack.put(rack.elect(), 6)
        rack.nodes[0].resign()
        leader = rack.elect()
        if reach == 7:
            rack.put(leader, 1)
        leader.replica.generate_snapshot()
        assert ask(leader, DeleteRecordsRequest(leader.config.partition, 6)).error is ErrorCode.NONE
        answer = fetch(leader, 6, 0)
        assert (answer.error, answer.snapshot is None) == (ErrorCode.NONE, served), "epoch 0 is told by a snapshot at 6"
        rack.check()


def test_a_voter_that_fell_behind_wipes_and_fetches_log_and_snapshot() -> None:
    rack, leader = grown(3)
    late = behind(rack, leader)
    half = False
    while late.replica.end < leader.replica.end or late.replica.fetching is not None:
        rack.step()
        half |= late.replica.fetching is not None and late.replica.fetching.size > 0
    assert half, "the snapshot came in more than one piece"
    rack.run(500)
    leader_now = rack.leader()
    assert leader_now is not None
    assert late.replica.applied == leader_now.replica.high_watermark
    assert late.replica.machine.values == leader_now.replica.machine.values  # type: ignore[attr-defined]


def test_what_is_fetched_behind_half_a_snapshot_does_not_count() -> None:
    rack, leader = grown(3)
    epoch, end = leader.epoch, leader.replica.end
    for other in set(rack.nodes) - {leader.address}:
        rack.network.isolate(other)
    rack.put(leader, 1, 60)
    request = QuorumFetchRequest(leader.config.partition, (leader.address + 1) % 3, epoch, end + 1, epoch, 1, True)
    ask(leader, request)
    assert leader.replica.high_watermark == end
    ask(leader, replace(request, snapshot_incomplete=False))
    assert leader.replica.high_watermark == end + 1


def test_fetch_snapshot_by_position_and_size_with_continue() -> None:
    _, leader = grown(20)
    latest = leader.replica.snapshots.latest
    assert latest is not None
    size, data, position = leader.replica.snapshots.size(latest), b"", 0
    while True:
        answer = chunk(leader, latest.in_messages, position)
        assert (answer.error, answer.size, answer.position) == (ErrorCode.NONE, size, position)
        assert (answer.snapshot, answer.epoch) == (latest.in_messages, leader.epoch)
        assert len(answer.unaligned_records) <= 50
        data += answer.unaligned_records
        position += len(answer.unaligned_records)
        assert answer.continues is (position < size)
        if not answer.continues:
            break
    assert data == leader.replica.snapshots.read_at(latest, 0, size)
    at_end = chunk(leader, latest.in_messages, size)
    assert (at_end.error, at_end.unaligned_records, at_end.continues) == (ErrorCode.NONE, b"", False)


def test_the_errors_of_fetch_snapshot() -> None:
    rack, leader = grown(20)
    latest = leader.replica.snapshots.latest
    assert latest is not None
    named = latest.in_messages
    size = leader.replica.snapshots.size(latest)
    assert chunk(leader, named, size + 1).error is ErrorCode.POSITION_OUT_OF_RANGE
    assert chunk(leader, named._replace(offset=named.offset + 1), 0).error is ErrorCode.SNAPSHOT_NOT_FOUND
    assert chunk(leader, named._replace(epoch=named.epoch + 1), 0).error is ErrorCode.SNAPSHOT_NOT_FOUND
    assert chunk(leader, named, 0, epoch=leader.epoch - 1).error is ErrorCode.FENCED_REPLICA
    assert chunk(leader, named, 0, epoch=leader.epoch + 1).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    follower = next(node for node in rack.nodes.values() if node is not leader)
    assert chunk(follower, named, 0).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert chunk(leader, named, 0, max_bytes=0).error is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("change", "taken"),
    [
        ({}, True),
        ({"snapshot": OffsetAndEpoch(1, 0)}, False),
        ({"position": 1}, False),
        ({"epoch": -1}, False),
        ({"continues": False}, False),
    ],
)
def test_only_the_answer_to_the_request_in_hand_is_written(change: dict[str, Any], taken: bool) -> None:
    rack, leader = grown(3)
    late = behind(rack, leader)
    while late.replica.fetching is None:
        rack.step()
    for flight in rack.network.in_flight(destination=late.address):
        rack.network.drop(flight)
    late.fire(("fetch-snapshot",))
    sent = [each for each in rack.network.in_flight() if isinstance(each.envelope.body, FetchSnapshotRequest)][-1]
    for flight in rack.network.in_flight():
        rack.network.hold(flight)
    assert isinstance(sent.envelope.body, FetchSnapshotRequest)
    named, epoch = sent.envelope.body.snapshot, late.epoch
    right = FetchSnapshotResponse(ErrorCode.NONE, epoch, leader.address, named, 1_000, 0, True, b"abc")
    fields = {name: change.get(name, getattr(right, name)) for name in right.__slots__}
    answer = FetchSnapshotResponse(**fields)
    late.receive(Envelope(leader.address, late.address, sent.envelope.correlation, answer))
    assert late.replica.fetching is not None
    assert late.replica.fetching.size == (3 if taken else 0)
    late.receive(Envelope(leader.address, late.address, sent.envelope.correlation, right))
    assert late.replica.fetching.size == (3 if taken else 0), "it has its answer"


def test_in_a_new_epoch_half_a_snapshot_is_fetched_from_its_first_byte() -> None:
    rack, leader = grown(3)
    late = behind(rack, leader)
    while late.replica.fetching is None or late.replica.fetching.size == 0:
        rack.step()
    named = late.replica.fetching.id
    late.learn(late.epoch + 1, -1)
    assert (late.replica.fetching.id, late.replica.fetching.size) == (named, 0)


def test_a_snapshot_that_the_leader_has_no_more_is_rediscovered_with_an_empty_log() -> None:
    rack, leader = grown(3)
    late = behind(rack, leader)
    while late.replica.fetching is None:
        rack.step()
    gone = late.replica.fetching.id
    rack.put(leader, 1, 90)
    while leader.replica.applied <= gone.end_offset:
        rack.step()
    leader.replica.generate_snapshot()
    leader.replica.snapshots.delete([gone])
    resets = 0
    for _ in range(300):
        before = late.replica.end
        rack.step()
        resets += late.replica.end == 0 < before
    assert resets == 1
    assert late.state().fetching is None
    assert late.replica.snapshots.latest_end > gone.end_offset
    assert late.replica.end == leader.replica.end


def test_delete_records_goes_by_the_same_rules() -> None:
    rack, leader = grown(20, max_replication_lag_ms=1_000_000)
    partition, begin = leader.config.partition, leader.replica.begin
    covered = leader.replica.snapshots.latest_end
    past = ask(leader, DeleteRecordsRequest(partition, covered + 1))
    assert (past.error, past.low_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, begin)
    follower = next(node for node in rack.nodes.values() if node is not leader)
    assert ask(follower, DeleteRecordsRequest(partition, 1)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ask(leader, DeleteRecordsRequest(partition, begin)).error is ErrorCode.NONE
    rack.put(leader, SMALL.snapshot_minimum_records - (leader.replica.applied - covered), 50)
    rack.run(100)
    leader.replica.generate_snapshot()
    target = leader.replica.snapshots.latest_end - 1
    assert target > begin
    done = ask(leader, DeleteRecordsRequest(partition, target))
    assert (done.error, done.low_watermark) == (ErrorCode.NONE, target)
    rack.check()
    rack.network.isolate(follower.address)
    rack.put(leader, 3, 60)
    rack.run(100)
    leader.replica.generate_snapshot()
    lagging = ask(leader, DeleteRecordsRequest(partition, leader.replica.snapshots.latest_end))
    assert lagging.error is ErrorCode.REQUEST_TIMED_OUT
    assert lagging.low_watermark == leader.replica.begin < leader.replica.snapshots.latest_end


def test_a_log_without_its_snapshot_counts_as_empty_at_boot() -> None:
    rack, leader = grown(20)
    for number, gone in enumerate((False, True)):
        node = (leader.address + 1 + number) % 3
        ids, begin = rack.nodes[node].replica.snapshots.ids, rack.nodes[node].replica.begin
        assert begin > 0
        rack.crash(node, 1)
        if gone:
            for each in ids:
                rack.disks[node].remove(f"{FOLDER}/{each.file_name}")
        state = rack.start(node).state()
        assert rack.nodes[node].replica.counted_empty is gone
        assert state.begin == (0 if gone else begin)
        assert state.end == 0 if gone else state.end >= ids[-1].end_offset
        assert state.high_watermark == (0 if gone else ids[-1].end_offset), "no lower than the latest snapshot's end"


def test_partial_snapshots_are_removed_at_boot_and_damaged_ones_named() -> None:
    rack, leader = grown(20)
    latest = leader.replica.snapshots.latest
    assert latest is not None
    node = leader.address
    rack.stop(node)
    files: SimulatedFiles = rack.disks[node]
    files.open(f"{FOLDER}/{SnapshotId(99, 9).file_name}.part", create=True).append(b"half")
    rack.start(node)
    assert not any(name.endswith(".part") for name in files.list(FOLDER))
    rack.stop(node)
    files.open(f"{FOLDER}/{latest.file_name}").truncate(40)
    with pytest.raises(CorruptLog, match=latest.file_name):
        rack.start(node)


class Kept:
    """A ``SnapshotWriter`` that keeps the bytes."""

    id = SnapshotId(3_000, 1)

    def __init__(self) -> None:
        self.data = b""
        self.whole = False

    def append(self, data: bytes) -> None:
        self.data += data

    def finished(self) -> None:
        self.whole = True


def test_a_snapshot_larger_than_what_is_read_at_once_is_loaded_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of a kilobyte; no read is larger than a mebibyte, or than a batch."""
    machine, writer, store = KeyValueMachine(batch_records=300), Kept(), SnapshotStore(SimulatedFiles(1), "")
    machine.apply([StoredRecord(n, 1, bytes(1_000), b"%d" % n, 0, ()) for n in range(3_200)])
    machine.snapshot(writer)
    partial = store.begin(writer.id)
    partial.append(writer.data)
    reads: list[int] = []
    pread = type(partial.file).pread

    def counted(file: Any, position: int, length: int) -> bytes:
        data = pread(file, position, length)
        reads.append(len(data))
        return data

    monkeypatch.setattr(type(partial.file), "pread", counted)
    loaded = KeyValueMachine()
    loaded.load(writer.id, partial.file)
    assert writer.whole and loaded.values == machine.values
    assert len(writer.data) > 3 << 20 >= 3 * max(reads)
    assert [each.data for each in batches_of(partial.file, "")] == [each.data for each in read_batches(writer.data)]


@pytest.mark.parametrize("damage", [-1, 5, 8, 16, 30, 200])
def test_a_damaged_snapshot_is_named_as_if_it_were_read_at_once_and_changes_nothing(damage: int) -> None:
    """Cut by a byte, or a byte of the second batch is changed: in its offset, length, magic, CRC'd head, records."""
    machine, writer, store = KeyValueMachine(batch_records=10), Kept(), SnapshotStore(SimulatedFiles(1), "")
    machine.apply([StoredRecord(n, 1, b"value", b"%02d" % n, 0, ()) for n in range(30)])
    machine.snapshot(writer)
    second = len(next(read_batches(writer.data)).data)
    broken = bytearray(writer.data)
    if damage < 0:
        del broken[damage:]
    else:
        broken[second + damage] ^= 0x81
    partial = store.begin(writer.id)
    partial.append(bytes(broken))
    loaded = KeyValueMachine()
    loaded.values = {b"before": b"it"}
    with pytest.raises(CorruptBatch) as found:
        loaded.load(writer.id, partial.file)
    assert loaded.values == {b"before": b"it"}
    if damage != 5:  # an offset that is only in the wrong order is the machine's to notice
        with pytest.raises(CorruptBatch) as whole:
            list(read_batches(bytes(broken), writer.id.file_name))
        assert str(found.value) == str(whole.value)


def test_the_cleanup_policy_can_be_read_and_not_written() -> None:
    assert TOPIC_SETTINGS["cleanup.policy"] == ("snapshot", True)
    assert alter_topic_setting("cleanup.policy", "delete") is ErrorCode.INVALID_CONFIG
    assert alter_topic_setting("retention.ms", "1") is ErrorCode.INVALID_CONFIG
    assert alter_topic_setting("cleanup.policy", "snapshot") is ErrorCode.NONE


def test_the_three_metrics_in_prometheus_text_format() -> None:
    _, leader = grown(20)
    families = {each.name: each for each in text_string_to_metric_families(leader.metrics.text())}
    prefix = "kafka_controller_KafkaController_"
    assert set(families) == {prefix + n for n in ("GenSnapshotLatencyMs", "LoadSnapshotLatencyMs", "SnapshotSizeBytes")}
    latest = leader.replica.snapshots.latest
    assert latest is not None
    assert families[prefix + "SnapshotSizeBytes"].samples[0].value == leader.replica.snapshots.size(latest)
    counts = {each.name: each.value for each in families[prefix + "GenSnapshotLatencyMs"].samples}
    assert counts[prefix + "GenSnapshotLatencyMs_count"] >= 1
    loaded = {each.name: each.value for each in families[prefix + "LoadSnapshotLatencyMs"].samples}
    assert loaded[prefix + "LoadSnapshotLatencyMs_count"] == 0
