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
    """The first offset at which two logs disagree, in a range that both cover.

    ``kind`` is ``epoch`` (same offset, other leader epoch), ``payload`` (same offset and epoch, other key, value or
    headers) or ``missing`` (only one of them has a record there; ``absent_in`` names which, 0 or 1).
    """

    offset: int
    kind: str
    epochs: tuple[int | None, int | None]
    absent_in: int | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {
            "offset": self.offset,
            "kind": self.kind,
            "epochs": list(self.epochs),
            "absent_in": self.absent_in,
        }


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


def disagreement(a: PartitionFiles, b: PartitionFiles, start: int, end: int) -> tuple[Difference | None, bool]:
    """The first disagreement in ``[start, end)``, cut down to the range that both logs cover, and whether that is sure.

    Where a log has holes (compaction, or damage), an offset that only one log holds proves nothing: then only offsets
    that both hold count, and the second value is False if there are others.
    """
    low = max(start, a.log_start, b.log_start)
    high = min(end, a.log_end, b.log_end)
    if low >= high:
        return None, True
    x, y = a.records.between(low, high), b.records.between(low, high)
    found = _first_difference(x, y)
    if found is None or not (has_offset_holes(a) or has_offset_holes(b)):
        return found, True
    return _first_difference_where_both(x, y), False


def _first_difference(x: RecordColumns, y: RecordColumns) -> Difference | None:
    length = min(len(x), len(y))
    # Equal prefixes are the rule: compare the columns position by position up to the first mismatch.
    unequal = (
        (x.offset[:length] != y.offset[:length])
        | (x.leader_epoch[:length] != y.leader_epoch[:length])
        | (x.payload_hash[:length] != y.payload_hash[:length])
    )
    row = int(np.argmax(unequal)) if unequal.any() else length
    if row == len(x) == len(y):
        return None
    in_x = int(x.offset[row]) if row < len(x) else None
    in_y = int(y.offset[row]) if row < len(y) else None
    if in_x is not None and in_x == in_y:
        epochs = int(x.leader_epoch[row]), int(y.leader_epoch[row])
        return Difference(in_x, "epoch" if epochs[0] != epochs[1] else "payload", epochs)
    if in_y is None or (in_x is not None and in_x < in_y):
        assert in_x is not None
        return Difference(in_x, "missing", (int(x.leader_epoch[row]), None), absent_in=1)
    return Difference(in_y, "missing", (None, int(y.leader_epoch[row])), absent_in=0)


def _first_difference_where_both(x: RecordColumns, y: RecordColumns) -> Difference | None:
    """What two replicas that compact at different times must still agree on."""
    _, i, j = np.intersect1d(x.offset, y.offset, assume_unique=True, return_indices=True)
    unequal = np.flatnonzero((x.leader_epoch[i] != y.leader_epoch[j]) | (x.payload_hash[i] != y.payload_hash[j]))
    if not len(unequal):
        return None
    row = int(unequal[0])
    epochs = int(x.leader_epoch[i[row]]), int(y.leader_epoch[j[row]])
    return Difference(int(x.offset[i[row]]), "epoch" if epochs[0] != epochs[1] else "payload", epochs)


def by_epoch(a: PartitionFiles, b: PartitionFiles, start: int) -> tuple[EpochSpan, ...]:
    """The two logs from ``start`` on, one row per leader epoch, ascending."""
    x = a.records.between(start, a.log_end)
    y = b.records.between(start, b.log_end)
    _, i, j = np.intersect1d(x.offset, y.offset, assume_unique=True, return_indices=True)
    same = (x.leader_epoch[i] == y.leader_epoch[j]) & (x.payload_hash[i] == y.payload_hash[j])
    shared = x.leader_epoch[i][same]
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
