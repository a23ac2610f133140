"""Logs as people paste them into bug reports: the verdict, the contradictions and rows of the timeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fencepost.traces.timeline.checkers import check_timeline
from fencepost.traces.timeline.describe import describe
from fencepost.traces.timeline.replica_state import replay_states
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.timeline import Timeline

PASTED = Path(__file__).parent / "pasted"
TRUNCATED = "broker 1 truncates orders-0 to offset 90, below its high watermark 120"
ELECTED = "the cause: broker 2 was elected uncleanly in leader epoch 1"
BROKER_1 = {"leader_epoch": 1, "leader": 2, "isr": None, "log_start": None, "high_watermark": 90, "log_end": 90}


@dataclass(frozen=True)
class Answer:
    """What one pasted log must yield.

    Args:
        rows: Node, event, high watermark and log end after it; some of the rows, in their order.
        contradictions: Check, verdict, first and last lost offset.
        messages: Parts of the messages.
        states: Last states, by partition and node.
    """

    files: tuple[str, ...]
    verdict: str
    rows: tuple[tuple[int, str, int | None, int | None], ...]
    contradictions: tuple[tuple[str, str, tuple[int, int] | None], ...] = ()
    messages: tuple[str, ...] = ()
    states: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)


LEADER_LOSES = (
    (1, "leads from 0", 0, 0),
    (1, "shrinks ISR to 1", 90, 120),
    (1, "follows 2 from 120", 120, 120),
    (1, "truncates to 90", 90, 90),
    (1, "truncates to 90, below HW 120", 90, 90),
)
TRUNCATION = (("truncation_below_high_watermark", "violated", (90, 119)),)
ANSWERS = {
    "one broker": Answer(
        ("k3-broker1.log",), "violated", LEADER_LOSES, TRUNCATION, (TRUNCATED, ELECTED), {("orders-0", 1): BROKER_1}
    ),
    "docker compose": Answer(
        ("compose.log",), "violated", LEADER_LOSES, TRUNCATION, (TRUNCATED, ELECTED), {("orders-0", 1): BROKER_1}
    ),
    "Strimzi": Answer(
        ("strimzi.log",), "violated", LEADER_LOSES, TRUNCATION, (TRUNCATED, ELECTED), {("orders-0", 1): BROKER_1}
    ),
    "both brokers": Answer(
        ("k3-broker1.log", "k3-broker2.log"),
        "violated",
        ((2, "follows 1 from 0", 0, 0), (2, "leads from 90", 90, 90), (1, "truncates to 90", 90, 90)),
        (("leader_starts_below_high_watermark", "violated", (90, 119)),),
        (
            "broker 2 starts as leader of orders-0 in epoch 1 at offset 90, below the high watermark 120",
            ELECTED,
            "broker 1 truncates to offset 90",
        ),
    ),
    "the new leader alone": Answer(
        ("k3-broker2.log",), "holds", ((2, "follows 1 from 0", 0, 0), (2, "leads from 90", 90, 90))
    ),
    # Kafka 1.1 stops instead of truncating. Whether the follower's records had been committed, no line says.
    "Kafka 1.1 stops": Answer(
        ("k10-broker2.log",),
        "unknown",
        ((2, "stops: its leader ends at 2051", None, 2391), (2, "leads from 1", None, 1)),
        (("leader_ends_below_high_watermark", "unknown", None),),
        ("no line shows whether records 2051 to 2390 had been committed",),
    ),
    "Kafka 0.10 halts": Answer(
        ("kafka-0.10-halts.log",),
        "unknown",
        ((7, "shrinks ISR to 7", None, None), (7, "stops: its leader ends at 50", None, 151)),
        (("leader_ends_below_high_watermark", "unknown", None),),
        ("no line shows whether records 50 to 150 had been committed",),
    ),
    # Elections without a leader; nothing in one node's lines can contradict another line.
    "quorum without a leader": Answer(
        ("kraft-0.log",),
        "unknown",
        (
            (0, "becomes leader", 38654548, 38654548),
            (0, "becomes unattached", 38725204, None),
            (0, "no active controller", None, None),
            (0, "rejects node 2's vote request", None, 38725203),
        ),
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_pasted_log_has_its_answer(name: str) -> None:
    answer = ANSWERS[name]
    read = read_sources([PASTED / each for each in answer.files])
    assert not read.problems
    timeline = Timeline.of(read.observations)
    report = check_timeline(timeline)
    assert report.verdict == answer.verdict
    found = tuple((each.check, each.verdict, each.lost) for each in report.contradictions)
    assert found == answer.contradictions
    told = "\n".join(each.message for each in report.contradictions)
    assert [each for each in answer.messages if each not in told] == []
    assert rows_in_order(timeline, answer.rows) == len(answer.rows)
    for (partition, node), state in answer.states.items():
        (own,) = [each for each in timeline.partitions if each.partition == partition]
        *_, (_, last) = replay_states(own)
        assert last[node].to_json() == state


def rows_in_order(timeline: Timeline, rows: tuple[tuple[int, str, int | None, int | None], ...]) -> int:
    """How many of the rows occur in their order, of all partitions one after the other."""
    count = 0
    for partition in timeline.partitions:
        for seen, states in replay_states(partition):
            if count == len(rows):
                break
            node, text, watermark, end = rows[count]
            if (seen.node, describe(seen)) != (node, text):
                continue
            state = states.get(seen.node or 0) if seen.kind.value not in ("vote", "controller changed") else None
            ends = (seen.high_watermark, seen.log_end) if state is None else (state.high_watermark, state.log_end)
            assert ends == (watermark, end), text
            count += 1
    return count


def test_pasted_logs_are_all_judged() -> None:
    judged = {each for answer in ANSWERS.values() for each in answer.files}
    assert judged == {each.name for each in PASTED.iterdir()}
