"""Consumers and real brokers: the KIP's examples with unclean elections and old metadata as real messages.

The brokers are driven by hand (``brokers.py``), with a controller that is the test itself.
"""

from __future__ import annotations

import pytest
from fencepost.impl.consumer import (
    BrokerError,
    ConsumerConfig,
    LogTruncationError,
    OffsetAndMetadata,
    OffsetOutOfRangeError,
    Outcome,
    ResetPolicy,
)
from fencepost.impl.net import SimulatedNetwork
from fencepost.impl.offsets import OFFSETS_TOPIC, coordinate
from fencepost.impl.replica import Acl, AclTable, Authorizer, Kind, Operation
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import FIRST_CLIENT, TopicPartition, UpdateMetadataRequest

from .brokers import Cluster
from .leaders import TP, Reader, at

CONSUMER = FIRST_CLIENT - 1


class Group(Cluster):
    """A cluster whose brokers keep offsets, and whose metadata the test tells."""

    def __init__(self, count: int = 2, authorizer: Authorizer | None = None) -> None:
        super().__init__(count, authorizer=authorizer)
        self.lives = 0
        for node in range(count):
            self.coordinate(node)

    def coordinate(self, node: int) -> None:
        coordinate(self.brokers[node], self.network.clock)

    def know(self, leader: int, epoch: int, *, nodes: list[int] | None = None) -> None:
        """The controller's UpdateMetadata reaches these brokers, by default all."""
        everyone = tuple(range(len(self.disks)))
        body = UpdateMetadataRequest(1, TP, leader, epoch, frozenset((leader,)), everyone, frozenset())
        for node in sorted(self.brokers) if nodes is None else nodes:
            assert self.ask(node, body).error is ErrorCode.NONE

    def reader(self, *, asks: int = 0, **settings: object) -> Reader:
        """A consumer, a new process of the last one if there was one, that asks one broker for metadata."""
        if self.network.is_up(CONSUMER):
            self.network.detach(CONSUMER)
        self.lives += 1
        config = ConsumerConfig(
            brokers=(asks,),
            coordinator=0,
            address=CONSUMER,
            first_correlation=self.lives << 32,
            **settings,  # type: ignore[arg-type]
        )
        return Reader(self.network, config, [TP])


def ask_again(reader: Reader) -> None:
    """Ask for metadata, as a consumer does whose fetch was refused."""
    there = reader.consumer._at(TP)
    there.stale = True
    reader.step()


def two_logs(**settings: object) -> tuple[Group, Reader]:
    """The consumer has read a0 b1 c1 from broker 0; broker 1 has a0 b2 c2, after an unclean election of it."""
    group = Group()
    group.elect(0, 0)
    group.produce(0, b"a0")
    group.fetch_all(1)
    group.elect(0, 1, isr={0}, nodes=[0])
    group.produce(0, b"b1")
    group.produce(0, b"c1")
    group.know(0, 1)
    reader = group.reader(asks=1, **settings)
    reader.consumer.seek(TP, 0)
    assert [reader.step() for _ in range(4)] == [[], ["a0"], ["b1"], ["c1"]]  # metadata first
    group.elect(1, 2, isr={1}, nodes=[1])
    group.produce(1, b"b2")
    group.produce(1, b"c2")
    group.know(1, 2)
    return group, reader


@pytest.mark.parametrize("policy", [ResetPolicy.EARLIEST, ResetPolicy.LATEST])
def test_unclean_election_is_noticed_and_reading_goes_on_from_the_divergence(policy: ResetPolicy) -> None:
    _, reader = two_logs(reset_policy=policy)
    assert reader.poll() == []  # broker 0 has heard nothing, and has no more
    ask_again(reader)
    assert reader.poll() == ["b2", "c2"]
    assert at(reader) == (3, 2, 2)


def test_policy_none_tells_the_application() -> None:
    group, reader = two_logs(reset_policy=ResetPolicy.NONE)
    ask_again(reader)
    reader.poll(2)
    with pytest.raises(LogTruncationError) as caught:
        reader.consumer.poll()
    assert caught.value.divergent_offsets == {TP: OffsetAndMetadata(1, 0, 2)}
    reader.consumer.seek_to_nearest(TP, caught.value.divergent_offsets[TP])
    reader.deliver()
    assert at(reader) == (1, 0, 2)
    assert reader.poll() == ["b2", "c2"]
    assert group.values(1) == b"a0b2c2"


def test_follower_that_was_a_leader_answers_not_leader_and_metadata_is_refreshed() -> None:
    group, reader = two_logs()
    group.elect(1, 2, isr={1}, nodes=[0])
    assert reader.poll() == ["b2", "c2"]


