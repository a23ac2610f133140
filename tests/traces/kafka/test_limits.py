"""What reading may cost: bombs, too many records, holes, files larger than Kafka's can be. Each ends soon, by name."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from fencepost.conformance.check import files as check_files
from fencepost.traces.kafka import image
from fencepost.traces.kafka.batches import BudgetSpent, FileWindow, Limits, SegmentScan
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.partition import read_partition
from fencepost.traces.kafka.problems import ProblemLog

from .encoder import (
    CODECS,
    Partition,
    batch,
    log,
    metadata_partition,
    nullable,
    partition,
    raw_batch,
    record,
    topic_record,
    varint,
    write_broker,
)

if TYPE_CHECKING:
    from pathlib import Path

METADATA = "__cluster_metadata-0"
TERABYTE = 1 << 40
CPU_SECONDS, RESIDENT = 30, 900 << 20


def many_headers(count: int) -> bytes:
    """A batch of one record with so many empty headers: two bytes each, and nearly none when compressed."""
    body = b"\x00" + varint(0) + varint(0) + nullable(None) + nullable(None) + varint(count) + bytes(2 * count)
    return raw_batch(0, CODECS[4](varint(len(body)) + body), 1, attributes=4)


MEASURED = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))
from fencepost.conformance.cli import main
code = main(sys.argv[1:])
# Not ru_maxrss, which begins with what the process had before it was this program: that of whoever started it.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print("peak", int(peak) << 10, file=sys.stderr)
sys.exit(code)
"""


