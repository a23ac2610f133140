"""The parser against hostile bytes: no exception, no hang, no read outside the file, bounded work and memory.

Every scan here goes through ``GuardedFile``, which fails on a read or seek beyond the file's size.
"""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import google_crc32c
import pytest
from fencepost.traces.kafka.batches import Limits, SegmentScan, read_batch
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.checks import check_brokers
from fencepost.traces.kafka.codecs import CodecError, decompress
from fencepost.traces.kafka.metadata import MetadataError, decode_metadata_record
from fencepost.traces.kafka.problems import ProblemLog
from fencepost.traces.kafka.records import RecordError, hash_records, iter_records
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

from .encoder import (
    CODECS,
    batch,
    metadata_log,
    metadata_partition,
    partition,
    partition_change,
    partition_record,
    raw_batch,
    topic_record,
    write_broker,
)
from .scan import GuardedFile

if TYPE_CHECKING:
    from collections.abc import Callable

E = TypeVar("E", bound=Exception)

SEED = 20260602
LIMITS = Limits(batch_bytes=1 << 20)
VALID = b"".join(
    batch(10 * i, [b"value-%d" % j * 5 for j in range(10)], epoch=i // 3, codec=i % 5) for i in range(12)
) + metadata_log([topic_record("t"), partition_record([1, 2], [1, 2], 1), partition_change(leader=2)], base=120)
METADATA_VALUES = [topic_record("t"), partition_record([1, 2], [1], 1), partition_change(leader=2, isr=[2])]

many = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def raised(kind: type[E], call: Callable[[], object]) -> E | None:
    """The documented error that the call ended in, if any; every other one passes on and fails the test."""
    try:
        call()
    except kind as error:
        return error
    return None


def digest(data: bytes, *, last: bool = True) -> list[int]:
    """Scan and read everything; gives the base offsets that were found. Bounds the bytes read."""
    file = GuardedFile(data)
    log = ProblemLog(Path("t-0/00000000000000000000.log"))
    found: list[int] = []
    end = 0
    for item in SegmentScan(file, len(data), log, last=last, limits=LIMITS):
        assert item.position >= end and item.position + item.size <= len(data)
        assert item.base_offset >= (found[-1] + 1 if found else 0)
        end = item.position + item.size
        found.append(item.base_offset)
        read_batch(item, log, LIMITS)
    assert file.bytes_read <= 64 * len(data) + (8 << 20)
    for problem in log.result():
        assert problem.byte is None or 0 <= problem.byte < max(1, len(data))
        assert "\n" not in str(problem)
    return found


@seed(SEED)
@many
@given(st.binary(max_size=4096))
@example(b"")
@example(b"\x00" * 61)
@example(b"\x02" * 300)
@example(b"\xff" * 300)
def test_random_bytes(data: bytes) -> None:
    digest(data)
    digest(data, last=False)


def mutate(data: bytes, draw: st.DrawFn) -> bytes:
    """One to four edits: a flipped bit, a cut, an insertion, a deletion, a lying field of some header."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        if not out:
            break
        at = draw(st.integers(0, len(out) - 1))
        match draw(st.sampled_from(["flip", "cut", "insert", "delete", "length", "count", "copy"])):
            case "flip":
                out[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del out[at:]
            case "insert":
                out[at:at] = draw(st.binary(min_size=1, max_size=100))
            case "delete":
                del out[at : at + draw(st.integers(1, 200))]
            case "length":
                lie = draw(st.one_of(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-70, 70)))
                start = draw(st.sampled_from(header_positions(bytes(out))))
                if start + 12 <= len(out):
                    struct.pack_into(">i", out, start + 8, lie)
            case "count":
                # A lie with a right CRC: only the records themselves can tell.
                start = draw(st.sampled_from(header_positions(bytes(out))))
                out = relabel(out, start, draw(st.integers(-(1 << 31), (1 << 31) - 1)))
            case "copy":
                out += out[at : at + 500]
    return bytes(out)


def header_positions(data: bytes) -> list[int]:
    positions, at = [0], 0
    while at + 12 <= len(data):
        length = struct.unpack_from(">i", data, at + 8)[0]
        if length <= 0:
            break
        at += 12 + length
        positions.append(at)
    return positions


def relabel(data: bytearray, start: int, count: int) -> bytearray:
    if start + 61 > len(data):
        return data
    length = struct.unpack_from(">i", data, start + 8)[0]
    if not 49 <= length <= len(data) - start - 12:
        return data
    struct.pack_into(">i", data, start + 57, count)
    covered = bytes(data[start + 21 : start + 12 + length])
    struct.pack_into(">I", data, start + 17, google_crc32c.value(covered))
    return data


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    return mutate(VALID, draw)


def test_unmutated_segment_is_read_whole() -> None:
    assert digest(VALID) == [*range(0, 120, 10), 120, 121]


@seed(SEED)
@many
@given(mutants())
def test_mutated_segment(data: bytes) -> None:
    digest(data)


@seed(SEED)
@many
@given(st.integers(0, len(VALID) - 1), st.integers(0, 7))
def test_flipped_bit_loses_at_most_its_own_batch(byte: int, bit: int) -> None:
    data = bytearray(VALID)
    data[byte] ^= 1 << bit
    found = digest(bytes(data))
    whole = [*range(0, 120, 10), 120, 121]
    # A flip in a base offset moves a batch, and one that moves it up hides the batches it overtakes; the CRC
    # does not cover that field. Every other flip costs one batch at most.
    positions = header_positions(VALID)[:-1]
    if not any(start <= byte < start + 8 for start in positions):
        assert len(set(whole) - set(found)) <= 1 and set(found) <= set(whole)


@seed(SEED)
@many
@given(st.integers(0, len(VALID)))
def test_truncation_keeps_whole_batches(cut: int) -> None:
    positions = header_positions(VALID)
    whole = [*range(0, 120, 10), 120, 121]
    expected = [offset for offset, end in zip(whole, positions[1:], strict=True) if end <= cut]
    assert digest(VALID[:cut]) == expected


@seed(SEED)
@many
@given(st.binary(max_size=600), st.integers(-5, 700), st.integers(-5, 700))
def test_random_records(data: bytes, count: int, last_delta: int) -> None:
    for read in (lambda: hash_records(data, count, last_delta), lambda: list(iter_records(data, count, 0, 0))):
        error = raised(RecordError, read)
        assert error is None or 0 <= error.index <= max(count, 0)


@seed(SEED)
@many
@given(st.lists(st.tuples(st.none() | st.binary(max_size=50), st.none() | st.binary(max_size=200)), max_size=30))
def test_both_record_readers_agree(pairs: list[tuple[bytes | None, bytes | None]]) -> None:
    data = batch(5, [value for _, value in pairs], keys=[key for key, _ in pairs])
    payload = data[61:]
    deltas, hashes = hash_records(payload, len(pairs), max(0, len(pairs) - 1))
    records = list(iter_records(payload, len(pairs), 5, 0))
    assert [r.offset - 5 for r in records] == deltas
    assert [(r.key, r.value) for r in records] == pairs
    assert (len(set(hashes)) == len(set(pairs))) and len(hashes) == len(pairs)


@seed(SEED)
@many
@given(st.integers(1, 7), st.binary(max_size=400), st.data())
def test_random_frames(codec: int, noise: bytes, data: st.DataObject) -> None:
    frame = noise
    if codec in CODECS:
        good = bytearray(CODECS[codec](b"payload " * 200))
        for _ in range(data.draw(st.integers(0, 3))):
            good[data.draw(st.integers(0, len(good) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        frame = data.draw(st.sampled_from([noise, bytes(good), bytes(good[: len(good) // 2])]))
    found: list[bytes] = []
    error = raised(CodecError, lambda: found.append(decompress(codec, frame, 1 << 16)))
    assert str(error) if error else len(found[0]) <= 1 << 16


@seed(SEED)
@many
@given(st.one_of(st.binary(max_size=200), st.sampled_from(METADATA_VALUES)), st.data())
def test_random_metadata_records(value: bytes, data: st.DataObject) -> None:
    out = bytearray(value)
    if out:
        out[data.draw(st.integers(0, len(out) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    error = raised(MetadataError, lambda: decode_metadata_record(bytes(out)))
    assert error is None or str(error)


FILES = [
    "meta.properties",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    f"t-0/{0:020d}.log",
    "t-0/leader-epoch-checkpoint",
    "t-0/partition.metadata",
    f"__cluster_metadata-0/{0:020d}.log",
    "__cluster_metadata-0/leader-epoch-checkpoint",
    "__cluster_metadata-0/quorum-state",
]


@seed(SEED)
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whole_directory_with_mutated_files(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever the files hold, the directory is read and every check gives a verdict."""
    root = tmp_path_factory.mktemp("broker") / "b"
    metadata = metadata_partition(METADATA_VALUES)
    quorum: dict[str, object] = {"leaderId": 1, "leaderEpoch": 1, "votedId": 1, "data_version": 1}
    write_broker(root, 1, {"t-0": partition(0, 0, 1), "__cluster_metadata-0": metadata}, quorum=quorum)
    for name in data.draw(st.lists(st.sampled_from(FILES), min_size=1, max_size=3, unique=True)):
        content = (root / name).read_bytes()
        if data.draw(st.booleans()):
            draw = data.draw
            content = mutate(content, draw)  # type: ignore[arg-type]
        else:
            content = data.draw(
                st.binary(max_size=200) | st.text(alphabet="0123456789 \n-t", max_size=60).map(str.encode)
            )
        (root / name).write_bytes(content)
    report = check_brokers([read_broker(root, limits=LIMITS)])
    assert {check.verdict for check in report.checks} <= {"holds", "violated", "unknown"}
    for problem in report.problems:
        assert "\n" not in str(problem)
    report.to_json()


def test_decompression_bombs_cost_no_more_than_the_limit() -> None:
    bombs = b"".join(
        raw_batch(i, CODECS[codec](bytes(40 << 20)), 1, attributes=codec) for i, codec in enumerate((1, 2, 3, 4))
    )
    tracemalloc.start()
    digest(bombs)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # One batch raw, its copy, the output buffer: the limit is 1 MiB; snappy's bomb is 2 MB on disk.
    assert peak < len(bombs) * 2 + 8 * LIMITS.batch_bytes


def test_many_small_faults_do_not_cost_a_window_each() -> None:
    good = batch(0, [b"v"])
    pieces = bytearray()
    for i in range(3000):
        pieces += batch(i, [b"v"]) + b"\x00" * (1 + i % 3)
    data = bytes(pieces)
    file = GuardedFile(data)
    log = ProblemLog(Path("x.log"))
    found = sum(1 for _ in SegmentScan(file, len(data), log, limits=LIMITS))
    assert found == 3000 and len(good) > 61
    assert file.bytes_read < 64 * len(data)


def test_false_headers_can_not_make_the_search_quadratic() -> None:
    # Every 20 bytes a header that claims the whole rest of the file, and has no right CRC.
    size = 200_000
    unit = struct.pack(">qiib", 5, 0, 0, 2) + b"\x00\x00\x00"
    data = bytearray(b"\xff" * 61 + unit * (size // 20))
    for at in range(61, len(data) - 61, 20):
        struct.pack_into(">i", data, at + 8, len(data) - at - 12)
    file = GuardedFile(bytes(data))
    log = ProblemLog(Path("x.log"))
    assert list(SegmentScan(file, len(data), log, limits=LIMITS)) == []
    assert file.bytes_read < 64 * len(data) + (8 << 20)
