"""Truncation as a consumer meets it: LOG_TRUNCATION, the search, the reset policies, the holes in KIP-320.

The leaders here are small (``leaders.py``); ``test_consumer_brokers.py`` has the same stories with real brokers.
"""

from __future__ import annotations

import pytest
from fencepost.impl.consumer import (
    LogTruncationError,
    OffsetAndMetadata,
    OffsetOutOfRangeError,
    Outcome,
    ResetPolicy,
)
from fencepost.impl.consumer.position import nearest
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    EARLIEST,
    LATEST,
    FetchRequest,
    ListOffsetsRequest,
    MetadataResponse,
    OffsetsForLeaderEpochRequest,
)

from .leaders import TP, Leader, Reader, at, cluster


def truncated(policy: ResetPolicy = ResetPolicy.LATEST) -> tuple[list[Leader], Reader]:
    """The consumer has read a0 b1 c1; broker 1 has a0, and then b2 c2 d2 of its own: offset 1 is where they part."""
    _, (old, new), reader = cluster(2, reset_policy=policy)
    old.lead(0)
    old.write("a0")
    new.copy(old, 1)
    old.lead(1)
    old.write("b1", "c1")
    new.lead(2)
    new.write("b2", "c2", "d2")
    reader.consumer.seek(TP, 0)
    reader.knows(old)
    assert [reader.step() for _ in range(3)] == [["a0"], ["b1"], ["c1"]]
    reader.knows(new)
    return [old, new], reader


@pytest.mark.parametrize("policy", ResetPolicy)
def test_truncation_is_found_and_then_where_the_logs_part(policy: ResetPolicy) -> None:
    (_, new), reader = truncated(policy)
    assert at(reader) == (3, 1, 1)
    assert reader.step() == []
    state = reader.consumer.state(TP)
    assert (state.outcome, state.answered_epoch, state.last_error) == (
        Outcome.LOG_TRUNCATION,
        2,
        ErrorCode.LOG_TRUNCATION,
    )
    assert at(reader) == (3, 1, 1)
    reader.step()
    assert new.asked[-1] == OffsetsForLeaderEpochRequest(-1, TP, 1, 1)
    state = reader.consumer.state(TP)
    assert (state.outcome, state.answered_epoch) == (Outcome.DIVERGENCE_FOUND, 2)
    assert state.divergence == OffsetAndMetadata(1, 0, 2)
    assert at(reader) == (3, 1, 1)
    assert reader.step() == []  # the reset is a step of its own
    assert reader.consumer.reset_to_divergence(TP)
    state = reader.consumer.state(TP)
    assert (state.outcome, state.answered_epoch, state.divergence) == (Outcome.FETCHING, -1, None)
    assert at(reader) == (1, 0, 2)
    assert state.consumed_from == 1
    assert [reader.step() for _ in range(4)] == [["b2"], ["c2"], ["d2"], []]


@pytest.mark.parametrize("policy", [ResetPolicy.EARLIEST, ResetPolicy.LATEST])
def test_both_policies_reset_to_the_divergence(policy: ResetPolicy) -> None:
    _, reader = truncated(policy)
    assert reader.poll() == ["b2", "c2", "d2"]
    assert not any(isinstance(request, ListOffsetsRequest) for request in reader_requests(reader))


def reader_requests(reader: Reader) -> list[object]:
    return [
        request
        for address in (0, 1)
        if isinstance(leader := reader.network.endpoint(address), Leader)
        for request in leader.asked
    ]


def test_policy_none_raises_until_the_application_seeks() -> None:
    _, reader = truncated(ResetPolicy.NONE)
    reader.poll(2)
    for _ in range(2):
        with pytest.raises(
            LogTruncationError, match="orders-0 at 3: the log was truncated: orders-0 diverges at 1"
        ) as e:
            reader.consumer.poll()
        assert isinstance(e.value, OffsetOutOfRangeError)
        assert e.value.partitions == {TP: 3}
        assert e.value.divergent_offsets == {TP: OffsetAndMetadata(1, 0, 2)}
        assert at(reader) == (3, 1, 1)
        assert not reader.network.in_flight()
    reader.consumer.seek(TP, e.value.divergent_offsets[TP])
    assert at(reader) == (1, 0, 2)
    assert reader.poll() == ["b2", "c2", "d2"]


