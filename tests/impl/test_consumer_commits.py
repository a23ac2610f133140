"""Commits, restarts from them, and truncation that is noticed across a restart (KIP-320, "Offset Schema Changes")."""

from __future__ import annotations

import pytest
from fencepost.impl.consumer import (
    ConsumerConfig,
    ConsumerError,
    NoOffsetForPartitionError,
    OffsetAndMetadata,
    Outcome,
    ResetPolicy,
)
from fencepost.impl.net import SimulatedNetwork
from fencepost.impl.offsets import OffsetsConfig
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    MetadataResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    TopicPartition,
)

from .leaders import TP, Leader, Reader, at, cluster, fetches, reading


def group(**settings: object) -> tuple[SimulatedNetwork, Leader, Reader]:
    """``reading`` in a group, with two records read."""
    network, leader, reader = reading(group="billing", **settings)
    assert [reader.step(), reader.step()] == [["a1"], ["b1"]]
    return network, leader, reader


def restarted(network: SimulatedNetwork, reader: Reader, **settings: object) -> Reader:
    """Another consumer of the group at the same address."""
    old = network.detach(reader.consumer.address)
    assert old is reader.consumer
    config = ConsumerConfig(brokers=(0,), group="billing", first_correlation=1000, **settings)  # type: ignore[arg-type]
    return Reader(network, config, [TP])


def test_commit_holds_offset_and_both_epochs() -> None:
    _, leader, reader = group()
    (commit,) = reader.consumer.commit(metadata="note")
    assert (commit.partition, commit.done) == (TP, False)
    assert reader.consumer.committed(TP) is None
    reader.deliver()
    assert leader.asked[-1] == OffsetCommitRequest("billing", TP, 2, 1, 2, "note")
    assert commit.error is ErrorCode.NONE and commit.done
    assert reader.consumer.committed(TP) == OffsetAndMetadata(2, 1, 2, "note")
    assert reader.step() == ["c2"]  # reading goes on as before


def test_restart_goes_on_from_the_commit() -> None:
    network, leader, reader = group()
    reader.consumer.commit()
    reader.deliver()
    reader.step()
    again = restarted(network, reader)
    assert again.consumer.position(TP) is None
    assert again.step() == []
    assert leader.asked[-1] == OffsetFetchRequest("billing", TP)
    assert at(again) == (2, 1, 2)
    state = again.consumer.state(TP)
    assert (state.consumed_from, state.committed) == (2, OffsetAndMetadata(2, 1, 2))
    assert again.poll(4) == ["c2", "d2"]
    assert [r.last_fetched_epoch for r in fetches(leader) if r.fetch_offset == 2] == [1, 1]


def test_same_consumer_goes_back_to_its_commit() -> None:
    _, _, reader = group()
    reader.consumer.commit()
    reader.deliver()
    assert [reader.step(), reader.step()] == [["c2"], ["d2"]]
    reader.consumer.seek_to_committed(TP)
    assert reader.consumer.position(TP) is None
    reader.step()
    assert at(reader) == (2, 1, 2)
    assert reader.consumer.state(TP).consumed_from == 0


@pytest.mark.parametrize("read_again", [0, 1, 2])
def test_going_back_to_a_commit_claims_no_more_than_was_read_since(read_again: int) -> None:
    """Whoever sought back before its commit has read what lies in between only as far as it has read it again."""
    _, _, reader = group()
    reader.consumer.commit()
    reader.deliver()
    reader.consumer.seek(TP, 0)
    assert [reader.step() for _ in range(read_again)] == [["a1"], ["b1"]][:read_again]
    reader.consumer.seek_to_committed(TP)
    reader.step()
    assert at(reader) == (2, 1, 2)
    assert reader.consumer.state(TP).consumed_from == (0 if read_again == 2 else 2)


def test_going_back_to_a_commit_of_another_history_claims_nothing() -> None:
    """The record before the commit is not the one that was read at that offset, as its epoch tells."""
    _, _, reader = group()
    reader.consumer.commit({TP: OffsetAndMetadata(2, 0, 0)})
    reader.deliver()
    reader.consumer.seek_to_committed(TP)
    reader.step()
    assert reader.consumer.state(TP).consumed_from == 2


def test_nearest_beyond_the_position_claims_nothing() -> None:
    _, _, reader = group()
    reader.consumer.seek(TP, 0)
    reader.consumer.seek_to_nearest(TP, OffsetAndMetadata(2, 1, 2))
    reader.deliver()
    assert at(reader) == (2, 1, 2)
    assert reader.consumer.state(TP).consumed_from == 2
    assert reader.step() == ["c2"]


def test_truncation_is_noticed_across_a_restart() -> None:
    network, (old, new), reader = cluster(2, group="billing")
    old.lead(1)
    old.write("a1", "b1")
    new.copy(old, 1)
    new.lead(2)
    new.write("b2")
    reader.consumer.seek(TP, 0)
    reader.knows(old)
    assert [reader.step(), reader.step()] == [["a1"], ["b1"]]
    reader.consumer.commit()
    reader.deliver()
    again = restarted(network, reader)
    again.step()
    again.knows(new)
    again.step()
    assert again.consumer.state(TP).outcome is Outcome.LOG_TRUNCATION
    old.metadata = MetadataResponse(ErrorCode.NONE, 1, 2)
    assert again.poll(4) == ["b2"]


