"""What a consumer does about errors: stale metadata, no such offset, corruption, and what has no epochs."""

from __future__ import annotations

from typing import cast

import google_crc32c
import pytest
from fencepost.impl.consumer import (
    BrokerError,
    CorruptRecordError,
    NoOffsetForPartitionError,
    OffsetAndMetadata,
    OffsetOutOfRangeError,
    Outcome,
    ResetPolicy,
)
from fencepost.impl.log import Record, encode_batch
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    EARLIEST,
    LATEST,
    Envelope,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
)

from .leaders import TP, Leader, Reader, at, cluster, fetches, reading
from .test_log_batches import message

# -- metadata --------------------------------------------------------------------------------------------------------

REFRESH = [
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_REPLICA,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.KAFKA_STORAGE_ERROR,
]


@pytest.mark.parametrize("error", REFRESH)
def test_metadata_is_refreshed_after_a_backoff_and_the_fetch_sent_again(error: ErrorCode) -> None:
    network, (wrong, right), reader = cluster(2)
    right.lead(1)
    right.write("a1")
    wrong.refuse = error
    reader.consumer.seek(TP, 0)
    reader.knows(wrong)
    wrong.metadata = right.metadata = MetadataResponse(ErrorCode.NONE, 1, 1)
    reader.consumer.poll()
    reader.deliver()
    assert reader.consumer.state(TP).last_error is error
    network.clock.advance(99)
    assert reader.consumer.poll() == [] and not network.in_flight()
    network.clock.advance(1)
    reader.consumer.poll()
    assert isinstance(network.in_flight()[0].envelope.body, MetadataRequest)
    assert reader.poll(3) == ["a1"]


def test_every_broker_is_asked_for_metadata_in_turn() -> None:
    network, (gone, leader), reader = cluster(2, request_timeout_ms=300)
    network.detach(gone.address)
    leader.lead(1)
    leader.write("a1")
    leader.metadata = MetadataResponse(ErrorCode.NONE, 1, 1)
    reader.consumer.seek(TP, 0)
    assert reader.poll() == ["a1"]


def test_metadata_without_a_leader_is_asked_again_after_a_backoff() -> None:
    network, leader, reader = reading()
    leader.metadata = MetadataResponse(ErrorCode.NONE)
    reader.consumer.update_metadata(TP, leader.metadata)
    reader.consumer.poll()
    reader.deliver()
    assert reader.consumer.poll() == [] and not network.in_flight()
    leader.metadata = MetadataResponse(ErrorCode.NONE, 0, 2)
    assert reader.poll(4) == ["a1", "b1", "c2", "d2"]


def test_old_metadata_is_believed_and_does_no_harm() -> None:
    _, (old, new), reader = cluster(2)
    old.lead(1)
    old.write("a1")
    new.copy(old, 1)
    new.lead(2)
    new.write("b2")
    reader.consumer.seek(TP, 0)
    reader.knows(new, 2)
    reader.step()
    reader.consumer.update_metadata(TP, MetadataResponse(ErrorCode.NONE, 0, 1))
    state = reader.consumer.state(TP)
    assert (state.leader, state.leader_epoch) == (0, 1)
    old.write("not what b2 is")
    assert reader.step() == []
    assert reader.consumer.state(TP).outcome is Outcome.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("then", [ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE])
def test_metadata_that_is_no_news_lets_the_same_leader_be_asked_again(then: ErrorCode) -> None:
    """It may not have heard yet that it leads in the epoch that all others know."""
    _, leader, reader = reading()
    leader.refuse = ErrorCode.UNKNOWN_LEADER_EPOCH
    reader.step()
    reader.step()  # metadata: as before
    state = reader.consumer.state(TP)
    assert (state.outcome, state.leader, state.leader_epoch) == (Outcome.UNKNOWN_LEADER_EPOCH, 0, 2)
    leader.refuse = then or None
    assert reader.step() == ([] if then else ["a1"])
    state = reader.consumer.state(TP)
    assert (state.outcome, state.answered_epoch) == (Outcome.OFFSET_OUT_OF_RANGE if then else Outcome.FETCHING, -1)


def test_errors_that_no_retry_mends_are_raised_once_and_the_position_stays() -> None:
    network, leader, reader = reading()
    leader.refuse = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    reader.step()
    with pytest.raises(BrokerError, match="orders-0: Fetch was answered TOPIC_AUTHORIZATION_FAILED") as caught:
        reader.consumer.poll()
    assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    leader.refuse = None
    assert reader.poll() == ["a1", "b1", "c2", "d2"]
    assert network.counts.sent


# -- out of range ----------------------------------------------------------------------------------------------------


def beyond(policy: ResetPolicy) -> tuple[Leader, Reader]:
    _, leader, reader = reading(reset_policy=policy)
    leader.log.delete_before(1)
    reader.consumer.seek(TP, 9)
    reader.step()
    assert reader.consumer.state(TP).outcome is Outcome.OFFSET_OUT_OF_RANGE
    assert at(reader) == (9, -1, -1)
    return leader, reader


@pytest.mark.parametrize(
    ("policy", "timestamp", "then"),
    [(ResetPolicy.EARLIEST, EARLIEST, (1, -1, 2)), (ResetPolicy.LATEST, LATEST, (4, 2, 2))],
)
def test_out_of_range_goes_by_the_policy(policy: ResetPolicy, timestamp: int, then: tuple[int, int, int]) -> None:
    leader, reader = beyond(policy)
    assert reader.step() == []
    assert leader.asked[-1] == ListOffsetsRequest(TP, timestamp)
    assert at(reader) == then
    assert reader.consumer.state(TP).consumed_from == then[0]


