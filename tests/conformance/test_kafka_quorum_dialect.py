"""The rows F1 to F14 of DEVIATIONS.md, of snapshots: Apache Kafka's nodes do the one, the model of the text the other.

The Apache variant, ``kip-630-kafka``, agrees with Kafka wherever the model has a cell for it. Of roles there is
``test_kafka_quorum_dialect_roles.py``; what Kafka does besides and the holes of the text are in
``test_kafka_quorum_driver.py``. A row that a release closes turns its test red, and that says so
(``kafka_dialect.py``).
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fencepost.conformance.kafka.process import QUORUM, DriverFailedError, Jvm
from fencepost.model.protocols.snapshots.kafka_spec import VARIANT
from fencepost.traces.kafka.batches import Limits, SegmentScan
from fencepost.traces.kafka.metadata import control_type
from fencepost.traces.kafka.problems import ProblemLog

from .kafka_dialect import RowClosed, Walk, shipped
from .kafka_jvm import one_jvm, planted
from .kafka_quorum import Nodes, led
from .kafka_quorum_model import (
    WRITTEN,
    A,
    B,
    C,
    begin_behind,
    commit,
    elect,
    follow,
    model_led,
    snapshot,
    walk,
    write,
)

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all; each test starts its nodes afresh."""
    yield from one_jvm(drives=QUORUM)


def fields(jvm: Jvm, api: str, side: str = "request") -> set[str]:
    """The names of the fields of a message's newest version, without where they are."""
    by_version = jvm.ask("fields", api=api)[side]
    return {path.rsplit(".", 1)[-1] for path in by_version[max(by_version, key=int)]}


def files(jvm: Jvm, node: int) -> dict[str, bytes]:
    """What is in a node's folder."""
    return {name: base64.b64decode(data) for name, data in jvm.ask("files", node=node)["files"].items()}


# -- snapshots and their ids ------------------------------------------------------------------------------------------


def test_f1_a_snapshots_id_is_an_exclusive_end(jvm: Jvm) -> None:
    with shipped("F1", "a snapshot is named by its exclusive end and its last record's epoch"):
        nodes = led(jvm)
        nodes.snapshot(A, 2)
        ((end, epoch, _, lines),) = nodes.seen[A]["snapshots"]
        assert (end, epoch, lines) == (2, 1, ["0 1 -", "1 1 r0"])
        assert f"{2:020}-{1:010}.checkpoint" in files(jvm, A)
    # All variants count as the text does, by the last offset, and the adapter translates.
    for variant in (WRITTEN, VARIANT):
        found = model_led(variant)
        snapshot(found, A, 1)
        assert found["snapshot_records[0][1]"] == 2


def fetching(jvm: Jvm, *, chunks: int, has: bool = False) -> Nodes:
    """C has begun to fetch A's snapshot of two records, behind which A's log begins; ``has``: C has a record itself."""
    nodes = led(jvm)
    nodes.follow(C, A)
    if has:
        nodes.fetch(C, A)
        assert nodes.log(C) == ["0 1 -"]
    nodes.snapshot(A, 2, chunks)
    nodes.clean(A, 2, 1)
    assert nodes.fetch(C, A)["snapshot"] == [2, 1] and nodes.seen[C]["fetching"] == [2, 1, 0]
    return nodes


def model_fetching(variant: str) -> Walk:
    """The same in the model, C with a record of its own: A's log has two records, and begins behind the first two."""
    found = walk(variant)
    elect(found, A, B, 0)
    for node in (B, C):
        follow(found, node, A, 0)
    for _ in range(3):
        write(found, A)
    commit(found, A, B)
    found("follower_fetch", leader=A, follower=C)
    snapshot(found, A, 1, chunks=2)
    begin_behind(found, A, 1)
    found("follower_start_over", leader=A, follower=C)
    return found