def test_application_may_seek_elsewhere() -> None:
    _, reader = truncated(ResetPolicy.NONE)
    reader.poll(2)
    with pytest.raises(OffsetOutOfRangeError):
        reader.consumer.poll()
    reader.consumer.seek(TP, 0)
    assert reader.poll() == ["a0", "b2", "c2", "d2"]


def test_divergence_inside_the_consumers_own_epoch_is_exact() -> None:
    """The leader has less of the consumer's epoch than was read: the end of what it has is where the logs part."""
    _, (old, new), reader = cluster(2)
    old.lead(1)
    old.write("a1", "b1", "c1")
    new.copy(old, 2)
    new.lead(2)
    new.write("c2")
    reader.consumer.seek(TP, 0)
    reader.knows(old)
    assert [reader.step() for _ in range(3)] == [["a1"], ["b1"], ["c1"]]
    reader.knows(new)
    reader.step()
    reader.step()
    state = reader.consumer.state(TP)
    assert state.divergence == OffsetAndMetadata(2, 1, 2)
    reader.consumer.reset_to_divergence(TP)
    assert reader.consumer.state(TP).consumed_from == 0  # what was read below is what the leader has
    assert reader.step() == ["c2"]


def test_h1_a_record_of_an_older_epoch_in_the_place_of_the_last_one() -> None:
    """The silent gap: no larger epoch begins below the fetch offset, but the leader does not know the consumer's."""
    _, (zombie, leader), reader = cluster(2)
    leader.lead(1)
    leader.write("record 0")
    reader.consumer.seek(TP, 0)
    reader.knows(leader)
    assert reader.step() == ["record 0"]
    zombie.lead(0)
    zombie.write("record 1")
    zombie.lead(2)  # an unclean election
    zombie.write("record 2")
    leader.epoch = None
    assert reader.poll(3) == []  # NOT_LEADER_OR_FOLLOWER, and old metadata
    reader.knows(zombie)
    assert reader.step() == []
    assert reader.consumer.state(TP).outcome is Outcome.LOG_TRUNCATION
    reader.step()
    # Epoch 0 ends at 1, as the position does: only a bound, since epoch 1 is gone.
    assert reader.consumer.state(TP).divergence == OffsetAndMetadata(1, 0, 2)
    assert reader.consumer.reset_to_divergence(TP)
    assert reader.consumer.state(TP).consumed_from == 1
    assert reader.step() == ["record 2"]


def test_h2_a_leader_that_was_replaced_raises_no_false_alarm() -> None:
    """Nothing was lost: epoch 2 was elected cleanly, and only epoch 1 never had the record."""
    _, (first, middle), reader = cluster(2)
    first.lead(0)
    first.write("record 0")
    first.hw = 0
    middle.lead(1)
    middle.write("never committed")
    first.lead(2)
    first.hw = 1
    reader.consumer.seek(TP, 0)
    reader.knows(first)
    assert reader.step() == ["record 0"]
    assert at(reader) == (1, 0, 2)
    reader.knows(middle)  # metadata of epoch 1, which was on its way for long
    assert reader.step() == []
    state = reader.consumer.state(TP)
    assert (state.outcome, state.answered_epoch) == (Outcome.UNKNOWN_LEADER_EPOCH, 1)
    assert at(reader) == (1, 0, 2)
    reader.knows(first)
    assert reader.consumer.state(TP).outcome is Outcome.FETCHING
    first.write("record 1")
    assert reader.step() == ["record 1"]


def test_h2_is_a_false_alarm_for_whoever_forgets_the_serving_epoch() -> None:
    """The planted fault for the test before: with the epoch of the record alone, the old leader says LOG_TRUNCATION."""
    _, (first, middle), reader = cluster(2)
    first.lead(0)
    first.write("record 0")
    middle.lead(1)
    middle.write("never committed")
    first.lead(2)
    reader.consumer.seek(TP, OffsetAndMetadata(1, 0))
    reader.knows(middle)
    reader.step()
    assert reader.consumer.state(TP).outcome is Outcome.LOG_TRUNCATION


