"""Cleaning one log (``Cleaner`` in Kafka): the map of winners, groups of segments, and a cleaned segment for each.

From the log's start to ``first_dirty`` the log is clean: each key has one record. The map is built of the records from
there on, to the bound or as far as it has room; another pass goes on from where it ended. Then all segments from the
log's start are read, and written without what the map says is beaten. Under a strategy with ranks a clean record may
beat what is dirty: it then takes its place in the map before the dirty one is met, as the clean part comes first.

A crash loses nothing: each group is swapped in by itself, every record that was removed from it has its winner on the
disk, and how far the log is clean is stored when all are done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..log.batch import Batch
from ..log.errors import CorruptBatch, CorruptLog
from ..log.log import Log
from ..log.segment import RELATIVE_OFFSETS, REPLACE, Segment
from .config import CompactionConfig
from .facts import LogFacts
from .offset_map import TAIL, OffsetMap
from .retention import Aborted, Counts, Retention
from .scanning import scan
from .strategy import ABSENT

_READ_BYTES = 1 << 20
"""Batches at the end of a buffer are read once more: so it is large."""
_WRITE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What one pass did: it went from ``first_dirty`` to ``end``, which is where the next begins."""

    first_dirty: int
    end: int
    keys: int
    """In the map."""
    groups: int
    bytes_before: int
    """Of the segments that were replaced."""
    bytes_after: int
    counts: Counts


class Cleaner:
    """Cleans one log after another with one map. ``memory`` is in bytes, for the map's slots; raises ``ValueError``."""

    def __init__(self, memory: int, load_factor: float = 0.9) -> None:
        self._memory = memory
        self._load_factor = load_factor
        self._map = OffsetMap(memory, ranked=False, load_factor=load_factor)
        OffsetMap(memory, ranked=True, load_factor=load_factor)

    @property
    def map(self) -> OffsetMap:
        """The map, as the last pass left it."""
        return self._map

    def clean(
        self, log: Log, facts: LogFacts, config: CompactionConfig, *, first_dirty: int, bound: int, now: int
    ) -> Cleaned:
        """One pass over the log from its start; ``bound`` is at most the active segment's base and the LSO.

        ``now`` in milliseconds. What it returns is swapped in, and survives a crash. Raises ``CorruptLog`` for a batch
        that is not as it was written, with the segments that hold it as they were; ``LogOffline`` and ``OSError``.
        """
        try:
            return self._clean(log, facts, config, first_dirty, bound, now)
        except CorruptBatch as error:  # a right CRC over records that do not parse
            raise CorruptLog(error.what, log.folder, None, REPLACE) from None

    def _clean(
        self, log: Log, facts: LogFacts, config: CompactionConfig, first_dirty: int, bound: int, now: int
    ) -> Cleaned:
        strategy, counts = config.strategy, Counts()
        if self._map.ranked != strategy.ranked:
            self._map = OffsetMap(self._memory, ranked=strategy.ranked, load_factor=self._load_factor)
        elif self._map.size:
            self._map.clear()
        aborted = Aborted(facts.aborted())
        mapped = self._fill(log, first_dirty, bound, aborted, config, counts)
        keys = self._map.size
        stay = strategy.ranked and not self._note_tail(log, mapped, config, counts)
        retention = Retention(
            strategy,
            self._map,
            facts,
            counts,
            log_start=log.log_start,
            first_dirty=first_dirty,
            mapped=mapped,
            bound=bound,
            tombstones_stay=stay,
            now=now,
            delete_retention_ms=config.delete_retention_ms,
        )
        groups = grouped([each for each in log.segments if each.base_offset < mapped], log.config.segment_bytes)
        before = sum(segment.size for group in groups for segment in group)
        after = sum(self._write(log, group, retention, counts) for group in groups)
        counts.written_bytes = after
        return Cleaned(first_dirty, mapped, keys, len(groups), before, after, counts)

    # -- the map ----------------------------------------------------------------------------------------------------

    def _fill(
        self, log: Log, start: int, bound: int, aborted: Aborted, config: CompactionConfig, counts: Counts
    ) -> int:
        """Put the records from ``start`` below ``bound`` into the map; gives where that ended for want of room."""
        put = self._map.put
        for batch in batches(log.segments, start, bound):
            counts.mapped_bytes += batch.size
            if batch.is_control or batch in aborted:
                continue
            for offset, key, rank in keyed(batch, config):
                if offset >= bound:
                    break  # whoever asks has a bound inside of a batch
                if offset >= start and key is not None and not put(key, rank, offset):
                    return offset
        return bound

    def _note_tail(self, log: Log, mapped: int, config: CompactionConfig, counts: Counts) -> bool:
        """Note the keys of the records that the map has not seen; ``False`` where there is no room for all of them."""
        put = self._map.put
        for batch in batches(log.segments, mapped, log.end):
            counts.tail_bytes += batch.size
            if not batch.is_control:
                for offset, key, _ in keyed(batch, config):
                    if offset >= mapped and key is not None and not put(key, ABSENT, TAIL):
                        return False
        return True

    # -- the segments -----------------------------------------------------------------------------------------------

    def _write(self, log: Log, group: Sequence[Segment], retention: Retention, counts: Counts) -> int:
        """Clean a group into one segment, and swap it in; gives its bytes."""
        cleaned = log.new_cleaned(group[0].base_offset)
        try:
            pending: list[tuple[int, bytes]] = []
            size = 0
            for batch in batches(group, group[0].base_offset, group[-1].next_offset):
                counts.copied_bytes += batch.size
                for each in retention.kept(batch):
                    pending.append(each)
                    size += len(each[1])
                if size >= _WRITE_BYTES:
                    log.write_cleaned(cleaned, pending)
                    pending, size = [], 0
            log.write_cleaned(cleaned, pending)
        except BaseException:
            cleaned.close()
            raise
        written = cleaned.size
        log.swap_in(cleaned, group)
        return written


def batches(segments: Sequence[Segment], start: int, end: int) -> Iterator[Batch]:
    """The batches that end at ``start`` or behind and begin below ``end``, by right CRCs. Raises ``CorruptLog``."""
    for segment in segments:
        if segment.next_offset <= start or segment.base_offset >= end:
            continue
        first = segment.find(start) if start > segment.base_offset else None
        try:
            for _, batch in segment.scan(first.position if first is not None else 0, _READ_BYTES):
                if batch.base_offset >= end:
                    break
                if batch.last_offset >= start:
                    yield batch
        except CorruptBatch as error:
            raise CorruptLog(error.what, segment.path, error.byte, REPLACE) from None


def keyed(batch: Batch, config: CompactionConfig) -> Iterator[tuple[int, bytes | None, int]]:
    """Offset, key and rank of each record. Raises ``CorruptBatch``."""
    if batch.magic < 2:
        for record in batch.records():
            yield record.offset, record.key, config.strategy.rank(record.timestamp, record.headers)
        return
    for scanned in scan(batch, config.strategy)[1]:
        yield scanned.offset, scanned.key, scanned.rank


def grouped(segments: Sequence[Segment], segment_bytes: int) -> list[list[Segment]]:
    """Segments that follow one another and, were nothing removed, still fit into one (``groupSegmentsBySize``)."""
    groups: list[list[Segment]] = []
    size = 0
    for segment in segments:
        fits = groups and size + segment.size <= segment_bytes
        if fits and segment.next_offset - groups[-1][0].base_offset < RELATIVE_OFFSETS:
            groups[-1].append(segment)
            size += segment.size
        else:
            groups.append([segment])
            size = segment.size
    return groups
