"""Record batches: round trips, old formats, and bytes that are none."""

from __future__ import annotations

import struct
import zlib

import cramjam
import pytest
from fencepost.impl.log import Codec, CorruptBatch, Record, encode_batch, read_batch, read_batches
from fencepost.impl.log.codecs import compress, decompress
from fencepost.impl.log.varint import read_uvarint, read_varint, uvarint, varint
from hypothesis import given
from hypothesis import strategies as st

LIMIT = 1 << 20

TIMES = st.integers(-1, (1 << 62))
RECORDS = st.builds(
    Record,
    st.none() | st.binary(max_size=300),
    st.none() | st.binary(max_size=20),
    TIMES,
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple),
)


@given(
    st.lists(RECORDS, min_size=1, max_size=8), st.integers(0, 1 << 40), st.integers(0, 1 << 30), st.sampled_from(Codec)
)
def test_round_trip(records: list[Record], base: int, epoch: int, codec: Codec) -> None:
    data = encode_batch(records, base_offset=base, leader_epoch=epoch, codec=codec)
    batch = read_batch(data)
    assert (batch.base_offset, batch.next_offset, batch.leader_epoch) == (base, base + len(records), epoch)
    assert (batch.magic, batch.codec, batch.record_count, batch.data) == (2, codec, len(records), data)
    assert batch.max_timestamp == max(record.timestamp for record in records)
    found = batch.records()
    assert [Record(r.value, r.key, r.timestamp, r.headers) for r in found] == records
    assert [(r.offset, r.leader_epoch) for r in found] == [(base + n, epoch) for n in range(len(records))]


@given(st.integers(0, (1 << 64) - 1), st.integers(-(1 << 63), (1 << 63) - 1))
def test_varints(unsigned: int, signed: int) -> None:
    assert read_uvarint(uvarint(unsigned), 0, 10) == (unsigned, len(uvarint(unsigned)))
    assert read_varint(varint(signed), 0, 10) == (signed, len(varint(signed)))


@given(st.sampled_from([codec for codec in Codec if codec]), st.binary(max_size=100_000), st.integers(1, 100))
def test_a_frame_of_more_than_the_limit_is_refused(codec: Codec, data: bytes, less: int) -> None:
    frame = compress(codec, data)
    assert decompress(codec, frame, len(data) + 1) == data
    if less < len(data):
        with pytest.raises(ValueError, match="more than"):
            decompress(codec, frame, len(data) - less)


@given(st.data())
def test_a_changed_byte_is_seen_but_where_no_crc_looks(data: st.DataObject) -> None:
    whole = encode_batch([Record(b"value", b"key")], base_offset=5, leader_epoch=3)
    at = data.draw(st.integers(0, len(whole) - 1))
    broken = bytearray(whole)
    broken[at] ^= data.draw(st.integers(1, 255))
    if at < 8 or 12 <= at < 16:  # base offset and leader epoch: opening a log looks at these in their order
        changed = [b for b in [bytes(broken)] if b[:1] < b"\x80"]
        assert all(read_batch(each).data != whole for each in changed)
        return
    with pytest.raises(CorruptBatch):
        list(read_batches(bytes(broken)))


@given(st.integers(0, 66))
def test_a_torn_batch_names_its_byte(kept: int) -> None:
    whole = encode_batch([Record(b"value")])
    with pytest.raises(CorruptBatch) as found:
        list(read_batches(whole + whole[: max(1, kept)]))
    assert found.value.byte == len(whole) and f"byte {len(whole)}: " in str(found.value)
    assert "\n" not in str(found.value)


def test_records_that_do_not_parse_for_all_the_right_crc() -> None:
    import google_crc32c

    whole = bytearray(encode_batch([Record(b"value")]))
    whole[61] = 0x7F  # the first record's length
    whole[17:21] = struct.pack(">I", google_crc32c.value(bytes(whole[21:])))
    with pytest.raises(CorruptBatch, match="record 0 of 1"):
        read_batch(bytes(whole)).records()


def test_no_records_make_no_batch() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_batch([])


# -- message sets of magic 0 and 1 ----------------------------------------------------------------------------------


def message(
    offset: int, value: bytes | None, key: bytes | None = None, *, magic: int = 1, attributes: int = 0, time: int = 9
) -> bytes:
    """One entry of a message set."""

    def field(data: bytes | None) -> bytes:
        return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data

    body = (
        struct.pack(">bb", magic, attributes) + (struct.pack(">q", time) if magic else b"") + field(key) + field(value)
    )
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_is_read_with_no_epoch(magic: int) -> None:
    first, second = read_batches(message(4, b"v", b"k", magic=magic) + message(5, None, magic=magic))
    (record,) = first.records()
    assert record == (4, -1, b"v", b"k", 9 if magic else -1, ())
    assert (first.leader_epoch, first.magic, second.base_offset, second.records()[0].value) == (-1, magic, 5, None)


@pytest.mark.parametrize("stamped", [False, True])
@pytest.mark.parametrize(("codec", "squeeze"), [(1, cramjam.gzip.compress), (3, cramjam.lz4.compress)])
def test_a_wrapper_of_magic_1_has_relative_offsets(codec: int, squeeze: object, stamped: bool) -> None:
    assert callable(squeeze)
    inner = b"".join(message(n, b"v%d" % n, time=n) for n in range(3))
    data = message(12, bytes(squeeze(inner)), attributes=codec | 8 * stamped, time=77)
    batch = read_batch(data)
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (10, 12, 3)
    assert [(r.offset, r.value, r.timestamp) for r in batch.records()] == [
        (10 + n, b"v%d" % n, 77 if stamped else n) for n in range(3)
    ]


def test_a_wrapper_of_magic_0_has_absolute_offsets() -> None:
    inner = message(10, b"a", magic=0) + message(11, b"b", magic=0)
    batch = read_batch(message(11, bytes(cramjam.gzip.compress(inner)), magic=0, attributes=1))
    assert [record.offset for record in batch.records()] == [10, 11]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (message(1, b"v")[:-1], "where"),
        (message(1, b"v")[:-1] + b"w", "CRC-32 of the message"),
        (message(1, b"no gzip", attributes=1), "gzip"),
        (message(1, None, attributes=1), "no value"),
        (message(1, bytes(cramjam.gzip.compress(message(5, b"x")[:20])), attributes=1), "inner message"),
        (message(0, bytes(cramjam.lz4.compress(message(0, b"x", magic=0))), magic=0, attributes=3), "lz4"),
    ],
)
def test_broken_messages(data: bytes, what: str) -> None:
    with pytest.raises(CorruptBatch, match=what):
        list(read_batches(data))
