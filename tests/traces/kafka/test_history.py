"""What a controller's decisions must never be, on the way: planted in a metadata log, and in a recorded one."""

from __future__ import annotations

import shutil
import struct
from typing import TYPE_CHECKING

import pytest
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.capture import bundled_corpus, load_manifest, node_directories
from fencepost.traces.kafka.checks import check_brokers
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.history import FALLS, FENCED, ISR, REUSED, RULES

from .encoder import (
    TOPIC_ID,
    Partition,
    batch,
    compact_ints,
    compact_string,
    metadata_log,
    metadata_value,
    partition_change,
    partition_record,
    register_broker,
    remove_topic,
    snapshot_file,
    topic_record,
    unfence_broker,
    write_broker,
)

if TYPE_CHECKING:
    from pathlib import Path

    from fencepost.traces.kafka.checks import FilesReport
    from fencepost.traces.kafka.verdicts import CheckResult

LOG = "__cluster_metadata-0"
BROKERS = [register_broker(each, 10 + each, fenced=False, incarnation=each) for each in (1, 2, 3)]
PARTITION = [topic_record("t"), partition_record([1, 2, 3], [1, 2, 3], 1, leader_epoch=5)]
START = [*BROKERS, *PARTITION]
"""Offsets 1 to 5; what comes next is at 6, in a batch of its own."""
BEGIN, END, ABORT = (metadata_value(key, b"") for key in (23, 24, 25))


def fence(broker: int, epoch: int | None = None) -> bytes:
    return unfence_broker(broker, 10 + broker if epoch is None else epoch, fence=True)


def registration_change(broker: int, epoch: int, fenced: int) -> bytes:
    return metadata_value(17, struct.pack(">iq", broker, epoch), {0: struct.pack(">b", fenced)})


def feature(name: str, level: int) -> bytes:
    return metadata_value(12, compact_string(name) + struct.pack(">h", level))


def migrating(broker: int) -> bytes:
    """A broker that is still ZooKeeper's: RegisterBrokerRecord, version 2."""
    body = struct.pack(">i?", broker, True) + bytes(16) + struct.pack(">q", 10 + broker)
    return metadata_value(0, body + compact_ints([]) + compact_ints([]) + b"\x00\x01\x00", version=2)


def written(*batches: list[bytes], start: list[bytes] = START) -> bytes:
    """A log: the start, and each of the others in a batch of its own."""
    data = metadata_log(start)
    base = 1 + len(start)
    for values in batches:
        data += batch(base, values, epoch=1)
        base += len(values)
    return data


def results(tmp_path: Path, data: bytes, **files: object) -> dict[str, CheckResult]:
    """The rules' results for one node with that metadata log."""
    partition = Partition({0: data}, [(1, 0)], None, topic_id=None, **files)  # type: ignore[arg-type]
    report = check_brokers([read_broker(write_broker(tmp_path / "b", 1, {LOG: partition}))])
    found = {each.check: each for each in report.checks if each.check in RULES}
    assert set(found) == set(RULES)
    assert {each.subject for each in found.values()} == {f"broker 1: {LOG}"}
    return found


def verdicts(found: dict[str, CheckResult]) -> dict[str, str]:
    """What does not hold."""
    return {name: each.verdict for name, each in found.items() if each.verdict != "holds"}


