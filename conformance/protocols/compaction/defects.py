"""Defects of ``impl/compaction``, and of the log and the broker that it works for, which are driven against
``compaction``."""

from __future__ import annotations

from typing import Final

from ...mutants.defects import Defect
from ...mutants.patched import Patch

CONSTANTS: Final = (2, 6, 2, 2, 2, 5)
"""Brokers, log size, keys, timestamps, values of the header, leader epochs."""


def _of(name: str, doc: str, file: str, old: str, new: str, issue: str = "") -> Defect:
    return Defect(name, "compaction", doc, (Patch(f"{file}.py", old, new),), issue, CONSTANTS)


DEFECTS: Final[tuple[Defect, ...]] = (
    # -- which record stays -----------------------------------------------------------------------------------------
    _of(
        "lower-offset-of-equals-stays",
        "of equal versions the lower offset stays",
        "compaction/offset_map",
        "        elif self._order(slot) >= (rank, offset):\n",
        "        elif self._order(slot)[0] >= rank:\n",
    ),
    _of(
        "first-header-counts",
        "of a repeated header the first value counts",
        "compaction/scanning",
        "        if name == wanted:\n",
        "        if name == wanted and rank == ABSENT:\n",
    ),
    _of(
        "header-unsigned",
        "a header's value is read as an unsigned number, so that -1 is the largest",
        "compaction/strategy",
        'int.from_bytes(value, "big", signed=True)',
        'int.from_bytes(value, "big")',
    ),
    _of(
        "no-header-counts-as-zero",
        "a record without the header beats one whose value is negative",
        "compaction/scanning",
        "    rank = ABSENT\n    count,",
        "    rank = NO_RANK\n    count,",
    ),
    _of(
        "short-header-counts",
        "a value that is not 8 bytes long counts as a number",
        "compaction/strategy",
        "    if value is None or len(value) != HEADER_BYTES:\n",
        "    if value is None:\n",
    ),
    _of(
        "broker-default-ignored",
        "a topic that has no strategy of its own goes by offsets, whatever its broker's is",
        "compaction/config",
        'Kind(topic.get(STRATEGY) or broker.get(BROKER_STRATEGY) or "offset")',
        'Kind(topic.get(STRATEGY) or "offset")',
    ),
    _of(
        "new-strategy-not-taken",
        "a strategy that is set while the topic lives is not taken before a restart",
        "replica/broker",
        "        self._runtime.compacted[topic] = compaction\n",
        "        self._runtime.compacted.setdefault(topic, compaction)\n",
    ),
    _of(
        "map-of-dirty-part-alone",
        "a clean record that beats a dirty one does not take its place in the map: both stay for ever",
        "compaction/retention",
        "            self._winners.put(key, *order)  # of the clean part: what it beats comes later in this pass\n",
        "            pass\n",
    ),
    # -- the producer's edge ----------------------------------------------------------------------------------------
    _of(
        "short-header-taken",
        "a leader takes a record whose header is not 8 bytes long",
        "compaction/edge",
        "if found and (found[-1] is None or len(found[-1]) != HEADER_BYTES):",
        "if found and found[-1] is None:",
    ),
    _of(
        "earlier-header-checked",
        "a leader looks at the first value of a repeated header, and the cleaner at the last",
        "compaction/edge",
        "if found and (found[-1] is None or len(found[-1]) != HEADER_BYTES):",
        "if found and (found[0] is None or len(found[0]) != HEADER_BYTES):",
    ),
    _of(
        "keyless-taken",
        "a leader takes a record without a key, and the cleaner throws it away",
        "compaction/edge",
        "            if record.key is None:\n",
        "            if record.key is None and wanted is not None:\n",
        "KAFKA-4808",
    ),
    # -- what may be cleaned, and how far it is ---------------------------------------------------------------------
    _of(
        "uncommitted-cleaned",
        "the cleaner goes past the high watermark",
        "compaction/manager",
        "bound = min(facts.last_stable(high_watermark), active.base_offset)",
        "bound = active.base_offset",
    ),
    _of(
        "young-are-cleaned",
        "a segment whose first record is old enough is cleaned, however young its others are",
        "compaction/manager",
        "if config.min_compaction_lag_ms and times and times[1] > now",
        "if config.min_compaction_lag_ms and times and times[0] > now",
    ),
    _of(
        "overdue-waits-for-its-ratio",
        "a dirty record that is older than max.compaction.lag.ms waits until enough of the log is dirty",
        "compaction/manager",
        "if each and (each.overdue or each.ratio",
        "if each and (each.ratio",
    ),
    _of(
        "full-map-says-all-is-clean",
        "where the map has no more room, all up to the bound is stored as clean",
        "compaction/manager",
        "        self._directory.store_cleaned(*what.key, done.end)\n",
        "        self._directory.store_cleaned(*what.key, what.bound)\n",
    ),
    _of(
        "clean-part-not-stored",
        "how far a log is clean is not stored: all of it is cleaned again and again",
        "compaction/manager",
        "        self._directory.store_cleaned(*what.key, done.end)\n",
        "        self._directory.store_cleaned(*what.key, done.first_dirty)\n",
    ),
    _of(
        "last-batch-goes",
        "the last batch of what is cleaned goes, and its offset with it",
        "compaction/retention",
        "needed = end == self._bound or end > self._mapped",
        "needed = end > self._mapped",
    ),
    # -- tombstones -------------------------------------------------------------------------------------------------
    _of(
        "tombstone-goes-at-once",
        "a tombstone goes with the cleaning that first finds it",
        "compaction/retention",
        "expired = batch.delete_horizon is not None and batch.delete_horizon <= self._now",
        "expired = batch.delete_horizon is None or batch.delete_horizon <= self._now",
    ),
    _of(
        "tombstone-stays-for-ever",
        "each cleaning sets the delete horizon anew",
        "compaction/retention",
        "        if batch.delete_horizon is None and any(",
        "        if any(",
        "KAFKA-8522",
    ),
    _of(
        "tombstone-outlives-its-horizon",
        "a tombstone whose time is over stays",
        "compaction/retention",
        "        if record.has_value or not expired:\n",
        "        if record.has_value or not expired or found is None:\n",
    ),
    _of(
        "tombstone-goes-before-what-it-beats",
        "a tombstone goes while a record that it beats by its version is still there, which comes back",
        "compaction/retention",
        "            gone = found is None and offset < self._first_dirty and not self._tombstones_stay\n",
        "            gone = True\n",
    ),
    _of(
        "horizon-shifts-timestamps",
        "the delete horizon takes the place of the base timestamp, and timestamps are counted from it",
        "compaction/rewriting",
        "        parts = [_at(payload, record, horizon, batch) for record in kept]\n",
        "        parts = [payload[record.start : record.end] for record in kept]\n",
    ),
    # -- files ------------------------------------------------------------------------------------------------------
    _of(
        "swap-not-completed",
        "opening a log does not complete a swap that a crash has ended",
        "log/swap",
        "        if not name.endswith(LOG_SUFFIX + SWAP) or not name[:20].isdigit() or len(name) != 29:\n",
        "        if True:\n",
    ),
    _of(
        "swap-not-synced",
        "the steps of a swap are not synced: a crash may show them in another order",
        "log/swap",
        "    files.fsync_dir(folder)\n    removing.clear()\n",
        "    removing.clear()\n",
    ),
    _of(
        "cleaned-not-synced",
        "a cleaned segment takes its place before its records are on the disk",
        "log/compacted_part",
        "            try:\n                cleaned.seal()\n            finally:\n                cleaned.close()\n",
        "            cleaned.close()\n",
    ),
    # -- who reads --------------------------------------------------------------------------------------------------
    _of(
        "table-forgets-deletes",
        "a consumer forgets what it was told to delete, and an older version brings it back",
        "compaction/table",
        "        self._winners[record.key] = order, record.value\n",
        "        self._winners[record.key] = order, record.value\n"
        "        if record.value is None:\n"
        "            del self._winners[record.key]\n",
    ),
    _of(
        "table-goes-by-offsets",
        "a consumer takes the last record of each key, whatever the strategy is",
        "compaction/table",
        "order = self.strategy.rank(record.timestamp, record.headers), record.offset",
        "order = 0, record.offset",
    ),
)
