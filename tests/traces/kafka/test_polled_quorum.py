"""What was polled of a quorum, as a trace: looks that the model explains, and what no quorum of Kafka's would show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.snapshots.kafka_spec import VARIANT, printed
from fencepost.traces.kafka.polled import Look, Polled
from fencepost.traces.kafka.polled_quorum import TOPIC, QuorumPoller
from fencepost.traces.kafka.polled_trace import Abstracted, abstracted_quorum
from fencepost.traces.kafka.server_log.quorum import MAX_VOTERS
from fencepost.traces.replay import Budget, Replay, replay
from fencepost.traces.stepper import stepper_for


def look(node: int, of: str = "quorum", **seen: Any) -> Look:
    return Look(0.0, node, of, **seen)


def leads(node: int, epoch: int, end: int, hw: int | None, *counted: tuple[int, int]) -> Look:
    return look(node, epoch=epoch, leads=True, end=end, high_watermark=hw, counted=counted)


LED = (leads(1, 4, 7, 7, (2, 7)), leads(1, 4, 8, 7, (2, 7)), leads(1, 4, 8, 8, (2, 8)))
"""Node 1 leads in epoch 4; a record is written, fetched and committed."""
HANDED_ON = (*LED, look(2, "state file", epoch=5, voted=2), leads(2, 5, 8, None), leads(2, 5, 9, 9, (1, 9)))


def told(looks: Sequence[Look], voters: tuple[int, ...] = (1, 2)) -> Abstracted:
    return abstracted_quorum(Polled(TOPIC, 0, voters, list(looks), polls=3), printed.traced(VARIANT))


def judged(found: Abstracted, most: int) -> Replay:
    stepper = stepper_for(printed.traced(VARIANT), found.trace.header.constants, often=False)
    return replay(found.trace, budget=Budget(max_skipped=most, max_frontier=1_000_000), stepper=stepper)


def test_looks_become_cells() -> None:
    found = told(HANDED_ON)
    header = found.trace.header
    assert (header.protocol, header.variant, header.complete, found.watched) == ("kafka-quorum", VARIANT, False, (8,))
    assert header.constants["replicas"] == 2 and header.constants["max_leader_epoch"] == 1
    cells = [event.observed for event in found.trace.events]
    assert cells[0] == {"leader_epoch[0]": 0, "leader[0]": 0, "leo[0]": 0, "hw[0]": 0, "counted[0][1]": 0}
    assert cells[1] == {"leader_epoch[1]": 1, "voted[1]": 1}
    assert cells[-1] == {"leader_epoch[1]": 1, "leader[1]": 1, "leo[1]": 1, "hw[1]": 1, "counted[1][0]": 1}


@pytest.mark.parametrize("looks", [LED, HANDED_ON], ids=["a record", "another leader"])
def test_what_a_quorum_does_is_explained(looks: Sequence[Look]) -> None:
    found = judged(told(looks), 10)
    assert found.verdict is Verdict.HOLDS and found.skipped > 4


COUNTED_TWICE = (leads(1, 4, 8, 7, (2, 7)), leads(1, 4, 8, 8, (2, 7)))
TWO_LEADERS = (leads(1, 4, 7, 7, (2, 7)), leads(2, 4, 7, 7, (1, 7)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("looks", [COUNTED_TWICE, TWO_LEADERS], ids=["commits alone", "two leaders"])
def test_what_none_does_is_a_violation(looks: Sequence[Look]) -> None:
    """A record is committed that a majority lacks; an epoch has two leaders. All that the model comes to is tried."""
    written = (leads(1, 4, 7, 7, (2, 7)), *looks)
    found = judged(told(written), 60)
    assert (found.verdict, found.step) == (Verdict.VIOLATED, len(told(written).trace.events))


def test_too_many_voters_are_refused() -> None:
    with pytest.raises(BadInput, match=f"it has 6 voters; a quorum of {MAX_VOTERS} at most is told"):
        told(LED, (1, 2, 3, 4, 5, 6))


@pytest.mark.parametrize(
    ("leader", "voted", "shows"),
    [(1, 1, (None, None)), (2, -1, (2, None)), (2, 1, (2, 1)), (-1, 3, (None, 3))],
    ids=["leads", "follows", "follows and voted for itself", "voted"],
)
def test_a_state_file_says_whom_a_node_follows(
    tmp_path: Path, leader: int, voted: int, shows: tuple[int | None, int | None]
) -> None:
    folder = tmp_path / f"{TOPIC}-0"
    folder.mkdir()
    (tmp_path / "meta.properties").write_text("node.id=1\n", encoding="utf-8")
    poller = QuorumPoller([("127.0.0.1", 1)], [tmp_path])
    poller.polled.replicas = (1,)
    poller.poll()
    assert poller.polled.failures == 1, "there is no such file yet"
    state = {"leaderId": leader, "leaderEpoch": 3, "votedId": voted}
    (folder / "quorum-state").write_text(json.dumps(state), encoding="utf-8")
    poller.poll()
    (seen,) = poller.polled.looks
    assert (seen.epoch, seen.follows, seen.voted) == (3, *shows)
