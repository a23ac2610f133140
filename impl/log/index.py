"""Sparse offset index of a segment (``OffsetIndex`` in Kafka).

An entry has two int32: the last offset of a batch, relative to the segment's base, and the batch's first byte. The
index is a hint where a search may begin. It is never synced before its segment is full, and recovery rebuilds it
from the segment wherever it may be lost.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

from ..files.interface import File

ENTRY_BYTES = 8
_ENTRY = struct.Struct(">ii")


class OffsetIndex:
    """Index in ``file`` with a copy in memory: 8 bytes for about 4 KiB of log."""

    def __init__(self, file: File, base_offset: int) -> None:
        self._file = file
        self._base = base_offset
        self._offsets = array("i")
        self._positions = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def path(self) -> str:
        """Path of the index file."""
        return self._file.path

    def content(self) -> bytes:
        """Read all bytes of the file."""
        return self._file.pread(0, self._file.size)

    def load(self, log_bytes: int) -> bool:
        """Load the file and return whether it fits a segment of ``log_bytes``.

        It fits if its entries are whole, both numbers rise, and all positions are in the segment.
        """
        data = self._file.pread(0, self._file.size)
        if len(data) % ENTRY_BYTES:
            return False
        pairs = list(_ENTRY.iter_unpack(data))
        rising = all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
        if not rising or (pairs and not (pairs[0][0] >= 0 and 0 <= pairs[0][1] <= pairs[-1][1] < log_bytes)):
            return False
        self._offsets = array("i", [pair[0] for pair in pairs])
        self._positions = array("i", [pair[1] for pair in pairs])
        return True

    def append(self, last_offset: int, position: int) -> None:
        """Add an entry: the batch at byte ``position`` ends with ``last_offset``."""
        self._file.append(_ENTRY.pack(last_offset - self._base, position))
        self._offsets.append(last_offset - self._base)
        self._positions.append(position)

    def floor(self, offset: int) -> tuple[int, int]:
        """Find the last entry at or before ``offset``.

        Returns the last offset of its batch and the batch's first byte, or ``(-1, 0)`` without such an entry.
        """
        # An entry has its batch's last offset, so an entry for exactly this offset belongs to the batch with it.
        slot = bisect_right(self._offsets, offset - self._base)
        return (self._offsets[slot - 1] + self._base, self._positions[slot - 1]) if slot else (-1, 0)

    def byte_of(self, position: int) -> int:
        """Return the byte in this file of the entry for the batch at ``position``."""
        return bisect_left(self._positions, position) * ENTRY_BYTES

    def last_position(self) -> int:
        """Return the first byte of the last entry's batch, or 0 without entries."""
        return self._positions[-1] if self._positions else 0

    def before(self, position: int) -> int:
        """Return the first byte of the last indexed batch before ``position``, or 0."""
        slot = bisect_left(self._positions, position)
        return self._positions[slot - 1] if slot else 0

    def truncate_to(self, position: int) -> None:
        """Drop the entries of batches at byte ``position`` and after."""
        kept = bisect_left(self._positions, position)
        del self._offsets[kept:], self._positions[kept:]
        self._file.truncate(kept * ENTRY_BYTES)

    def clear(self) -> None:
        """Drop all entries, in memory and in the file."""
        del self._offsets[:], self._positions[:]
        self._file.truncate(0)

    def fsync(self) -> None:
        """Sync the file, so that its entries survive a crash."""
        self._file.fsync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def entries_of(data: bytes, base_offset: int) -> Iterator[tuple[int, int]]:
    """Yield the entries of an index: a batch's last offset and its first byte."""
    for relative, position in _ENTRY.iter_unpack(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES]):
        yield base_offset + relative, position