def test_first_fetch_after_list_offsets_names_its_epoch() -> None:
    leader, reader = beyond(ResetPolicy.LATEST)
    reader.step()
    leader.write("e2")
    assert reader.step() == ["e2"]
    assert fetches(leader)[-1] == FetchRequest(-1, TP, 4, 1, 2, 2)


def test_out_of_range_with_policy_none_is_raised_until_a_seek() -> None:
    _, reader = beyond(ResetPolicy.NONE)
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match="orders-0 at 9: out of range; seek") as caught:
            reader.consumer.poll()
        assert type(caught.value) is OffsetOutOfRangeError
        assert caught.value.partitions == {TP: 9}
    assert reader.step() == []
    reader.consumer.seek_to_beginning(TP)
    assert reader.poll() == ["b1", "c2", "d2"]


def test_seek_to_beginning_and_end() -> None:
    _, leader, reader = reading()
    reader.consumer.seek_to_end(TP)
    assert reader.consumer.position(TP) is None
    reader.step()
    assert reader.consumer.position(TP) == OffsetAndMetadata(4, 2, 2)
    reader.consumer.seek_to_beginning(TP)
    reader.step()
    assert reader.consumer.position(TP) == OffsetAndMetadata(0, -1, 2)
    assert [type(request) for request in leader.asked] == [ListOffsetsRequest, ListOffsetsRequest]


def test_new_consumer_without_a_policy_has_no_offset() -> None:
    _, _, reader = cluster(1, reset_policy=ResetPolicy.NONE)
    for _ in range(2):
        with pytest.raises(NoOffsetForPartitionError, match="orders-0: no committed offset"):
            reader.consumer.poll()
    assert not reader.network.in_flight()


# -- corruption, and what has no epochs ------------------------------------------------------------------------------


def test_corrupt_batch_is_named_and_nothing_of_it_is_served() -> None:
    network, leader, reader = reading()
    leader.damage = True
    reader.consumer.advance(TP)  # four batches, the last one damaged
    reader.deliver()
    assert reader.consumer.state(TP).buffered == 0
    with pytest.raises(CorruptRecordError, match=r"orders-0 at 0: CRC-32C .*; poll again") as caught:
        reader.consumer.poll()
    assert (caught.value.partition, caught.value.offset) == (TP, 0)
    assert at(reader) == (0, -1, -1)
    leader.damage = False
    assert reader.poll() == ["a1", "b1", "c2", "d2"]
    assert network.counts.sent


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"no batch at all, but long enough to be one", "no batch"),
        (encode_batch([Record(b"x")], base_offset=1) + encode_batch([Record(b"x")]), "offset 0 .* after offset 1"),
        (encode_batch([Record(b"x")], leader_epoch=-2), "epoch -2"),
        (encode_batch([Record(b"x")])[:-1], "a batch of"),
    ],
)
def test_bytes_that_are_no_batches_in_order(data: bytes, what: str) -> None:
    network, _, reader = reading()
    reader.consumer.advance(TP)
    network.drop(network.in_flight()[0])
    reader.consumer.receive(Envelope(0, reader.consumer.address, 0, FetchResponse(ErrorCode.NONE, 9, 0, 2, data)))
    with pytest.raises(CorruptRecordError, match=what):
        reader.consumer.poll()


def test_leader_that_finds_its_own_log_corrupt() -> None:
    _, leader, reader = reading()
    leader.refuse = ErrorCode.CORRUPT_MESSAGE
    reader.step()
    with pytest.raises(CorruptRecordError, match="the leader's log is corrupt"):
        reader.consumer.poll()
    leader.refuse = None
    assert reader.poll() == ["a1", "b1", "c2", "d2"]


def test_answer_that_makes_no_sense_is_an_error_of_the_broker() -> None:
    network, _, reader = reading()
    reader.consumer.seek_to_end(TP)
    reader.consumer.advance(TP)
    network.drop(network.in_flight()[0])
    answer = ListOffsetsResponse(ErrorCode.NONE, -1)
    reader.consumer.receive(Envelope(0, reader.consumer.address, 0, answer))
    with pytest.raises(BrokerError, match="ListOffsets was answered UNKNOWN_SERVER_ERROR"):
        reader.consumer.poll()
    assert reader.consumer.state(TP).looking_up


def test_old_message_format_has_no_epochs_and_is_not_checked() -> None:
    _, (leader,), reader = cluster(1)
    for offset in range(3):
        leader.log.append_as_follower(message(offset, b"m%d" % offset))
    leader.epoch, leader.hw = 4, 3
    reader.consumer.seek(TP, 0)
    reader.knows(leader)
    reader.consumer.advance(TP, 1)
    reader.deliver()
    assert [record.leader_epoch for record in reader.consumer.take(TP)] == [-1]
    assert at(reader) == (1, -1, 4)
    assert reader.step() == ["m1"]
    assert fetches(leader)[-1].last_fetched_epoch == -1


def test_control_batches_are_passed_over() -> None:
    """A transaction's marker takes an offset, and no consumer sees it."""
    network, _, reader = reading()
    marker = bytearray(encode_batch([Record(b"\0\0\0\0\0\0", b"\0\0\0\1")], base_offset=0, leader_epoch=2))
    marker = bytearray(with_control_bit(bytes(marker)))
    reader.consumer.advance(TP)
    network.drop(network.in_flight()[0])
    reader.consumer.receive(
        Envelope(0, reader.consumer.address, 0, FetchResponse(ErrorCode.NONE, 1, 0, 2, bytes(marker)))
    )
    assert reader.consumer.take(TP) == []
    assert at(reader) == (1, 2, 2)


def with_control_bit(batch: bytes) -> bytes:
    covered = (0x20).to_bytes(2, "big") + batch[23:]
    return batch[:17] + cast(int, google_crc32c.value(covered)).to_bytes(4, "big") + covered
