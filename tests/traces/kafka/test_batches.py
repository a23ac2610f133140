"""The segment scan: what a valid batch gives, and each fault with its byte."""

from __future__ import annotations

import struct

import pytest
from fencepost.traces.kafka.batches import Limits

from .encoder import batch, log, old_message, raw_batch, record
from .scan import kinds, scan

THREE = [batch(0, [b"a", b"b"]), batch(2, [b"c"], epoch=1), batch(3, [b"d"], epoch=2)]
ENDS = [len(b"".join(THREE[: i + 1])) for i in range(3)]


def flip(data: bytes, byte: int, bit: int = 0) -> bytes:
    return data[:byte] + bytes([data[byte] ^ (1 << bit)]) + data[byte + 1 :]


def test_all_header_fields_are_read() -> None:
    found, problems = scan(batch(40, [b"x", b"y", b"z"], epoch=7, attributes=0x38, codec=4), base=40)
    (only,) = found
    assert problems == []
    assert (only.position, only.base_offset, only.last_offset, only.leader_epoch) == (0, 40, 42, 7)
    assert (only.record_count, only.codec, only.last_offset_delta) == (3, 4, 2)
    assert (only.log_append_time, only.transactional, only.control) == (True, True, True)
    assert (only.base_timestamp, only.max_timestamp) == (1_700_000_000_000, 1_700_000_000_005)
    assert (only.producer_id, only.producer_epoch, only.base_sequence) == (-1, -1, -1)
    assert [(r.offset, r.timestamp, r.value) for r in only.records(Limits())] == [
        (40, 1_700_000_000_000, b"x"),
        (41, 1_700_000_000_001, b"y"),
        (42, 1_700_000_000_002, b"z"),
    ]


def test_clean_segment_has_no_problem() -> None:
    found, problems = scan(b"".join(THREE))
    assert [(b.position, b.base_offset, b.leader_epoch) for b in found] == [(0, 0, 0), (ENDS[0], 2, 1), (ENDS[1], 3, 2)]
    assert problems == []


@pytest.mark.parametrize("byte", [21, 30, 57, ENDS[0] - 1 - 0])
def test_flipped_bit_under_the_crc_loses_one_batch(byte: int) -> None:
    found, problems = scan(flip(b"".join(THREE), byte))
    assert [b.base_offset for b in found] == [2, 3]
    assert kinds(problems) == ["crc-mismatch"]
    assert problems[0].byte == 0


def test_flipped_crc_bit_in_the_middle() -> None:
    found, problems = scan(flip(b"".join(THREE), ENDS[0] + 17))
    assert [b.base_offset for b in found] == [0, 3]
    assert [(p.kind, p.byte) for p in problems] == [("crc-mismatch", ENDS[0])]
    assert "offset 2" in str(problems[0]) and f"byte {ENDS[0]}" in str(problems[0])


@pytest.mark.parametrize("cut", [1, 30, 61, 65])
def test_torn_tail_keeps_everything_before_it(cut: int) -> None:
    data = b"".join(THREE)[: ENDS[1] + cut]
    found, problems = scan(data)
    assert [b.base_offset for b in found] == [0, 2]
    assert [(p.kind, p.byte) for p in problems] == [("truncated-segment", ENDS[1])]
    assert "torn tail" in problems[0].mend
    _, problems = scan(data, last=False)
    assert kinds(problems) == ["truncated-segment"]
    assert "data are missing" in problems[0].mend


@pytest.mark.parametrize("zeros", [61, 62, 5000, 3 << 20])
def test_preallocated_tail_is_a_note(zeros: int) -> None:
    found, problems = scan(b"".join(THREE) + bytes(zeros))
    assert len(found) == 3
    assert [(p.kind, p.byte, p.severity) for p in problems] == [("zero-tail", ENDS[2], "note")]
    _, problems = scan(b"".join(THREE) + bytes(zeros), last=False)
    assert [(p.kind, p.severity) for p in problems] == [("truncated-segment", "error")]


def test_batch_length_beyond_the_file_with_batches_after_it() -> None:
    data = bytearray(b"".join(THREE))
    struct.pack_into(">i", data, ENDS[0] + 8, 1 << 30)
    found, problems = scan(bytes(data))
    assert [b.base_offset for b in found] == [0, 3]
    assert [(p.kind, p.byte) for p in problems] == [("bad-length", ENDS[0])]
    assert f"byte {ENDS[1]}" in problems[0].what


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_batch_length_below_a_header(length: int) -> None:
    data = bytearray(b"".join(THREE))
    struct.pack_into(">i", data, ENDS[0] + 8, length)
    found, problems = scan(bytes(data))
    assert [b.base_offset for b in found] == [0, 3]
    assert [(p.kind, p.byte) for p in problems] == [("bad-length", ENDS[0])]


