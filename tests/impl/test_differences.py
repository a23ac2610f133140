"""What ``specs/DEVIATIONS.md`` says of our brokers (N) and quorum nodes (Q) where Apache Kafka does otherwise."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import CorruptLog, LogConfig, Record, encode_batch
from fencepost.impl.quorum import CLUSTER_METADATA, SnapshotId
from fencepost.impl.quorum.timers import ELECTION, FETCH
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    CONSUMER,
    LATEST,
    FetchRequest,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    StopReplicaRequest,
)
from fencepost.impl.wire.quorum import (
    BeginQuorumEpochRequest,
    FetchSnapshotRequest,
    OffsetAndEpoch,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
    VoteResponse,
)

from . import controlled
from .brokers import CONFIG, TP, Cluster
from .test_quorum_elections import Alone, vote
from .twin import KEY, open_directory

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def led(epoch: int = 5, isr: tuple[int, ...] = (0,)) -> Cluster:
    """Replica 0 leads this epoch and has a record of it; replica 1 follows."""
    cluster = Cluster(2)
    cluster.elect(0, epoch, isr)
    cluster.produce(0, b"a")
    return cluster


@pytest.mark.parametrize("epoch", [4, 5, 6])
def test_n1_the_role_is_looked_at_before_the_epoch(epoch: int) -> None:
    follower = led()
    for body in (
        FetchRequest(0, TP, 0, 100, epoch),
        FetchRequest(CONSUMER, TP, 0, 100, epoch),
        OffsetsForLeaderEpochRequest(0, TP, epoch, 1),
        ListOffsetsRequest(TP, LATEST, epoch),
    ):
        assert follower.ask(1, body).error is NOT_LEADER


def test_n2_a_last_fetched_epoch_above_the_leaders_is_unknown() -> None:
    assert led().ask(0, FetchRequest(CONSUMER, TP, 1, 100, -1, 6)).error is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_n3_an_unknown_replica_is_not_told_to_wait() -> None:
    assert led().ask(0, FetchRequest(7, TP, 0, 100, 5)).error is NOT_LEADER


def test_n4_a_fenced_follower_asks_again() -> None:
    cluster = led()
    cluster.elect(0, 6, nodes=[0])
    for _ in range(3):
        answer = cluster.exchange(1)
        assert answer.error is ErrorCode.FENCED_REPLICA  # type: ignore[union-attr]
        at = cluster.brokers[1]._runtime.timers.get(("fetch", TP))
        assert at == cluster.network.clock.now() + cluster.config.replica_fetch_backoff_ms
    cluster.elect(0, 6, nodes=[1])
    cluster.fetch_all(1)
    assert cluster.rows(1) == cluster.rows(0)


def test_n5_a_high_watermark_that_lags_behind_the_epoch_is_the_latest_offset() -> None:
    cluster = led(isr=(0, 1))
    cluster.fetch_all(1)
    cluster.elect(1, 6, (0, 1), nodes=[1])
    cluster.produce(1, b"b")
    state = cluster.state(1)
    assert state.epochs[-1] == (6, 1)
    cluster.brokers[1].partitions[TP].set_high_watermark(0)  # it has not heard of the last commit
    answer = cluster.ask(1, ListOffsetsRequest(TP, LATEST))
    assert (answer.error, answer.offset) == (ErrorCode.NONE, 0)


def test_n6_the_high_watermark_rises_below_the_minimum_isr() -> None:
    cluster = Cluster(2, replace(CONFIG, min_insync_replicas=2))
    cluster.elect(0, 5, [0])
    assert cluster.produce(0, b"a", acks=-1).error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.produce(0, b"a", acks=1).error is ErrorCode.NONE
    assert cluster.state(0).high_watermark == 1


def test_n7_a_log_without_its_first_segment_is_refused() -> None:
    files = SimulatedFiles(1)
    directory = open_directory(files, LogConfig(segment_bytes=100))
    log = directory.log(*KEY)
    for number in range(4):
        log.append_as_leader([Record(b"%d" % number)], 0)
    directory.close()
    files.remove("orders-0/00000000000000000000.log")
    with pytest.raises(CorruptLog, match="log starts at 0"):
        open_directory(files).log(*KEY)


def test_n8_a_follower_all_of_whose_records_are_deleted_begins_with_the_batch_at_the_log_start() -> None:
    """Its last record is of an epoch that the leader has no record of any more, so nobody says where to cut."""
    cluster = Cluster(2)
    for node, epoch, values in ((0, 0, b"ab"), (1, 0, b"ab"), (1, 1, b"x")):
        assert cluster.tell(node, cluster.request(node, epoch)) is ErrorCode.NONE
        for value in values:
            assert cluster.produce(node, bytes([value])).error is ErrorCode.NONE
    assert cluster.tell(0, cluster.request(0, 2, [0])) is ErrorCode.NONE
    batch = encode_batch([Record(b"c"), Record(b"d")])
    assert cluster.ask(0, ProduceRequest(TP, 1, batch)).error is ErrorCode.NONE
    cluster.brokers[0].partitions[TP].log.delete_before(3)
    assert cluster.tell(1, cluster.request(0, 2, [0])) is ErrorCode.NONE
    cluster.truncate(1)
    assert (cluster.state(1).log_start, cluster.state(1).end, cluster.state(1).epochs) == (0, 3, ((0, 0), (1, 2)))
    cluster.fetch_all(1)
    leader, follower = cluster.state(0), cluster.state(1)
    assert (follower.log_start, follower.end, follower.high_watermark) == (3, 4, 4) and leader.log_start == 3
    assert cluster.rows(1) == cluster.rows(0) and cluster.values(1) == b"d"
    assert follower.epochs == leader.epochs == ((2, 3),)
    state = cluster.crash(1).state(TP)
    assert (state.log_start, state.end, state.epochs) == (3, 4, ((2, 3),))


def test_n9_who_asks_where_an_epoch_ends_names_the_topic_and_a_replica_is_stopped_by_it() -> None:
    cluster = Cluster(2)
    for node in (0, 1):
        assert cluster.tell(node, cluster.request(0, 0, topic_id=UUID(int=1))) is ErrorCode.NONE
    cluster.brokers[1].fire(("fetch", TP))
    asks = cluster.sent(1).envelope.body
    assert isinstance(asks, OffsetsForLeaderEpochRequest) and asks.topic_id == UUID(int=1)
    for body in (replace(asks, topic_id=UUID(int=2)), StopReplicaRequest(1, TP, UUID(int=2))):
        assert cluster.ask(0, body).error is ErrorCode.INCONSISTENT_TOPIC_ID
    assert cluster.state(0).topic_id == UUID(int=1)


def test_n10_the_name_of_a_deleted_topic_is_free_before_its_replicas_are_gone() -> None:
    cluster = controlled.Cluster()
    topic = cluster.state.topic_id
    cluster.controller.mark_offline(2)
    cluster.controller.delete_topic(controlled.TP.topic)
    assert cluster.controller.create_partition(controlled.TP, (0, 1, 2)).topic_id != topic
    assert [set(brokers) for brokers in cluster.controller.deleted.values()] == [{0, 1, 2}]


def test_q1_the_last_offset_of_a_vote_is_inclusive_and_an_empty_log_has_none() -> None:
    alone = Alone()
    alone.node.fire(ELECTION)
    alone.lead(2)
    assert alone.node.replica.end == 1
    alone.node.resign()
    alone.node.fire(ELECTION)
    asked = [
        (each.body.last_epoch, each.body.last_offset) for each in alone.post.sent if type(each.body) is VoteRequest
    ]
    assert asked[0] == (-1, -1) and asked[-1] == (2, 0)
    assert Alone().ask(vote(1)).granted


def test_q2_a_position_at_the_snapshots_end_is_answered_with_no_bytes() -> None:
    alone = Alone()
    alone.lead(1)
    ask = QuorumFetchRequest(CLUSTER_METADATA, 1, 1, 1, 1, 100, False)
    assert alone.ask(ask).high_watermark == 1
    alone.node.replica.generate_snapshot()
    assert alone.node.replica.snapshots.latest == SnapshotId(1, 1)
    size = alone.node.replica.snapshots.size(SnapshotId(1, 1))
    for position, error in ((size, ErrorCode.NONE), (size + 1, ErrorCode.POSITION_OUT_OF_RANGE)):
        answer = alone.ask(FetchSnapshotRequest(CLUSTER_METADATA, 1, 1, OffsetAndEpoch(0, 1), position, 100))
        assert (answer.error, answer.unaligned_records, answer.continues) == (error, b"", False)


def test_q3_a_follower_cuts_to_0_where_the_leader_knows_no_epoch_of_its_own() -> None:
    leader = Alone()
    leader.lead(5)
    answer = leader.ask(QuorumFetchRequest(CLUSTER_METADATA, 1, 5, 1, 3, 100, False))
    assert answer.diverging == OffsetAndEpoch(0, -1)
    follower = Alone()
    follower.ask(BeginQuorumEpochRequest(CLUSTER_METADATA, 5, 1))
    follower.node.replica.log.append_as_follower(encode_batch([Record(b"x")], leader_epoch=3))
    follower.node.fire(FETCH)
    sent = follower.post.sent[-1]
    follower.answer(sent, QuorumFetchResponse(ErrorCode.NONE, 5, 1, 1, 3, diverging=answer.diverging))
    assert follower.node.replica.end == 0


@pytest.mark.parametrize("role", ["leader", "candidate", "follower"])
def test_q4_who_starts_knows_no_leader_and_has_its_vote(role: str) -> None:
    alone = Alone()
    if role == "follower":
        alone.ask(vote(3))
        alone.ask(BeginQuorumEpochRequest(CLUSTER_METADATA, 3, 1))
    elif role == "leader":
        alone.lead(3)
    else:
        alone.node.fire(ELECTION)
    before = alone.node.state()
    assert before.role == role
    after = Alone(files=alone.files.crashed_copy(1)).node.state()
    assert (after.role, after.leader) == ("unattached", -1)
    assert (after.epoch, after.voted) == (before.epoch, before.voted) and before.voted >= 0


def test_q5_only_voters_vote() -> None:
    refused = VoteResponse(ErrorCode.INCONSISTENT_VOTER_SET, -1, -1)
    assert Alone(node=7).ask(vote(1)) == Alone().ask(vote(1, candidate=7), source=7) == refused


def test_every_row_has_a_test_and_every_test_a_row() -> None:
    text = (Path(__file__).parents[2] / "specs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([NQ]\d+) \|", text, re.MULTILINE)
    tests = [name.split("_")[1].upper() for name in globals() if re.match(r"test_[nq]\d+_", name)]
    assert rows == tests and len(rows) == 15
