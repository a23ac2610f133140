"""Observations of several processes in one order."""

from __future__ import annotations

from fencepost.traces.timeline.event_kind import EventKind
from fencepost.traces.timeline.observation import Observation
from fencepost.traces.timeline.partition_timeline import PartitionTimeline


def observation(node: int, sequence: int, time: int | None) -> Observation:
    return Observation(
        kind=EventKind.HIGH_WATERMARK,
        partition="orders-0",
        file=f"broker-{node}.log",
        line=sequence + 1,
        sequence=sequence,
        time=time,
        node=node,
    )


def test_timeline_merges_processes_by_time() -> None:
    given = [observation(2, 0, 15), observation(1, 1, 20), observation(1, 0, 10)]
    merged = PartitionTimeline.of("orders-0", given)
    assert [(each.node, each.time) for each in merged.observations] == [(1, 10), (2, 15), (1, 20)]
    assert merged == PartitionTimeline.of("orders-0", reversed(given))
    assert merged.nodes == (1, 2)


def test_timeline_keeps_process_order_when_clock_goes_back() -> None:
    given = [observation(1, 0, 30), observation(1, 1, 10), observation(2, 0, 20), observation(2, 1, None)]
    merged = PartitionTimeline.of("orders-0", given)
    assert [(each.node, each.sequence) for each in merged.observations] == [(2, 0), (2, 1), (1, 0), (1, 1)]
    assert [each.sequence for each in merged.of_process(1)] == [0, 1]
