"""Scanning bytes as a segment, through a file that refuses every read beyond its size."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.traces.kafka.batches import Batch, Limits, SegmentScan, read_batch
from fencepost.traces.kafka.problems import Problem, ProblemLog

if TYPE_CHECKING:
    from collections.abc import Sequence


class GuardedFile(io.BytesIO):
    """A file that fails the test when a read or a seek leaves ``[0, size]``, and counts what is read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.length = len(data)
        self.bytes_read = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        assert whence == 0 and 0 <= offset <= self.length, f"seek to {offset} of {self.length}"
        return super().seek(offset)

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None and 0 <= size <= self.length - self.tell(), f"read {size} at {self.tell()}"
        data = super().read(size)
        self.bytes_read += len(data)
        return data


def scan(
    data: bytes,
    *,
    last: bool = True,
    base: int = 0,
    next_offset: int = 0,
    limits: Limits | None = None,
) -> tuple[list[Batch], list[Problem]]:
    """The valid batches of ``data`` and the problems, the records of each batch read too."""
    file = GuardedFile(data)
    log = ProblemLog(Path("t-0/00000000000000000000.log"))
    limits = limits or Limits()
    reader = SegmentScan(file, len(data), log, segment_base=base, next_offset=next_offset, last=last, limits=limits)
    batches: list[Batch] = []
    for found in reader:
        batches.append(found)
        read_batch(found, log, limits)
    return batches, log.result()


def kinds(problems: Sequence[Problem]) -> list[str]:
    """The kinds of the problems, in order."""
    return [problem.kind for problem in problems]
