"""What stays of a batch, when the map has the winners (``Cleaner.cleanInto`` in Kafka).

A record above what the map has seen stays. Below, the winner of its key stays, and nothing without a key. A tombstone
that wins stays until the delete horizon of its batch, which is set when a cleaning first finds it: then everybody has
had ``delete.retention.ms`` to see it. So do markers of transactions, from when no records of theirs are left.

Under ``offset`` what a tombstone beats lies before it, and is gone, or goes first. Under the other strategies it may
lie behind, and must not come back: a tombstone goes only out of the part that is clean, where each key has one record,
and only while no record of its key is dirty or behind what is cleaned (``OffsetMap``'s ``TAIL``).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from ..log.batch import Batch
from ..log.records import StoredRecord
from .facts import LogFacts, Transaction
from .headers import ABORT, COMMIT, marker_type
from .offset_map import OffsetMap
from .rewriting import emptied, messages, rewritten
from .scanning import Scanned, scan
from .strategy import Strategy


@dataclass(slots=True)
class Counts:
    """Of one cleaning."""

    mapped_bytes: int = 0
    """Of batches that were read for the map."""
    tail_bytes: int = 0
    """Of those behind, which a strategy with ranks has to look at for what a tombstone beats."""
    copied_bytes: int = 0
    """Of those that were read to be written, or not."""
    written_bytes: int = 0
    records_read: int = 0
    """By the pass that writes."""
    records_kept: int = 0
    tombstones_removed: int = 0
    keyless: int = 0


class Aborted:
    """Which batches belong to aborted transactions."""

    def __init__(self, transactions: dict[int, list[Transaction]]) -> None:
        self._of = transactions
        self._markers = {key: [each.marker for each in found] for key, found in transactions.items()}

    def __contains__(self, batch: Batch) -> bool:
        if not batch.is_transactional or batch.is_control or batch.producer_id not in self._of:
            return False
        slot = bisect_right(self._markers[batch.producer_id], batch.last_offset)
        found = self._of[batch.producer_id]
        return slot < len(found) and found[slot].first <= batch.base_offset


class Retention:
    """The decisions of one cleaning. Batches come in the order of the log, from its start."""

    def __init__(
        self,
        strategy: Strategy,
        winners: OffsetMap,
        facts: LogFacts,
        counts: Counts,
        *,
        log_start: int,
        first_dirty: int,
        mapped: int,
        bound: int,
        tombstones_stay: bool,
        now: int,
        delete_retention_ms: int,
    ) -> None:
        """``mapped`` is where the map's part ends; ``bound`` where all that may be cleaned does. Times in ms."""
        self._strategy = strategy
        self._winners = winners
        self._facts = facts
        self._counts = counts
        self._log_start = log_start
        self._first_dirty = first_dirty
        self._mapped = mapped
        self._bound = bound
        self._tombstones_stay = tombstones_stay
        self._now = now
        self._horizon = now + delete_retention_ms
        self._aborted = Aborted(facts.aborted())
        self._with_records: set[int] = set()
        """Producers with records of the transaction whose marker comes next."""

    def kept(self, batch: Batch) -> list[tuple[int, bytes]]:
        """``(last offset, bytes)`` of what takes the batch's place: itself, less of it, empty, or nothing.

        Raises ``CorruptBatch``.
        """
        if batch.base_offset >= self._mapped:
            return [(batch.last_offset, batch.data)]
        if batch.magic < 2:
            return self._legacy(batch)
        if batch.is_control:
            return self._control(batch)
        if batch.is_transactional and batch.record_count:
            self._with_records.add(batch.producer_id)
        if batch in self._aborted:
            self._counts.records_read += batch.record_count
            return self._empty(batch)
        payload, records = scan(batch, self._strategy)
        expired = batch.delete_horizon is not None and batch.delete_horizon <= self._now
        keeps = self._keeps
        kept = [record for record in records if keeps(record, expired)]
        self._counts.records_read += len(records)
        self._counts.records_kept += len(kept)
        if not kept:
            return self._empty(batch)
        horizon = None
        if batch.delete_horizon is None and any(not each.has_value and each.offset < self._mapped for each in kept):
            horizon = self._horizon
        if horizon is None and len(kept) == len(records):
            return [(batch.last_offset, batch.data)]
        return [(batch.last_offset, rewritten(batch, payload, kept, horizon))]

    def _keeps(self, record: Scanned, expired: bool) -> bool:
        offset, key = record.offset, record.key
        if offset >= self._mapped:
            return True
        if key is None:
            self._counts.keyless += 1
            return False
        if offset < self._log_start:
            return False  # deleted: it may not win against what is not
        found = self._winners.get(key)
        order = record.rank, offset
        if found is not None and order < found:
            return False
        if record.has_value or not expired:
            gone = False
        elif self._strategy.ranked:
            gone = found is None and offset < self._first_dirty and not self._tombstones_stay
        else:
            gone = True
        if gone:
            self._counts.tombstones_removed += 1
            return False
        if found is not None and order > found:
            self._winners.put(key, *order)  # of the clean part: what it beats comes later in this pass
        return True

    def _control(self, batch: Batch) -> list[tuple[int, bytes]]:
        """A marker stays while its transaction has records, and then until the delete horizon."""
        records = batch.records()
        kind = marker_type(records[0].key) if records else -1
        if kind not in (ABORT, COMMIT):
            return [(batch.last_offset, batch.data)] if records else self._empty(batch)
        if batch.producer_id in self._with_records:
            self._with_records.discard(batch.producer_id)
            return [(batch.last_offset, batch.data)]
        if batch.delete_horizon is None:
            payload, scanned = scan(batch, self._strategy)
            return [(batch.last_offset, rewritten(batch, payload, scanned, self._horizon))]
        return [(batch.last_offset, batch.data)] if batch.delete_horizon > self._now else self._empty(batch)

    def _empty(self, batch: Batch) -> list[tuple[int, bytes]]:
        """An empty batch where its end has to be told: to followers, or of its producer."""
        end = batch.next_offset
        needed = end == self._bound or end > self._mapped
        needed = needed or self._facts.is_last_of_producer(batch.producer_id, batch.last_offset)
        return [(batch.last_offset, emptied(batch))] if needed else []

    def _legacy(self, batch: Batch) -> list[tuple[int, bytes]]:
        """Records of magic 0 and 1. They have no delete horizon, so that their tombstones stay.

        Where the end has to be told one without key and value takes the place of the last.
        """
        records = batch.records()
        kept = [record for record in records if self._keeps(self._scanned(record), False)]
        self._counts.records_read += len(records)
        self._counts.records_kept += len(kept)
        if len(kept) == len(records):
            return [(batch.last_offset, batch.data)]
        if batch.next_offset == self._bound and (not kept or kept[-1].offset != batch.last_offset):
            # There are no empty batches in these formats. The record itself may not stay: the part that is clean would
            # have two of its key, and it would come back once the tombstone goes that beats it.
            kept.append(records[-1]._replace(key=None, value=None))
        return messages(batch, kept)

    def _scanned(self, record: StoredRecord) -> Scanned:
        rank = self._strategy.rank(record.timestamp, record.headers)
        return Scanned(record.offset, record.timestamp, record.key, record.value is not None, rank, 0, 0, 0, 0)
