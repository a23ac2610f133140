"""Replicas that clean by themselves, over the simulated network: logs never disagree, and all end in the same state."""

from __future__ import annotations

import random
import struct

import pytest
from fencepost.impl.compaction import CleanerConfig, Kind, Strategy
from fencepost.impl.compaction.retention import Retention
from fencepost.impl.consumer.fetched import read_steps
from fencepost.impl.log import LogConfig, Record, StoredRecord, encode_batch
from fencepost.impl.replica import BrokerConfig
from fencepost.impl.replica.broker import CLEANER
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import CONSUMER, FetchRequest, ProduceRequest

from .brokers import TP, Cluster
from .compacted import STRATEGIES, draw, naive, settings, table_of

TIMESTAMP = Strategy(Kind.TIMESTAMP)


def config(strategy: Strategy, segment_bytes: int = 400) -> BrokerConfig:
    return BrokerConfig(
        log=LogConfig(segment_bytes=segment_bytes, index_interval_bytes=0),
        replica_lag_time_max_ms=100,
        isr_interval_ms=50,
        compacted={TP.topic: settings(strategy, segment_ms=1 << 40)},
        cleaner=CleanerConfig(dedupe_buffer_bytes=4096),
    )


def log(cluster: Cluster, node: int):  # type: ignore[no-untyped-def]
    return cluster.brokers[node].partitions[TP].log


def send(cluster: Cluster, node: int, *records: Record, **producer: int):  # type: ignore[no-untyped-def]
    return cluster.ask(node, ProduceRequest(TP, 1, encode_batch(records, **producer)))


def clean(cluster: Cluster, node: int) -> None:
    """Close the active segment, and let the cleaner's timer run off until it finds nothing."""
    log(cluster, node).roll()
    for _ in range(3):
        cluster.brokers[node].fire(CLEANER)


def records(cluster: Cluster, node: int) -> list[StoredRecord]:
    return list(log(cluster, node).records(log(cluster, node).log_start))


def the_texts_divergence() -> tuple[Cluster, StoredRecord, StoredRecord]:
    """KIP-280's example: a, b, c, d; follower 2 has all, 3 lacks d; d is compacted away, 3 leads and appends e.

    By timestamp d loses to a. Gives what followers 1 and 2 (the text's 2 and 3) have of e.
    """
    cluster = Cluster(3, config(TIMESTAMP))
    cluster.elect(0, 1)
    for key, timestamp in ((b"x", 9), (b"y", 1), (b"z", 1)):
        send(cluster, 0, Record(b"v", key, timestamp))
    cluster.fetch_all(1, 2)
    send(cluster, 0, Record(b"d", b"x", 5))
    cluster.fetch_all(1)
    leader = cluster.brokers[0].partitions[TP]
    leader.set_high_watermark(4)  # as if follower 2 had left the ISR
    clean(cluster, 0)
    assert [each.offset for each in records(cluster, 0)] == [0, 1, 2] and log(cluster, 0).end == 4
    cluster.fetch_all(2)
    cluster.elect(2, 2, isr=[1, 2], nodes=[1, 2])
    assert send(cluster, 2, Record(b"e", b"e", 0)).error is ErrorCode.NONE
    cluster.fetch_all(1)
    found = [next(each for each in records(cluster, node) if each.value == b"e") for node in (1, 2)]
    return cluster, found[0], found[1]


def test_the_texts_divergence_cannot_happen() -> None:
    cluster, here, there = the_texts_divergence()
    assert here == there and here.offset == 4
    cluster.elect(2, 3)
    cluster.fetch_all(0)
    assert records(cluster, 0)[-1] == here
    assert [each.offset for each in records(cluster, 2)] == [0, 1, 2, 4]