def test_length_that_hides_the_next_batch_is_seen_through() -> None:
    data = bytearray(b"".join(THREE))
    struct.pack_into(">i", data, 8, ENDS[1] - 12 + 5)
    found, problems = scan(bytes(data))
    assert [b.base_offset for b in found] == [2, 3]
    assert kinds(problems) == ["crc-mismatch"]


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_unknown_magic_is_named_with_its_byte(magic: int) -> None:
    data = bytearray(b"".join(THREE))
    struct.pack_into(">b", data, ENDS[0] + 16, magic)
    found, problems = scan(bytes(data))
    assert [b.base_offset for b in found] == [0, 3]
    assert [(p.kind, p.byte) for p in problems] == [("unknown-magic", ENDS[0])]
    assert f"magic {magic}" in problems[0].what


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_one_problem_per_run(magic: int) -> None:
    old = b"".join(old_message(offset, b"value", magic) for offset in range(3))
    found, problems = scan(old + b"".join(batch(3 + n, [b"new"]) for n in range(2)))
    assert [b.base_offset for b in found] == [3, 4]
    assert [(p.kind, p.byte) for p in problems] == [("old-magic", 0)]
    assert f"messages up to offset 2 are in message format {magic}" in problems[0].what


def test_old_message_with_a_wrong_checksum_is_none() -> None:
    data = bytearray(old_message(0, b"value", 1))
    data[-1] ^= 1
    found, problems = scan(bytes(data) + batch(1, [b"new"]))
    assert [b.base_offset for b in found] == [1]
    assert kinds(problems) == ["unknown-magic"]


def test_garbage_between_batches_is_skipped() -> None:
    found, problems = scan(THREE[0] + b"\x07garbage" * 900 + THREE[1] + THREE[2])
    assert [b.base_offset for b in found] == [0, 2, 3]
    assert [p.byte for p in problems] == [ENDS[0]]


def test_offsets_that_go_back_are_left_out() -> None:
    found, problems = scan(THREE[0] + THREE[1] + batch(1, [b"again"]) + THREE[2])
    assert [b.base_offset for b in found] == [0, 2, 3]
    assert [(p.kind, p.byte) for p in problems] == [("overlapping-batch", ENDS[1])]
    assert "offsets 1 to 1 overlaps the one before it, which ends at 2" in problems[0].what


def test_offset_outside_its_segment_does_not_hide_the_rest() -> None:
    data = bytearray(b"".join(THREE))
    struct.pack_into(">q", data, ENDS[0], 1 << 62)  # no CRC covers the base offset
    found, problems = scan(bytes(data))
    assert [b.base_offset for b in found] == [0, 3]
    assert kinds(problems) == ["offset-order"]
    assert kinds(scan(THREE[0], base=100)[1]) == ["offset-order"]


def test_wrong_record_count_and_trailing_bytes() -> None:
    payload = record(0, None, b"a") + record(1, None, b"b")
    for count, extra in ((1, b""), (3, b""), (-1, b""), (2, b"\x00"), (2_000_000_000, b"")):
        found, problems = scan(raw_batch(0, payload + extra, count, last_delta=1))
        assert len(found) == 1, "the batch itself is intact"
        assert kinds(problems) == ["bad-records"], (count, extra)
    assert scan(raw_batch(0, payload, 2))[1] == []


def test_deltas_must_rise_within_the_batch() -> None:
    for deltas, last in (((0, 0), 1), ((1, 0), 1), ((0, 2), 1), ((-1, 0), 1)):
        payload = b"".join(record(delta, None, b"v") for delta in deltas)
        assert kinds(scan(raw_batch(0, payload, 2, last_delta=last))[1]) == ["bad-records"], deltas
    assert scan(batch(0, [b"a", b"b"], deltas=[3, 9]))[1] == []


def test_empty_batch_kept_by_compaction() -> None:
    found, problems = scan(raw_batch(0, b"", 0, last_delta=4) + batch(5, [b"x"]))
    assert [(b.base_offset, b.last_offset, b.record_count) for b in found] == [(0, 4, 0), (5, 5, 1)]
    assert problems == []


def test_batch_above_the_limit_is_named_and_skipped() -> None:
    big = batch(2, [b"x" * 5000])
    found, problems = scan(THREE[0] + big + THREE[2], limits=Limits(batch_bytes=4000))
    assert [b.base_offset for b in found] == [0, 3]
    assert [(p.kind, p.byte) for p in problems] == [("batch-too-large", ENDS[0])]


def test_problems_of_one_file_are_bounded() -> None:
    _, problems = scan(b"".join(flip(batch(i, [b"v"]), 30) for i in range(300)))
    assert len(problems) == 51
    assert problems[-1].kind == "more-problems" and "250 more" in problems[-1].what


def test_long_log_crosses_the_read_window() -> None:
    data = log(*[i // 1000 for i in range(20_000)])
    assert len(data) > 1 << 20
    found, problems = scan(data)
    assert problems == [] and len(found) == 20_000
    assert found[-1].last_offset == 19_999 and found[-1].leader_epoch == 19
