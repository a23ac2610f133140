"""Records and codecs: nothing lost, hashes that depend on the payload and on nothing else."""

from __future__ import annotations

import struct

import cramjam
import pytest
from fencepost.traces.kafka.batches import Limits
from fencepost.traces.kafka.codecs import CodecError, decompress
from fencepost.traces.kafka.records import RecordError, hash_records, iter_records

from .encoder import CODECS, Headers, batch, raw_batch, record, varint, xerial
from .scan import kinds, scan

VALUES = [b"v%d" % i * (i % 40) for i in range(500)]
LIMITS = Limits()


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_gives_the_same_records_and_hashes(codec: int) -> None:
    plain, _ = scan(batch(0, VALUES))
    packed, problems = scan(batch(0, VALUES, codec=codec))
    assert problems == []
    assert packed[0].codec == codec
    assert packed[0].hashes(LIMITS) == plain[0].hashes(LIMITS)
    assert [r.value for r in packed[0].records(LIMITS)] == VALUES


def test_snappy_without_xerial_framing() -> None:
    payload = b"".join(record(i, b"k", b"v" * i) for i in range(50))
    data = raw_batch(0, bytes(cramjam.snappy.compress_raw(payload)), 50, attributes=2)
    found, problems = scan(data)
    assert problems == [] and len(found[0].hashes(LIMITS)[0]) == 50


def test_xerial_in_many_blocks() -> None:
    payload = b"".join(record(i, None, b"v" * 100) for i in range(300))
    found, problems = scan(raw_batch(0, xerial(payload, block=77), 300, attributes=2))
    assert problems == [] and len(found[0].hashes(LIMITS)[0]) == 300


def one_hash(key: bytes | None, value: bytes | None, headers: Headers = (), delta: int = 0, time: int = 0) -> bytes:
    return hash_records(record(delta, key, value, headers, time), 1, 100)[1][0]


def test_hash_covers_key_value_and_headers() -> None:
    payloads: list[tuple[bytes | None, bytes | None, Headers]] = [
        (None, None, ()),
        (b"", None, ()),
        (None, b"", ()),
        (b"", b"", ()),
        (b"a", b"b", ()),
        (b"ab", b"", ()),
        (b"", b"ab", ()),
        (b"a", b"b", ((b"h", None),)),
        (b"a", b"b", ((b"h", b""),)),
        (b"a", b"b", ((b"h", b"1"),)),
        (b"a", b"b", ((b"h", b"1"), (b"h", b"1"))),
    ]
    assert len({one_hash(*payload) for payload in payloads}) == len(payloads)


def test_hash_leaves_out_offset_and_timestamp() -> None:
    assert one_hash(b"k", b"v") == one_hash(b"k", b"v", delta=99, time=123456789)


def test_hash_is_the_same_on_every_machine() -> None:
    assert one_hash(b"key", b"value", ((b"h", None),)).hex() == "be47b83b9c067175"


def test_multi_byte_varints() -> None:
    payload = record(1 << 20, b"k" * 200, b"v" * 70_000, ((b"h" * 300, b"w" * 300),), -(1 << 40))
    deltas, hashes = hash_records(payload, 1, 1 << 21)
    assert deltas == [1 << 20] and len(hashes) == 1
    (only,) = iter_records(payload, 1, 5, 1 << 41)
    assert (only.offset, only.timestamp) == (5 + (1 << 20), (1 << 41) - (1 << 40))
    assert only.headers == ((b"h" * 300, b"w" * 300),)


BROKEN = {
    "length beyond the batch": varint(100) + record(0, None, b"v")[1:],
    "negative length": varint(-5) + record(0, None, b"v")[1:],
    "negative key length": varint(6) + b"\x00" + varint(0) + varint(0) + varint(-2) + varint(-1) + varint(0),
    "key beyond the record": varint(7) + b"\x00" + varint(0) + varint(0) + varint(50) + b"k" + varint(-1) + varint(0),
    "headers beyond the record": varint(6) + b"\x00" + varint(0) + varint(0) + varint(-1) + varint(-1) + varint(9),
    "negative header count": varint(6) + b"\x00" + varint(0) + varint(0) + varint(-1) + varint(-1) + varint(-1),
    "endless varint": b"\xff" * 30,
    "cut off": record(0, None, b"value")[:-3],
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_record_is_refused_by_both_readers(name: str) -> None:
    with pytest.raises(RecordError):
        hash_records(BROKEN[name], 1, 10)
    with pytest.raises(RecordError):
        list(iter_records(BROKEN[name], 1, 0, 0))


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_broken_frame_is_a_codec_error(codec: int) -> None:
    good = CODECS[codec](b"".join(record(i, None, b"v" * 50) for i in range(100)))
    for data in (b"", b"\x00" * 20, good[:-6], good[: len(good) // 2]):
        with pytest.raises(CodecError):
            decompress(codec, data, 1 << 20)
    _, problems = scan(raw_batch(0, good[:-6], 100, attributes=codec))
    assert kinds(problems) == ["bad-compression"]
    assert problems[0].byte == 0


def test_unknown_codec_is_named() -> None:
    _, problems = scan(raw_batch(0, record(0, None, b"v"), 1, attributes=5))
    assert kinds(problems) == ["bad-compression"] and "codec 5" in problems[0].what


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_decompression_bomb_stops_at_the_limit(codec: int) -> None:
    bomb = CODECS[codec](bytes(30 << 20))
    with pytest.raises(CodecError, match="more than 1048576 bytes"):
        decompress(codec, bomb, 1 << 20)
    assert len(decompress(codec, bomb, 64 << 20)) == 30 << 20


def test_snappy_block_that_lies_about_its_size() -> None:
    block = b"\xff\xff\xff\x7f" + b"\x00" * 20
    with pytest.raises(CodecError):
        decompress(2, block, 1 << 40)
    with pytest.raises(CodecError):
        decompress(2, b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, 1 << 30) + block, 1 << 40)
