"""The records of one log by their keys, as the log cleaner sees them: no markers, nothing of an aborted transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .codecs import CodecError
from .metadata import control_type
from .records import RecordError

if TYPE_CHECKING:
    from .batches import Batch, Limits
    from .partition import PartitionFiles
    from .policies import Strategy

_KEY_BYTES = 16
_TRANSACTIONAL = 0x10
_LOG_APPEND_TIME = 0x08


class KeyedRecord(NamedTuple):
    """A record: ``(rank, offset)`` is its order under the strategy. ``key`` is a hash, or ``None`` for a null key."""

    rank: int
    offset: int
    key: bytes | None
    has_value: bool

    @property
    def order(self) -> tuple[int, int]:
        """What it is compared by with others of its key."""
        return self.rank, self.offset


@dataclass(slots=True)
class KeyedLog:
    """The records of one log below an offset, in log order."""

    records: list[KeyedRecord] = field(default_factory=list)
    undecided: set[bytes | None] = field(default_factory=set)
    """Keys of records of transactions whose end is not in the log: whether they count nobody can say."""
    readable: bool = True
    """False where a batch could not be read again."""

    def below(self, end: int) -> KeyedLog:
        """The same log up to an offset."""
        return KeyedLog([each for each in self.records if each.offset < end], self.undecided, self.readable)

    def keys_from(self, start: int) -> set[bytes | None]:
        """The keys that have a record at an offset or behind."""
        return {each.key for each in self.records if each.offset >= start}

    def last(self) -> dict[bytes | None, KeyedRecord]:
        """Of each key the record that wins over the others, but for keys of which that is undecided."""
        found: dict[bytes | None, KeyedRecord] = {}
        for each in self.records:
            known = found.get(each.key)
            if known is None or each.order > known.order:
                found[each.key] = each
        for key in self.undecided:
            found.pop(key, None)
        return found


def keyed_log(files: PartitionFiles, end: int, strategy: Strategy, limits: Limits) -> KeyedLog:
    """The records below ``end`` and not below the log start. Raises ``BudgetSpent``: they are read once more.

    A record of a transaction counts if its marker says commit; one whose marker is not there yet is undecided.
    """
    log = KeyedLog()
    open_records: dict[int, list[KeyedRecord]] = {}
    last_of_interest = int(np.searchsorted(files.batches.base_offset, end))
    for row in range(len(files.batches)):
        if row >= last_of_interest and not open_records:
            break
        batch = files.stored(row) if files.batches.readable[row] else None
        if batch is None:
            log.readable = False
            continue
        try:
            _take(batch, files.log_start, end, strategy, limits, log, open_records)
        except (RecordError, CodecError, ValueError):
            log.readable = False
    for records in open_records.values():
        log.undecided.update(record.key for record in records)
    log.records.sort(key=lambda record: record.offset)
    return log


def _take(
    batch: Batch,
    start: int,
    end: int,
    strategy: Strategy,
    limits: Limits,
    log: KeyedLog,
    open_records: dict[int, list[KeyedRecord]],
) -> None:
    if batch.control:
        for record in batch.records(limits):
            if control_type(record.key) == "COMMIT":
                log.records.extend(open_records.get(batch.producer_id, ()))
            open_records.pop(batch.producer_id, None)
        return
    if batch.base_offset >= end:
        return
    append_time = batch.max_timestamp if batch.attributes & _LOG_APPEND_TIME else None
    found = []
    for record in batch.records(limits):
        if start <= record.offset < end:
            key = None if record.key is None else blake2b(record.key, digest_size=_KEY_BYTES).digest()
            rank = strategy.rank(record, append_time)
            found.append(KeyedRecord(rank, record.offset, key, record.value is not None))
    limits.spend(len(found), 0, 0, f"{batch.position}")
    if batch.attributes & _TRANSACTIONAL:
        open_records.setdefault(batch.producer_id, []).extend(found)
    else:
        log.records.extend(found)
