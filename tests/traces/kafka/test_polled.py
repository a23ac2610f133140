"""What was polled of a partition, as a trace: looks that the model explains, and a loss that it does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.explore.result import Verdict
from fencepost.traces.kafka.negotiation import EPOCH_ENDS
from fencepost.traces.kafka.polled import Look, Polled, Poller
from fencepost.traces.kafka.polled_trace import MAX_EPOCHS, abstracted, watched_of
from fencepost.traces.replay import Budget, replay

VARIANT = "kip-320-kafka"


def look(broker: int, of: str, **seen: Any) -> Look:
    return Look(0.0, broker, of, **seen)


START = (
    look(1, "end", epoch=4, leads=True, end=7, starts=((3, 2), (4, 7))),
    look(1, "high watermark", epoch=4, high_watermark=7),
    look(2, "role", epoch=4, leads=False),
    look(2, "high watermark", epoch=4, high_watermark=7),
)
"""Broker 1 leads in epoch 4, and both have all seven records."""
WRITTEN = (
    *START,
    look(1, "end", epoch=4, leads=True, end=8, starts=((3, 2), (4, 7))),
    look(1, "high watermark", epoch=4, high_watermark=8),
)
"""And another one is committed."""
LOST = (*WRITTEN, look(2, "end", epoch=5, leads=True, end=7, starts=((4, 7), (5, 7))))
"""Broker 2 leads without it."""


def of_two(looks: Sequence[Look]) -> Polled:
    return Polled("t", 0, (1, 2), list(looks), polls=3)


def test_what_is_watched_was_nobodys_in_the_beginning() -> None:
    found = abstracted(of_two(WRITTEN), VARIANT)
    header, (first, *_, last) = found.trace.header, found.trace.events
    assert (found.watched, header.complete, header.source["first leader epoch"]) == ((7,), False, 4)
    assert header.constants == {"replicas": 2, "log_size": 1, "max_records": 2, "max_leader_epoch": 1}
    assert first.observed == {"leader_epoch[0]": 0, "leader[0]": 0, "leo[0]": 0}
    assert last.observed == {"leader_epoch[0]": 0, "hw[0]": 1}
    written = found.trace.events[4].observed
    assert written == {"leader_epoch[0]": 0, "leader[0]": 0, "leo[0]": 1, "record_epoch[0][0]": 0}


def test_a_run_is_explained_with_the_steps_that_nobody_saw() -> None:
    found = replay(abstracted(of_two(WRITTEN), VARIANT).trace, budget=Budget(max_skipped=6))
    assert found.verdict is Verdict.HOLDS and found.skipped > 6


def test_without_skipped_steps_nothing_can_be_said() -> None:
    assert replay(abstracted(of_two(WRITTEN), VARIANT).trace).verdict is Verdict.UNKNOWN


@pytest.mark.nightly(seconds=120)
def test_a_committed_record_that_a_new_leader_lacks_is_a_violation() -> None:
    """However many steps were missed: all that the model can come to was tried. With few of them that is not said."""
    trace = abstracted(of_two(LOST), VARIANT).trace
    assert replay(trace, budget=Budget(max_skipped=4)).verdict is Verdict.UNKNOWN
    found = replay(trace, budget=Budget(max_skipped=40, max_frontier=1_000_000))
    assert (found.verdict, found.step) == (Verdict.VIOLATED, len(LOST))


def test_where_logs_parted_is_watched_first() -> None:
    """Broker 1 had a record of epoch 4 where the next leader has one of epoch 5."""
    other = look(2, "end", epoch=5, leads=True, end=9, starts=((4, 7), (5, 8)))
    looks = (*START, look(1, "directory", end=9, starts=((3, 2), (4, 7))), other)
    assert watched_of(of_two(looks)) == (8,)
    cells = [event.observed for event in abstracted(of_two(looks), VARIANT).trace.events]
    assert cells[-2] == {"leo[0]": 1, "record_epoch[0][0]": 0}
    assert cells[-1] == {"leader_epoch[1]": 1, "leader[1]": 1, "leo[1]": 1, "record_epoch[1][0]": 1}
    cut = (*looks[:-1], look(1, "directory", end=8, starts=((3, 2), (4, 7))))
    assert watched_of(of_two(cut)) == (8,), "a record that was there, and is not any more"


def test_too_many_leader_epochs_are_left_out_and_told() -> None:
    later = (look(1, "role", epoch=4 + MAX_EPOCHS + 1, leads=False), look(1, "role", epoch=5, leads=False))
    found = abstracted(of_two((*WRITTEN, *later)), VARIANT)
    assert len(found.trace.events) == len(WRITTEN)
    assert found.ends == f"what came after leader epoch {4 + MAX_EPOCHS} is left out"


def test_nothing_seen_is_no_trace() -> None:
    with pytest.raises(BadInput, match="nothing was seen of it"):
        abstracted(of_two(()), VARIANT)


def test_a_directory_that_is_no_brokers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has no meta\.properties"):
        Poller([("127.0.0.1", 1)], "t", 0, [tmp_path])
    (tmp_path / "meta.properties").write_text("version=1\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"names no node\.id"):
        Poller([("127.0.0.1", 1)], "t", 0, [tmp_path])


def test_unnamed_leader_epochs_leave_room_for_elections() -> None:
    """Without leader epochs, each end that fell may come from an unobserved election."""
    polled = of_two((look(1, "directory", end=8), look(1, "directory", end=7), look(1, "offsets", high_watermark=7)))
    assert abstracted(polled, VARIANT).trace.header.constants["max_leader_epoch"] == 1
    polled.missing.add(1, EPOCH_ENDS, "the release is too old")
    header = abstracted(polled, VARIANT).trace.header
    assert header.constants["max_leader_epoch"] == 2
    assert header.source["missing"] == list(polled.missing.lines) != []


@pytest.mark.parametrize("name", ["node.id", "broker.id"])
def test_data_directory_names_its_broker(tmp_path: Path, name: str) -> None:
    """KRaft writes node.id, brokers with ZooKeeper broker.id."""
    (tmp_path / "meta.properties").write_text(f"version=0\n{name}=7\n", encoding="utf-8")
    assert list(Poller([("127.0.0.1", 1)], "t", 0, [tmp_path])._directories) == [7]
