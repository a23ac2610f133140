"""Record batches (magic 2) of one segment file, read lazily: one batch in memory at a time.

Header, 61 bytes, big-endian (``DefaultRecordBatch`` in Kafka)::

    baseOffset int64, batchLength int32, partitionLeaderEpoch int32, magic int8, crc uint32,
    attributes int16, lastOffsetDelta int32, baseTimestamp int64, maxTimestamp int64,
    producerId int64, producerEpoch int16, baseSequence int32, recordCount int32

``batchLength`` counts what follows itself; the CRC-32C covers everything from the attributes on, so a flipped bit
in the base offset, the length, the leader epoch or the magic is not caught by it but by the checks of order.
"""

from __future__ import annotations

import errno
import os
import re
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import google_crc32c
import numpy as np

from ...model.core.errors import BadInput
from .codecs import CODEC_NAMES, CodecError, decompress
from .problems import RESTORE_MEND, ProblemLog
from .records import MAX_ITEMS, Record, RecordError, TooManyItems, hash_records, iter_records, scan_records

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size  # 61
HEADER_DTYPE = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", ">i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
"""The same header for NumPy, unaligned: headers one after another become columns at once."""
LENGTH_END = 12  # bytes before the part that batchLength counts
CRC_START = 21  # the first byte that the CRC covers
MIN_LENGTH = HEADER_BYTES - LENGTH_END

OVERLAP = "overlapping-batch"
"""Kind of the problem of a valid batch that begins at or below an offset which the one before it has."""

_OLD_HEADER = struct.Struct(">qiIb")  # message formats 0 and 1: offset, size, CRC-32, magic
_OLD_CRC_START = 16
_OLD_MIN_LENGTH = 14  # CRC, magic, attributes, and the lengths of key and value
_WINDOW = 1 << 20
_SMALL_STEP = 1 << 12  # first look-ahead after damage: many small faults must not cost a window each
_RELATIVE_OFFSETS = 1 << 31  # offsets in a segment fit its base plus an int32 (LogSegment.toRelative)


MAX_SEGMENT_BYTES = (1 << 31) - 1
"""Kafka's positions in a segment, and in a snapshot, are int32; ``FileRecords.open`` refuses a larger file."""

_FAIR_GROWTH = 100  # times that records may grow by decompression before it counts


class BudgetSpent(BadInput):
    """Reading has taken as much as it may: no directory is left out for it, it ends."""


@dataclass(slots=True)
class Spent:
    """What has been read so far under some limits."""

    items: int = 0
    growth: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what reading may cost, against lying lengths and decompression bombs.

    The budget of all that is read with one object: 2^25 records and headers, and 16 GiB of records that decompression
    makes of less than a hundredth of that. Of one batch: ``batch_items`` records and headers; ``batch_bytes`` before
    and after decompression (each). Kafka's own default for ``message.max.bytes`` is 1 MiB.
    """

    batch_bytes: int = 256 << 20
    batch_items: int = MAX_ITEMS
    items: int = 1 << 25
    growth: int = 16 << 30
    spent: Spent = field(default_factory=Spent, compare=False)

    def spend(self, items: int, compressed: int, uncompressed: int, where: str) -> None:
        """Count what one batch took. Raises ``BudgetSpent``, which ends all reading, where a budget is spent."""
        self.spent.items += items
        self.spent.growth += max(0, uncompressed - _FAIR_GROWTH * compressed)
        mend = "check fewer directories or one --topic, or raise --max-records if all of it is real"
        if self.spent.items > self.items:
            raise BudgetSpent(f"more than {self.items:,} records and headers so far", where, mend)
        if self.spent.growth > self.growth:
            what = f"more than {self.growth:,} bytes so far that decompression made of a hundredth of that"
            raise BudgetSpent(what, where, "check fewer directories or one --topic: these batches look made up")


class Batch(NamedTuple):
    """The header of one batch with a valid CRC, its byte position in the file, and its raw records.

    A named tuple, since a log of small batches makes one for every few records.
    """

    position: int
    size: int
    header: bytes
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    payload: bytes

    @property
    def last_offset(self) -> int:
        """The offset of the batch's last record, kept even where compaction has removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """Bits 0-2: the compression, by ``codecs.CODEC_NAMES``."""
        return self.attributes & 0x07

    @property
    def log_append_time(self) -> bool:
        """Bit 3: timestamps are the broker's (``LogAppendTime``) and not the producer's (``CreateTime``)."""
        return bool(self.attributes & 0x08)

    @property
    def transactional(self) -> bool:
        """Bit 4."""
        return bool(self.attributes & 0x10)

    @property
    def control(self) -> bool:
        """Bit 5: transaction markers, and the quorum's own records in the metadata log."""
        return bool(self.attributes & 0x20)

    def hashes(self, limits: Limits) -> tuple[list[int], list[bytes]]:
        """Offset deltas and payload hashes of the records. Raises ``RecordError`` or ``CodecError``."""
        return hash_records(self.uncompressed(limits), self.record_count, self.last_offset_delta)

    def records(self, limits: Limits) -> Iterator[Record]:
        """The records with all their fields. Raises ``RecordError`` or ``CodecError``."""
        data = self.uncompressed(limits)
        return iter_records(data, self.record_count, self.base_offset, self.base_timestamp, limits.batch_items)

    def uncompressed(self, limits: Limits) -> bytes:
        """The bytes of the records. Raises ``CodecError``."""
        if self.codec and not self.record_count and not self.payload:
            return b""
        return decompress(self.codec, self.payload, limits.batch_bytes)