CLEAN: dict[str, list[list[bytes]]] = {
    "nothing more": [],
    "led on, then fenced": [[partition_change(leader=2, isr=[2, 3])], [fence(1)]],
    "in one batch": [[fence(1), partition_change(leader=2, isr=[2, 3])]],
    "in a transaction": [[BEGIN, fence(1)], [partition_change(leader=2, isr=[2, 3])], [END]],
    "in a transaction that is given up": [[BEGIN, fence(1)], [ABORT]],
    "no leader": [[partition_change(leader=-1, isr=[1])], [fence(1)]],
    "fenced by a registration change": [[partition_change(leader=2, isr=[2, 3]), registration_change(1, 11, 1)]],
    "elected once unfenced": [
        [partition_change(leader=2, isr=[2, 3]), fence(1)],
        [unfence_broker(1, 11)],
        [partition_change(isr=[1, 2, 3])],
        [partition_change(leader=1)],
    ],
    "topic removed": [[remove_topic(TOPIC_ID)], [fence(1)]],
    "another process": [
        [partition_change(leader=2, isr=[2, 3]), register_broker(1, 20, incarnation=9)],
        [unfence_broker(1, 20)],
    ],
    "registration amended": [[register_broker(1, 11, fenced=False, incarnation=1)]],
    "the same process in a new epoch": [[register_broker(2, 20, incarnation=2)], [unfence_broker(2, 20)]],
    "unregistered": [
        [partition_change(leader=2, isr=[2, 3]), metadata_value(1, struct.pack(">iq", 1, 11))],
        [register_broker(1, 21, incarnation=9)],
    ],
    "eligible replicas": [[partition_change(leader=-1, isr=[], eligible=[1], version=2)]],
    "eligible replicas, as before": [
        [partition_change(eligible=[1], version=2)],
        [partition_change(leader=-1, isr=[], version=2)],
    ],
    "eligible replicas are on": [
        [feature("metadata.version", 25), feature("eligible.leader.replicas.version", 1)],
        [partition_change(leader=-1, isr=[], eligible=[], version=2)],
    ],
    "ZooKeeper's broker leads": [[migrating(4), partition_record([4], [4], 4, partition_index=1)]],
}


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_history_passes(tmp_path: Path, name: str) -> None:
    found = results(tmp_path, written(*CLEAN[name]))
    assert verdicts(found) == {}
    assert found[ISR].message == RULES[ISR]


