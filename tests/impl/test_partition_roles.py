"""LeaderAndIsr: what a replica takes up, what it refuses, and what it is after a restart."""

from __future__ import annotations

from fencepost.impl.wire.errors import ErrorCode

from .brokers import Cluster


def test_three_replicas_commit() -> None:
    cluster = Cluster()
    cluster.elect(0, 0)
    assert cluster.produce(0, b"a").error is ErrorCode.NONE
    assert cluster.produce(0, b"b", acks=-1) is None
    produce = cluster.last
    assert cluster.state(0).high_watermark == 0
    cluster.fetch_all(1, 2)
    assert [cluster.values(node) for node in range(3)] == [b"ab"] * 3
    assert [cluster.state(node).high_watermark for node in range(3)] == [2, 2, 2]
    answer = cluster.answer_to(produce)
    assert answer is not None and answer.error is ErrorCode.NONE and answer.base_offset == 1  # type: ignore[union-attr]