def test_an_offset_is_given_twice_where_the_last_batch_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Follower 3 never sees that there was an offset 3, and gives e what a consumer has read d at.

    The text lets follower 2 keep its d there, and so the logs diverge. That was so before KIP-101: by leader epochs, it
    truncates d, and the logs agree on what a consumer behind d never reads.
    """
    monkeypatch.setattr(Retention, "_empty", lambda _self, _batch: [])
    _, here, there = the_texts_divergence()
    assert here == there and here.offset == 3


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: each.kind.value)
def test_replicas_never_disagree(strategy: Strategy) -> None:
    """Random produces, fetches, cleanings by whoever, elections and crashes; leaders come out of the ISR."""
    for seed in range(8):
        chance = random.Random(seed)
        cluster = Cluster(3, config(strategy))
        leader, epoch = 0, 1
        cluster.elect(leader, epoch)
        written: dict[int, StoredRecord] = {}
        for step in range(60):
            move = chance.random()
            if move < 0.35:
                drawn = [draw(chance, step, 0) for _ in range(chance.randint(1, 3))]
                refused = [_refused(each, strategy) for each in drawn]
                answer = send(cluster, leader, *drawn)
                assert answer.error is (ErrorCode.INVALID_RECORD if any(refused) else ErrorCode.NONE)
                if not any(refused):
                    for n, each in enumerate(drawn):
                        at = answer.base_offset + n
                        written[at] = StoredRecord(at, epoch, each.value, each.key, each.timestamp, each.headers)
            elif move < 0.55:
                cluster.fetch_all(*[node for node in range(3) if node != leader and chance.random() < 0.7])
            elif move < 0.8:
                clean(cluster, chance.randrange(3))
            elif move < 0.88:
                cluster.fetch_all(*[node for node in range(3) if node != leader])
                leader, epoch = chance.randrange(3), epoch + 1
                cluster.elect(leader, epoch)
            elif move < 0.95:
                cluster.fetch_all(*[node for node in range(3) if node != leader])
                node = chance.randrange(3)
                cluster.crash(node, seed * 100 + step)
                leader, epoch = chance.randrange(3), epoch + 1
                cluster.elect(leader, epoch)
            cluster.network.clock.advance(chance.choice((0, 1, 60)))
            for node in range(3):
                for each in records(cluster, node):
                    assert written[each.offset] == each, (seed, step, node)
        cluster.fetch_all(*[node for node in range(3) if node != leader])
        end = log(cluster, leader).end
        expected = {k: each.value for k, each in naive(written.values(), strategy).items() if each.value is not None}
        for node in range(3):
            assert log(cluster, node).end == end, seed
            assert table_of(records(cluster, node), strategy) == expected, (seed, node)
            clean(cluster, node)
            assert table_of(records(cluster, node), strategy) == expected, (seed, node)


def _refused(record: Record, strategy: Strategy) -> bool:
    found = [value for name, value in record.headers if name == "version"]
    return strategy.kind is Kind.HEADER and bool(found) and (found[-1] is None or len(found[-1]) != 8)


def test_a_header_that_is_no_int64_is_an_invalid_record() -> None:
    cluster = Cluster(1, config(Strategy(Kind.HEADER, "version")))
    cluster.elect(0, 1)
    for headers, error in (
        ((("version", b"1234567"),), ErrorCode.INVALID_RECORD),
        ((("version", None),), ErrorCode.INVALID_RECORD),
        ((("version", struct.pack(">q", 1)),), ErrorCode.NONE),
        ((), ErrorCode.NONE),
    ):
        assert send(cluster, 0, Record(b"v", b"k", 0, headers)).error is error
    assert send(cluster, 0, Record(b"v")).error is ErrorCode.INVALID_RECORD  # no key
    assert log(cluster, 0).end == 2


def test_a_consumer_goes_through_the_holes() -> None:
    """From any position it gets what follows, and its position moves past what was compacted."""
    cluster = Cluster(1, config(TIMESTAMP))
    cluster.elect(0, 1)
    for number in range(40):
        send(cluster, 0, Record(b"%d" % number, b"k%d" % (number % 3), 1000 - number))
    clean(cluster, 0)
    kept = [each.offset for each in records(cluster, 0)]
    assert kept[:3] == [0, 1, 2] and len(kept) < 5
    for start in range(41):
        position, seen = start, []
        while position < 40:
            answer = cluster.ask(0, FetchRequest(CONSUMER, TP, position, 200, -1))
            steps = read_steps(TP, answer.records, position)
            assert steps and steps[-1].next_offset > position
            seen += [step.record.offset for step in steps if step.record is not None]
            position = steps[-1].next_offset
        assert seen == [offset for offset in kept if offset >= start]


def test_a_repeat_is_known_after_cleaning_and_a_failover() -> None:
    """The last five batches of a producer stay, if empty: the log is all that a new leader knows producers by."""
    cluster = Cluster(2, config(Strategy()))
    cluster.elect(0, 1)
    batches = []
    for number in range(12):
        sent = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number}
        batches.append(sent)
        assert send(cluster, 0, Record(b"%d" % number, b"k", number), **sent).error is ErrorCode.NONE
    cluster.fetch_all(1)
    clean(cluster, 0)
    clean(cluster, 1)
    assert [each.offset for each in records(cluster, 1)] == [11]
    cluster.elect(1, 2)
    end = log(cluster, 1).end
    for number in range(7, 12):
        answer = send(cluster, 1, Record(b"%d" % number, b"k", number), **batches[number])
        assert answer.error is ErrorCode.NONE and answer.base_offset == number
    assert send(cluster, 1, Record(b"5", b"k", 5), **batches[5]).error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    assert log(cluster, 1).end == end


def test_a_follower_that_comes_late_copies_the_cleaned_log() -> None:
    cluster = Cluster(2, config(TIMESTAMP))
    cluster.elect(0, 1)
    for number in range(60):
        send(cluster, 0, Record(b"%d" % number, b"k%d" % (number % 4), number * 7 % 11))
    cluster.brokers[0].partitions[TP].set_high_watermark(60)
    clean(cluster, 0)
    assert len(records(cluster, 0)) < 8
    cluster.fetch_all(1)
    assert records(cluster, 1) == records(cluster, 0) and log(cluster, 1).end == log(cluster, 0).end == 60
    cluster.crash(1, 5)
    assert records(cluster, 1) == records(cluster, 0)


@pytest.mark.parametrize("position", [2, 3, 4])
def test_no_truncation_is_told_of_where_an_epoch_was_compacted_away(position: int) -> None:
    """A follower that copies a cleaned log knows no epoch of which no batch is left: nothing there was truncated."""
    cluster = Cluster(2, config(Strategy()))
    cluster.elect(0, 1)
    send(cluster, 0, Record(b"1", b"a"))
    cluster.elect(0, 2, nodes=[0])
    for key in (b"b", b"c", b"d"):
        send(cluster, 0, Record(b"2", key))
    cluster.elect(0, 3, nodes=[0])
    for key in (b"b", b"c", b"d"):
        send(cluster, 0, Record(b"3", key))
    cluster.brokers[0].partitions[TP].set_high_watermark(7)
    clean(cluster, 0)
    assert [each.offset for each in records(cluster, 0)] == [0, 4, 5, 6]
    cluster.elect(0, 4)
    cluster.fetch_all(1)
    assert [epoch for epoch, _ in cluster.state(1).epochs] == [1, 3]
    cluster.elect(1, 5)
    answer = cluster.ask(1, FetchRequest(CONSUMER, TP, position, 200, 5, last_fetched_epoch=2))
    assert answer.error is ErrorCode.NONE
    found = [step.record.offset for step in read_steps(TP, answer.records, position) if step.record]
    assert found[:1] == [4]
    told = cluster.ask(1, FetchRequest(CONSUMER, TP, 5, 200, 5, last_fetched_epoch=2))
    assert told.error is ErrorCode.LOG_TRUNCATION  # offset 4 is there, in epoch 3


@pytest.mark.parametrize("lags", [True, False])
def test_a_follower_that_lags_too_long_keeps_what_a_tombstone_has_deleted(lags: bool) -> None:
    """By timestamp a tombstone beats what is written after it, and each cleaner goes by its own log (P2).

    A follower that has copied that record before the tombstone's time is over keeps the tombstone until it is gone.
    """
    cluster = Cluster(2, config(TIMESTAMP))
    cluster.elect(0, 1)

    def copy() -> None:
        cluster.fetch_all(1)
        cluster.fetch_all(1)  # the high watermark comes with the next answer

    send(cluster, 0, Record(b"other", b"x", 1), Record(None, b"k", 9))
    copy()
    clean(cluster, 1)
    send(cluster, 0, Record(b"other", b"y", 1))
    copy()
    send(cluster, 0, Record(b"late", b"k", 5))
    if not lags:
        copy()
    cluster.network.clock.advance(200)  # delete.retention.ms is 100
    clean(cluster, 1)
    assert [each.value for each in records(cluster, 1)] == (
        [b"other", b"other"] if lags else [b"other", None, b"other"]
    )
    copy()
    clean(cluster, 0)
    clean(cluster, 1)
    left = {b"x": b"other", b"y": b"other"}
    assert table_of(records(cluster, 0), TIMESTAMP) == left
    assert table_of(records(cluster, 1), TIMESTAMP) == (left | {b"k": b"late"} if lags else left)
