"""Copies of recorded stages with a fault planted in them: records put in or taken out, with right lengths and CRCs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from fencepost.traces.kafka.batches import Batch, Limits, SegmentScan
from fencepost.traces.kafka.capture import bundled_corpus
from fencepost.traces.kafka.checks import FilesReport, check_brokers
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.problems import ProblemLog
from fencepost.traces.kafka.records import Record
from fencepost.traces.kafka.remote_store import RemoteStore
from fencepost.traces.kafka.verdicts import CheckResult

from .encoder import checkpoint, raw_batch, record

CODEC = 0x07
TRANSACTIONAL = 0x10


def stage(tmp_path: Path, scenario: str, name: str) -> Path:
    """A copy of a recorded stage."""
    return Path(shutil.copytree(bundled_corpus(scenario) / name, tmp_path / name))


def report(home: Path, *, without: Sequence[str] = (), store: RemoteStore | None = None) -> FilesReport:
    """All checks of the nodes of a stage, and of a store if one is given."""
    nodes = [each for each in sorted(home.iterdir()) if (each / "meta.properties").exists()]
    return check_brokers(read_brokers(each for each in nodes if each.name not in without), store=store)


def results(found: FilesReport, check: str, subject: str = "") -> list[CheckResult]:
    """What one check says, of the subjects that end so."""
    return [each for each in found.checks if each.check == check and each.subject.endswith(subject)]


def violated(found: FilesReport) -> set[str]:
    """The checks that are violated."""
    return {each.check for each in found.checks if each.verdict == "violated" and not each.informative}


def batches_of(segment: Path) -> list[Batch]:
    """Those of one segment."""
    with segment.open("rb") as file:
        scan = SegmentScan(
            file, segment.stat().st_size, ProblemLog(segment), segment_base=int(segment.name[:20]), next_offset=0,
            last=True, limits=Limits(),
        )  # fmt: skip
        return list(scan)


def encoded(batch: Batch, records: Sequence[Record]) -> bytes:
    """A batch in the place of another, with these records."""
    rows = [record(each.offset - batch.base_offset, each.key, each.value, each.headers) for each in records]
    return raw_batch(
        batch.base_offset, b"".join(rows), len(rows), epoch=batch.leader_epoch,
        attributes=batch.attributes & ~(CODEC | TRANSACTIONAL), last_delta=batch.last_offset_delta,
    )  # fmt: skip


def rewrite(partition: Path, change: Callable[[list[Record]], list[Record]]) -> None:
    """Give each batch of a partition the records that ``change`` makes of its own; markers stay."""
    for segment in sorted(partition.glob("*.log")):
        data = bytearray()
        for batch in batches_of(segment):
            before = [] if batch.control else list(batch.records(Limits()))
            after = change(before)
            same = batch.control or after == before
            data += batch.header + batch.payload if same else encoded(batch, after)
        segment.write_bytes(bytes(data))


def revalue(partition: Path, change: Callable[[int, bytes], bytes | None]) -> None:
    """Give each record the value that ``change`` makes of its offset and value; ``None`` takes it out."""

    def changed(records: list[Record]) -> list[Record]:
        found = []
        for each in records:
            value = change(each.offset, each.value or b"")
            if value is not None:
                found.append(each if value == each.value else replace(each, value=value))
        return found

    rewrite(partition, changed)


def put_first(partition: Path, offset: int, key: bytes | None, value: bytes | None, epoch: int = 0) -> None:
    """Put a batch of one record at the front of the first segment, where no batch covers its offset."""
    segment = min(partition.glob("*.log"))
    segment.write_bytes(raw_batch(offset, record(0, key, value), 1, epoch=epoch) + segment.read_bytes())


def records_of(partition: Path) -> list[Record]:
    """The records of a partition, without markers."""
    found = []
    for segment in sorted(partition.glob("*.log")):
        found += [each for b in batches_of(segment) if not b.control for each in b.records(Limits())]
    return found


def set_checkpoint(home: Path, name: str, partition: str, offset: int) -> None:
    """Set the offset of a partition in a checkpoint of a data directory."""
    lines = (home / name).read_text().splitlines()[2:]
    topic, _, number = partition.rpartition("-")
    kept = [line for line in lines if not line.startswith(f"{topic} {number} ")]
    (home / name).write_text(checkpoint([*kept, f"{topic} {number} {offset}"]))