def test_f2_who_fetches_a_snapshot_fetches_nothing_else(jvm: Jvm) -> None:
    """But where it is not answered in time it asks anew by a Fetch, at the end of the log that it has still."""
    with shipped("F2", "a follower sends Fetch or FetchSnapshot, one after the other, and never both"):
        nodes = fetching(jvm, chunks=2, has=True)
        nodes.lose(C)
        for _ in range(3):
            nodes.ask("elapse", node=C, ms=0)
            assert nodes.seen[C]["fetching"] == [2, 1, 0]
            assert len([each for each in nodes.flight if each["from"] == C]) == 1
            nodes.lose(C)
        nodes = fetching(jvm, chunks=2, has=True)
        assert nodes.has("FETCH_SNAPSHOT", C, A) and not nodes.has("FETCH", C, A)
        nodes.fetch_snapshot(C, A)
        assert nodes.has("FETCH_SNAPSHOT", C, A) and not nodes.has("FETCH", C, A)
        nodes.lose(C)
        nodes.ask("elapse", node=C, ms=0)
        assert nodes.find("FETCH", C, A)["offset"] == 1
        assert nodes.exchange("FETCH", C, A)["snapshot"] == [2, 1] and nodes.seen[C]["fetching"] == [2, 1, 0]
    refused = {}
    for variant in (WRITTEN, VARIANT):
        refused[variant] = model_fetching(variant).refused_by("follower_fetch", leader=A, follower=C)
    assert refused == {WRITTEN: None, VARIANT: "reaches_back"}


def test_f3_a_fetch_at_the_log_start_is_held_against_the_earliest_snapshot(jvm: Jvm) -> None:
    """B has a record of the first epoch at offset 0, all others one of the second; A's log begins at 1."""
    with shipped("F3", "a fetch at the log start of another epoch than the earliest snapshot's gets that snapshot"):
        nodes = Nodes(jvm)
        nodes.elect(B, C)
        nodes.lose()
        nodes.elect(A, C)
        nodes.follow(C, A)
        nodes.append(A, "r")
        while nodes.seen[C]["hw"] < 2:
            nodes.fetch(C, A)
        nodes.snapshot(A, 1)
        nodes.clean(A, 1, nodes.seen[A]["epoch"])
        nodes.follow(B, A)
        assert nodes.seen[A]["begin"] == nodes.seen[B]["end"] == 1
        assert nodes.fetch(B, A).get("snapshot") == [1, nodes.seen[A]["epoch"]]
    refused = {}
    for variant in (WRITTEN, VARIANT):
        found = walk(variant)
        elect(found, B, C, 0)
        write(found, B)
        if found.has("hear_of_epoch"):
            found("hear_of_epoch", replica=A, teller=B)
        elect(found, A, C, 1)
        follow(found, C, A, 1)
        write(found, A)
        write(found, A)
        commit(found, A, C)
        # By the text a snapshot may reach past the log start, so that nobody knows the epoch of the record before that.
        snapshot(found, A, 1 if variant == WRITTEN else 0)
        begin_behind(found, A, 0)
        follow(found, B, A, 1)
        refused[variant] = found.refused_by("follower_fetch", leader=A, follower=B)
    assert refused == {WRITTEN: None, VARIANT: "reaches_back"}


def test_f4_a_log_is_good_at_boot_by_a_snapshot_at_its_start(jvm: Jvm) -> None:
    with shipped("F4", "a log with a snapshot at its start is good at boot, whatever is committed"):
        nodes = led(jvm)
        nodes.snapshot(A, 2)
        nodes.clean(A, 2, 1)
        nodes.ask("crash", node=A)
        nodes.ask("start", node=A)
        assert nodes.log(A) == ["2 1 r1", "3 1 r2"] and nodes.seen[A]["known"] == -1
    written, apache = (model_led(variant) for variant in (WRITTEN, VARIANT))
    for found in (written, apache):
        snapshot(found, A, 0)
        begin_behind(found, A, 0)
    assert written.refused_by("restart", replica=A, checkpoint=0) == "log_valid"
    written("restart_empty", replica=A, checkpoint=0)
    apache("resume", replica=A, end=2)
    assert (written["leo[0]"], apache["leo[0]"]) == (0, 2)


