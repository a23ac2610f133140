"""Several directories of one broker, and copies of other moments: what is put together, and what is told apart."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.capture import broker_directories, bundled_corpus
from fencepost.traces.kafka.checks import FilesReport, check_brokers
from fencepost.traces.kafka.directories import SecondCopy, by_node, read_brokers

from .encoder import (
    TOPIC_ID,
    Partition,
    metadata_partition,
    partition,
    partition_change,
    partition_record,
    register_broker,
    remove_topic,
    topic_record,
    unfence_broker,
    write_broker,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fencepost.traces.kafka.verdicts import CheckResult

METADATA = "__cluster_metadata-0"
ONE_TIME = "copies_of_one_time"


def test_two_log_dirs_of_one_broker_are_one_broker(tmp_path: Path) -> None:
    """A loss in the second directory is seen: the replica there lacks a record that was committed."""
    orders, payments = partition(0, 0), partition(0, 0)
    a = write_broker(tmp_path / "a", 1, {"t-0": orders}, directory="A")
    b = write_broker(tmp_path / "b", 1, {"t-1": payments}, directory="B", clean=True)
    others = {"t-0": orders, "t-1": partition(0, 1, hw=2)}
    c = write_broker(tmp_path / "c", 2, others)
    found = check_brokers(read_brokers([a, b, c]))
    assert [broker.label for broker in found.brokers] == ["broker 1", "broker 2"]
    assert [str(each.path) for each in found.brokers[0].directories] == [str(a), str(b)]
    assert sorted(found.brokers[0].partitions) == [("t", 0), ("t", 1)]
    assert not found.brokers[0].clean_shutdown, "only one of them has the marker"
    subjects = {each.subject for each in found.checks if each.verdict == "violated" and not each.informative}
    assert subjects == {"t-1"}
    assert check_brokers(read_brokers([c, b, a])).to_json() == found.to_json()
    assert check_brokers(read_brokers([a, c])).verdict == "holds", "as it was when the second one was dropped"


def test_the_metadata_log_may_have_a_directory_of_its_own(tmp_path: Path) -> None:
    decided = metadata_partition([topic_record("t"), partition_record([1, 2], [1, 2], 1)])
    a = write_broker(tmp_path / "a", 1, {"t-0": partition(0)}, directory=None)
    b = write_broker(tmp_path / "b", 1, {METADATA: decided}, directory=None)
    (broker,) = by_node(read_brokers([a, b]))
    assert broker.metadata is not None and sorted(broker.partitions) == [("__cluster_metadata", 0), ("t", 0)]
    assert [broker.to_json()["directories"][i]["path"] for i in (0, 1)] == [str(a), str(b)]
    assert check_brokers(read_brokers([b, a])).controller == "broker 1"


def test_two_copies_of_one_directory(tmp_path: Path) -> None:
    paths = [write_broker(tmp_path / name, 1, {f"{name}-0": partition(0)}) for name in "ab"]
    with pytest.raises(SecondCopy, match="node id 1 and directory id BJHo9cEqK2w are also those of"):
        read_brokers(paths)


@pytest.mark.parametrize("directories", [("A", "B"), (None, None)])
def test_one_partition_in_two_directories(tmp_path: Path, directories: tuple[str | None, str | None]) -> None:
    paths = [
        write_broker(tmp_path / name, 1, {"t-0": partition(0)}, directory=directory)
        for name, directory in zip("ab", directories, strict=True)
    ]
    with pytest.raises(SecondCopy, match=f"b/t-0: broker 1 has t-0 in {paths[0]} too; name each directory"):
        read_brokers(paths)
    with pytest.raises(BadInput):
        check_brokers([read_broker(path) for path in paths])


def test_two_clusters(tmp_path: Path) -> None:
    a = write_broker(tmp_path / "a", 1, {"t-0": partition(0)})
    b = write_broker(tmp_path / "b", 2, {"t-0": partition(0)}, cluster="other")
    with pytest.raises(BadInput, match="cluster id other, but"):
        read_brokers([a, b])
    assert [broker.node_id for broker in read_brokers([a])] == [1]


# -- copies of other moments ------------------------------------------------------------------------------------------


def told(found: FilesReport, *, notes: bool = False) -> list[CheckResult]:
    return [each for each in found.checks if each.check == ONE_TIME and each.informative == notes]


def cluster(tmp_path: Path, *logs: Sequence[bytes], **partitions: Partition) -> FilesReport:
    """Brokers 1, 2, … each with its own metadata log, and t-0 where it is given as ``b1``, ``b2``, …"""
    roots = []
    for node, values in enumerate(logs, start=1):
        held = {METADATA: metadata_partition(values)}
        if f"b{node}" in partitions:
            held["t-0"] = partitions[f"b{node}"]
        roots.append(write_broker(tmp_path / f"b{node}", node, held))
    return check_brokers(read_brokers(roots))


STARTED = [register_broker(1, 1), unfence_broker(1, 1), register_broker(2, 3), unfence_broker(2, 3)]
"""At offsets 1 to 4: both brokers are registered and unfenced."""


def test_a_broker_unfenced_without_its_registration(tmp_path: Path) -> None:
    found = cluster(tmp_path, STARTED, STARTED[:2])
    (result,) = told(found)
    assert (result.verdict, result.subject) == ("unknown", "broker 2") and found.verdict == "unknown"
    assert "its metadata log ends at 3, before its registration at 3, with which broker 1's has it" in result.message
    assert result.where == str(tmp_path / "b2") and list(found.older) == ["broker 2"]


@pytest.mark.parametrize("changes", [[], [unfence_broker(2, 3, fence=True)], [register_broker(2, 5)]])
def test_a_broker_that_stopped_looks_as_old_as_it_is(tmp_path: Path, changes: list[bytes]) -> None:
    """It has its registration; the controller fences it later, or hears of it again and has not unfenced it yet."""
    found = cluster(tmp_path, [*STARTED, *changes], STARTED[:3])
    (result,) = told(found)
    assert result.verdict == "holds"
    notes = [each.message for each in told(found, notes=True)]
    assert len(notes) == (not changes), "while it is unfenced, that it lags is worth knowing"
    assert all("ends at 4 and broker 1's, which has it unfenced, at 5: it lags, or" in each for each in notes)


def test_a_damaged_metadata_log_tells_no_time(tmp_path: Path) -> None:
    """What could not be read may be what is missed."""
    cluster(tmp_path, STARTED, STARTED)
    path = tmp_path / "b2" / METADATA / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    found = check_brokers(read_brokers([tmp_path / "b1", tmp_path / "b2"]))
    assert found.bad_input and found.older == {} and [each.verdict for each in told(found)] == ["holds"]


def test_a_broker_that_was_never_unfenced(tmp_path: Path) -> None:
    found = cluster(tmp_path, STARTED[:3], STARTED[:2])
    assert [each.verdict for each in told(found)] == ["holds"]


def test_a_marker_of_a_clean_stop_before_the_broker_started_again(tmp_path: Path) -> None:
    for epoch, verdict in ((3, "unknown"), (6, "holds")):
        again = [*STARTED, unfence_broker(2, 3, fence=True), register_broker(2, 6), unfence_broker(2, 6)]
        place = tmp_path / verdict
        one = write_broker(place / "1", 1, {METADATA: metadata_partition(again)})
        two = write_broker(place / "2", 2, {METADATA: metadata_partition(again)}, clean=True, clean_epoch=epoch)
        (result,) = told(check_brokers(read_brokers([one, two])))
        assert result.verdict == verdict
        if epoch == 3:
            assert "stopped cleanly at broker epoch 3" in result.message and "at 6" in result.message


def test_records_that_a_leader_wrote_before_it_knew_that_it_led(tmp_path: Path) -> None:
    created = [topic_record("t"), partition_record([1, 2], [1, 2], 1)]
    elected = [*created, partition_change(leader=2)]
    found = cluster(tmp_path, elected, created, b1=partition(0, 1), b2=partition(0, hw=1))
    results = told(found)
    assert [each.subject for each in results] == ["broker 2"]
    assert "broker 1 has records of t-0 that it wrote as leader of epoch 1, elected at metadata" in results[0].message
    isr = next(each for each in found.checks if each.check == "isr_agrees_below_high_watermark")
    assert isr.verdict == "unknown" and "its copy may be older" in isr.message
    # Had broker 1 led, its records would say nothing about broker 2.
    other = [*created, partition_change(leader=1)]
    found = cluster(tmp_path / "clean", other, created, b1=partition(0, 1), b2=partition(0, hw=1))
    assert [each.verdict for each in told(found)] == ["holds"]
    isr = next(each for each in found.checks if each.check == "isr_agrees_below_high_watermark")
    assert isr.verdict == "unknown", "broker 2 was not stopped cleanly, so its copy may be older"


def test_a_directory_whose_metadata_log_is_older_than_its_logs(tmp_path: Path) -> None:
    created = [topic_record("t"), partition_record([1, 2], [1, 2], 1)]
    found = cluster(tmp_path, [*created, partition_change(leader=1)], created, b1=partition(0, 1), b2=partition(0, 1))
    (result,) = told(found)
    assert result.subject == "broker 2" and "this directory is not of one moment" in result.message
    assert "t-0 has leader epoch 1 and its own metadata log knows 0" in result.message


def test_a_follower_that_is_ahead_of_its_leader(tmp_path: Path) -> None:
    """Its files were copied later; or the leader has lost what it had not synced, so nothing else is doubted."""
    created = [topic_record("t"), partition_record([1, 2], [1, 2], 1)]
    found = cluster(tmp_path / "a", created, created, b1=partition(0, hw=1), b2=partition(0, 0, hw=1))
    (result,) = told(found)
    assert (result.verdict, result.subject, found.older) == ("unknown", "broker 1", {})
    assert "its log ends at 1, where broker 2's goes on with records of that epoch" in result.message
    ahead = cluster(tmp_path / "b", created, created, b1=partition(0, 0, hw=1), b2=partition(0, hw=1))
    assert [each.verdict for each in told(ahead)] == ["holds"], "a follower may lag"
    # What an earlier leader left is truncated, and is none of this leader's.
    again = [*created, partition_change(leader=1)]
    left = cluster(tmp_path / "c", again, again, b1=partition(0, hw=1), b2=partition(0, 0, hw=1))
    assert [each.verdict for each in told(left)] == ["holds"]


def test_topics_of_one_name_and_other_ids(tmp_path: Path) -> None:
    created = [topic_record("t", UUID(int=5)), partition_record([1, 2], [1, 2], 1, topic_id=UUID(int=5))]
    stale = [topic_record("t"), partition_record([1, 2], [1, 2], 1)]
    anew = [*stale, remove_topic(TOPIC_ID), *created]
    found = cluster(tmp_path / "a", anew, stale, b1=replace(partition(0), topic_id=UUID(int=5)), b2=partition(9, 9))
    result = next(each for each in found.checks if each.check == "folders_of_one_topic")
    assert (result.verdict, result.informative, found.verdict) == ("unknown", False, "unknown")
    assert "was removed at metadata offset 3; it is in the ISR of the topic that has the name now" in result.message
    assert result.where == str(tmp_path / "a" / "b2" / "t-0")
    assert "violated" not in {each.verdict for each in found.checks}, "the two topics are not held against each other"
    # What neither metadata log knows is no topic of another time.
    found = cluster(tmp_path / "b", anew, stale, b2=replace(partition(0), topic_id=UUID(int=(1 << 64) - 1)))
    assert next(each for each in found.checks if each.check == "topic_ids_match").verdict == "violated"


@pytest.mark.parametrize(
    ("stage", "broker", "of"),
    [("7-all-back", 2, "1-steady"), ("7-all-back", 1, "4-old-leader-back"), ("5-lone-leader", 1, "3-clean-failover")],
)
def test_a_recorded_copy_of_another_stage(tmp_path: Path, stage: str, broker: int, of: str) -> None:
    """The clean cases, each stage as it was recorded, are in test_corpus.py: nothing there is of another time."""
    corpus = bundled_corpus()
    paths = [shutil.copytree(path, tmp_path / path.name) for path in broker_directories(corpus, stage)]
    shutil.rmtree(paths[broker - 1])
    shutil.copytree(broker_directories(corpus, of)[broker - 1], paths[broker - 1])
    found = check_brokers(read_brokers(paths))
    assert list(found.older) == [f"broker {broker}"]
    assert [each.verdict for each in told(found)] == ["unknown"]
    assert found.verdict == "unknown", "nothing is violated by copies of other times"
