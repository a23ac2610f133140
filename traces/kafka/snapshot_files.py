"""The snapshots of a metadata log, read whole: what each file says of itself, its records, and the state they make.

A snapshot (``RecordsSnapshotWriter`` in Kafka) is record batches from offset 0 on, all of the epoch in its name: a
control batch that begins with SNAPSHOT_HEADER, the state, and a control batch with SNAPSHOT_FOOTER. The header has the
append time of the last record of the log that the snapshot includes: a file under another one's name is found by it.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .batches import MAX_SEGMENT_BYTES, SegmentScan, read_batch
from .codecs import CodecError
from .image import ImageBuilder, State
from .metadata import MetadataError, control_type, decode_snapshot_header
from .partition import refuse_too_large
from .problems import Problem, ProblemLog
from .records import RecordError
from .statefiles import regular_size

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from .batches import Batch, Limits
    from .partition import SnapshotId
    from .rejection import Rejection

_CHUNK = 1 << 20


class SnapshotBatch(NamedTuple):
    """One batch of a snapshot. ``position`` is its byte in the file."""

    position: int
    leader_epoch: int
    base_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """One ``.checkpoint`` file of the metadata log."""

    id: SnapshotId
    path: Path
    size: int
    valid_bytes: int
    """The byte after the last valid batch."""
    digest: bytes
    """BLAKE2b of all bytes."""
    batches: tuple[SnapshotBatch, ...]
    header: int | None
    """The append time in the header, in milliseconds since 1970; ``None`` where the first record is no header."""
    has_footer: bool
    """Whether the last record is the footer."""
    records: NDArray[np.uint64]
    """Payload hashes (``records.HASH_BYTES``) of state and quorum's control records, in the order of the file."""
    positions: NDArray[np.int64]
    """For each of those records, the byte of its batch."""
    state_at: int
    """The byte of the first batch that is no control batch; 0 where all are."""
    state: State
    """What the controller had decided, as this file has it."""
    damaged: bool
    """Whether something in the file could not be read."""
    rejection: Rejection | None = None
    """Its first record that Kafka's replay rejects."""
    of_page: bool = False
    """Whether its records are in the form of KIP-631's page, which has a footer, and no header."""

    def at(self, position: int) -> str:
        """``FILE, byte N``."""
        return f"{self.path}, byte {position}"


class _Content:
    """Collects what the batches of one snapshot hold."""

    def __init__(self, limits: Limits) -> None:
        self.batches: list[SnapshotBatch] = []
        self.header: int | None = None
        self.has_footer = False
        self.state_at = 0
        self._hashes = bytearray()
        self._positions = array("q")
        self._limits = limits

    def add(self, batch: Batch, hashes: list[bytes]) -> None:
        """Raises ``MetadataError``, ``RecordError`` or ``CodecError`` for a control record that does not decode."""
        first = not self.batches
        self.batches.append(SnapshotBatch(batch.position, batch.leader_epoch, batch.base_offset, batch.last_offset))
        self.has_footer = False
        if not batch.control:
            self.state_at = self.state_at or batch.position
            self._hashes += b"".join(hashes)
            self._positions.extend([batch.position] * len(hashes))
            return
        for index, (record, payload_hash) in enumerate(zip(batch.records(self._limits), hashes, strict=True)):
            kind = control_type(record.key)
            self.has_footer = kind == "SNAPSHOT_FOOTER"
            if kind == "SNAPSHOT_HEADER" and first and index == 0:
                self.header = decode_snapshot_header(record.value or b"")
            elif not self.has_footer:
                self._hashes += payload_hash
                self._positions.append(batch.position)

    @property
    def records(self) -> NDArray[np.uint64]:
        """Payload hashes."""
        return np.frombuffer(bytes(self._hashes), np.dtype("<u8")).astype(np.uint64, copy=False)

    @property
    def positions(self) -> NDArray[np.int64]:
        """The batch of each record."""
        return np.frombuffer(self._positions.tobytes(), np.int64)


def read_snapshot(path: Path, snapshot: SnapshotId, limits: Limits) -> tuple[SnapshotFile, ImageBuilder, list[Problem]]:
    """Read one snapshot; the builder holds its state and can go on with the log. Faults become problems."""
    log = ProblemLog(path)
    builder = ImageBuilder(limits)
    content = _Content(limits)
    digest = blake2b()
    size = valid = 0
    try:
        size = regular_size(path)
        if size > MAX_SEGMENT_BYTES:
            refuse_too_large(size, log)
        readable = size if size <= MAX_SEGMENT_BYTES else 0
        with path.open("rb") as file:
            for start in range(0, readable, _CHUNK):
                digest.update(file.read(min(_CHUNK, readable - start)))
            scan = SegmentScan(file, readable, log, last=False, limits=limits)
            for batch in scan:
                rows = read_batch(batch, log, limits)
                if rows is None:
                    continue
                builder.load_snapshot(batch, snapshot.end_offset, snapshot.epoch, log)
                try:
                    content.add(batch, rows[1])
                except (MetadataError, RecordError, CodecError) as error:
                    what = f"a control record in the batch at offset {batch.base_offset}: {error}"
                    log.add("bad-metadata", what, "copy the file from another controller", byte=batch.position)
            valid = scan.end
    except OSError as error:
        log.add("unreadable", error.strerror or str(error), "make the file readable")
    if size == 0 and not log.result():
        log.add("empty-snapshot", "the file is empty", "copy the file from another controller", byte=0)
    problems = log.result()
    builder.image.complete = builder.image.complete and bool(content.batches) and not problems
    read = SnapshotFile(
        snapshot,
        path,
        size,
        valid,
        digest.digest(),
        tuple(content.batches),
        content.header,
        content.has_footer,
        content.records,
        content.positions,
        content.state_at,
        builder.image.state(),
        bool(problems),
        builder.image.rejection,
        builder.of_page,
    )
    return read, builder, problems


class ReplayedStates:
    """The state of the log where each snapshot ends, as far as the log has all that comes before it."""

    def __init__(self, builder: ImageBuilder, ends: Iterable[int]) -> None:
        self._builder = builder
        # The builder begins with a snapshot or with nothing: that is no word of the log's.
        self._ends = {end for end in ends if end > builder.image.end_offset}
        self.by_end: dict[int, State] = {}

    def reach(self, offset: int) -> None:
        """The log goes on at ``offset``; everything below it has been replayed."""
        image = self._builder.image
        if offset in self._ends and image.complete and image.end_offset == offset:
            self.by_end[offset] = image.state()


def first_difference(a: Path, b: Path) -> int | None:
    """The first byte in which two files differ; ``None`` where they do not, or cannot be read any more."""
    position = 0
    try:
        with a.open("rb") as left, b.open("rb") as right:
            while True:
                one, other = left.read(_CHUNK), right.read(_CHUNK)
                if one != other:
                    same = zip(one, other, strict=False)
                    return position + next((i for i, (x, y) in enumerate(same) if x != y), min(len(one), len(other)))
                if not one:
                    return None
                position += len(one)
    except OSError:
        return None
