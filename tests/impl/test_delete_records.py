"""DeleteRecords (KIP-107): what a leader deletes, what it waits for, what it refuses; and what followers make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.impl.compaction import CompactionConfig
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    CONSUMER,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    FetchRequest,
    OfflineReplicasRequest,
)

from .brokers import CONFIG, TP, Cluster

NONE = ErrorCode.NONE


def written(isr: tuple[int, ...] = (0, 1, 2), count: int = 4) -> Cluster:
    """Broker 0 leads, and all have all of some records of one batch each."""
    cluster = Cluster()
    cluster.elect(0, 0, isr)
    for number in range(count):
        cluster.produce(0, b"%d" % number)
    cluster.fetch_all(1, 2)
    assert cluster.state(0).high_watermark == count
    return cluster


def delete(cluster: Cluster, offset: int, node: int = 0) -> Any:
    return cluster.ask(node, DeleteRecordsRequest(TP, offset))


def fetch(cluster: Cluster, follower: int, log_start: int, offset: int = 4) -> None:
    cluster.ask(0, FetchRequest(follower, TP, offset, 1, 0, log_start_offset=log_start))


def test_a_deletion_is_over_when_every_live_replica_has_done_it() -> None:
    cluster = written()
    assert delete(cluster, 3) is None
    asked = cluster.last
    assert cluster.state(0).log_start == 3 and cluster.values(0) == b"3"
    cluster.exchange(1)
    assert cluster.state(1).log_start == 3
    cluster.exchange(1)
    cluster.exchange(2)
    assert cluster.answer_to(asked) is None, "2 has done it, and has not said so"
    cluster.exchange(2)
    assert cluster.answer_to(asked) == DeleteRecordsResponse(NONE, 3)
    assert delete(cluster, 2) == DeleteRecordsResponse(NONE, 3), "it is deleted already"
    assert cluster.state(0).log_start == 3


def test_the_low_watermark_is_that_of_the_live_replicas_as_they_told() -> None:
    cluster = written()
    cluster.ask(0, OfflineReplicasRequest(1, TP, frozenset({2}), 0, 1))
    assert delete(cluster, 2) is None
    first = cluster.last
    fetch(cluster, 1, 1)
    assert cluster.answer_to(first) is None
    fetch(cluster, 1, 2)
    assert cluster.answer_to(first) == DeleteRecordsResponse(NONE, 2)


def test_up_to_the_high_watermark_and_no_further() -> None:
    cluster = written(isr=(0, 1))
    cluster.produce(0, b"4")
    before = cluster.snapshot(0)
    for offset in (5, 6, -2, 1 << 62):
        assert delete(cluster, offset) == DeleteRecordsResponse(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert cluster.snapshot(0) == before
    assert delete(cluster, -1) is None
    assert cluster.state(0).log_start == 4 and cluster.values(0) == b"4"


def test_who_does_not_lead_deletes_nothing() -> None:
    cluster = written()
    before = cluster.snapshot(1)
    assert delete(cluster, 2, node=1) == DeleteRecordsResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert cluster.snapshot(1) == before


def test_what_waits_is_given_up_in_time_and_where_another_leads() -> None:
    cluster = written()
    assert delete(cluster, 1) is None
    first = cluster.last
    cluster.network.clock.advance(CONFIG.request_timeout_ms - 1)
    cluster.brokers[0].fire(("delete", TP))
    assert cluster.answer_to(first) is None
    cluster.network.clock.advance(1)
    cluster.brokers[0].fire(("delete", TP))
    assert cluster.answer_to(first) == DeleteRecordsResponse(ErrorCode.REQUEST_TIMED_OUT)
    assert cluster.state(0).log_start == 1 and ("delete", TP) not in cluster.brokers[0].timers()
    assert delete(cluster, 2) is None
    second = cluster.last
    cluster.tell(0, cluster.request(1, 1))
    assert cluster.answer_to(second) == DeleteRecordsResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_a_leader_of_another_epoch_hears_anew_where_the_logs_begin() -> None:
    cluster = written()
    assert delete(cluster, 2) is None
    asked = cluster.last
    fetch(cluster, 1, 2)
    cluster.tell(0, cluster.request(0, 1))
    cluster.ask(0, FetchRequest(2, TP, 4, 1, 1, log_start_offset=2))
    assert cluster.answer_to(asked) is None, "1 told it in another epoch"
    cluster.ask(0, FetchRequest(1, TP, 4, 1, 1, log_start_offset=2))
    assert cluster.answer_to(asked) == DeleteRecordsResponse(NONE, 2)


def test_nothing_below_the_log_start_is_served_and_it_outlives_a_crash() -> None:
    cluster = written()
    delete(cluster, 3)
    assert cluster.ask(0, FetchRequest(CONSUMER, TP, 2, 100)).error is ErrorCode.OFFSET_OUT_OF_RANGE
    cluster.crash(0)
    assert cluster.state(0).log_start == 3


def test_a_topic_that_keeps_the_latest_of_each_key_deletes_nothing_from_its_front() -> None:
    cluster = Cluster(config=replace(CONFIG, compacted={TP.topic: CompactionConfig()}))
    cluster.elect(0, 0, [0])
    assert delete(cluster, 0) == DeleteRecordsResponse(ErrorCode.POLICY_VIOLATION)


@pytest.mark.parametrize("offset", [None, "0", 1.0, True, 1 << 63])
def test_a_malformed_offset(offset: Any) -> None:
    cluster = written()
    assert delete(cluster, offset) == DeleteRecordsResponse(ErrorCode.INVALID_REQUEST)
