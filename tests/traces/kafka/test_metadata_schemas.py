"""The schemas of the controller's records: those that Apache Kafka ships, and what an image makes of all of them."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.kafka.batches import Limits
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.maven import fetch_kafka
from fencepost.traces.kafka.metadata import SCHEMAS, Field, decode_metadata_record

from .encoder import compact_string, metadata_partition, metadata_value, uvarint, write_broker

VERSION = "4.4.0"


@pytest.fixture(scope="module")
def shipped() -> dict[int, dict[str, Any]]:
    """By type, Kafka's own schemas, from its jar."""
    try:
        jars = fetch_kafka(VERSION, timeout=120)
    except BadInput as missing:
        pytest.skip(f"absent: Apache Kafka: {missing}")
    found = {}
    with zipfile.ZipFile(jars.directory / f"kafka-metadata-{VERSION}.jar") as jar:
        for name in jar.namelist():
            if re.fullmatch(r"common/metadata/\w+\.json", name):
                told = json.loads(re.sub(r"^\s*//.*$", "", jar.read(name).decode(), flags=re.MULTILINE))
                found[told["apiKey"]] = told
    return found


def shape(field: dict[str, Any]) -> tuple[object, ...]:
    kind = field["type"]
    items = tuple(shape(each) for each in field.get("fields", ()))
    return field["name"], "[]" if items else kind, int(field["versions"].split("+")[0].split("-")[0]), items


def ours(field: Field) -> tuple[object, ...]:
    return field.name, field.type, field.since, tuple(ours(each) for each in field.items)


@pytest.mark.kafka
def test_every_shipped_record_is_known_field_by_field(shipped: dict[int, dict[str, Any]]) -> None:
    assert len(shipped) == len(SCHEMAS) >= 27 and shipped.keys() == SCHEMAS.keys()
    for key, told in shipped.items():
        known = SCHEMAS[key]
        assert known.name == told["name"]
        plain = [shape(each) for each in told["fields"] if "tag" not in each]
        assert [ours(each) for each in known.fields] == plain, told["name"]
        tagged = {each["tag"]: shape(each)[:2] for each in told["fields"] if "tag" in each}
        assert {tag: ours(each)[:2] for tag, each in known.tagged.items()} == tagged, told["name"]
        newest = int(told["validVersions"].rsplit("-", 1)[-1])
        assert known.max_version == newest, told["name"]


def image_of(tmp_path: Path, *values: bytes) -> dict[str, object]:
    broker = read_broker(
        write_broker(tmp_path, 100, {"__cluster_metadata-0": metadata_partition(values)}), limits=Limits()
    )
    assert broker.problems == () and broker.metadata is not None
    return broker.metadata.state()


ACL = UUID(int=7)
ADDED = metadata_value(
    18,
    ACL.bytes + b"\x02" + compact_string("t") + b"\x03" + compact_string("User:a") + compact_string("*") + b"\x02\x03",
)


def quota(value: float, remove: bool, *entities: str) -> bytes:
    body = uvarint(len(entities) + 1) + b"".join(
        compact_string(each) + compact_string("x") + b"\x00" for each in entities
    )
    return metadata_value(14, body + compact_string("rate") + struct.pack(">d", value) + bytes([remove]))


def test_what_is_added_and_taken_away_again(tmp_path: Path) -> None:
    added = image_of(tmp_path / "a", ADDED, quota(5.0, False, "user", "client"))
    assert len(added) == 2 and any(
        isinstance(each, dict) and each.get("Principal") == "User:a" for each in added.values()
    )
    assert any(isinstance(each, dict) and each.get("Value") == 5.0 for each in added.values())
    gone = image_of(
        tmp_path / "b",
        ADDED,
        quota(5.0, False, "user", "client"),
        metadata_value(19, ACL.bytes),
        quota(0.0, True, "client", "user"),
    )
    assert gone == {}


def test_the_next_producer_id_is_the_last_one_told(tmp_path: Path) -> None:
    values = [metadata_value(15, struct.pack(">iqq", 1, 5, number)) for number in (1000, 2000)]
    assert image_of(tmp_path / "log", *values, metadata_value(20, b"")) == {"next producer id": 2000}


def test_a_record_of_another_release_is_skipped() -> None:
    assert decode_metadata_record(metadata_value(99, b"")) is None
