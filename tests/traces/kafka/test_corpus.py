"""The reader and the checks on files that a real Kafka 4.4.0 cluster wrote (``traces/bundled/failover.tar.gz``)."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fencepost.traces.kafka.batches import Limits, SegmentScan
from fencepost.traces.kafka.broker import BrokerFiles, read_broker
from fencepost.traces.kafka.capture import bundled_corpus
from fencepost.traces.kafka.checks import FilesReport, check_brokers
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.problems import ProblemLog
from fencepost.traces.kafka.records import Record
from fencepost.traces.kafka.statefiles import encode_uuid

CORPUS = bundled_corpus()
INDEX: dict[str, Any] = json.loads((CORPUS / "corpus.json").read_text())
STAGES = sorted(path.name for path in CORPUS.iterdir() if path.is_dir())


@cache
def brokers(stage: str) -> list[BrokerFiles]:
    return read_brokers(sorted(path for path in (CORPUS / stage).iterdir() if path.is_dir()))


@cache
def report(stage: str) -> FilesReport:
    return check_brokers(brokers(stage))


def replica_epochs(stage: str, topic: str) -> dict[str, list[int]]:
    return {
        b.label: b.partitions[topic, 0].records.leader_epoch.tolist()
        for b in brokers(stage)
        if (topic, 0) in b.partitions
    }


def test_corpus_has_its_stages() -> None:
    assert [name.split("-", 1)[0] for name in STAGES] == [str(i) for i in range(1, 8)]


@pytest.mark.parametrize("stage", STAGES)
def test_every_file_reads_without_a_problem(stage: str) -> None:
    found = report(stage)
    assert found.problems == ()
    assert [broker.node_id for broker in found.brokers] == [1, 2, 3, 100]
    for broker in found.brokers:
        for files in broker.partitions.values():
            assert all(segment.valid_bytes == segment.size for segment in files.segments)
            assert files.batches.count.sum() == len(files.records) and files.batches.readable.all()


@pytest.mark.parametrize("stage", STAGES)
def test_protocol_holds_in_every_stage(stage: str) -> None:
    found = report(stage)
    broken = [c.check for c in found.checks if c.verdict == "violated" and not c.informative]
    lost = ["committed_records_kept"] if stage == "6-unclean-election" else []
    verdict = {"6-unclean-election": "violated", "7-all-back": "unknown"}.get(stage, "holds")
    assert broken == lost and found.verdict == verdict
    assert found.older == {}, "all of one time"
    assert len({check.check for check in found.checks}) >= 10
    json.dumps(found.to_json(), allow_nan=False)


def test_clean_failover_diverges_above_the_high_watermark() -> None:
    assert replica_epochs("3-clean-failover", "orders") == {"broker 1": [0, 0], "broker 2": [0, 1], "broker 3": [0, 1]}
    (comparison,) = (c for c in report("3-clean-failover").comparisons if c.divergences)
    assert comparison.topic == "orders" and comparison.committed_below == 1
    assert [(d.a, d.b, d.difference.offset, d.committed) for d in comparison.divergences] == [
        ("broker 1", "broker 2", 1, False),
        ("broker 1", "broker 3", 1, False),
    ]
    elected = [t for t in comparison.truncations if t.by_controller]
    assert [(t.leader, t.follower, t.offset, t.records_lost, t.agrees_after) for t in elected] == [
        ("broker 2", "broker 1", 1, 1, True)
    ]


def test_prescribed_truncation_is_what_the_broker_did() -> None:
    """Broker 1 came back in the next stage: it kept what the prescription keeps, and fetched the rest."""
    before = brokers("3-clean-failover")[0].partitions["orders", 0]
    after = brokers("4-old-leader-back")[0].partitions["orders", 0]
    kept = before.records.payload_hash[:1].tolist()
    assert after.records.payload_hash[:1].tolist() == kept
    assert after.records.payload_hash[1] != before.records.payload_hash[1]
    assert replica_epochs("4-old-leader-back", "orders") == {f"broker {i}": [0, 1] for i in (1, 2, 3)}
    assert not any(comparison.divergences for comparison in report("4-old-leader-back").comparisons)


def test_unclean_election_costs_a_committed_record() -> None:
    found = report("6-unclean-election")
    (told,) = (c for c in found.checks if c.check == "committed_records_kept" and c.verdict == "violated")
    assert not told.informative and told.subject == "payments-0"
    assert told.message == (
        "broker 3 was elected uncleanly in leader epoch 2 (metadata offset 85); the last ISR was [2]; "
        "broker 2 truncates to 1 and loses 1 record; committed and lost: offset 1"
    )
    (sent,) = (each for each in INDEX["produced"] if (each["topic"], each["key"]) == ("payments", "payments-201"))
    (record,) = told.data["records"]
    assert {name: record[name] for name in ("offset", "key", "timestamp")} == {
        name: sent[name] for name in ("offset", "key", "timestamp")
    }
    state = brokers("6-unclean-election")[2].metadata
    assert state is not None
    history = state.topics["payments"].history[0]
    assert (history[-1].leader, history[-1].leader_epoch) == (3, 2)
    assert replica_epochs("7-all-back", "payments") == {f"broker {i}": [0, 2] for i in (1, 2, 3)}


def test_every_codec_and_the_transactions_are_there() -> None:
    for broker in brokers("1-steady")[:3]:
        files = broker.partitions["mixed-compression", 0]
        codecs = {int(a) & 7 for a in files.batches.attributes}
        control = [bool(int(a) & 0x20) for a in files.batches.attributes]
        transactional = [bool(int(a) & 0x10) for a in files.batches.attributes]
        assert codecs == {0, 1, 2, 3, 4}
        assert sum(control) == 2 and sum(transactional) > 2
        assert len(files.segments) > 1
        assert files.segments[0].base_offset < files.log_start < files.log_end
        assert int(files.batches.count.sum()) == files.log_end - files.segments[0].base_offset


def test_records_have_the_payloads_that_were_produced() -> None:
    """Every record parses with all fields, and its hash tells equal payloads from different ones."""
    files = brokers("1-steady")[0].partitions["mixed-compression", 0]
    records: list[Record] = []
    for segment in files.segments:
        log = ProblemLog(segment.path)
        with segment.path.open("rb") as file:
            for batch in SegmentScan(file, segment.size, log, segment_base=segment.base_offset):
                records.extend(batch.records(Limits()))
    assert [r.offset for r in records] == files.records.offset.tolist()
    payloads = [(r.key, r.value, r.headers) for r in records]
    hashes = files.records.payload_hash.tolist()
    assert len(set(payloads)) == len(set(hashes)) == len(set(zip(payloads, hashes, strict=True)))
    assert any(r.headers for r in records) and any(r.key is None for r in records)


def test_controller_image_of_all_nodes_is_the_same_in_the_end() -> None:
    images = [broker.metadata for broker in brokers("7-all-back")]
    states = [image.partition("payments", 0) for image in images if image is not None]
    assert len(states) == 4 and len(set(states)) == 1
    for broker in brokers("7-all-back"):
        assert broker.metadata is not None and broker.metadata.complete
        assert broker.metadata.features["metadata.version"] >= 1
        assert broker.metadata.quorum_leaders[0][2] == 100
        for (topic, _), files in broker.partitions.items():
            if topic in broker.metadata.topics and files.topic_id is not None:
                assert files.topic_id == broker.metadata.topics[topic].topic_id
                assert len(encode_uuid(files.topic_id)) == 22


@pytest.mark.parametrize("stage", STAGES)
def test_index_of_the_recorder_tells_the_same(stage: str) -> None:
    """``corpus.json``: what the recorder noted, without this reader, of logs, checkpoints and the controller."""
    (entry,) = (item for item in INDEX["stages"] if item["name"] == stage)
    found = {broker.path.name: broker for broker in brokers(stage)}
    for name, node in entry["nodes"].items():
        for partition, runs in node.get("logs", {}).items():
            topic, _, index = partition.rpartition("-")
            files = found[name].partitions[topic, int(index)]
            starts = [epoch.start_offset for epoch in files.epoch_starts()]
            assert [run[0] for run in runs] == [epoch.epoch for epoch in files.epoch_starts()]
            assert [run[1] for run in runs][1:] == starts[1:] and runs[-1][2] == files.log_end
        for partition, mark in node.get("high_watermarks", {}).items():
            topic, _, index = partition.rpartition("-")
            assert found[name].partitions[topic, int(index)].high_watermark == mark
    image = found["controller-100"].metadata
    assert image is not None
    for partition, told in entry.get("partitions", {}).items():
        state = image.partition(partition.rpartition("-")[0], 0)
        assert state is not None
        assert (state.leader if state.leader >= 0 else None, sorted(state.isr)) == (told["leader"], sorted(told["isr"]))


def all_records(path: Path) -> list[Record]:
    log = ProblemLog(path)
    with path.open("rb") as file:
        scan = SegmentScan(file, path.stat().st_size, log, segment_base=int(path.stem))
        return [record for batch in scan if not batch.control for record in batch.records(Limits())]


def test_every_produced_record_is_read_back() -> None:
    """Key, value, timestamp and offset as the producer sent them, under every codec; nothing more, nothing less."""
    found: dict[str, set[tuple[int, str | None, str | None, int, int]]] = {}
    for stage in STAGES:
        for broker in brokers(stage):
            for (topic, _), files in broker.partitions.items():
                if not topic.startswith("__"):
                    for segment in files.segments:
                        found.setdefault(topic, set()).update(
                            (r.offset, text(r.key), text(r.value), r.timestamp, len(r.headers))
                            for r in all_records(segment.path)
                        )
    deleted = brokers("1-steady")[0].partitions["mixed-compression", 0].segments[0].base_offset
    sent: dict[str, set[tuple[int, str | None, str | None, int, int]]] = {}
    for item in INDEX["produced"]:
        if item["topic"] != "mixed-compression" or item["offset"] >= deleted:
            row = item["offset"], item["key"], item["value"], item["timestamp"], item["headers"]
            sent.setdefault(item["topic"], set()).add(row)
    assert found == sent
    assert sum(map(len, sent.values())) > 150


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


# -- faults planted into copies of real files -------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(CORPUS / "3-clean-failover", tmp_path / "stage")
    return tmp_path / "stage"


def check(stage: Path) -> FilesReport:
    return check_brokers(read_brokers(sorted(stage.iterdir())))


def violated(found: FilesReport) -> set[tuple[str, str]]:
    return {(c.check, c.subject) for c in found.checks if c.verdict == "violated" and not c.informative}


def test_flipped_bit_in_a_real_batch(copy: Path) -> None:
    path = copy / "broker-2" / "orders-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    found = check(copy)
    (problem,) = found.problems
    assert problem.kind == "crc-mismatch" and problem.path == path
    assert found.bad_input and violated(found) == set()


def test_truncated_real_segment(copy: Path) -> None:
    path = copy / "broker-2" / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    found = check(copy)
    assert [p.kind for p in found.problems] == ["truncated-segment"]
    undecided = {(c.check, c.subject) for c in found.checks if c.verdict == "unknown"}
    assert ("log_start_hw_leo_ordered", "broker 2: orders-0") in undecided, "a power loss may have taken the batch"
    assert found.comparisons, "the rest is still compared"


def test_changed_leader_epoch_of_a_real_batch(copy: Path) -> None:
    path = copy / "broker-3" / "orders-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[15] = 1  # the leader epoch of the first batch, which no CRC covers
    path.write_bytes(data)
    found = check(copy)
    assert ("replicas_agree_below_high_watermark", "orders-0") in violated(found)
    assert ("epoch_cache_matches_batches", "broker 3: orders-0") in violated(found)


def test_changed_epoch_cache_of_a_real_partition(copy: Path) -> None:
    (copy / "broker-3" / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert violated(check(copy)) == {("epoch_cache_matches_batches", "broker 3: orders-0")}


def test_high_watermark_above_a_real_log(copy: Path) -> None:
    path = copy / "broker-1" / "replication-offset-checkpoint"
    path.write_text(path.read_text().replace("orders 0 1", "orders 0 9"))
    assert violated(check(copy)) == {
        ("replicas_agree_below_high_watermark", "orders-0"),
        ("truncation_keeps_committed", "orders-0"),
        ("committed_records_kept", "orders-0"),
    }


def test_real_metadata_log_with_a_snapshot_beyond_it(copy: Path) -> None:
    folder = copy / "controller-100" / "__cluster_metadata-0"
    (folder / f"{99999:020d}-{1:010d}.checkpoint").write_bytes(b"")
    assert ("snapshot_ids_within_log", "broker 100: __cluster_metadata-0") in violated(check(copy))


def test_cut_snapshot_is_unread(copy: Path) -> None:
    path = next((copy / "controller-100" / "__cluster_metadata-0").glob("*.checkpoint"))
    path.write_bytes(path.read_bytes()[:-1])
    found = check(copy)
    assert [problem.path for problem in found.problems] == [path] and violated(found) == set()
    undecided = {(c.check, c.subject) for c in found.checks if c.verdict == "unknown"}
    assert ("snapshot_files_match_names", "broker 100: __cluster_metadata-0") in undecided


def test_snapshot_without_its_footer(copy: Path) -> None:
    path = next((copy / "controller-100" / "__cluster_metadata-0").glob("*.checkpoint"))
    last = read_broker(copy / "controller-100").snapshots[0].batches[-1]
    path.write_bytes(path.read_bytes()[: last.position])
    assert violated(check(copy)) == {("snapshot_files_match_names", "broker 100: __cluster_metadata-0")}


def test_two_quorum_leaders_in_one_epoch(copy: Path) -> None:
    assert "one_quorum_leader_per_epoch" in {c.check for c in check(copy).checks if c.verdict == "holds"}
    path = copy / "broker-2" / "__cluster_metadata-0" / "quorum-state"
    path.write_text(path.read_text().replace('"leaderId":100', '"leaderId":101'))
    assert violated(check(copy)) == {("one_quorum_leader_per_epoch", "__cluster_metadata-0")}


def test_quorum_state_with_a_damaged_directory_id(copy: Path) -> None:
    path = copy / "controller-100" / "__cluster_metadata-0" / "quorum-state"
    path.write_text(path.read_text().replace("AAAA", "AA@A", 1))
    found = check(copy)
    assert [(p.kind, p.path) for p in found.problems] == [("bad-quorum-state", path)] and violated(found) == set()


def test_single_broker_is_enough(copy: Path) -> None:
    found = check_brokers([read_broker(copy / "broker-1")])
    assert found.comparisons == () and found.verdict == "holds"