def test_f4_without_such_a_snapshot_nobody_starts(jvm: Jvm) -> None:
    """The snapshot is deleted by a change planted in Kafka's log: what was written is on the disk without it."""
    with shipped("F4", "a node whose log does not begin at 0 does not start without a snapshot"):
        with planted(jvm, "DELETES_LAST"):
            nodes = led(jvm)
            nodes.snapshot(A, 2)
            nodes.clean(A, 2, 1)
            nodes.ask("crash", node=A)
        with pytest.raises(DriverFailedError, match="snapshot"):
            nodes.ask("start", node=A)
    found = model_led(VARIANT)
    snapshot(found, A, 0)
    begin_behind(found, A, 0)
    assert not found.has("resume_empty") and not found.has("restart_empty")


# -- what travels -----------------------------------------------------------------------------------------------------


def test_f5_a_response_names_its_snapshot(jvm: Jvm) -> None:
    """The text's late response has no such name; in the variants of what runs, a response has its request."""
    with shipped("F5", "FetchSnapshot names the current epoch, and its response the snapshot, its size and a position"):
        assert "current_leader_epoch" in fields(jvm, "FETCH_SNAPSHOT")
        assert {"snapshot_id", "end_offset", "size", "position"} <= fields(jvm, "FETCH_SNAPSHOT", "response")
    assert walk(WRITTEN, 2, 0, 2, 0, 1, 0, 1, 0).has("late_chunk") and not walk(VARIANT).has("late_chunk")


def test_f6_the_last_bytes_are_told_by_the_size(jvm: Jvm) -> None:
    with shipped("F6", "there is no Continue: a snapshot is whole when its size is reached"):
        assert not {"continue", "continue_"} & fields(jvm, "FETCH_SNAPSHOT", "response")
        nodes = fetching(jvm, chunks=2)
        first = nodes.fetch_snapshot(C, A)
        assert first["bytes"] < first["size"] and nodes.snapshots(C) == []
        last = nodes.fetch_snapshot(C, A)
        assert last["position"] + last["bytes"] == last["size"] == first["size"] and nodes.snapshots(C) == [(2, 1)]
    # The text's follower may ask at the file's end, and is told that nothing is left; the shipped one never does.
    written, apache = (model_fetching(variant) for variant in (WRITTEN, VARIANT))
    for found in (written, apache):
        found("fetch_snapshot", leader=A, follower=C)
        assert found["position[2]"] == 1
        found("fetch_snapshot", leader=A, follower=C)
        assert (found["fetching[2]"], found["snapshot_size[2][1]"]) == (-1, 2)


def test_f7_a_position_that_is_not_there_has_an_error_of_its_own(jvm: Jvm) -> None:
    """To write it is another matter (``test_kafka_quorum_driver.py``)."""
    with shipped("F7", "there is an error POSITION_OUT_OF_RANGE, code 99"):
        errors = jvm.ask("errors")["errors"]
        assert errors.get("POSITION_OUT_OF_RANGE") == 99 != errors["OFFSET_OUT_OF_RANGE"]
    # Nobody in the variants asks past the end of the file that the leader has.
    assert model_fetching(VARIANT).refused_by("fetch_snapshot", leader=A, follower=C) is None


def test_f8_snapshots_are_made_by_bytes_and_time(jvm: Jvm) -> None:
    with shipped("F8", "bytes and time say when a snapshot is made, and no number of records"):
        nodes = led(jvm)
        names = set(jvm.ask("settings", node=A)["names"])
        made = {"metadata.log.max.record.bytes.between.snapshots", "metadata.log.max.snapshot.interval.ms"}
        assert made <= names and not {name for name in names if "minimum.records" in name}
        nodes.snapshot(A, 1)
        nodes.snapshot(A, 2)
        assert nodes.snapshots(A) == [(1, 1), (2, 1)]
    # With a minimum of records the text's node waits, and the shipped one's machine decides.
    refused = {}
    for variant in (WRITTEN, VARIANT):
        found = model_led(variant, 3, 0, 3, 2, 2, 2, 0, 1)
        refused[variant] = found.refused_by("generate_snapshot", replica=A, offset=0, more=0)
    assert refused == {WRITTEN: "enough_records", VARIANT: None}


