"""One segment: a ``.log`` file of batches one after another, and the ``.index`` beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from ..files.interface import File, Files
from .batch import HEADER_BYTES, LENGTH_END, NO_EPOCH, PREFIX, Batch, read_batch
from .errors import CorruptBatch, CorruptLog
from .index import OffsetIndex

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
RELATIVE_OFFSETS = 1 << 31
"""Offsets of a segment are its base and an int32; so are positions."""

REPLACE = "remove the partition's folder and let it be copied from a replica that is whole"

_WINDOW = 1 << 16
_RECENT = 1000
"""Batches whose place is remembered after they were appended; then these are forgotten, and others remembered."""
_DELTA_AT = 23
"""Where the last offset delta stands in a batch of magic 2."""


def segment_name(base_offset: int) -> str:
    """20 digits, as Kafka names the files of a segment."""
    return f"{base_offset:020d}"


class Place(NamedTuple):
    """Where a batch lies, from the few bytes that say so; nothing in it is checked."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    """For magic 0 and 1 ``base_offset`` is this too: the message inside that comes first would have to be unpacked."""
    magic: int
    leader_epoch: int


class Window:
    """Reads of a file through one buffer, so that a walk from header to header costs a read for each 64 KiB."""

    def __init__(self, file: File, ahead: int = _WINDOW) -> None:
        self._file = file
        self._ahead = ahead
        self._start = 0
        self._data = b""

    def get(self, position: int, length: int) -> bytes:
        """``length`` bytes at ``position``; fewer where the file ends."""
        start = position - self._start
        if start < 0 or start + length > len(self._data):
            self._data = self._file.pread(position, max(length, self._ahead))
            self._start = position
            start = 0
        return self._data[start : start + length]


class Segment:
    """An open segment. ``next_offset`` is one more than its last offset, or its base while it is empty."""

    def __init__(
        self,
        files: Files,
        folder: str,
        base_offset: int,
        index_interval: int,
        *,
        create: bool,
        holes: bool = False,
        suffix: str = "",
    ) -> None:
        """``holes`` says that offsets may be missing between batches; ``suffix`` is put behind both names."""
        stem = f"{folder}/{segment_name(base_offset)}"
        self._file = files.open(stem + LOG_SUFFIX + suffix, create=create)
        try:
            self.index = OffsetIndex(files.open(stem + INDEX_SUFFIX + suffix, create=True), base_offset)
        except OSError:
            self._file.close()
            raise
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.holes = holes
        self.path = stem + LOG_SUFFIX + suffix
        self._interval = index_interval
        self._since_entry = 0
        self._recent: dict[int, int] = {}

    @property
    def size(self) -> int:
        """Bytes of batches."""
        return self._file.size

    def holds(self, last_offset: int, size: int) -> bool:
        """Whether offsets up to ``last_offset`` and ``size`` more bytes can be told by an int32 from here on."""
        return last_offset - self.base_offset < RELATIVE_OFFSETS and self.size + size < RELATIVE_OFFSETS

    def append(self, batches: Sequence[tuple[int, bytes]]) -> None:
        """Write batches, each with its last offset, at the end by one write."""
        position = self._file.append(b"".join(data for _, data in batches) if len(batches) > 1 else batches[0][1])
        if len(self._recent) > _RECENT:
            self._recent.clear()
        for last_offset, data in batches:
            self._recent[self.next_offset] = position
            self._note(last_offset, position, len(data))
            position += len(data)
            self.next_offset = last_offset + 1

    def _note(self, last_offset: int, position: int, size: int) -> None:
        if self._since_entry > self._interval:
            self.index.append(last_offset, position)
            self._since_entry = 0
        self._since_entry += size

    # -- reading ----------------------------------------------------------------------------------------------------

    def places(self, position: int = 0, window: Window | None = None) -> Iterator[Place]:
        """The places of the batches from byte ``position`` on, which must begin one. Nothing but the prefix is read.

        Raises ``CorruptLog`` where the next prefix is none or the batch does not fit the file.
        """
        window = window or Window(self._file, 4096)
        size = self._file.size
        while position < size:
            head = window.get(position, _DELTA_AT + 4)
            if len(head) < PREFIX.size:
                raise self.corrupt(f"{size - position} bytes are left, no whole batch", position)
            offset, length, epoch, magic = PREFIX.unpack_from(head)
            minimum = HEADER_BYTES - LENGTH_END if magic == 2 else 1
            if not 0 <= magic <= 2 or length < minimum or position + LENGTH_END + length > size:
                what = f"no batch: a length of {length} and magic {magic}, {size - position} bytes are left"
                raise self.corrupt(what, position)
            delta = int.from_bytes(head[_DELTA_AT:], "big", signed=True) if magic == 2 else 0
            yield Place(position, LENGTH_END + length, offset, offset + delta, magic, epoch if magic == 2 else -1)
            position += LENGTH_END + length

    def read(
        self, offset: int, max_bytes: int, up_to: int, batches: list[Batch], epoch_for: Callable[[int], int]
    ) -> bool:
        """Add to ``batches`` those from the one that holds ``offset`` (or comes next) on, that end below ``up_to``.

        All of ``batches`` has at most ``max_bytes``, but always one. Gives whether the segment's end was reached, and
        the next segment may go on. Raises ``CorruptLog`` for a batch whose CRC is wrong, and for an offset or epoch,
        which no CRC covers, that is not the one after those before or not what ``epoch_for`` says (-1 for unknown).
        """
        left = max_bytes - sum(batch.size for batch in batches)
        window = Window(self._file, min(max(left, 0), self._file.size) + 2 * self._interval + 4096)
        for place in self._from(offset, window):
            if place.last_offset < offset:
                continue
            if place.last_offset >= up_to:
                if place.base_offset < up_to:
                    self.batch(place, window)  # its last offset may be damaged, and nobody would ever get past it
                return False
            if batches and place.size > left:
                return False
            if (known := epoch_for(place.last_offset)) >= 0 and place.leader_epoch not in (known, NO_EPOCH):
                what = f"leader epoch {place.leader_epoch} at offset {place.base_offset}, where it was {known}"
                raise self.corrupt(what, place.position)
            batches.append(self.batch(place, window))
            left -= place.size
        return True

    def _from(self, offset: int, window: Window | None = None) -> Iterator[Place]:
        """The places from the batch that holds ``offset``, or from one before it, each behind the one before.

        Followers and consumers fetch from the end of what they have, so nearly every read begins with a batch that was
        appended not long ago. Raises ``CorruptLog``.
        """
        position = self._recent.get(offset)
        following = offset
        if position is None:
            last, position = self.index.floor(offset)
            following = self.base_offset
            if position:
                self._check_entry(last, position)
                following = -1  # by the entry, the first is at its place
        for place in self.places(position, window):
            if following >= 0 and not self._follows(place, following):
                raise self._misplaced(place, following, place.position)
            following = place.last_offset + 1
            yield place

    def _follows(self, batch: Place | Batch, offset: int) -> bool:
        """Whether a batch may come next where ``offset`` does. No CRC covers its base offset."""
        if batch.magic < 2:
            return batch.last_offset >= offset
        return (batch.base_offset == offset or (self.holes and batch.base_offset > offset)) and (
            batch.base_offset <= batch.last_offset
        )

    def _misplaced(self, batch: Place | Batch, following: int, byte: int) -> CorruptLog:
        what = f"a batch of offsets {batch.base_offset} to {batch.last_offset} where {following} follows"
        return self.corrupt(what, byte)

    def _check_entry(self, last: int, position: int) -> None:
        """The batch of an entry of the index is where it says. Raises ``CorruptLog`` for the file that is wrong."""
        try:
            place = next(self.places(position), None)
        except CorruptLog:
            place = None
        if place is not None and place.last_offset == last:
            return
        following = self.base_offset
        try:
            for at, batch in self.scan():
                if not self._follows(batch, following):
                    raise self._misplaced(batch, following, at)
                following = batch.next_offset
        except CorruptBatch as error:
            raise self.corrupt(error.what, error.byte) from None
        what = f"no batch that ends with offset {last} begins at byte {position} of the log"
        raise CorruptLog(what, self.index.path, self.index.byte_of(position), "remove the file: it is made anew")

    def batch(self, place: Place, window: Window | None = None) -> Batch:
        """The batch at a place. Raises ``CorruptLog``."""
        data = window.get(place.position, place.size) if window else self._file.pread(place.position, place.size)
        try:
            return read_batch(data, 0, self.path, place.position)
        except CorruptBatch as error:
            raise CorruptLog(error.what, self.path, error.byte, REPLACE) from None

    def content(self) -> tuple[bytes, bytes]:
        """The bytes of the log and of its index."""
        return self._file.pread(0, self._file.size), self.index.content()

    def find(self, offset: int) -> Place | None:
        """The batch that holds ``offset`` or comes next; ``None`` past the end."""
        for place in self._from(offset):
            if place.last_offset >= offset:
                return place
        return None

    def window(self, ahead: int = _WINDOW) -> Window:
        """To read the bytes of the log through."""
        return Window(self._file, ahead)

    def end_before(self, position: int) -> int:
        """The end of the batch before the one at byte ``position``; the base offset where there is none."""
        end = self.base_offset
        for place in self.places(self.index.before(position)):
            if place.position >= position:
                break
            end = place.last_offset + 1
        return end

    def scan(self, position: int = 0, ahead: int = _WINDOW) -> Iterator[tuple[int, Batch]]:
        """Every batch from a byte on, with its byte, checked whole.

        ``ahead`` is how much is read at a time. Raises ``CorruptBatch`` at the first byte that begins none.
        """
        window = Window(self._file, ahead)
        size = self._file.size
        while position < size:
            head = window.get(position, LENGTH_END)
            length = int.from_bytes(head[8:12], "big", signed=True)
            # A torn length must not make us read what it says: past the end of the file nothing is asked for.
            wanted = min(max(LENGTH_END + length, PREFIX.size), size - position)
            batch = read_batch(window.get(position, wanted), 0, self.path, position)
            yield position, batch
            position += batch.size

    def corrupt(self, what: str, byte: int) -> CorruptLog:
        """The error for a byte of this file."""
        return CorruptLog(what, self.path, byte, REPLACE)

    # -- opening ----------------------------------------------------------------------------------------------------

    def load(self) -> bool:
        """Take the index as it is and find the end by it; ``False`` if the index can not be this segment's.

        Raises ``CorruptLog`` where the batches after the last entry do not end with the file.
        """
        if not self.index.load(self._file.size):
            return False
        if not len(self.index) and self._file.size > 64 * self._interval + _WINDOW:
            return False  # lost, or never written: the search would read the whole segment each time
        self._since_entry = 0
        for place in self.places(self.index.last_position()):
            self.next_offset = place.last_offset + 1
            self._since_entry += place.size
        return True

    def rebuilt(self) -> Iterator[tuple[int, Batch]]:
        """Like ``scan``, and makes the index anew from what the caller takes."""
        self.index.clear()
        self._since_entry = 0
        self.next_offset = self.base_offset
        for position, batch in self.scan():
            yield position, batch
            self._note(batch.last_offset, position, batch.size)
            self.next_offset = batch.next_offset

    # -- cutting and keeping ----------------------------------------------------------------------------------------

    def cut(self, position: int, next_offset: int) -> None:
        """Keep the first ``position`` bytes, which end before ``next_offset``, and make that survive a crash.

        Synced at once: were it not, batches appended now could survive together with old ones behind them.
        """
        self._recent.clear()
        self.index.truncate_to(position)
        self._since_entry = position - self.index.last_position()
        self._file.truncate(position)
        self._file.fsync()
        self.next_offset = next_offset

    def fsync(self) -> None:
        """Make every batch survive a crash."""
        self._file.fsync()

    def seal(self) -> None:
        """Sync batches and index: from now on the index is believed when the log is opened."""
        self._file.fsync()
        self.index.fsync()

    def close(self) -> None:
        """Close both files."""
        try:
            self._file.close()
        finally:
            self.index.close()


def close_all(segments: Iterable[Segment]) -> None:
    """Close segments that are given up: whatever closing one of them says, the others are closed too."""
    for segment in segments:
        with suppress(OSError):
            segment.close()
