"""Metadata records as bytes: worked out by hand, round trips of anything that a schema lets be, and damage by byte."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from fencepost.impl.metadata import (
    CODEC,
    CorruptRecord,
    InvalidRecord,
    MetadataCodec,
    MetadataRecord,
    Struct,
    TaggedField,
    decode,
    encode,
    load_schemas,
    parse_schema,
    size_of,
)
from hypothesis import given
from hypothesis import strategies as st

from .metadata_draws import a_record

TOPIC = UUID("00112233-4455-6677-8899-aabbccddeeff")
PARTITION = {
    "PartitionId": 3,
    "TopicId": TOPIC,
    "Replicas": (1, 2, 3),
    "Isr": (1, 2),
    "RemovingReplicas": (),
    "AddingReplicas": (),
    "Leader": 1,
    "LeaderEpoch": 4,
}
ENDPOINT = {"Name": "in", "Host": "h", "Port": 9092, "SecurityProtocol": 0}

GOLDEN: dict[str, tuple[MetadataRecord, str]] = {
    "TopicRecord": (
        # KIP-631's own example: 1 as a varint, 0 as the version, then the topic's data. The name's length is one more
        # than it is; no tagged fields.
        MetadataRecord("TopicRecord", 0, {"Name": "logs", "TopicId": TOPIC, "Deleting": False}),
        "01 00 05 6c6f6773 00112233445566778899aabbccddeeff 00 00",
    ),
    "PartitionRecord": (
        # Arrays: three replicas are 04, two in the ISR 03, none 01.
        MetadataRecord("PartitionRecord", 0, PARTITION),
        (
            "02 00 00000003 00112233445566778899aabbccddeeff 04 00000001 00000002 00000003 03 00000001 00000002 01 01"
            "00000001 00000004 00"
        ),
    ),
    "PartitionRecord 1": (
        MetadataRecord("PartitionRecord", 1, {**PARTITION, "PartitionEpoch": 258}),
        (
            "02 01 00000003 00112233445566778899aabbccddeeff 04 00000001 00000002 00000003 03 00000001 00000002 01 01"
            "00000001 00000004 00000102 00"
        ),
    ),
    "BrokerRecord": (
        # One endpoint is 02, with tagged fields of its own, none; a null rack is 00.
        MetadataRecord("BrokerRecord", 0, {"BrokerId": 7, "BrokerEpoch": 9, "EndPoints": (ENDPOINT,), "Rack": None}),
        "00 00 00000007 0000000000000009 02 03 696e 02 68 2384 0000 00 00 00",
    ),
    "BrokerRecord 1": (
        # Port 50000 does not fit the page's int16. A broker registers fenced, and not in controlled shutdown.
        MetadataRecord(
            "BrokerRecord",
            1,
            {
                "BrokerId": 7,
                "BrokerEpoch": -1,
                "EndPoints": ({**ENDPOINT, "Port": 50000},),
                "Rack": "r",
                "IncarnationId": TOPIC,
            },
        ),
        "00 01 00000007 ffffffffffffffff 02 03 696e 02 68 c350 0000 00 02 72 00112233445566778899aabbccddeeff 01 00 00",
    ),
    "ConfigRecord": (
        MetadataRecord("ConfigRecord", 0, {"ResourceType": 2, "ResourceName": "t", "Name": "ä", "Value": ""}),
        "03 00 02 02 74 03 c3a4 01 00",
    ),
    "ConfigRecord 1": (
        MetadataRecord("ConfigRecord", 1, {"ResourceType": -1, "ResourceName": "", "Name": "n", "Value": None}),
        "03 01 ff 01 02 6e 00 00",
    ),
    "IsrChangeRecord": (
        # KIP-630 counts 40 bytes: 4, 16, 8 for two members, 4, 4, and 2 and 2 of type and version, which are 1 and 1.
        # Where it counts none there are one byte of the array's length and one of no tagged fields.
        MetadataRecord(
            "IsrChangeRecord",
            0,
            {"PartitionId": 3, "TopicId": TOPIC, "Isr": (1, 2), "Leader": -1, "LeaderEpoch": 4},
        ),
        "04 00 00000003 00112233445566778899aabbccddeeff 03 00000001 00000002 ffffffff 00000004 00",
    ),
    "UnregisterBrokerRecord": (
        MetadataRecord("UnregisterBrokerRecord", 0, {"BrokerId": 7, "BrokerEpoch": 9}),
        "05 00 00000007 0000000000000009 00",
    ),
    "FenceBrokerRecord": (
        # KIP-630 counts 8 bytes: 4, 2 and 2.
        MetadataRecord("FenceBrokerRecord", 0, {"Id": 7}),
        "07 00 00000007 00",
    ),
    "FenceBrokerRecord 1": (
        MetadataRecord("FenceBrokerRecord", 1, {"Id": 7, "Epoch": 9}),
        "07 01 00000007 0000000000000009 00",
    ),
    "UnfenceBrokerRecord 1": (
        # A tagged field of newer software, tag 5 of 2 bytes, and tag 300, which takes 2 bytes itself.
        MetadataRecord(
            "UnfenceBrokerRecord",
            1,
            {"Id": 7, "Epoch": 9},
            (TaggedField(5, b"\xab\xcd"), TaggedField(300, b"")),
        ),
        "08 01 00000007 0000000000000009 02 05 02 abcd ac02 00",
    ),
    "RemoveTopicRecord": (
        MetadataRecord("RemoveTopicRecord", 0, {"TopicId": TOPIC}),
        "09 00 00112233445566778899aabbccddeeff 00",
    ),
    "FeatureLevelRecord": (
        MetadataRecord("FeatureLevelRecord", 0, {"Name": "metadata.format", "FeatureLevel": 2}),
        "0c 00 10 6d657461646174612e666f726d6174 0002 00",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes(name: str) -> None:
    record, text = GOLDEN[name]
    data = bytes.fromhex(text)
    assert encode(record) == data
    assert size_of(record) == len(data)
    read = decode(data)
    assert (read.type, read.version, read.unknown) == (record.type, record.version, record.unknown)
    expected = {key: plain(value) for key, value in record.fields.items()}
    given_back = {key: plain(value) for key, value in read.fields.items()}
    assert {key: given_back[key] for key in expected} == expected
    assert encode(read) == data


def test_golden_bytes_of_every_type() -> None:
    assert {record.type for record, _ in GOLDEN.values()} | {"UnfenceBrokerRecord"} == set(CODEC.schemas)


def plain(value: Any) -> Any:
    """Structures as their fields."""
    if isinstance(value, tuple) and not isinstance(value, Struct):
        return tuple(plain(each) for each in value)
    return dict(value.fields) if isinstance(value, Struct) else value


def test_what_was_left_out_has_its_default() -> None:
    record, _ = GOLDEN["BrokerRecord 1"]
    read = decode(encode(record))
    assert (read.fields["Fenced"], read.fields["InControlledShutdown"]) == (True, False)
    with pytest.raises(InvalidRecord, match=r"^BrokerRecord 1.Rack: it is missing, and has no default"):
        encode(record._replace(fields={key: value for key, value in record.fields.items() if key != "Rack"}))


def test_lists_and_mappings_are_written_as_tuples_and_structures_are() -> None:
    record, _ = GOLDEN["BrokerRecord"]
    listed = record._replace(fields={**record.fields, "EndPoints": [Struct(ENDPOINT)]})
    assert encode(listed) == encode(record)
    record, _ = GOLDEN["PartitionRecord"]
    assert encode(record._replace(fields={**record.fields, "Isr": [1, 2]})) == encode(record)


@given(st.data())
def test_round_trip(data: st.DataObject) -> None:
    record = a_record(data.draw, load_schemas())
    written = encode(record)
    assert decode(written) == record
    assert decode(written, at=17) == record


@given(st.data())
def test_no_part_of_a_record_is_one(data: st.DataObject) -> None:
    """Cut anywhere, or with anything behind it: the error's byte is within what was given."""
    written = encode(a_record(data.draw, load_schemas()))
    cut = written[: data.draw(st.integers(0, len(written) - 1))]
    with pytest.raises(CorruptRecord) as caught:
        decode(cut, at=1000)
    assert 1000 <= caught.value.byte <= 1000 + len(cut)
    with pytest.raises(CorruptRecord, match="bytes are left after") as caught:
        decode(written + b"\0")
    assert caught.value.byte == len(written)