# -- cleaning ---------------------------------------------------------------------------------------------------------


def test_f9_each_node_cleans_its_own_log(jvm: Jvm) -> None:
    with shipped(
        "F9", "each node cleans by itself, up to the end of its second snapshot, once it knows what is committed"
    ):
        nodes = led(jvm)
        for end in (2, 3):
            nodes.snapshot(A, end)
        nodes.ask("clean", node=A)
        assert nodes.seen[A]["begin"] == 3 and nodes.snapshots(A) == [(3, 1)]
        assert f"{3:020}-{1:010}.checkpoint" in files(jvm, A)
        nodes.snapshot(B, 3)
        nodes.append(A, "r3")
        while nodes.seen[B]["hw"] < 5:
            assert nodes.fetch(B, A)["begin"] == 3
        assert nodes.seen[B]["begin"] == 0
        # Who has just started knows nothing to be committed, and cleans nothing.
        nodes.snapshot(B, 4)
        nodes.ask("crash", node=B)
        nodes.lose(B)
        nodes.ask("start", node=B)
        nodes.ask("clean", node=B)
        assert nodes.seen[B]["begin"] == 0 and nodes.snapshots(B) == [(3, 1), (4, 1)]
    begins = {}
    for variant in (WRITTEN, VARIANT):
        found = model_led(variant)
        for node in (A, B):
            snapshot(found, node, 0)
        begin_behind(found, A, 0)
        found("follower_fetch", leader=A, follower=B)
        begins[variant] = found["lbo[1]"]
    assert begins == {WRITTEN: 1, VARIANT: 0}
    assert not walk(VARIANT).has("leader_advance_lbo") and walk(VARIANT).has("delete_before_snapshot")


def test_f10_no_controller_takes_delete_records(jvm: Jvm) -> None:
    with shipped("F10", "DeleteRecords is no request to a controller"):
        assert jvm.ask("fields", api="DELETE_RECORDS")["listeners"] == ["BROKER"]
        assert jvm.ask("fields", api="FETCH_SNAPSHOT")["listeners"] == ["CONTROLLER"]
    assert walk(WRITTEN).has("delete_records") and not walk(VARIANT).has("delete_records")


def test_f11_a_snapshot_ends_where_a_batch_does(jvm: Jvm) -> None:
    with shipped("F11", "a snapshot ends where a batch does, and nowhere else"):
        nodes = Nodes(jvm)
        nodes.elect(A, B)
        nodes.follow(B, A)
        nodes.append(A, "r0", "r1")
        while nodes.seen[B]["hw"] < 3:
            nodes.fetch(B, A)
        with pytest.raises(DriverFailedError, match="not batch aligned"):
            nodes.ask("snapshot at", node=A, end=2, epoch=1)
        for end in (1, 3):
            nodes.ask("snapshot at", node=A, end=end, epoch=1)
    # No variant has batches: each record is one, and what the adapter has a machine make ends where one does.
    for variant in (WRITTEN, VARIANT):
        for last in (0, 1):
            assert model_led(variant).refused_by("generate_snapshot", replica=A, offset=last, more=0) is None


