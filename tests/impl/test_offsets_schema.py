"""Keys and values of the offsets log: Kafka's bytes, every version, and what is no key or value."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from fencepost.impl.offsets import (
    EPOCH_VERSION,
    PLAIN_VERSION,
    CommittedOffset,
    OffsetKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from fencepost.impl.wire.messages import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

KEY = OffsetKey("billing", TopicPartition("orders", 3))
KEY_BYTES = bytes.fromhex("0001 0007") + b"billing" + bytes.fromhex("0006") + b"orders" + bytes.fromhex("00000003")
OFFSET = bytes.fromhex("000000000000002a")
METADATA = bytes.fromhex("0002") + b"hi"
COMMITTED_AT = bytes.fromhex("00000173eed80fd0")
TIMESTAMP = 0x173EED80FD0

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
EPOCHS = st.integers(-1, 2**31 - 1)


def test_key_has_kafkas_bytes() -> None:
    assert encode_key(KEY) == KEY_BYTES
    assert decode_key(KEY_BYTES) == KEY


def test_key_of_version_0_is_the_same() -> None:
    assert decode_key(b"\0\0" + KEY_BYTES[2:]) == KEY


@pytest.mark.parametrize("version", [2, 3, 11])
def test_keys_of_groups_and_members_are_none(version: int) -> None:
    assert decode_key(version.to_bytes(2, "big") + b"\0\7billing") is None


def test_version_3_has_the_bytes_of_the_kips_schema() -> None:
    value = CommittedOffset(42, 5, metadata="hi", commit_timestamp=TIMESTAMP)
    data = bytes.fromhex("0003") + OFFSET + bytes.fromhex("00000005") + METADATA + COMMITTED_AT
    assert encode_value(value) == data
    assert decode_value(data) == value
    assert decode_value(data).serving_epoch == -1


def test_serving_epoch_stands_behind_kafkas_fields() -> None:
    value = CommittedOffset(42, 5, 7, "hi", TIMESTAMP)
    plain = encode_value(CommittedOffset(42, 5, -1, "hi", TIMESTAMP))
    assert encode_value(value) == plain + bytes.fromhex("00000007")
    assert decode_value(encode_value(value)) == value


@pytest.mark.parametrize(
    ("version", "rest"), [(0, COMMITTED_AT), (1, COMMITTED_AT + bytes.fromhex("00000173eed8ffff")), (2, COMMITTED_AT)]
)
def test_older_versions_have_no_epoch(version: int, rest: bytes) -> None:
    data = version.to_bytes(2, "big") + OFFSET + METADATA + rest
    assert decode_value(data) == CommittedOffset(42, -1, -1, "hi", TIMESTAMP)


def test_version_2_is_written_without_epochs() -> None:
    value = CommittedOffset(42, 5, 7, "hi", TIMESTAMP)
    assert encode_value(value, PLAIN_VERSION) == bytes.fromhex("0002") + OFFSET + METADATA + COMMITTED_AT


FOURTH = bytes.fromhex("0004") + OFFSET + bytes.fromhex("00000005 03") + b"hi" + COMMITTED_AT
TOPIC_ID = UUID("0f8c7a4e-52d1-4b6f-9f3e-8a3a2c1d0b5e")


@pytest.mark.parametrize(
    ("tagged", "topic_id"),
    [
        (b"\0", None),
        (b"\1\0\x10" + TOPIC_ID.bytes, TOPIC_ID),
        (b"\1\0\x10" + bytes(16), None),
        (b"\2\0\x10" + TOPIC_ID.bytes + b"\7\2ab", TOPIC_ID),
        (b"\1\x81\1\0", None),
    ],
    ids=["none", "topic id", "the zero id", "another behind", "another alone"],
)
def test_version_4_is_read(tagged: bytes, topic_id: UUID | None) -> None:
    assert decode_value(FOURTH + tagged) == CommittedOffset(42, 5, -1, "hi", TIMESTAMP, topic_id)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (FOURTH, "varint"),
        (FOURTH + b"\1\0\x0f" + bytes(15), "a topic id of 15 bytes"),
        (FOURTH + b"\1\0\x10" + bytes(15), "a tagged field of 16 bytes"),
        (FOURTH + b"\2\1\0\1\0", "the tagged field 1 at byte .* does not ascend"),
        (FOURTH + b"\0\0", "1 bytes are left behind the last field"),
        (bytes.fromhex("0004") + OFFSET + bytes.fromhex("00000005 00") + COMMITTED_AT, "a string of -1 bytes"),
        (bytes.fromhex("0005") + FOURTH[2:] + b"\0", "a value of version 5, known are 0 to 4"),
    ],
)
def test_what_is_no_value_of_version_4_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode_value(data)


@pytest.mark.parametrize("version", [0, 1, 4])
def test_no_other_version_is_written(version: int) -> None:
    with pytest.raises(ValueError, match=f"version {version} is not written"):
        encode_value(CommittedOffset(1), version)


@given(TEXT, TEXT, st.integers(0, 2**31 - 1))
def test_keys_come_back(group: str, topic: str, partition: int) -> None:
    key = OffsetKey(group, TopicPartition(topic, partition))
    assert decode_key(encode_key(key)) == key


@given(st.integers(0, 2**63 - 1), EPOCHS, EPOCHS, TEXT, st.integers(-1, 2**63 - 1))
def test_values_come_back(offset: int, epoch: int, serving: int, metadata: str, timestamp: int) -> None:
    value = CommittedOffset(offset, epoch, serving, metadata, timestamp)
    assert decode_value(encode_value(value)) == value
    assert decode_value(encode_value(value, PLAIN_VERSION)) == CommittedOffset(offset, -1, -1, metadata, timestamp)


@given(st.integers(0, len(KEY_BYTES) - 1), st.integers(0, 255))
def test_a_key_with_another_byte_is_refused_or_another_key(position: int, byte: int) -> None:
    data = KEY_BYTES[:position] + bytes([byte]) + KEY_BYTES[position + 1 :]
    try:
        key = decode_key(data)
    except ValueError:
        return
    if key is not None:
        assert encode_key(key)[2:] == data[2:]


@given(st.binary(max_size=40), st.integers(0, 4))
def test_bytes_are_a_value_or_refused(data: bytes, version: int) -> None:
    try:
        value = decode_value(version.to_bytes(2, "big") + data)
    except ValueError:
        return
    assert decode_value(encode_value(value)) == replace(value, topic_id=None)


@pytest.mark.parametrize("cut", range(1, len(KEY_BYTES)))
def test_a_key_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(ValueError, match=r"left|string"):
        decode_key(KEY_BYTES[:-cut])


WHOLE = encode_value(CommittedOffset(42, 5, 7, "hi", TIMESTAMP))


@pytest.mark.parametrize("cut", [cut for cut in range(1, len(WHOLE)) if cut != 4])
def test_a_value_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(ValueError, match=r"left|string"):
        decode_value(WHOLE[:-cut])


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (WHOLE + b"\0", "1 bytes are left behind"),
        (bytes.fromhex("0002") + OFFSET + METADATA + COMMITTED_AT + bytes(4), "4 bytes are left behind"),
        (bytes.fromhex("0005") + WHOLE[2:], "version 5"),
        (bytes.fromhex("ffff") + WHOLE[2:], "version -1"),
        (encode_value(CommittedOffset(-2, 1)), "offset -2"),
        (encode_value(CommittedOffset(1, -2)), "leader epoch -2"),
        (encode_value(CommittedOffset(1, 1, -2)), "serving epoch -2"),
        (bytes.fromhex("0000") + OFFSET + bytes.fromhex("ffff") + COMMITTED_AT, "string of -1 bytes"),
        (bytes.fromhex("0000") + OFFSET + bytes.fromhex("0001ff") + COMMITTED_AT, "utf-8"),
    ],
)
def test_what_is_no_value_is_named(data: bytes, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        decode_value(data)


def test_strings_that_no_field_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="limit is 32767"):
        encode_key(OffsetKey("g" * 32768, TopicPartition("t", 0)))
    with pytest.raises(ValueError, match="surrogates"):
        encode_value(CommittedOffset(1, metadata="\ud800"))
    assert len(encode_key(OffsetKey("g" * 32767, TopicPartition("t", 0)))) == 2 + 2 + 32767 + 2 + 1 + 4


def test_current_version_is_the_kips() -> None:
    assert EPOCH_VERSION == 3
    assert int.from_bytes(encode_value(CommittedOffset(1))[:2], "big") == 3
