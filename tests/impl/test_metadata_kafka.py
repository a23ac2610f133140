"""The codec held against Apache Kafka's own: all records that the newest release ships, and ours of the same fields.

Kafka's jar holds the JSON files that its classes are generated from. Their text is read by our parser and made a codec,
which must write what Kafka's classes write, and mean by it what they mean.
"""

from __future__ import annotations

import base64
import json
import math
import random
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

import pytest
from fencepost.impl.log.batch import read_batch
from fencepost.impl.metadata import (
    CorruptRecord,
    MetadataCodec,
    MetadataRecord,
    Struct,
    encode,
    load_schemas,
    parse_schema,
)
from fencepost.impl.metadata.schema import Field, Schema
from fencepost.traces.kafka.capture import bundled_corpus
from fencepost.traces.kafka.metadata import SCHEMAS as TRACES_SCHEMAS
from fencepost.traces.kafka.metadata import decode_metadata_record
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from .kafka_jvm import java_class, kafka_gateway, kafka_jars, read_buffer
from .metadata_draws import a_record

pytestmark = pytest.mark.kafka

EACH = 6
"""Records drawn of each version of each schema."""
DAMAGED = 150
"""Damaged records drawn in all."""
SEED = 631


class Kafka:
    """Kafka's serde of metadata records."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        common = "org.apache.kafka.common"
        self._accessor = java_class(gateway, f"{common}.protocol.ByteBufferAccessor")
        self._cache = java_class(gateway, f"{common}.protocol.ObjectSerializationCache")
        self._json = java_class(gateway, f"{common}.metadata.MetadataJsonConverters")
        self._serde = java_class(gateway, "org.apache.kafka.metadata.MetadataRecordSerde")()
        self._buffer = gateway.jvm.java.nio.ByteBuffer

    def read(self, data: bytes) -> tuple[dict[str, Any], bytes] | None:
        """What Kafka reads, as its JSON, and what it writes of that; ``None`` where it refuses."""
        try:
            record = self._serde.read(self._accessor(self._buffer.wrap(data)), len(data))
        except Exception as error:  # py4j's own class, which need not be there to be imported
            if "MetadataParseException" not in str(error):
                raise
            return None
        return self._written(record)

    def _written(self, record: Any) -> tuple[dict[str, Any], bytes]:
        cache = self._cache()
        size = self._serde.recordSize(record, cache)
        out = self._buffer.allocate(size)
        self._serde.write(record, cache, self._accessor(out))
        out.flip()
        text = self._json.writeJson(record.message(), record.version()).toString()
        return json.loads(text), read_buffer(self._gateway, out)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    for gateway in kafka_gateway():
        yield Kafka(gateway)


@pytest.fixture(scope="module")
def shipped() -> dict[str, Schema]:
    """The schemas in Kafka's jar, by the names of the records."""
    (jar,) = kafka_jars().directory.glob("kafka-metadata-*.jar")
    with zipfile.ZipFile(jar) as packed:
        names = [name for name in packed.namelist() if name.startswith("common/metadata/") and name.endswith(".json")]
        found = [parse_schema(packed.read(name).decode(), name) for name in names]
    assert len(found) > 20
    return {each.name: each for each in found}


