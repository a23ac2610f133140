"""Records of the metadata log that Kafka's replay rejects: planted in written logs and in recorded ones."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.capture import bundled_corpus, node_directories
from fencepost.traces.kafka.checks import FilesReport, check_brokers
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.verdicts import CheckResult

from .encoder import (
    TOPIC_ID,
    Partition,
    batch,
    encode,
    metadata_log,
    partition_change,
    partition_record,
    register_broker,
    remove_topic,
    snapshot_file,
    topic_record,
    unfence_broker,
    write_broker,
)

REPORTED = Path(__file__).with_name("rejected_records.tar.gz")
LOG = "__cluster_metadata-0"
OTHER = UUID(int=77)
DIRECTORY = UUID(int=1234)
FEATURES = [{"Name": "metadata.version", "MinSupportedVersion": 7, "MaxSupportedVersion": 34}]
BEGIN, END, ABORT = (encode(f"{name}TransactionRecord") for name in ("Begin", "End", "Abort"))


def register(broker: int, directory: UUID = DIRECTORY) -> bytes:
    """A registration with a log directory and the levels that the broker supports."""
    fields: dict[str, Any] = {"BrokerId": broker, "BrokerEpoch": broker, "LogDirs": [directory], "Fenced": True}
    return encode("RegisterBrokerRecord", 3, Features=FEATURES, **fields)


def feature(name: str, level: int) -> bytes:
    return encode("FeatureLevelRecord", Name=name, FeatureLevel=level)


def entry(number: int) -> bytes:
    fields = {"ResourceType": 2, "ResourceName": "t", "PatternType": 3, "Principal": "User:u", "Host": "*"}
    return encode("AccessControlEntryRecord", Id=UUID(int=number), Operation=3, PermissionType=3, **fields)


def producer_ids(next_id: int) -> bytes:
    return encode("ProducerIdsRecord", BrokerId=1, BrokerEpoch=1, NextProducerId=next_id)


START = [
    feature("metadata.version", 25),
    *(register_broker(each, 10 + each) for each in (1, 2, 3)),
    register(4),
    topic_record("t"),
    partition_record([1, 2, 3], [1, 2, 3], 1, leader_epoch=5),
    producer_ids(1000),
    entry(1),
    encode("UserScramCredentialRecord", Name="u", Mechanism=1),
]
"""Offsets 1 to 10; what comes next is at 11."""
AT = len(START) + 1

CLEAN: dict[str, list[bytes]] = {
    "nothing more": [],
    "a topic anew": [remove_topic(TOPIC_ID), topic_record("t", OTHER)],
    "an aborted removal": [BEGIN, remove_topic(TOPIC_ID), ABORT, partition_change(isr=[1, 2])],
    "an aborted topic": [BEGIN, topic_record("u", OTHER), ABORT, topic_record("u", OTHER)],
    "a transaction": [BEGIN, topic_record("u", OTHER), END, remove_topic(OTHER)],
    "a broker in a new epoch": [register_broker(1, 20), unfence_broker(1, 20)],
    "a directory of a broker that has left": [
        encode("UnregisterBrokerRecord", BrokerId=4, BrokerEpoch=4),
        register(5),
    ],
    "the next producer ids": [producer_ids(1001)],
    "an entry": [encode("RemoveAccessControlEntryRecord", Id=UUID(int=1)), entry(1)],
    "a level that a broker supports": [feature("metadata.version", 33)],
}

#: The records, the first words about the last of them, and whether brokers reject it too.
REJECTED: dict[str, tuple[list[bytes], str, bool]] = {
    "topic twice": ([topic_record("t")], "topic t already exists with this id", False),
    "topic twice, other id": (
        [topic_record("t", OTHER)],
        "topic t already exists with id EjRWeBI0RniSNFZ4EjRWeA",
        False,
    ),
    "topic twice, after an abort": ([BEGIN, remove_topic(TOPIC_ID), ABORT, topic_record("t", OTHER)], "topic t", False),
    "in a transaction": ([BEGIN, topic_record("t", OTHER)], "topic t already exists", False),
    "partition of no topic": ([partition_record([1], [1], 1, topic_id=OTHER)], "no topic has this id", True),
    "change of no topic": ([partition_change(leader=1, topic_id=OTHER)], "no topic has this id", True),
    "change of no partition": ([partition_change(leader=1, partition_index=9)], "topic t has no such partition", True),
    "change after removal": ([remove_topic(TOPIC_ID), partition_change(leader=1)], "no topic has this id", True),
    "removal of no topic": ([remove_topic(OTHER)], "no topic has this id", True),
    "removal twice": ([remove_topic(TOPIC_ID), remove_topic(TOPIC_ID)], "no topic has this id", True),
    "no such recovery state": (
        [encode("PartitionChangeRecord", PartitionId=0, TopicId=TOPIC_ID, LeaderRecoveryState=4)],
        "4 is no leader recovery state",
        True,
    ),
    "directories": (
        [encode("PartitionChangeRecord", 1, PartitionId=0, TopicId=TOPIC_ID, Directories=[DIRECTORY])],
        "it has 1 directories for 3 replicas",
        True,
    ),
    "eligible replicas of no topic": ([encode("ClearElrRecord", TopicName="no")], "no topic has this name", True),
    "fence of nobody": ([unfence_broker(9, 1, fence=True)], "broker 9 is not registered", True),
    "fence of a former process": ([unfence_broker(3, 12)], "broker 3 is registered with broker epoch 13", True),
    "change of a former process": (
        [encode("BrokerRegistrationChangeRecord", BrokerId=3, BrokerEpoch=12, Fenced=1)],
        "broker 3 is registered with broker epoch 13",
        True,
    ),
    "unregistration of nobody": (
        [encode("UnregisterBrokerRecord", BrokerId=9, BrokerEpoch=1)],
        "broker 9 is not registered",
        False,
    ),
    "a directory of two brokers": (
        [register(5)],
        "log directory AAAAAAAAAAAAAAAAAAAE0g belongs to broker 4",
        False,
    ),
    "unregistration of no controller": (
        [encode("UnregisterControllerRecord", ControllerId=9)],
        "controller 9 is not registered",
        False,
    ),
    "producer ids go back": ([producer_ids(1000)], "producer ids below 1000 are given out already", False),
    "removal of no entry": (
        [encode("RemoveAccessControlEntryRecord", Id=OTHER)],
        "no access control entry has this id",
        True,
    ),
    "removal of no credential": (
        [encode("RemoveUserScramCredentialRecord", Name="u", Mechanism=2)],
        "the user has no such credential",
        False,
    ),
    "token of nobody": (
        [encode("DelegationTokenRecord", Owner="u", Requester="User:u")],
        '"u" is no principal of the form TYPE:NAME',
        True,
    ),
    "config of no broker": (
        [encode("ConfigRecord", ResourceType=4, ResourceName="b1", Name="log.retention.ms", Value="1")],
        "b1 is no broker id",
        False,
    ),
    "a level that nobody supports": ([feature("metadata.version", 35)], "Kafka 4.4 supports levels 7 to 33", True),
    "a feature that nobody supports": ([feature("a.version", 1)], "Kafka 4.4 supports no such feature", False),
    "end of no transaction": ([END], "no transaction has begun", True),
    "transaction in a transaction": ([BEGIN, BEGIN], "the transaction before it has not ended", True),
    "no decodable record": ([topic_record("name")[:-5]], "it does not decode", True),
}


def node(root: Path, number: int, values: Sequence[bytes], **files: Any) -> Path:
    """The directory of a node with these records from offset 1 on."""
    data = metadata_log(values)
    return write_broker(root / str(number), number, {LOG: Partition({0: data}, [(1, 0)], None, topic_id=None, **files)})


def replays(report: FilesReport) -> list[CheckResult]:
    return [each for each in report.checks if each.check == "metadata_log_replays"]


def checked(*roots: Path) -> list[CheckResult]:
    report = check_brokers([read_broker(each) for each in roots])
    assert not report.problems
    return replays(report)


@pytest.mark.parametrize("name", CLEAN)
def test_a_log_that_fits_replays(tmp_path: Path, name: str) -> None:
    (found,) = checked(node(tmp_path, 100, [*START, *CLEAN[name]]))
    assert (found.verdict, found.subject) == ("holds", f"broker 100: {LOG}")
    assert found.message == f"all records from 0 to {AT + len(CLEAN[name])}"


@pytest.mark.parametrize("name", REJECTED)
def test_a_rejected_record_is_a_violation(tmp_path: Path, name: str) -> None:
    records, reason, brokers_too = REJECTED[name]
    (found,) = checked(node(tmp_path, 100, [*START, *records, *CLEAN["a topic anew"]]))
    offset = AT + len(records) - 1
    assert found.verdict == "violated"
    assert found.message.startswith(f"metadata offset {offset}: ") and f": {reason}" in found.message
    assert ("brokers log an error and skip it" in found.message) is brokers_too
    assert found.data["nodes"] == ["broker 100"] and "broker 100 is the only node given" in found.message
    first = len(metadata_log([]))
    assert found.where == f"{tmp_path / '100' / LOG / f'{0:020d}.log'}, byte {first}"


def test_rules_apply_up_to_the_rejected_record(tmp_path: Path) -> None:
    """A breach before it is a violation, one behind it is none: no controller gets there."""
    twice, empty = topic_record("t", OTHER), partition_change(leader=-1, isr=[])
    for name, records, verdict in (
        ("before", [empty, twice], "violated"),
        ("behind", [twice, empty], "unknown"),
        ("none", [twice], "unknown"),
    ):
        report = check_brokers([read_broker(node(tmp_path / name, 100, [*START, *records]))])
        (found,) = (each for each in report.checks if each.check == "isr_never_empty")
        assert (found.verdict, found.informative) == (verdict, verdict == "unknown"), name
        assert report.verdict == "violated" and not report.bad_input


def test_all_nodes_with_the_rejected_record_are_named(tmp_path: Path) -> None:
    records = [*START, topic_record("t", OTHER)]
    roots = [node(tmp_path, each, records) for each in (100, 101, 102)]
    short = node(tmp_path, 103, START)
    first, *rest = checked(*roots, short)
    assert (first.verdict, first.subject) == ("violated", LOG)
    assert first.data["nodes"] == ["broker 100", "broker 101", "broker 102"] and len(first.data["places"]) == 3
    assert "have the same record; 1 other log ends before it" in first.message
    assert "a copy from another node does not help" in first.message
    assert [(each.verdict, each.subject) for each in rest] == [("holds", f"broker 103: {LOG}")]


def test_a_record_that_other_nodes_lack_is_a_divergence(tmp_path: Path) -> None:
    roots = [node(tmp_path, each, [*START, topic_record("u", OTHER)]) for each in (100, 101)]
    roots.append(node(tmp_path, 102, [*START, topic_record("t", OTHER)]))
    found = {each.subject: each for each in checked(*roots)}
    wrong = found[f"broker 102: {LOG}"]
    assert wrong.verdict == "violated" and wrong.data["differs_on"] == ["broker 100", "broker 101"]
    assert "Only broker 102 has this record: broker 100, broker 101 has another one at this offset" in wrong.message
    assert "the logs have diverged or a file is corrupt" in wrong.message
    assert [each.verdict for each in found.values()].count("holds") == 2


def behind_a_snapshot(root: Path, number: int, state: Sequence[bytes], after: Sequence[bytes]) -> Path:
    snapshots = {(50, 1): snapshot_file(state)}
    files = Partition(
        {50: batch(50, after, epoch=1)}, [(1, 50)], None, log_start=50, topic_id=None, snapshots=snapshots
    )
    return write_broker(root / str(number), number, {LOG: files})


def test_a_log_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    (fits,) = checked(behind_a_snapshot(tmp_path / "fits", 1, START, [partition_change(isr=[1])]))
    assert fits.verdict == "holds"
    (twice,) = checked(behind_a_snapshot(tmp_path / "twice", 1, START, [topic_record("t")]))
    assert twice.verdict == "violated" and twice.message.startswith("metadata offset 50: TopicRecord")


@pytest.mark.parametrize(("extra", "reason"), [(topic_record("t", OTHER), "topic t"), (BEGIN, "a snapshot holds no")])
def test_a_rejected_record_of_a_snapshot_is_a_violation(tmp_path: Path, extra: bytes, reason: str) -> None:
    roots = [behind_a_snapshot(tmp_path, each, [*START, extra], [partition_change(isr=[1])]) for each in (1, 2)]
    *logs, found = checked(*roots)
    assert {each.verdict for each in logs} == {"unknown"}
    assert found.verdict == "violated" and found.data["nodes"] == ["broker 1", "broker 2"]
    assert found.message.startswith(f"record {len(START)} of snapshot ") and reason in found.message
    header = len(snapshot_file([], footer=False))
    assert found.where == f"{tmp_path / '1' / LOG / f'{50:020d}-{1:010d}.checkpoint'}, byte {header}"


def test_nothing_is_rejected_behind_a_missing_part(tmp_path: Path) -> None:
    """The missing part may have created what the record changes."""
    without = Partition({50: batch(50, [remove_topic(OTHER)])}, [(0, 50)], None, log_start=50, topic_id=None)
    (found,) = checked(write_broker(tmp_path / "start", 1, {LOG: without}))
    assert found.verdict == "unknown"
    data = bytearray(metadata_log(START) + batch(AT, [topic_record("u", OTHER)], epoch=1))
    data[len(metadata_log(START)) + 70] ^= 0xFF
    data += batch(AT + 1, [remove_topic(OTHER)], epoch=1)
    damaged = Partition({0: bytes(data)}, [(1, 0)], None, topic_id=None)
    report = check_brokers([read_broker(write_broker(tmp_path / "damaged", 1, {LOG: damaged}))])
    assert report.bad_input and [each.verdict for each in replays(report)] == ["unknown"]


def test_a_level_of_another_release_is_no_violation(tmp_path: Path) -> None:
    """Without registrations the cluster may run another release; a registered broker may support the level."""
    (found,) = checked(node(tmp_path / "bare", 1, [feature("metadata.version", 99)]))
    assert found.verdict == "unknown" and "Another release may support it" in found.message
    (found,) = checked(node(tmp_path / "known", 1, [*START, feature("metadata.version", 34), remove_topic(TOPIC_ID)]))
    assert found.verdict == "unknown"
    (found,) = checked(node(tmp_path / "both", 1, [*START, feature("metadata.version", 34), remove_topic(OTHER)]))
    assert found.verdict == "violated" and "RemoveTopicRecord" in found.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("r07", "TopicRecord (name orders, topic id EjRWeJCrze8SNFZ4kKvN7w): topic orders already exists with id "),
        ("r08m", "PartitionChangeRecord (topic id EjRWeJCrze8SNFZ4kKvN7w, partition 0): no topic has this id"),
    ],
)
def test_a_reported_log_is_rejected(tmp_path: Path, name: str, words: str) -> None:
    with tarfile.open(REPORTED) as packed:
        packed.extractall(tmp_path, filter="data")
    (found,) = checked(tmp_path / name / "controller-100")
    assert found.verdict == "violated" and found.message.startswith(f"metadata offset 106: {words}")
    assert found.where.endswith("controller-100/__cluster_metadata-0/00000000000000000000.log, byte 8616")


@pytest.mark.parametrize("stage", ["1-steady", "7-all-back"])
@pytest.mark.parametrize("kind", ["topic twice", "change of no partition", "broker that is not registered"])
def test_a_record_planted_on_all_recorded_nodes_is_found(tmp_path: Path, stage: str, kind: str) -> None:
    sources = node_directories(bundled_corpus(), stage)
    for source in sources:
        shutil.copytree(source, tmp_path / source.name)
    nodes = sorted(tmp_path.iterdir())
    assert {each.verdict for each in replays(check_brokers(read_brokers(nodes)))} == {"holds"}
    ends = {each.metadata.end_offset: each.metadata for each in read_brokers(nodes) if each.metadata}
    end, image = max(ends.items())
    value = {
        "topic twice": topic_record("orders", OTHER),
        "change of no partition": partition_change(
            leader=1, partition_index=7, topic_id=image.topics["orders"].topic_id
        ),
        "broker that is not registered": unfence_broker(9, 9),
    }[kind]
    holders = []
    for each in read_brokers(nodes):
        if each.metadata is not None and each.metadata.end_offset == end:
            holders.append(each.label)
            path = max((each.path / LOG).glob("*.log"))
            with path.open("ab") as log:
                log.write(batch(end, [value], epoch=image.epoch))
    assert len(holders) > 1
    results = replays(check_brokers(read_brokers(nodes)))
    (found,) = (each for each in results if each.verdict != "holds")
    assert found.verdict == "violated" and found.data["nodes"] == holders


def test_a_leader_outside_the_replicas_needs_no_folder(tmp_path: Path) -> None:
    """Kafka replays the record; a controller's directory alone shows that the partition has no such replica."""
    change = partition_change(leader=7)
    report = check_brokers([read_broker(node(tmp_path, 100, [*START, change]))])
    assert {each.verdict for each in replays(report)} == {"holds"}
    (found,) = (each for each in report.checks if each.check == "leader_in_isr")
    assert (found.verdict, found.subject) == ("violated", "t-0")
    assert found.message == f"leader 7 is not among the replicas [1, 2, 3] at metadata offset {AT}"
    assert found.where.endswith(f"{0:020d}.log, byte {len(metadata_log([]))}")