class FileWindow:
    """Reads of a file of a known size through one buffer; never beyond that size, whatever a length says."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self.size = size
        self._start = 0
        self._data = b""

    def get(self, position: int, length: int) -> bytes:
        """``length`` bytes at ``position``, fewer where the file ends (or has shrunk meanwhile)."""
        length = min(length, self.size - position)
        if length <= 0:
            return b""
        start = position - self._start
        if start < 0 or start + length > len(self._data):
            self._file.seek(position)
            self._data = self._file.read(min(max(length, _WINDOW), self.size - position))
            self._start = position
            start = 0
        return self._data[start : start + length]

    def peek(self, position: int, length: int) -> bytes:
        """Like ``get``, but a miss leaves the buffer where it is: for probing what a length field points at."""
        length = min(length, self.size - position)
        start = position - self._start
        if length <= 0 or (start >= 0 and start + length <= len(self._data)):
            return self.get(position, length)
        self._file.seek(position)
        return self._file.read(length)

    def next_data(self, position: int) -> int:
        """The first byte at ``position`` or later that is not in a hole of the file; its size where all are."""
        try:
            descriptor = self._file.fileno()
            here = os.lseek(descriptor, 0, os.SEEK_CUR)
        except (OSError, ValueError):
            return position
        try:
            return min(self.size, os.lseek(descriptor, position, os.SEEK_DATA))
        except OSError as error:
            return self.size if error.errno == errno.ENXIO else position
        finally:
            # The buffered file believes to know where its descriptor stands.
            os.lseek(descriptor, here, os.SEEK_SET)

    def all_zero(self, position: int) -> bool:
        """Whether every byte from ``position`` to the end is zero (a preallocated tail)."""
        step = _SMALL_STEP
        while (position := self.next_data(position)) < self.size:
            chunk = self.get(position, step)
            if not chunk or chunk.count(0) != len(chunk):
                return False
            position += len(chunk)
            step = min(2 * step, _WINDOW)
        return True


class SegmentScan:
    """Iterates over the valid batches of one segment and notes everything else as problems.

    ``segment_base`` is the offset that the file is named by, ``next_offset`` the smallest offset that may still
    come (the end of the batches before this file). ``last`` says that this is the newest segment of its log, where a
    kill or a live copy leaves a torn tail; anywhere else a file that ends inside a batch has lost data.

    After iteration: ``next_offset`` is one more than the last valid offset, ``end`` the byte after the
    last valid batch.
    """

    def __init__(
        self,
        file: BinaryIO,
        size: int,
        problems: ProblemLog,
        *,
        segment_base: int = 0,
        next_offset: int = 0,
        last: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self._window = FileWindow(file, size)
        self._size = size
        self._problems = problems
        self._base = segment_base
        self.next_offset = max(next_offset, segment_base)
        self.last = last
        self._limits = limits or Limits()
        self.end = 0
        # Looking for the next batch after damage may checksum wrong candidates: bounded, or a hostile file
        # would cost its size squared.
        self._resync_budget = 4 * size + (1 << 20)

    def __iter__(self) -> Iterator[Batch]:
        position = 0
        while position < self._size:
            header = self._window.get(position, HEADER_BYTES)
            if len(header) < HEADER_BYTES:
                position = self._broken_tail(position, f"{self._size - position} bytes are left, no whole header")
                continue
            fields = HEADER.unpack(header)
            base_offset, length, _, magic, crc = fields[:5]
            size = LENGTH_END + length
            if length < MIN_LENGTH and magic == 2:
                position = self._bad_length(position, length)
            elif magic != 2:
                position = self._bad_magic(position, magic, length)
            elif size > self._size - position:
                what = f"a batch of {size} bytes at offset {base_offset} where {self._size - position} are left"
                position = self._broken_tail(position, what)
            elif size > self._limits.batch_bytes:
                self._problems.add(
                    "batch-too-large",
                    f"a batch of {size} bytes, the limit is {self._limits.batch_bytes}",
                    "check the length; raise the limit if the batch is real",
                    byte=position,
                )
                position = self._after(position, size)
            else:
                data = self._window.get(position, size)
                actual = google_crc32c.value(data[CRC_START:])
                if len(data) < size:
                    position = self._broken_tail(position, "the file has shrunk while it was read")
                elif actual != crc:
                    self._problems.add(
                        "crc-mismatch",
                        f"CRC-32C {actual:08x} where the batch at offset {base_offset} says {crc:08x}",
                        "copy the file from another replica; the batch is left out",
                        byte=position,
                    )
                    position = self._after(position, size)
                elif self._in_order(position, base_offset, fields[6]):
                    yield Batch._make((position, size, header, *fields, data[HEADER_BYTES:]))
                    position += size
                    self.end = position
                    self.next_offset = base_offset + fields[6] + 1
                else:
                    position += size

    def _in_order(self, position: int, base_offset: int, last_delta: int) -> bool:
        """Whether the batch's offsets follow the ones before it and belong to this segment."""
        limit = self._base + _RELATIVE_OFFSETS
        if last_delta >= 0 and self._base <= base_offset < self.next_offset:
            what = f"the batch of offsets {base_offset} to {base_offset + last_delta} overlaps the one before it, "
            what += f"which ends at {self.next_offset - 1}"
            mend = "compare it with another replica; the second batch is left out"
            self._problems.add(OVERLAP, what, mend, byte=position)
            return False
        if last_delta < 0:
            what = f"a last offset delta of {last_delta}"
        elif base_offset < self._base or base_offset + last_delta >= limit:
            what = f"offsets {base_offset} to {base_offset + last_delta} in the segment of base {self._base}"
        else:
            return True
        self._problems.add(
            "offset-order", what, "copy the file from another replica; the batch is left out", byte=position
        )
        return False

    def _bad_length(self, position: int, length: int) -> int:
        self._problems.add(
            "bad-length",
            f"a batch length of {length}, less than the {MIN_LENGTH} of a header",
            "copy the file from another replica",
            byte=position,
        )
        return self._resync(position + 1)

    def _bad_magic(self, position: int, magic: int, length: int) -> int:
        if length == 0 and self._window.all_zero(position):
            self._zero_tail(position)
            return self._size
        if magic in (0, 1):
            end = self._old_messages(position)
            if end is not None:
                return end
        self._problems.add(
            "unknown-magic",
            f"unknown magic {magic}, a record batch has 2",
            "check that this is a Kafka segment; copy it from another replica if so",
            byte=position,
        )
        # Not by the length: what is no batch has no length either, and a false one could hide many batches.
        return self._resync(position + 1)

    def _old_messages(self, position: int) -> int | None:
        """The byte after a run of messages of format 0 or 1 (Kafka before 0.11); ``None`` if no such message is here.

        One problem names the whole run. Their own CRC-32 says that they are messages.
        """
        start, formats, last = position, set[int](), 0
        while (header := self._window.get(position, _OLD_HEADER.size)) and len(header) == _OLD_HEADER.size:
            offset, length, crc, magic = _OLD_HEADER.unpack(header)
            size = LENGTH_END + length
            if magic not in (0, 1) or length < _OLD_MIN_LENGTH or size > self._size - position or offset < last:
                break
            if size > self._limits.batch_bytes or zlib.crc32(self._window.get(position, size)[_OLD_CRC_START:]) != crc:
                break
            last = offset
            formats.add(magic)
            position += size
        if position == start:
            return None
        self.next_offset = max(self.next_offset, last + 1)
        known = " and ".join(str(each) for each in sorted(formats))
        self._problems.add(
            "old-magic",
            f"messages up to offset {last} are in message format {known} (magic {known}, Kafka before 0.11), "
            "which Fencepost does not read",
            "checks that need these records are unknown",
            byte=start,
        )
        return position

    def _zero_tail(self, position: int) -> None:
        self._problems.add(
            "zero-tail" if self.last else "truncated-segment",
            f"{self._size - position} zero bytes to the end of the file",
            "nothing to mend: a preallocated or torn tail, which Kafka cuts off at its next start"
            if self.last
            else "copy the segment from another replica: it is not the newest, so data are missing",
            byte=position,
            severity="note" if self.last else "error",
        )

    def _broken_tail(self, position: int, what: str) -> int:
        """A batch that does not fit the file: a torn tail, unless valid batches follow."""
        if self._size - position >= HEADER_BYTES and self._window.all_zero(position):
            self._zero_tail(position)
            return self._size
        found = self._find(position + 1)
        if found is not None:
            self._problems.add(
                "bad-length",
                f"{what}, but a valid batch begins at byte {found}",
                "copy the file from another replica",
                byte=position,
            )
            return found
        self._problems.add(
            "truncated-segment",
            f"truncated segment: {what}",
            "nothing before it is affected; Kafka cuts this torn tail off at its next start"
            if self.last
            else "copy the segment from another replica: it is not the newest, so data are missing",
            byte=position,
        )
        return self._size

    def _after(self, position: int, size: int) -> int:
        """Where to go on after a batch that is left out.

        A valid batch at its end comes first: one inside it is the payload of a damaged record, not a batch of this
        log. Otherwise its length may be the lie, so a valid batch inside it comes before a mere header at its end.
        """
        following = position + size
        plausible = self._plausible(following)
        if plausible and self._valid(following):
            return following
        if plausible or following == self._size:
            found = self._find(position + 1, following)
            return following if found is None else found
        return self._resync(position + 1)

    def _plausible(self, position: int) -> bool:
        header = self._window.peek(position, HEADER_BYTES)
        if len(header) < HEADER_BYTES:
            return False
        base_offset, length, _, magic = struct.unpack_from(">qiib", header)
        return bool(
            magic == 2
            and MIN_LENGTH <= length <= self._size - position - LENGTH_END
            and self.next_offset <= base_offset < self._base + _RELATIVE_OFFSETS
        )

    def _resync(self, position: int) -> int:
        """The next byte at which a valid batch begins; the end of the file, with a problem, if none does."""
        found = self._find(position)
        if found is not None:
            return found
        if position < self._size:
            self._problems.add(
                "unreadable-tail",
                f"no valid batch in the {self._size - position} bytes from here on",
                RESTORE_MEND,
                byte=position,
            )
        return self._size

    def _find(self, position: int, stop: int | None = None) -> int | None:
        """The first byte in ``[position, stop)`` at which a batch with a valid CRC begins, within the budget."""
        stop = self._size if stop is None else stop
        # The high bytes of the base offset are the same for all offsets that may follow here.
        low, high = struct.pack(">q", self.next_offset), struct.pack(">q", self._base + _RELATIVE_OFFSETS - 1)
        shared = next((i for i in range(8) if low[i] != high[i]), 8)
        pattern = re.compile(b"(?=" + re.escape(low[:shared]) + b".{%d}\x02)" % (16 - shared), re.DOTALL)
        step = _SMALL_STEP
        while position < stop:
            # A batch may begin at the end of a hole: its magic is the first byte that is never zero.
            position = max(position, self._window.next_data(position) - 16)
            chunk = self._window.get(position, min(step, stop + 16 - position))
            for match in pattern.finditer(chunk):
                candidate = position + match.start()
                if self._plausible(candidate) and self._valid(candidate):
                    return candidate
                if self._resync_budget <= 0:
                    return None
            if len(chunk) < step:
                return None
            position += step - 16
            step = min(2 * step, _WINDOW)
        return None

    def _valid(self, position: int) -> bool:
        base_offset, length, _, _, crc, _, last_delta = struct.unpack(">qiibIhi", self._window.peek(position, 27))
        size = min(LENGTH_END + length, self._limits.batch_bytes + 1)
        self._resync_budget -= size
        data = self._window.peek(position, size)
        actual: int = google_crc32c.value(data[CRC_START:])
        in_segment: bool = last_delta >= 0 and base_offset + last_delta < self._base + _RELATIVE_OFFSETS
        return in_segment and actual == crc