def test_f12_a_snapshot_is_batches_between_a_header_and_a_footer(jvm: Jvm) -> None:
    """Read by our own reader of Kafka's files. That ``0-0`` is written by who formats is seen of a recorded cluster."""
    with shipped("F12", "a snapshot's batches are of its id's epoch, from offset 0 on, from a header to a footer"):
        nodes = Nodes(jvm)
        nodes.elect(A, B)
        nodes.lose()
        nodes.wait(A)
        nodes.elect(A, B)
        nodes.follow(B, A)
        while nodes.seen[B]["hw"] < 2:
            nodes.fetch(B, A)
        epoch = nodes.seen[A]["epoch"]
        nodes.snapshot(A, 2)
        name = f"{2:020}-{epoch:010}.checkpoint"
        data = files(jvm, A)[name]
        batches = list(SegmentScan(io.BytesIO(data), len(data), ProblemLog(Path(name)), last=False))
        assert [each.base_offset for each in batches] == [0, 1, 3] and {each.leader_epoch for each in batches} == {
            epoch
        }
        kinds = [[control_type(each.key) for each in batch.records(Limits())] for batch in batches if batch.control]
        assert kinds[0][0] == "SNAPSHOT_HEADER" and kinds[-1] == ["SNAPSHOT_FOOTER"]


def test_f13_log_and_snapshots_stay_until_the_last_bytes(jvm: Jvm) -> None:
    with shipped(
        "F13", "whoever fetches a snapshot keeps its log until it has the last bytes, or gives the snapshot up"
    ):
        nodes = fetching(jvm, chunks=2, has=True)
        nodes.fetch_snapshot(C, A)
        assert nodes.log(C) == ["0 1 -"] and nodes.seen[C]["begin"] == 0
        nodes.fetch_snapshot(C, A)
        assert nodes.log(C) == [] and nodes.seen[C]["begin"] == nodes.seen[C]["end"] == 2
        nodes = fetching(jvm, chunks=2, has=True)
        nodes.fetch_snapshot(C, A)
        nodes.wait(C)
        assert nodes.seen[C]["role"] == "prospective" and "fetching" not in nodes.seen[C]
        assert nodes.log(C) == ["0 1 -"]
    written, apache = (model_fetching(variant) for variant in (WRITTEN, VARIANT))
    assert (written["lbo[2]"], written["leo[2]"]) == (2, 2) and (apache["lbo[2]"], apache["leo[2]"]) == (0, 1)
    apache("give_up_snapshot", replica=C)
    assert (apache["fetching[2]"], apache["leo[2]"]) == (-1, 1)


def test_f14_whoever_fetches_from_0_gets_a_snapshot_wherever_there_is_one(jvm: Jvm) -> None:
    with shipped("F14", "a fetch at 0 gets the id of a snapshot, though the log begins at 0"):
        nodes = led(jvm)
        nodes.follow(C, A)
        nodes.snapshot(A, 2)
        assert nodes.seen[A]["begin"] == 0
        assert nodes.fetch(C, A).get("snapshot") == [2, 1]
    refused = {}
    for variant in (WRITTEN, VARIANT):
        found = model_led(variant)
        snapshot(found, A, 0)
        refused[variant] = [
            found.refused_by(action, leader=A, follower=C) for action in ("follower_fetch", "follower_start_over")
        ]
    assert refused == {WRITTEN: [None, "begins_later"], VARIANT: ["reaches_back", None]}


@pytest.mark.parametrize(
    ("defect", "row", "test"),
    [
        ("VALIDATES_NOTHING", "F3", test_f3_a_fetch_at_the_log_start_is_held_against_the_earliest_snapshot),
        ("KEEPS_LOG", "F13", test_f13_log_and_snapshots_stay_until_the_last_bytes),
        ("DELETES_LAST", "F4", test_f4_a_log_is_good_at_boot_by_a_snapshot_at_its_start),
    ],
    ids=["F3", "F13", "F4"],
)
def test_a_row_of_the_quorum_that_is_closed_is_told(
    jvm: Jvm, defect: str, row: str, test: Callable[[Jvm], None]
) -> None:
    """Kafka's classes do something else by a change planted in them, as those of another release might."""
    with planted(jvm, defect), pytest.raises(RowClosed, match=rf"^{row} of specs/DEVIATIONS\.md: .*The row is closed"):
        test(jvm)