def test_h3_a_leader_that_was_replaced_does_not_answer_the_search() -> None:
    """Between LOG_TRUNCATION and the search the metadata goes stale: an old leader's log end is no divergence."""
    _, (old, new, ancient), reader = cluster(3)
    ancient.lead(0)
    ancient.write("x0")
    old.lead(1)
    old.write("a1", "b1", "c1")
    new.lead(2)
    new.write("a2")
    reader.consumer.seek(TP, 0)
    reader.knows(old)
    assert [reader.step() for _ in range(3)] == [["a1"], ["b1"], ["c1"]]
    reader.knows(new)
    reader.step()
    assert reader.consumer.state(TP).outcome is Outcome.LOG_TRUNCATION
    reader.knows(ancient)
    reader.step()
    state = reader.consumer.state(TP)
    assert state.last_error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (state.outcome, state.divergence) == (Outcome.LOG_TRUNCATION, None)
    ancient.metadata = old.metadata = MetadataResponse(ErrorCode.NONE, 1, 2)
    assert reader.poll(5) == ["a2"]  # metadata first, then the search at the true leader


def test_consecutive_unclean_elections_leave_a_bound() -> None:
    """``bound_skips_records``: what is reported is the start of the next larger epoch, and a record below is unread."""
    _, (old, new), reader = cluster(2)
    new.lead(0)
    new.write("x0")
    old.lead(1)
    old.write("a1", "b1")
    new.lead(2)
    new.write("y2")
    reader.consumer.seek(TP, 0)
    reader.knows(old)
    assert [reader.step(), reader.step()] == [["a1"], ["b1"]]
    reader.knows(new)
    reader.step()
    reader.step()
    state = reader.consumer.state(TP)
    assert state.divergence == OffsetAndMetadata(1, 0, 2)
    assert state.position is not None and state.divergence.leader_epoch != state.position.leader_epoch
    reader.consumer.reset_to_divergence(TP)
    assert reader.consumer.state(TP).consumed_from == 1
    assert reader.step() == ["y2"]  # x0, at offset 0, is skipped: noticed, but unread


def test_divergence_at_the_very_start_has_no_epoch() -> None:
    """Kafka answers an epoch below the earliest with that epoch itself: there is no record of it before offset 0."""
    _, (old, new), reader = cluster(2)
    old.lead(1)
    old.write("a1")
    new.lead(2)
    new.write("a2")
    reader.consumer.seek(TP, 0)
    reader.knows(old)
    reader.step()
    reader.knows(new)
    reader.step()
    reader.step()
    assert reader.consumer.state(TP).divergence == OffsetAndMetadata(0, -1, 2)
    reader.consumer.reset_to_divergence(TP)
    assert reader.step() == ["a2"]


def test_search_may_find_that_another_leader_has_it_all() -> None:
    """A cleanly elected leader answers the search: the position stays, with its epoch."""
    (old, new), reader = truncated()
    reader.step()
    old.lead(3)
    reader.knows(old)
    reader.step()
    assert reader.consumer.state(TP).divergence == OffsetAndMetadata(3, 1, 3)
    reader.consumer.reset_to_divergence(TP)
    assert at(reader) == (3, 1, 3)
    assert reader.consumer.state(TP).consumed_from == 0
    assert reader.step() == []
    assert new.epoch == 2


@pytest.mark.parametrize(
    ("end", "epoch", "expected"),
    [
        (3, 2, (3, 2)),  # the epoch ends below: exact
        (3, 1, (3, 1)),  # an older one ends below: a bound
        (5, 2, (5, 2)),  # it ends where the consumer is
        (5, 1, (5, 1)),
        (9, 2, (5, 2)),  # it ends above: nothing was lost
        (9, 1, (5, -1)),  # an older one ends above: its epoch says nothing of offset 4
        (0, 2, (0, -1)),
        (0, -1, (0, -1)),
    ],
)
def test_nearest(end: int, epoch: int, expected: tuple[int, int]) -> None:
    assert nearest(end, epoch, OffsetAndMetadata(5, 2, 3)) == expected


