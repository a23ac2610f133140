"""The recorded corpora of compaction and of tiered storage that the package carries: what is in their bytes."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fencepost.traces.kafka.batches import Limits, SegmentScan
from fencepost.traces.kafka.capture import (
    MANIFEST,
    README,
    batches,
    bundled_corpus,
    checkpoint,
    file_list,
    kept,
    kept_of_store,
    load_manifest,
)
from fencepost.traces.kafka.problems import ProblemLog
from fencepost.traces.kafka.record import readme
from fencepost.traces.kafka.records import Record

MAX_BYTES = 500_000
BROKERS = ("broker-1", "broker-2", "broker-3")


def stages(scenario: str) -> list[dict[str, Any]]:
    return load_manifest(bundled_corpus(scenario))["stages"]  # type: ignore[no-any-return]


def records(partition: Path) -> list[Record]:
    found = []
    for segment in sorted(partition.glob("*.log")):
        log = ProblemLog(segment)
        with segment.open("rb") as file:
            scan = SegmentScan(
                file, segment.stat().st_size, log, segment_base=int(segment.name[:20]), next_offset=0, last=True,
                limits=Limits(),
            )  # fmt: skip
            found += [record for batch in scan if not batch.control for record in batch.records(Limits())]
        assert log.result() == []
    return found


@pytest.mark.parametrize("scenario", ["compacted", "tiered"])
def test_the_manifest_and_the_readme_are_those_of_the_files(scenario: str) -> None:
    corpus = bundled_corpus(scenario)
    manifest = load_manifest(corpus)
    assert manifest["scenario"] == scenario and manifest["files"] == file_list(corpus)
    assert (corpus / README).read_text(encoding="utf-8") == readme(
        manifest["stages"], manifest["kafka"]["version"], manifest["jvm"], manifest["seed"], scenario
    )
    files = [path for path in corpus.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MAX_BYTES
    others = [path for path in files if path.name not in (MANIFEST, README, "cleaner-offset-checkpoint")]
    assert all(kept(path) or kept_of_store(path) for path in others)


def test_every_broker_has_cleaned_several_times_over_the_failover() -> None:
    found = [
        [
            checkpoint(bundled_corpus("compacted") / stage["name"] / each / "cleaner-offset-checkpoint")
            for each in BROKERS
        ]
        for stage in stages("compacted")
    ]
    clean = [[each["accounts-0"] for each in stage] for stage in found]
    assert clean == [[250] * 3, [371] * 3, [371, 492, 492], [553] * 3]
    assert all("journal-0" not in each for stage in found for each in stage)


def test_what_was_cleaned_has_one_record_a_key_and_the_latest() -> None:
    """By the manifest's own list of what was produced, in which a tombstone is a value of null."""
    manifest = load_manifest(bundled_corpus("compacted"))
    sent = [r for r in manifest["produced"] if r["topic"] == "accounts" and r.get("transaction") != "aborted"]
    for stage in stages("compacted"):
        for each in BROKERS:
            home = bundled_corpus("compacted") / stage["name"] / each
            clean, end, _ = stage["nodes"][each]["accounts"]
            below = [record for record in records(home / "accounts-0") if record.offset < clean]
            last = {r["key"]: r for r in sent if r["offset"] < clean}
            offsets = {record.key.decode(): record.offset for record in below if record.key is not None}
            assert len(offsets) == len(below), "each key once"
            for key, record in last.items():
                gone = record["value"] is None and key not in offsets
                assert gone or offsets[key] == record["offset"]
            assert end == clean + 1


def test_the_dead_leader_holds_what_the_others_have_cleaned_away() -> None:
    homes = [bundled_corpus("compacted") / "3-failover" / each / "accounts-0" for each in BROKERS]
    dead, *others = ({record.offset for record in records(home)} for home in homes)
    assert others[0] == others[1] and len(dead - others[0]) > 20
    assert {epoch for epoch, _, _ in batches(homes[1])} == {0, 1}


def test_a_cleaning_ended_inside_a_segment_and_took_tombstones_away() -> None:
    produced = load_manifest(bundled_corpus("compacted"))["produced"]
    tombstones = {r["offset"] for r in produced if r["topic"] == "accounts" and r["value"] is None}
    for stage in ("2-cleaned-again", "4-old-leader-back"):
        here = {record.offset for record in records(bundled_corpus("compacted") / stage / "broker-2" / "accounts-0")}
        clean = checkpoint(bundled_corpus("compacted") / stage / "broker-2" / "cleaner-offset-checkpoint")["accounts-0"]
        assert {offset for offset in tombstones if offset < clean} - here
    assert any(r["key"] is None for r in produced) is False


def test_the_empty_follower_begins_where_the_upload_ends() -> None:
    """At the end of what is in the store; the leader has five older segments in its local log."""
    stage = bundled_corpus("tiered") / "4-empty-follower"
    starts = {each: sorted(int(path.stem) for path in (stage / each / "archive-0").glob("*.log")) for each in BROKERS}
    assert starts["broker-1"] == starts["broker-2"] == [160, 180, 200, 220]
    assert starts["broker-3"] == [220]
    (store,) = (stage / "remote" / "kafka-tiered-storage").iterdir()
    uploaded = list(batches(store))
    assert uploaded[0][1] == 40 and uploaded[-1][2] == 220
    assert all(before[2] == after[1] for before, after in pairwise(uploaded))
    assert all(checkpoint(stage / each / "log-start-offset-checkpoint")["archive-0"] == 40 for each in BROKERS)
    epochs = (stage / "broker-3" / "archive-0" / "leader-epoch-checkpoint").read_text().split("\n")
    assert epochs[:2] == ["0", "2"] and epochs[2].startswith("0 ") and epochs[3] == "1 150"


def test_a_remote_segment_has_records_of_both_epochs() -> None:
    (store,) = (bundled_corpus("tiered") / "4-empty-follower" / "remote" / "kafka-tiered-storage").iterdir()
    (both,) = store.glob(f"{140:020d}-*.log")
    assert [struct.unpack_from(">i", both.read_bytes(), 12)[0]] == [0]
    assert [(epoch, base) for epoch, base, _ in batches(store) if 140 <= base < 160] == [(0, 140), (1, 150)]


def test_the_store_and_the_local_log_are_what_was_produced() -> None:
    sent = {r["offset"]: r for r in load_manifest(bundled_corpus("tiered"))["produced"] if r["topic"] == "archive"}
    stage = bundled_corpus("tiered") / "4-empty-follower"
    (store,) = (stage / "remote" / "kafka-tiered-storage").iterdir()
    for each in BROKERS:
        held = {record.offset: record for record in [*records(store), *records(stage / each / "archive-0")]}
        assert sorted(held) == list(range(40, 230))
        assert all((held[offset].value or b"").decode() == sent[offset]["value"] for offset in held)