#: The batches, the rule, the message, and the metadata offset.
FAULTS: dict[str, tuple[list[list[bytes]], str, str, int]] = {
    "leader fenced": ([[fence(1)]], FENCED, "broker 1 is fenced, and leads t-0", 6),
    "leader fenced by a registration change": ([[registration_change(1, 11, 1)]], FENCED, "broker 1 is fenced", 6),
    "led on a batch later": (
        [[fence(2), fence(1)], [partition_change(leader=3, isr=[3])]],
        FENCED,
        "broker 1 is fenced, and leads t-0",
        7,
    ),
    "transaction ends too early": (
        [[BEGIN, fence(1), END], [partition_change(leader=2, isr=[2, 3])]],
        FENCED,
        "broker 1 is fenced, and leads t-0",
        7,
    ),
    "fenced broker elected": (
        [[fence(2)], [partition_change(leader=2)]],
        FENCED,
        "t-0 is led by broker 2, which is fenced",
        7,
    ),
    "fenced broker leads a new partition": (
        [[fence(2)], [partition_record([2], [2], 2, partition_index=1)]],
        FENCED,
        "t-1 is led by broker 2, which is fenced",
        7,
    ),
    "leader registered anew": (
        [[register_broker(1, 20, incarnation=9)]],
        FENCED,
        "broker 1 is registered anew, thus fenced (KAFKA-18106), and leads t-0",
        6,
    ),
    "no ISR": ([[partition_change(leader=-1, isr=[])]], ISR, "t-0 has no ISR, and leader -1", 6),
    "no ISR of a new partition": ([[partition_record([2], [], -1, partition_index=1)]], ISR, "t-1 has no ISR", 6),
    "a leader without ISR": (
        [[partition_change(isr=[], eligible=[1], version=2)]],
        ISR,
        "t-0 has no ISR, and leader 1",
        6,
    ),
    "eligible replicas are off": (
        [[feature("metadata.version", 25)], [partition_change(leader=-1, isr=[], eligible=[], version=2)]],
        ISR,
        "t-0 has no ISR, and leader -1; no eligible leader is named",
        7,
    ),
    "epoch of another process": (
        [[partition_change(leader=2, isr=[2, 3])], [register_broker(1, 11, incarnation=9)]],
        REUSED,
        "another process of broker 1 is registered with broker epoch 11, after 11",
        7,
    ),
    "lower epoch": (
        [[register_broker(3, 12, incarnation=3)]],
        REUSED,
        "the same process of broker 3 is registered with broker epoch 12, after 13",
        6,
    ),
    "epoch of before it was unregistered": (
        [[metadata_value(1, struct.pack(">iq", 3, 13)), register_broker(3, 13, incarnation=9)]],
        REUSED,
        "another process of broker 3 is registered with broker epoch 13, after 13",
        7,
    ),
    "epochs fall": (
        [[partition_change(leader=2)], [partition_record([1, 2, 3], [1], 1, leader_epoch=5)]],
        FALLS,
        "t-0 goes from partition epoch 1 to 0, and from leader epoch 6 to 5",
        7,
    ),
    "made twice": (
        [[partition_record([1, 2, 3], [1], 1, leader_epoch=6)]],
        FALLS,
        "t-0 goes from partition epoch 0 to 0",
        6,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(tmp_path: Path, name: str) -> None:
    batches, rule, message, offset = FAULTS[name]
    data = written(*batches)
    found = results(tmp_path, data)
    assert verdicts(found) == {rule: "violated"}
    assert found[rule].message.startswith(message)
    assert found[rule].message.endswith(f"at metadata offset {offset}")
    # The byte is that of the batch with the record.
    byte = int(found[rule].where.rpartition(" byte ")[2])
    base, length = struct.unpack_from(">qi", data, byte)
    (last_delta,) = struct.unpack_from(">i", data, byte + 23)
    assert base <= offset <= base + last_delta
    assert byte + 12 + length <= len(data)


def test_the_first_breach_is_told(tmp_path: Path) -> None:
    found = results(tmp_path, written([fence(1)], [unfence_broker(1, 11)], [fence(1)]))
    assert found[FENCED].message.endswith("at metadata offset 6")


def test_an_empty_isr_where_features_are_not_known(tmp_path: Path) -> None:
    """They may stand in a snapshot that the log does not tell of: nobody knows whether eligible replicas are on."""
    found = results(tmp_path, written([partition_change(leader=-1, isr=[], eligible=[], version=2)]))
    assert verdicts(found) == {ISR: "unknown"}


def test_eligible_replicas_do_not_pile_up(tmp_path: Path) -> None:
    """A change that names no eligible replicas leaves them as they are."""
    changes = [partition_change(eligible=[1], version=2), *(partition_change(isr=[1, 2], version=2) for _ in range(40))]
    partition = Partition({0: written(changes)}, [(1, 0)], None, topic_id=None)
    image = read_broker(write_broker(tmp_path / "b", 1, {LOG: partition})).metadata
    assert image is not None and image.topics["t"].history[0][-1].eligible == (1,)


def test_damage_takes_the_verdict_away(tmp_path: Path) -> None:
    """The record that moved the partition, say, may be the one that could not be read."""
    data = bytearray(written([partition_change(leader=2, isr=[2, 3])], [fence(1)]))
    second = len(metadata_log(START)) + 61 + 3
    data[second] ^= 0xFF
    found = results(tmp_path, bytes(data))
    assert set(verdicts(found).values()) == {"unknown"} and set(verdicts(found)) == set(RULES)


def test_a_log_without_its_beginning(tmp_path: Path) -> None:
    """Its brokers' registrations are missing: a change of one says nothing."""
    data = batch(6, [fence(1)], epoch=1)
    partition = Partition({6: data}, [(1, 6)], None, log_start=6, topic_id=None)
    report = check_brokers([read_broker(write_broker(tmp_path / "b", 1, {LOG: partition}))])
    assert {each.verdict for each in report.checks if each.check in RULES} == {"unknown"}


def test_a_log_behind_its_snapshot(tmp_path: Path) -> None:
    """The snapshot's brokers and partitions count as if their records were in the log."""
    for name, values, expected in (
        ("clean", [partition_change(leader=2, isr=[2, 3]), fence(1)], {}),
        ("fenced", [fence(1)], {FENCED: "violated"}),
        ("reused", [register_broker(3, 13, incarnation=9)], {REUSED: "violated"}),
    ):
        data = batch(6, values, epoch=1)
        snapshots = {(6, 1): snapshot_file(START)}
        partition = Partition({6: data}, [(1, 6)], None, log_start=6, topic_id=None, snapshots=snapshots)
        report = check_brokers([read_broker(write_broker(tmp_path / name, 1, {LOG: partition}))])
        found = {each.check: each for each in report.checks if each.check in RULES}
        assert verdicts(found) == expected, name


def test_a_snapshot_that_is_wrong_by_itself(tmp_path: Path) -> None:
    fenced = [register_broker(1, 11), *BROKERS[1:], *PARTITION]
    snapshots = {(6, 1): snapshot_file(fenced)}
    data = batch(6, [partition_change(isr=[1, 2])], epoch=1)
    partition = Partition({6: data}, [(1, 6)], None, log_start=6, topic_id=None, snapshots=snapshots)
    report = check_brokers([read_broker(write_broker(tmp_path / "b", 1, {LOG: partition}))])
    (found,) = (each for each in report.checks if each.check == FENCED)
    assert found.verdict == "violated" and found.message.endswith("at metadata offset 5")


def rules_of(report: FilesReport) -> list[CheckResult]:
    return [each for each in report.checks if each.check in RULES]


def test_the_recorded_cluster_passes() -> None:
    """In every stage, on every node; at the end an ISR was empty, with an eligible replica."""
    for stage in load_manifest(bundled_corpus())["stages"]:
        nodes = sorted(node_directories(bundled_corpus(), stage["name"]))
        report = check_brokers(read_brokers(nodes))
        assert [each for each in rules_of(report) if each.verdict != "holds"] == []
        assert len(rules_of(report)) == 4 * len(RULES)
    (image,) = {broker.metadata.epoch: broker.metadata for broker in report.brokers if broker.metadata}.values()
    history = image.topics["payments"].history[0]
    assert [state.eligible for state in history if not state.isr] == [(2,)]


@pytest.mark.parametrize("rule", [FENCED, ISR, REUSED, FALLS])
def test_what_is_planted_in_a_recorded_log_is_found(tmp_path: Path, rule: str) -> None:
    """The controller goes on with one record more, which no controller of Kafka's writes."""
    for source in node_directories(bundled_corpus(), "7-all-back"):
        shutil.copytree(source, tmp_path / source.name)
    nodes = sorted(tmp_path.iterdir())
    (image,) = (broker.metadata for broker in read_brokers(nodes) if broker.node_id == 100)
    assert image is not None
    topic = image.topics["orders"]
    leader = image.brokers[topic.history[0][-1].leader]
    record = {
        FENCED: unfence_broker(leader.broker_id, leader.epoch, fence=True),
        ISR: partition_change(leader=-1, isr=[], topic_id=topic.topic_id),
        REUSED: register_broker(leader.broker_id, leader.epoch, fenced=False, incarnation=1),
        FALLS: partition_record([1, 2, 3], [1, 2, 3], leader.broker_id, topic_id=topic.topic_id),
    }[rule]
    path = tmp_path / "controller-100" / LOG / f"{0:020d}.log"
    size = path.stat().st_size
    with path.open("ab") as log:
        log.write(batch(image.end_offset, [record], epoch=image.epoch))
    (found,) = (each for each in rules_of(check_brokers(read_brokers(nodes))) if each.verdict != "holds")
    assert (found.check, found.verdict) == (rule, "violated")
    assert found.where == f"{path}, byte {size}"
    assert found.message.endswith(f"at metadata offset {image.end_offset}")
