"""What a quorum leaves on disk, read by others: ``fencepost check`` holds its directories against the protocol."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fencepost.conformance.cli import main
from fencepost.impl.files import File, read_file
from fencepost.impl.log import CorruptBatch, Record, StoredRecord, encode_batch
from fencepost.impl.log.varint import uvarint
from fencepost.impl.quorum import CLUSTER_METADATA, SnapshotId
from fencepost.impl.quorum.machine import SnapshotWriter
from fencepost.impl.quorum.snapshots import batches_of
from fencepost.impl.wire.quorum import BeginQuorumEpochRequest
from fencepost.traces.kafka.broker import read_broker

from .brokers import contents
from .quorum_rack import Rack
from .test_quorum_elections import Alone, vote

STATE = "__cluster_metadata-0/quorum-state"
HEADER_KEY, FOOTER_KEY = struct.pack(">hh", 0, 3), struct.pack(">hh", 0, 4)


def topic_record(name: str) -> bytes:
    """A TopicRecord (type 2, version 0) in its frame: name and id."""
    text = name.encode()
    return bytes((1, 2, 0)) + uvarint(len(text) + 1) + text + text.rjust(16, b"-") + b"\0"


class ControllerMachine:
    """Keeps committed metadata records, and writes its snapshots as Kafka's ``RecordsSnapshotWriter`` does."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, int]] = []

    def apply(self, records: Sequence[StoredRecord]) -> None:
        self.records += [(record.value or b"", record.timestamp) for record in records]

    def snapshot(self, writer: SnapshotWriter) -> None:
        epoch, last = writer.id.epoch, self.records[-1][1] if self.records else 0
        header = Record(struct.pack(">hq", 0, last) + b"\0", HEADER_KEY, last)
        writer.append(encode_batch([header], leader_epoch=epoch, control=True))
        records = [Record(value, None, timestamp) for value, timestamp in self.records]
        if records:
            writer.append(encode_batch(records, base_offset=1, leader_epoch=epoch))
        footer = Record(struct.pack(">h", 0) + b"\0", FOOTER_KEY, last)
        writer.append(encode_batch([footer], base_offset=1 + len(records), leader_epoch=epoch, control=True))
        writer.finished()

    def load(self, snapshot: SnapshotId, file: File) -> None:
        batches = list(batches_of(file, snapshot.file_name))
        if not batches or batches[-1].records()[0].key != FOOTER_KEY:
            raise CorruptBatch("no footer", file.size, snapshot.file_name)
        self.records = [
            (record.value or b"", record.timestamp)
            for batch in batches
            if not batch.is_control
            for record in batch.records()
        ]

    def clear(self) -> None:
        self.records = []


class Controllers(Rack):
    """A quorum whose records are those of Kafka's controllers; the ledger, which knows keys and values, looks away."""

    def start(self, node: int) -> Any:
        made = super().start(node)
        made.replica.machine = ControllerMachine()
        return made

    def check(self) -> None:
        assert not [node.failure for node in self.nodes.values() if node.failure is not None]


def written(folder: Path, *, minimum_records: int) -> list[Path]:
    """The directories of three controllers that were closed, after two leaders."""
    rack = Controllers(seed=3, snapshot_minimum_records=minimum_records, max_replication_lag_ms=100_000)
    leader = rack.elect()
    for number in range(12):
        leader.append([Record(topic_record(f"topic-{number}"), None, rack.clock.wall())])
        rack.run(50)
    leader.resign()
    second = rack.elect()
    second.append([Record(topic_record("last"), None, rack.clock.wall())])
    rack.run(2_000)
    paths = []
    for number, node in rack.nodes.items():
        assert node.replica.high_watermark == second.replica.end
        node.close()
        for path, data in contents(rack.disks[number]).items():
            target = folder / str(number) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        paths.append(folder / str(number))
    return paths


def checked(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["check", *map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("minimum_records", [5, 1_000])
def test_check_reads_the_directories_of_a_quorum(
    minimum_records: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = written(tmp_path, minimum_records=minimum_records)
    assert any((tmp_path / "0").rglob("*.checkpoint")) is (minimum_records == 5)
    for path in paths:
        broker = read_broker(path)
        assert broker.problems == ()
        assert broker.quorum is not None and broker.quorum.voters == (0, 1, 2)
        assert broker.quorum.leader_epoch > 0 and broker.quorum.leader_id in (0, 1, 2)
    code, said = checked(capsys, *paths, "--report", tmp_path / "report")
    assert (code, said["verdict"]) == (0, "holds"), said
    assert all(each["verdict"] == "holds" for each in said["obligations"])


def test_check_names_a_state_file_without_a_leader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = written(tmp_path, minimum_records=1_000)
    state = paths[1] / STATE
    fields = json.loads(state.read_text())
    del fields["leaderId"]
    state.write_text(json.dumps(fields))
    (problem,) = read_broker(paths[1]).problems
    assert problem.kind == "bad-quorum-state"
    assert main(["check", *map(str, paths), "--report", str(tmp_path / "report")]) == 3, "a file was not read"
    assert f"{state.relative_to(tmp_path)}" in capsys.readouterr().out


def test_the_state_file_has_every_field_of_kafkas() -> None:
    alone = Alone()
    texts = []
    for step in ("vote", "begin", "stand", "lead"):
        if step == "vote":
            alone.ask(vote(3))
        elif step == "begin":
            alone.ask(BeginQuorumEpochRequest(CLUSTER_METADATA, 3, 1))
        elif step == "stand":
            alone.node._stand()
        else:
            alone.lead()
        texts.append(read_file(alone.files, STATE).decode())
    voters = '"currentVoters":[{"voterId":0},{"voterId":1},{"voterId":2}]'
    assert texts == [
        f'{{"clusterId":"","leaderId":{leader},"leaderEpoch":{epoch},"votedId":{voted},"appliedOffset":0,{voters},'
        '"data_version":0}'
        for leader, epoch, voted in ((-1, 3, 1), (1, 3, 1), (-1, 4, 0), (0, 5, 0))
    ]
    again = Alone(files=alone.files.crashed_copy(2))
    assert again.node.ballot == (5, 0, 0)
    assert (again.node.state().role, again.node.leader_id) == ("unattached", -1), "it leads no more"
