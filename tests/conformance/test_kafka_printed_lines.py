"""What a broker prints of a partition, line by line: roles, the ISR, whom it fetches from, what it has asked for."""

from __future__ import annotations

from pathlib import Path

from fencepost.conformance.kafka.cluster.log_parser import Decisions, Picture, Tail

LOGGER = "state.change.logger"
PARTITION = "kafka.cluster.Partition"
FETCHERS = "kafka.server.ReplicaFetcherManager"
LEADS = (
    "[Broker id=2] Leader t-0 with topic id Some(x) starts at leader epoch {0} from offset 1 with partition epoch {1}, "
    "high watermark 1, ISR [{2}], adding replicas [] and removing replicas [] . Previous leader None"
)
FOLLOWS = (
    "[Broker id=2] Follower t-0 starts at leader epoch {0} from offset 1 with partition epoch {1} and high "
    "watermark 1. Current leader is {2}. Previous leader Some(1) and previous leader epoch was 0."
)
ASKS = (
    "[Partition t-0 broker=2] Submitting ISR state change PendingExpandIsr(newInSyncReplicaId=3, sentLeaderAndIsr="
    "LeaderAndIsr(leader=2, leaderEpoch=2, isrWithBrokerEpoch=[BrokerState(brokerId=2, brokerEpoch=1), "
    "BrokerState(brokerId=3, brokerEpoch=1)], leaderRecoveryState=RECOVERED"
)


def test_a_leader_that_asks_for_another_isr_counts_on_it_until_it_is_answered() -> None:
    picture = Picture("t-0")
    picture.take(LOGGER, LEADS.format(2, 5, 2))
    assert (picture.leads, picture.epoch, picture.version, picture.isr) == (True, 2, 5, {2})
    picture.take(PARTITION, "[Partition t-0 broker=2] Recorded replica 3 log end offset (LEO) position 1 and log start")
    assert picture.ends == {3: 1}
    picture.take(PARTITION, ASKS)
    assert picture.waits and (picture.isr, picture.asked, picture.maximal) == ({2}, {2, 3}, {2, 3})
    picture.take(PARTITION, "[Partition t-0 broker=2] ISR updated to 2,3  and version updated to 6")
    assert not picture.waits and picture.answers == 1
    assert (picture.isr, picture.maximal, picture.version, picture.replayed) == ({2, 3}, {2, 3}, 6, 5)
    picture.take(LOGGER, LEADS.format(4, 8, "2,3"))
    assert picture.ends == {}, "of an office that has just begun nobody says what is known of followers"


def test_what_was_not_sent_is_no_answer() -> None:
    picture = Picture("t-0")
    picture.take(LOGGER, LEADS.format(2, 5, 2))
    picture.take(PARTITION, ASKS)
    failed = (
        "[Partition t-0 broker=2] Failed to alter partition to x since the controller rejected the request with {}. "
    )
    reset = "Partition state has been reset to the latest committed state y."
    picture.take(PARTITION, failed.format("OPERATION_NOT_ATTEMPTED") + reset)
    assert picture.waits and picture.answers == 0 and picture.maximal == {2}
    picture.take(PARTITION, failed.format("INELIGIBLE_REPLICA") + reset)
    assert not picture.waits and picture.answers == 1


def test_a_follower_fetches_until_it_fails_or_leads() -> None:
    picture = Picture("t-0")
    assert not picture.hosted
    picture.take(LOGGER, FOLLOWS.format(1, 3, 1))
    assert picture.hosted and picture.begins and picture.fetches is None and picture.replayed == 3
    added = "[ReplicaFetcherManager on broker 2] Added fetcher to broker 1 for partitions HashMap(t-0 -> Initial)"
    picture.take(FETCHERS, added)
    assert (picture.fetches, picture.begins) == (1, False)
    picture.take("kafka.server.ReplicaFetcherThread", "[ReplicaFetcher replicaId=2] Partition t-0 marked as failed")
    assert picture.fetches is None
    picture.take(FETCHERS, added.replace("t-0", "u-0"))
    assert picture.fetches is None, "another partition's"


def test_a_record_that_is_older_than_the_answer_is_passed_over() -> None:
    picture = Picture("t-0")
    picture.take(LOGGER, LEADS.format(2, 5, "2,3"))
    stale = (
        "[Broker id=2] Skipped the become-leader state change for t-0 with topic id Some(x), partition registration "
        "PartitionRegistration(replicas=[2, 3], isr=[2], partitionEpoch=4) since the leader is already at a newer "
        "partition epoch 5."
    )
    picture.take(LOGGER, stale)
    assert picture.isr == {2, 3} and picture.version == 5


def test_a_tail_gives_each_whole_line_once(tmp_path: Path) -> None:
    log = tmp_path / "out"
    log.write_text("08:00:00.000 INFO a.B - before\n", encoding="utf-8")
    tail = Tail(log)
    with log.open("a", encoding="utf-8") as file:
        file.write("08:00:00.001 [thread-1] INFO a.B - one\n08:00:00.002 INFO a.B - tw")
    assert list(tail.lines()) == [("a.B", "one")]
    with log.open("a", encoding="utf-8") as file:
        file.write("o\n\tat some.Exception\n")
    assert list(tail.lines()) == [("a.B", "two")] and list(tail.lines()) == []


def test_decisions_are_those_of_the_partition(tmp_path: Path) -> None:
    log = tmp_path / "out"
    decisions = Decisions("t-0", Tail(log))
    change = (
        "08:00:00.000 [x] DEBUG org.apache.kafka.controller.ReplicationControlManager - [QuorumController id=100] "
        "partition change for {}-0 with topic ID x: isr: [1, 2] -> [2], leader: 1 -> 2, leaderEpoch: 0 -> 1, "
        "partitionEpoch: 0 -> 1\n"
    )
    log.write_text(change.format("t") + change.format("u"), encoding="utf-8")
    (made,) = decisions.look()
    assert (made.leader, made.epoch, made.isr, made.version) == (2, 1, {2}, 1)
    assert decisions.look() == [] and decisions.made == [made]
