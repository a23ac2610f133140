"""The recorded corpus that the package carries: what its manifest says is what its files hold."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.kafka.capture import (
    MANIFEST,
    README,
    batches,
    broker_directories,
    bundled_corpus,
    checkpoint,
    epoch_runs,
    file_list,
    kept,
    load_manifest,
)
from fencepost.traces.kafka.record import readme

CORPUS = bundled_corpus()
MAX_BYTES = 2_000_000
STAGES = (
    "1-steady",
    "2-leader-killed",
    "3-clean-failover",
    "4-old-leader-back",
    "5-lone-leader",
    "6-unclean-election",
    "7-all-back",
)


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    return load_manifest(CORPUS)


def heads(partition: Path) -> list[tuple[int, int, int, bytes]]:
    """(base offset, leader epoch, attributes, batch) of each batch, read here and not by the code under test."""
    found = []
    for segment in sorted(partition.glob("*.log")):
        data = segment.read_bytes()
        at = 0
        while at < len(data):
            base, length, epoch, magic, _crc, attributes = struct.unpack_from(">qiibIh", data, at)
            assert magic == 2
            found.append((base, epoch, attributes, data[at : at + 12 + length]))
            at += 12 + length
        assert at == len(data), f"{segment} ends inside a batch"
    return found


def epochs_by_offset(stage: str, partition: str) -> list[dict[int, int]]:
    return [
        {base: epoch for base, epoch, _, _ in heads(home / partition)} for home in broker_directories(CORPUS, stage)
    ]


def high_watermarks(stage: str, partition: str) -> list[int]:
    topic, number = partition.rsplit("-", 1)
    found = []
    for home in broker_directories(CORPUS, stage):
        lines = (home / "replication-offset-checkpoint").read_text().splitlines()[2:]
        found += [int(line.split()[2]) for line in lines if line.split()[:2] == [topic, number]]
    return found


def test_the_manifest_lists_every_file_with_its_size_and_hash(manifest: dict[str, Any]) -> None:
    assert manifest["files"] == file_list(CORPUS)
    assert [stage["name"] for stage in manifest["stages"]] == list(STAGES)


def test_a_flipped_bit_is_seen(manifest: dict[str, Any], tmp_path: Path) -> None:
    copy = tmp_path / "corpus"
    shutil.copytree(CORPUS, copy)
    victim = copy / "6-unclean-election" / "broker-2" / "payments-0" / "00000000000000000000.log"
    data = bytearray(victim.read_bytes())
    data[100] ^= 1
    victim.write_bytes(data)
    changed = [new["path"] for old, new in zip(manifest["files"], file_list(copy), strict=True) if old != new]
    assert changed == [victim.relative_to(copy).as_posix()]


def test_the_corpus_is_small_and_plain() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MAX_BYTES
    assert all(kept(path) for path in files if path.name not in (MANIFEST, README))
    assert not any(path.is_symlink() for path in files)


def test_the_readme_is_the_one_that_the_recorder_writes(manifest: dict[str, Any]) -> None:
    written = readme(manifest["stages"], manifest["kafka"]["version"], manifest["jvm"], manifest["seed"])
    assert (CORPUS / README).read_text(encoding="utf-8") == written


def test_the_manifest_describes_the_logs(manifest: dict[str, Any]) -> None:
    for stage in manifest["stages"]:
        for home in broker_directories(CORPUS, stage["name"]):
            node = stage["nodes"][home.name]
            for partition, runs in node["logs"].items():
                by_hand = [(base, epoch) for base, epoch, _, _ in heads(home / partition)]
                assert [(base, epoch) for epoch, base, _ in batches(home / partition)] == by_hand
                starts = [b for i, b in enumerate(by_hand) if i == 0 or by_hand[i - 1][1] != b[1]]
                assert [(first, epoch) for epoch, first, _ in runs] == starts
            lines = (home / "replication-offset-checkpoint").read_text().splitlines()[2:]
            assert len(node["high_watermarks"]) == len(lines)
            for line in lines:
                topic, partition_number, offset = line.split()
                assert node["high_watermarks"][f"{topic}-{partition_number}"] == int(offset)


@pytest.mark.parametrize("stage", ["1-steady", "4-old-leader-back", "7-all-back"])
def test_replicas_agree_byte_for_byte_when_all_are_back(stage: str) -> None:
    for partition in ("orders-0", "payments-0", "mixed-compression-0"):
        logs = [[batch for *_, batch in heads(home / partition)] for home in broker_directories(CORPUS, stage)]
        assert logs[0] and logs[0] == logs[1] == logs[2]
        assert len(set(high_watermarks(stage, partition))) == 1


def test_the_killed_leader_has_an_uncommitted_tail() -> None:
    assert epochs_by_offset("2-leader-killed", "orders-0") == [{0: 0, 1: 0}, {0: 0}, {0: 0}]
    assert high_watermarks("2-leader-killed", "orders-0") == [1, 1, 1]


def test_the_clean_failover_diverges_above_the_old_leaders_high_watermark() -> None:
    assert epochs_by_offset("3-clean-failover", "orders-0") == [{0: 0, 1: 0}, {0: 0, 1: 1}, {0: 0, 1: 1}]
    assert high_watermarks("3-clean-failover", "orders-0") == [1, 2, 2]


def test_the_unclean_election_diverges_below_both_high_watermarks() -> None:
    assert epochs_by_offset("5-lone-leader", "payments-0") == [{0: 0}, {0: 0, 1: 0}, {0: 0}]
    assert epochs_by_offset("6-unclean-election", "payments-0") == [{0: 0}, {0: 0, 1: 0}, {0: 0, 1: 2}]
    assert high_watermarks("6-unclean-election", "payments-0") == [1, 2, 2]


def test_the_lost_record_is_the_committed_one(manifest: dict[str, Any]) -> None:
    first, lost, winner = (record for record in manifest["produced"] if record["topic"] == "payments")
    assert (lost["offset"], lost["epoch"], lost["acks"]) == (1, 0, "all")
    assert (winner["offset"], winner["epoch"]) == (1, 2)

    def holders(stage: str, record: dict[str, Any]) -> list[int]:
        homes = enumerate(broker_directories(CORPUS, stage), start=1)
        return [
            id_
            for id_, home in homes
            if record["value"].encode() in b"".join(batch for *_, batch in heads(home / "payments-0"))
        ]

    assert [holders("6-unclean-election", record) for record in (first, lost, winner)] == [[1, 2, 3], [2], [3]]
    assert [holders("7-all-back", record) for record in (first, lost, winner)] == [[1, 2, 3], [], [1, 2, 3]]


def test_mixed_compression_has_every_codec_transactions_and_a_log_start_inside_a_batch() -> None:
    for home in broker_directories(CORPUS, "1-steady"):
        found = heads(home / "mixed-compression-0")
        assert {attributes & 0b111 for _, _, attributes, _ in found} == {0, 1, 2, 3, 4}
        assert sum(1 for _, _, attributes, _ in found if attributes & 0b100000) == 2  # control batches: commit, abort
        start = checkpoint(home / "log-start-offset-checkpoint")["mixed-compression-0"]
        assert found[0][0] < start < found[1][0]
        assert len(list((home / "mixed-compression-0").glob("*.log"))) >= 4


def test_the_nodes_are_those_of_one_cluster(manifest: dict[str, Any]) -> None:
    for stage in STAGES:
        for home in broker_directories(CORPUS, stage):
            lines = dict(
                line.split("=", 1) for line in (home / "meta.properties").read_text().splitlines() if "=" in line
            )
            assert lines["cluster.id"] == manifest["cluster_id"]
            assert home.name == f"broker-{lines['node.id']}"
            assert (home / "__cluster_metadata-0" / "quorum-state").is_file()


def test_a_preallocated_tail_is_no_batch(tmp_path: Path) -> None:
    source = broker_directories(CORPUS, "3-clean-failover")[1] / "orders-0"
    grown = tmp_path / "orders-0"
    shutil.copytree(source, grown)
    with (grown / "00000000000000000000.log").open("ab") as log:
        log.write(bytes(4096))
    assert epoch_runs(grown) == epoch_runs(source) == [[0, 0, 1], [1, 1, 2]]


def test_a_half_written_checkpoint_is_read_as_none_yet(tmp_path: Path) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    assert checkpoint(path) == {}
    path.write_text("0\n2\norders 0 1\npayments")
    assert checkpoint(path) == {}
    path.write_text("0\n2\norders 0 1\npayments 0 2\n")
    assert checkpoint(path) == {"orders-0": 1, "payments-0": 2}


@pytest.mark.parametrize(
    ("text", "says"),
    [(None, "no manifest"), ("{", "not JSON"), ("[]", "not a corpus"), ('{"format": 1}', "not a corpus")],
)
def test_a_bad_manifest_gets_one_line(tmp_path: Path, text: str | None, says: str) -> None:
    if text is not None:
        (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(BadInput, match=says) as caught:
        load_manifest(tmp_path)
    assert str(tmp_path / MANIFEST) in str(caught.value)
    assert "\n" not in str(caught.value)
