"""One partition's folder: its segments read into columns, its epoch cache, its snapshots by name."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import numpy as np

from .batches import (
    HEADER,
    HEADER_BYTES,
    HEADER_DTYPE,
    LENGTH_END,
    MAX_SEGMENT_BYTES,
    Batch,
    Limits,
    SegmentScan,
    read_batch,
)
from .problems import RESTORE_MEND, Problem, ProblemLog
from .records import HASH_BYTES
from .statefiles import EpochEntry, encode_uuid, present, read_epoch_checkpoint, read_topic_id, regular_size

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = UUID(int=1)
"""The topic id of every metadata log (``Uuid.METADATA_TOPIC_ID`` in Kafka)."""

T = TypeVar("T")

SEGMENT_NAME = re.compile(r"([0-9]{20})\.log")
SNAPSHOT_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
UNFINISHED_SNAPSHOT = ".checkpoint.part"
_UNFINISHED = (".log.swap", ".log.cleaned", ".log.deleted", UNFINISHED_SNAPSHOT, ".checkpoint.deleted")
_UNREAD = ("unreadable", "old-magic", "file-too-large", "no-segment")
"""Kinds of problems behind which no record of a segment was read."""
_MAX_OFFSET = (1 << 63) - 1 - (1 << 32)  # room for an int32 of relative offsets


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """One row per valid batch, in log order (offsets rise). All arrays have the same length."""

    segment: NDArray[np.int32]
    """Index into ``PartitionFiles.segments``."""
    position: NDArray[np.int64]
    """Byte of the batch in its segment file."""
    size: NDArray[np.int64]
    base_offset: NDArray[np.int64]
    last_offset: NDArray[np.int64]
    leader_epoch: NDArray[np.int32]
    count: NDArray[np.int32]
    """Records in the batch, as its header says and its records confirm."""
    crc: NDArray[np.uint32]
    attributes: NDArray[np.int16]
    producer_id: NDArray[np.int64]
    max_timestamp: NDArray[np.int64]
    readable: NDArray[np.bool_]
    """False where the CRC is right and yet the records do not parse: such a batch has no rows in the records."""

    def __len__(self) -> int:
        return len(self.base_offset)


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """One row per record, in offset order; ``payload_hash`` as ``records.HASH_BYTES`` tells."""

    offset: NDArray[np.int64]
    leader_epoch: NDArray[np.int32]
    payload_hash: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.offset)

    def between(self, start: int, end: int) -> RecordColumns:
        """The rows with ``start <= offset < end``, as views."""
        low, high = (int(i) for i in np.searchsorted(self.offset, [start, end]))
        rows = slice(low, max(low, high))
        return RecordColumns(self.offset[rows], self.leader_epoch[rows], self.payload_hash[rows])

    def take(self, rows: NDArray[np.intp]) -> RecordColumns:
        """The rows with these indices."""
        return RecordColumns(self.offset[rows], self.leader_epoch[rows], self.payload_hash[rows])


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One ``.log`` file. ``valid_bytes`` is the byte after its last valid batch."""

    path: Path
    base_offset: int
    size: int
    valid_bytes: int