@given(st.data())
def test_whatever_bytes_come_there_is_a_record_or_the_one_error(data: st.DataObject) -> None:
    """A damaged record is refused, or it is another record, which reads back as itself."""
    written = bytearray(encode(a_record(data.draw, load_schemas())))
    for _ in range(data.draw(st.integers(1, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    byte = 0
    try:
        record = decode(bytes(written))
    except CorruptRecord as error:
        byte = error.byte
    else:
        assert decode(encode(record)) == record
    assert 0 <= byte <= len(written)


ISR = bytes.fromhex(GOLDEN["IsrChangeRecord"][1])
"""Type and version, 4 of the partition, 16 of the topic: the ISR's length is at byte 22, its end at 31; 31 to 38 are
the leader and its epoch, and 39 is the number of tagged fields."""
CONFIG = bytes.fromhex(GOLDEN["ConfigRecord"][1])
UNFENCE = bytes.fromhex(GOLDEN["UnfenceBrokerRecord 1"][1])
BROKER = bytes.fromhex(GOLDEN["BrokerRecord"][1])


def patched(data: bytes, at: int, text: str, instead_of: int = 1) -> bytes:
    """The bytes with others in place of ``instead_of`` of them."""
    return data[:at] + bytes.fromhex(text) + data[at + instead_of :]


DAMAGED: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 0, "ends inside the record type"),
    "no version": (b"\x04", 1, "ends inside the record version"),
    "type without an end": (b"\xff" * 9, 0, "record type: a varint of more than 5 bytes"),
    "unknown type": (patched(ISR, 0, "3f"), 0, "record type 63 is not known"),
    "great type": (patched(ISR, 0, "ffffffff07"), 0, "record type 2147483647 is not known"),
    "unknown version": (patched(ISR, 1, "02"), 1, "IsrChangeRecord of version 2, known are 0 to 1"),
    "cut in a number": (ISR[:5], 2, "PartitionId: the record ends inside it"),
    "cut behind a number": (ISR[:6], 6, "TopicId: the record ends inside it"),
    "cut in an id": (ISR[:21], 6, "TopicId: the record ends inside it"),
    "cut before an array": (ISR[:22], 22, "Isr: the record ends inside it"),
    "cut in an array": (ISR[:25], 22, "Isr: the record ends inside it"),
    "cut in a later number": (ISR[:37], 35, "LeaderEpoch: the record ends inside it"),
    "cut before the tags": (ISR[:39], 39, "tagged fields: the record ends inside it"),
    "trailing": (ISR + b"\0\0", 40, "2 bytes are left after a IsrChangeRecord of version 0"),
    "null array": (patched(ISR, 22, "00"), 22, "Isr: an array is null"),
    "long array": (patched(ISR, 22, "ff01"), 22, "Isr: an array of 254 items of 4 bytes where 17 are left"),
    "array of 2^31": (patched(ISR[:30], 22, "8080808008"), 22, "Isr: an array of 2147483647 items"),
    "array's length without an end": (patched(ISR, 22, "80808080808000"), 22, "Isr: a varint of more than 5 bytes"),
    "null string": (patched(CONFIG, 8, "00"), 8, "Value: a string is null"),
    "long string": (patched(CONFIG, 3, "7f"), 3, "ResourceName: a string of 126 bytes where 6 are left"),
    "string of 2^31": (patched(CONFIG, 3, "ffffffff07"), 3, "ResourceName: a string of 2147483646 bytes"),
    "no UTF-8": (patched(CONFIG, 7, "28"), 6, "Name: a string that is not UTF-8"),
    "no UTF-8 in the midst": (patched(CONFIG, 5, "03 6180", 3), 7, "Name: a string that is not UTF-8"),
    "no UTF-8 in a long string": (patched(CONFIG, 8, "8101" + "61" * 100 + "ff" + "61" * 27), 110, "Value: a string"),
    "structures of 2^31": (
        patched(BROKER, 14, "ffffffff07"),
        14,
        "EndPoints: an array of 2147483646 items of at least",
    ),
    "cut before a structure's least": (BROKER[:21], 14, "EndPoints: an array of 1 items of at least 7 bytes where 6"),
    "cut in a structure": (patched(BROKER, 15, "07" + "6e" * 6, 3)[:25], 24, "Port: the record ends inside it"),
    "string in a structure": (patched(BROKER, 15, "7e"), 15, "EndPoints.Name: a string of 125 bytes"),
    "tags of 2^31": (patched(ISR, 39, "ffffffff07"), 39, "tagged fields: 2147483647 tagged fields in 0 bytes"),
    "tag twice": (patched(UNFENCE, 19, "05", 2), 19, "tagged fields: tag 5 twice"),
    "tags out of order": (patched(UNFENCE, 19, "04", 2), 19, "tagged fields: tag 4 after tag 5"),
    "tag too long": (patched(UNFENCE, 16, "7f"), 16, "tagged fields: tag 5 of 127 bytes where 5 are left"),
    "tag's size without an end": (patched(UNFENCE, 16, "ff" * 6), 16, "tagged fields: a varint of more than 5 bytes"),
    "tag beyond an int32": (patched(UNFENCE, 15, "ffffffff0f"), 15, "tagged fields: tag 4294967295 after tag -1"),
    "one tag too many": (patched(UNFENCE, 14, "03"), 22, "tagged fields: the record ends inside it"),
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("at", [0, 4096])
def test_damage_is_told_by_its_byte(name: str, at: int) -> None:
    data, byte, what = DAMAGED[name]
    with pytest.raises(CorruptRecord) as caught:
        decode(data, at=at)
    assert what in caught.value.what
    assert caught.value.byte == byte + at
    assert str(caught.value).startswith(f"metadata record, byte {byte + at}: ") and "\n" not in str(caught.value)


def test_what_was_damaged_is_right_without_the_damage() -> None:
    for data in (ISR, CONFIG, UNFENCE, BROKER):
        assert encode(decode(data)) == data


def test_a_claim_is_refused_before_anything_is_made_of_it() -> None:
    """An array of 2^31 - 1 items would be 8 GiB; what is refused takes no more than the error does."""
    import tracemalloc

    data = patched(ISR[:30], 22, "8080808008")
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecord):
            decode(data)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


MISFITS: dict[str, tuple[str, Mapping[str, Any], str]] = {
    "too great": ("IsrChangeRecord", {"Leader": 1 << 31}, "IsrChangeRecord 0.Leader: 2147483648 is no int32"),
    "too small": ("ConfigRecord", {"ResourceType": -129}, "ConfigRecord 0.ResourceType: -129 is no int8"),
    "no number": ("IsrChangeRecord", {"Leader": "1"}, "IsrChangeRecord 0.Leader: '1' is no int32"),
    "null number": ("IsrChangeRecord", {"Leader": None}, "IsrChangeRecord 0.Leader: None is no int32"),
    "item": ("IsrChangeRecord", {"Isr": (1, "2")}, "IsrChangeRecord 0.Isr[1]: '2' is no int32"),
    "set": ("IsrChangeRecord", {"Isr": {1, 2}}, "IsrChangeRecord 0.Isr: {1, 2} is no tuple"),
    "bytes for numbers": ("IsrChangeRecord", {"Isr": b"12"}, "IsrChangeRecord 0.Isr: b'12' is no tuple"),
    "null array": ("IsrChangeRecord", {"Isr": None}, "IsrChangeRecord 0.Isr: None is no tuple"),
    "id": ("IsrChangeRecord", {"TopicId": TOPIC.bytes}, "IsrChangeRecord 0.TopicId: b'"),
    "null string": ("ConfigRecord", {"Value": None}, "ConfigRecord 0.Value: None is no string"),
    "long string": ("ConfigRecord", {"Value": "x" * 32768}, "ConfigRecord 0.Value: 'xxx"),
    "surrogate": ("ConfigRecord", {"Value": "\ud800"}, r"ConfigRecord 0.Value: '\ud800' is no string"),
    "no boolean at all": ("TopicRecord", {"Deleting": {}}, "TopicRecord 0.Deleting: {} is no bool"),
    "boolean": ("TopicRecord", {"Deleting": 2}, "TopicRecord 0.Deleting: 2 is no bool"),
    "structure": (
        "BrokerRecord",
        {"EndPoints": ({**ENDPOINT, "Port": 65536},)},
        "BrokerRecord 0.EndPoints[0].Port: 65536 is no uint16",
    ),
    "missing in a structure": (
        "BrokerRecord",
        {"EndPoints": ({"Name": "in"},)},
        "BrokerRecord 0.EndPoints[0].Host: it is missing",
    ),
    "newer field": ("IsrChangeRecord", {"PartitionEpoch": 1}, "PartitionEpoch: version 0 has no such field"),
    "no field": ("IsrChangeRecord", {"Epoch": 1}, "IsrChangeRecord 0.Epoch: there is no such field"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_named(name: str) -> None:
    record, (_, change, what) = GOLDEN[MISFITS[name][0]][0], MISFITS[name]
    encode(record)
    with pytest.raises(InvalidRecord) as caught:
        encode(record._replace(fields={**record.fields, **change}))
    assert what in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("unknown", "what"),
    [
        ((TaggedField(3, b""), TaggedField(3, b"")), "unknown tag 3 stands twice"),
        ((TaggedField(-1, b""),), "-1 with bytes is no tagged field"),
        (((3, "x"),), "3 with str is no tagged field"),
        ((3,), "unknown tagged fields are pairs of a tag and bytes"),
    ],
)
def test_tagged_fields_that_cannot_be_written(unknown: Any, what: str) -> None:
    with pytest.raises(InvalidRecord, match=what):
        encode(GOLDEN["FenceBrokerRecord"][0]._replace(unknown=unknown))


def test_unknown_tagged_fields_are_written_in_order_wherever_they_are() -> None:
    inner = Struct(ENDPOINT, (TaggedField(2, b"z"), TaggedField(0, b"a")))
    fields = {"BrokerId": 7, "BrokerEpoch": 9, "EndPoints": (inner,), "Rack": None}
    data = encode(MetadataRecord("BrokerRecord", 0, fields, (TaggedField(1, b"y"), TaggedField(0, b"x"))))
    assert data == bytes.fromhex(
        "00 00 00000007 0000000000000009 02 03 696e 02 68 2384 0000 02 00 01 61 02 01 7a 00 02 00 01 78 01 01 79"
    )
    read = decode(data)
    assert read.unknown == (TaggedField(0, b"x"), TaggedField(1, b"y"))
    assert read.fields["EndPoints"][0].unknown == (TaggedField(0, b"a"), TaggedField(2, b"z"))
    assert encode(read) == data


def test_numbers_may_take_more_bytes_than_they_need() -> None:
    """As Kafka reads them."""
    assert decode(patched(ISR, 0, "848000")) == decode(ISR) == decode(patched(ISR, 1, "8000"))
    assert decode(patched(ISR, 22, "8300")) == decode(ISR)


def test_shipped_kafkas_frame() -> None:
    framed = MetadataCodec(load_schemas(), framed=True)
    for record, text in GOLDEN.values():
        data = bytes.fromhex("01" + text)
        assert framed.encode(record) == data
        assert framed.decode(data) == decode(data[1:])
    with pytest.raises(CorruptRecord, match="frame version 4, only 1 is known"):
        framed.decode(ISR)
    with pytest.raises(CorruptRecord, match="ends inside the frame version"):
        framed.decode(b"")
    assert framed.decode(patched(b"\x01" + ISR, 0, "8100")) == decode(ISR)


EVERYTHING = """
{ "apiKey": 200, "type": "metadata", "name": "EverythingRecord", "validVersions": "0-1", "flexibleVersions": "0+",
  "fields": [
  %s,
  { "name": "Inner", "type": "[]Inner", "versions": "0+", "nullableVersions": "0+", "fields": [
    { "name": "Key", "type": "string", "versions": "0+", "mapKey": true },
    { "name": "Ids", "type": "[]uuid", "versions": "0+" },
    { "name": "Deep", "type": "[]Deep", "versions": "1+", "fields": [
      { "name": "Flag", "type": "bool", "versions": "0+" } ] },
    { "name": "Note", "type": "string", "versions": "1+", "taggedVersions": "1+", "tag": 0 } ] },
  { "name": "Late", "type": "[]int32", "versions": "0+", "nullableVersions": "0+", "taggedVersions": "0+",
    "tag": 0, "default": "null" },
  { "name": "Moved", "type": "int16", "versions": "0+", "taggedVersions": "1+", "tag": 1, "default": "-2" } ] }
"""
KINDS = ["bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid", "string", "bytes"]


def everything() -> MetadataCodec:
    """A codec of all that the form can say."""
    rows = []
    for kind in KINDS:
        rows.append(f'{{ "name": "One{kind}", "type": "{kind}", "versions": "0+" }}')
        rows.append(f'{{ "name": "Many{kind}", "type": "[]{kind}", "versions": "0+" }}')
        rows.append(f'{{ "name": "Null{kind}", "type": "[]{kind}", "versions": "0+", "nullableVersions": "0+" }}')
    return MetadataCodec([parse_schema(EVERYTHING % ",\n  ".join(rows), "everything.json")])


CODEC_OF_EVERYTHING = everything()


@given(st.data())
def test_round_trip_of_all_that_a_schema_can_say(data: st.DataObject) -> None:
    record = a_record(data.draw, CODEC_OF_EVERYTHING.schemas.values())
    written = CODEC_OF_EVERYTHING.encode(record)
    read = CODEC_OF_EVERYTHING.decode(written)
    assert read == record
    cut = written[: data.draw(st.integers(0, len(written) - 1))]
    with pytest.raises(CorruptRecord) as caught:
        CODEC_OF_EVERYTHING.decode(cut)
    assert caught.value.byte <= len(cut)


def test_arrays_of_any_length() -> None:
    """Small ones are packed by a table up to 62 items, whose length takes one byte; that of 127 takes two."""
    record = GOLDEN["IsrChangeRecord"][0]
    for length in (0, 1, 61, 62, 63, 64, 126, 127, 128, 20_000):
        isr = tuple(range(length))
        data = encode(record._replace(fields={**record.fields, "Isr": isr}))
        lead = bytes([length + 1]) if length < 127 else bytes([(length + 1) & 0x7F | 0x80, (length + 1) >> 7 & 0x7F])
        assert length > 16_000 or data[22 : 22 + len(lead)] == lead
        assert struct.pack(f">{length}i", *isr) in data
        assert decode(data).fields["Isr"] == isr


def test_strings_of_any_length() -> None:
    record = GOLDEN["ConfigRecord"][0]
    for length in (0, 1, 125, 126, 127, 128, 129, 32_767):
        changed = record._replace(fields={**record.fields, "Value": "ä" * (length // 2) + "x" * (length % 2)})
        assert decode(encode(changed)) == changed
    data = encode(record._replace(fields={**record.fields, "Value": "x" * 32_767}))
    longer = patched(data, 8, "818002" + "78", 3)  # one byte more than any string may have
    with pytest.raises(CorruptRecord, match="a string of 32768 bytes, the limit is 32767"):
        decode(longer)


def test_a_tagged_field_is_left_out_where_it_has_its_default() -> None:
    schema = """{ "apiKey": 1, "type": "metadata", "name": "TaggedRecord", "validVersions": "0",
      "flexibleVersions": "0+",
      "fields": [ { "name": "Isr", "type": "[]int32", "versions": "0+", "nullableVersions": "0+",
                    "taggedVersions": "0+", "tag": 0, "default": "null" },
                  { "name": "Leader", "type": "int32", "versions": "0+", "taggedVersions": "0+", "tag": 1,
                    "default": "-2" } ] }"""
    codec = MetadataCodec([parse_schema(schema, "tagged.json")])
    assert codec.encode(MetadataRecord("TaggedRecord", 0, {})) == bytes.fromhex("01 00 00")
    assert codec.decode(bytes.fromhex("01 00 00")).fields == {"Isr": None, "Leader": -2}
    full = MetadataRecord("TaggedRecord", 0, {"Isr": [], "Leader": 1}, (TaggedField(7, b""),))
    data = bytes.fromhex("01 00 03 00 01 01 01 04 00000001 07 00")
    assert codec.encode(full) == data
    assert codec.decode(data) == full._replace(fields={"Isr": (), "Leader": 1})
    with pytest.raises(CorruptRecord, match=r"tag 1 of 5 bytes holds a value of 4") as caught:
        codec.decode(bytes.fromhex("01 00 01 01 05 0000000100"))
    assert caught.value.byte == 4
    with pytest.raises(InvalidRecord, match="unknown tag 0 is a field of the schema"):
        codec.encode(full._replace(unknown=(TaggedField(0, b""),)))
    with pytest.raises(InvalidRecord, match=r"TaggedRecord 0.Leader: '1' is no int32"):
        codec.encode(full._replace(fields={"Leader": "1"}))
