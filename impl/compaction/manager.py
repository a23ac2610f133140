"""Which log is cleaned next, and how far each is clean (``LogCleanerManager`` in Kafka).

Cleaned is what lies below the high watermark, the last stable offset, and the active segment, and is older than
``min.compaction.lag.ms``. A log is due once its dirty part is large enough, or old enough. How far a log is clean is in
``cleaner-offset-checkpoint``: stored when a pass is done, and lowered by the log before it is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..log.checkpoints import Key
from ..log.directory import DataDirectory
from ..log.errors import CorruptLog
from ..log.log import Log
from .cleaner import Cleaned, Cleaner
from .config import CleanerConfig, CompactionConfig
from .facts import LogFacts


class Cleanable(NamedTuple):
    """A log with something to clean: offsets from ``first_dirty`` up to ``bound``."""

    key: Key
    first_dirty: int
    bound: int
    clean_bytes: int
    dirty_bytes: int
    overdue: bool
    """Whether a dirty record is older than ``max.compaction.lag.ms``."""

    @property
    def ratio(self) -> float:
        """The part of the bytes that is dirty."""
        return self.dirty_bytes / (self.clean_bytes + self.dirty_bytes)


class LogCleaner:
    """The cleaner of one data directory. ``topics`` are those that are compacted, as they stand when it looks; ``now``
    gives milliseconds.
    """

    def __init__(
        self,
        directory: DataDirectory,
        topics: Mapping[str, CompactionConfig],
        now: Callable[[], int],
        config: CleanerConfig | None = None,
    ) -> None:
        config = config or CleanerConfig()
        self.topics = topics
        self.cleaner = Cleaner(config.dedupe_buffer_bytes, config.load_factor)
        self.uncleanable: dict[Key, str] = {}
        """Logs that hold what nobody wrote, and why: they are left alone until they are opened anew."""
        self._directory = directory
        self._now = now
        self._facts: dict[Key, tuple[Log, LogFacts]] = {}

    def facts(self, key: Key) -> LogFacts:
        """What is known of a log, up to its end. Raises ``CorruptLog`` and ``LogOffline``."""
        log = self._directory.log(*key)
        known = self._facts.get(key)
        if known is None or known[0] is not log:
            known = self._facts[key] = log, LogFacts(log)
            self.uncleanable.pop(key, None)
        known[1].catch_up()
        return known[1]

    def roll(self, key: Key) -> bool:
        """Close the active segment where its first record is older than ``segment.ms``, so that it can be cleaned.

        (Kafka looks when the next record is appended. A log that gets no more is then never cleaned to its end.)
        """
        config, log = self.topics[key[0]], self._directory.log(*key)
        times = self.facts(key).times(log.segments[-1].base_offset)
        limit = min(config.segment_ms, config.max_compaction_lag_ms)
        return times is not None and 0 <= times[0] < self._now() - limit and log.roll()

    def cleanable(self, key: Key, high_watermark: int) -> Cleanable | None:
        """What there is to clean of a log; ``None`` where there is nothing (``cleanableOffsets`` in Kafka)."""
        config, log, facts = self.topics[key[0]], self._directory.log(*key), self.facts(key)
        first_dirty = self._directory.cleaned(*key)
        if not log.log_start <= first_dirty <= log.end:
            first_dirty = log.log_start
        sealed, active = log.segments[:-1], log.segments[-1]
        bound = min(facts.last_stable(high_watermark), active.base_offset)
        dirty = [each for each in sealed if each.next_offset > first_dirty]
        now = self._now()
        for segment in dirty:
            times = facts.times(segment.base_offset)
            if config.min_compaction_lag_ms and times and times[1] > now - config.min_compaction_lag_ms:
                bound = min(bound, segment.base_offset)
                break
        dirty = [each for each in dirty if each.base_offset < bound]
        size = sum(each.size for each in dirty)
        if first_dirty >= bound or not size:
            return None
        clean = sum(each.size for each in sealed if each.next_offset <= first_dirty)
        first = [times[0] for each in dirty if (times := facts.times(each.base_offset)) and times[0] >= 0]
        overdue = bool(first) and now - min(first) > config.max_compaction_lag_ms
        return Cleanable(key, first_dirty, bound, clean, size, overdue)

    def due(self, high_watermarks: Mapping[Key, int]) -> list[Cleanable]:
        """The logs that are to be cleaned now, the one with the most dirt first; active segments that are old closed.

        ``high_watermarks`` names the replicas to look at. Raises like ``LogFacts.catch_up``, but for ``CorruptLog``.
        """
        found: list[Cleanable] = []
        for key in sorted(high_watermarks):
            if key[0] not in self.topics:
                continue
            try:
                self.roll(key)
                each = None if key in self.uncleanable else self.cleanable(key, high_watermarks[key])
            except CorruptLog as error:
                self.uncleanable[key] = str(error)
                continue
            if each and (each.overdue or each.ratio > self.topics[key[0]].min_cleanable_dirty_ratio):
                found.append(each)
        return sorted(found, key=lambda each: (-each.ratio, each.key))

    def clean(self, what: Cleanable) -> Cleaned | None:
        """One pass over a log, and store how far it is clean now; ``None`` for a log that turns out to be damaged.

        Raises ``LogOffline`` and ``OSError``.
        """
        log, facts = self._directory.log(*what.key), self.facts(what.key)
        config = self.topics[what.key[0]]
        try:
            done = self.cleaner.clean(
                log, facts, config, first_dirty=what.first_dirty, bound=what.bound, now=self._now()
            )
        except CorruptLog as error:
            self.uncleanable[what.key] = str(error)
            return None
        self._directory.store_cleaned(*what.key, done.end)
        facts.forget(done.end)
        return done

    def run(self, high_watermarks: Mapping[Key, int]) -> Cleaned | None:
        """Clean the log with the most dirt, if one is due: what the cleaner's thread does each time. Raises alike."""
        due = self.due(high_watermarks)
        return self.clean(due[0]) if due else None
