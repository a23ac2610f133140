"""What a leader answers to replicas and to consumers: Fetch, OffsetsForLeaderEpoch, ListOffsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.impl.log import Record, encode_batch, read_batches
from fencepost.impl.replica.fetch import is_truncated
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    CONSUMER,
    EARLIEST,
    LATEST,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
)

from .brokers import TP, Cluster, records
from .test_log_batches import message

NONE = ErrorCode.NONE
FENCED = ErrorCode.FENCED_REPLICA
UNKNOWN = ErrorCode.UNKNOWN_LEADER_EPOCH
TRUNCATED = ErrorCode.LOG_TRUNCATION
RANGE = ErrorCode.OFFSET_OUT_OF_RANGE
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def led(isr: tuple[int, ...] = (0,)) -> Cluster:
    """Replica 0 leads epoch 5 after epochs 1 (offsets 0 to 2) and 3 (offsets 3 and 4), with 5 at 5."""
    cluster = Cluster()
    for epoch, values in ((1, b"abc"), (3, b"de"), (5, b"f")):
        cluster.elect(0, epoch, isr if epoch == 5 else (0,))
        for value in values:
            cluster.produce(0, bytes([value]))
    return cluster


def fetch(replica: int, offset: int, epoch: int, last: int = -1, max_bytes: int = 1 << 20) -> FetchRequest:
    return FetchRequest(replica, TP, offset, max_bytes, epoch, last)


def values(answer: FetchResponse) -> bytes:
    return b"".join(record.value or b"" for batch in read_batches(answer.records) for record in batch.records())


# -- replicas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replica", "offset", "epoch", "error"),
    [
        (1, 0, 4, FENCED),
        (1, 0, -1, FENCED),
        (1, 0, 6, UNKNOWN),
        (1, 99, 4, FENCED),
        (3, 0, 5, NOT_LEADER),
        (0, 0, 5, NOT_LEADER),
        (1, 7, 5, RANGE),
        (1, -1, 5, RANGE),
        (1, 1 << 62, 5, RANGE),
    ],
)
def test_a_replicas_fetch_is_refused_and_changes_nothing(
    replica: int, offset: int, epoch: int, error: ErrorCode
) -> None:
    cluster = led((0, 1))
    before = cluster.snapshot(0)
    answer = cluster.ask(0, fetch(replica, offset, epoch))
    assert answer == FetchResponse(error, log_start_offset=0, leader_epoch=5)
    assert cluster.snapshot(0) == before


def test_a_replica_below_the_log_start_is_told_where_it_is() -> None:
    cluster = led()
    cluster.brokers[0].partitions[TP].log.delete_before(2)
    before = cluster.snapshot(0)
    assert cluster.ask(0, fetch(1, 1, 5)) == FetchResponse(RANGE, log_start_offset=2, leader_epoch=5)
    assert cluster.snapshot(0) == before


def test_a_replica_gets_whole_batches_beyond_the_high_watermark() -> None:
    cluster = led((0, 1))
    assert cluster.state(0).high_watermark == 5
    answer = cluster.ask(0, fetch(1, 3, 5, max_bytes=1))
    assert (answer.error, values(answer), answer.high_watermark, answer.leader_epoch) == (NONE, b"d", 5, 5)
    assert values(cluster.ask(0, fetch(1, 3, 5))) == b"def"
    assert cluster.state(0).progress == ((1, 3), (2, -1)) and cluster.state(0).high_watermark == 5
    answer = cluster.ask(0, fetch(1, 6, 5))
    assert (answer.error, answer.records, answer.high_watermark) == (NONE, b"", 6)
    assert cluster.state(0).progress == ((1, 6), (2, -1))


def test_nobody_but_the_leader_answers() -> None:
    cluster = led()
    cluster.tell(2, cluster.request(0, 6))  # truncating
    for node in (1, 2):
        before = cluster.snapshot(node)
        for body in (fetch(CONSUMER, 0, -1), fetch(2, 0, 5), fetch(2, 0, 6)):
            assert cluster.ask(node, body) == FetchResponse(NOT_LEADER)
        for replica in (CONSUMER, 2):
            body = OffsetsForLeaderEpochRequest(replica, TP, 5, 1)
            assert cluster.ask(node, body) == OffsetsForLeaderEpochResponse(NOT_LEADER)
        assert cluster.ask(node, ListOffsetsRequest(TP, LATEST)) == ListOffsetsResponse(NOT_LEADER)
        assert cluster.snapshot(node) == before


@pytest.mark.parametrize(("epoch", "error"), [(4, FENCED), (-1, FENCED), (5, NONE), (6, UNKNOWN)])
def test_a_replicas_question_for_an_epochs_end_is_fenced(epoch: int, error: ErrorCode) -> None:
    """KIP-320, "Replica Handling": "it is possible to truncate using the log of a leader with stale log state"."""
    cluster = led()
    before = cluster.snapshot(0)
    answer = cluster.ask(0, OffsetsForLeaderEpochRequest(1, TP, epoch, 1))
    found = (1, 3) if error is NONE else (-1, -1)
    assert answer == OffsetsForLeaderEpochResponse(error, *found, answering_epoch=5)
    assert cluster.ask(0, OffsetsForLeaderEpochRequest(7, TP, 5, 1)).error is NOT_LEADER
    assert cluster.snapshot(0) == before


# -- consumers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "seen", "last", "error"),
    [
        (3, -1, -1, NONE),  # the sentinel skips every check
        (3, 5, 1, NONE),
        (3, 2, 1, NONE),  # a consumer is not fenced by an older epoch
        (2, 5, 1, NONE),
        (6, 5, 5, NONE),
        (5, 5, 3, NONE),
        (4, 5, 1, TRUNCATED),  # epoch 3 begins at 3, below 4
        (6, 5, 3, TRUNCATED),
        (9, 5, 3, TRUNCATED),
        (3, 5, 2, TRUNCATED),  # the log has no epoch 2 (the silent gap, H1)
        (6, 5, 4, TRUNCATED),
        (0, 5, 0, TRUNCATED),
        (3, 6, 1, UNKNOWN),
        (3, -1, 6, UNKNOWN),
        (99, 6, 1, UNKNOWN),
        (7, -1, -1, RANGE),
        (7, 5, 5, RANGE),
        (-1, -1, -1, RANGE),
    ],
)
def test_a_consumers_position_is_validated(offset: int, seen: int, last: int, error: ErrorCode) -> None:
    """KIP-320, "Leader Fetch Handling", as ``kip-320-mended`` of the model has it."""
    cluster = led()
    before = cluster.snapshot(0)
    answer = cluster.ask(0, fetch(CONSUMER, offset, seen, last))
    assert (answer.error, answer.leader_epoch) == (error, 5)
    assert (values(answer) == b"abcdef"[offset:]) if error is NONE else (answer.records == b"")
    assert cluster.snapshot(0) == before


def test_an_epoch_without_a_record_is_not_held() -> None:
    cluster = led()
    cluster.elect(0, 7, (0,))
    log = cluster.brokers[0].partitions[TP].log
    assert is_truncated(log, 7, 6, 7), "nobody can have fetched a record of it"
    assert not is_truncated(log, 7, 6, 5)


def test_what_is_deleted_is_out_of_range_and_no_truncation() -> None:
    """KIP-320, "Consumer Handling": that is the case in which an offset is out of range."""
    cluster = led()
    cluster.brokers[0].partitions[TP].log.delete_before(3)
    for offset, last, error in ((2, 1, RANGE), (3, 1, NONE), (3, -1, NONE), (4, 1, TRUNCATED), (2, -1, RANGE)):
        assert cluster.ask(0, fetch(CONSUMER, offset, 5, last)).error is error, (offset, last)


def test_a_consumer_gets_nothing_above_the_high_watermark() -> None:
    cluster = led((0, 1))
    assert cluster.state(0).high_watermark == 5
    assert values(cluster.ask(0, fetch(CONSUMER, 0, -1))) == b"abcde"
    for offset in (5, 6):
        answer = cluster.ask(0, fetch(CONSUMER, offset, 5))
        assert (answer.error, answer.records, answer.high_watermark) == (NONE, b"", 5)
    assert (
        cluster.ask(0, fetch(CONSUMER, 1, -1, max_bytes=1)).records
        == cluster.ask(0, fetch(1, 1, 5, max_bytes=1)).records
    )


@pytest.mark.parametrize(
    ("asked", "found"),
    [(1, (1, 3)), (2, (1, 3)), (3, (3, 5)), (4, (3, 5)), (5, (5, 6)), (6, (-1, -1)), (0, (-1, 0)), (-1, (-1, -1))],
)
def test_a_consumer_learns_where_an_epoch_ends(asked: int, found: tuple[int, int]) -> None:
    """The epoch in the answer is that of the record before the offset: the two are a position (U5)."""
    cluster = led()
    for seen in (-1, 2, 5):
        answer = cluster.ask(0, OffsetsForLeaderEpochRequest(CONSUMER, TP, seen, asked))
        assert answer == OffsetsForLeaderEpochResponse(NONE, *found, answering_epoch=5)
    answer = cluster.ask(0, OffsetsForLeaderEpochRequest(CONSUMER, TP, 6, asked))
    assert answer == OffsetsForLeaderEpochResponse(UNKNOWN, answering_epoch=5)
    assert cluster.ask(0, OffsetsForLeaderEpochRequest(1, TP, 5, 0)).leader_epoch == 0, "a replica: as in Kafka"


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (EARLIEST, (0, -1, -1)),
        (LATEST, (4, 3, -1)),
        (0, (0, -1, 10)),
        (11, (1, 1, 20)),
        (20, (1, 1, 20)),
        (40, (-1, -1, -1)),
    ],
)
def test_an_offset_comes_with_the_epoch_of_the_record_before_it(timestamp: int, found: tuple[int, int, int]) -> None:
    """KIP-320, "ListOffsets" (U6): a consumer names it in its first fetch."""
    cluster = Cluster()
    cluster.elect(0, 1, (0,))
    cluster.ask(0, ProduceRequest(TP, 1, encode_batch([Record(b"a", timestamp=10), Record(b"b", timestamp=20)])))
    cluster.elect(0, 3, (0,))
    cluster.ask(0, ProduceRequest(TP, 1, records(b"c", timestamp=15)))
    cluster.ask(0, ProduceRequest(TP, 1, records(b"d", timestamp=30)))
    cluster.elect(0, 4, (0, 1))
    cluster.ask(0, ProduceRequest(TP, 1, records(b"e", timestamp=50)))
    assert cluster.state(0).high_watermark == 4
    offset, epoch, at = found
    for seen in (-1, 2, 4):
        answer = cluster.ask(0, ListOffsetsRequest(TP, timestamp, seen))
        assert answer == ListOffsetsResponse(NONE, offset, epoch, at, answering_epoch=4)
    assert cluster.ask(0, ListOffsetsRequest(TP, timestamp, 5)) == ListOffsetsResponse(UNKNOWN, answering_epoch=4)


def test_after_a_deletion_the_first_offset_has_no_epoch_before_it() -> None:
    cluster = led()
    cluster.brokers[0].partitions[TP].log.delete_before(4)
    assert cluster.ask(0, ListOffsetsRequest(TP, EARLIEST)) == ListOffsetsResponse(NONE, 4, -1, answering_epoch=5)
    assert cluster.ask(0, ListOffsetsRequest(TP, 0)).offset == 4


def test_records_without_epochs_are_served_unchecked() -> None:
    """KIP-320, "Compatibility": the sentinel where the message format knows no epoch."""
    cluster = Cluster()
    cluster.tell(0, cluster.request(1, 0))
    log = cluster.brokers[0].partitions[TP].log
    log.append_as_follower(message(0, b"a") + message(1, b"b"))
    assert not is_truncated(log, 0, 1, 0), "no cache, no check"
    cluster.elect(0, 1, (0,))
    answer = cluster.ask(0, fetch(CONSUMER, 1, 1))
    assert values(answer) == b"b" and log.read(1)[0].records()[0].leader_epoch == -1
    assert cluster.ask(0, ListOffsetsRequest(TP, LATEST)) == ListOffsetsResponse(NONE, 2, -1, answering_epoch=1)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"max_bytes": 0}, ErrorCode.INVALID_REQUEST),
        ({"max_bytes": -5}, ErrorCode.INVALID_REQUEST),
        ({"max_bytes": (55 << 20) + 1}, ErrorCode.INVALID_REQUEST),
        ({"max_bytes": None}, ErrorCode.INVALID_REQUEST),
        ({"replica_id": -2}, ErrorCode.INVALID_REQUEST),
        ({"replica_id": "1"}, ErrorCode.INVALID_REQUEST),
        ({"current_leader_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": 1.0}, ErrorCode.INVALID_REQUEST),
        ({"fetch_offset": 1 << 63}, ErrorCode.INVALID_REQUEST),
        ({"fetch_offset": None}, ErrorCode.INVALID_REQUEST),
        ({"fetch_offset": 0.5}, ErrorCode.INVALID_REQUEST),
        ({"partition": TP._replace(partition=1)}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": TP._replace(topic="")}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": TP._replace(partition=-1)}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": None}, ErrorCode.INVALID_REQUEST),
    ],
    ids=str,
)
def test_a_malformed_fetch_changes_nothing(change: dict[str, Any], error: ErrorCode) -> None:
    cluster = led((0, 1))
    before = cluster.snapshot(0)
    for body in (fetch(CONSUMER, 1, 5, 1), fetch(1, 1, 5)):
        assert cluster.ask(0, replace(body, **change)) == FetchResponse(error)
    assert cluster.snapshot(0) == before


@pytest.mark.parametrize(
    "body",
    [
        OffsetsForLeaderEpochRequest(-2, TP, 5, 1),
        OffsetsForLeaderEpochRequest(CONSUMER, TP, -2, 1),
        OffsetsForLeaderEpochRequest(CONSUMER, TP, 5, -2),
        OffsetsForLeaderEpochRequest(CONSUMER, TP, 5, None),  # type: ignore[arg-type]
        ListOffsetsRequest(TP, -7),
        ListOffsetsRequest(TP, LATEST, -2),
        ListOffsetsRequest(TP, "now"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_a_malformed_question_changes_nothing(body: Any) -> None:
    cluster = led()
    before = cluster.snapshot(0)
    assert cluster.ask(0, body).error is ErrorCode.INVALID_REQUEST
    assert cluster.ask(0, replace(body, partition=TP._replace(topic="else"))).error is ErrorCode.INVALID_REQUEST
    assert cluster.snapshot(0) == before
