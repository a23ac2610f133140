"""Produce: acks, what waits for the high watermark, what is refused, and idempotent producers."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import google_crc32c
import pytest
from fencepost.impl.log import LogConfig, Record, encode_batch
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import FetchRequest, ProduceRequest, ProduceResponse, TopicPartition

from .brokers import CONFIG, TP, Cluster, records
from .test_log_batches import message

NONE = ErrorCode.NONE
GAP = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def led(isr: tuple[int, ...] = (0,), **settings: Any) -> Cluster:
    cluster = Cluster(config=replace(CONFIG, **settings))
    cluster.tell(0, cluster.request(0, 0, isr))
    return cluster


def send(cluster: Cluster, first: int, count: int = 1, *, node: int = 0, epoch: int = 0, acks: int = 1) -> Any:
    """A batch of producer 7 with sequences from ``first`` on."""
    values = [b"%d" % (first + n) for n in range(count)]
    return cluster.produce(node, *values, acks=acks, producer_id=7, producer_epoch=epoch, base_sequence=first)


# -- acks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("acks", "synced"), [(0, 0), (1, 2)])
def test_the_leader_alone_acknowledges(acks: int, synced: int) -> None:
    cluster = led((0, 1))
    answer = cluster.produce(0, b"a", b"b", acks=acks)
    assert answer == ProduceResponse(NONE, 0, 0)
    assert cluster.state(0).synced == synced and cluster.state(0).high_watermark == 0


def test_all_of_the_isr_acknowledge_each_in_its_turn() -> None:
    cluster = led((0, 1))
    waiting = []
    for value in (b"a", b"b", b"c"):
        assert cluster.produce(0, value, acks=-1) is None
        waiting.append(cluster.last)
    cluster.ask(0, FetchRequest(1, TP, 2, 1, 0))
    assert [cluster.answer_to(each) for each in waiting] == [ProduceResponse(NONE, n, 0) for n in range(2)] + [None]
    cluster.ask(0, FetchRequest(1, TP, 3, 1, 0))
    assert cluster.answer_to(waiting[2]) == ProduceResponse(NONE, 2, 0)
    assert cluster.state(0).waiting == 0


def test_what_waits_for_too_long_is_answered_and_stays_in_the_log() -> None:
    cluster = led((0, 1))
    for value in (b"a", b"b"):
        assert cluster.produce(0, value, acks=-1) is None
        cluster.network.clock.advance(1000)
    first, second = cluster.last - 1, cluster.last
    cluster.network.clock.advance(CONFIG.request_timeout_ms - 2000)
    cluster.brokers[0].wake()
    assert cluster.answer_to(first) == ProduceResponse(ErrorCode.REQUEST_TIMED_OUT)
    assert cluster.answer_to(second) is None and cluster.state(0).waiting == 1
    assert cluster.values(0) == b"ab"
    cluster.network.clock.advance(1000)
    cluster.brokers[0].fire(("produce", TP))
    assert cluster.answer_to(second) == ProduceResponse(ErrorCode.REQUEST_TIMED_OUT)
    cluster.ask(0, FetchRequest(1, TP, 2, 1, 0))
    assert cluster.state(0).high_watermark == 2


def test_a_small_isr_takes_nothing_that_all_must_have() -> None:
    cluster = led((0,), min_insync_replicas=2)
    before = cluster.snapshot(0)
    assert cluster.produce(0, b"a", acks=-1) == ProduceResponse(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert cluster.snapshot(0) == before
    assert cluster.produce(0, b"a", acks=1).error is NONE


def test_an_isr_that_shrinks_meanwhile_is_told() -> None:
    cluster = led((0, 1), min_insync_replicas=2)
    assert cluster.produce(0, b"a", acks=-1) is None
    cluster.tell(0, cluster.request(0, 0, [0], partition_epoch=1))
    assert cluster.answer_to(cluster.last - 1) == ProduceResponse(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1, 0)
    assert cluster.state(0).waiting == 0 and cluster.state(0).high_watermark == 1


def test_a_topic_has_a_minimum_of_its_own_from_when_its_broker_hears_of_it() -> None:
    cluster = led((0,))
    cluster.brokers[0].require_in_sync("another", 3)
    assert cluster.produce(0, b"a", acks=-1) == ProduceResponse(NONE, 0, 0)
    cluster.brokers[0].require_in_sync(TP.topic, 2)
    before = cluster.snapshot(0)
    assert cluster.produce(0, b"b", acks=-1) == ProduceResponse(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert cluster.snapshot(0) == before
    cluster.brokers[0].require_in_sync(TP.topic, None)
    assert cluster.produce(0, b"b", acks=-1) == ProduceResponse(NONE, 1, 0)
    with pytest.raises(ValueError, match=r"min\.insync\.replicas 0 is below 1"):
        cluster.brokers[0].require_in_sync(TP.topic, 0)


@pytest.mark.parametrize(("meanwhile", "error"), [(3, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND), (2, NONE)])
def test_what_waits_is_held_to_the_minimum_of_when_all_have_it(meanwhile: int, error: ErrorCode) -> None:
    cluster = led((0, 1), min_insync_replicas=1)
    assert cluster.produce(0, b"a", acks=-1) is None
    cluster.brokers[0].require_in_sync(TP.topic, meanwhile)
    assert cluster.state(0).waiting == 1
    asked = cluster.last
    cluster.ask(0, FetchRequest(1, TP, 1, 1, 0))
    assert cluster.answer_to(asked) == ProduceResponse(error, -1 if error else 0, 0)


def test_who_does_not_lead_takes_nothing() -> None:
    cluster = led()
    cluster.tell(1, cluster.request(0, 0, [0]))
    for node, error in ((1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)):
        before = cluster.snapshot(node)
        for acks in (-1, 0, 1):
            assert cluster.produce(node, b"a", acks=acks) == ProduceResponse(error)
        assert cluster.snapshot(node) == before


# -- bad requests -----------------------------------------------------------------------------------------------------

GOOD = records(b"a")
TORN = GOOD[:-1]
FLIPPED = GOOD[:-1] + bytes([GOOD[-1] ^ 1])


def recount(data: bytes, count: int) -> bytes:
    """A batch that says that it has ``count`` records, with the right CRC."""
    changed = data[:57] + struct.pack(">i", count) + data[61:]
    return changed[:17] + struct.pack(">I", google_crc32c.value(changed[21:])) + changed[21:]


def marked(data: bytes, attributes: int) -> bytes:
    """A batch with these attributes, and the right CRC."""
    changed = data[:21] + struct.pack(">h", attributes) + data[23:]
    return changed[:17] + struct.pack(">I", google_crc32c.value(changed[21:])) + changed[21:]


BAD: list[tuple[Any, Any, ErrorCode]] = [
    (2, GOOD, ErrorCode.INVALID_REQUIRED_ACKS),
    (-2, GOOD, ErrorCode.INVALID_REQUIRED_ACKS),
    (None, GOOD, ErrorCode.INVALID_REQUIRED_ACKS),
    (1, None, ErrorCode.INVALID_REQUEST),
    (1, b"", ErrorCode.INVALID_REQUEST),
    (1, b"no batch", ErrorCode.CORRUPT_MESSAGE),
    (1, TORN, ErrorCode.CORRUPT_MESSAGE),
    (1, FLIPPED, ErrorCode.CORRUPT_MESSAGE),
    (1, GOOD + FLIPPED, ErrorCode.CORRUPT_MESSAGE),
    (1, records(b"x" * 900), ErrorCode.MESSAGE_TOO_LARGE),
    (1, GOOD + records(b"x" * 900), ErrorCode.MESSAGE_TOO_LARGE),
    (1, GOOD * 30, ErrorCode.MESSAGE_TOO_LARGE),
    (1, message(0, b"a"), ErrorCode.INVALID_RECORD),
    (1, recount(GOOD, 2), ErrorCode.INVALID_RECORD),
    (1, marked(GOOD, 0x20), ErrorCode.INVALID_RECORD),
    (1, records(b"a", producer_id=-2), ErrorCode.INVALID_RECORD),
    (1, records(b"a", producer_id=1), ErrorCode.INVALID_RECORD),
    (1, records(b"a", producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD),
    (1, records(b"a", producer_id=1, base_sequence=0), ErrorCode.INVALID_RECORD),
    (1, records(b"a", producer_id=1, producer_epoch=0, base_sequence=0) + GOOD, ErrorCode.INVALID_RECORD),
]


@pytest.mark.parametrize(("acks", "data", "error"), BAD, ids=lambda value: str(value)[:40])
def test_a_bad_produce_changes_nothing(acks: Any, data: Any, error: ErrorCode) -> None:
    cluster = led(log=LogConfig(max_message_bytes=800), produce_max_bytes=2000)
    cluster.produce(0, b"before")
    before = cluster.snapshot(0)
    assert cluster.ask(0, ProduceRequest(TP, acks, data)) == ProduceResponse(error)
    assert cluster.snapshot(0) == before
    assert cluster.ask(0, ProduceRequest(TP, 1, GOOD * 2)) == ProduceResponse(NONE, 1, 0)


def test_a_segment_bounds_a_batch_too() -> None:
    cluster = led(log=LogConfig(segment_bytes=300))
    assert cluster.produce(0, b"x" * 300).error is ErrorCode.MESSAGE_TOO_LARGE
    assert cluster.produce(0, b"x" * 200).error is NONE


# -- idempotent producers ---------------------------------------------------------------------------------------------


def test_a_repeat_is_answered_with_its_place_and_not_appended() -> None:
    cluster = led()
    offsets = [send(cluster, first, 2).base_offset for first in range(0, 14, 2)]
    assert offsets == list(range(0, 14, 2))
    before = cluster.snapshot(0)
    for first in range(4, 14, 2):
        assert send(cluster, first, 2) == ProduceResponse(NONE, first, 0)
    for first in (0, 2):
        assert send(cluster, first, 2) == ProduceResponse(ErrorCode.DUPLICATE_SEQUENCE_NUMBER), "older than five"
    assert send(cluster, 12, 1).error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER, "another batch with that number"
    assert send(cluster, 15).error is GAP
    assert cluster.snapshot(0) == before
    assert send(cluster, 14).base_offset == 14


def test_a_repeat_waits_for_the_high_watermark_as_the_first_did() -> None:
    cluster = led((0, 1))
    assert send(cluster, 0, acks=-1) is None
    assert send(cluster, 0, acks=-1) is None
    assert cluster.state(0).end == 1 and cluster.state(0).waiting == 2
    cluster.ask(0, FetchRequest(1, TP, 1, 1, 0))
    assert cluster.answer_to(cluster.last - 1) == cluster.answer_to(cluster.last - 2) == ProduceResponse(NONE, 0, 0)
    assert send(cluster, 0, acks=-1) == ProduceResponse(NONE, 0, 0)


def test_a_repeat_with_acks_1_is_synced_before_it_is_answered() -> None:
    cluster = led((0, 1))
    send(cluster, 0, acks=0)
    assert cluster.state(0).synced == 0
    assert send(cluster, 0, acks=1) == ProduceResponse(NONE, 0, 0)
    assert cluster.state(0).synced == 1


def test_each_epoch_of_a_producer_begins_at_0_and_ends_the_one_before() -> None:
    cluster = led()
    assert send(cluster, 1).error is GAP, "its first batch was lost or is late"
    assert send(cluster, 0).error is NONE
    assert send(cluster, 1, epoch=1).error is GAP
    assert send(cluster, 0, epoch=1).base_offset == 1
    before = cluster.snapshot(0)
    assert send(cluster, 1, epoch=0).error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert cluster.snapshot(0) == before
    assert send(cluster, 1, epoch=1).base_offset == 2


def test_producers_do_not_meet() -> None:
    cluster = led()
    for producer in (1, 2, 3):
        answer = cluster.produce(0, b"x", producer_id=producer, producer_epoch=0, base_sequence=0)
        assert answer.base_offset == producer - 1
    cluster.produce(0, b"unnumbered")
    assert cluster.produce(0, b"y", producer_id=2, producer_epoch=0, base_sequence=1).base_offset == 4


def test_sequences_go_around() -> None:
    cluster = led()
    cluster.elect(0, 1, [0])
    log = cluster.brokers[0].partitions[TP].log
    last = (1 << 31) - 1
    batch = encode_batch([Record(b"x")], producer_id=7, producer_epoch=0, base_sequence=last)
    log.append_batches_as_leader(batch, 1)
    assert send(cluster, 1).error is GAP
    assert send(cluster, 0).base_offset == 1
    assert send(cluster, last).base_offset == 0


def test_a_producer_whose_records_were_deleted_goes_on() -> None:
    cluster = led()
    for first in range(3):
        send(cluster, first)
    cluster.brokers[0].partitions[TP].log.delete_before(3)
    cluster.crash(0)
    cluster.elect(0, 1, [0])
    assert send(cluster, 3).base_offset == 3


@pytest.mark.parametrize("restart", [False, True])
def test_a_new_leader_knows_the_repeats_of_its_predecessors(restart: bool) -> None:
    cluster = Cluster()
    cluster.elect(0, 0)
    for first in range(3):
        send(cluster, first)
    cluster.fetch_all(1, 2)
    if restart:
        cluster.crash(1)
    cluster.elect(1, 1)
    assert send(cluster, 2, node=1) == ProduceResponse(NONE, 2, 0)
    assert send(cluster, 4, node=1).error is GAP
    assert send(cluster, 3, node=1).base_offset == 3
    cluster.fetch_all(0)
    cluster.elect(0, 2)
    assert send(cluster, 3) == ProduceResponse(NONE, 3, 0)
    assert cluster.state(0).end == 4


def test_what_a_truncation_takes_away_was_never_sent() -> None:
    """The old leader has checked batches that nobody else has; led again, it must take them anew."""
    cluster = Cluster()
    cluster.elect(0, 0)
    send(cluster, 0)
    cluster.fetch_all(1, 2)
    send(cluster, 1)
    assert send(cluster, 1) == ProduceResponse(NONE, 1, 0)
    cluster.elect(1, 1)
    assert cluster.state(0).end == 1
    cluster.produce(1, b"other")
    cluster.fetch_all(0, 2)
    cluster.elect(0, 2)
    assert send(cluster, 1).base_offset == 2
    assert cluster.values(0) == b"0other1"


@pytest.mark.parametrize(
    "partition", [TopicPartition("nowhere", 0), None, ("orders", 0), TopicPartition("orders", None)]
)
def test_a_produce_to_nowhere(partition: Any) -> None:
    cluster = led()
    before = cluster.snapshot(0)
    answer = cluster.ask(0, ProduceRequest(partition, 1, GOOD))
    known = type(partition) is TopicPartition and partition.partition == 0
    assert answer.error is (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.INVALID_REQUEST)
    assert cluster.snapshot(0) == before
