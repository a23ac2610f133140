"""The producer: batches, what it does with each answer, and real brokers on a bad network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.impl.log import Codec, Record, read_batches
from fencepost.impl.net import Faults, SimulatedNetwork
from fencepost.impl.producer import (
    BufferExhausted,
    Delivery,
    PartitionFailed,
    Producer,
    ProducerConfig,
    RecordTooLarge,
)
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    BROKER_PRINCIPAL,
    Envelope,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)

from .brokers import TP, Asker
from .rack import Rack

CLIENT = -200
CONFIG = ProducerConfig(brokers=(0, 1), producer_id=7, address=CLIENT, request_timeout_ms=500, retry_backoff_ms=50)
NONE = ErrorCode.NONE
GAP = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class Scripted:
    """A producer and brokers 0 and 1, whose answers the test gives."""

    def __init__(self, **settings: Any) -> None:
        self.network = SimulatedNetwork()
        for address in (0, 1):
            self.network.attach(Asker(address))
        self.producer = Producer(self.network, self.network.clock, replace(CONFIG, **settings))
        self.network.attach(self.producer)

    def send(self, *values: bytes) -> list[Delivery]:
        return [self.producer.send(TP, Record(value)) for value in values]

    def wake(self, milliseconds: int = 0) -> None:
        self.network.clock.advance(milliseconds)
        self.producer.wake()

    def requests(self, kind: type = ProduceRequest) -> list[Envelope]:
        """The requests of a kind that are on their way; they are taken off it."""
        flights = [f for f in self.network.in_flight(source=CLIENT) if isinstance(f.envelope.body, kind)]
        for flight in flights:
            self.network.drop(flight)
        return [flight.envelope for flight in flights]

    def answer(self, request: Envelope, error: ErrorCode = NONE, base_offset: int = -1) -> None:
        self.reply(request, ProduceResponse(error, base_offset))

    def reply(self, request: Envelope, body: Any, source: int | None = None) -> None:
        sender = request.destination if source is None else source
        self.producer.receive(Envelope(sender, CLIENT, request.correlation, body, BROKER_PRINCIPAL))

    def knows(self, leader: int, epoch: int = 0) -> int:
        """Answer the request for metadata that is on its way; gives who was asked."""
        (request,) = self.requests(MetadataRequest)
        self.reply(request, MetadataResponse(NONE, leader, epoch))
        return request.destination

    def sent(self) -> list[tuple[int, int, bytes]]:
        """Destination, first sequence and values of each produce on its way."""
        return [content(request) for request in self.requests()]


def content(request: Envelope) -> tuple[int, int, bytes]:
    body = request.body
    assert isinstance(body, ProduceRequest) and body.acks == -1
    (batch,) = read_batches(body.records)
    assert (batch.producer_id, batch.producer_epoch) == (7, 0)
    return request.destination, batch.base_sequence, b"".join(record.value or b"" for record in batch.records())


def leading(**settings: Any) -> Scripted:
    """Broker 0 leads, and the first batch, ``a``, is acknowledged."""
    there = Scripted(**settings)
    (first,) = there.send(b"a")
    there.wake()
    there.knows(0)
    there.wake(there.producer.config.linger_ms)
    (request,) = there.requests()
    there.answer(request, base_offset=0)
    assert first.offset == 0 and first.error is NONE and there.producer.pending == there.producer.buffered == 0
    return there


def three(there: Scripted) -> list[Envelope]:
    """Three batches of one record on their way at once."""
    for value in (b"b", b"c", b"d"):
        there.send(value)
        there.wake()
    requests = there.requests()
    assert [content(request) for request in requests] == [(0, 1, b"b"), (0, 2, b"c"), (0, 3, b"d")]
    return requests


# -- batches ----------------------------------------------------------------------------------------------------------


def test_records_of_one_moment_go_in_one_batch_and_each_learns_its_offset() -> None:
    there = leading()
    deliveries = there.send(b"b", b"c", b"d")
    assert there.producer.deadline() == 0 and there.producer.pending == 3
    there.wake()
    (request,) = there.requests()
    assert content(request) == (0, 1, b"bcd")
    assert not any(each.done for each in deliveries)
    there.answer(request, base_offset=10)
    assert [each.offset for each in deliveries] == [10, 11, 12] and all(each.error is NONE for each in deliveries)
    assert there.producer.deadline() is None


def test_a_batch_waits_for_linger_or_until_it_is_full() -> None:
    there = leading(linger_ms=20, batch_bytes=300)
    there.send(b"b")
    there.wake(19)
    assert there.sent() == [] and there.producer.deadline() == 40
    there.wake(1)
    assert there.sent() == [(0, 1, b"b")]
    there.send(b"x" * 150, b"y" * 150)
    there.wake()
    assert there.sent() == [(0, 2, b"x" * 150)], "no record is split, and none added beyond batch_bytes"


def test_a_record_gets_the_present_time_and_the_batch_its_codec() -> None:
    there = leading(codec=Codec.LZ4)
    there.network.clock.advance(5)
    there.producer.send(TP, Record(b"b" * 400))
    there.producer.send(TP, Record(b"b" * 400, timestamp=3))
    there.wake()
    (request,) = there.requests()
    (batch,) = read_batches(request.body.records)  # type: ignore[union-attr]
    assert [record.timestamp for record in batch.records()] == [there.network.clock.wall(), 3]
    assert batch.codec == Codec.LZ4 and batch.size < 200


def test_the_first_batch_of_all_goes_alone_and_no_more_than_five_later() -> None:
    """A log that knows nothing of the producer any more takes any sequence: nothing may overtake the first."""
    there = Scripted(batch_bytes=1)
    there.send(*(b"%d" % n for n in range(8)))
    there.wake()
    assert there.producer.deadline() == 500
    assert there.knows(1) == 0
    (first,) = there.requests()
    assert content(first) == (1, 0, b"0")
    there.answer(first, base_offset=0)
    assert [sequence for _, sequence, _ in there.sent()] == [1, 2, 3, 4, 5]


# -- answers ----------------------------------------------------------------------------------------------------------


def test_what_the_leader_lacks_the_predecessor_of_goes_again_when_it_is_the_first() -> None:
    there = leading()
    one, two, last = three(there)
    there.answer(two, GAP)
    there.answer(last, GAP)
    there.wake(400)
    assert there.sent() == [] and there.requests(MetadataRequest) == []
    there.answer(one, base_offset=1)
    assert there.sent() == [(0, 2, b"c")]


def test_a_leader_that_changed_gets_everything_in_order_after_the_metadata() -> None:
    there = leading()
    requests = three(there)
    for request in reversed(requests):
        there.answer(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert there.sent() == [] and there.requests(MetadataRequest) == []
    there.wake(49)
    assert there.requests(MetadataRequest) == []
    there.wake(1)
    assert there.knows(1, 1) == 1, "the next broker is asked"
    assert there.sent() == [(1, 1, b"b"), (1, 2, b"c"), (1, 3, b"d")]


@pytest.mark.parametrize("error", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS, GAP])
def test_what_may_pass_is_tried_again(error: ErrorCode) -> None:
    there = leading()
    (delivery,) = there.send(b"b")
    there.wake()
    there.answer(there.requests()[0], error)
    there.wake(50)
    there.knows(0)
    (request,) = there.requests()
    assert content(request) == (0, 1, b"b") and not delivery.done
    there.answer(request, base_offset=4)
    assert delivery.offset == 4


def test_no_answer_counts_as_none_and_a_late_one_too() -> None:
    there = leading()
    (delivery,) = there.send(b"b")
    there.wake()
    (lost,) = there.requests()
    there.wake(500)
    there.answer(lost, base_offset=9)
    assert not delivery.done
    there.wake(50)
    (metadata,) = there.requests(MetadataRequest)
    there.wake(500)
    there.reply(metadata, MetadataResponse(NONE, 1, 1))
    there.wake()
    assert there.knows(0) == 0, "another broker"
    (request,) = there.requests()
    for nothing in (MetadataResponse(NONE, 1, 1), None):
        there.reply(request, nothing)
    there.reply(request, ProduceResponse(NONE, 3), source=1)
    assert not delivery.done
    there.answer(request, base_offset=2)
    there.answer(request, base_offset=7)
    assert delivery.offset == 2


def test_metadata_that_is_older_or_names_nobody_is_not_believed() -> None:
    there = leading()
    there.send(b"b")
    there.wake()
    there.answer(there.requests()[0], ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for leader, epoch, error in ((0, 5, NONE), (1, 4, NONE), (-1, 6, ErrorCode.LEADER_NOT_AVAILABLE), (1, 6, NONE)):
        there.wake(50)
        (request,) = there.requests(MetadataRequest)
        there.reply(request, MetadataResponse(error, leader, epoch))
        sent = [each[0] for each in there.sent()]
        assert sent == ([leader] if error is NONE and epoch != 4 else [])
        if epoch == 5:
            there.wake(500)


def test_what_no_leader_will_take_fails_the_partition_and_all_that_follows() -> None:
    there = leading()
    one, two, last = three(there)
    (later,) = there.send(b"e")
    there.answer(one, base_offset=1)
    assert there.sent() == [(0, 4, b"e")]
    there.answer(last, ErrorCode.INVALID_PRODUCER_EPOCH)
    there.answer(two, base_offset=2)
    assert later.error is ErrorCode.INVALID_PRODUCER_EPOCH and there.producer.pending == there.producer.buffered == 0
    with pytest.raises(PartitionFailed, match=r"orders-0: .*INVALID_PRODUCER_EPOCH.*; take producer epoch 1"):
        there.send(b"f")
    assert there.producer.send(TP._replace(partition=1), Record(b"x")).error is None, "the others go on"
    there.producer.wake()
    assert there.sent() == []


def test_what_is_not_delivered_in_time_is_given_up() -> None:
    there = leading(delivery_timeout_ms=1000)
    (delivery,) = there.send(b"b")
    for _ in range(3):
        there.wake(400)
    assert delivery.error is ErrorCode.REQUEST_TIMED_OUT
    assert there.producer.deadline() is None


def test_too_much_and_too_large() -> None:
    there = leading(max_request_bytes=1000, buffer_bytes=1500)
    with pytest.raises(RecordTooLarge, match="orders-0: a record of 1036 bytes, max_request_bytes is 1000; split it"):
        there.send(b"x" * 1000)
    there.send(b"x" * 800)
    with pytest.raises(BufferExhausted, match="orders-0: 836 bytes wait already"):
        there.send(b"x" * 800)
    assert there.producer.pending == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"brokers": ()},
        {"principal": BROKER_PRINCIPAL},
        {"producer_id": -1},
        {"producer_epoch": 1 << 15},
        {"max_in_flight": 6},
        {"max_in_flight": 0},
        {"linger_ms": -1},
        {"batch_bytes": 0},
        {"request_timeout_ms": 0},
    ],
)
def test_settings_that_no_producer_can_run_with(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        replace(CONFIG, **settings)


# -- real brokers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_flight", [1, 5])
@pytest.mark.parametrize("seed", range(4))
def test_every_record_is_in_the_log_once_and_in_order(seed: int, in_flight: int) -> None:
    """Messages are lost, repeated and overtaken; the leader changes twice. Fails where a batch is sent anew with other
    sequence numbers, and where one that was refused as out of order is taken for delivered."""
    rack = Rack(seed, faults=Faults((1, 40), loss=0.1, duplication=0.2))
    rack.start_all()
    config = replace(CONFIG, brokers=(0, 1, 2), max_in_flight=in_flight, batch_bytes=200, delivery_timeout_ms=1 << 30)
    producer = Producer(rack.net, rack.net.clock, config)
    rack.net.attach(producer)
    deliveries = [producer.send(TP, Record(b"%d" % n)) for n in range(180)]
    for part in (60, 120, 180):
        rack.net.run(lambda part=part: producer.pending <= 180 - part, budget=400_000)  # type: ignore[misc]
        if part < 180:
            rack.net.run(rack.whole, budget=400_000)
            rack.controller.elect_leader(TP, part // 60)
    rack.net.run(rack.whole, budget=400_000)
    rack.net.faults = Faults()
    rack.net.run(rack.net.clock.now() + 1000, budget=400_000)
    rows = [rack.rows(node, TP) for node in range(3)]
    assert [value for _, value in rows[0]] == [b"%d" % n for n in range(180)]
    assert rows[0] == rows[1] == rows[2]
    assert [each.offset for each in deliveries] == list(range(180))
    assert rack.net.counts.reordered > 20 and rack.net.counts.duplicated > 50
