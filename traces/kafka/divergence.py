"""Where two replicas' logs differ, offset by offset and epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .partition import PartitionFiles, RecordColumns


@dataclass(frozen=True, slots=True)
class Difference:
    """The first offset that two logs both hold and at which they disagree.

    ``kind`` is ``epoch`` (another leader epoch) or ``payload`` (the same epoch; another key, value or headers).
    """

    offset: int
    kind: str
    epochs: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {"offset": self.offset, "kind": self.kind, "epochs": list(self.epochs)}


@dataclass(frozen=True, slots=True)
class EpochSpan:
    """The records of one leader epoch in two logs: ``(first offset, last offset, records)`` each, or ``None``.

    ``common`` counts the records that both logs have at the same offset with the same epoch and payload.
    """

    epoch: int
    a: tuple[int, int, int] | None
    b: tuple[int, int, int] | None
    common: int

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {
            "epoch": self.epoch,
            "a": None if self.a is None else list(self.a),
            "b": None if self.b is None else list(self.b),
            "common": self.common,
        }


def first_difference(a: PartitionFiles, b: PartitionFiles, start: int, end: int) -> tuple[Difference | None, bool]:
    """The first difference in ``[start, end)``, cut down to the range that both logs cover, and whether that is all.

    Where a log has holes (compaction, or damage), an offset that only one log holds proves nothing: replicas
    compact at different times. Then only the offsets that both hold count, and the second value is False.
    """
    low = max(start, a.log_start, b.log_start)
    high = min(end, a.log_end, b.log_end)
    if low >= high:
        return None, True
    x, y = a.records.between(low, high), b.records.between(low, high)
    whole = np.array_equal(x.offset, y.offset)
    if not whole:
        x, y = _common(x, y)
    unequal = (x.leader_epoch != y.leader_epoch) | (x.payload_hash != y.payload_hash)
    if not unequal.any():
        return None, whole
    row = int(np.argmax(unequal))
    epochs = int(x.leader_epoch[row]), int(y.leader_epoch[row])
    kind = "epoch" if epochs[0] != epochs[1] else "payload"
    return Difference(int(x.offset[row]), kind, epochs), whole


def _common(x: RecordColumns, y: RecordColumns) -> tuple[RecordColumns, RecordColumns]:
    """The rows of both at the offsets that both hold."""
    _, i, j = np.intersect1d(x.offset, y.offset, assume_unique=True, return_indices=True)
    return x.take(i), y.take(j)


def by_epoch(a: PartitionFiles, b: PartitionFiles, start: int) -> tuple[EpochSpan, ...]:
    """The two logs from ``start`` on, one row per leader epoch, ascending."""
    x = a.records.between(start, a.log_end)
    y = b.records.between(start, b.log_end)
    both_x, both_y = _common(x, y)
    same = (both_x.leader_epoch == both_y.leader_epoch) & (both_x.payload_hash == both_y.payload_hash)
    shared = both_x.leader_epoch[same]
    epochs = np.union1d(x.leader_epoch, y.leader_epoch)
    return tuple(
        EpochSpan(int(epoch), _span(x, epoch), _span(y, epoch), int(np.count_nonzero(shared == epoch)))
        for epoch in epochs
    )


def _span(records: RecordColumns, epoch: np.int32) -> tuple[int, int, int] | None:
    offsets: NDArray[np.int64] = records.offset[records.leader_epoch == epoch]
    return (int(offsets[0]), int(offsets[-1]), len(offsets)) if len(offsets) else None


def has_offset_holes(files: PartitionFiles) -> bool:
    """Whether the log lacks offsets that it once had: what compaction does, or damage."""
    spans = files.batches.last_offset - files.batches.base_offset + 1
    inside = bool(np.any(spans[files.batches.readable] != files.batches.count[files.batches.readable]))
    return inside or bool(files.gaps())


def first_missing(files: PartitionFiles, start: int, end: int) -> int | None:
    """The first offset in ``[start, end)``, cut to log start and LEO, that has no record; ``None`` where each has."""
    start, end = max(start, files.log_start), min(end, files.log_end)
    offsets = files.records.between(start, end).offset
    misplaced = np.flatnonzero(offsets != np.arange(start, start + len(offsets)))
    if len(misplaced):
        return start + int(misplaced[0])
    return start + len(offsets) if start + len(offsets) < end else None


def offset_ranges(offsets: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """Ascending offsets as ranges ``(first, last)`` without holes."""
    if not len(offsets):
        return ()
    breaks = np.flatnonzero(np.diff(offsets) > 1)
    firsts = np.concatenate(([0], breaks + 1))
    lasts = np.concatenate((breaks, [len(offsets) - 1]))
    return tuple((int(offsets[a]), int(offsets[b])) for a, b in zip(firsts, lasts, strict=True))


def range_words(ranges: tuple[tuple[int, int], ...], shown: int = 4) -> str:
    """``offset 7``, ``offsets 2 to 9``, ``offsets 2 to 9, 12 and 3 more ranges``."""
    words = [str(a) if a == b else f"{a} to {b}" for a, b in ranges[:shown]]
    noun = "offset" if len(ranges) == 1 and ranges[0][0] == ranges[0][1] else "offsets"
    more = f" and {len(ranges) - shown} more ranges" if len(ranges) > shown else ""
    return f"{noun} {', '.join(words)}{more}"
