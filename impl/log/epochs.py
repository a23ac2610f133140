"""The leader epoch cache: which epoch each offset was written in (``LeaderEpochFileCache`` in Kafka, KIP-101)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


class LeaderEpochCache:
    """Entries with both epochs and start offsets rising, and their checkpoint file kept up with them.

    ``store`` writes all entries to disk and returns once they survive a crash. It is called before the cache answers by
    a change, so what is on disk is never behind an append that this cache has let pass. It may be ahead of the log
    after a crash (an epoch whose first record was lost), which opening the log mends by ``truncate_from_end``.
    """

    def __init__(
        self, entries: Iterable[EpochEntry] = (), store: Callable[[Sequence[EpochEntry]], None] = lambda _: None
    ) -> None:
        self._entries: list[EpochEntry] = []
        self._store = store
        for entry in entries:
            self._assign(entry)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, in rising order."""
        return tuple(self._entries)

    @property
    def latest(self) -> EpochEntry | None:
        """The entry of the largest epoch."""
        return self._entries[-1] if self._entries else None

    @property
    def latest_epoch(self) -> int:
        """The largest epoch, ``UNDEFINED_EPOCH`` if there is none."""
        return self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that ``epoch`` begins at ``start_offset``; gives whether that was news.

        Kafka's rules: the latest epoch is not assigned again, unless it is found to start earlier; entries that the new
        one contradicts (an epoch or a start offset as large or larger) are dropped. Raises ``ValueError`` for negative
        numbers.
        """
        changed = self._assign(EpochEntry(epoch, start_offset))
        if changed:
            self._store(self._entries)
        return changed

    def _assign(self, entry: EpochEntry) -> bool:
        if entry.epoch < 0 or entry.start_offset < 0:
            raise ValueError(f"epoch {entry.epoch} at offset {entry.start_offset}: neither may be negative")
        entries = self._entries
        if entries and entries[-1].epoch == entry.epoch and entry.start_offset >= entries[-1].start_offset:
            return False
        while entries and (entries[-1].epoch >= entry.epoch or entries[-1].start_offset >= entry.start_offset):
            entries.pop()
        entries.append(entry)
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """``(epoch, end offset)`` of the largest epoch that is at most the one asked for (``endOffsetFor``).

        The end offset is where the next larger epoch begins, or ``log_end_offset`` for the latest epoch. Below the
        earliest epoch the answer is the epoch asked for and where the earliest begins; for ``UNDEFINED_EPOCH``, an
        epoch above the latest, and an empty cache it is ``(UNDEFINED_EPOCH, UNDEFINED_OFFSET)``.
        """
        if epoch != UNDEFINED_EPOCH and epoch == self.latest_epoch:
            return epoch, log_end_offset
        higher = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if epoch == UNDEFINED_EPOCH or higher == len(self._entries):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        end = self._entries[higher].start_offset
        return (self._entries[higher - 1].epoch if higher else epoch), end

    def epoch_for(self, offset: int) -> int:
        """The epoch of ``offset``, ``UNDEFINED_EPOCH`` below the first entry (``epochForOffset``)."""
        entries = self._entries
        if entries and offset >= entries[-1].start_offset:  # nearly always asked for the end of the log
            return entries[-1].epoch
        higher = bisect_right(entries, offset, key=lambda entry: entry.start_offset)
        return entries[higher - 1].epoch if higher else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the entries that begin at ``end_offset`` or later: the log ends there.

        A negative offset is no end of a log (``UNDEFINED_OFFSET`` says that none is known) and changes nothing, as in
        Kafka.
        """
        if end_offset < 0:
            return
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        if len(kept) < len(self._entries):
            self._entries = kept
            self._store(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the epoch of ``start_offset`` begin there, and drop the entries before it: the log starts there."""
        before = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if before == 0 or (before == 1 and self._entries[0].start_offset == start_offset):
            return
        self._entries = [EpochEntry(self._entries[before - 1].epoch, start_offset), *self._entries[before:]]
        self._store(self._entries)

    def replace(self, entries: Sequence[EpochEntry]) -> None:
        """Hold exactly these entries, which rise."""
        if list(entries) != self._entries:
            self._entries = list(entries)
            self._store(self._entries)

    def clear(self) -> None:
        """Drop everything."""
        if self._entries:
            self._entries = []
            self._store(self._entries)
