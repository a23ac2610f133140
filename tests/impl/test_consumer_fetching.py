"""A consumer's fetches: what it names in them, what it makes of each answer, what it ignores, and how it retries."""

from __future__ import annotations

import pytest
from fencepost.impl.consumer import (
    Consumer,
    ConsumerConfig,
    NotAssignedError,
    OffsetAndMetadata,
    Outcome,
    ResetPolicy,
)
from fencepost.impl.log import Record, encode_batch
from fencepost.impl.net import SimulatedNetwork
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    Envelope,
    FetchRequest,
    FetchResponse,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    TopicPartition,
)

from .leaders import TP, Reader, at, cluster, fetches, reading, values

# -- what a fetch names ----------------------------------------------------------------------------------------------


def test_consecutive_fetches_name_the_last_epoch_and_the_one_that_served() -> None:
    _, leader, reader = reading()
    positions = []
    for _ in range(4):
        reader.step()
        positions.append(at(reader))
    assert positions == [(1, 1, 2), (2, 1, 2), (3, 2, 2), (4, 2, 2)]
    named = [(r.fetch_offset, r.last_fetched_epoch, r.current_leader_epoch) for r in fetches(leader)]
    assert named == [(0, -1, -1), (1, 1, 2), (2, 1, 2), (3, 2, 2)]
    assert all(request.replica_id == -1 and request.max_bytes == 1 for request in fetches(leader))


def test_fetch_after_a_seek_into_the_middle_names_no_epoch() -> None:
    _, leader, reader = reading()
    reader.step()
    reader.consumer.seek(TP, 3)
    assert at(reader) == (3, -1, -1)
    assert reader.step() == ["d2"]
    assert fetches(leader)[-1] == FetchRequest(-1, TP, 3, 1, -1, -1)
    assert at(reader) == (4, 2, 2)


def test_seek_with_an_epoch_is_checked() -> None:
    _, leader, reader = reading()
    reader.consumer.seek(TP, OffsetAndMetadata(3, 2, 2))
    assert reader.step() == ["d2"]
    assert fetches(leader)[-1] == FetchRequest(-1, TP, 3, 1, 2, 2)


def test_a_leader_older_than_the_last_record_is_told_so_even_without_a_serving_epoch() -> None:
    """A commit of Kafka's own has no serving epoch: then the leader must be no older than the record."""
    _, leader, reader = reading()
    reader.consumer.seek(TP, OffsetAndMetadata(3, 4))
    reader.step()
    assert fetches(leader)[-1].current_leader_epoch == 4
    assert reader.consumer.state(TP).outcome is Outcome.UNKNOWN_LEADER_EPOCH


def test_an_empty_answer_changes_nothing() -> None:
    _, leader, reader = reading()
    reader.consumer.seek(TP, 4)
    before = reader.consumer.state(TP)
    assert reader.step() == []
    assert reader.consumer.state(TP) == before
    assert len(fetches(leader)) == 1


def test_records_carry_their_epoch_and_all_else() -> None:
    _, leader, reader = reading()
    headers = (("h", b"1"), ("n", None))
    leader.log.append_as_leader([Record(b"v", b"k", 1234, headers)], 2)
    leader.hw = leader.log.end
    reader.consumer.advance(TP)
    reader.deliver()
    records = reader.consumer.take(TP)
    assert [(r.topic, r.partition, r.offset, r.leader_epoch) for r in records] == [
        ("orders", 0, offset, epoch) for offset, epoch in enumerate([1, 1, 2, 2, 2])
    ]
    assert records[-1][4:] == (1234, b"k", b"v", headers)


def test_one_byte_gives_one_batch_and_the_first_may_begin_below() -> None:
    _, leader, reader = reading()
    leader.log.append_as_leader([Record(b"e"), Record(b"f"), Record(b"g")], 2)
    leader.hw = leader.log.end
    reader.consumer.seek(TP, 5)
    assert reader.step() == ["f", "g"]
    assert at(reader) == (7, 2, 2)


def test_nothing_above_the_high_watermark_is_read() -> None:
    _, leader, reader = reading()
    leader.hw = 1
    assert reader.poll() == ["a1"]
    assert at(reader) == (1, 1, 2)


# -- poll ------------------------------------------------------------------------------------------------------------


