"""The sparse offset index of a segment (``OffsetIndex`` in Kafka): entries of relative offset int32, position int32.

An entry is the last offset of a batch, relative to the segment's base, and the byte that the batch begins at. It is a
hint to where a search may begin: it is never synced before its segment is full, and is rebuilt from the segment
wherever it may have been lost.
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
    """The index in ``file``, and the same in memory: 8 bytes for about 4 KiB of log."""

    def __init__(self, file: File, base_offset: int) -> None:
        self._file = file
        self._base = base_offset
        self._offsets = array("i")
        self._positions = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._file.path

    def content(self) -> bytes:
        """All bytes of the file."""
        return self._file.pread(0, self._file.size)

    def load(self, log_bytes: int) -> bool:
        """Read the file; gives whether it can be of a segment of ``log_bytes``: whole entries, both numbers rise."""
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
        """The last entry at or before ``offset``: its batch's last offset, and the byte that the batch begins at.

        ``(-1, 0)`` if there is none.
        """
        # An entry has its batch's last offset, so the batch of the entry for exactly this offset holds it.
        slot = bisect_right(self._offsets, offset - self._base)
        return (self._offsets[slot - 1] + self._base, self._positions[slot - 1]) if slot else (-1, 0)

    def byte_of(self, position: int) -> int:
        """The byte in this file of the entry for the batch at byte ``position``."""
        return bisect_left(self._positions, position) * ENTRY_BYTES

    def last_position(self) -> int:
        """The byte of the last entry's batch, 0 if there is none."""
        return self._positions[-1] if self._positions else 0

    def before(self, position: int) -> int:
        """The byte of the last entry's batch that begins before byte ``position``, 0 if there is none."""
        slot = bisect_left(self._positions, position)
        return self._positions[slot - 1] if slot else 0

    def truncate_to(self, position: int) -> None:
        """Drop the entries for batches at byte ``position`` and after."""
        kept = bisect_left(self._positions, position)
        del self._offsets[kept:], self._positions[kept:]
        self._file.truncate(kept * ENTRY_BYTES)

    def clear(self) -> None:
        """Drop everything, what the file holds too."""
        del self._offsets[:], self._positions[:]
        self._file.truncate(0)

    def fsync(self) -> None:
        """Make the entries survive a crash."""
        self._file.fsync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def entries_of(data: bytes, base_offset: int) -> Iterator[tuple[int, int]]:
    """The entries in the bytes of an index: a batch's last offset, and the byte that it begins at."""
    for relative, position in _ENTRY.iter_unpack(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES]):
        yield base_offset + relative, position