def test_old_leader_is_noticed_across_a_restart() -> None:
    """H2 of ``specs/DEVIATIONS.md``, for a restarted consumer: the serving epoch is in the commit too."""
    network, (first, middle), reader = cluster(2, group="billing")
    first.lead(0)
    first.write("record 0")
    middle.lead(1)
    middle.write("never committed")
    first.lead(2)
    reader.consumer.seek(TP, 0)
    reader.knows(first)
    reader.step()
    reader.consumer.commit()
    reader.deliver()
    again = restarted(network, reader)
    again.step()
    again.knows(middle)
    again.step()
    assert again.consumer.state(TP).outcome is Outcome.UNKNOWN_LEADER_EPOCH


def test_commit_in_version_2_gives_no_epoch_back() -> None:
    network, leader, reader = group()
    leader.coordinate(config=OffsetsConfig(write_epochs=False))
    reader.consumer.commit()
    reader.deliver()
    again = restarted(network, reader)
    again.step()
    assert at(again) == (2, -1, -1)
    again.knows(leader)
    assert again.step() == ["c2"]
    assert fetches(leader)[-1].last_fetched_epoch == -1


@pytest.mark.parametrize(
    ("policy", "expected"), [(ResetPolicy.EARLIEST, ["a1", "b1", "c2", "d2"]), (ResetPolicy.LATEST, [])]
)
def test_without_a_commit_the_policy_decides(policy: ResetPolicy, expected: list[str]) -> None:
    network, _, reader = group()
    again = restarted(network, reader, reset_policy=policy)
    assert again.poll() == expected
    assert at(again) == (4, 2, 2)


def test_without_a_commit_and_policy_none() -> None:
    network, _, reader = group()
    again = restarted(network, reader, reset_policy=ResetPolicy.NONE)
    assert again.poll(1) == []
    with pytest.raises(NoOffsetForPartitionError):
        again.consumer.poll()
    again.consumer.seek(TP, 3)
    assert again.poll(4) == ["d2"]


def test_a_position_in_doubt_is_not_committed() -> None:
    _, leader, reader = group()
    leader.refuse = ErrorCode.LOG_TRUNCATION
    reader.step()
    assert reader.consumer.commit() == []
    reader.consumer.seek_to_end(TP)
    assert reader.consumer.commit() == []
    reader.consumer.seek(TP, 1)
    assert [commit.offset for commit in reader.consumer.commit()] == [OffsetAndMetadata(1)]


def test_a_position_that_waits_for_metadata_is_committed() -> None:
    _, leader, reader = group()
    leader.refuse = ErrorCode.UNKNOWN_LEADER_EPOCH
    reader.step()
    assert [commit.offset for commit in reader.consumer.commit()] == [OffsetAndMetadata(2, 1, 2)]


def test_what_was_not_given_to_the_application_is_not_committed() -> None:
    _, _, reader = group()
    reader.consumer.advance(TP)
    reader.deliver()
    assert reader.consumer.state(TP).buffered == 2
    assert [commit.offset.offset for commit in reader.consumer.commit()] == [2]


def test_offsets_of_the_applications_own() -> None:
    _, leader, reader = group()
    stored = OffsetAndMetadata(1, 1, 1, "mine")
    (commit,) = reader.consumer.commit({TP: stored})
    reader.deliver()
    assert commit.error is ErrorCode.NONE
    assert leader.asked[-1] == OffsetCommitRequest("billing", TP, 1, 1, 1, "mine")


def test_refused_commit_says_so_and_is_not_known_as_committed() -> None:
    _, _, reader = group()
    unknown = TopicPartition("nowhere", 0)
    refused, large = reader.consumer.commit(
        {unknown: OffsetAndMetadata(1), TP: OffsetAndMetadata(1, metadata="m" * 5000)}
    )
    reader.deliver()
    assert refused.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert large.error is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert reader.consumer.committed(TP) is None


def test_commit_without_an_answer_times_out_and_nobody_knows() -> None:
    network, _, reader = group(request_timeout_ms=400)
    (commit,) = reader.consumer.commit()
    network.deliver(network.in_flight()[0])
    (late,) = network.in_flight()
    network.clock.advance(400)
    reader.consumer.wake()
    assert commit.error is ErrorCode.REQUEST_TIMED_OUT
    network.deliver(late)
    assert commit.error is ErrorCode.REQUEST_TIMED_OUT
    assert reader.consumer.committed(TP) is None


def test_commits_of_a_partition_that_is_no_longer_assigned_are_answered() -> None:
    _, _, reader = group()
    (commit,) = reader.consumer.commit()
    reader.consumer.assign([])
    reader.deliver()
    assert commit.error is ErrorCode.NONE


def test_whoever_is_in_no_group_commits_nothing() -> None:
    _, _, reader = reading()
    with pytest.raises(ConsumerError, match=r"group.id: this consumer is in no group; name a group"):
        reader.consumer.commit()
    with pytest.raises(ConsumerError, match=r"group.id"):
        reader.consumer.seek_to_committed(TP)