def test_h1_silent_gap() -> None:
    """One unclean election puts a record of an older epoch in the place of the last one that was read."""
    group = Group()
    group.elect(0, 0)
    group.elect(1, 1, isr={1}, nodes=[1])
    group.produce(1, b"record 0")
    group.know(1, 1)
    reader = group.reader()
    reader.consumer.seek(TP, 0)
    assert [reader.step(), reader.step()] == [[], ["record 0"]]
    group.produce(0, b"record 1")  # broker 0 has not heard of epoch 1
    group.elect(0, 2, isr={0}, nodes=[0])
    group.produce(0, b"record 2")
    group.know(0, 2)
    ask_again(reader)
    assert reader.step() == []
    assert reader.consumer.state(TP).outcome is Outcome.LOG_TRUNCATION
    reader.step()
    assert reader.consumer.state(TP).divergence == OffsetAndMetadata(1, 0, 2)
    assert reader.poll() == ["record 2"]


def replaced_cleanly() -> tuple[Group, Reader]:
    """Broker 0 wrote record 0 in epoch 0 and commits it in epoch 2; broker 1 led epoch 1 and never had it."""
    group = Group()
    group.elect(0, 0)
    group.produce(0, b"record 0")
    assert group.state(0).high_watermark == 0
    group.elect(1, 1, nodes=[1])
    group.produce(1, b"never committed")
    group.elect(0, 2, isr={0}, nodes=[0])
    assert group.state(0).high_watermark == 1
    group.know(0, 2, nodes=[0])
    group.know(1, 1, nodes=[1])  # broker 1 is cut off, and tells what it knows
    reader = group.reader(asks=0, group="billing")
    reader.consumer.seek(TP, 0)
    assert [reader.step(), reader.step()] == [[], ["record 0"]]
    assert at(reader) == (1, 0, 2)
    return group, reader


def test_h2_no_false_alarm_from_a_leader_that_was_replaced() -> None:
    group, reader = replaced_cleanly()
    reader.knows(1, 1)
    assert reader.step() == []
    state = reader.consumer.state(TP)
    assert (state.outcome, state.answered_epoch) == (Outcome.UNKNOWN_LEADER_EPOCH, 1)
    assert reader.poll(2) == []
    assert reader.consumer.state(TP).outcome is Outcome.FETCHING
    group.produce(0, b"record 1")
    assert reader.poll() == ["record 1"]


def test_h2_no_false_alarm_after_a_restart() -> None:
    group, reader = replaced_cleanly()
    reader.consumer.commit()
    reader.deliver()
    again = group.reader(asks=1, group="billing")
    again.step()
    assert at(again) == (1, 0, 2)
    again.step()  # broker 1 says that it leads
    assert again.consumer.state(TP).leader == 1
    again.step()
    assert again.consumer.state(TP).outcome is Outcome.UNKNOWN_LEADER_EPOCH


def test_h3_leader_that_was_replaced_does_not_answer_the_search() -> None:
    group = Group(3)
    group.elect(2, 0)
    group.produce(2, b"x0")
    group.elect(0, 1, isr={0}, nodes=[0])
    for value in (b"a1", b"b1", b"c1"):
        group.produce(0, value)
    group.know(0, 1)
    reader = group.reader(asks=2)
    reader.consumer.seek(TP, 0)
    assert [reader.step() for _ in range(4)] == [[], ["a1"], ["b1"], ["c1"]]
    group.elect(1, 2, isr={1}, nodes=[1])
    group.produce(1, b"a2")
    reader.knows(1, 2)
    reader.step()
    assert reader.consumer.state(TP).outcome is Outcome.LOG_TRUNCATION
    reader.knows(2, 0)  # metadata of the first election
    reader.step()
    state = reader.consumer.state(TP)
    assert (state.outcome, state.last_error) == (Outcome.LOG_TRUNCATION, ErrorCode.UNKNOWN_LEADER_EPOCH)
    group.know(1, 2)
    assert reader.poll() == ["a2"]


def test_consecutive_unclean_elections_give_a_bound_only() -> None:
    group = Group()
    group.elect(1, 0)
    group.produce(1, b"x0")
    group.elect(0, 1, isr={0}, nodes=[0])
    group.produce(0, b"a1")
    group.produce(0, b"b1")
    group.know(0, 1)
    reader = group.reader()
    reader.consumer.seek(TP, 0)
    assert [reader.step() for _ in range(3)] == [[], ["a1"], ["b1"]]
    group.elect(1, 2, isr={1}, nodes=[1])
    group.produce(1, b"y2")
    group.know(1, 2)
    ask_again(reader)
    reader.step()
    reader.step()
    state = reader.consumer.state(TP)
    assert state.position is not None and state.divergence is not None
    # Epoch 1 is gone: the next larger one begins at 1, though the logs part at 0.
    assert state.divergence == OffsetAndMetadata(1, 0, 2)
    assert state.divergence.leader_epoch != state.position.leader_epoch
    assert reader.poll() == ["y2"]


