"""Whole data directories: what is read, what is no data directory, and that one bad file stops no other."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.kafka.broker import data_bytes, read_broker
from fencepost.traces.kafka.partition import SnapshotId

from .encoder import Partition, batch, cache_of, log, metadata_partition, partition, write_broker

if TYPE_CHECKING:
    from pathlib import Path


def test_columns_of_a_partition_in_two_segments(tmp_path: Path) -> None:
    first, second = log(0, 0, 1), batch(3, [b"a", b"b"], epoch=2, codec=4) + batch(5, [b"c"], epoch=2)
    files = Partition({0: first, 3: second}, [(0, 0), (1, 2), (2, 3)], 4, log_start=1)
    seen: list[int] = []
    root = write_broker(tmp_path / "b1", 1, {"t-0": files}, clean=True)
    broker = read_broker(root, on_bytes=seen.append)
    assert (broker.node_id, broker.label, broker.clean_shutdown, broker.problems) == (1, "broker 1", True, ())
    found = broker.partitions["t", 0]
    assert (found.log_start, found.high_watermark, found.log_end) == (1, 4, 6)
    assert found.batches.segment.tolist() == [0, 0, 0, 1, 1]
    assert found.batches.base_offset.tolist() == [0, 1, 2, 3, 5]
    assert found.batches.last_offset.tolist() == [0, 1, 2, 4, 5]
    assert found.batches.leader_epoch.tolist() == [0, 0, 1, 2, 2]
    assert found.batches.count.tolist() == [1, 1, 1, 2, 1]
    assert found.records.offset.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.records.leader_epoch.tolist() == [0, 0, 1, 2, 2, 2]
    assert found.records.payload_hash.dtype == np.uint64 and len(set(found.records.payload_hash.tolist())) == 6
    assert [(e.epoch, e.start_offset) for e in found.epoch_starts()] == [(0, 1), (1, 2), (2, 3)]
    assert [(s.base_offset, s.size, s.valid_bytes) for s in found.segments] == [
        (0, len(first), len(first)),
        (3, len(second), len(second)),
    ]
    assert found.where(4) == f"{root / 't-0'}/{3:020d}.log, byte 0"
    assert sum(seen) == data_bytes(root) == len(first) + len(second)
    assert json.loads(json.dumps(broker.to_json()))["partitions"][0]["log_end"] == 6


def test_empty_newest_segment_sets_the_end(tmp_path: Path) -> None:
    root = write_broker(tmp_path / "b1", 1, {"t-0": Partition({7: b""}, [], 7)})
    found = read_broker(root).partitions["t", 0]
    assert (found.log_start, found.log_end, len(found.records)) == (7, 7, 0)


def test_folders_that_are_no_partition(tmp_path: Path) -> None:
    root = write_broker(tmp_path / "b1", 1, {"t-0": partition(0), "with-dash-12": partition(1)})
    for name in ("t-1.0123456789abcdef-delete", "t-2.0123456789abcdef-future", "t-3.x-stray", "notes"):
        (root / name).mkdir()
    assert list(read_broker(root).partitions) == [("t", 0), ("with-dash", 12)]


def test_snapshots_by_name(tmp_path: Path) -> None:
    files = metadata_partition([])
    files.snapshots = {(9, 2): b"", (0, 0): b""}
    root = write_broker(tmp_path / "b1", 1, {"__cluster_metadata-0": files})
    (root / "__cluster_metadata-0" / f"{9:020d}-{2:010d}.checkpoint.deleted").write_bytes(b"")
    found = read_broker(root).partitions["__cluster_metadata", 0]
    assert [snapshot for snapshot, _ in found.snapshots] == [SnapshotId(0, 0), SnapshotId(9, 2)]


@pytest.mark.parametrize("case", ["missing", "file", "empty", "other"])
def test_no_data_directory(tmp_path: Path, case: str) -> None:
    path = tmp_path / "d"
    if case == "file":
        path.write_text("x")
    elif case != "missing":
        path.mkdir()
    if case == "other":
        (path / "python-3").mkdir()
    with pytest.raises(BadInput) as caught:
        read_broker(path)
    what = {"missing": "no such directory", "file": "not a directory"}.get(case, "not a Kafka data directory")
    assert caught.value.what == what
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_bad_files_stop_nothing_else(tmp_path: Path) -> None:
    root = write_broker(tmp_path / "b1", 1, {"t-0": partition(0, 0), "u-0": partition(1, 2), "v-0": partition(3)})
    (root / "t-0" / f"{0:020d}.log").write_bytes(b"rubbish" * 100)
    (root / "u-0" / "leader-epoch-checkpoint").write_text("no checkpoint\n")
    (root / "replication-offset-checkpoint").write_text("0\n3\nt 0 2\nu 0\nv 0 1\n")
    (root / "log-start-offset-checkpoint").write_bytes(b"\xff")
    broker = read_broker(root)
    assert [(p.path.name, p.line, p.byte) for p in broker.problems] == [
        ("replication-offset-checkpoint", 4, None),
        ("log-start-offset-checkpoint", None, 0),
        (f"{0:020d}.log", None, 0),
        (f"{0:020d}.log", None, 1),
        ("leader-epoch-checkpoint", 2, None),
    ]
    assert [len(files.records) for files in broker.partitions.values()] == [0, 2, 1]
    assert broker.partitions["v", 0].high_watermark == 1


def test_torn_first_segment_and_whole_second(tmp_path: Path) -> None:
    files = Partition({0: log(0, 0, 0)[:-5], 3: log(1, start=3)}, cache_of([0, 0, 0, 1]), 4)
    broker = read_broker(write_broker(tmp_path / "b1", 1, {"t-0": files}))
    found = broker.partitions["t", 0]
    assert found.records.offset.tolist() == [0, 1, 3]
    assert found.gaps() == [(2, 3)]
    assert found.damaged
    assert [p.kind for p in broker.problems] == ["truncated-segment"]


def test_torn_last_segment_is_no_damage(tmp_path: Path) -> None:
    files = Partition({0: log(0, 0), 2: log(1, 1, start=2)[:-5]}, cache_of([0, 0, 1, 1]), 3)
    found = read_broker(write_broker(tmp_path / "b1", 1, {"t-0": files})).partitions["t", 0]
    assert (found.log_end, found.damaged) == (3, False)
    assert [p.kind for p in found.problems] == ["truncated-segment"]


def test_no_meta_properties_is_a_problem_only(tmp_path: Path) -> None:
    root = write_broker(tmp_path / "b1", 1, {"t-0": partition(0)})
    (root / "meta.properties").unlink()
    broker = read_broker(root)
    assert broker.node_id is None and broker.label == str(root)
    assert [p.kind for p in broker.problems] == ["no-meta-properties"]


def test_folder_without_segments(tmp_path: Path) -> None:
    root = write_broker(tmp_path / "b1", 1, {"t-0": Partition({}, None), "u-0": partition(0)})
    (root / "u-0" / f"{5:020d}.log.swap").write_bytes(b"")
    broker = read_broker(root)
    assert [(p.kind, p.severity) for p in broker.problems] == [("no-segment", "error"), ("unfinished-file", "note")]
    assert broker.partitions["t", 0].log_end == 0


def test_files_that_a_broker_left_half_way(tmp_path: Path) -> None:
    root = write_broker(tmp_path / "b1", 1, {"t-0": partition(0)})
    part, gone = (root / "t-0" / f"{9:020d}-{1:010d}.checkpoint.{end}" for end in ("part", "deleted"))
    part.write_bytes(b"abc")
    gone.write_bytes(b"")
    broker = read_broker(root)
    assert [(p.kind, p.severity, p.where) for p in broker.problems] == [
        ("unfinished-file", "note", f"{gone}, byte 0"),
        ("unfinished-file", "note", f"{part}, byte 3"),
    ]
    assert "about to delete" in broker.problems[0].what and "still writing" in broker.problems[1].what
    assert broker.partitions["t", 0].snapshots == () and not broker.partitions["t", 0].damaged


def test_pipes_are_not_opened(tmp_path: Path) -> None:
    root = write_broker(tmp_path / "b1", 1, {"t-0": partition(0), "u-0": partition(0)})
    for path in (root / "t-0" / f"{0:020d}.log", root / "u-0" / "leader-epoch-checkpoint"):
        path.unlink()
        os.mkfifo(path)
    broker = read_broker(root)
    assert [(p.kind, p.what) for p in broker.problems] == [("unreadable", "not a regular file")] * 2


def test_names_that_kafka_never_writes(tmp_path: Path) -> None:
    root = write_broker(tmp_path / "b1", 1, {"t-0": partition(0)})
    for name in ("t-00", "t-\u0661", "-1"):
        (root / name).mkdir()
    (root / "t-0" / ("9" * 20 + ".log")).write_bytes(b"")
    (root / "t-0" / ("\u0660" * 20 + ".log")).write_bytes(b"")
    broker = read_broker(root)
    assert list(broker.partitions) == [("t", 0)]
    assert [p.kind for p in broker.problems] == ["bad-name"]