def as_kafkas_json(fields: tuple[Field, ...], version: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as Kafka's converters write them: tagged ones where they differ from their defaults."""
    found = {}
    for each in fields:
        if each.name not in values:
            continue
        value = values[each.name]
        if version in each.tagged and value == each.default:
            continue
        found[each.name[0].lower() + each.name[1:]] = (
            [_one(each, version, item) for item in value]
            if each.array and value is not None
            else _one(each, version, value)
        )
    return found


def _one(field: Field, version: int, value: Any) -> Any:
    if isinstance(value, Struct):
        return as_kafkas_json(field.fields, version, value.fields)
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", "Infinity")  # as Jackson writes what JSON has no number for
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def drawn(schema: Schema, version: int, count: int, *, unknown: bool = False) -> list[MetadataRecord]:
    """So many records of a version of a schema, the same each time."""
    found: list[MetadataRecord] = []
    one = Schema(schema.name, schema.api_key, type(schema.versions)(version, version), schema.fields)

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        found.append(a_record(data.draw, [one], unknown=unknown))

    draw()
    return found[:count]


def test_every_record_that_kafka_ships(kafka: Kafka, shipped: Mapping[str, Schema]) -> None:
    """Ours is read by Kafka to the same values, and written by it to the same bytes; unknown tagged fields too."""
    codec = MetadataCodec(shipped.values(), framed=True)
    seen = 0
    for schema in shipped.values():
        for version in range(schema.versions.lowest, schema.versions.highest + 1):
            for record in drawn(schema, version, EACH, unknown=True):
                data = codec.encode(record)
                answer = kafka.read(data)
                assert answer is not None, record
                assert answer[1] == data, record
                assert answer[0] == as_kafkas_json(schema.fields, version, record.fields)
                assert codec.decode(data) == record
                seen += 1
    assert seen > 100


def test_what_we_read_of_damage_kafka_reads_alike(kafka: Kafka, shipped: Mapping[str, Schema]) -> None:
    """Wherever ours reads damaged bytes, Kafka does, and both write the same of it.

    Kafka itself reads more: strings that are not UTF-8, and tags in any order, which it then refuses to write.
    """
    codec = MetadataCodec(shipped.values(), framed=True)
    records = [each for schema in shipped.values() for each in drawn(schema, schema.versions.highest, 3, unknown=True)]
    draw = random.Random(SEED)
    taken = refused = 0
    for _ in range(DAMAGED):
        data = bytearray(codec.encode(draw.choice(records)))
        for _ in range(draw.randint(1, 2)):
            data[draw.randrange(1, len(data))] = draw.choice((0, 1, 2, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        try:
            record = codec.decode(bytes(data))
        except CorruptRecord:
            refused += 1
            continue
        answer = kafka.read(bytes(data))
        assert answer is not None, (SEED, bytes(data).hex(), record)
        assert answer[1] == codec.encode(record), (SEED, bytes(data).hex())
        taken += 1
    assert taken > 10 and refused > 10


#: Ours, and the version that Kafka's of the same name, version 0, has the fields of.
SAME = {
    "FenceBrokerRecord": 1,
    "UnfenceBrokerRecord": 1,
    "RemoveTopicRecord": 0,
    "UnregisterBrokerRecord": 0,
    "FeatureLevelRecord": 0,
    "ConfigRecord": 1,
}


@pytest.mark.parametrize("name", SAME)
def test_ours_of_the_same_fields_have_the_same_payload(kafka: Kafka, shipped: Mapping[str, Schema], name: str) -> None:
    ours = next(each for each in load_schemas() if each.name == name)
    for record in drawn(ours, SAME[name], EACH):
        head = bytes((1, shipped[name].api_key, 0))  # frame version, type and version, each of one byte
        answer = kafka.read(head + encode(record)[2:])
        assert answer is not None
        assert answer[1] == head + encode(record)[2:]
        assert answer[0] == as_kafkas_json(ours.fields, SAME[name], record.fields)


def test_the_reader_of_recorded_clusters_reads_alike(shipped: Mapping[str, Schema]) -> None:
    """``fencepost check`` has a reader of its own, since traces do not know the implementation."""
    codec = MetadataCodec(shipped.values(), framed=True)
    for key, table in TRACES_SCHEMAS.items():
        schema = shipped[table.name]
        assert schema.api_key == key
        for version in range(schema.versions.lowest, min(schema.versions.highest, table.max_version) + 1):
            for record in drawn(schema, version, EACH):
                read = decode_metadata_record(codec.encode(record))
                assert read is not None and (read.type, read.version) == record[:2]
                # Where a tagged field is not there, that one has its own word for "no change", null.
                left_out = {each.name for each in schema.fields if each.tag is not None and each.default == ()}
                expected = {
                    name: as_plain(value) for name, value in record.fields.items() if value or name not in left_out
                }
                assert {name: read.fields[name] for name in expected} == expected


def as_plain(value: Any) -> Any:
    """Lists for tuples, and dictionaries for structures, as that reader gives them."""
    if isinstance(value, Struct):
        return {name: as_plain(each) for name, each in value.fields.items()}
    return [as_plain(each) for each in value] if isinstance(value, tuple) else value


def test_all_that_a_recorded_cluster_has_written(shipped: Mapping[str, Schema]) -> None:
    """Every record of its metadata logs and snapshots is read, and written again to the same bytes."""
    codec = MetadataCodec(shipped.values(), framed=True)
    seen: Counter[str] = Counter()
    for path in sorted(bundled_corpus().glob("7-all-back/*/__cluster_metadata-0/*")):
        if path.suffix not in (".log", ".checkpoint"):
            continue
        data, position = path.read_bytes(), 0
        while position < len(data):
            found = read_batch(data, position)
            position += found.size
            for each in [] if found.is_control else found.records():
                assert each.key is None and each.value is not None
                record = codec.decode(each.value)
                assert codec.encode(record) == each.value
                seen[record.type] += 1
    assert seen.total() > 300 and len(seen) > 8, seen


def test_a_planted_difference_is_found(kafka: Kafka, shipped: Mapping[str, Schema]) -> None:
    """A codec that forgets a field, or writes two in another order, is not Kafka's."""

    def without(name: str) -> Callable[[tuple[Field, ...]], tuple[Field, ...]]:
        return lambda fields: tuple(each for each in fields if each.name != name)

    topic = shipped["TopicRecord"]
    faults = [without("TopicId"), lambda fields: tuple(reversed(fields))]
    for fault in faults:
        wrong = Schema(topic.name, topic.api_key, topic.versions, fault(topic.fields))
        record = drawn(wrong, 0, 1)[0]
        data = MetadataCodec([wrong], framed=True).encode(record)
        answer = kafka.read(data)
        assert answer is None or answer[0] != as_kafkas_json(wrong.fields, 0, record.fields)