def test_sought_offset_beyond_the_end_is_out_of_range() -> None:
    """H4: a fetch that names no epoch is neither a truncation nor old metadata."""
    group, _ = two_logs()
    reader = group.reader(asks=1, reset_policy=ResetPolicy.NONE)
    reader.consumer.seek(TP, 9)
    reader.step()
    reader.step()
    with pytest.raises(OffsetOutOfRangeError) as caught:
        reader.consumer.poll()
    assert not isinstance(caught.value, LogTruncationError)
    reader.consumer.seek_to_end(TP)
    reader.step()
    assert at(reader) == (3, 2, 2)


def test_commit_survives_a_crash_of_the_coordinator() -> None:
    group = Group()
    group.elect(0, 1, isr={0}, nodes=[0])
    for value in (b"a", b"b", b"c"):
        group.produce(0, value)
    group.know(0, 1)
    reader = group.reader(group="billing")
    reader.consumer.seek(TP, 0)
    assert [reader.step() for _ in range(3)] == [[], ["a"], ["b"]]
    (commit,) = reader.consumer.commit(metadata="half way")
    reader.deliver()
    assert commit.error is ErrorCode.NONE
    group.crash(0, seed=3)
    group.coordinate(0)
    assert TopicPartition(OFFSETS_TOPIC, 0) in group.brokers[0].partitions
    again = group.reader(group="billing")
    again.step()
    assert again.consumer.position(TP) == OffsetAndMetadata(2, 1, 1, "half way")
    (early,) = again.consumer.commit()
    again.deliver()
    assert early.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # no controller has told it of any yet
    assert early.error.retriable
    group.elect(0, 2, isr={0}, nodes=[0])
    group.know(0, 2)
    assert again.poll() == ["c"]
    (later,) = again.consumer.commit()
    again.deliver()
    assert later.error is ErrorCode.NONE


def test_truncation_across_a_restart() -> None:
    group, reader = two_logs(group="billing")
    reader.consumer.commit()
    reader.deliver()
    again = group.reader(asks=1, group="billing")
    assert again.poll() == ["b2", "c2"]


ALICE = [
    Acl("User:alice", Operation.READ, Kind.TOPIC, "orders"),
    Acl("User:alice", Operation.READ, Kind.GROUP, "billing"),
]


def allowed(acls: list[Acl]) -> tuple[SimulatedNetwork, Group, Reader]:
    group = Group(authorizer=AclTable(acls))
    group.elect(0, 1, isr={0}, nodes=[0])
    group.produce(0, b"a")
    group.know(0, 1)
    reader = group.reader(group="billing", principal="User:alice")
    reader.consumer.seek(TP, 0)
    return group.network, group, reader


def test_read_on_topic_and_group_is_enough_for_everything() -> None:
    _, _, reader = allowed(ALICE)
    assert reader.poll(3) == ["a"]
    (commit,) = reader.consumer.commit()
    reader.deliver()
    assert commit.error is ErrorCode.NONE
    reader.consumer.seek_to_committed(TP)
    reader.poll(2)
    assert at(reader) == (1, 1, 1)
    reader.consumer.seek_to_nearest(TP, OffsetAndMetadata(1, 1, 1))  # Describe on the topic
    reader.deliver()
    assert reader.consumer.state(TP).last_error is ErrorCode.NONE


def test_commit_needs_the_group_and_the_topic() -> None:
    for acls, error in (
        (ALICE[:1], ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ALICE[1:], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ):
        _, group, reader = allowed(acls)
        (commit,) = reader.consumer.commit({TP: OffsetAndMetadata(0)})
        reader.deliver()
        assert commit.error is error
        assert group.brokers[0].directory.log(OFFSETS_TOPIC, 0).end == 0


def test_whoever_may_not_read_the_topic_is_told_by_poll() -> None:
    _, _, reader = allowed([Acl("User:alice", Operation.DESCRIBE, Kind.TOPIC, "orders")])
    reader.poll(2)
    with pytest.raises(BrokerError, match="Fetch was answered TOPIC_AUTHORIZATION_FAILED"):
        reader.consumer.poll()