def read_batch(batch: Batch, problems: ProblemLog, limits: Limits) -> tuple[list[int], list[bytes]] | None:
    """Offset deltas and payload hashes of the batch; ``None``, with a problem, where its records do not parse.

    Raises ``BudgetSpent`` where a budget of ``limits`` is spent.
    """
    where = f"{problems.path}, byte {batch.position}"
    try:
        data = batch.uncompressed(limits)
    except CodecError as error:
        # It may have taken as much as a batch that may be read.
        limits.spend(0, len(batch.payload), limits.batch_bytes if batch.codec else 0, where)
        name = CODEC_NAMES.get(batch.codec, str(batch.codec))
        what = f"the batch at offset {batch.base_offset} ({name}) does not decompress: {error}"
        problems.add("bad-compression", what, "copy the file from another replica", byte=batch.position)
        return None
    try:
        deltas, hashes, headers = scan_records(data, batch.record_count, batch.last_offset_delta, limits.batch_items)
    except RecordError as error:
        # No item has less than two bytes.
        limits.spend(min(limits.batch_items, len(data) // 2), len(batch.payload), len(data), where)
        many = isinstance(error, TooManyItems)
        what = f"record {error.index} of {batch.record_count} in the batch at offset {batch.base_offset}: {error}"
        mend = "look at the batch: no producer sends so many" if many else "copy the file from another replica"
        problems.add("batch-too-large" if many else "bad-records", what, mend, byte=batch.position)
        return None
    limits.spend(len(deltas) + headers, len(batch.payload), len(data), where)
    return deltas, hashes