def test_poll_reads_everything_with_nothing_but_polls() -> None:
    _, (leader, other), reader = cluster(2, reset_policy=ResetPolicy.EARLIEST)
    leader.lead(3)
    leader.write(*"abcdef")
    leader.metadata = other.metadata = MetadataResponse(ErrorCode.NONE, 0, 3)
    assert reader.poll() == list("abcdef")
    leader.write("g")
    assert reader.poll(3) == ["g"]


def test_poll_gives_no_more_than_asked_and_the_position_is_behind_what_was_given() -> None:
    _, _, reader = reading(max_poll_records=3)
    reader.consumer.poll()
    reader.deliver()
    assert values(reader.consumer.poll(1)) == ["a1"]
    assert at(reader) == (1, 1, 2)
    assert reader.consumer.state(TP).buffered == 3
    assert not reader.network.in_flight()  # what has arrived is given before more is fetched
    assert values(reader.consumer.poll()) == ["b1", "c2", "d2"]
    assert at(reader) == (4, 2, 2)


def test_partitions_take_turns() -> None:
    network, leader, reader = reading()
    other = TopicPartition("orders", 1)
    reader.consumer.assign([TP, other])
    reader.consumer.seek(other, 0)
    reader.consumer.update_metadata(other, MetadataResponse(ErrorCode.NONE, 0, 2))
    reader.consumer.poll()
    reader.deliver()
    given = [record.partition for _ in range(8) for record in reader.consumer.poll(1)]
    assert given == [0, 1, 0, 1, 0, 1, 0, 1]
    assert network.counts.sent and leader.log.end == 4


def test_what_is_not_assigned_is_named() -> None:
    _, _, reader = reading()
    other = TopicPartition("orders", 1)
    for call in (reader.consumer.state, reader.consumer.seek_to_end, reader.consumer.position):
        with pytest.raises(NotAssignedError, match="orders-1: not assigned"):
            call(other)
    assert reader.consumer.assignment == (TP,)


def test_assigning_anew_keeps_positions_and_drops_partitions() -> None:
    _, _, reader = reading()
    reader.step()
    other = TopicPartition("orders", 1)
    reader.consumer.assign([other, TP])
    assert at(reader) == (1, 1, 2)
    reader.consumer.advance(TP)
    reader.consumer.assign([other])
    reader.deliver()
    reader.consumer.assign([TP])
    assert reader.consumer.state(TP).position is None


@pytest.mark.parametrize(("offset", "epoch", "serving"), [(-1, -1, -1), (0, -2, -1), (0, -1, -2)])
def test_seek_to_what_is_no_position(offset: int, epoch: int, serving: int) -> None:
    with pytest.raises(ValueError, match=r"no offset is below 0, no epoch below -1"):
        OffsetAndMetadata(offset, epoch, serving)
    _, _, reader = reading()
    if offset < 0:
        with pytest.raises(ValueError, match="offset -1"):
            reader.consumer.seek(TP, offset)
        assert at(reader) == (0, -1, -1)


# -- answers that come too late, twice, or from elsewhere ------------------------------------------------------------


def test_response_to_a_fetch_sent_before_a_seek_is_dropped() -> None:
    network, _, reader = reading()
    reader.consumer.advance(TP)
    (request,) = network.in_flight()
    network.deliver(request)
    reader.consumer.seek(TP, 2)
    reader.deliver()
    assert reader.consumer.take(TP) == []
    assert at(reader) == (2, -1, -1)
    assert reader.step() == ["c2"]


def test_records_that_arrived_before_a_seek_are_dropped() -> None:
    _, _, reader = reading()
    reader.consumer.advance(TP)
    reader.deliver()
    reader.consumer.seek(TP, 2)
    assert reader.consumer.take(TP) == []
    assert reader.step() == ["c2"]


def test_refusal_of_a_fetch_sent_before_a_seek_is_dropped() -> None:
    network, leader, reader = reading()
    leader.refuse = ErrorCode.OFFSET_OUT_OF_RANGE
    reader.consumer.advance(TP)
    network.deliver(network.in_flight()[0])
    reader.consumer.seek(TP, 1)
    leader.refuse = None
    reader.deliver()
    assert reader.consumer.state(TP).outcome is Outcome.FETCHING
    assert reader.step() == ["b1"]


def test_duplicates_are_ignored() -> None:
    network, _, reader = reading()
    reader.consumer.advance(TP, 1)
    network.duplicate(network.in_flight()[0])
    reader.deliver()
    assert values(reader.consumer.take(TP)) == ["a1"]
    reader.consumer.advance(TP, 1)
    network.deliver(network.in_flight()[0])
    network.duplicate(network.in_flight()[0])
    reader.deliver()
    assert values(reader.consumer.take(TP)) == ["b1"]
    assert at(reader) == (2, 1, 2)