@dataclass(frozen=True, slots=True, order=True)
class SnapshotId:
    """The id in a ``.checkpoint`` file's name (``Snapshots`` in Kafka): the offset after the last included
    record, and the epoch of that record. KIP-630's text counts the last included offset instead."""

    end_offset: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}"


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """Everything that one broker's files say about one replica of one partition."""

    topic: str
    partition: int
    path: Path
    topic_id: UUID | None
    segments: tuple[SegmentFile, ...]
    batches: BatchColumns
    records: RecordColumns
    epoch_cache: tuple[EpochEntry, ...] | None
    """Entries of ``leader-epoch-checkpoint`` in file order; ``None`` where there is no such file."""
    high_watermark: int | None
    """From ``replication-offset-checkpoint``; it may lag the broker's own by the checkpoint interval (5 s)."""
    log_start_checkpoint: int | None
    """From ``log-start-offset-checkpoint``, which lists only partitions whose start is above their first segment."""
    recovery_point: int | None
    snapshots: tuple[tuple[SnapshotId, Path], ...]
    problems: tuple[Problem, ...] = field(default=())
    cleaned: int | None = None
    """From ``cleaner-offset-checkpoint``: below it the log is clean; ``None`` where that has no entry of it."""
    cleaner_told: bool = False
    """Whether there is such a file."""

    @property
    def name(self) -> str:
        """``TOPIC-PARTITION``, as the folder is called."""
        return f"{self.topic}-{self.partition}"

    @property
    def log_start(self) -> int:
        """Log start offset: the first segment's base, or the checkpointed one where that is larger."""
        first = self.segments[0].base_offset if self.segments else 0
        return max(first, self.log_start_checkpoint or 0)

    @property
    def log_end(self) -> int:
        """LEO: one after the last readable offset, or the base offset of a newer and still empty segment."""
        last = self.segments[-1].base_offset if self.segments else 0
        return max(last, int(self.batches.last_offset[-1]) + 1) if len(self.batches) else last

    @property
    def unread(self) -> str | None:
        """Why the log, or a whole segment of it, was not read at all; ``None`` if every segment was."""
        for problem in self.problems:
            if problem.severity == "error" and self._of_log(problem) and problem.kind in _UNREAD:
                return problem.what
        return None

    @property
    def damaged(self) -> bool:
        """Whether data inside the log could not be read, so that absence of a record proves nothing.

        A torn tail is no such damage: Kafka cuts it off itself, and the LEO is where it begins. Nor is a record of the
        metadata log that says nothing. Of two batches that overlap the second is left out, so the log is damaged.
        """
        tail = self.segments[-1].path if self.segments else None
        return any(
            problem.severity == "error"
            and self._of_log(problem)
            and problem.kind not in ("bad-metadata", "bad-remote-metadata")
            and not (problem.kind == "truncated-segment" and problem.path == tail)
            for problem in self.problems
        )

    @property
    def torn(self) -> bool:
        """Whether the log ends in a batch that is not whole."""
        return any(problem.kind == "truncated-segment" and self._of_log(problem) for problem in self.problems)

    def _of_log(self, problem: Problem) -> bool:
        """Whether a problem is one of the folder or of a segment, and not of a file beside the segments."""
        return problem.path == self.path or (problem.path.suffix == ".log" and problem.path.parent == self.path)

    def stored(self, row: int) -> Batch | None:
        """The batch of one row, with its records; ``None`` where the file is no more what it was."""
        position, size = int(self.batches.position[row]), int(self.batches.size[row])
        try:
            with self.segments[int(self.batches.segment[row])].path.open("rb") as file:
                file.seek(position)
                data = file.read(size)
        except OSError:
            return None
        if len(data) != size:
            return None
        fields = HEADER.unpack(data[:HEADER_BYTES])
        return Batch._make((position, size, data[:HEADER_BYTES], *fields, data[HEADER_BYTES:]))

    def where(self, offset: int) -> str:
        """``FILE, byte N`` of the batch that holds ``offset`` or, failing that, comes next; the folder if none."""
        row = int(np.searchsorted(self.batches.last_offset, offset))
        if row == len(self.batches):
            return str(self.path)
        segment = self.segments[int(self.batches.segment[row])]
        return f"{segment.path}, byte {int(self.batches.position[row])}"

    def gaps(self) -> list[tuple[int, int]]:
        """Ranges ``(start, end)`` of offsets between log start and LEO that no batch covers."""
        if not len(self.batches):
            return [(self.log_start, self.log_end)] if self.log_end > self.log_start else []
        starts = np.concatenate(([self.log_start], self.batches.last_offset + 1))
        ends = np.concatenate((self.batches.base_offset, [self.log_end]))
        rows = np.flatnonzero(ends > starts)
        return [(int(starts[row]), int(ends[row])) for row in rows]

    def epoch_starts(self) -> tuple[EpochEntry, ...]:
        """The epoch cache that the batches alone imply: each leader epoch and its first offset at or above
        the log start, in log order. Batches with no epoch (-1) have no entry."""
        epochs = self.batches.leader_epoch
        changes = np.flatnonzero(np.diff(epochs, prepend=epochs[:1] - 1)) if len(epochs) else ()
        kept = [EpochEntry(int(epochs[i]), int(self.batches.base_offset[i])) for i in changes if epochs[i] >= 0]
        later = [entry for entry in kept if entry.start_offset > self.log_start]
        earlier = [entry for entry in kept if entry.start_offset <= self.log_start]
        clamped = [EpochEntry(earlier[-1].epoch, self.log_start)] if earlier else []
        return (*clamped, *later)

    def to_json(self) -> dict[str, Any]:
        """A summary: offsets, sizes, epochs; no row per batch or record."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "path": str(self.path),
            "topic_id": None if self.topic_id is None else encode_uuid(self.topic_id),
            "segments": [
                {"path": str(s.path), "base_offset": s.base_offset, "size": s.size, "valid_bytes": s.valid_bytes}
                for s in self.segments
            ],
            "batches": len(self.batches),
            "records": len(self.records),
            "log_start": self.log_start,
            "high_watermark": self.high_watermark,
            "log_end": self.log_end,
            "recovery_point": self.recovery_point,
            "cleaned": self.cleaned,
            "epochs": [[entry.epoch, entry.start_offset] for entry in self.epoch_starts()],
            "epoch_cache": None
            if self.epoch_cache is None
            else [[entry.epoch, entry.start_offset] for entry in self.epoch_cache],
            "snapshots": [str(snapshot) for snapshot, _ in self.snapshots],
        }


class _Columns:
    """Collects raw headers and per-record values; NumPy makes columns of them at the end."""

    def __init__(self) -> None:
        self.segment = array("i")
        self.position = array("q")
        self.readable = array("b")
        self.headers = bytearray()
        self.offsets = array("q")
        self.hashes = bytearray()

    def add(self, segment: int, batch: Batch, rows: tuple[list[int], list[bytes]] | None) -> None:
        self.segment.append(segment)
        self.position.append(batch.position)
        self.headers += batch.header
        self.readable.append(rows is not None)
        if rows is not None:
            base = batch.base_offset
            self.offsets.extend([base + delta for delta in rows[0]])
            self.hashes += b"".join(rows[1])

    def result(self) -> tuple[BatchColumns, RecordColumns]:
        headers = np.frombuffer(self.headers, HEADER_DTYPE)
        readable = np.frombuffer(self.readable, np.bool_)
        epochs = headers["leader_epoch"].astype(np.int32)
        counts = headers["count"].astype(np.int32)
        base_offset = headers["base_offset"].astype(np.int64)
        batches = BatchColumns(
            segment=np.frombuffer(self.segment, np.int32),
            position=np.frombuffer(self.position, np.int64),
            size=headers["length"].astype(np.int64) + LENGTH_END,
            base_offset=base_offset,
            last_offset=base_offset + headers["last_offset_delta"],
            leader_epoch=epochs,
            count=counts,
            crc=headers["crc"].astype(np.uint32),
            attributes=headers["attributes"].astype(np.int16),
            producer_id=headers["producer_id"].astype(np.int64),
            max_timestamp=headers["max_timestamp"].astype(np.int64),
            readable=readable,
        )
        assert HASH_BYTES == 8
        hashes = np.frombuffer(self.hashes, np.dtype("<u8")).astype(np.uint64, copy=False)
        per_record = np.repeat(epochs[readable], counts[readable])
        return batches, RecordColumns(np.frombuffer(self.offsets, np.int64), per_record, hashes)


def read_partition(
    path: Path,
    topic: str,
    partition: int,
    *,
    high_watermark: int | None = None,
    log_start_checkpoint: int | None = None,
    recovery_point: int | None = None,
    cleaned: int | None = None,
    cleaner_told: bool = False,
    limits: Limits | None = None,
    on_batch: Callable[[Batch, ProblemLog], None] | None = None,
    on_bytes: Callable[[int], None] | None = None,
) -> PartitionFiles:
    """Read the folder ``path`` of one replica. Faults become ``problems``; nothing is raised for them.

    ``on_batch`` sees every valid batch in log order, and where to note its problems (the metadata log is decoded
    through it), ``on_bytes`` the number of bytes of each segment once it is read.
    """
    limits = limits or Limits()
    problems: list[Problem] = []
    names, snapshots = _listing(path, problems)
    columns = _Columns()
    segments: list[SegmentFile] = []
    next_offset = 0
    for index, (base, name) in enumerate(names):
        file_path = path / name
        log = ProblemLog(file_path)
        size = valid = 0
        try:
            size = regular_size(file_path)
            if size > MAX_SEGMENT_BYTES:
                refuse_too_large(size, log)
                segments.append(SegmentFile(file_path, base, size, 0))
                problems.extend(log.result())
                continue
            with file_path.open("rb") as file:
                scan = SegmentScan(
                    file,
                    size,
                    log,
                    segment_base=base,
                    next_offset=next_offset,
                    last=index == len(names) - 1,
                    limits=limits,
                )
                for batch in scan:
                    columns.add(index, batch, read_batch(batch, log, limits))
                    if on_batch:
                        on_batch(batch, log)
                next_offset, valid = scan.next_offset, scan.end
        except OSError as error:
            log.add("unreadable", error.strerror or str(error), "make the file readable", byte=0)
        segments.append(SegmentFile(file_path, base, size, valid))
        problems.extend(log.result())
        if on_bytes:
            on_bytes(size)
    batches, records = columns.result()
    # One line for a folder that cannot be listed, and none for each file in it.
    shut = any(problem.path == path and problem.kind == "unreadable" for problem in problems)
    topic_id = None if shut else _optional(path / "partition.metadata", read_topic_id, problems)
    if topic == METADATA_TOPIC and topic_id not in (None, METADATA_TOPIC_ID):
        log = ProblemLog(path / "partition.metadata")
        what = f"{topic_id} is not the topic id of every metadata log"
        log.add("bad-topic-id", what, RESTORE_MEND)
        problems.extend(log.result())
        topic_id = None
    return PartitionFiles(
        topic,
        partition,
        path,
        topic_id,
        tuple(segments),
        batches,
        records,
        None if shut else _optional(path / "leader-epoch-checkpoint", read_epoch_checkpoint, problems),
        high_watermark,
        log_start_checkpoint,
        recovery_point,
        tuple(snapshots),
        tuple(problems),
        cleaned,
        cleaner_told,
    )


def refuse_too_large(size: int, problems: ProblemLog) -> None:
    """Note that a segment or a snapshot is larger than one can be, and so is not read."""
    what = f"{size:,} bytes, Kafka's own have at most {MAX_SEGMENT_BYTES:,}"
    problems.add("file-too-large", what, "copy the file from the broker again", byte=MAX_SEGMENT_BYTES)


def _optional(path: Path, read: Callable[[Path, ProblemLog], T], problems: list[Problem]) -> T | None:
    """What ``read`` makes of a file that need not be there."""
    if not present(path):
        return None
    log = ProblemLog(path)
    result = read(path, log)
    problems.extend(log.result())
    # Half a file would contradict files that are whole.
    return None if log.result() else result


def _unfinished(path: Path) -> Problem:
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    left = path.name.endswith(".deleted")
    what = "a file that the broker was about to delete" if left else "a file that the broker was still writing"
    mend = "nothing to mend: Kafka deals with it at its next start"
    return Problem("unfinished-file", f"{what}, of {size} bytes", path, mend, byte=size, severity="note")


def _listing(path: Path, problems: list[Problem]) -> tuple[list[tuple[int, str]], list[tuple[SnapshotId, Path]]]:
    """Segments ``(base offset, file name)`` and snapshots, each in ascending order."""
    segments: list[tuple[int, str]] = []
    snapshots: list[tuple[SnapshotId, Path]] = []
    unfinished: list[Problem] = []
    log = ProblemLog(path)
    try:
        names = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        log.add("unreadable", error.strerror or str(error), "make the folder readable")
        names = []
    for name in names:
        if match := SEGMENT_NAME.fullmatch(name):
            base = int(match[1])
            if base <= _MAX_OFFSET:
                segments.append((base, name))
            else:
                log.add("bad-name", f"{name} names an offset that no log has", RESTORE_MEND)
        elif match := SNAPSHOT_NAME.fullmatch(name):
            snapshots.append((SnapshotId(int(match[1]), int(match[2])), path / name))
        elif name.endswith(_UNFINISHED):
            unfinished.append(_unfinished(path / name))
    if not segments and not log.result():
        log.add("no-segment", "no segment (20 digits and .log)", RESTORE_MEND)
    problems.extend(log.result())
    problems.extend(unfinished)
    return segments, snapshots