def check(*arguments: object) -> tuple[int, str, int]:
    """``fencepost check`` with little processor time: exit code, output and errors, peak of resident bytes."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "check", *map(str, arguments)], capture_output=True, text=True, timeout=300
    )
    lines = done.stderr.splitlines()
    assert lines and lines[-1].startswith("peak "), done.stderr
    return done.returncode, "\n".join([*done.stdout.splitlines(), *lines[:-1]]), int(lines[-1].split()[1])


@pytest.mark.parametrize("folder", ["t-0", METADATA])
def test_a_record_of_sixty_million_headers(tmp_path: Path, folder: str) -> None:
    data = many_headers(60_000_000)
    assert len(data) < 10_000
    files = Partition({0: data}, [(0, 0)], 1, topic_id=None)
    root = write_broker(tmp_path / "b", 1, {folder: files})
    code, said, peak = check(root, "--report", tmp_path / "report")
    assert code == 3 and peak < RESIDENT
    assert f"{folder}/{0:020d}.log, byte 0: record 0 of 1 in the batch at offset 0: 60,000,000" in said


def test_records_and_headers_of_a_batch(tmp_path: Path) -> None:
    headers = tuple((b"h", b"v") for _ in range(3))
    write_broker(tmp_path / "b", 1, {"t-0": Partition({0: batch(0, [b"a", b"b"], headers=headers)}, [(0, 0)], 2)})
    for most, kinds in ((8, []), (7, ["batch-too-large"]), (1, ["batch-too-large"])):
        files = read_partition(tmp_path / "b" / "t-0", "t", 0, limits=Limits(batch_items=most))
        assert [problem.kind for problem in files.problems] == kinds
        assert files.damaged == bool(kinds), "what is not read proves nothing"
    assert files.problems[0].byte == 0 and len(files.records) == 0


def test_records_of_all_directories_together(tmp_path: Path) -> None:
    limits = Limits(items=5)
    roots = [write_broker(tmp_path / name, n, {"t-0": partition(0, 0, 0)}) for n, name in enumerate("ab", start=1)]
    assert len(read_broker(roots[0], limits=limits).partitions["t", 0].records) == 3
    with pytest.raises(BudgetSpent, match="more than 5 records and headers so far") as caught:
        read_broker(roots[1], limits=limits)
    assert caught.value.where == f"{roots[1] / 't-0' / f'{0:020d}.log'}, byte {len(log(0, 0))}"
    enough = Limits(items=6)
    assert [read_broker(root, limits=enough).problems for root in roots] == [(), ()]


def test_the_command_ends_where_the_budget_is_spent(tmp_path: Path) -> None:
    root = write_broker(tmp_path / "b", 1, {"t-0": partition(0, 0, 0)})
    code, said, _ = check(root, "--max-records", 2, "--report", tmp_path / "report")
    assert code == 2 and not (tmp_path / "report").exists()
    assert said.startswith(f"fencepost: {root / 't-0' / f'{0:020d}.log'}, byte {len(log(0, 0))}: more than 2 records")
    assert said.endswith("or raise --max-records if all of it is real") and "\n" not in said
    assert check(root, "--max-records", 3, "--report", tmp_path / "report")[0] == 0


def tiny_records(batches: int, size: int) -> bytes:
    """A log of compressed batches of as many records as there can be in so few bytes: one or two for each."""
    payload = CODECS[4](b"".join(record(delta, None, None) for delta in range(size)))
    return b"".join(raw_batch(number * size, payload, size, attributes=4) for number in range(batches))


def peak(paths: list[Path], most: int) -> tuple[str, int]:
    """What is said where more than ``most`` records are read of these brokers, and the bytes that it took at most."""
    tracemalloc.start()
    said = ""
    try:
        check_files.read_cluster("", paths, limits=Limits(items=most))
    except BudgetSpent as spent:
        said = str(spent)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return said, found


def test_a_record_takes_a_few_bytes(tmp_path: Path) -> None:
    """Of a byte in the file: its offset, its epoch and its hash are kept, 20 bytes, and no object of Python's.

    24 million in 20 MB took 4.8 GB once, 200 bytes each.
    """
    size, few, many = 1 << 10, 4, 16
    roots = {}
    for batches in (few, many):
        data = tiny_records(batches, size)
        assert len(data) < 2 * batches * size
        files = {"t-0": Partition({0: data}, [(0, 0)], batches * size)}
        roots[batches] = write_broker(tmp_path / f"b{batches}", 1, files)
    peak([roots[few]], many * size)
    took = {batches: peak([root], many * size) for batches, root in roots.items()}
    assert [said for said, _ in took.values()] == ["", ""]
    assert took[many][1] - took[few][1] < 40 * (many - few) * size


def test_the_memory_of_three_brokers_is_that_of_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is within it, and all are not: what is read of them takes no more than as many records of one."""
    batches, size = 8, 1 << 10
    data = tiny_records(batches, size)
    assert len(data) < 2 * batches * size
    files = {"t-0": Partition({0: data}, [(0, 0)], batches * size)}
    roots = [write_broker(tmp_path / f"b{node}", node, files) for node in (1, 2, 3)]
    most = (batches + 1) * size

    peak(roots[:1], most)
    said, alone = peak(roots[:1], most)
    assert said == ""
    said, together = peak(roots, most)
    assert f"b2/t-0/{0:020d}.log, byte {len(data) // batches}: more than {most:,} records" in said
    assert together < 1.4 * alone
    # The planted fault: the budget is each broker's own.
    real = check_files.read_broker
    monkeypatch.setattr(check_files, "read_broker", lambda path, **given: real(path, topics=given["topics"]))
    assert peak(roots, most)[1] > 1.8 * alone


def test_a_cluster_is_read_within_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_files, "ReadLimits", lambda: Limits(items=5))
    roots = [write_broker(tmp_path / name, n, {"t-0": partition(0, 0, 0)}) for n, name in enumerate("ab", start=1)]
    assert len(check_files.read_cluster("", roots[:1]).report.brokers) == 1
    with pytest.raises(BudgetSpent, match="more than 5 records"):
        check_files.read_cluster("", roots)


def test_bytes_that_decompression_makes_of_nearly_none(tmp_path: Path) -> None:
    bomb = b"".join(batch(n, [bytes(1 << 20)], codec=4) for n in range(4))
    root = write_broker(tmp_path / "b", 1, {"t-0": Partition({0: bomb}, [(0, 0)], 4)})
    with pytest.raises(BudgetSpent, match="that decompression made of a hundredth") as caught:
        read_broker(root, limits=Limits(growth=3 << 20))
    assert caught.value.where.endswith(f"byte {3 * len(bomb) // 4}")
    assert read_broker(root).problems == ()
    # What grows by less than a hundred times is never too much, nor are uncompressed records.
    fair = b"".join(batch(n, [os.urandom(1 << 10) * 20], codec=n % 5) for n in range(5))
    root = write_broker(tmp_path / "fair", 1, {"t-0": Partition({0: fair}, [(0, 0)], 5)})
    assert read_broker(root, limits=Limits(growth=0)).problems == ()