def test_batch_that_ends_at_the_position_changes_nothing() -> None:
    network, _, reader = reading()
    reader.consumer.seek(TP, 1)
    reader.consumer.advance(TP)
    network.drop(network.in_flight()[0])
    below = encode_batch([Record(b"a1")], leader_epoch=1)
    reader.consumer.receive(Envelope(0, reader.consumer.address, 0, FetchResponse(ErrorCode.NONE, 4, 0, 2, below)))
    assert reader.consumer.take(TP) == []
    assert at(reader) == (1, -1, -1)


def test_request_that_was_answered_does_not_time_out() -> None:
    _, _, reader = reading()
    reader.step()
    assert reader.consumer.deadline() is None


def test_answers_of_others_and_of_another_kind_are_ignored() -> None:
    network, _, reader = reading()
    reader.consumer.advance(TP)
    network.drop(network.in_flight()[0])
    before = reader.consumer.state(TP)
    refused = FetchResponse(ErrorCode.OFFSET_OUT_OF_RANGE)
    address = reader.consumer.address
    reader.consumer.receive(Envelope(1, address, 0, refused))
    reader.consumer.receive(Envelope(0, address, 0, ListOffsetsResponse(ErrorCode.NONE, 3)))
    reader.consumer.receive(Envelope(0, address, 1, refused))
    reader.consumer.receive(Envelope(0, address, 0, MetadataRequest(TP)))
    assert reader.consumer.state(TP) == before
    reader.consumer.receive(Envelope(0, address, 0, refused))
    assert reader.consumer.state(TP).outcome is Outcome.OFFSET_OUT_OF_RANGE


def test_correlation_ids_of_a_former_life_match_nothing() -> None:
    network, leader, reader = reading()
    reader.consumer.advance(TP)
    network.deliver(network.in_flight()[0])
    (late,) = network.in_flight()
    network.detach(reader.consumer.address)
    again = Reader(network, ConsumerConfig(brokers=(0,), first_correlation=1), [TP])
    again.consumer.seek(TP, 2)
    again.knows(leader)
    again.consumer.advance(TP, 1)
    network.deliver(late)
    assert again.consumer.take(TP) == []
    again.deliver()
    assert values(again.consumer.take(TP)) == ["c2"]


def test_request_without_an_answer_times_out_and_is_sent_again() -> None:
    network, leader, reader = reading(request_timeout_ms=500)
    reader.consumer.poll()
    assert reader.consumer.deadline() == 500
    network.drop(network.in_flight()[0])
    network.clock.advance(499)
    reader.consumer.wake()
    assert reader.consumer.state(TP).in_flight
    network.clock.advance(1)
    reader.consumer.wake()
    state = reader.consumer.state(TP)
    assert (state.in_flight, state.last_error) == (False, ErrorCode.REQUEST_TIMED_OUT)
    assert reader.consumer.deadline() is None
    assert reader.consumer.poll() == [] and not network.in_flight()  # the backoff first
    assert reader.poll() == ["a1", "b1", "c2", "d2"]
    assert isinstance(leader.asked[0], MetadataRequest)


def test_late_answer_to_a_request_that_timed_out_is_ignored() -> None:
    network, _, reader = reading(request_timeout_ms=500)
    reader.consumer.advance(TP)
    network.deliver(network.in_flight()[0])
    network.clock.advance(500)
    reader.consumer.wake()
    reader.deliver()
    assert reader.consumer.take(TP) == []
    assert at(reader) == (0, -1, -1)


@pytest.mark.parametrize(
    "settings",
    [{"brokers": ()}, {"principal": "User:broker"}, {"max_bytes": 0}, {"max_poll_records": 0}, {"retry_backoff_ms": 0}],
)
def test_settings_that_cannot_be(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"broker|positive"):
        ConsumerConfig(**{"brokers": (0,), **settings})  # type: ignore[arg-type]


def test_consumer_is_an_endpoint() -> None:
    network = SimulatedNetwork()
    consumer = Consumer(network, network.clock, ConsumerConfig(brokers=(0,), address=-107))
    assert consumer.address == -107
    network.attach(consumer)
    assert network.is_up(-107)