@pytest.mark.parametrize(
    ("policy", "timestamp", "then"),
    [(ResetPolicy.EARLIEST, EARLIEST, (0, -1, 2)), (ResetPolicy.LATEST, LATEST, (4, -1, 2))],
)
def test_leader_without_epochs_leaves_the_policy(
    policy: ResetPolicy, timestamp: int, then: tuple[int, int, int]
) -> None:
    """An old message format: OffsetsForLeaderEpoch knows nothing."""
    (_, new), reader = truncated(policy)
    reader.step()
    new.log.epochs.clear()
    reader.step()
    state = reader.consumer.state(TP)
    assert (state.outcome, state.divergence) == (Outcome.DIVERGENCE_FOUND, None)
    assert reader.consumer.poll() == []
    reader.deliver()
    assert new.asked[-1] == ListOffsetsRequest(TP, timestamp)
    assert at(reader) == then


def test_leader_without_epochs_and_policy_none() -> None:
    (_, new), reader = truncated(ResetPolicy.NONE)
    reader.step()
    new.log.epochs.clear()
    reader.step()
    with pytest.raises(LogTruncationError, match="where is not known") as caught:
        reader.consumer.poll()
    assert (caught.value.partitions, caught.value.divergent_offsets) == ({TP: 3}, {})
    reader.consumer.seek(TP, 0)
    assert reader.poll(3)[:1] == ["a0"]


# -- seek_to_nearest -------------------------------------------------------------------------------------------------


def test_seek_to_nearest_asks_at_once_and_goes_to_the_divergence() -> None:
    (_, new), reader = truncated(ResetPolicy.NONE)
    stored = OffsetAndMetadata(3, 1, 1)
    reader.consumer.seek_to_nearest(TP, stored)
    reader.deliver()
    assert new.asked == [OffsetsForLeaderEpochRequest(-1, TP, 1, 1)]
    assert at(reader) == (1, 0, 2)
    assert reader.poll() == ["b2", "c2", "d2"]


def test_seek_to_nearest_keeps_an_offset_that_is_still_there() -> None:
    (old, _), reader = truncated()
    reader.knows(old)
    reader.consumer.seek_to_nearest(TP, OffsetAndMetadata(2, 1, 1))
    assert reader.consumer.position(TP) is None
    reader.deliver()
    assert at(reader) == (2, 1, 1)
    assert reader.consumer.state(TP).consumed_from == 0
    assert reader.step() == ["c1"]


def test_seek_to_nearest_waits_for_a_leader_that_is_new_enough() -> None:
    (old, new), reader = truncated()
    reader.knows(old)
    stored = OffsetAndMetadata(2, 2, 2)
    reader.consumer.seek_to_nearest(TP, stored)
    reader.deliver()
    state = reader.consumer.state(TP)
    assert (state.last_error, state.looking_up) == (ErrorCode.UNKNOWN_LEADER_EPOCH, True)
    assert at(reader) == (3, 1, 1)
    old.metadata = new.metadata = MetadataResponse(ErrorCode.NONE, 1, 2)
    assert reader.poll() == ["c2", "d2"]


def test_seek_to_nearest_without_an_epoch_is_a_seek() -> None:
    (_, new), reader = truncated()
    reader.consumer.seek_to_nearest(TP, OffsetAndMetadata(2))
    assert not reader.network.in_flight()
    assert reader.step() == ["c2"]
    assert new.asked == [FetchRequest(-1, TP, 2, 1, -1, -1)]


def test_seek_to_nearest_at_a_leader_without_epochs_leaves_it_to_the_fetch() -> None:
    (_, new), reader = truncated()
    new.log.epochs.clear()
    reader.consumer.seek_to_nearest(TP, OffsetAndMetadata(2, 2, 2))
    reader.deliver()
    assert at(reader) == (2, 2, 2)


def test_a_lookup_can_be_abandoned() -> None:
    (old, _), reader = truncated()
    reader.knows(old)
    reader.consumer.seek_to_nearest(TP, OffsetAndMetadata(2, 2, 2))
    reader.deliver()
    reader.consumer.abandon(TP)
    assert at(reader) == (3, 1, 1)
    assert not reader.consumer.state(TP).looking_up


@pytest.mark.parametrize("policy", ResetPolicy)
def test_a_seek_comes_before_a_reset_that_is_due(policy: ResetPolicy) -> None:
    _, reader = truncated(policy)
    reader.step()
    reader.step()
    assert reader.consumer.state(TP).outcome is Outcome.DIVERGENCE_FOUND
    reader.consumer.seek_to_end(TP)
    assert reader.poll(3) == []
    assert at(reader) == (4, 2, 2)