def test_a_frame_beyond_the_longest_batch_counts_too(tmp_path: Path) -> None:
    bomb = b"".join(batch(n, [bytes(1 << 20)], codec=4) for n in range(9))
    root = write_broker(tmp_path / "b", 1, {"t-0": Partition({0: bomb}, [(0, 0)], 9)})
    limits = Limits(batch_bytes=1 << 18, growth=1 << 20)
    with pytest.raises(BudgetSpent):
        read_broker(root, limits=limits)


def test_records_of_the_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided = metadata_partition([topic_record(f"t{n}") for n in range(5)])
    root = write_broker(tmp_path / "b", 1, {METADATA: decided})
    found = read_broker(root)
    assert found.metadata is not None and found.metadata.complete and found.problems == ()
    monkeypatch.setattr(image, "MAX_DECISIONS", 4)
    found = read_broker(root)
    assert found.metadata is not None and not found.metadata.complete and len(found.metadata.topics) == 4
    (problem,) = found.problems
    assert "more than 4 records of the controller" in problem.what and problem.byte is not None


@pytest.mark.parametrize("name", [f"{0:020d}.log", f"{5:020d}-{1:010d}.checkpoint"])
def test_a_file_larger_than_a_segment_can_be(tmp_path: Path, name: str) -> None:
    root = write_broker(tmp_path / "b", 1, {METADATA: metadata_partition([topic_record("t")])})
    path = root / METADATA / name
    with path.open("ab") as file:
        file.truncate(TERABYTE)
    code, said, peak = check(root, "--report", tmp_path / "report")
    assert code in (1, 3) and peak < RESIDENT
    what = "1,099,511,627,776 bytes, Kafka's own have at most 2,147,483,647; copy the file from the broker again"
    assert f"{METADATA}/{name}, byte 2147483647: {what}" in said


class Counting(io.FileIO):
    """A file that knows how much was read of it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.count = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.count += len(data or b"")
        return data or b""


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    path = tmp_path / f"{0:020d}.log"
    with path.open("wb") as file:
        file.write(log(0))
        file.truncate(1 << 30)
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("absent: holes: the file system of the temporary folder has none")
    return path


def test_holes_are_not_read(sparse: Path) -> None:
    """A preallocated tail, and a hole before more data: what is read is what is there."""
    with Counting(sparse) as file:
        problems = ProblemLog(sparse)
        assert len(list(SegmentScan(file, 1 << 30, problems))) == 1
        assert [each.kind for each in problems.result()] == ["zero-tail"] and file.count < 16 << 20
    more = log(0, start=1)
    with sparse.open("r+b") as out:
        out.seek(700 << 20)
        out.write(more)
    with Counting(sparse) as file:
        problems = ProblemLog(sparse)
        assert [found.position for found in SegmentScan(file, 1 << 30, problems)] == [0, 700 << 20]
        assert [each.kind for each in problems.result()] == ["unknown-magic", "zero-tail"] and file.count < 16 << 20


def test_a_batch_that_begins_in_a_hole(tmp_path: Path) -> None:
    """Offset 0 is eight zero bytes: the block before the rest of the header may be a hole."""
    path = tmp_path / "x.log"
    with path.open("wb") as file:
        file.write(b"\xff" * 100)
        file.seek((64 << 20) - 8)
        file.write(log(0))
    problems = ProblemLog(path)
    with path.open("rb") as file:
        size = path.stat().st_size
        assert [found.position for found in SegmentScan(file, size, problems)] == [(64 << 20) - 8]


def test_a_file_without_a_descriptor() -> None:
    window = FileWindow(io.BytesIO(bytes(100) + b"x"), 101)
    assert window.next_data(5) == 5 and not window.all_zero(5) and FileWindow(io.BytesIO(bytes(9)), 9).all_zero(0)
