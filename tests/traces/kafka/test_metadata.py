"""The controller's records decoded and replayed into the image."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.image import MetadataImage
from fencepost.traces.kafka.metadata import MetadataError, decode_metadata_record

from .encoder import (
    TOPIC_ID,
    Partition,
    batch,
    compact_ints,
    compact_string,
    config_record,
    metadata_log,
    metadata_partition,
    metadata_value,
    partition_change,
    partition_record,
    topic_record,
    uvarint,
    write_broker,
)

if TYPE_CHECKING:
    from pathlib import Path

    from fencepost.traces.kafka.broker import BrokerFiles

FIRST = [topic_record("t"), partition_record([1, 2, 3], [1, 2, 3], 1)]


def read(tmp_path: Path, files: Partition) -> tuple[MetadataImage, BrokerFiles]:
    root = write_broker(tmp_path / "b", 1, {"__cluster_metadata-0": files})
    broker = read_broker(root)
    assert broker.metadata is not None
    return broker.metadata, broker


def test_leader_and_isr_changes(tmp_path: Path) -> None:
    changes = [
        partition_change(isr=[1, 2]),
        partition_change(leader=2, isr=[2]),
        partition_change(leader=2),
        partition_change(leader=-1),
    ]
    image, broker = read(tmp_path, metadata_partition([*FIRST, *changes], epoch=7))
    assert broker.problems == () and image.complete
    assert (image.end_offset, image.epoch, image.quorum_leaders) == (7, 7, [(0, 7, 100)])
    history = image.topics["t"].history[0]
    assert [(s.offset, s.leader, s.leader_epoch, s.isr, s.partition_epoch) for s in history] == [
        (2, 1, 0, (1, 2, 3), 0),
        (3, 1, 0, (1, 2), 1),
        (4, 2, 1, (2,), 2),
        (5, 2, 2, (2,), 3),  # naming the same leader again is a new leader epoch
        (6, -1, 3, (2,), 4),
    ]
    assert image.partition("t", 0) == history[-1]
    assert image.partition("t", 1) is None and image.partition("u", 0) is None
    assert image.topics["t"].topic_id == TOPIC_ID


def broker_records() -> list[bytes]:
    def register(node: int, epoch: int, fenced: bool) -> bytes:
        body = struct.pack(">i", node) + b"\x00" + bytes(16) + struct.pack(">q", epoch)
        endpoint = compact_string("PLAINTEXT") + compact_string("localhost") + struct.pack(">Hh", 9092, 0) + b"\x00"
        feature = compact_string("metadata.version") + struct.pack(">hh", 1, 33) + b"\x00"
        body += uvarint(2) + endpoint + uvarint(2) + feature
        body += b"\x00" + bytes([fenced]) + b"\x00"
        return metadata_value(0, body, {0: uvarint(2) + UUID(int=node).bytes}, version=3)

    def change(node: int, fenced: int) -> bytes:
        return metadata_value(17, struct.pack(">iq", node, 10 + node), {0: struct.pack(">b", fenced)})

    return [
        *(register(node, 10 + node, fenced=True) for node in (1, 2, 3, 4)),
        change(1, -1),
        metadata_value(8, struct.pack(">iq", 2, 12)),
        metadata_value(8, struct.pack(">iq", 3, 13)),
        metadata_value(7, struct.pack(">iq", 3, 13)),
        metadata_value(1, struct.pack(">iq", 4, 14)),
        metadata_value(12, compact_string("metadata.version") + struct.pack(">h", 33)),
    ]


def test_broker_fencing_and_features(tmp_path: Path) -> None:
    image, broker = read(tmp_path, metadata_partition(broker_records()))
    assert broker.problems == ()
    assert {node: (b.epoch, b.fenced) for node, b in image.brokers.items()} == {
        1: (11, False),
        2: (12, False),
        3: (13, True),
    }
    assert image.features == {"metadata.version": 33}


def test_topic_configs_and_removal(tmp_path: Path) -> None:
    other = UUID(int=77)
    values = [
        *FIRST,
        topic_record("u", other),
        partition_record([1], [1], 1, topic_id=other),
        config_record("t", "cleanup.policy", "compact"),
        config_record("t", "retention.ms", "5"),
        config_record("t", "retention.ms", None),
        metadata_value(9, other.bytes),
    ]
    image, broker = read(tmp_path, metadata_partition(values))
    assert broker.problems == ()
    assert list(image.topics) == ["t"] and image.configs == {"t": {"cleanup.policy": "compact"}}


def test_metadata_transactions(tmp_path: Path) -> None:
    begin, end, abort = (metadata_value(key, b"") for key in (23, 24, 25))
    lost, kept = topic_record("lost", UUID(int=1)), topic_record("kept", UUID(int=2))
    open_end = topic_record("open", UUID(int=3))
    values = [begin, lost, abort, begin, kept, end, begin, open_end]
    image, _ = read(tmp_path, metadata_partition(values))
    assert list(image.topics) == ["kept"]


def test_unknown_record_types_are_told_and_unknown_tags_are_skipped(tmp_path: Path) -> None:
    tagged = metadata_value(2, compact_string("v") + UUID(int=4).bytes, {900: b"anything"})
    image, broker = read(tmp_path, metadata_partition([metadata_value(20, b""), metadata_value(999, b"?"), tagged]))
    assert [(each.kind, each.severity) for each in broker.problems] == [("unknown-record", "note")]
    assert list(image.topics) == ["v"] and not image.complete
    image, broker = read(tmp_path / "tagged", metadata_partition([metadata_value(20, b""), tagged]))
    assert broker.problems == () and image.complete


BROKEN = {
    "empty": b"",
    "frame 0": uvarint(0) + uvarint(2),
    "cut off": topic_record("name")[:-5],
    "left over": topic_record("name") + b"\x00",
    "array too long": metadata_value(3, struct.pack(">i", 0) + TOPIC_ID.bytes + uvarint(1 << 28)),
    "string too long": metadata_value(2, uvarint(1 << 28)),
    "tag too long": metadata_value(2, compact_string("t") + TOPIC_ID.bytes)[:-1]
    + uvarint(1)
    + uvarint(0)
    + uvarint(99),
    "tag of another size": metadata_value(5, struct.pack(">i", 0) + TOPIC_ID.bytes, {1: b"\x00" * 5}),
    "no such topic": partition_record([1], [1], 1, topic_id=UUID(int=5)),
    "no such partition": partition_change(leader=1, partition_index=3),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_record_is_rejected_with_its_byte(tmp_path: Path, name: str) -> None:
    data = metadata_log(FIRST)
    files = Partition({0: data + batch(3, [BROKEN[name]], epoch=1)}, [(1, 0)], None, topic_id=None)
    image, broker = read(tmp_path, files)
    assert broker.problems == (), "every controller may have it: it is no damage of the file"
    assert image.rejection is not None
    assert (image.rejection.offset, image.rejection.position) == (3, len(data))
    assert not image.complete
    assert list(image.topics) == ["t"], "what came before is kept"
    if name not in ("no such topic", "no such partition"):
        with pytest.raises(MetadataError):
            decode_metadata_record(BROKEN[name])


def test_image_starts_from_the_snapshot_that_reaches_the_log(tmp_path: Path) -> None:
    changes = batch(20, [partition_change(leader=2, isr=[2])], epoch=4)
    early = metadata_log([topic_record("old", UUID(int=8))])
    exact = batch(0, [topic_record("t"), partition_record([1, 2], [1, 2], 1, 6)], epoch=3)
    files = Partition({20: changes}, [(4, 20)], None, topic_id=None, snapshots={(10, 2): early, (20, 3): exact})
    image, broker = read(tmp_path, files)
    assert broker.problems == () and image.complete
    assert list(image.topics) == ["t"]
    assert [(s.offset, s.leader, s.leader_epoch) for s in image.topics["t"].history[0]] == [(19, 1, 6), (20, 2, 7)]
    assert (image.end_offset, image.epoch) == (21, 4)


def test_log_records_that_the_snapshot_includes_are_not_replayed_twice(tmp_path: Path) -> None:
    state = batch(0, [topic_record("t"), partition_record([1, 2], [1, 2], 1, 6)], epoch=3)
    log = batch(20, [partition_change(leader=2), partition_change(leader=1)], epoch=3)
    files = Partition({20: log}, [(3, 20)], None, topic_id=None, snapshots={(21, 3): state})
    image, _ = read(tmp_path, files)
    assert [(s.offset, s.leader_epoch) for s in image.topics["t"].history[0]] == [(20, 6), (21, 7)]


def test_log_without_its_snapshot_is_incomplete(tmp_path: Path) -> None:
    files = Partition({20: batch(20, [topic_record("t")])}, [(0, 20)], None, topic_id=None)
    image, _ = read(tmp_path, files)
    assert not image.complete


def test_null_is_rejected_unless_the_schema_allows_it(tmp_path: Path) -> None:
    body = struct.pack(">i", 0) + TOPIC_ID.bytes + compact_ints([1]) + b"\x00" * 3 + struct.pack(">iii", 1, 0, 0)
    with pytest.raises(MetadataError, match="Isr is null"):
        decode_metadata_record(metadata_value(3, body))
    found = decode_metadata_record(config_record("t", "retention.ms", None))
    assert found is not None and found.fields["Value"] is None


def test_strings_and_tags_decode_as_in_kafka() -> None:
    """Java replaces bytes that are no UTF-8; a tag of a later version is an error."""
    found = decode_metadata_record(metadata_value(2, uvarint(3) + b"\xffa" + TOPIC_ID.bytes))
    assert found is not None and found.fields["Name"] == "\ufffda"
    with pytest.raises(MetadataError, match="tag 8 is not valid in version 0"):
        decode_metadata_record(metadata_value(5, struct.pack(">i", 0) + TOPIC_ID.bytes, {8: uvarint(1)}))


def test_quorum_state_beside_the_log(tmp_path: Path) -> None:
    root = write_broker(
        tmp_path / "b",
        1,
        {"__cluster_metadata-0": metadata_partition([])},
        quorum={"leaderId": 100, "leaderEpoch": 3, "votedId": -1, "data_version": 1},
    )
    broker = read_broker(root)
    assert broker.quorum is not None and broker.quorum.leader_epoch == 3 and broker.problems == ()
