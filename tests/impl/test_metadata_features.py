"""Which records ``metadata.format`` lets be written, and the data files of the schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fencepost.impl.metadata import (
    CODEC,
    NEWEST_LEVEL,
    OLDEST_LEVEL,
    CorruptRecord,
    InvalidRecord,
    InvalidSchema,
    MetadataCodec,
    MetadataFormat,
    MetadataRecord,
    decode,
    encode,
    load_schemas,
    parse_schema,
)
from fencepost.impl.metadata.features import NEWEST_AT
from fencepost.impl.metadata.schema import SIZES, Versions, check_schemas

FENCE = MetadataRecord("FenceBrokerRecord", 0, {"Id": 7})
FENCE_1 = MetadataRecord("FenceBrokerRecord", 1, {"Id": 7, "Epoch": 9})


def test_a_newer_record_is_not_written_before_its_level() -> None:
    old, new = MetadataFormat(1), MetadataFormat(2)
    assert old.encode(FENCE) == new.encode(FENCE) == encode(FENCE)
    assert new.encode(FENCE_1) == encode(FENCE_1)
    with pytest.raises(InvalidRecord) as caught:
        old.encode(FENCE_1)
    assert str(caught.value) == (
        "FenceBrokerRecord: version 1 at metadata.format 1, which lets version 0 be written; "
        "raise metadata.format, or write an older version"
    )
    assert not old.allows("FenceBrokerRecord", 1) and not old.allows("FenceBrokerRecord", -1)
    assert not old.allows("NoSuchRecord", 0)


def test_what_is_read_does_not_ask_for_the_level() -> None:
    assert decode(encode(FENCE_1)) == FENCE_1


def test_a_type_of_no_level_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "fencepost.impl.metadata.features.NEWEST_AT",
        ({name: version for name, version in NEWEST_AT[0].items() if name != "FenceBrokerRecord"}, NEWEST_AT[1]),
    )
    with pytest.raises(InvalidRecord, match="which lets no such record be written"):
        MetadataFormat(1).encode(FENCE)
    assert MetadataFormat(2).encode(FENCE) == encode(FENCE)


def test_types_that_there_are_not_are_refused() -> None:
    with pytest.raises(InvalidRecord, match="NoSuchRecord: there is no such type of record"):
        MetadataFormat(2).encode(MetadataRecord("NoSuchRecord", 0, {}))
    with pytest.raises(InvalidRecord, match="FenceBrokerRecord: version 2"):
        MetadataFormat(2).encode(FENCE._replace(version=2))


def test_levels() -> None:
    assert (OLDEST_LEVEL, NEWEST_LEVEL) == (1, 2)
    for level in (0, 3):
        with pytest.raises(InvalidRecord, match=f"metadata.format: level {level}, known are 1 to 2"):
            MetadataFormat(level)
    assert MetadataFormat(1) == MetadataFormat(1) != MetadataFormat(2)


def test_every_version_of_every_schema_has_its_level() -> None:
    """The newest level lets all be written, and versions only rise with the level."""
    newest = {each.name: each.versions.highest for each in load_schemas()}
    assert MetadataFormat(NEWEST_LEVEL).newest == newest
    for lower, higher in zip(range(1, NEWEST_LEVEL), range(2, NEWEST_LEVEL + 1), strict=True):
        below = MetadataFormat(lower).newest
        assert all(MetadataFormat(higher).newest[name] >= version for name, version in below.items())
    # A table that lacks a version fails this test.
    assert {**newest, "FenceBrokerRecord": 0} != newest


def test_the_schemas_are_those_of_the_page() -> None:
    """KIP-631, "Record Formats": numbers, names and order of the fields of version 0."""
    page = {
        "BrokerRecord": (0, "BrokerId BrokerEpoch EndPoints Rack"),
        "TopicRecord": (1, "Name TopicId Deleting"),
        "PartitionRecord": (
            2,
            "PartitionId TopicId Replicas Isr RemovingReplicas AddingReplicas Leader LeaderEpoch",
        ),
        "ConfigRecord": (3, "ResourceType ResourceName Name Value"),
        "IsrChangeRecord": (4, "PartitionId TopicId Isr Leader LeaderEpoch"),
    }
    for name, (key, fields) in page.items():
        schema = CODEC.schemas[name]
        untagged, tagged = schema.of(0)
        assert (schema.api_key, [each.name for each in untagged], tagged) == (key, fields.split(), ())
    # KIP-630: a FenceBroker is the broker's id beside type and version.
    fence, _ = CODEC.schemas["FenceBrokerRecord"].of(0)
    assert [SIZES[each.type] for each in fence] == [4]


def test_the_files_have_the_names_of_their_schemas() -> None:
    folder = Path(__file__).parents[2] / "impl" / "metadata" / "schemas"
    assert {each.stem for each in folder.iterdir()} == set(CODEC.schemas)
    for each in folder.iterdir():
        text = re.sub(r"(?m)^\s*//.*$", "", each.read_text(encoding="utf-8"))
        assert json.loads(text)["name"] == each.stem


def schema_text(rows: str = "", **changes: object) -> str:
    """A small schema with some keys changed; ``None`` takes one out."""
    tree: dict[str, object] = {
        "apiKey": 1,
        "type": "metadata",
        "name": "SmallRecord",
        "validVersions": "0-1",
        "flexibleVersions": "0+",
        "fields": json.loads(f"[{rows}]"),
    }
    return json.dumps({key: value for key, value in (tree | changes).items() if value is not None})


def field_text(**changes: object) -> str:
    tree = {"name": "Id", "type": "int32", "versions": "0+"} | changes
    return json.dumps({key: value for key, value in tree.items() if value is not None})


def test_a_clean_schema_is_read() -> None:
    text = "// a comment\n" + schema_text(field_text(default="0x10"), fields=None)
    assert parse_schema(text, "x.json").fields == ()
    (field,) = parse_schema(schema_text(field_text(default="0x10", about="why")), "x.json").fields
    assert (field.default, field.required, field.about, field.versions) == (16, False, "why", Versions(0, 0x7FFF))
    (field,) = parse_schema(schema_text(field_text(type="boolean")), "x.json").fields
    assert (field.type, field.required) == ("bool", True)
    tagged = field_text(type="[]uuid", tag="0", taggedVersions="0+")
    (field,) = parse_schema(schema_text(tagged), "x.json").fields
    assert (field.tag, field.default, field.required) == (0, (), False)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes: line 1"),
        ("// x\n\n{,", "line 3 column 2"),
        ("[]", "the schema is no object"),
        ("[" * 100_000, "nested too deep"),
        ('{"name": 1, "name": 2}', "a key stands twice"),
        (schema_text(type="request"), "SmallRecord: type is 'request'"),
        (schema_text(apiKey=None), "SmallRecord: apiKey is None"),
        (schema_text(apiKey=True), "SmallRecord: apiKey is True"),
        (schema_text(apiKey=1 << 15), "SmallRecord: apiKey is 32768"),
        (schema_text(name="small"), "name is 'small'"),
        (schema_text(validVersions="1-0"), "validVersions is '1-0', from 1 to 0"),
        (schema_text(validVersions="x"), "validVersions is 'x', not like 0, 0-2, 1+ or none"),
        (schema_text(validVersions="0+"), "validVersions has no end"),
        (schema_text(flexibleVersions="1+"), "only the flexible format is written"),
        (schema_text(flexibleVersions=None), "flexibleVersions is None"),
        (schema_text(listeners=[]), "the schema: no such key as 'listeners'"),
        (schema_text(fields={}), "fields is no list"),
        (schema_text(f"{field_text()}, {field_text()}"), "SmallRecord: two fields are named Id"),
        (schema_text(field_text(type="int24")), "SmallRecord.Id: no such type as 'int24'"),
        (schema_text(field_text(type=None)), "SmallRecord.Id: no such type as None"),
        (schema_text(field_text(type="Inner")), "SmallRecord.Id: no such type as 'Inner'"),
        (schema_text(field_text(type="[]Inner")), "the structure Inner has no fields"),
        (schema_text(field_text(fields=[json.loads(field_text())])), "a field of type int32 has fields"),
        (schema_text(field_text(versions=None)), "SmallRecord.Id: versions is None"),
        (schema_text(field_text(nullableVersions="0+")), "a value of type int32 cannot be null"),
        (schema_text(field_text(tag=0)), "a tag needs taggedVersions"),
        (schema_text(field_text(taggedVersions="0+")), "a tag needs taggedVersions"),
        (schema_text(field_text(tag=0, taggedVersions="0-1")), "taggedVersions end, and must not"),
        (schema_text(field_text(tag=0, taggedVersions="0+", versions="1+")), "has some that versions lack"),
        (schema_text(field_text(tag=1, taggedVersions="0+")), "tags are 1, not each number from 0 on once"),
        (
            schema_text(field_text(type="string", tag=0, taggedVersions="0+", nullableVersions="1+")),
            "null in some tagged versions, and not in others",
        ),
        (schema_text(field_text(mapKey=True)), "untagged fields of structures alone can be keys"),
        (schema_text(field_text(default="x")), "'x' is no default for a field of type int32"),
        (schema_text(field_text(default="2147483648")), "'2147483648' is no default"),
        (schema_text(field_text(type="bool", default="yes")), "'yes' is no default for a field of type bool"),
        (schema_text(field_text(type="uuid", default="x")), "'x' is no default for a field of type uuid"),
        (schema_text(field_text(type="bytes", default="x")), "'x' is no default for a field of type bytes"),
        (schema_text(field_text(type="string", default="null")), "the default is null, and no version lets it be"),
        (schema_text(field_text(type="[]int32", default="1")), "the default of an array can be null or nothing"),
        (schema_text(field_text(wrong=1)), "a field of SmallRecord: no such key as 'wrong'"),
    ],
)
def test_what_is_wrong_with_a_schema_is_named(text: str, what: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        parse_schema(text, "x.json")
    assert what in str(caught.value)
    assert str(caught.value).startswith("x.json: ") and "\n" not in str(caught.value)


def test_two_schemas_of_one_number_or_name_are_refused() -> None:
    one = parse_schema(schema_text(), "x.json")
    with pytest.raises(InvalidSchema, match="api_key 1 is that of SmallRecord too"):
        check_schemas([one, parse_schema(schema_text(name="OtherRecord"), "y.json")])
    with pytest.raises(InvalidSchema, match="name SmallRecord is that of SmallRecord too"):
        MetadataCodec([one, parse_schema(schema_text(apiKey=2), "y.json")])


def test_a_record_of_newer_software_is_refused_with_the_byte() -> None:
    newer = parse_schema(schema_text(field_text(), apiKey=7, validVersions="0-2", name="FenceBrokerRecord"), "x.json")
    data = MetadataCodec([newer]).encode(MetadataRecord("FenceBrokerRecord", 2, {"Id": 1}))
    with pytest.raises(CorruptRecord, match="byte 1: FenceBrokerRecord of version 2, known are 0 to 1; update"):
        decode(data)
